// One program at every size: constants as polynomials of the sizes.
#include "predict/family.h"

#include <algorithm>
#include <set>

namespace revisit::predict {
namespace {

// Every number in a program that a size could have gone into, in a fixed order.
template <class ProgramT, class F>
void for_each_constant(ProgramT& p, F&& f) {
    for (auto& g : p.globals) {
        f(reinterpret_cast<
            std::conditional_t<std::is_const_v<ProgramT>, const std::int64_t&, std::int64_t&>>(g.size));
        for (auto& v : g.values) f(v);
    }
    for (auto& fn : p.functions) {
        for (auto& c : fn.constants) f(c.value);
        for (auto& r : fn.references)
            for (auto& e : r.extents)
                f(reinterpret_cast<
                    std::conditional_t<std::is_const_v<ProgramT>, const std::int64_t&, std::int64_t&>>(
                    e.second));
        for (auto& b : fn.blocks) {
            for (auto& i : b.code) f(i.imm);
            for (auto& c : b.cases) f(c);
        }
    }
}

std::vector<std::int64_t> constants_of(const Program& p) {
    std::vector<std::int64_t> all;
    for_each_constant(p, [&](const std::int64_t& v) { all.push_back(v); });
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
    const std::size_t axes = check_size.size();
    std::vector<std::uint8_t> order;
    for (std::size_t v = 0; v < axes; ++v) order.push_back(static_cast<std::uint8_t>(v));
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
        auto p = fit_simplest(points, which, order, 3);
        if (!p || p->integer(check_size.data()) != expected[k]) return std::nullopt;
        family.slots_.push_back({k, std::move(*p)});
    }
    return family;
}

Program ProgramFamily::at(const std::vector<std::int64_t>& size) const {
    Program p = base_;
    std::size_t number = 0, slot = 0;
    for_each_constant(p, [&](std::int64_t& v) {
        if (slot < slots_.size() && slots_[slot].number == number)
            v = slots_[slot++].value.integer(size.data());
        ++number;
    });
    return p;
}

FixedNumbers mark_fixed_numbers(Program& program, const Program& other) {
    FixedNumbers found;
    std::set<std::int64_t> moduli;
    for (std::size_t f = 0; f < program.functions.size(); ++f) {
        Function& fn = program.functions[f];
        std::vector<std::optional<std::int64_t>> fixed(static_cast<std::size_t>(fn.registers));
        for (std::size_t c = 0; c < fn.constants.size(); ++c)
            if (fn.constants[c].global < 0 && fn.constants[c].known &&
                other.functions[f].constants[c].value == fn.constants[c].value)
                fixed[fn.constants[c].reg] = fn.constants[c].value;
        for (auto& b : fn.blocks)
            for (auto& i : b.code) {
                const auto left = i.a >= 0 ? fixed[i.a] : std::nullopt,
                           right = i.b >= 0 ? fixed[i.b] : std::nullopt;
                const bool compares = i.op >= Op::eq && i.op <= Op::ule;
                const bool clamps =
                    i.op == Op::smin || i.op == Op::smax || i.op == Op::umin || i.op == Op::umax;
                if (compares || clamps) {
                    const auto number = left ? left : right;
                    if (number && (*number > 4 || *number < -4) && !(left && right)) {
                        found.watched.push_back({i.line, *number});
                        i.imm = static_cast<std::int64_t>(found.watched.size());
                    }
                } else if (i.op == Op::udiv || i.op == Op::sdiv || i.op == Op::urem ||
                           i.op == Op::srem) {
                    if (right && *right > 1) moduli.insert(*right);
                } else if ((i.op == Op::lshr || i.op == Op::ashr) && right && *right > 0 &&
                           *right < 31) {
                    moduli.insert(std::int64_t{1} << *right);
                } else if (i.op == Op::bit_and) {
                    const auto number = left ? left : right;
                    if (number && *number > 0 && ((*number + 1) & *number) == 0)
                        moduli.insert(*number + 1);
                    if (number && *number < -1 && ((-*number) & (-*number - 1)) == 0)
                        moduli.insert(-*number);
                }
            }
    }
    found.moduli.assign(moduli.begin(), moduli.end());
    return found;
}

}  // namespace revisit::predict
