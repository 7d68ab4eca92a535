// First touches that need not be written down.
//
// In a scan over more blocks than a chunk has accesses, every access is a first touch, and the list of
// them is the trace itself. Where that is so for whole batches, the list says where in the trace they
// lie: sixteen threads that copied them were waiting for memory. Where blocks go up by one each, the
// first of them gives the others, and the trace is not needed.
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

    // All of the blocks, after `listed` that are written down. False when they are neither in order nor
    // lie in the trace.
    bool take(std::span<const std::uint64_t, kBatch> blocks, std::size_t listed) {
        const bool in_order = consecutive<kBatch>(blocks.data());
        const std::less<const std::uint64_t*> before;
        if (!in_order && (before(blocks.data(), trace_.data()) ||
                          !before(blocks.data(), trace_.data() + trace_.size())))
            return false;
        if (!all_.empty() && all_.back().goes_on(blocks.data(), listed, in_order))
            all_.back().count += blocks.size();
        else
            all_.push_back(
                {listed, count_, in_order ? nullptr : blocks.data(), blocks[0], blocks.size()});
        count_ += blocks.size();
        return true;
    }
    std::size_t count() const { return count_; }

    // Some entries of the list.
    struct Run {
        const std::uint64_t* blocks;  // null: each is one more than the one before, beginning with
        std::uint64_t first;
        std::size_t count;
    };
    // Calls use(at, Run) for the entries from `low` to `high` of the whole list, of which `list` has
    // those that are written down.
    template <class Use>
    void each(const BigVector<std::uint64_t>& list, std::size_t low, std::size_t high, Use use) const {
        auto next = std::ranges::upper_bound(all_, low, {}, &Stretch::end);
        for (std::size_t at = low; at < high;) {
            const std::size_t left_out = next == all_.begin() ? 0 : std::prev(next)->left_out();
            Run run{};
            if (next != all_.end() && at >= next->begin()) {
                const std::size_t skipped = at - next->begin();
                run = {next->in_order() ? nullptr : next->blocks + skipped, next->first + skipped,
                       std::min(high, next->end()) - at};
            } else {
                run = {list.data() + (at - left_out), 0,
                       (next == all_.end() ? high : std::min(high, next->begin())) - at};
            }
            use(at, run);
            at += run.count;
            if (next != all_.end() && at == next->end()) ++next;
        }
    }
    // The whole list, written down.
    BigVector<std::uint64_t> write_down(BigVector<std::uint64_t> list) const {
        if (all_.empty()) return list;
        BigVector<std::uint64_t> out;
        out.reserve(list.size() + count_);
        each(list, 0, list.size() + count_, [&](std::size_t, const Run& run) {
            if (run.blocks != nullptr)
                out.insert(out.end(), run.blocks, run.blocks + run.count);
            else
                for (std::size_t i = 0; i < run.count; ++i) out.push_back(run.first + i);
        });
        return out;
    }

 private:
    struct Stretch {
        std::size_t listed, before;   // entries before it: written down, and in earlier stretches
        const std::uint64_t* blocks;  // in the trace; null: in order, beginning with
        std::uint64_t first;
        std::size_t count;
        bool in_order() const { return blocks == nullptr; }
        bool goes_on(const std::uint64_t* with, std::size_t after, bool with_in_order) const {
            if (listed != after || in_order() != with_in_order) return false;
            return in_order() ? first + count == with[0] : blocks + count == with;
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
