// What is said of a run that has no formulas and is too long to interpret.
#pragma once

#include <functional>
#include <map>
#include <tuple>

#include "predict/fit/design.h"
#include "predict/input/request.h"

namespace revisit::predict {

// From reduced copies of the run, for what has no formulas and is too long to interpret.
struct Reduction {
    const Design& design;
    const Program& target;
    std::function<Result<Program>(const std::vector<std::int64_t>& size)> program_at;
    // Accesses at the target by function, reference and context, as far as they are known.
    using Totals = std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint64_t>, double>;
    Totals totals;
};
struct Estimate {
    Profile profile;
    double accuracy = 0;    // to be expected at least
    double tested = 0;      // of an estimate of the largest copy from smaller ones
    Parameters parameters;  // of that copy
    double accesses = 0;
};
Result<Estimate> estimate(const Reduction& how, const Request& request, const Deadline& deadline);

}  // namespace revisit::predict
