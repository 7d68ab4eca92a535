// Where the misses come from.
//
// Problem. Of thousands of instructions a few cause most misses, and which few depends on the cache.
// Idea. Rank sites by their misses in a cache and take as many as cause a given share. Where no cache
// is given, take the size at which a tenth of the program's own reuses miss: that is past its small
// working sets and before its largest, whatever its size.
//
// How good is a ranking from a sample? Not whether it names the same sites, but whether working on its
// choice would be as useful: the reference's misses at the chosen sites, over those at the best.
//
// Source. Schuff, Kulkarni, Pai 2010, section 6; Wall 1991 for weight matching.
#include "report/low_locality.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "core/try.h"
#include "report/words.h"
#include "revisit/units.h"

namespace revisit {
namespace {

// The same place in another run or another recording. Numbers of sites are given out as code is met,
// and addresses change with every build, so the source line counts where it is known (with what it was
// inlined into), then module and offset. Ids are the last resort: they agree between analyses of one
// trace.
std::string key_of(const Site& site) {
    auto frame_key = [](const Frame& frame) {
        return fmt::format("{}@{}:{}", frame.function, frame.file, frame.line);
    };
    if (site.frame.line != 0) {
        std::string key = frame_key(site.frame);
        for (const Frame& outer : site.inlined) key += " < " + frame_key(outer);
        return key;
    }
    if (!site.module.empty()) return fmt::format("{}+{}", site.module, site.offset);
    return site.frame.function.empty() ? fmt::format("#{}", site.id) : frame_key(site.frame);
}

// Places by falling misses. A line with a load and a store is two sites, but one place to work on.
std::vector<std::pair<std::string, double>> places_of(const std::vector<SiteMisses>& ranking) {
    std::vector<std::pair<std::string, double>> out;
    std::map<std::string, std::size_t> index;
    for (const SiteMisses& site : ranking) {
        auto [at, is_new] = index.try_emplace(key_of(*site.site), out.size());
        if (is_new) out.emplace_back(at->first, 0);
        out[at->second].second += site.misses;
    }
    std::stable_sort(out.begin(), out.end(),
                     [](const auto& a, const auto& b) { return a.second > b.second; });
    return out;
}

SiteMisses misses_of(const Site& site, const CacheSpec& cache, bool cold_counts) {
    SiteMisses out;
    out.site = &site;
    for (const Bin& bin : site.reuse.bins)
        out.capacity += bin.count * (1 - hit_probability(cache, bin));
    out.cold = site.reuse.cold;
    out.coherence = site.reuse.invalidated;
    out.misses = out.capacity + out.coherence + (cold_counts ? out.cold : 0);
    return out;
}

std::vector<SiteMisses> ranking_of(const Profile& profile, const CacheSpec& cache, bool cold_counts) {
    std::vector<SiteMisses> out;
    for (const Site& site : profile.sites) out.push_back(misses_of(site, cache, cold_counts));
    std::stable_sort(out.begin(), out.end(),
                     [](const SiteMisses& a, const SiteMisses& b) { return a.misses > b.misses; });
    return out;
}

}  // namespace

CacheSpec cache_for_miss_share(const Profile& profile, double miss_share) {
    const double deepest_hit = std::floor(profile.reuse.percentile(1 - miss_share));
    CacheSpec cache;
    cache.line = std::max<std::uint64_t>(1, profile.granularity);
    cache.bytes = (static_cast<std::uint64_t>(deepest_hit) + 1) * cache.line;
    cache.name = fmt::format("the size that {} of the reuses miss", percent(miss_share));
    return cache;
}

Result<LowLocality> low_locality(const Profile& profile, const LowLocalityOptions& options) {
    if (profile.sites.empty()) return fail(ErrorCode::no_sites, "the profile has no sites");
    LowLocality out;
    out.cache = options.cache ? *options.cache : cache_for_miss_share(profile, options.miss_share);
    out.ranking = ranking_of(profile, out.cache, options.cold_counts);
    for (const SiteMisses& site : out.ranking) out.misses += site.misses;
    for (double coverage : options.coverages) {
        MissSelection selection{coverage, 0, 0};
        double sum = 0;
        // A whisker of slack, so that 75 % of four equal sites is three of them.
        while (selection.sites < out.ranking.size() && sum < (coverage - 1e-9) * out.misses)
            sum += out.ranking[selection.sites++].misses;
        selection.covered = out.misses > 0 ? sum / out.misses : 0;
        out.selections.push_back(selection);
    }
    return out;
}

Result<std::vector<WeightMatch>> weight_match(const Profile& reference, const Profile& estimate,
                                              const LowLocalityOptions& options) {
    auto truth = TRY(low_locality(reference, options));
    LowLocalityOptions same_cache = options;
    same_cache.cache = truth.cache;
    auto guess = TRY(low_locality(estimate, same_cache));
    const auto best_places = places_of(truth.ranking), chosen_places = places_of(guess.ranking);
    const std::map<std::string, double> weights(best_places.begin(), best_places.end());
    std::vector<WeightMatch> out;
    for (double coverage : options.coverages) {
        double best = 0, chosen = 0;
        std::size_t count = 0;
        for (; count < best_places.size() && best < (coverage - 1e-9) * truth.misses; ++count) {
            best += best_places[count].second;
            if (count >= chosen_places.size() || chosen_places[count].second <= 0) continue;
            auto found = weights.find(chosen_places[count].first);
            if (found != weights.end()) chosen += found->second;
        }
        out.push_back({coverage, count, best > 0 ? chosen / best : 1});
    }
    return out;
}

std::string low_locality_text(const LowLocality& found, std::uint64_t granularity) {
    std::string out =
        fmt::format("{} misses in {} ({})\n", format_count(found.misses), found.cache.name,
                    span_of(static_cast<double>(found.cache.bytes / granularity), granularity));
    std::size_t shown = 0;
    for (const MissSelection& selection : found.selections) {
        out += fmt::format("\n{} of the misses: {} of {} sites\n", percent(selection.coverage),
                           selection.sites, found.ranking.size());
        for (; shown < selection.sites; ++shown) {
            const SiteMisses& site = found.ranking[shown];
            auto kind = [&](double misses) { return percent(misses / std::max(site.misses, 1e-300)); };
            out +=
                fmt::format("  {:>9}  [capacity {}, cold {}, coherence {}]  {}\n",
                            percent(site.misses / std::max(found.misses, 1e-300)), kind(site.capacity),
                            kind(site.cold), kind(site.coherence), place_of(*site.site));
        }
    }
    return out;
}

std::string weight_match_text(const std::vector<WeightMatch>& matches) {
    std::string out = "Weight match: the new profile's choice of sites, by the old one's misses\n";
    for (const WeightMatch& match : matches)
        out += fmt::format("  {:>9} of the misses  {:>4} sites  {:>9}\n", percent(match.coverage),
                           match.sites, percent(match.match));
    return out;
}

}  // namespace revisit
