#include "report/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/parse_floating.h"
#include "core/try.h"
#include "models/hierarchy_model.h"
#include "report/words.h"
#include "revisit/accuracy.h"
#include "revisit/units.h"

namespace revisit {
namespace {

std::string lower(std::string_view text) {
    std::string out(text);
    for (char& c : out)
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c | 0x20);
    return out;
}

bool is_level(std::string_view name) {  // l1, l2, …
    return name.size() == 2 && name[0] == 'l' && name[1] >= '1' && name[1] <= '9';
}

constexpr std::string_view kNames =
    "S, S_hat, accesses, distinct, cold_share, invalidated_share, false_sharing_share, p50 … p99, and "
    "hit_rate, miss_rate or misses of a cache (l1.hit_rate, llc.miss_rate, 32K:8:64.misses)";

// The percentile itself shifted by what the samples leave open of the share below it.
double percentile_error(const Profile& profile, double share) {
    if (!profile.sampled || profile.sampled->samples <= 0) return 0;
    double open = share_error(share, profile.sampled->samples);
    return (profile.reuse.percentile(std::min(1.0, share + open)) -
            profile.reuse.percentile(std::max(0.0, share - open))) /
           2;
}

// Two-sided 95 % points of Student's t for 1, 2, … degrees of freedom.
double student(std::size_t degrees) {
    static constexpr double kTable[] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262,
                                        2.228,  2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101};
    return degrees == 0 ? 0 : degrees <= std::size(kTable) ? kTable[degrees - 1] : 2.05;
}

Result<Figure> cache_figure(const Profile& profile, std::string_view name, std::size_t dot,
                            const std::vector<CacheSpec>& chosen) {
    std::string_view what = name.substr(dot + 1);
    if (what != "hit_rate" && what != "miss_rate" && what != "misses")
        return fail(fmt::format("expected a metric out of {}, found \"{}\"", kNames, name));
    auto cache = TRY(cache_named(name.substr(0, dot), chosen));
    CachePrediction prediction = predict_level(profile, cache, chosen);
    double total = profile.reuse.total();
    if (what == "misses")
        return Figure{Unit::count, prediction.miss_rate * total, prediction.error * total};
    return Figure{Unit::share, what == "hit_rate" ? prediction.hit_rate : prediction.miss_rate,
                  prediction.error};
}

double distinct_error(const Profile& profile) {
    if (!profile.sampled) return 0;
    if (profile.sampled->distinct_high <= 0) return profile.reuse.cold_error;
    return std::max(profile.distinct - profile.sampled->distinct_low,
                    profile.sampled->distinct_high - profile.distinct);
}

}  // namespace

Result<CacheSpec> cache_named(std::string_view name, const std::vector<CacheSpec>& chosen) {
    std::string wanted = lower(name);
    bool levels_are_named = false;
    for (const CacheSpec& cache : chosen) {
        std::string known = lower(cache.name);
        if (known == wanted || (is_level(wanted) && known == wanted + "d")) return cache;
        levels_are_named |=
            is_level(std::string_view(known).substr(0, 2)) && known.find(':') == std::string::npos;
    }
    if (name.find(':') != std::string_view::npos) return CacheSpec::parse(name);
    if (wanted == "llc" && !chosen.empty()) return chosen.back();
    if (is_level(wanted) && !levels_are_named) {
        auto level = static_cast<std::size_t>(wanted[1] - '1');
        if (level < chosen.size()) return chosen[level];
    }
    if (chosen.empty())
        return fail(ErrorCode::no_cache,
                    fmt::format("this system does not describe its caches, \"{}\" among them", name));
    std::string known;
    for (const CacheSpec& cache : chosen) known += (known.empty() ? "" : ", ") + cache.name;
    return fail(fmt::format("expected a cache out of {}, found \"{}\"", known, name));
}

Result<Figure> figure_of(const Profile& profile, std::string_view name,
                         const std::vector<CacheSpec>& chosen) {
    const Histogram& reuse = profile.reuse;
    double total = std::max(reuse.total(), 1e-300);
    if (name == "accesses")
        return Figure{Unit::count, profile.accesses,
                      profile.sampled ? profile.sampled->accesses_error : 0};
    if (name == "distinct") return Figure{Unit::count, profile.distinct, distinct_error(profile)};
    if (name == "cold_share") return Figure{Unit::share, reuse.cold / total, reuse.cold_error / total};
    // Watched samples have no invalidated reuses among their distances, but an estimate of their own.
    const bool estimated = profile.sharing_totals && reuse.invalidated == 0;
    const double lost_error = estimated ? profile.sharing_totals->error : reuse.invalidated_error;
    if (name == "invalidated_share")
        return Figure{Unit::share,
                      (estimated ? profile.sharing_totals->invalidated : reuse.invalidated) / total,
                      lost_error / total};
    if (name == "false_sharing_share") {
        // A program with one thread shares nothing, whatever model it was analyzed with.
        if (!profile.sharing_totals && reuse.invalidated > 0)
            return fail("false_sharing_share: the profile has no sharing data");
        const double lost = profile.sharing_totals ? profile.sharing_totals->false_sharing : 0;
        return Figure{Unit::share, lost / total, lost_error / total};
    }
    if (name.size() > 1 && name[0] == 'p') {
        double share = -1;
        auto [end, code] = parse_floating(name.data() + 1, name.data() + name.size(), share);
        if (code == std::errc{} && end == name.data() + name.size() && share > 0 && share < 100) {
            auto scale = static_cast<double>(profile.granularity);
            return Figure{profile.granularity == 1 ? Unit::count : Unit::bytes,
                          std::round(reuse.percentile(share / 100)) * scale,
                          percentile_error(profile, share / 100) * scale};
        }
    }
    if (std::size_t dot = name.rfind('.'); dot != std::string_view::npos && dot > 0)
        return cache_figure(profile, name, dot, chosen);
    return fail(fmt::format("expected a metric out of {}, found \"{}\"", kNames, name));
}

Figure mean_of(const std::vector<Figure>& runs) {
    if (runs.empty()) return {};
    auto n = static_cast<double>(runs.size());
    Figure out = runs[0];
    double sum = 0, squared_errors = 0, squared_spread = 0;
    for (const Figure& run : runs) {
        sum += run.value;
        squared_errors += run.error * run.error;
    }
    out.value = sum / n;
    for (const Figure& run : runs) squared_spread += (run.value - out.value) * (run.value - out.value);
    out.error = std::sqrt(squared_errors) / n;
    if (runs.size() > 1)
        out.error =
            std::max(out.error, student(runs.size() - 1) * std::sqrt(squared_spread / (n - 1) / n));
    return out;
}

std::string show(const Figure& figure) {
    switch (figure.unit) {
        case Unit::share:
            return percent(figure.value);
        case Unit::count:
            return format_count(figure.value);
        case Unit::bytes:
            return format_bytes(figure.value);
        case Unit::score:
            return fmt::format("{:.4f}", figure.value);
    }
    return {};
}

std::string show_change(Unit unit, double change) {
    const char* sign = change < 0 ? "−" : "+";
    double size = std::fabs(change);
    if (size == 0) return "0";
    if (unit == Unit::share)
        return size < 5e-5 ? fmt::format("{}<0.01 points", sign)
                           : fmt::format("{}{:.2f} points", sign, 100 * size);
    return sign + show({unit, size, 0});
}

}  // namespace revisit
