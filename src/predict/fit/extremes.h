// How far the numbers go that decide what a program does, size by size.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "predict/run/interpret.h"

namespace revisit::predict {

// Extremes of all runs seen, and what they say of a size that was not run.
class Reach {
 public:
    void add(const std::vector<std::int64_t>& size, const Program& program, const Trace& trace);

    // Numbers that some run cut to their width, or took as unsigned though negative: what that does
    // beyond the runs has the period of the whole type.
    std::vector<Doubt> narrowed(const Program& program) const;

    // Cases that may occur at the target and did in no run, each a sentence. `checked` are sizes at
    // which the formulas were tested: fixed numbers have to be small beside one of them.
    std::vector<Doubt> surprises(const Program& program, const std::vector<std::int64_t>& target,
                                 std::span<const std::vector<std::int64_t>> checked) const;

 private:
    std::vector<std::vector<std::int64_t>> sizes_;
    std::vector<std::vector<Observed>> runs_;       // by run and watch
    std::vector<std::vector<std::int64_t>> spans_;  // by run and reference: elements from end to end
    std::vector<std::vector<bool>> tables_;         // by global: entries that some run read
};

}  // namespace revisit::predict
