#include "report/gate.h"

#include <fmt/format.h>

#include <cmath>

#include "core/parse_floating.h"
#include "core/try.h"
#include "revisit/units.h"

namespace revisit {
namespace {

bool is_space(char c) {
    return c == ' ' || c == '\t' || c == '\n';
}

class ConditionParser {
 public:
    explicit ConditionParser(std::string_view text) : text_(text) {}

    Result<Condition> parse() {
        Condition out{std::string(text_), {{}}};
        for (;;) {
            auto comparison = TRY(parse_comparison());
            out.any.back().push_back(comparison);
            std::string_view joint = word();
            if (joint.empty()) return out;
            if (joint == "or")
                out.any.emplace_back();
            else if (joint != "and")
                return bad("\"and\", \"or\" or the end", joint);
        }
    }

 private:
    unexpected<Error> bad(std::string_view expected, std::string_view found) const {
        return fail(fmt::format("\"{}\": expected {}, found {}", text_, expected,
                                found.empty() ? "the end" : fmt::format("\"{}\"", found)));
    }
    void skip_spaces() {
        while (at_ < text_.size() && is_space(text_[at_])) ++at_;
    }
    std::string_view word() {
        skip_spaces();
        std::size_t start = at_;
        while (at_ < text_.size() && !is_space(text_[at_]) &&
               std::string_view("<>=!").find(text_[at_]) == std::string_view::npos)
            ++at_;
        return text_.substr(start, at_ - start);
    }

    Result<Comparison> parse_comparison() {
        Comparison out;
        out.metric = word();
        if (out.metric.empty()) return bad("a metric", text_.substr(at_));
        skip_spaces();
        static constexpr std::pair<std::string_view, Operator> kOperators[] = {
            {"<=", Operator::less_equal}, {">=", Operator::greater_equal}, {"==", Operator::equal},
            {"!=", Operator::not_equal},  {"<", Operator::less},           {">", Operator::greater},
        };
        bool known = false;
        for (auto [sign, op] : kOperators)
            if (!known && text_.substr(at_).starts_with(sign)) {
                out.op = op;
                at_ += sign.size();
                known = true;
            }
        if (!known) return bad("one of < <= > >= == !=", text_.substr(at_));
        out.bound = TRY(parse_bound());
        return out;
    }

    Result<Bound> parse_bound() {
        std::string_view text = word();
        Bound out;
        std::string_view digits = text;
        bool negative = false;
        if (!digits.empty() && (digits[0] == '+' || digits[0] == '-')) {
            out.kind = Bound::Kind::change;
            negative = digits[0] == '-';
            digits.remove_prefix(1);
        }
        auto [end, code] = parse_floating(digits.data(), digits.data() + digits.size(), out.number);
        bool starts_well =
            !digits.empty() && ((digits[0] >= '0' && digits[0] <= '9') || digits[0] == '.');
        if (!starts_well || code != std::errc{}) return bad("a number such as 0.95, 5%, +2%", text);
        out.suffix = digits.substr(static_cast<std::size_t>(end - digits.data()));
        if (out.suffix == "%") {
            out.percent = true;
            out.suffix.clear();
        }
        if (!out.suffix.empty() && !parse_bytes("1" + out.suffix)) return bad("a number", text);
        if (negative) out.number = -out.number;
        std::size_t before = at_;
        if (word() == "of") {
            if (word() != "old" || !out.percent || out.kind != Bound::Kind::change)
                return bad("a change such as +10% of old", text_.substr(before));
            out.kind = Bound::Kind::relative;
        } else {
            at_ = before;
        }
        return out;
    }

    std::string_view text_;
    std::size_t at_ = 0;
};

double scaled(const Bound& bound, Unit unit) {
    if (bound.percent) return bound.number / 100;
    if (bound.suffix.empty()) return bound.number;
    auto one = unit == Unit::bytes ? parse_bytes("1" + bound.suffix) : parse_count("1" + bound.suffix);
    return bound.number * static_cast<double>(one.value_or(1));
}

bool satisfies(double value, Operator op, double bound) {
    switch (op) {
        case Operator::less:
            return value < bound;
        case Operator::less_equal:
            return value <= bound;
        case Operator::greater:
            return value > bound;
        case Operator::greater_equal:
            return value >= bound;
        case Operator::equal:
            return value == bound;
        case Operator::not_equal:
            return value != bound;
    }
    return false;
}

// Over every value in [value - error, value + error]. Equality holds nowhere for sure once there is
// an error, inequality everywhere outside it.
Verdict judge_range(double value, double error, Operator op, double bound) {
    bool at_low = satisfies(value - error, op, bound), at_high = satisfies(value + error, op, bound);
    if (error > 0 && (op == Operator::equal || op == Operator::not_equal)) {
        bool inside = bound >= value - error && bound <= value + error;
        return inside ? Verdict::within_noise : op == Operator::equal ? Verdict::no : Verdict::holds;
    }
    if (at_low && at_high) return Verdict::holds;
    return at_low || at_high ? Verdict::within_noise : Verdict::no;
}

}  // namespace

Result<Condition> parse_condition(std::string_view text) {
    return ConditionParser(text).parse();
}

Result<Verdict> judge(const Comparison& comparison, const FigureChange& figures) {
    const Bound& bound = comparison.bound;
    const Figure &old_value = figures.old_value, &new_value = figures.new_value;
    Unit unit = new_value.unit;
    if (bound.kind == Bound::Kind::value) {
        if (bound.percent && unit != Unit::share && unit != Unit::score)
            return fail(fmt::format("{} is not a share: give a number, or a change such as +5%",
                                    comparison.metric));
        return judge_range(new_value.value, new_value.error, comparison.op, scaled(bound, unit));
    }
    if (unit == Unit::score)
        return fail(fmt::format("{} compares old with new already: give a bound without a sign",
                                comparison.metric));
    double change = new_value.value - old_value.value;
    double error = std::hypot(new_value.error, old_value.error);
    double limit = scaled(bound, unit);
    bool of_old = bound.kind == Bound::Kind::relative || (bound.percent && unit != Unit::share);
    return judge_range(change, error, comparison.op, of_old ? limit * old_value.value : limit);
}

}  // namespace revisit
