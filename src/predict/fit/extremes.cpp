// How far the numbers go that decide what a program does.
//
// Problem. Formulas come from small sizes. A guard i > k * k that no sample reaches, an index cut to
// eight bits, a quotient that is still zero, a product that wraps beyond 32 bits: the samples and the
// larger sizes they are checked at all behave alike, and the target does not. Idea. Every operation
// that is not plain arithmetic has a margin whose sign says which of its cases is met: the difference
// of two compared numbers, dividend less divisor, the distance to the end of the type. Where all runs
// met one case only, the extremes of the margin are fitted as polynomials of the sizes, and at the
// target they must still be in that case; what has no fit is a surprise too. Numbers that do not grow
// with the sizes at all (k * k again, as a shift of an index) must be small beside sizes that were
// checked in full: then whatever they can do to addresses was seen. Cost. Two fits an instruction over
// some tens of points: a few milliseconds a kernel.
#include "predict/fit/extremes.h"

#include <cmath>
#include <map>
#include <optional>

#include "predict/fit/fixed_numbers.h"
#include "predict/fit/polynomial.h"
#include "predict/run/arithmetic.h"
#include "predict/run/interpret.h"

namespace revisit::predict {
namespace {

constexpr int kMaxDegree = 6;

bool wraps(Op op) {
    return op == Op::add || op == Op::sub || op == Op::mul || op == Op::shl || op == Op::trunc;
}

// The cases of a margin: which of negative, zero and positive are one.
enum class Cases : std::uint8_t { none, negative_or_not, positive_or_not, zero_or_not };

Cases cases_of(Op op) {
    if (is_division(op)) return Cases::negative_or_not;
    if (is_clamp(op)) return Cases::positive_or_not;
    switch (op) {
        case Op::slt:
        case Op::ult:
        case Op::lshr:
        case Op::ashr:
        case Op::abs:
            return Cases::negative_or_not;
        case Op::sle:
        case Op::ule:
            return Cases::positive_or_not;
        case Op::eq:
        case Op::ne:
            return Cases::zero_or_not;
        default:
            return Cases::none;
    }
}

// Whether numbers from low to high can meet each of the two cases.
struct Met {
    bool one = false, other = false;
};
Met met(Cases cases, long double low, long double high) {
    switch (cases) {
        case Cases::negative_or_not:
            return {low < 0, high >= 0};
        case Cases::positive_or_not:
            return {high > 0, low <= 0};
        case Cases::zero_or_not:
            return {low <= 0 && high >= 0, low != 0 || high != 0};
        case Cases::none:
            break;
    }
    return {};
}

struct Span {
    long double low = 0, high = 0;
};

// Extremes by run, continued to a size that was not run.
class Continuation {
 public:
    Continuation(const std::vector<std::vector<std::int64_t>>& sizes,
                 const std::vector<std::int64_t>& target)
        : sizes_(sizes), target_(target) {
        for (std::size_t v = 0; v < target.size(); ++v) order_.push_back(static_cast<std::uint8_t>(v));
    }

    std::optional<Span> at_target(std::span<const Extremes> by_run) {
        const auto low = one(by_run, &Extremes::low), high = one(by_run, &Extremes::high);
        if (!low || !high) return std::nullopt;
        return Span{*low, *high};
    }

 private:
    std::optional<long double> one(std::span<const Extremes> by_run, std::int64_t Extremes::*end) {
        Points p;
        p.variables = target_.size();
        std::vector<std::uint32_t> which;
        std::vector<std::int64_t> key;
        // From the first one on: differences of addresses are too long for exact fractions.
        std::optional<std::int64_t> base;
        for (std::size_t k = 0; k < by_run.size(); ++k) {
            if (by_run[k].empty()) continue;
            if (std::abs(by_run[k].*end) >= std::int64_t{1} << 59) return std::nullopt;
            for (const auto n : sizes_[k]) p.x.push_back(static_cast<std::int32_t>(n));
            if (!base) base = by_run[k].*end;
            p.y.push_back(by_run[k].*end - *base);
            which.push_back(static_cast<std::uint32_t>(which.size()));
            key.push_back(static_cast<std::int64_t>(k));
            key.push_back(by_run[k].*end);
        }
        if (which.empty()) return std::nullopt;
        const auto [known, fresh] = known_.try_emplace(std::move(key));
        if (fresh) known->second = value(p, which);
        if (fresh && known->second) *known->second += static_cast<long double>(*base);
        return known->second;
    }

