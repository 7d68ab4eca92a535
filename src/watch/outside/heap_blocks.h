// Blocks of the heap by where they were allocated, from the table that the library inside of the
// program keeps (inside/heap.cpp), read from outside.
//
// A copy of the table serves until an address lies in none of its blocks, or in one whose entry has
// changed since: then it is read again, if anything was noted in between. An entry is 24 bytes to
// check, the table 100 KB.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>

#include "watch/inside/heap_table.h"
#include "watch/outside/maps.h"

namespace revisit::watch::outside {

struct HeapBlock {
    std::uint64_t low = 0, high = 0, where = 0;  // low = 0: none that was noted
};

class HeapBlocks {
 public:
    void find_table(const Maps& maps);
    bool is_there() const { return at_ != 0; }
    HeapBlock find(pid_t process, std::uint64_t address);
    // Where small blocks of its page, or of the nearest one that is known, were allocated; 0 = not
    // known.
    std::uint64_t find_small(pid_t process, std::uint64_t address) const;
    // Whether it is the library's own.
    bool is_code(std::uint64_t pc) const { return pc >= code_low_ && pc < code_high_; }

 private:
    bool is_still(pid_t process, unsigned entry) const;
    int entry_of(std::uint64_t address) const;  // in the copy; -1 = none
    bool read(pid_t process);

    std::uint64_t at_ = 0;  // in the program; 0 = it has none
    std::uint64_t code_low_ = 0, code_high_ = 0;
    std::unique_ptr<HeapTable> copy_;
};

}  // namespace revisit::watch::outside
