// First touches that need not be written down.
//
// In a scan over more blocks than a chunk has accesses, every access is a first touch, and the list of
// them is the trace itself. Where that is so for whole batches, the list says where in the trace they
// lie: sixteen threads that copied them were waiting for memory.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "engines/big_vector.h"

namespace revisit {

class TouchStretches {
 public:
    TouchStretches() = default;
    // The trace stays where it is as long as this is used.
    explicit TouchStretches(std::span<const std::uint64_t> trace) : trace_(trace) {}

    // All of the blocks, after `listed` that are written down. False when they do not lie in the trace.
    bool take(std::span<const std::uint64_t> blocks, std::size_t listed) {
        const std::less<const std::uint64_t*> before;
        if (before(blocks.data(), trace_.data()) ||
            !before(blocks.data(), trace_.data() + trace_.size()))
            return false;
        if (!all_.empty() && all_.back().listed == listed && all_.back().blocks_end() == blocks.data())
            all_.back().count += blocks.size();
        else
            all_.push_back({listed, count_, blocks.data(), blocks.size()});
        count_ += blocks.size();
        return true;
    }
    std::size_t count() const { return count_; }

    // Calls use(at, blocks) for the entries from `low` to `high` of the whole list, of which `list` has
    // those that are written down.
    template <class Use>
    void each(const BigVector<std::uint64_t>& list, std::size_t low, std::size_t high, Use use) const {
        auto next = std::ranges::upper_bound(all_, low, {}, &Stretch::end);
        for (std::size_t at = low; at < high;) {
            const std::size_t left_out = next == all_.begin() ? 0 : std::prev(next)->left_out();
            std::span<const std::uint64_t> blocks;
            if (next != all_.end() && at >= next->begin())
                blocks = {next->blocks + (at - next->begin()), std::min(high, next->end()) - at};
            else
                blocks = {list.data() + (at - left_out),
                          (next == all_.end() ? high : std::min(high, next->begin())) - at};
            use(at, blocks);
            at += blocks.size();
            if (next != all_.end() && at == next->end()) ++next;
        }
    }
    // The whole list, written down.
    BigVector<std::uint64_t> write_down(BigVector<std::uint64_t> list) const {
        if (all_.empty()) return list;
        BigVector<std::uint64_t> out;
        out.reserve(list.size() + count_);
        each(list, 0, list.size() + count_,
             [&](std::size_t, auto blocks) { out.insert(out.end(), blocks.begin(), blocks.end()); });
        return out;
    }

 private:
    struct Stretch {
        std::size_t listed, before;  // entries before it: written down, and in earlier stretches
        const std::uint64_t* blocks;
        std::size_t count;
        std::size_t begin() const { return listed + before; }
        std::size_t end() const { return begin() + count; }
        std::size_t left_out() const { return before + count; }
        const std::uint64_t* blocks_end() const { return blocks + count; }
    };
    std::span<const std::uint64_t> trace_;
    std::vector<Stretch> all_;
    std::size_t count_ = 0;
};

}  // namespace revisit
