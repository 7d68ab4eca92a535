#include "report/findings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "models/hierarchy_model.h"
#include "models/hit_table.h"
#include "report/advice_rules.h"
#include "report/paths.h"
#include "report/processes.h"
#include "report/set_conflicts.h"
#include "report/words.h"
#include "revisit/units.h"

namespace revisit {
namespace {

constexpr double kPercentiles[] = {50, 70, 80, 90, 95, 99};
constexpr std::size_t kMostAdvice = 12;
constexpr std::size_t kMostSites = 10;
constexpr double kSmallestMainSet = 64;  // blocks: below it every first-level cache holds it

// Who used a site's data last, over the misses of the pairs that end at it.
struct LastUse {
    std::uint32_t site = 0;
    Histogram missed;
};

std::map<std::uint32_t, LastUse> last_uses(const Profile& profile, const std::vector<SiteFindings>& of,
                                           HitTable& table) {
    std::map<std::uint32_t, std::map<std::uint32_t, Histogram>> by_use;
    for (const SiteFindings& site : of) by_use[site.site->id];
    for (const Pair& pair : profile.pairs)
        if (auto found = by_use.find(pair.reuse); found != by_use.end())
            found->second[pair.use].merge(table.missed(pair.distances));
    std::map<std::uint32_t, LastUse> out;
    for (auto& [site, uses] : by_use) {
        double most = 0;
        for (auto& [use, missed] : uses)
            if (double misses = missed.total(); misses > most) {
                most = misses;
                out[site] = {use, missed};
            }
    }
    return out;
}

std::string reason_of(const Profile& profile, const SiteFindings& found, const LastUse* last,
                      const SiteIndex& sites) {
    const Site& site = *found.site;
    if (found.conflicts > found.misses / 2)
        return fmt::format("{} of its misses are conflicts: other lines of the same sets came between",
                           percent_whole(found.conflicts / found.misses));
    if (site.reuse.cold > found.misses / 2) return "mostly first touches";
    if (site.reuse.invalidated > found.misses / 2) return "mostly invalidated by other threads' writes";
    if (!last) return {};
    const Site* use = sites.find(last->site);
    return fmt::format("reused after {}, last used by {}",
                       span_of(std::round(last->missed.percentile(0.5)), profile.granularity),
                       last->site == site.id      ? "the same instruction"
                       : !use                     ? fmt::format("site {}", last->site)
                       : use->frame == site.frame ? "another instruction of this line"
                                                  : place_of(*use));
}

std::vector<SiteFindings> worst_sites(const Profile& profile, const CacheSpec& cache) {
    HitTable table(cache);
    const auto counted = std::ranges::find_if(
        profile.caches, [&](const SimulatedCache& one) { return one.spec.same_geometry(cache); });
    const auto index = static_cast<std::size_t>(counted - profile.caches.begin());
    std::vector<SiteFindings> found;
    double all = 0;
    for (const Site& site : profile.sites) {
        SiteFindings one;
        one.site = &site;
        one.misses = std::max(0.0, table.misses(site.reuse));
        if (index < site.simulated.size()) {
            one.conflicts = site.simulated[index] - one.misses;
            one.misses = site.simulated[index];
        }
        one.miss_rate = one.misses / std::max(1.0, site.reuse.total());
        one.few_samples = too_few_samples(profile, one.misses);
        one.line_use = line_use_text(site.line_use, profile);
        all += one.misses;
        if (one.misses > 0) found.push_back(std::move(one));
    }
    const std::size_t most = std::min(found.size(), kMostSites);
    // Where processor time was sampled, misses on a line that takes none of it matter little. A line
    // that no sample met may have had half of one.
    const double unseen = profile.sampled ? 0.5 / std::max(1.0, profile.sampled->samples) : 0;
    auto rank = [&](const SiteFindings& one) {
        return one.site->time_share ? one.misses * (*one.site->time_share + unseen) : one.misses;
    };
    std::stable_sort(found.begin(), found.end(),
                     [&](const SiteFindings& a, const SiteFindings& b) { return rank(a) > rank(b); });
    found.resize(most);
    const SiteIndex sites(profile);
    const std::map<std::uint32_t, LastUse> last = last_uses(profile, found, table);
    for (SiteFindings& one : found) {
        auto use = last.find(one.site->id);
        one.share = one.misses / all;
        one.reason = reason_of(profile, one, use == last.end() ? nullptr : &use->second, sites);
    }
    return found;
}

std::string lead_of(const Profile& profile, const Findings& findings) {
    if (findings.few_samples)
        return fmt::format(
            "{} samples: too few to state percentages. Run it again until there are enough (--repeat), "
            "or count every access (--method exact).",
            format_count(profile.sampled->samples));
    std::string out;
    bool known = true;
    if (!findings.levels.empty()) {
        const LevelFindings& level =
            findings.levels.size() > 1 ? findings.levels[1] : findings.levels[0];
        const CacheSpec& cache = level.rates.cache;
        const std::string name =
            fmt::format("{} ({})", cache.name, format_bytes(static_cast<double>(cache.bytes)));
        known = level.rates.error <= kMostStated;
        out = known ? fmt::format("{} of accesses miss {}.",
                                  percent_with_error(level.rates.miss_rate, level.rates.error), name)
                    : fmt::format("Misses of {} are {}.", name, not_known_text());
    }
    if (known && findings.main_working_set) {
        const Knee& knee = *findings.main_working_set;
        out +=
            fmt::format("{}Main working set: {} (a cache that holds it brings misses from {} to {}).",
                        out.empty() ? "" : " ", span_of(knee.blocks, profile.granularity),
                        percent_whole(knee.miss_before), percent_whole(knee.miss_after));
    }
    return out;
}

std::string method_text(const Profile& profile) {
    if (profile.method == "watch")
        return "watch: samples of the running program, their reuses caught by hardware watchpoints";
    if (profile.method == "predict") return "predict: derived from the program's source, nothing ran";
    if (profile.method == "time")
        return "time: every access's time distance, converted to reuse distances by a model";
    if (profile.sampled) return profile.method + ": a random sample of the accesses";
    return profile.method + ": every access counted";
}

std::vector<std::pair<std::string, std::string>> measured_of(const Profile& profile) {
    std::vector<std::pair<std::string, std::string>> out;
    out.emplace_back("Method", method_text(profile));
    if (profile.sampled) {
        out.emplace_back("Samples", fmt::format("{}, each standing for {} accesses",
                                                format_count(profile.sampled->samples),
                                                format_count(profile.sampled->period)));
        if (profile.sampled->pruned > 0)
            out.emplace_back("Samples given up", percent(profile.sampled->pruned));
    }
    if (profile.certainty)
        out.emplace_back("Certainty", profile.certainty == Certainty::exact
                                          ? "exact: proven, see the notes"
                                      : profile.certainty == Certainty::fitted
                                          ? "fitted: passed every check, not proven"
                                          : "estimated: see the notes");
    out.emplace_back("Errors", profile.sampled
                                   ? "95 % half-widths; grey figures rest on too few samples"
                                   : "none from sampling");
    out.emplace_back("Blocks",
                     profile.granularity == 1
                         ? "addresses as they are; sizes are ignored"
                         : fmt::format("{} B; distances count distinct blocks", profile.granularity));
    out.emplace_back("Threads", profile.model == "private"
                                    ? "private: one stack per thread, writes invalidate the others'"
                                    : "one stack for all threads");
    out.emplace_back("Caches",
                     "LRU, modelled from reuse distances (binomial model of sets); prefetchers and "
                     "conflicts of power-of-two strides are not in it");
    for (const GranularityProfile& one : profile.granularities)
        if (one.granularity != profile.granularity)
            out.emplace_back("Also counted",
                             fmt::format("{} blocks of {}", format_count(one.distinct),
                                         format_bytes(static_cast<double>(one.granularity))));
    if (profile.line_use)
        out.emplace_back("Line use", fmt::format("a true LRU cache of {}", profile.line_use->cache));
    for (const ProcessRow& row : process_tree(profile, 16))
        out.emplace_back(
            row.processes > 1 ? fmt::format("{} processes", row.processes) : "Process",
            fmt::format("{}{}: {}", row.depth > 0 ? "… " : "", row.name, process_text(row)));
    if (!profile.clock.empty()) out.emplace_back("Clock", profile.clock);
    if (!profile.machine.empty()) out.emplace_back("Machine", profile.machine);
    for (const std::string& thing : profile.assumes) out.emplace_back("Assumes", thing);
    for (const std::string& note : profile.notes) out.emplace_back("Note", note);
    return out;
}

using Json = nlohmann::ordered_json;

Json advice_json(const Advice& advice, const Profile& profile, const CacheSpec& cache) {
    Json out = {{"rule", advice.rule},
                {"misses", advice.misses},
                {"share", advice.share},
                {"gain", advice.gain},
                {"what", advice.what}};
    if (!advice.where.empty()) out["where"] = advice.where;
    if (std::string gain = gain_text(advice, profile, cache); !gain.empty()) out["gain_text"] = gain;
    if (!advice.help.empty()) out["help"] = advice.help;
    if (advice.use) out["use"] = *advice.use;
    if (advice.reuse) out["reuse"] = *advice.reuse;
    return out;
}

Json knee_json(const Knee& knee, const Profile& profile) {
    return {{"blocks", knee.blocks},
            {"size", span_of(knee.blocks, profile.granularity)},
            {"miss_before", knee.miss_before},
            {"miss_after", knee.miss_after}};
}

}  // namespace

std::vector<CacheSpec> comparable_caches(const Profile& profile, const std::vector<CacheSpec>& caches) {
    std::vector<CacheSpec> out;
    for (const CacheSpec& cache : caches)
        if (cache.line == profile.granularity) out.push_back(cache);
    return out;
}

std::optional<CacheSpec> focus_cache(const Profile& profile, const std::vector<CacheSpec>& caches) {
    if (caches.empty()) return std::nullopt;
    const std::vector<CacheSpec> comparable = comparable_caches(profile, caches);
    if (!comparable.empty()) return comparable[comparable.size() > 1 ? 1 : 0];
    CacheSpec lru = caches[caches.size() > 1 ? 1 : 0];
    lru.bytes =
        profile.granularity == 1 ? lru.blocks() : lru.bytes / profile.granularity * profile.granularity;
    lru.ways = 0;
    lru.line = profile.granularity;
    lru.name = profile.granularity == 1
                   ? fmt::format("LRU of {} blocks", format_count(static_cast<double>(lru.bytes)))
                   : fmt::format("LRU in blocks of {} B", lru.line);
    return lru;
}

Findings findings_of(const Profile& profile, const std::vector<CacheSpec>& caches) {
    Findings out;
    out.few_samples = profile.sampled && profile.sampled->samples < kFewestSamples;
    if (!profile.reuse.bins.empty())
        for (double percentile : kPercentiles)
            out.percentiles.emplace_back(percentile,
                                         std::round(profile.reuse.percentile(percentile / 100)));
    // A step of the curve between a few samples is chance: no working set is stated from them.
    if (!out.few_samples) out.working_sets = working_set_knees(profile.reuse);
    for (const Knee& knee : out.working_sets)
        if (!out.main_working_set && knee.blocks > kSmallestMainSet) out.main_working_set = knee;
    if (profile.reuse.total() > 0)
        for (const CacheSpec& cache : comparable_caches(profile, caches)) {
            LevelFindings level;
            level.rates = predict_level(profile, cache, caches);
            level.conflicts = conflicts_text(profile, level.rates);
            // Sites have private distances only: what they would gain in a shared cache is not known.
            if (!is_shared_level(profile, cache) || caches.size() == 1)
                level.advice = advise(profile, cache, kMostAdvice, caches);
            out.levels.push_back(std::move(level));
        }
    auto other = std::ranges::find_if(caches, [&](const CacheSpec& cache) {
        return cache.line != profile.granularity &&
               std::ranges::find(profile.granularities, cache.line, &GranularityProfile::granularity) ==
                   profile.granularities.end();
    });
    if (other != caches.end() && profile.reuse.total() > 0)
        out.left_out = fmt::format(
            "no hit rates of caches with lines of {} B: this profile counts blocks of {} B. Profile "
            "with --granularity {} for them",
            other->line, profile.granularity, other->line);
    out.focus = focus_cache(profile, caches);
    if (out.focus && !profile.sites.empty()) out.sites = worst_sites(profile, *out.focus);
    out.pages = page_findings(profile, caches);
    if (profile.line_use && profile.line_use->use.fetches > 0) {
        const LineUseTotals& totals = *profile.line_use;
        out.line_use = fmt::format(
            "{} of the bytes fetched into a cache of {} were used before they left it ({}).",
            percent_whole(totals.use.bytes / totals.use.fetches / static_cast<double>(totals.line)),
            totals.cache, line_use_text(totals.use, profile) + " per line");
    }
    out.measured = measured_of(profile);
    out.lead = lead_of(profile, out);
    return out;
}

std::string findings_json(const Findings& findings, const Profile& profile) {
    Json out = {{"schema", "revisit/report@1"}};
    out["command"] = profile.command;
    out["accesses"] = profile.accesses;
    if (profile.sampled && profile.sampled->accesses_error > 0)
        out["accesses_error"] = profile.sampled->accesses_error;
    out["distinct"] = profile.distinct;
    if (profile.sampled && profile.sampled->distinct_high > 0)
        out["distinct_range"] = {profile.sampled->distinct_low, profile.sampled->distinct_high};
    out["granularity"] = profile.granularity;
    out["lead"] = findings.lead;
    if (profile.sampled) out["samples"] = profile.sampled->samples;
    if (findings.few_samples) out["few_samples"] = true;
    out["most_stated_error"] = kMostStated;
    out["percentiles"] = Json::array();
    for (auto [percentile, blocks] : findings.percentiles)
        out["percentiles"].push_back({percentile, blocks});
    out["working_sets"] = Json::array();
    for (const Knee& knee : findings.working_sets)
        out["working_sets"].push_back(knee_json(knee, profile));
    if (findings.main_working_set)
        out["main_working_set"] = knee_json(*findings.main_working_set, profile);
    out["caches"] = Json::array();
    for (const LevelFindings& level : findings.levels) {
        const CacheSpec& cache = level.rates.cache;
        Json entry = {{"name", cache.name},
                      {"bytes", cache.bytes},
                      {"ways", cache.associativity()},
                      {"line", cache.line},
                      {"hit_rate", level.rates.hit_rate},
                      {"miss_rate", level.rates.miss_rate}};
        if (level.rates.error > 0) entry["error"] = level.rates.error;
        if (level.rates.simulated) {
            entry["simulated"] = true;
            entry["sets"] = sets_known_by(profile);
        }
        if (!level.conflicts.empty()) {
            entry["model_miss_rate"] = level.rates.model_miss_rate;
            entry["conflicts"] = level.conflicts;
        }
        entry["advice"] = Json::array();
        for (const Advice& advice : level.advice)
            entry["advice"].push_back(advice_json(advice, profile, cache));
        out["caches"].push_back(std::move(entry));
    }
    if (!findings.left_out.empty()) out["left_out"] = findings.left_out;
    if (findings.focus) {
        out["focus"] = {{"name", findings.focus->name},
                        {"bytes", findings.focus->bytes},
                        {"ways", findings.focus->associativity()},
                        {"line", findings.focus->line}};
        out["sites"] = Json::array();
        for (const SiteFindings& one : findings.sites) {
            Json entry = {{"id", one.site->id},
                          {"place", place_of(*one.site)},
                          {"misses", one.misses},
                          {"share", one.share},
                          {"miss_rate", one.miss_rate}};
            if (one.site->time_share) entry["time_share"] = *one.site->time_share;
            if (one.site->regular) entry["regular"] = *one.site->regular;
            if (!one.site->data.empty()) entry["data"] = one.site->data;
            if (!one.site->member.empty()) entry["member"] = one.site->member;
            if (!one.reason.empty()) entry["reason"] = one.reason;
            if (one.few_samples) entry["few_samples"] = true;
            if (!one.line_use.empty()) entry["line_use"] = one.line_use;
            out["sites"].push_back(std::move(entry));
        }
    }
    if (!findings.pages.sizes.empty()) {
        out["pages"] = Json::array();
        for (const PageSize& size : findings.pages.sizes) {
            Json entry = {{"bytes", size.bytes}, {"touched", size.touched}};
            entry["tlbs"] = Json::array();
            for (const CachePrediction& one : size.tlbs)
                entry["tlbs"].push_back({{"name", one.cache.name},
                                         {"entries", one.cache.blocks()},
                                         {"ways", one.cache.associativity()},
                                         {"hit_rate", one.hit_rate},
                                         {"miss_rate", one.miss_rate}});
            out["pages"].push_back(std::move(entry));
        }
        if (findings.pages.typical) out["typical_tlbs"] = true;
        if (!findings.pages.huge_pages.empty()) out["huge_pages"] = findings.pages.huge_pages;
    }
    if (!findings.line_use.empty()) out["line_use"] = findings.line_use;
    out["measured"] = Json::array();
    for (const auto& [what, text] : findings.measured) out["measured"].push_back({what, text});
    return out.dump(1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace revisit
