// First touches that need not be written down.
//
// In a scan over more blocks than a chunk has accesses, every access is a first touch, and the list of
// them is the trace itself. Where that is so for whole batches, the list says where in the trace they
// lie: sixteen threads that copied them were waiting for memory. Where blocks go up by one each, the
// first of them tells the others, and the trace need not be read again.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "engines/big_vector.h"
#include "engines/simd.h"

namespace revisit {

// Whether `count` numbers go up by one each.
template <unsigned kCount, class Number>
REVISIT_INLINE bool consecutive(const Number* numbers) {
    Number off = 0;
    for (Number i = 0; i < kCount; ++i) off |= numbers[i] - numbers[0] - i;
    return off == 0;
}

class TouchStretches {
 public:
    TouchStretches() = default;
    // The trace stays where it is as long as this is used.
    explicit TouchStretches(std::span<const std::uint64_t> trace) : trace_(trace) {}

    static constexpr std::size_t kBatch = 64;

    // All of the blocks, after `listed` that are written down. False when they do not lie in the trace.
    bool take(std::span<const std::uint64_t, kBatch> blocks, std::size_t listed) {
        const std::less<const std::uint64_t*> before;
        if (before(blocks.data(), trace_.data()) ||
            !before(blocks.data(), trace_.data() + trace_.size()))
            return false;
        const bool in_order = consecutive<kBatch>(blocks.data());
        if (!all_.empty() && all_.back().goes_on(blocks.data(), listed, in_order))
            all_.back().count += blocks.size();
        else
            all_.push_back({listed, count_, blocks.data(), blocks.size(), in_order});
        count_ += blocks.size();
        return true;
    }
    std::size_t count() const { return count_; }

    // Calls use(at, blocks, in_order) for the entries from `low` to `high` of the whole list, of which
    // `list` has those that are written down. In order: each block is one more than the one before.
    template <class Use>
    void each(const BigVector<std::uint64_t>& list, std::size_t low, std::size_t high, Use use) const {
        auto next = std::ranges::upper_bound(all_, low, {}, &Stretch::end);
        for (std::size_t at = low; at < high;) {
            const std::size_t left_out = next == all_.begin() ? 0 : std::prev(next)->left_out();
            std::span<const std::uint64_t> blocks;
            const bool stretch = next != all_.end() && at >= next->begin();
            if (stretch)
                blocks = {next->blocks + (at - next->begin()), std::min(high, next->end()) - at};
            else
                blocks = {list.data() + (at - left_out),
                          (next == all_.end() ? high : std::min(high, next->begin())) - at};
            use(at, blocks, stretch && next->in_order);
            at += blocks.size();
            if (next != all_.end() && at == next->end()) ++next;
        }
    }
    // The whole list, written down.
    BigVector<std::uint64_t> write_down(BigVector<std::uint64_t> list) const {
        if (all_.empty()) return list;
        BigVector<std::uint64_t> out;
        out.reserve(list.size() + count_);
        each(list, 0, list.size() + count_, [&](std::size_t, auto blocks, bool) {
            out.insert(out.end(), blocks.begin(), blocks.end());
        });
        return out;
    }

 private:
    struct Stretch {
        std::size_t listed, before;  // entries before it: written down, and in earlier stretches
        const std::uint64_t* blocks;
        std::size_t count;
        bool in_order;
        bool goes_on(const std::uint64_t* with, std::size_t after, bool with_in_order) const {
            return listed == after && blocks + count == with && in_order == with_in_order &&
                   (!in_order || blocks[0] + count == with[0]);
        }
        std::size_t begin() const { return listed + before; }
        std::size_t end() const { return begin() + count; }
        std::size_t left_out() const { return before + count; }
    };
    std::span<const std::uint64_t> trace_;
    std::vector<Stretch> all_;
    std::size_t count_ = 0;
};

}  // namespace revisit
