// One program at every size: constants as polynomials of the sizes.
#include "predict/fit/family.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "predict/fit/fixed_numbers.h"

namespace revisit::predict {
namespace {

// Every number in a program that a size could have gone into, in a fixed order; and whether it is one
// the program counts with, not the bytes of an array or a row.
template <class ProgramT, class F>
void for_each_constant(ProgramT& p, F&& f) {
    for (auto& g : p.globals) {
        f(reinterpret_cast<
              std::conditional_t<std::is_const_v<ProgramT>, const std::int64_t&, std::int64_t&>>(
              g.size),
          false);
        for (auto& v : g.values) f(v, false);
    }
    for (auto& fn : p.functions) {
        for (auto& c : fn.constants) f(c.value, c.global < 0);
        for (auto& r : fn.references)
            for (auto& e : r.extents)
                f(reinterpret_cast<std::conditional_t<std::is_const_v<ProgramT>, const std::int64_t&,
                                                      std::int64_t&>>(e.second),
                  false);
        for (auto& b : fn.blocks) {
            for (auto& i : b.code) f(i.imm, false);
            for (auto& c : b.cases) f(c, true);
        }
    }
}

std::vector<std::int64_t> constants_of(const Program& p) {
    std::vector<std::int64_t> all;
    for_each_constant(p, [&](const std::int64_t& v, bool) { all.push_back(v); });
    return all;
}

}  // namespace

std::optional<ProgramFamily> ProgramFamily::interpolate(
    const std::vector<std::vector<std::int64_t>>& sizes, const std::vector<Program>& programs,
    const std::vector<std::int64_t>& check_size, const Program& check) {
    ProgramFamily family(check);
    std::vector<std::vector<std::int64_t>> constants;
    const auto expected = constants_of(check);
    for (const auto& p : programs) {
        if (!same_shape(p, check)) return std::nullopt;
        constants.push_back(constants_of(p));
        if (constants.back().size() != expected.size()) return std::nullopt;
    }
    std::vector<bool> counts;
    for_each_constant(check, [&](const std::int64_t&, bool counted) { counts.push_back(counted); });
    const std::size_t axes = check_size.size();
    std::vector<std::uint8_t> order;
    for (std::size_t v = 0; v < axes; ++v) order.push_back(static_cast<std::uint8_t>(v));
    const std::vector<int> once(kMaxVariables, 1);
    Points points;
    points.variables = axes;
    std::vector<std::uint32_t> which;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
        for (const auto n : sizes[i]) points.x.push_back(static_cast<std::int32_t>(n));
        which.push_back(static_cast<std::uint32_t>(i));
    }
    points.y.resize(sizes.size());
    for (std::size_t k = 0; k < expected.size(); ++k) {
        bool same = true;
        for (std::size_t i = 0; i < programs.size(); ++i) {
            points.y[i] = constants[i][k];
            same &= constants[i][k] == expected[k];
        }
        if (same) continue;
        // Products of different sizes are what there is, as a rule, and need the fewest programs.
        auto p = fit_simplest(points, which, order, 3, once);
        if (!p) p = fit_simplest(points, which, order, 3);
        if (!p || p->integer(check_size.data()) != expected[k]) return std::nullopt;
        family.slots_.push_back({k, std::move(*p), {}});
        if (counts[k]) family.look_at(family.slots_.back());
    }
    return family;
}

void ProgramFamily::look_at(Slot& slot) {
    for (std::size_t t = 0; t < slot.value.terms.size(); ++t) {
        const auto ratio = slot.value.coefficients[t].rational();
        if (ratio && std::abs(ratio->first) < kLargeNumber * ratio->second) continue;
        if (ratio && ratio->second == 1) {
            slot.large.emplace_back(t, ratio->first);
            numbers_[name_of_number(ratio->first)] = std::abs(ratio->first);
        } else {
            left_.push_back("a bound has a large fraction of a size in it");
        }
    }
}

bool ProgramFamily::whole() const {
    for (const Slot& s : slots_)
        for (const Element c : s.value.coefficients)
            if (const auto ratio = c.rational(); !ratio || ratio->second != 1) return false;
    return true;
}

bool ProgramFamily::uses(const Slot& slot, const std::vector<bool>& sizes) {
    for (std::size_t v = 0; v < sizes.size(); ++v)
        if (sizes[v] && slot.value.uses(v)) return true;
    return false;
}

Program ProgramFamily::marked(const std::vector<bool>& sizes,
                              const std::set<std::string>& numbers) const {
    constexpr std::int64_t kOther = 1'000'003;
    Program p = base_;
    std::size_t number = 0, slot = 0;
    for_each_constant(p, [&](std::int64_t& v, bool) {
        if (slot < slots_.size() && slots_[slot].number == number) {
            const Slot& s = slots_[slot++];
            if (uses(s, sizes) || std::any_of(s.large.begin(), s.large.end(), [&](const auto& l) {
                    return numbers.contains(name_of_number(l.second));
                }))
                v += kOther;
        }
        ++number;
    });
    return p;
}

std::int64_t ProgramFamily::denominator(const std::vector<bool>& sizes) const {
    std::int64_t common = 1;
    for (const Slot& s : slots_) {
        if (!uses(s, sizes)) continue;
        for (const Element c : s.value.coefficients) {
            const auto ratio = c.rational();
            if (!ratio) return 0;
            common = std::lcm(common, ratio->second);
        }
    }
    return common;
}

Program ProgramFamily::at(const std::vector<std::int64_t>& size, const Parameters& numbers) const {
    Program p = base_;
    std::size_t number = 0, slot = 0;
    for_each_constant(p, [&](std::int64_t& v, bool) {
        if (slot < slots_.size() && slots_[slot].number == number) {
            const Slot& s = slots_[slot++];
            Polynomial value = s.value;
            for (const auto& [term, coefficient] : s.large)
                if (const auto now = numbers.find(name_of_number(coefficient)); now != numbers.end())
                    value.coefficients[term] = Element(coefficient < 0 ? -now->second : now->second);
            v = value.integer(size.data());
        }
        ++number;
    });
    return p;
}

}  // namespace revisit::predict
