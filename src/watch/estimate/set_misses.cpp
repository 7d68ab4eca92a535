#include "watch/estimate/set_misses.h"

#include <algorithm>
#include <cmath>

#include "models/hit_table.h"
#include "watch/estimate/share_errors.h"

namespace revisit::watch {
namespace {

constexpr double kWorthSaying = 0.005;  // of the accesses
constexpr double kGoesOn = 3;           // times the lines that were seen
constexpr double kSurer = 0.5;          // of the model's error
constexpr double kStep = 0.5;           // lines more or less that sets have which fill evenly

// P(miss) of an open use at a reuse distance.
double missed(const CacheSpec& cache, const WindowSets& window, std::size_t index, double distance) {
    const auto ways = static_cast<double>(cache.associativity());
    const double seen = std::min(static_cast<double>(window.lines_after), distance);
    double in_set = window.caches[index].after, rest = distance - seen;
    if (window.caches[index].filling == SetFilling::even)
        return std::clamp(in_set + rest / static_cast<double>(cache.sets()) - ways + kStep, 0.0, 1.0);
    if (window.caches[index].filling == SetFilling::crowded && seen > 0) {
        const double goes_on = std::min(rest, kGoesOn * seen);
        in_set += in_set / seen * goes_on;
        rest -= goes_on;
    }
    if (in_set >= ways) return 1;
    // As many sets, and only the ways that are left.
    const auto left = static_cast<std::uint64_t>(std::ceil(ways - in_set));
    return 1 - hit_probability({left * cache.sets() * cache.line, left, cache.line, {}}, rest);
}

}  // namespace

SetMisses::SetMisses(const std::vector<CacheSpec>& caches) {
    for (const CacheSpec& one : caches)
        if (caches_.size() < WindowSets::kMostCaches) caches_.emplace_back().spec = one;
}

void SetMisses::add(const SeenThread& seen, double near_scale) {
    for (std::size_t i = 0; i < caches_.size(); i++) add(caches_[i], i, seen, near_scale);
}

void SetMisses::add(OfCache& to, std::size_t index, const SeenThread& seen, double near_scale) {
    auto by_model = [&](std::uint64_t distance) {
        while (to.random_misses.size() <= distance)
            to.random_misses.push_back(
                1 - hit_probability(to.spec, static_cast<double>(to.random_misses.size())));
        return to.random_misses[distance];
    };
    std::vector<SamplePart> parts = sample_parts(seen);
    double hits = 0, misses = 0, systematic = 0, moved = 0;
    auto put = [&](auto& part, double weight, double chance) {
        part.emplace_back(0, weight * (1 - chance));
        part.emplace_back(1, weight * chance);
        hits += weight * (1 - chance);
        misses += weight * chance;
    };
    for (const SeenWindow& window : seen.windows) {
        double uses = 0, random = 0;
        for (auto [distance, count] : window.reuse) {
            uses += count;
            random += count * by_model(distance);
        }
        if (uses == 0) continue;
        const double missed = seen.first[window.sample].sets.caches[index].missed;
        put(parts[window.sample].near, window.weight * uses, std::min(1.0, missed / uses));
        to.by_model += window.weight * random;
    }
    const double factor = distance_factor(seen);
    for (const Seen& one : seen.pairs) {
        const WindowSets& sets = one.sample->sets;
        if (!one.far) {
            const double more = (sets.caches[index].drawn_missed ? 1 : 0) -
                                by_model(static_cast<std::uint64_t>(one.reuse[0]));
            to.more[one.reuse_label()] += one.weight * near_scale * more;
            if (seen.windows.empty()) return;  // pairs that stand for all say nothing of windows
            continue;
        }
        auto& part = parts[static_cast<std::size_t>(one.sample - seen.first)].far;
        if (one.cold()) {
            put(part, one.weight, 1);
            to.by_model += one.weight;
            if (one.unresolved())
                moved += 2 * one.weight * (1 - missed(to.spec, sets, index, one.uncorrected));
            continue;
        }
        const double share = 1 / static_cast<double>(one.reuse.size());
        double chance = 0, random = 0, apart = 0;
        for (double distance : one.reuse) {
            chance += share * missed(to.spec, sets, index, distance);
            random += share * (1 - hit_probability(to.spec, distance));
            apart += share * (missed(to.spec, sets, index, distance * factor) -
                              missed(to.spec, sets, index, distance / factor));
        }
        put(part, one.weight, chance);
        to.by_model += one.weight * random;
        to.more[one.reuse_label()] += one.weight * (chance - random);
        systematic += one.weight * apart / 2;
        if (!one.exact)
            moved +=
                one.weight * std::abs(missed(to.spec, sets, index, one.uncorrected) -
                                      missed(to.spec, sets, index, one.reuse[one.reuse.size() / 2]));
    }
    if (hits + misses <= 0) return;
    to.hits += hits;
    to.misses += misses;
    to.squares +=
        sampling_variance(parts, {hits, misses}) + systematic * systematic + moved * moved / 4;
}

void SetMisses::put_into(Profile& profile, double divided) const {
    for (const OfCache& one : caches_) {
        const double more = (one.misses - one.by_model) / divided,
                     error = std::sqrt(one.squares) / divided;
        const CachePrediction model = predict_by_model(profile, one.spec);
        const bool differs = std::abs(more) > std::max(kWorthSaying * profile.accesses, error),
                   is_surer = error < kSurer * model.error * profile.accesses;
        if (!differs && !is_surer) continue;
        SimulatedCache cache{one.spec, profile.accesses, 0, error};
        cache.misses = std::clamp(model.miss_rate * profile.accesses + more, 0.0, profile.accesses);
        profile.caches.push_back(std::move(cache));
        HitTable table(one.spec);
        for (Site& site : profile.sites) {
            auto found = one.more.find(site.id);
            const double here = found == one.more.end() ? 0 : found->second / divided;
            site.simulated.push_back(std::clamp(table.misses(site.reuse) + here, 0.0, site.accesses));
        }
    }
}

}  // namespace revisit::watch
