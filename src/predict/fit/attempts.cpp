// Which families of sizes to sample, in which order.
//
// Counts are polynomials only on sizes that keep the target's residues by every period of the program
// (steps, moduli, elements per block) and the order of its sizes; with tiles that stay as they are,
// the other sizes must be made of whole tiles and a rest. Cheap families come first.
#include "predict/fit/attempts.h"

#include <algorithm>
#include <numeric>
#include <optional>

namespace revisit::predict {
namespace {

constexpr std::int64_t kLargestTile = 128;

// Loops that step by large numbers: sizes of which they are a part keep their residues.
std::optional<Attempt> tiled(const Session& session, const FixedPeriods& fixed, std::int64_t base) {
    Attempt a{base};
    for (const auto step : fixed.steps) {
        if (step < kLargeNumber || step > kLargestTile) continue;
        bool sized = false, parted = false;
        for (const auto& [name, value] : session.sizes) {
            if (value == step) sized = a.pinned.names.insert(name).second;
            parted |= value >= 2 * step;
        }
        if (sized && !parted) return std::nullopt;
        a.modulus = std::lcm(a.modulus, step);
        a.pinned.tiles.insert(step);
    }
    if (a.pinned.tiles.empty() || a.modulus > kLargestTile) return std::nullopt;
    a.modulus = std::lcm(a.modulus, session.request.granularity > 1 ? block_period(session) : 1);
    a.pinned.others = base;
    return a;
}

}  // namespace

std::int64_t block_period(const Session& session) {
    std::int64_t element = 64;
    for (const auto& f : session.target.functions)
        for (const auto& b : f.blocks)
            for (const auto& i : b.code)
                if ((i.op == Op::load || i.op == Op::store) && b.loop >= 0 && i.b < 0)
                    element = std::min<std::int64_t>(
                        element,
                        std::max<std::uint32_t>(1, f.references[static_cast<std::size_t>(i.imm)].size));
    return std::max<std::int64_t>(1, static_cast<std::int64_t>(session.request.granularity) / element);
}

std::vector<Attempt> attempts(const Session& session) {
    const auto fixed = fixed_periods(session.target, session.target);
    std::int64_t base = 1;
    for (const auto m : fixed.moduli)
        if (m <= 64 && std::lcm(base, m) <= 64) base = std::lcm(base, m);
    if (auto tiles = tiled(session, fixed, base)) {
        std::vector<Attempt> all{*tiles};
        tiles->parted = true;
        if (session.request.granularity <= 1 && base == 1) all.push_back(*tiles);
        return all;
    }
    for (const auto m : fixed.steps)
        if (m <= 16 && std::lcm(base, m) <= 64) base = std::lcm(base, m);
    if (session.request.granularity > 1) return {{std::lcm(block_period(session), base), false}};
    std::vector<Attempt> all{{base, false}, {base, true}};
    if (base == 1) all.insert(all.end(), {{2, false}, {2, true}});
    if (const auto shift = longest_small_shift(session.target); shift > 3)
        all.push_back({base, false, shift});
    return all;
}

}  // namespace revisit::predict
