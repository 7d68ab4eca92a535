// What the formats share, and those that are a few lines: folded stacks, CSV, Prometheus.
#include "report/exports.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "core/errors.h"
#include "formats/compress.h"
#include "models/hierarchy_model.h"
#include "models/hit_table.h"
#include "report/metrics.h"
#include "report/paths.h"
#include "report/words.h"

namespace revisit {
namespace {

const ExportEntry kExports[] = {
    {"pprof",
     "pprof, Perfetto, speedscope; call paths, several values",
     {".pb", ".pprof"},
     export_pprof},
    {"callgrind",
     "KCachegrind; costs by line and inclusive costs of calls",
     {".callgrind"},
     export_callgrind},
    {"folded", "flame graph scripts; one stack per line", {".folded", ".collapsed"}, export_folded},
    {"csv", "spreadsheets; one site per line", {".csv"}, export_csv},
    {"prometheus", "the headline figures as Prometheus text", {".prom"}, export_prometheus},
    {"sarif", "code review: advice at its lines (SARIF 2.1.0)", {".sarif"}, export_sarif},
    {"perfetto",
     "Perfetto and chrome://tracing: phases as slices and counters",
     {".perfetto.json", ".trace.json"},
     export_perfetto},
};

// A ';' separates frames and a newline ends the stack; neither may come out of a name.
std::string frame_text(std::string text) {
    for (char& c : text)
        if (c == ';' || c == '\n' || c == '\r') c = c == ';' ? ':' : ' ';
    return text.empty() ? "?" : text;
}

std::string name_of(const std::string& function, const std::string& module, std::uint64_t offset) {
    if (!function.empty()) return function;
    return module.empty() ? "?" : fmt::format("{}+{:#x}", module, offset);
}

std::string csv_cell(std::string_view text) {
    if (text.find_first_of(",\"\n\r") == std::string_view::npos) return std::string(text);
    std::string out = "\"";
    for (char c : text) {
        if (c == '"') out += '"';
        out += c;
    }
    return out + "\"";
}

// Label values: backslash, quote and newline are escaped, as the text format asks.
std::string label_value(std::string_view text) {
    std::string out;
    for (char c : text) {
        if (c == '\n') {
            out += "\\n";
            continue;
        }
        if (c == '\\' || c == '"') out += '\\';
        out += c;
    }
    return out;
}

}  // namespace

std::span<const ExportEntry> exports() {
    return kExports;
}

Result<const ExportEntry*> find_export(std::string_view name, std::string_view path) {
    std::string known;
    path = without_packing_suffix(path);
    for (const ExportEntry& entry : kExports) {
        known += (known.empty() ? "" : ", ") + std::string(entry.name);
        if (entry.name == name) return &entry;
        for (std::string_view ending : entry.endings)
            if (name.empty() && path.ends_with(ending)) return &entry;
    }
    if (name.empty())
        return fail(ErrorCode::unknown_format,
                    fmt::format("cannot derive the format from \"{}\" ({})", path, known));
    return fail(fmt::format("expected a format out of {}, found \"{}\"", known, name));
}

std::vector<StackSample> stack_samples(const Profile& profile, const std::vector<CacheSpec>& caches) {
    std::vector<HitTable> tables(caches.begin(), caches.end());
    auto sample = [&](const Site* site, std::uint32_t context, const Histogram& histogram) {
        StackSample out{site, context, histogram.total(), histogram.cold, {}};
        for (HitTable& table : tables) out.misses.push_back(table.misses(histogram));
        return out;
    };
    // Each site whole, then what pairs and first touches account for moved to where they happened.
    std::vector<StackSample> out;
    std::unordered_map<std::uint32_t, std::size_t> whole;
    for (const Site& site : profile.sites)
        if (whole.emplace(site.id, out.size()).second) out.push_back(sample(&site, 0, site.reuse));
    auto move_part = [&](std::uint32_t site, std::uint32_t context, const Histogram& histogram) {
        auto found = whole.find(site);
        if (context == 0 || found == whole.end()) return;
        StackSample part = sample(out[found->second].site, context, histogram);
        StackSample& rest = out[found->second];
        rest.accesses = std::max(0.0, rest.accesses - part.accesses);
        rest.cold = std::max(0.0, rest.cold - part.cold);
        for (std::size_t i = 0; i < part.misses.size(); ++i)
            rest.misses[i] = std::max(0.0, rest.misses[i] - part.misses[i]);
        out.push_back(std::move(part));
    };
    for (const Pair& pair : profile.pairs) move_part(pair.reuse, pair.reuse_context, pair.distances);
    for (const FirstTouch& touch : profile.touches) {
        Histogram histogram;
        histogram.cold = touch.cold;
        histogram.invalidated = touch.invalidated;
        move_part(touch.site, touch.context, histogram);
    }
    return out;
}

Result<std::string> export_folded(const Profile& profile, const ExportOptions& options) {
    std::vector<CacheSpec> caches;
    if (options.value != "accesses") {
        std::string_view value = options.value;
        if (value.empty()) {
            if (options.caches.empty())
                return fail(ErrorCode::no_cache, "", "value", "misses need a cache, accesses do not");
            caches = {options.caches.size() > 1 ? options.caches[1] : options.caches[0]};
        } else {
            if (!value.ends_with(".misses"))
                return fail(ErrorCode::option, "", "value",
                            fmt::format("expected accesses or CACHE.misses, found \"{}\"", value));
            auto cache = cache_named(value.substr(0, value.size() - 7), options.caches);
            if (!cache) return about_option("value", cache.error());
            caches = {*cache};
        }
    }
    std::string out;
    for (const StackSample& sample : stack_samples(profile, caches)) {
        double weight = caches.empty() ? sample.accesses : sample.misses[0];
        if (weight < 0.5) continue;
        for (std::uint32_t at : call_path(profile, sample.context)) {
            const Context& context = profile.contexts[at];
            out += frame_text(name_of(context.frame.function, context.module, context.offset)) + ";";
        }
        const Site& site = *sample.site;
        if (!site.frame.function.empty()) out += frame_text(site.frame.function) + ";";
        out += fmt::format("{} {:.0f}\n", frame_text(place_of(site)), weight);
    }
    return out;
}

Result<std::string> export_csv(const Profile& profile, const ExportOptions& options) {
    std::string out = "site,module,offset,function,file,line,accesses,writes,cold,invalidated,p50,p90";
    std::vector<HitTable> tables(options.caches.begin(), options.caches.end());
    for (const CacheSpec& cache : options.caches) out += "," + csv_cell(cache.name + " misses");
    out += "\n";
    auto scale = static_cast<double>(profile.granularity);
    for (const Site& site : profile.sites) {
        out += fmt::format("{},{},{},{},{},{},{},{},{},{},{:.0f},{:.0f}", site.id,
                           csv_cell(site.module), site.offset, csv_cell(site.frame.function),
                           csv_cell(site.frame.file), site.frame.line, site.accesses, site.writes,
                           site.reuse.cold, site.reuse.invalidated, site.reuse.percentile(0.5) * scale,
                           site.reuse.percentile(0.9) * scale);
        for (HitTable& table : tables) out += fmt::format(",{:.1f}", table.misses(site.reuse));
        out += "\n";
    }
    return out;
}

Result<std::string> export_prometheus(const Profile& profile, const ExportOptions& options) {
    std::string command;
    for (const std::string& word : profile.command) command += (command.empty() ? "" : " ") + word;
    std::string labels =
        fmt::format("command=\"{}\",method=\"{}\"", label_value(command), label_value(profile.method));
    std::string out;
    auto gauge = [&](std::string_view name, std::string_view help) {
        out += fmt::format("# HELP revisit_{} {}\n# TYPE revisit_{} gauge\n", name, help, name);
    };
    auto value = [&](std::string_view name, const std::string& more, double number) {
        out += fmt::format("revisit_{}{{{}{}}} {:.9g}\n", name, labels, more, number);
    };
    gauge("accesses", "Memory accesses made.");
    value("accesses", "", profile.accesses);
    gauge("distinct_bytes", "Memory touched.");
    value("distinct_bytes", "", profile.distinct * static_cast<double>(profile.granularity));
    gauge("cold_ratio", "Share of accesses that touch a block for the first time.");
    value("cold_ratio", "", profile.reuse.cold / std::max(profile.reuse.total(), 1e-300));
    gauge("reuse_distance_bytes", "Percentiles of the reuse distance.");
    // "quantile" is a label of summaries alone.
    for (double percentile : {50.0, 90.0, 99.0})
        value("reuse_distance_bytes", fmt::format(",percentile=\"{}\"", percentile),
              profile.reuse.percentile(percentile / 100) * static_cast<double>(profile.granularity));
    gauge("cache_hit_ratio", "Predicted share of accesses that hit.");
    for (const CacheSpec& cache : options.caches)
        value("cache_hit_ratio",
              fmt::format(",cache=\"{}\",size_bytes=\"{}\"", label_value(cache.name), cache.bytes),
              predict_level(profile, cache, options.caches).hit_rate);
    return out;
}

}  // namespace revisit
