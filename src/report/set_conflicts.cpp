#include "report/set_conflicts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "models/hit_table.h"
#include "report/words.h"

namespace revisit {
namespace {

constexpr double kConflictsWorthSaying = 0.005;  // of the accesses
constexpr double kMostOfThem = 0.5;              // of the misses, or of the conflicts
constexpr std::size_t kNamedRanges = 4;

std::string sets_text(const SimulatedCache& cache) {
    if (cache.crowded.empty() || cache.crowded_misses < kMostOfThem * cache.misses) return {};
    std::string sets;
    for (std::size_t i = 0; i < std::min(kNamedRanges, cache.crowded.size()); ++i) {
        const auto [first, last] = cache.crowded[i];
        sets += fmt::format("{}{}", i == 0 ? "" : ", ", first);
        if (last != first) sets += fmt::format("–{}", last);
    }
    if (cache.crowded.size() > kNamedRanges)
        sets += fmt::format(" and {} more ranges", cache.crowded.size() - kNamedRanges);
    return fmt::format("{} of the misses are in sets {} of {}",
                       percent_whole(cache.crowded_misses / cache.misses), sets, cache.spec.sets());
}

// The data with most misses beyond those of random sets, where it has most of them.
std::string data_text(const Profile& profile, const SimulatedCache& cache, std::size_t index) {
    HitTable table(cache.spec);
    const Object* worst = nullptr;
    double most = 0, all = 0;
    for (const Object& object : profile.objects) {
        if (index >= object.simulated.size()) continue;
        const double conflicts = object.simulated[index] - table.misses(object.reuse);
        if (conflicts <= 0) continue;
        all += conflicts;
        if (conflicts <= most) continue;
        most = conflicts;
        worst = &object;
    }
    if (!worst || most < kMostOfThem * all) return {};
    return fmt::format("most by {} {}", worst->kind, worst->name);
}

}  // namespace

std::string conflicts_text(const Profile& profile, const CachePrediction& rates) {
    // Both have all accesses: what is left is how evenly the program uses the sets.
    const double conflicts = rates.miss_rate - rates.model_miss_rate;
    if (!rates.simulated || std::abs(conflicts) < kConflictsWorthSaying) return {};
    if (conflicts < 0) return "fewer conflicts than in random sets";
    std::string out = "more conflicts than in random sets";
    for (std::size_t i = 0; i < profile.caches.size(); ++i) {
        const SimulatedCache& cache = profile.caches[i];
        if (!cache.spec.same_geometry(rates.cache)) continue;
        const std::string sets = sets_text(cache), data = data_text(profile, cache, i);
        if (!sets.empty() || !data.empty())
            out += ": " + sets + (sets.empty() || data.empty() ? "" : ", ") + data;
        break;
    }
    return out;
}

}  // namespace revisit
