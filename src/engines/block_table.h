// Block → what one thread knows of it: a hash small enough to have by the thousand.
//
// The tables behind the exact engine reserve address space by the gigabyte, which suits one stack. Here
// there is one table a thread, up to 65536 of them, most tiny: open addressing over a plain vector that
// starts at a cache line or two and doubles. Four neighbouring blocks share a line of four entries, so
// a scan misses once in four. An entry is found, then kept by its index until the next insertion: the
// caller changes its value in place.
#pragma once

#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

#include "engines/simd.h"

namespace revisit {

class BlockTable {
 public:
    struct Entry {
        std::uint64_t block = 0;
        std::uint32_t value = 0;  // 0: empty
        std::uint32_t site = 0;
    };

    BlockTable() : entries_(kLeast) {}

    // Who touched a block, and which of its parts (BlockBatch::parts).
    struct Touch {
        std::uint32_t site = 0;
        std::uint16_t thread = 0;
        std::uint16_t parts = 0;
    };

    // Room for 64-bit times or for touches beside the entries, for those who need them.
    void keep_times() { times_.resize(entries_.size()); }
    void keep_touches() { touches_.resize(entries_.size()); }

    REVISIT_INLINE void prefetch(std::uint64_t block) const {
        __builtin_prefetch(entries_.data() + home(block), 1, 3);
    }

    // The block's entry, or the empty one where it belongs.
    REVISIT_INLINE std::size_t find(std::uint64_t block) const {
        std::size_t i = home(block);
        while (entries_[i].value != 0 && entries_[i].block != block) i = (i + 1) & mask();
        return i;
    }
    // Fills an empty entry that find() returned. Entries may move: returns the index it has now.
    std::size_t insert(std::size_t empty, std::uint64_t block, std::uint32_t value) {
        if ((count_ + 1) * 8 > entries_.size() * 5) {
            grow();
            empty = find(block);
        }
        entries_[empty] = {block, value, 0};
        count_++;
        return empty;
    }

    Entry& operator[](std::size_t i) { return entries_[i]; }
    const Entry& operator[](std::size_t i) const { return entries_[i]; }
    std::uint64_t& time(std::size_t i) { return times_[i]; }
    Touch& touch(std::size_t i) { return touches_[i]; }
    std::uint64_t count() const { return count_; }

    template <class Use>
    void for_each(Use use) {
        for (Entry& entry : entries_)
            if (entry.value != 0) use(entry);
    }

 private:
    static constexpr std::size_t kLeast = 8;

    std::size_t mask() const { return entries_.size() - 1; }
    REVISIT_INLINE std::size_t home(std::uint64_t block) const {
        const std::uint64_t line = block >> 2;
        const std::uint64_t hash = (line ^ line >> 32) * 0x9e3779b97f4a7c15u;
        return static_cast<std::size_t>(hash >> shift_ << 2 | (block & 3));
    }

    [[gnu::noinline]] void grow() {
        std::vector<Entry> old(entries_.size() * 2);
        std::vector<std::uint64_t> old_times(times_.empty() ? 0 : old.size());
        std::swap(old, entries_);
        std::swap(old_times, times_);
        std::vector<Touch> old_touches(touches_.empty() ? 0 : old.size() * 2);
        std::swap(old_touches, touches_);
        shift_--;
        for (std::size_t i = 0; i < old.size(); i++) {
            if (old[i].value == 0) continue;
            const std::size_t to = find(old[i].block);
            entries_[to] = old[i];
            if (!times_.empty()) times_[to] = old_times[i];
            if (!touches_.empty()) touches_[to] = old_touches[i];
        }
    }

    std::vector<Entry> entries_;
    std::vector<std::uint64_t> times_;
    std::vector<Touch> touches_;
    std::uint64_t count_ = 0;
    unsigned shift_ = 64 - std::countr_zero(kLeast / 4);
};

}  // namespace revisit
