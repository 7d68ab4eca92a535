// Numbers by 64-bit keys, looked up once or more per access.
//
// Problem. A recorder looks up what it knows of a pair of numbers (label and object, block and call
// path) a hundred million times, often for pairs that are not there. std::unordered_map divides by the
// number of buckets and follows a list: two or three cache misses, also for a key that is absent. Idea.
// Open addressing with linear probing in an array of 16-byte slots, at most half of them used; nothing
// is removed. A slot is empty if it holds no number, so every key is possible.
// Example, 4 slots: A and B both hash to slot 2, so B is in slot 3. C, which hashes to 2 as well and is
// not there: slots 2 and 3 hold other keys, slot 0 is empty, so it is absent.
// Cost. One cache miss per lookup. `import numpy` counted exactly takes about a tenth less time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace revisit {

class KeyTable {
 public:
    static constexpr std::uint32_t kNone = ~std::uint32_t{0};

    // kNone = the key is not there.
    std::uint32_t find(std::uint64_t key) const {
        if (slots_.empty()) return kNone;
        return slots_[place(key)].number;
    }
    // The key must not be there, and the number not be kNone.
    void add(std::uint64_t key, std::uint32_t number) {
        if (2 * (used_ + 1) > slots_.size()) grow();
        slots_[place(key)] = {key, number};
        used_++;
    }
    std::size_t size() const { return used_; }

 private:
    struct Slot {
        std::uint64_t key = 0;
        std::uint32_t number = kNone;
    };

    // Where it is, or would be.
    std::size_t place(std::uint64_t key) const {
        const std::size_t mask = slots_.size() - 1;
        std::size_t at = static_cast<std::size_t>(key * 0x9e3779b97f4a7c15u >> shift_);
        while (slots_[at].number != kNone && slots_[at].key != key) at = (at + 1) & mask;
        return at;
    }
    void grow() {
        std::vector<Slot> before(slots_.empty() ? 64 : 2 * slots_.size());
        before.swap(slots_);
        shift_ = 64;
        for (std::size_t size = slots_.size(); size > 1; size /= 2) shift_--;
        for (const Slot& one : before)
            if (one.number != kNone) slots_[place(one.key)] = one;
    }

    std::vector<Slot> slots_;  // a power of two
    std::size_t used_ = 0;
    unsigned shift_ = 64;
};

}  // namespace revisit
