// Hit rates of caches from a reuse-distance histogram.
//
// Fully associative LRU: an access hits iff fewer distinct blocks came between than the cache holds.
// Set-associative (SDCM): a block at reuse distance D is still there iff fewer than A of the D blocks
// in between fell into its set. Each falls there with probability A/B, so the number that did is
// Binomial(D, A/B) and the hit probability its cumulative sum up to A - 1. Distances reach 10^9, where
// powers and factorials leave the range of doubles; the terms are carried in a unit whose logarithm is
// kept, one division each (15 times less than a logarithm and an exponential for each).
//
// The model takes sets as drawn at random: systematic conflicts of power-of-two strides are not in it.
// Exact profiles of programs therefore carry this machine's caches simulated (engines/cache_bank.h),
// and that count is taken where the cache is one of these.
//
// Source. Smith and Hill's binomial set model, as restated by Razzak et al.
#include "revisit/cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "models/hierarchy_model.h"
#include "revisit/units.h"

namespace revisit {
namespace {

// Over a bin wider than this the hit probability is averaged over evenly spaced distances.
constexpr std::uint64_t kPointsPerBin = 64;

constexpr double kLarge = 0x1p300;

double set_associative_hit(double distance, double ways, double blocks) {
    if (distance < ways) return 1;
    double share = ways / blocks;  // of the blocks in between, what falls into one set
    double odds = share / (1 - share);
    double log_unit = distance * std::log1p(-share);  // of what term and sum are counted in
    double term = 1, sum = 0;
    for (double a = 0; a < ways; ++a) {
        sum += term;
        term *= (distance - a) / (a + 1) * odds;
        if (term > kLarge) {
            term /= kLarge;
            sum /= kLarge;
            log_unit += std::log(kLarge);
        }
    }
    return std::min(1.0, sum * std::exp(log_unit));
}

}  // namespace

double hit_probability(const CacheSpec& cache, double distance) {
    auto blocks = static_cast<double>(cache.blocks()),
         ways = static_cast<double>(cache.associativity());
    if (ways >= blocks) return distance < blocks ? 1 : 0;
    return set_associative_hit(distance, ways, blocks);
}

double hit_probability(const CacheSpec& cache, const Bin& bin) {
    if (bin.high <= bin.low) return hit_probability(cache, static_cast<double>(bin.low));
    double low = static_cast<double>(bin.low), width = static_cast<double>(bin.high - bin.low);
    if (cache.associativity() >= cache.blocks())
        return std::clamp((static_cast<double>(cache.blocks()) - low) / width, 0.0, 1.0);
    std::uint64_t points = std::min(bin.high - bin.low, kPointsPerBin);
    double sum = 0;
    for (std::uint64_t i = 0; i < points; ++i) {
        double at = low + (static_cast<double>(i) + 0.5) * width / static_cast<double>(points) - 0.5;
        sum += hit_probability(cache, at);
    }
    return sum / static_cast<double>(points);
}

static const Histogram& histogram_for(const Profile& profile, const CacheSpec& cache) {
    if (profile.granularity != cache.line) {
        for (const GranularityProfile& one : profile.granularities)
            if (one.granularity == cache.line) return one.reuse;
    } else if (is_shared_level(profile, cache))
        return *profile.shared;
    return profile.reuse;
}

CachePrediction predict_cache(const Profile& profile, const CacheSpec& cache) {
    CachePrediction out;
    out.cache = cache;
    for (const SimulatedCache& one : profile.caches)
        if (one.spec.same_geometry(cache) && one.accesses > 0) {
            out.miss_rate = one.misses / one.accesses;
            out.hit_rate = 1 - out.miss_rate;
            out.simulated = true;
            out.error = one.error / one.accesses;
            out.model_miss_rate = predict_by_model(profile, cache).miss_rate;
            return out;
        }
    return predict_by_model(profile, cache);
}

CachePrediction predict_by_model(const Profile& profile, const CacheSpec& cache) {
    CachePrediction out;
    out.cache = cache;
    const Histogram& reuse = histogram_for(profile, cache);
    double total = reuse.total();
    if (total <= 0) return out;
    double hits = 0, variance = 0;
    for (const Bin& bin : reuse.bins) {
        double probability = hit_probability(cache, bin);
        hits += bin.count * probability;
        variance += bin.error * probability * bin.error * probability;
    }
    out.hit_rate = hits / total;
    out.miss_rate = 1 - out.hit_rate;
    double beyond = reuse.beyond_error(static_cast<double>(cache.blocks()));
    out.error = (beyond > 0 ? beyond : std::sqrt(variance)) / total;
    return out;
}

}  // namespace revisit
