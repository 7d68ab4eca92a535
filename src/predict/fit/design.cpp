// Which small sizes to run.
//
// Parameters that are equal at the target are tied: the answer is wanted on that diagonal only, and one
// axis less is many samples less. Axes keep the order the target has (which of two bounds is larger can
// decide which formula holds) and, where the formulas are periodic, its residues. Parameters that are
// small at the target are not varied at all: the samples then have them as they are.
#include "predict/fit/design.h"

#include <algorithm>
#include <numeric>
#include <random>
#include <set>

#include "predict/fit/fixed_numbers.h"

namespace revisit::predict {

Parameters Design::at(const std::vector<std::int64_t>& size) const {
    Parameters p = fixed;
    for (std::size_t i = 0; i < axes.size(); ++i)
        for (const auto& [name, offset] : axes[i].names) p[name] = size[i] + offset;
    return p;
}

std::vector<std::int64_t> Design::whole(std::vector<std::int64_t> size) const {
    if (parted.empty()) return size;
    auto p = at(size);
    for (const Parted& s : parted) p[s.name] = p.at(s.count()) * p.at(s.tile) + p.at(s.rest());
    for (std::size_t i = 0; i < axes.size(); ++i)
        if (axes[i].kind == Axis::Kind::made)
            size[i] = p.at(axes[i].names.front().first) - axes[i].names.front().second;
    return size;
}

namespace {

std::int64_t with_residue(std::int64_t value, std::int64_t like, std::int64_t modulus) {
    const auto r = ((like % modulus) + modulus) % modulus;
    return (value + modulus - 1) / modulus * modulus + r;
}

}  // namespace

std::vector<std::int64_t> Design::held_out(double factor) const {
    std::vector<std::int64_t> size;
    for (std::size_t i = 0; i < axes.size(); ++i) {
        const auto m = axes[i].modulus;
        std::int64_t largest = 0;
        for (const auto& s : samples) largest = std::max(largest, s[i]);
        // Odd steps from axis to axis, so that no two sizes stand in a simple ratio.
        size.push_back(with_residue(static_cast<std::int64_t>(static_cast<double>(largest) * factor) +
                                        static_cast<std::int64_t>(3 * i) * m,
                                    axes[i].target, m));
        // Samples need not have the target's order where moduli differ; what is checked has.
        while (after(i) && size[i] <= size[i - 1] + apart(i)) size[i] += m;
    }
    return whole(size);
}

std::vector<std::int64_t> Design::proportional(double scale) const {
    std::vector<std::int64_t> size;
    for (std::size_t i = 0; i < axes.size(); ++i) {
        const auto m = axes[i].modulus;
        std::int64_t largest = 0;
        for (const auto& s : samples) largest = std::max(largest, s[i]);
        const auto wanted = static_cast<std::int64_t>(static_cast<double>(axes[i].target) * scale);
        size.push_back(with_residue(std::max(largest + 1, wanted - wanted % m), axes[i].target, m));
        while (after(i) && size[i] <= size[i - 1] + apart(i)) size[i] += m;
    }
    return whole(size);
}

std::vector<std::int64_t> Design::reduced(double factor) const {
    std::vector<std::int64_t> size;
    for (const Axis& a : axes) {
        const auto wanted = static_cast<std::int64_t>(static_cast<double>(a.target) * factor);
        const auto r = a.target % a.modulus;
        // Rounded down to the residue, so that a factor of 1 gives the target.
        const auto rounds = (wanted - r) / a.modulus;
        size.push_back(std::max<std::int64_t>(std::max<std::int64_t>(rounds, 1) * a.modulus + r,
                                              std::min<std::int64_t>(a.target, 4)));
    }
    return size;
}

namespace {

// How tiles are sampled: three to seven of them, each of four to nine iterations. Order means nothing
// between how many there are and how large they are.
constexpr std::int64_t kFewTiles = 5, kLeastTiles = 3, kTileSpread = 5, kSmallRest = 3;

// Sizes that are made of tiles, by their parts.
Parameters parts_of(const Parameters& given, const DesignOptions& options,
                    std::map<std::string, Axis::Kind>& kinds) {
    Parameters target = given;
    for (const Parted& s : options.parted) {
        const auto value = given.at(s.name), tile = given.at(s.tile);
        kinds[s.name] = Axis::Kind::made;
        // What is nearly a tile goes with it.
        for (const auto& [name, near] : given)
            if (is_number(name) && near >= tile - 4 && near <= tile + 4)
                kinds.try_emplace(name, Axis::Kind::within);
        target[s.count()] = value / tile;
        target[s.rest()] = value % tile;
        kinds[s.count()] = Axis::Kind::count;
        kinds[s.rest()] = Axis::Kind::within;
        kinds.try_emplace(s.tile, Axis::Kind::within);
    }
    return target;
}

}  // namespace

Design plan_samples(const Parameters& given, const DesignOptions& options) {
    Design d;
    d.parted = options.parted;
    std::map<std::string, Axis::Kind> kinds;
    const auto target = parts_of(given, options, kinds);
    std::int64_t small_rest = 0;
    for (const auto& [name, value] : target) {
        const auto known = kinds.find(name);
        const auto kind = known == kinds.end() ? Axis::Kind::size : known->second;
        const auto fixed_below = kind == Axis::Kind::count    ? kFewTiles
                                 : kind == Axis::Kind::within ? kSmallRest + 1
                                                              : options.fixed_below;
        if (value < fixed_below || options.fixed.contains(name)) {
            if (kind == Axis::Kind::within) small_rest = std::max(small_rest, value);
            d.fixed[name] = value;
            continue;
        }
        auto near = std::find_if(d.axes.begin(), d.axes.end(), [&](const Axis& a) {
            const auto apart = value - a.target;
            return options.tie && a.kind == kind && apart >= -4 && apart <= 4 &&
                   !options.untied.contains(name) && !options.untied.contains(a.names.front().first);
        });
        if (near == d.axes.end()) {
            d.axes.push_back({{{name, 0}}, value});
            d.axes.back().kind = kind;
            near = d.axes.end() - 1;
        } else {
            near->names.emplace_back(name, value - near->target);
        }
        const auto modulus = options.moduli.find(name);
        near->modulus = std::lcm(near->modulus,
                                 modulus == options.moduli.end() ? options.modulus : modulus->second);
    }
    // A little more than the smallest for cases to show; residues of a large modulus need room.
    for (Axis& a : d.axes)
        a.smallest = a.modulus <= 3 ? options.smallest - (a.modulus > 1) : options.rounds * a.modulus;
    for (Axis& a : d.axes) {
        if (a.kind == Axis::Kind::count) a.smallest = kLeastTiles;
        // Rests that are a little less than a tile vary with it.
        std::int64_t less = 0;
        for (const auto& [name, offset] : a.names) less = std::max(less, -offset);
        if (a.kind == Axis::Kind::within) a.smallest = 4 + less;
    }
    std::stable_sort(d.axes.begin(), d.axes.end(), [](const Axis& a, const Axis& b) {
        return std::pair(a.kind, a.target) < std::pair(b.kind, b.target);
    });
    for (const Axis& a : d.axes) d.target.push_back(a.target);
    const auto n = d.axes.size();
    if (n == 0) return d;
    std::set<std::vector<std::int64_t>> seen;
    const auto add = [&](const std::vector<std::int64_t>& steps) {
        std::vector<std::int64_t> size;
        for (std::size_t i = 0; i < n; ++i) {
            const Axis& a = d.axes[i];
            auto least = a.smallest;
            if (options.close && i > 0) least = std::max(a.modulus, size[i - 1] + d.apart(i) + 1);
            // The part of the ratio that order and gap do not give already.
            if (options.proportional && i > 0)
                least =
                    std::max(least, static_cast<std::int64_t>(
                                        static_cast<double>(size[i - 1]) *
                                        std::min(3.0, static_cast<double>(a.target) /
                                                          static_cast<double>(d.axes[i - 1].target))) -
                                        steps[i - 1] * a.modulus);
            size.push_back(with_residue(least + steps[i] * a.modulus, a.target, a.modulus));
        }
        if (seen.insert(size).second) d.samples.push_back(size);
    };
    if (!d.parted.empty()) {
        std::mt19937_64 random(options.seed);
        const std::size_t wanted = 8 + 8 * n;
        const auto spread = options.spread ? options.spread : kTileSpread;
        const auto rests = std::count_if(d.axes.begin(), d.axes.end(),
                                         [](const Axis& a) { return a.kind == Axis::Kind::within; }) -
                           1;
        const auto plan = [&](auto&& up_to) {
            std::vector<std::int64_t> size;
            // The last axis is the tile; rests, in their order, find room in it.
            const auto tile =
                std::max({d.axes.back().smallest, small_rest + 3, 2 * rests + 3}) + up_to(spread);
            std::vector<std::int64_t> within;
            for (std::int64_t k = 0; k < rests; ++k)
                within.push_back(2 + up_to(tile - 4 - 2 * (rests - 1)));
            std::sort(within.begin(), within.end());
            for (std::size_t i = 0, k = 0; i < n; ++i) {
                const Axis& a = d.axes[i];
                if (a.kind == Axis::Kind::made) {
                    size.push_back(0);
                    continue;
                }
                if (a.kind == Axis::Kind::within) {
                    size.push_back(i + 1 == n ? tile : within[k] + 2 * static_cast<std::int64_t>(k));
                    ++k;
                    continue;
                }
                auto least = a.smallest;
                if (d.after(i)) least = std::max(least, size[i - 1] + d.apart(i) + 1);
                size.push_back(with_residue(least + up_to(spread) * a.modulus, a.target, a.modulus));
            }
            size = d.whole(size);
            if (seen.insert(size).second) d.samples.push_back(size);
        };
        for (int attempts = 0; d.samples.size() < wanted && attempts < 10000; ++attempts)
            plan([&](std::int64_t most) {
                return static_cast<std::int64_t>(
                    random() % static_cast<std::uint64_t>(std::max<std::int64_t>(1, most)));
            });
        plan([](std::int64_t most) { return most - 1; });
        plan([](std::int64_t most) { return most; });
    } else if (n == 1) {
        const auto count = options.spread ? options.spread : 14;
        for (std::int64_t s = 0; s < count; ++s) add({s});
    } else {
        std::mt19937_64 random(options.seed);
        // Axes stay at least this many steps apart, as they are at the target: sizes that are nearly
        // equal are a case of their own.
        const std::int64_t gap = n <= 3 ? 3 : 2;
        const std::int64_t spread = options.spread ? options.spread : 7 + static_cast<std::int64_t>(n);
        const std::size_t wanted = 4 + 8 * n;
        for (int attempts = 0; d.samples.size() < wanted && attempts < 10000; ++attempts) {
            std::vector<std::int64_t> steps;
            for (std::size_t i = 0; i < n; ++i)
                steps.push_back(
                    static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(spread)));
            if (!options.close) {
                std::sort(steps.begin(), steps.end());
                for (std::size_t i = 0; i < n; ++i) steps[i] += gap * static_cast<std::int64_t>(i);
            }
            add(steps);
        }
        for (const std::int64_t more : {0, 1}) {
            std::vector<std::int64_t> top;
            for (std::size_t i = 0; i < n; ++i)
                top.push_back(spread - 1 + more +
                              (options.close ? 0 : gap * static_cast<std::int64_t>(i)) +
                              static_cast<std::int64_t>(i == 0 && more));
            add(top);
        }
    }
    for (std::size_t k = d.samples.size() - 2; k < d.samples.size(); ++k)
        d.anchors.push_back(static_cast<std::int32_t>(k));
    return d;
}

}  // namespace revisit::predict
