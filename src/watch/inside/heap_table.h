// The table of heap blocks, as the library inside of a program writes it and the sampler reads it.
#pragma once

#include <cstdint>

namespace revisit::watch {

struct HeapTable {
    static constexpr unsigned kGroups = 512, kWays = 8;
    static constexpr const char* kSymbol = "revisit_heap_table";
    static constexpr std::uint64_t kMapped = std::uint64_t{1} << 63;  // in `where`: mmap made it

    std::uint64_t noted;  // grows with every block that is noted
    alignas(64) std::uint8_t used[kGroups];
    std::uint64_t low[kGroups * kWays], high[kGroups * kWays], where[kGroups * kWays];  // low 0 = none
};

// Where small blocks of a page were allocated: that of the last one that was drawn.
struct HeapPages {
    static constexpr unsigned kPages = 1u << 13, kShift = 12;
    struct Page {
        std::uint64_t number, where;  // 0 = none
    };
    Page pages[kPages];  // by the lowest bits of their numbers

    static constexpr unsigned entry_of(std::uint64_t number) { return number % kPages; }
};

struct HeapSpace {
    HeapTable table;
    HeapPages small;
};

}  // namespace revisit::watch
