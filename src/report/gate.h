// What --fail-if understands: conditions over named figures of an old and a new profile.
//
//   condition  = comparison { ("and" | "or") comparison }        "and" binds tighter
//   comparison = metric ("<" | "<=" | ">" | ">=" | "==" | "!=") bound
//   bound      = 0.95 | 5% | 256K | 1e6       the new value itself
//              | +2% | -1% | +100 | -0.01     the change from old to new; always signed
//              | +10% of old                  the change, relative to the old value
//
// A signed percentage is percentage points on a rate or share ("llc.miss_rate > +2%": from 3 % to over
// 5 %) and percent of the old value on a count or a distance ("distinct > +5%"). Numbers next to a
// distance take K, M, G as powers of 1024, next to a count as powers of 1000.
//
// Noise. A comparison holds when it does whatever the figures truly are inside their 95 % errors; when
// only some of those values satisfy it, it is *within noise* and does not fail a build.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "report/metrics.h"

namespace revisit {

enum class Operator : std::uint8_t { less, less_equal, greater, greater_equal, equal, not_equal };

struct Bound {
    enum class Kind : std::uint8_t { value, change, relative };
    Kind kind = Kind::value;
    bool percent = false;
    double number = 0;  // as written: +2% is 2, K and M not applied
    std::string suffix;
};

struct Comparison {
    std::string metric;
    Operator op = Operator::greater;
    Bound bound;
};

struct Condition {
    std::string text;
    std::vector<std::vector<Comparison>> any;  // holds when all of any of these do
};

Result<Condition> parse_condition(std::string_view text);

enum class Verdict : std::uint8_t { no, within_noise, holds };

// `old_value` is meaningless for a score.
struct FigureChange {
    Figure old_value;
    Figure new_value;
};

Result<Verdict> judge(const Comparison& comparison, const FigureChange& figures);

}  // namespace revisit
