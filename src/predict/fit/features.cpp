// What distinguishes iterations.
//
// A reference behaves in its own way in the first and last iterations of its loops, on diagonals, and,
// by blocks or under remainders, in each residue class. Plans name how much of that is looked at.
#include "predict/fit/features.h"

#include <algorithm>

namespace revisit::predict {
namespace {

int floor_of(int value, int unit) {
    return value >= 0 ? value / unit : -((unit - 1 - value) / unit);
}

}  // namespace

std::vector<Plan> plans_for(std::size_t loops, std::int64_t period, std::int64_t modulus,
                            std::int64_t shift) {
    std::vector<Plan> all{{}};
    if (period <= 1) {
        for (const int c : {1, 2, 3}) all.push_back({c, 0, 0, false, false});
        if (loops > 1)
            for (const int c : {1, 2, 3}) all.push_back({c, c, 0, false, false});
        if (loops > 1) {
            all.push_back({2, 2, 0, false, true});
            all.push_back({3, 3, 0, false, true});
        }
        if (modulus > 1) {
            const int m = static_cast<int>(std::min<std::int64_t>(modulus, 64));
            all.push_back({2, 0, m, false, false});
            if (loops > 1) {
                all.push_back({2, 0, m, false, true});
                all.push_back({2, 2, m, false, false});
                all.push_back({3, 3, m, false, true});
            }
        }
        // A band, the middle of a trapezium: edges that lie where a variable meets a size.
        all.push_back({2, 2, 0, false, false, false, false, true});
        if (shift > 3) {
            const int c = static_cast<int>(shift);
            all.push_back({c + 1, 0, 0, false, false});
            if (loops > 1) all.push_back({c + 1, c + 1, 0, false, false, false, false, true});
        }
        return all;
    }
    const int p = static_cast<int>(std::min<std::int64_t>(period, 16));
    all.push_back({1, 0, 0, true, false});
    all.push_back({2, 0, 0, true, false});
    all.push_back({p + 1, 0, 0, true, false});
    all.push_back({2, 0, p, true, false, true});
    // In each residue class distances are polynomials of whole blocks: so are the edges.
    for (const int c : {1, 2}) {
        all.push_back({c, 0, p, true, false, true, true});
        if (loops > 1) all.push_back({c, c, p, true, false, true, true});
    }
    all.push_back({2, 0, p, true, false});
    all.push_back({p + 1, 0, p, true, false});
    if (loops > 1) {
        all.push_back({2, 2, p, true, false});
        all.push_back({p + 1, p + 1, p, true, false});
    }
    all.push_back({2 * p + 1, 0, p, true, false});
    return all;
}

Features::Features(const Stream& stream, const RowTable& table, const LoopBounds& bounds,
                   const CellOptions& options)
    : s_(stream),
      table_(table),
      bounds_(bounds),
      options_(options),
      sizes_(table.sizes()),
      loops_(stream.loops) {
    least_first_.assign(loops_, INT32_MAX);
    least_left_.assign(loops_, INT32_MAX);
    for (std::size_t i = 0; i < s_.points.count(); ++i)
        for (std::size_t l = 0; l < loops_; ++l) {
            least_first_[l] = std::min(least_first_[l], s_.points.at(i)[sizes_ + l]);
            least_left_[l] = std::min(least_left_[l], s_.left[i * loops_ + l]);
        }
}

std::vector<Feature> Features::of(const Plan& plan) const {
    std::vector<Feature> all;
    using K = Feature::Kind;
    if (plan.phase) all.push_back({K::phase, 0, 0, 0});
    for (std::size_t l = 0; l < loops_ && plan.clip; ++l) {
        const int unit = plan.blocks ? period_of(l) : 1;
        all.push_back({K::first, static_cast<std::uint8_t>(l), 0, plan.clip, unit});
        all.push_back({K::last, static_cast<std::uint8_t>(l), 0, plan.clip, unit});
    }
    if (plan.modulus)
        for (std::size_t l = 0; l < loops_; ++l)
            if (const int m = plan.own ? period_of(l) : plan.modulus; m > 1)
                all.push_back({K::residue, static_cast<std::uint8_t>(l), 0, m});
    for (std::size_t l = 0; l < loops_ && plan.wide; ++l)
        for (std::size_t v = 0; v < sizes_; ++v)
            for (const auto kind : {K::below, K::before})
                all.push_back(
                    {kind, static_cast<std::uint8_t>(l), static_cast<std::uint8_t>(v), plan.clip});
    for (std::size_t i = 0; i < loops_; ++i)
        for (std::size_t j = i + 1; j < loops_; ++j) {
            if (!plan.wide && !bounds_.related(i, j)) continue;
            if (plan.pair_clip)
                all.push_back({K::pair, static_cast<std::uint8_t>(i), static_cast<std::uint8_t>(j),
                               plan.pair_clip, plan.blocks ? std::max(period_of(i), period_of(j)) : 1});
            if (plan.doubled)
                all.push_back({K::doubled, static_cast<std::uint8_t>(i), static_cast<std::uint8_t>(j),
                               plan.clip + 1});
        }
    return all;
}

// Iterations of a loop after which all that it moves is again at the same place within a block.
int Features::period_of(std::size_t loop) const {
    const auto p = loop < options_.periods.size() && options_.periods[loop] > 0 ? options_.periods[loop]
                                                                                : options_.period;
    return static_cast<int>(std::min<std::int64_t>(p, 16));
}

// Hands `act` the feature as a function of the row, its kind looked at once.
template <class Act>
auto Features::with(const Feature& f, Act&& act) const {
    using K = Feature::Kind;
    const auto narrow = [](auto value) { return static_cast<std::int8_t>(value); };
    const auto size = [&, b = f.b](std::size_t row) { return s_.points.at(row)[b]; };
    const auto number = [&, a = sizes_ + f.a](std::size_t row) { return s_.points.at(row)[a]; };
    const auto of_loop = [&](const std::vector<std::int32_t>& all, std::size_t loop) {
        return [data = all.data() + loop, n = loops_](std::size_t row) { return data[row * n]; };
    };
    const auto left = of_loop(s_.left, f.a);
    const auto a = of_loop(s_.value, f.a), b = of_loop(s_.value, f.b);
    const auto clipped = [&, clip = f.clip](int value) {
        return narrow(std::clamp(value, -clip, clip));
    };
    // Divisions take longest, and most features are of single iterations.
    if (f.unit == 1 && f.kind == K::first)
        return act(
            [&](std::size_t row) { return narrow(std::min(number(row) - least_first_[f.a], f.clip)); });
    if (f.unit == 1 && f.kind == K::last)
        return act(
            [&](std::size_t row) { return narrow(std::min(left(row) - least_left_[f.a], f.clip)); });
    if (f.unit == 1 && f.kind == K::pair)
        return act([&](std::size_t row) { return clipped(a(row) - b(row)); });
    switch (f.kind) {
        case K::first:
            return act([&](std::size_t row) {
                return narrow(std::min((number(row) - least_first_[f.a]) / f.unit, f.clip));
            });
        case K::last:
            return act([&](std::size_t row) {
                return narrow(std::min((left(row) - least_left_[f.a]) / f.unit, f.clip));
            });
        case K::pair:
            return act([&](std::size_t row) {
                return clipped(floor_of(a(row), f.unit) - floor_of(b(row), f.unit));
            });
        case K::doubled:
            return act([&](std::size_t row) { return clipped(2 * b(row) - a(row)); });
        case K::residue:
            return act([&](std::size_t row) { return narrow(number(row) % f.clip); });
        case K::below:
            return act([&](std::size_t row) { return clipped(a(row) - size(row)); });
        case K::before:
            return act([&](std::size_t row) { return clipped(size(row) - left(row)); });
        case K::phase:
            break;
    }
    const auto unit = std::max<std::uint64_t>(16, table_.granularity());
    return act([&](std::size_t row) { return narrow(s_.phase[row] * 16 / unit); });
}

std::int8_t Features::value(const Feature& f, std::size_t row) const {
    return with(f, [&](const auto& at) { return at(row); });
}

std::vector<std::int8_t> Features::column(const Feature& f) const {
    std::vector<std::int8_t> all(s_.points.count());
    with(f, [&](const auto& at) {
        for (std::size_t row = 0; row < all.size(); ++row) all[row] = at(row);
    });
    return all;
}

std::string Features::name(const Feature& f, std::int8_t value) const {
    using K = Feature::Kind;
    const auto& names = table_.references()[s_.reference].loops;
    const auto name = [&](std::size_t l) {
        return names[l].empty() ? "t" + std::to_string(l) : names[l];
    };
    const auto per = f.unit > 1 ? "/" + std::to_string(f.unit) : "";
    switch (f.kind) {
        case K::first:
            return name(f.a) + per + (value < f.clip ? " = first" : " >= first") +
                   (value ? "+" + std::to_string(value) : "");
        case K::last:
            return name(f.a) + per + (value < f.clip ? " = last" : " <= last") +
                   (value ? "-" + std::to_string(value) : "");
        case K::pair:
            return name(f.a) + per + "-" + name(f.b) + per +
                   (value == f.clip    ? " >= "
                    : value == -f.clip ? " <= "
                                       : " = ") +
                   std::to_string(value);
        case K::doubled:
            return "2*" + name(f.b) + "-" + name(f.a) +
                   (value == f.clip    ? " >= "
                    : value == -f.clip ? " <= "
                                       : " = ") +
                   std::to_string(value);
        case K::residue:
            return name(f.a) + " mod " + std::to_string(f.clip) + " = " + std::to_string(value);
        case K::below:
        case K::before:
            return (f.kind == K::below ? name(f.a) + "-size " + std::to_string(f.b)
                                       : "size " + std::to_string(f.b) + "-" + name(f.a) + "'s rest") +
                   (value == f.clip    ? " >= "
                    : value == -f.clip ? " <= "
                                       : " = ") +
                   std::to_string(value);
        case K::phase:
            return "phase = " + std::to_string(value);
    }
    return {};
}

}  // namespace revisit::predict