    std::optional<long double> value(const Points& p, const std::vector<std::uint32_t>& which) const {
        const auto fitted = fit_simplest(p, which, order_, kMaxDegree);
        if (!fitted || !fitted->determined_at(target_.data())) return std::nullopt;
        return fitted->approximate(target_.data());
    }

    const std::vector<std::vector<std::int64_t>>& sizes_;
    const std::vector<std::int64_t>& target_;
    std::vector<std::uint8_t> order_;
    std::map<std::vector<std::int64_t>, std::optional<long double>> known_;
};

}  // namespace

void Reach::add(const std::vector<std::int64_t>& size, const Program& program, const Trace& trace) {
    sizes_.push_back(size);
    runs_.push_back(trace.observed);
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::size_t> number;
    std::vector<std::int64_t> spans;
    for (std::uint32_t f = 0; f < program.functions.size(); ++f)
        for (std::uint32_t r = 0; r < program.functions[f].references.size(); ++r)
            number.try_emplace({f, r}, number.size());
    std::vector<Extremes> addresses(number.size());
    std::vector<std::size_t> place;
    for (const ReferencePlace& p : trace.references) place.push_back(number[{p.function, p.reference}]);
    for (const Access32& a : trace.accesses)
        addresses[place[a.reference]].add(static_cast<std::int64_t>(a.address));
    for (const auto& [key, n] : number) {
        const auto bytes = program.functions[key.first].references[key.second].size;
        spans.push_back(addresses[n].empty() ? 0
                                             : (addresses[n].high - addresses[n].low) /
                                                   std::max<std::int64_t>(1, bytes));
    }
    spans_.push_back(std::move(spans));
    if (tables_.empty()) tables_ = trace.tables;
    for (std::size_t g = 0; g < tables_.size(); ++g)
        for (std::size_t e = 0; e < tables_[g].size(); ++e)
            if (trace.tables[g][e]) tables_[g][e] = true;
}

std::vector<Doubt> Reach::narrowed(const Program& program) const {
    std::vector<Doubt> out;
    for (const Function& f : program.functions)
        for (const Block& b : f.blocks)
            for (const Instruction& i : b.code) {
                if (i.watch == 0) continue;
                Extremes value, first;
                for (const auto& run : runs_) {
                    value.add(run[static_cast<std::size_t>(i.watch - 1)].value);
                    first.add(run[static_cast<std::size_t>(i.watch - 1)].first);
                }
                const auto end = std::ldexp(1.0L, i.width - 1);
                const bool wrapped =
                    wraps(i.op) && !value.empty() && (value.low < -end || value.high >= end);
                const bool negative =
                    (i.op == Op::zext || i.op == Op::lshr || i.op == Op::udiv || i.op == Op::urem) &&
                    !first.empty() && first.low < 0;
                const Doubt doubt{Doubt::Kind::unproven, i.line,
                                  wrapped ? "a number is cut to its width"
                                          : "a negative number is taken as unsigned"};
                if ((wrapped || negative) && std::find(out.begin(), out.end(), doubt) == out.end())
                    out.push_back(doubt);
            }
    return out;
}

std::vector<Doubt> Reach::surprises(const Program& program, const std::vector<std::int64_t>& target,
                                    std::span<const std::vector<std::int64_t>> checked) const {
    std::vector<Doubt> out;
    Continuation continued(sizes_, target);
    std::vector<Extremes> column(runs_.size());
    const auto collect = [&](std::int32_t watch, Extremes Observed::*which) {
        Extremes all;
        for (std::size_t k = 0; k < runs_.size(); ++k) {
            column[k] = runs_[k][static_cast<std::size_t>(watch - 1)].*which;
            all.add(column[k]);
        }
        return all;
    };
    bool equal = false, unequal = false;  // met by the equality looked at
    // One case in all runs, and at the target too?
    const auto stays = [&](Cases cases, const Extremes& all) {
        auto seen = met(cases, all.low, all.high);
        // Extremes on both sides of zero do not show that zero itself was met.
        if (cases == Cases::zero_or_not) seen = {equal, unequal};
        if (seen.one && seen.other) return true;
        const auto there = continued.at_target(column);
        if (!there) return false;
        const auto then = met(cases, there->low, there->high);
        return (!then.one || seen.one) && (!then.other || seen.other);
    };
    std::int64_t fixed = 0;  // the largest number that does not grow
    std::uint32_t fixed_line = 0;
    const auto grows = [&](const Extremes& all, std::uint32_t line) {
        const auto most = std::max(std::abs(all.low), std::abs(all.high));
        if (most <= fixed || most < kLargeNumber || most >= kSentinel) return;
        for (const auto& e : column)
            if (!e.empty() && (e.low != all.low || e.high != all.high)) return;
        fixed = most;
        fixed_line = line;
    };
    const auto surprise = [&](std::uint32_t line, const std::string& what) {
        const Doubt doubt{Doubt::Kind::general, line, what};
        if (std::find(out.begin(), out.end(), doubt) == out.end()) out.push_back(doubt);
    };
    for (const Function& f : program.functions)
        for (const Block& b : f.blocks) {
            for (const Instruction& i : b.code) {
                if (i.watch == 0) continue;
                const auto cases = cases_of(i.op);
                if (cases != Cases::none) {
                    const auto all = collect(i.watch, &Observed::margin);
                    equal = unequal = false;
                    for (const auto& run : runs_)
                        if (const auto& o = run[static_cast<std::size_t>(i.watch - 1)];
                            cases == Cases::zero_or_not && !o.taken.empty()) {
                            unequal |= o.taken[0];
                            equal |= o.taken[1];
                        }
                    if (!all.empty() && !stays(cases, all))
                        surprise(i.line, "a case that no sample meets may occur at the target");
                }
                if (is_unsigned(i.op) || cases == Cases::negative_or_not)
                    for (const auto operand : {&Observed::first, &Observed::second}) {
                        const auto all = collect(i.watch, operand);
                        if (!all.empty() && !stays(Cases::negative_or_not, all))
                            surprise(i.line, "a number may turn negative at the target, in no sample");
                    }
                const auto all = collect(i.watch, &Observed::value);
                if (all.empty()) continue;
                grows(all, i.line);
                if (!wraps(i.op)) continue;
                const auto end = std::ldexp(1.0L, i.width - 1);
                if (all.low < -end || all.high >= end) continue;  // the samples met that
                const auto there = continued.at_target(column);
                if (!there || there->low < -end || there->high >= end)
                    surprise(i.line, "a number may be too large for its " + std::to_string(i.width) +
                                         " bits at the target");
            }
            if (b.watch == 0) continue;
            const auto all = collect(b.watch, &Observed::value);
            if (all.empty()) continue;
            std::vector<bool> taken(b.edges.size(), false);
            for (const auto& run : runs_) {
                const auto& o = run[static_cast<std::size_t>(b.watch - 1)];
                for (std::size_t e = 0; e < o.taken.size(); ++e)
                    if (o.taken[e]) taken[e] = true;
            }
            const auto there = continued.at_target(column);
            bool known = there && (taken[0] || (there->low >= all.low && there->high <= all.high));
            for (std::size_t c = 0; c < b.cases.size() && known; ++c)
                known = taken[c + 1] || there->low > b.cases[c] || there->high < b.cases[c];
            if (!known) surprise(b.line, "a case of the switch may occur that no sample meets");
        }
    // A table may hold something else where no sample looked.
    for (std::size_t g = 0; g < tables_.size(); ++g)
        if (std::find(tables_[g].begin(), tables_[g].end(), true) != tables_[g].end() &&
            std::find(tables_[g].begin(), tables_[g].end(), false) != tables_[g].end())
            surprise(0, "the table " + program.globals[g].name + " has entries that no sample reads");
    for (std::size_t r = 0; !spans_.empty() && r < spans_.front().size(); ++r) {
        bool same = true;
        for (const auto& s : spans_) same &= s.size() > r && s[r] == spans_.front()[r];
        if (same && spans_.front()[r] > fixed) fixed = spans_.front()[r], fixed_line = 0;
    }
    if (fixed >= kLargeNumber) {
        std::int64_t beside = 0;
        for (const auto& size : checked) {
            // What is as large as at the target need not be larger.
            std::int64_t least = size.empty() ? 0 : INT64_MAX;
            for (std::size_t a = 0; a < size.size(); ++a)
                if (size[a] != target[a]) least = std::min(least, size[a]);
            beside = std::max(beside, least);
        }
        if (beside <= fixed)
            surprise(fixed_line, "numbers of up to " + std::to_string(fixed) +
                                     " do not grow with the sizes, and none as large was checked");
    }
    return out;
}

}  // namespace revisit::predict
