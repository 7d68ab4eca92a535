// Which data object an address belongs to: heap blocks by where they were allocated, globals by symbol.
//
// A table by page: a page that is all one object's says so, another has a number for every 16 bytes
// (what allocators align to) or, where a file's data is mapped, for every 4. Looking up is one hash and
// one or two loads; allocating costs one store for every 16 bytes, or one a page.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "symbols/origins.h"
#include "symbols/symbolize.h"

namespace revisit::record {

// A file mapped for its data, by its name; memory that processes share looks like one.
DataObject data_file(const std::string& path);

class ObjectMap {
 public:
    explicit ObjectMap(Origins& origins) : origins_(origins) {}
    ObjectMap(const ObjectMap& other, Origins& origins);

    void allocate(std::uint64_t address, std::uint64_t size, std::uint32_t place,
                  std::uint32_t context);
    void release(std::uint64_t address);
    // Pages mapped without a file. They are marked when they are touched, as those of huge blocks: a
    // mapping may be larger than memory.
    void map_pages(std::uint64_t address, std::uint64_t size, std::uint32_t place,
                   std::uint32_t context);
    // What of such mappings lies in the range is gone.
    void unmap_pages(std::uint64_t low, std::uint64_t high);
    // Its symbols; one without any is data.
    void map_file(const Module& module);
    void unmap(std::uint64_t low, std::uint64_t high);

    std::uint32_t find(std::uint64_t address) {
        std::uint64_t number = address >> kPageShift;
        Found& found = found_[number % std::size(found_)];
        if (found.number != number) [[unlikely]] {
            auto at = pages_.find(number);
            found = {number, at == pages_.end() ? mapped_page(number) : &at->second};
        }
        const Page* page = found.page;
        if (page == nullptr) return kNowhere;
        std::uint32_t held = page->all;
        if (held == kMixed) held = page->cells[(address & kPageMask) >> page->cell_shift];
        return held >= kSymbol && held != kNowhere ? symbol_object(held - kSymbol) : held;
    }

    // What find() would answer, where that changes nothing here: for any number of threads at once.
    struct Known {
        std::uint32_t object;
        bool is_whole_page;
    };
    std::optional<Known> known(std::uint64_t address) const;
    std::optional<std::uint32_t> known_stack_object(std::uint32_t place) const;

    // Whether find() answers alike for all of the page that it was asked about last.
    bool is_one_object(std::uint64_t address) const {
        const Page* page = found_[(address >> kPageShift) % std::size(found_)].page;
        return page == nullptr || page->all != kMixed;
    }
    // The same for all of the pages from `low` to `high`.
    bool is_one_object(std::uint64_t low, std::uint64_t high) const;
    // Rises when such an answer may be another one.
    std::uint64_t changes() const { return changes_; }

    // Remembers where blocks lay, freed ones too, until others lie there.
    void keep_extents() { keeps_extents_ = true; }
    std::vector<Extent> extents() const;

    // Where the object that find() tells begins there; nothing for stacks.
    std::optional<std::uint64_t> beginning_of(std::uint64_t address) const;

    // The object for blocks that were allocated at `place`; known from samples, so nothing is marked.
    std::uint32_t block_object(const char* kind, std::uint32_t place, std::uint64_t bytes);

    // The object for stack accesses of the function that `place` lies in.
    std::uint32_t stack_object(std::uint32_t place);

    static constexpr unsigned kPageShift = 12;

 private:
    static constexpr std::uint64_t kPageMask = (std::uint64_t{1} << kPageShift) - 1;
    static constexpr std::uint32_t kMixed = kNowhere - 1;
    static constexpr std::uint32_t kSymbol = std::uint32_t{1} << 31;  // and a symbol's index

    struct Page {
        std::uint32_t all = kNowhere;
        std::uint8_t cell_shift = 4;
        std::vector<std::uint32_t> cells;
    };
    struct HeapBlock {
        std::uint64_t size = 0;
        std::uint32_t object = 0;
    };
    struct Symbol {
        std::string name;
        std::uint64_t low = 0;
        std::uint64_t bytes = 0;
        std::uint32_t object = kNowhere;
    };

    void forget() {
        std::fill(std::begin(found_), std::end(found_), Found{});
        changes_++;
    }
    void map_data_file(const Module& module);
    const Page* mapped_page(std::uint64_t number);
    std::uint32_t object_of(const char* kind, std::uint32_t place, std::uint32_t context);
    void remember(std::uint64_t address, std::uint64_t size, std::uint32_t object);
    void clear(std::uint64_t low, std::uint64_t high);
    bool drop_mappings(std::uint64_t low, std::uint64_t high);  // whether there were any
    void mark_block(std::uint64_t address, std::uint64_t size, std::uint32_t object);
    void mark(std::uint64_t address, std::uint64_t size, std::uint32_t held, unsigned cell_shift);
    std::uint32_t symbol_object(std::uint32_t index);

    Origins& origins_;
    std::unordered_map<std::uint64_t, Page> pages_;
    struct Found {
        std::uint64_t number = ~std::uint64_t{0};
        const Page* page = nullptr;
    };
    Found found_[1024];  // pages looked up lately; forgotten when pages come or go
    std::uint64_t changes_ = 0;
    std::unordered_map<std::uint64_t, HeapBlock> heap_;
    std::map<std::uint64_t, std::uint64_t> large_;                    // of these: address → size
    std::unordered_map<std::uint64_t, std::uint32_t> heap_objects_;   // context and place
    std::unordered_map<std::uint32_t, std::uint64_t> live_bytes_;     // by heap object
    std::unordered_map<std::uint32_t, std::uint32_t> stack_objects_;  // by place
    std::vector<Symbol> symbols_;
    std::map<std::uint64_t, Extent> mappings_;  // without a file, or of data files; by address
    std::unordered_map<std::string, std::uint32_t> data_files_;  // path → object
    bool keeps_extents_ = false;
    std::map<std::uint64_t, Extent> extents_;  // of the heap, by address
    std::size_t extents_at_clearing_ = 0;
    std::unordered_map<std::string, std::uint64_t> mapped_files_;  // path → bias it was mapped with
};

}  // namespace revisit::record
