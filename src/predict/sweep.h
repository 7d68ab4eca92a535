// One fit, many sizes.
#pragma once

#include <string>
#include <vector>

#include "predict/predict.h"

namespace revisit::predict {

struct SweepPoint {
    std::int64_t value = 0;
    Profile profile;
    bool exact = false;
};

// `name` from `low` to `high` in about `count` steps of equal ratio; other sizes stay as they are.
// Short runs are interpreted, all others come from one set of formulas made for the largest.
Result<std::vector<SweepPoint>> sweep(Request request, const std::string& name, std::int64_t low,
                                      std::int64_t high, int count);

}  // namespace revisit::predict
