#include "report/terminal.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstring>

#include "models/hit_table.h"
#include "report/findings.h"
#include "report/processes.h"
#include "report/set_conflicts.h"
#include "report/words.h"
#include "revisit/units.h"

namespace revisit {
namespace {

constexpr double kLargeRow = 0.05;     // of the accesses
constexpr std::size_t kExplained = 3;  // of the worst sites, and of the advice

std::string paint(const TerminalStyle& style, const char* code, const std::string& text) {
    return style.color ? fmt::format("\033[{}m{}\033[0m", code, text) : text;
}
std::string heading(const TerminalStyle& style, const std::string& text) {
    return "\n" + paint(style, "1", text) + "\n";
}

// A terminal that knows OSC 8 opens the file at the line; others show the text alone.
std::string linked_place(const Frame& frame, const std::string& text, const TerminalStyle& style) {
    if (!style.color || !style.links || !frame.file.starts_with('/')) return text;
    std::string path;
    for (char c : frame.file) {
        const bool plain = std::isalnum(static_cast<unsigned char>(c)) || std::strchr("/._-+~", c);
        path += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
    return fmt::format("\033]8;;file://{}#L{}\033\\{}\033]8;;\033\\", path, frame.line, text);
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

std::string header(const Profile& profile, const Findings& findings, const TerminalStyle& style) {
    std::string what;
    for (const std::string& word : profile.command) what += (what.empty() ? "" : " ") + word;
    constexpr std::size_t kMostText = 1000;  // of thousands of arguments
    if (what.size() > kMostText) {
        std::size_t end = kMostText;
        while ((what[end] & 0xc0) == 0x80) end--;  // not within a character
        what = what.substr(0, end) + " …";
    }
    std::string out = paint(style, "1", what.empty() ? "reuse profile" : what) + "\n";
    if (!findings.lead.empty()) out += findings.lead + "\n";
    const std::string error = accesses_error_text(profile);
    out += fmt::format("{} accesses{} to {} blocks", format_count(profile.accesses),
                       error.empty() ? "" : " " + error, format_count(profile.distinct));
    const std::string range = distinct_range_text(profile);
    if (profile.granularity > 1)
        out += fmt::format(" of {} ({}{}{})", format_bytes(static_cast<double>(profile.granularity)),
                           format_bytes(profile.distinct * static_cast<double>(profile.granularity)),
                           range.empty() ? "" : ", ", range);
    else if (!range.empty())
        out += fmt::format(" ({})", range);
    out += fmt::format(", method {}, model {}\n", profile.method, profile.model);
    if (profile.sampled)
        out +=
            fmt::format("sampled: {} samples, one in {} accesses\n",
                        format_count(profile.sampled->samples), format_count(profile.sampled->period));
    if (!profile.clock.empty() && !style.brief) out += fmt::format("clock: {}\n", profile.clock);
    return out;
}

std::string percentile_line(const Findings& findings, std::uint64_t granularity) {
    std::string out;
    for (auto [percentile, blocks] : findings.percentiles)
        out += fmt::format("{}p{:.0f} {}", out.empty() ? "  " : "   ", percentile,
                           span_of(blocks, granularity));
    return out + "\n";
}

std::string name_and_size(const CacheSpec& cache) {
    return fmt::format("{} ({})", cache.name, span_of(static_cast<double>(cache.blocks()), cache.line));
}

// Where threads invalidate each other's blocks: what of a site's misses no cache would spare it.
std::string kinds_of_misses(const Profile& profile, const SiteFindings& found) {
    if (profile.reuse.invalidated <= 0 || found.misses <= 0) return {};
    const Histogram& reuse = found.site->reuse;
    const double capacity = std::max(0.0, found.misses - reuse.cold - reuse.invalidated);
    return fmt::format("  [capacity {}, cold {}, coherence {}]", percent(capacity / found.misses),
                       percent(reuse.cold / found.misses), percent(reuse.invalidated / found.misses));
}

std::string worst_sites(const Profile& profile, const Findings& findings, const TerminalStyle& style) {
    if (findings.sites.empty()) return {};
    std::string out = heading(style, "Sites by misses in " + name_and_size(*findings.focus));
    bool timed = std::ranges::any_of(
        findings.sites, [](const SiteFindings& one) { return one.site->time_share.has_value(); });
    if (timed) out += "  (ordered by misses times the CPU time of the line)\n";
    std::size_t explained = 0;
    for (const SiteFindings& found : findings.sites) {
        if (findings.few_samples && explained >= kExplained) break;
        const Site& site = *found.site;
        std::string line = fmt::format(
            "  {:>9}  miss rate {:>8}  accesses {:>9}  {}{}", percent(found.share),
            percent(found.miss_rate), format_count(site.accesses),
            linked_place(site.frame, place_of(site), style), kinds_of_misses(profile, found));
        if (site.time_share) line += fmt::format("  {} of the time", percent_whole(*site.time_share));
        if (site.regular && *site.regular > 0.5)
            line += fmt::format(", {} on a constant stride", percent_whole(*site.regular));
        if (!found.line_use.empty()) line += fmt::format("  uses {}", found.line_use);
        out += (found.few_samples ? paint(style, "2", line + " (too few samples)") : line) + "\n";
        if (explained++ >= kExplained || (site.data.empty() && found.reason.empty())) continue;
        out += fmt::format("             {}{}{}{}\n", site.data,
                           site.member.empty() ? "" : fmt::format(" ({})", site.member),
                           site.data.empty() || found.reason.empty() ? "" : ": ", found.reason);
    }
    return out;
}

std::string tlb_table(const PageFindings& pages, const TerminalStyle& style) {
    if (pages.sizes.empty()) return {};
    std::string out =
        heading(style, pages.typical ? "TLBs (typical ones: this machine's are not known)" : "TLBs");
    for (const PageSize& size : pages.sizes)
        for (const CachePrediction& one : size.tlbs) {
            const bool full = one.cache.associativity() == one.cache.blocks();
            out += fmt::format(
                "  {:>6} pages {:>9} touched {:>6} entries {:>7}   hit {:>9}   miss {:>9}\n",
                format_bytes(static_cast<double>(size.bytes)), format_count(size.touched),
                one.cache.blocks(), full ? "full" : fmt::format("{}-way", one.cache.ways),
                percent(one.hit_rate), percent(one.miss_rate));
        }
    if (!pages.huge_pages.empty()) out += "  " + pages.huge_pages + "\n";
    return out;
}

std::string advice_on_misses(const Profile& profile, const Findings& findings,
                             const TerminalStyle& style) {
    if (findings.levels.empty() || findings.few_samples) return {};
    const LevelFindings& level = findings.levels[findings.levels.size() > 1 ? 1 : 0];
    std::string out;
    auto tell = [&](const Advice& advice, const CacheSpec& cache) {
        if (advice.rule == "nothing") {
            out += fmt::format("  {}\n", advice.what);
            return;
        }
        out += fmt::format("  {:>9}  {}: {}\n", advice.share > 0 ? percent(advice.share) : "",
                           advice.rule, advice.what);
        if (!advice.where.empty()) out += fmt::format("             {}\n", advice.where);
        std::string gain = gain_text(advice, profile, cache);
        if (!gain.empty()) out += fmt::format("             gain: {}\n", gain);
        if (!advice.help.empty())
            out += fmt::format("             {}\n", paint(style, "2", "try: " + advice.help[0]));
    };
    for (std::size_t i = 0; i < std::min(kExplained, level.advice.size()); ++i)
        tell(level.advice[i], level.rates.cache);
    // Conflicts are of one cache, most often the first level.
    for (const LevelFindings& other : findings.levels)
        for (const Advice& advice : other.advice)
            if (&other != &level && advice.rule == "pad rows") tell(advice, other.rates.cache);
    return out.empty() ? out : heading(style, "Advice for " + name_and_size(level.rates.cache)) + out;
}

// How the misses come and go over the run: a column a phase, as high as its miss rate.
std::string phase_chart(const Profile& profile, const Findings& findings, const TerminalStyle& style) {
    if (profile.phases.empty() || !findings.focus) return {};
    const CacheSpec& cache = *findings.focus;
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
    std::string out =
        heading(style, fmt::format("Phases: misses in {} over the run", name_and_size(cache)));
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

std::string process_list(const Profile& profile, const TerminalStyle& style) {
    constexpr std::size_t kMost = 12;
    constexpr unsigned kDeepest = 8;
    const std::vector<ProcessRow> rows = process_tree(profile, kMost);
    if (rows.empty()) return {};
    std::string out = heading(style, "Processes");
    for (const ProcessRow& row : rows)
        out += fmt::format("  {:{}}{}{}: {}\n", "", 2 * std::min(row.depth, kDeepest), row.name,
                           row.processes > 1 ? fmt::format(" ({} processes)", row.processes) : "",
                           process_text(row));
    return out;
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
        const bool weak = too_few_samples(row.count, row.error);
        // A large row is not known well because of where its edges lie, not for want of samples.
        const std::string why = row.count < kLargeRow * total ? std::string("too few samples")
                                                              : "± " + percent_whole(row.error / total);
        std::string line =
            fmt::format("  {:>{}} {:>9} {:>9} {}", row.label, label_width, format_count(row.count),
                        percent(row.count / total, row.error / total), drawn);
        out += (weak ? paint(style, "2", fmt::format("{} ({})", line, why)) : line) + "\n";
    }
    return out;
}

std::string cache_table(const std::vector<CachePrediction>& predictions, const Profile& profile) {
    std::string out;
    for (const CachePrediction& prediction : predictions) {
        const CacheSpec& cache = prediction.cache;
        std::string ways =
            cache.associativity() == cache.blocks() ? "full" : fmt::format("{}-way", cache.ways);
        out += fmt::format("  {:<16} {:>9} {:>7} {:>5} B lines   ", cache.name,
                           format_bytes(static_cast<double>(cache.bytes)), ways, cache.line);
        if (prediction.error > kMostStated) {
            out += not_known_text() + "\n";
            continue;
        }
        out += fmt::format("hit {:>9}   miss {:>9}", percent(prediction.hit_rate, prediction.error),
                           percent(prediction.miss_rate, prediction.error));
        if (prediction.error > 0)
            out += fmt::format("   ± {}", percent(prediction.error, prediction.error));
        if (prediction.simulated) {
            out += fmt::format("   {}", sets_known_by(profile));
            if (const std::string conflicts = conflicts_text(profile, prediction); !conflicts.empty())
                out += fmt::format(", {} by distances: {}", percent(prediction.model_miss_rate, 0),
                                   conflicts);
        }
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
    const Findings findings = findings_of(profile, caches);
    std::string out = header(profile, findings, style);
    if (profile.reuse.total() <= 0 && (!profile.time || profile.time->total() <= 0))
        return out + "\nNo accesses: nothing to show.\n" + process_list(profile, style) +
               notes(profile, style);
    if (!style.brief) out += process_list(profile, style);
    // Of a few samples one screen: what is known, and what to do for more.
    const bool whole = !style.brief && !findings.few_samples;
    if (whole && (!profile.reuse.bins.empty() || !profile.time)) {
        out += heading(style, profile.granularity == 1
                                  ? "Reuse distance (blocks between two uses of a block)"
                                  : "Reuse distance (memory touched between two uses of a block)");
        out += histogram_chart(profile.reuse, profile.granularity, style);
        if (!findings.percentiles.empty())
            out += heading(style, "Percentiles of the reuses") +
                   percentile_line(findings, profile.granularity);
        if (!findings.working_sets.empty()) out += heading(style, "Working sets");
        for (const Knee& knee : findings.working_sets)
            out += fmt::format("  a cache of {} brings misses from {} to {}\n",
                               span_of(knee.blocks, profile.granularity), percent(knee.miss_before),
                               percent(knee.miss_after));
    }
    if (profile.time && whole) {
        out += heading(style, "Time distance (accesses from one use to the next)");
        out += histogram_chart(*profile.time, 1, style);
    }
    if (!findings.levels.empty()) {
        std::vector<CachePrediction> predictions;
        for (const LevelFindings& level : findings.levels) predictions.push_back(level.rates);
        out += heading(style, "Caches") + cache_table(predictions, profile);
    }
    if (!findings.left_out.empty() && !profile.reuse.bins.empty())
        out += fmt::format("{}  ({})\n", findings.levels.empty() ? heading(style, "Caches") : "",
                           findings.left_out);
    out += tlb_table(findings.pages, style);
    if (!findings.line_use.empty()) out += heading(style, "Line use") + "  " + findings.line_use + "\n";
    out += phase_chart(profile, findings, style);
    out += worst_sites(profile, findings, style);
    out += advice_on_misses(profile, findings, style);
    if (!style.brief) out += notes(profile, style);
    return out;
}

}  // namespace revisit
