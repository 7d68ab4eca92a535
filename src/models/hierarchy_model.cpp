#include "models/hierarchy_model.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "revisit/cache.h"

namespace revisit {
namespace {

// Reuses that miss with so many ways; a part of a way holds a line that part of the time.
double deeper(const SetDepths& depths, double ways) {
    double out = 0;
    for (std::size_t depth = 0; depth < depths.counts.size(); ++depth)
        out += depths.counts[depth] * std::clamp(static_cast<double>(depth) + 1 - ways, 0.0, 1.0);
    return out;
}

// Where the filter's sets are deep enough: misses of a shared cache behind it, of those that are
// reuses.
std::optional<double> shared_misses(const PrivateFilter& filter, const CacheSpec& cache) {
    const SetDepths* best = nullptr;  // as many sets as the cache has, or fewer with more ways
    for (const SetDepths& one : filter.shared)
        if (best == nullptr || one.sets <= cache.sets()) best = &one;
    if (best == nullptr) return std::nullopt;
    const double ways = static_cast<double>(cache.blocks()) / static_cast<double>(best->sets);
    if (ways > static_cast<double>(best->counts.size() - 1)) return std::nullopt;
    return deeper(*best, ways);
}

// Behind private caches between two sizes: between the two, by how much of the misses of the smaller
// one is left.
std::optional<double> shared_misses(const Profile& profile, const CacheSpec& own, double own_misses,
                                    const CacheSpec& cache) {
    const PrivateFilter *smaller = nullptr, *larger = nullptr;
    for (const PrivateFilter& one : profile.filters) {
        if (one.own.sets == own.sets() && one.ways == own.associativity())
            return shared_misses(one, cache);
        if (one.blocks() <= own.blocks()) smaller = &one;
        if (one.blocks() >= own.blocks() && larger == nullptr) larger = &one;
    }
    if (smaller == nullptr || larger == nullptr) return std::nullopt;
    const auto behind_smaller = shared_misses(*smaller, cache),
               behind_larger = shared_misses(*larger, cache);
    if (!behind_smaller || !behind_larger) return std::nullopt;
    const double most = deeper(smaller->own, static_cast<double>(smaller->ways)),
                 least = deeper(larger->own, static_cast<double>(larger->ways));
    const double share = most > least ? std::clamp((most - own_misses) / (most - least), 0.0, 1.0) : 0;
    return std::lerp(*behind_smaller, *behind_larger, share);
}

// Of a private cache, reuses that miss: counted in sets like its own, or by the model.
double private_misses(const Profile& profile, const CacheSpec& cache) {
    for (const PrivateFilter& one : profile.filters)
        if (one.own.sets == cache.sets() && cache.associativity() < one.own.counts.size())
            return deeper(one.own, static_cast<double>(cache.associativity()));
    return predict_cache(profile, cache).miss_rate * profile.reuse.total() - profile.reuse.cold -
           profile.reuse.invalidated;
}

}  // namespace

bool has_shared_name(const CacheSpec& cache) {
    return cache.name == "L3" || cache.name == "L4" || cache.name == "LLC";
}

bool is_shared_level(const Profile& profile, const CacheSpec& cache) {
    return profile.shared && has_shared_name(cache);
}

Result<std::vector<double>> predict_hierarchy(const Profile& profile,
                                              const std::vector<CacheSpec>& levels) {
    if (!profile.shared)
        return fail("a hierarchy needs private and shared histograms: analyze with both models");
    const double total = profile.reuse.total();
    std::vector<double> out(levels.size());
    if (total <= 0) return out;
    const double never = profile.reuse.cold + profile.reuse.invalidated;  // hits in a private cache
    for (std::size_t i = 0; i < levels.size(); ++i) {
        std::optional<double> misses;
        if (levels[i].line == profile.granularity && i + 1 < levels.size())
            misses = never + private_misses(profile, levels[i]);
        else if (levels[i].line == profile.granularity && i > 0)
            if (auto reuses =
                    shared_misses(profile, levels[i - 1], out[i - 1] * total - never, levels[i]))
                misses = profile.shared->cold + *reuses;
        if (!misses) {
            Profile shared;
            shared.granularity = profile.granularity;
            shared.reuse = *profile.shared;
            misses =
                total * predict_cache(i + 1 < levels.size() ? profile : shared, levels[i]).miss_rate;
        }
        out[i] = *misses / total;
    }
    // What misses a level has missed all above it.
    for (std::size_t i = 1; i < out.size(); ++i) out[i] = std::min(out[i], out[i - 1]);
    return out;
}

CachePrediction predict_level(const Profile& profile, const CacheSpec& cache,
                              const std::vector<CacheSpec>& caches) {
    CachePrediction out = predict_cache(profile, cache);
    if (profile.filters.empty() || !is_shared_level(profile, cache)) return out;
    const CacheSpec* before = nullptr;
    for (const CacheSpec& one : caches)
        if (one.line == cache.line && !is_shared_level(profile, one) &&
            (before == nullptr || one.bytes > before->bytes))
            before = &one;
    if (before == nullptr) return out;
    if (const auto rates = predict_hierarchy(profile, {*before, cache})) {
        out.miss_rate = rates->back();
        out.hit_rate = 1 - out.miss_rate;
    }
    return out;
}

}  // namespace revisit
