// Advice for code review (SARIF 2.1.0) and phases for a trace viewer (Chrome's trace events, which
// Perfetto opens): both JSON.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "models/hit_table.h"
#include "report/exports.h"
#include "report/findings.h"
#include "report/paths.h"

namespace revisit {
namespace {

using Json = nlohmann::ordered_json;

std::string dump(const Json& json) {
    return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

struct RuleText {
    const char* id;
    const char* text;
};
constexpr RuleText kRules[] = {
    {"pad rows", "Addresses of data that is used together fall into few sets of the cache"},
    {"interchange", "A line reuses its data after eviction, and most of its accesses miss"},
    {"tile", "A line reuses its data after eviction"},
    {"partition", "A loop reuses data after eviction, at addresses without a stride"},
    {"fuse", "Two lines of one function use the same data, too far apart"},
    {"reorder", "Two functions use the same data, too far apart"},
    {"shrink", "A working set almost fits into the cache"},
    {"touch less", "Memory is touched for the first time"},
    {"unshare", "Writes of other threads invalidate the data"},
    {"pad", "Threads write different bytes of one cache line"},
    {"prefetch", "Misses at irregular addresses, which prefetchers cannot predict"},
    {"huge pages", "More pages than the TLB holds"},
    {"split", "Only some fields of each line are used before it is evicted"},
    {"pack", "Lines are evicted before most of their bytes are used"},
    {"smaller types", "The data would fit at half the size"},
};

Json location_of(const PathFrame& at) {
    // A path that starts at the root is a file of this machine; others are relative to the checkout.
    std::string uri;
    for (char c : at.frame.file)
        uri += c == ' ' || c == '%' || c == '#' || c == '?'
                   ? fmt::format("%{:02X}", static_cast<unsigned char>(c))
                   : std::string(1, c);
    if (uri.starts_with('/')) uri = "file://" + uri;
    return {{"physicalLocation",
             {{"artifactLocation", {{"uri", uri}}}, {"region", {{"startLine", at.frame.line}}}}}};
}

// The user's own line of a site: for one in a library, by the path of its first pair.
PathFrame own_line(const Profile& profile, const Site& site) {
    for (const Pair& pair : profile.pairs)
        if (pair.reuse == site.id) return own_place(profile, site, pair.reuse_context);
    return own_place(profile, site, 0);
}

}  // namespace

Result<std::string> export_sarif(const Profile& profile, const ExportOptions& options) {
    const Findings findings = findings_of(profile, options.caches);
    if (findings.levels.empty())
        return findings.left_out.empty() ? fail(ErrorCode::no_cache, "advice needs a cache")
                                         : fail(findings.left_out);
    Json rules = Json::array();
    for (const RuleText& rule : kRules)
        rules.push_back({{"id", rule.id}, {"shortDescription", {{"text", rule.text}}}});
    Json results = Json::array();
    const SiteIndex sites(profile);
    const LevelFindings& level = findings.levels[findings.levels.size() > 1 ? 1 : 0];
    for (const Advice& advice : level.advice) {
        if (advice.rule == "nothing" || findings.few_samples) continue;
        std::string text = advice.what + ".";
        if (!advice.where.empty()) text += " " + advice.where + ".";
        if (std::string gain = gain_text(advice, profile, level.rates.cache); !gain.empty())
            text += " Gain in " + level.rates.cache.name + ": " + gain + ".";
        for (const std::string& help : advice.help) text += "\n- " + help;
        Json result = {{"ruleId", advice.rule},
                       {"level", advice.gain > 0 ? "warning" : "note"},
                       {"message", {{"text", text}}},
                       {"rank", 100 * advice.share}};
        auto place = [&](const std::optional<std::uint32_t>& id, const char* key) {
            const Site* site = id ? sites.find(*id) : nullptr;
            if (!site) return;
            if (PathFrame at = own_line(profile, *site); !at.frame.file.empty() && at.frame.line != 0)
                result[key] = Json::array({location_of(at)});
        };
        place(advice.reuse, "locations");
        if (advice.use != advice.reuse) place(advice.use, "relatedLocations");
        results.push_back(std::move(result));
    }
    return dump(
        {{"$schema", "https://json.schemastore.org/sarif-2.1.0.json"},
         {"version", "2.1.0"},
         {"runs",
          Json::array({{{"tool", {{"driver", {{"name", "revisit"}, {"rules", std::move(rules)}}}}},
                        {"results", std::move(results)}}})}});
}

// One access is shown as one nanosecond: a profile knows when in accesses, not in seconds.
Result<std::string> export_perfetto(const Profile& profile, const ExportOptions& options) {
    if (profile.phases.empty()) return fail(ErrorCode::no_phases, "the profile has no phases");
    std::vector<HitTable> tables;
    for (const CacheSpec& cache : comparable_caches(profile, options.caches))
        tables.emplace_back(cache);
    constexpr double kAccessesPerMicrosecond = 1000;
    std::string command;
    for (const std::string& word : profile.command) command += (command.empty() ? "" : " ") + word;
    Json events = Json::array();
    events.push_back({{"ph", "M"},
                      {"pid", 1},
                      {"name", "process_name"},
                      {"args", {{"name", command.empty() ? "revisit" : command}}}});
    for (std::size_t i = 0; i < profile.phases.size(); ++i) {
        const Phase& phase = profile.phases[i];
        const double start = phase.begin / kAccessesPerMicrosecond,
                     total = std::max(1.0, phase.reuse.total());
        Json rates = Json::object();
        for (HitTable& table : tables)
            rates[table.cache().name] = 100 * table.misses(phase.reuse) / total;
        events.push_back({{"ph", "X"},
                          {"pid", 1},
                          {"tid", 1},
                          {"name", fmt::format("phase {}", i + 1)},
                          {"ts", start},
                          {"dur", (phase.end - phase.begin) / kAccessesPerMicrosecond},
                          {"args", {{"blocks", phase.distinct}, {"miss rates, %", rates}}}});
        if (!rates.empty())
            events.push_back(
                {{"ph", "C"}, {"pid", 1}, {"name", "miss rate, %"}, {"ts", start}, {"args", rates}});
        events.push_back({{"ph", "C"},
                          {"pid", 1},
                          {"name", "blocks touched"},
                          {"ts", start},
                          {"args", {{"blocks", phase.distinct}}}});
    }
    return dump({{"displayTimeUnit", "ns"}, {"traceEvents", std::move(events)}});
}

}  // namespace revisit
