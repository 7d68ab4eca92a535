#include "models/hierarchy_model.h"

#include <algorithm>

#include "revisit/cache.h"

namespace revisit {

bool is_shared_level(const Profile& profile, const CacheSpec& cache) {
    return profile.shared && (cache.name == "L3" || cache.name == "L4" || cache.name == "LLC");
}

Result<std::vector<double>> predict_hierarchy(const Profile& profile,
                                              const std::vector<CacheSpec>& levels) {
    if (!profile.shared)
        return fail("a hierarchy needs private and shared histograms: use --model both");
    Profile shared;
    shared.granularity = profile.granularity;
    shared.reuse = *profile.shared;
    std::vector<double> out;
    for (std::size_t i = 0; i < levels.size(); ++i)
        out.push_back(predict_cache(i + 1 < levels.size() ? profile : shared, levels[i]).miss_rate);
    // What misses a level has missed all above it.
    for (std::size_t i = 1; i < out.size(); ++i) out[i] = std::min(out[i], out[i - 1]);
    return out;
}

}  // namespace revisit
