#include "report/terminal.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "models/hit_table.h"
#include "report/advice.h"
#include "report/knees.h"
#include "report/words.h"
#include "revisit/units.h"

namespace revisit {
namespace {

constexpr std::size_t kExplained = 3;  // of the worst sites
constexpr double kPercentiles[] = {50, 70, 80, 90, 95, 99};

std::string paint(const TerminalStyle& style, const char* code, const std::string& text) {
    return style.color ? fmt::format("\033[{}m{}\033[0m", code, text) : text;
}
std::string heading(const TerminalStyle& style, const std::string& text) {
    return "\n" + paint(style, "1", text) + "\n";
}

// A bar of eighths of a character cell. Anything that is not nothing shows.
std::string bar(double share, int cells) {
    static constexpr const char* kEighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
    int eighths = static_cast<int>(std::lround(share * cells * 8));
    if (share > 0) eighths = std::max(eighths, 1);
    std::string out;
    for (int i = 0; i < eighths / 8; ++i) out += "█";
    return out + kEighths[eighths % 8];
}

std::string header(const Profile& profile, const TerminalStyle& style) {
    std::string what;
    for (const std::string& word : profile.command) what += (what.empty() ? "" : " ") + word;
    std::string out = paint(style, "1", what.empty() ? "reuse profile" : what) + "\n";
    out += fmt::format("{} accesses to {} blocks", format_count(profile.accesses),
                       format_count(profile.distinct));
    if (profile.granularity > 1)
        out += fmt::format(" of {} ({})", format_bytes(static_cast<double>(profile.granularity)),
                           format_bytes(profile.distinct * static_cast<double>(profile.granularity)));
    out += fmt::format(", method {}, model {}\n", profile.method, profile.model);
    if (profile.sampled)
        out +=
            fmt::format("sampled: {} samples, one in {} accesses\n",
                        format_count(profile.sampled->samples), format_count(profile.sampled->period));
    if (!profile.clock.empty()) out += fmt::format("clock: {}\n", profile.clock);
    return out;
}

std::string percentile_line(const Histogram& reuse, std::uint64_t granularity) {
    std::string out;
    for (double percentile : kPercentiles)
        out += fmt::format("{}p{:.0f} {}", out.empty() ? "  " : "   ", percentile,
                           span_of(std::round(reuse.percentile(percentile / 100)), granularity));
    return out + "\n";
}

// Beyond the first level is where it hurts.
const CacheSpec& worth_telling(const std::vector<CacheSpec>& caches) {
    return caches.size() > 1 ? caches[1] : caches[0];
}

// Where threads take blocks from each other: what of a site's misses no cache would spare it.
std::string kinds_of_misses(const Profile& profile, const Site& site, double missed) {
    if (profile.reuse.invalidated <= 0 || missed <= 0) return {};
    const double capacity = std::max(0.0, missed - site.reuse.cold - site.reuse.invalidated);
    return fmt::format("  [capacity {}, cold {}, coherence {}]", percent(capacity / missed),
                       percent(site.reuse.cold / missed), percent(site.reuse.invalidated / missed));
}

// Why a site misses: which data, how far back it was used last, and by whom.
std::string why(const Profile& profile, const Site& site, HitTable& table, double missed) {
    std::map<std::uint32_t, Histogram> by_use;
    for (const Pair& pair : profile.pairs)
        if (pair.reuse == site.id) by_use[pair.use].merge(table.missed(pair.distances));
    std::uint32_t user = 0;
    double most = 0;
    for (const auto& [use, distances] : by_use)
        if (double misses = distances.total(); misses > most) {
            most = misses;
            user = use;
        }
    std::string reason;
    if (site.reuse.cold > missed / 2)
        reason = "mostly touched for the first time";
    else if (most > 0) {
        auto found = std::ranges::find(profile.sites, user, &Site::id);
        reason = fmt::format("back after {}, last used by {}",
                             span_of(std::round(by_use[user].percentile(0.5)), profile.granularity),
                             user == site.id                ? "this very instruction"
                             : found == profile.sites.end() ? fmt::format("site {}", user)
                             : found->frame == site.frame   ? "another instruction of this line"
                                                            : place_of(*found));
    }
    if (site.data.empty() && reason.empty()) return {};
    return fmt::format("             {}{}{}\n", site.data,
                       site.data.empty() || reason.empty() ? "" : ": ", reason);
}

std::string worst_sites(const Profile& profile, const std::vector<CacheSpec>& caches,
                        const TerminalStyle& style) {
    if (profile.sites.empty() || caches.empty()) return {};
    const CacheSpec& cache = worth_telling(caches);
    HitTable table(cache);
    std::vector<std::pair<double, const Site*>> misses;
    double all = 0;
    for (const Site& site : profile.sites) {
        double missed = table.misses(site.reuse);
        all += missed;
        misses.emplace_back(missed, &site);
    }
    if (all <= 0) return {};
    std::stable_sort(misses.begin(), misses.end(), [](auto& a, auto& b) { return a.first > b.first; });
    std::string out = heading(style, fmt::format("Sites by misses in {} ({})", cache.name,
                                                 format_bytes(static_cast<double>(cache.bytes))));
    for (std::size_t i = 0; i < std::min<std::size_t>(misses.size(), 10) && misses[i].first > 0; ++i) {
        const Site& site = *misses[i].second;
        out += fmt::format(
            "  {:>9}  miss rate {:>8}  accesses {:>9}  {}{}\n", percent(misses[i].first / all),
            percent(misses[i].first / std::max(1.0, site.reuse.total())), format_count(site.accesses),
            place_of(site), kinds_of_misses(profile, site, misses[i].first));
        if (i < kExplained) out += why(profile, site, table, misses[i].first);
    }
    return out;
}

std::string advice_on_pairs(const Profile& profile, const std::vector<CacheSpec>& caches,
                            const TerminalStyle& style) {
    if (caches.empty()) return {};
    std::string out;
    for (const Advice& advice : advise(profile, worth_telling(caches), kExplained)) {
        out += fmt::format("  {:>9}  {}\n", percent(advice.share), advice.what);
        if (!advice.where.empty()) out += fmt::format("             {}\n", advice.where);
        out += fmt::format("             {}\n", paint(style, "2", "usually helps: " + advice.help));
    }
    return out.empty() ? out : heading(style, "Advice on the worst pairs of use and reuse") + out;
}

// How the misses come and go over the run: a column a phase, as high as its miss rate.
std::string phase_chart(const Profile& profile, const std::vector<CacheSpec>& caches,
                        const TerminalStyle& style) {
    if (profile.phases.empty() || caches.empty()) return {};
    const CacheSpec& cache = worth_telling(caches);
    HitTable table(cache);
    const auto columns = std::min<std::size_t>(
        profile.phases.size(), static_cast<std::size_t>(std::max(10, style.width - 24)));
    std::vector<double> rates(columns);
    for (std::size_t i = 0; i < columns; ++i) {
        double missed = 0, all = 0;
        for (std::size_t p = i * profile.phases.size() / columns;
             p < (i + 1) * profile.phases.size() / columns; ++p) {
            missed += table.misses(profile.phases[p].reuse);
            all += profile.phases[p].reuse.total();
        }
        rates[i] = all > 0 ? missed / all : 0;
    }
    const double most = *std::max_element(rates.begin(), rates.end());
    std::string out = heading(style, fmt::format("Phases: misses in {} ({}) over the run", cache.name,
                                                 format_bytes(static_cast<double>(cache.bytes))));
    constexpr int kRows = 3;
    for (int row = kRows - 1; row >= 0; --row) {
        out += fmt::format("  {:>9} ", row == kRows - 1 ? percent(most) : row == 0 ? "0" : "");
        for (double rate : rates) {
            const double eighths = most > 0 ? 8 * (kRows * rate / most - row) : 0;
            constexpr const char* kSteps[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
            out += kSteps[static_cast<int>(std::clamp(std::round(eighths), 0.0, 8.0))];
        }
        out += "\n";
    }
    const std::string end = format_count(profile.phases.back().end);
    return out +
           fmt::format("  {:>9} 0{:>{}}\n", "accesses", end, std::max(columns, end.size() + 2) - 1);
}

// Also without accesses: a note may say why there are none.
std::string notes(const Profile& profile, const TerminalStyle& style) {
    std::string out = profile.notes.empty() && profile.assumes.empty() ? "" : heading(style, "Notes");
    for (const std::string& thing : profile.assumes) out += fmt::format("  assumes: {}\n", thing);
    for (const std::string& note : profile.notes) out += fmt::format("  {}\n", note);
    return out;
}

}  // namespace

std::string histogram_chart(const Histogram& histogram, std::uint64_t granularity,
                            const TerminalStyle& style) {
    struct Row {
        std::string label;
        double count;
        double error;
    };
    std::vector<Row> rows;
    for (const Bin& bin : histogram.rebin(Binning::log2()).bins)
        rows.push_back({bin_label(bin, granularity), bin.count, bin.error});
    if (histogram.cold > 0)
        rows.push_back({"cold (first touch)", histogram.cold, histogram.cold_error});
    if (histogram.invalidated > 0)
        rows.push_back({"invalidated", histogram.invalidated, histogram.invalidated_error});
    double total = histogram.total(), largest = 0;
    std::size_t label_width = 0;
    for (const Row& row : rows) {
        largest = std::max(largest, row.count);
        // fmt pads by code points, so count those.
        label_width = std::max<std::size_t>(label_width,
                                            std::count_if(row.label.begin(), row.label.end(),
                                                          [](char c) { return (c & 0xc0) != 0x80; }));
    }
    int cells = std::max(10, style.width - static_cast<int>(label_width) - 26);
    std::string out;
    for (const Row& row : rows) {
        std::string drawn = bar(row.count / largest, cells);
        // More error than half the count: too weak to read anything into.
        bool weak = row.error > row.count / 2;
        std::string line = fmt::format("  {:>{}} {:>9} {:>9} {}", row.label, label_width,
                                       format_count(row.count), percent(row.count / total), drawn);
        out += (weak ? paint(style, "2", line + " (weak)") : line) + "\n";
    }
    return out;
}

std::string cache_table(const std::vector<CachePrediction>& predictions, const TerminalStyle&) {
    std::string out;
    for (const CachePrediction& prediction : predictions) {
        const CacheSpec& cache = prediction.cache;
        std::string ways =
            cache.associativity() == cache.blocks() ? "full" : fmt::format("{}-way", cache.ways);
        out += fmt::format("  {:<16} {:>9} {:>7} {:>5} B lines   hit {:>9}   miss {:>9}", cache.name,
                           format_bytes(static_cast<double>(cache.bytes)), ways, cache.line,
                           percent(prediction.hit_rate), percent(prediction.miss_rate));
        if (prediction.error > 0) out += fmt::format("   ± {}", percent(prediction.error));
        out += "\n";
    }
    return out;
}

std::string curve_chart(const Profile& profile, const std::vector<CacheSpec>& marks,
                        const TerminalStyle& style) {
    std::vector<CurvePoint> curve = miss_ratio_curve(profile.reuse);
    if (curve.empty()) return {};
    auto miss_at = [&](double blocks) {
        auto after = std::find_if(curve.begin(), curve.end(),
                                  [&](const CurvePoint& p) { return p.blocks >= blocks; });
        if (after == curve.end()) return curve.back().miss_rate;
        if (after == curve.begin() || after->blocks == blocks) return after->miss_rate;
        auto before = after - 1;
        double inside = (blocks - before->blocks) / (after->blocks - before->blocks);
        return before->miss_rate + inside * (after->miss_rate - before->miss_rate);
    };
    int cells = std::max(10, style.width - 34);
    std::string out;
    double last = std::max(1.0, curve.back().blocks);
    for (double blocks = 1; blocks < 2 * last; blocks *= 2) {
        std::string mark;
        for (const CacheSpec& cache : marks) {
            auto size = static_cast<double>(cache.blocks());
            if (size >= blocks && size < 2 * blocks) mark += " ← " + cache.name;
        }
        double miss = miss_at(blocks);
        out += fmt::format("  {:>9} {:>9} {}{}\n", span_of(blocks, profile.granularity), percent(miss),
                           bar(miss, cells), mark);
    }
    return out;
}

std::string terminal_report(const Profile& profile, const std::vector<CacheSpec>& caches,
                            const TerminalStyle& style) {
    std::string out = header(profile, style);
    if (profile.reuse.total() <= 0 && (!profile.time || profile.time->total() <= 0))
        return out + "\nNo accesses: nothing to show.\n" + notes(profile, style);
    if (!profile.reuse.bins.empty() || !profile.time) {
        out += heading(style, profile.granularity == 1
                                  ? "Reuse distance (blocks between two uses of a block)"
                                  : "Reuse distance (memory touched between two uses of a block)");
        out += histogram_chart(profile.reuse, profile.granularity, style);
        if (!profile.reuse.bins.empty()) {
            out += heading(style, "Percentiles of the reuses") +
                   percentile_line(profile.reuse, profile.granularity);
            std::vector<Knee> knees = working_set_knees(profile.reuse);
            if (!knees.empty()) out += heading(style, "Working sets");
            for (const Knee& knee : knees)
                out += fmt::format("  a cache of {} brings misses from {} to {}\n",
                                   span_of(knee.blocks, profile.granularity), percent(knee.miss_before),
                                   percent(knee.miss_after));
        }
    }
    if (profile.time) {
        out += heading(style, "Time distance (accesses from one use to the next)");
        out += histogram_chart(*profile.time, 1, style);
    }
    if (!caches.empty() && !profile.reuse.bins.empty()) {
        std::vector<CachePrediction> predictions;
        std::uint64_t other_line = 0;
        for (const CacheSpec& cache : caches) {
            predictions.push_back(predict_cache(profile, cache));
            if (cache.line != profile.granularity) other_line = cache.line;
        }
        out += heading(style, "Caches") + cache_table(predictions, style);
        if (other_line != 0)
            out += fmt::format(
                "  (the profile counts blocks of {} B; in a cache with other lines each is taken to fill "
                "one. Profile with --granularity {} to count lines)\n",
                profile.granularity, other_line);
    }
    out += phase_chart(profile, caches, style);
    out += worst_sites(profile, caches, style);
    out += advice_on_pairs(profile, caches, style);
    out += notes(profile, style);
    return out;
}

}  // namespace revisit
