// Rounds of an inner loop that touch the same blocks as the round before them.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <unordered_map>
#include <vector>

#include "predict/run/interpret.h"
#include "revisit/profile.h"

namespace revisit::predict {

class SameBlocks {
 public:
    SameBlocks(std::uint64_t granularity, Binning bins) : granularity_(granularity), bins_(bins) {}

    // A round that was measured comes so many times more. Sites are those of its accesses now.
    void add(std::span<const Stretch> round, std::int64_t times,
             const std::function<std::uint32_t(std::uint32_t reference)>& site);
    // Adds what these rounds count to what was measured.
    void add_to(Profile& measured) const;

 private:
    // A round's blocks in order, each with its site and the place of the first that is the same block.
    using Pattern = std::vector<std::uint32_t>;
    struct Hash {
        std::size_t operator()(const Pattern& p) const;
    };

    std::uint64_t granularity_;
    Binning bins_;
    std::unordered_map<Pattern, std::uint64_t, Hash> times_;
    Pattern pattern_;
    std::vector<std::uint64_t> blocks_;
};

}  // namespace revisit::predict
