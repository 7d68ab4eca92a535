// What the trip counts of a stream's loops depend on, read off the rows: each trip count is fitted as
// an affine function of the sizes and the outer loops' variables; where that fails it may depend on
// all.
#include "predict/fit/loop_bounds.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace revisit::predict {

bool LoopBounds::related(std::size_t i, std::size_t j) const {
    if (bounded_by[j].contains(i)) return true;
    return std::any_of(depends[i].begin(), depends[i].end(),
                       [&](auto v) { return depends[j].contains(v); });
}

LoopBounds bounds_of(const Stream& stream, std::size_t sizes) {
    const auto loops = stream.loops;
    LoopBounds bounds;
    std::vector<std::uint8_t> order(sizes + loops);
    std::iota(order.begin(), order.end(), std::uint8_t{0});
    bounds.caps.assign(kMaxVariables, 0);
    auto& depends = bounds.depends;
    depends.assign(loops, {});
    bounds.bounded_by.assign(loops, {});
    for (std::size_t l = 0; l < loops; ++l) {
        std::map<std::vector<std::int32_t>, std::int64_t> trips;
        const std::int32_t* before = nullptr;
        std::int64_t* trip = nullptr;
        for (std::size_t row = 0; row < stream.points.count(); ++row) {
            const auto* x = stream.points.at(row);
            // Rows in sequence are often of one iteration of the outer loops.
            if (before == nullptr || !std::equal(x, x + sizes + l, before))
                trip = &trips[std::vector<std::int32_t>(x, x + sizes + l)];
            *trip = x[sizes + l] + stream.left[row * loops + l];
            before = x;
            if (trips.size() > 4000) break;
        }
        Points p;
        p.variables = sizes + loops;
        std::vector<std::uint32_t> which;
        for (const auto& [key, trip] : trips) {
            p.x.insert(p.x.end(), key.begin(), key.end());
            p.x.insert(p.x.end(), loops - l, 0);
            p.y.push_back(trip);
            which.push_back(static_cast<std::uint32_t>(which.size()));
        }
        const auto affine = fit_simplest(p, which, std::span(order).first(sizes + l), 1);
        for (std::size_t v = 0; v < sizes + l; ++v) {
            if (affine && !affine->uses(v)) continue;
            if (v < sizes) {
                depends[l].insert(v);
            } else {
                depends[l].insert(depends[v - sizes].begin(), depends[v - sizes].end());
                bounds.bounded_by[l].insert(v - sizes);
            }
        }
    }
    for (std::size_t v = 0; v < sizes; ++v)
        for (std::size_t l = 0; l < loops; ++l) bounds.caps[v] += depends[l].contains(v);
    for (std::size_t l = 0; l < loops; ++l) bounds.caps[sizes + l] = static_cast<int>(loops);
    return bounds;
}

}  // namespace revisit::predict
