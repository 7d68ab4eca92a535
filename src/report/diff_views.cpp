// A comparison as text for a terminal, JSON for a program, Markdown for a pull request.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "report/diff.h"
#include "report/words.h"
#include "revisit/units.h"

namespace revisit {
namespace {

using Json = nlohmann::ordered_json;

double change_error(const FigureChange& figures) {
    return std::hypot(figures.old_value.error, figures.new_value.error);
}

std::string change_text(const FigureChange& figures) {
    Unit unit = figures.new_value.unit;
    double change = figures.new_value.value - figures.old_value.value;
    std::string out = show_change(unit, change);
    if (unit != Unit::share && change != 0 && figures.old_value.value > 0)
        out += fmt::format(" ({}{:.1f} %)", change < 0 ? "−" : "+",
                           100 * std::fabs(change) / figures.old_value.value);
    if (double error = change_error(figures); error > 0)
        out += fmt::format(
            " ± {}", unit == Unit::share ? fmt::format("{:.2f}", 100 * error) : show({unit, error, 0}));
    return out;
}

const char* verdict_word(Verdict verdict) {
    switch (verdict) {
        case Verdict::holds:
            return "FAIL";
        case Verdict::within_noise:
            return "within noise";
        case Verdict::no:
            return "ok";
    }
    return "";
}

std::string gate_figures(const GateOutcome& gate) {
    std::string out;
    for (const auto& [name, figures] : gate.figures) {
        if (!out.empty()) out += "; ";
        if (figures.new_value.unit == Unit::score) {
            out += fmt::format("{} {}", name, show(figures.new_value));
            if (figures.new_value.error > 0)
                out += fmt::format(" (noise may cost {:.4f})", figures.new_value.error);
        } else {
            out += fmt::format("{} {} → {}, {}", name, show(figures.old_value), show(figures.new_value),
                               change_text(figures));
        }
    }
    return out;
}

std::string bold(const TerminalStyle& style, const std::string& text) {
    return style.color ? "\033[1m" + text + "\033[0m" : text;
}

std::string cache_words(const CacheSpec& cache) {
    std::string ways =
        cache.associativity() == cache.blocks() ? "full" : fmt::format("{}-way", cache.ways);
    return fmt::format("{} {}", format_bytes(static_cast<double>(cache.bytes)), ways);
}

// fmt pads by code points but "−" and "→" are single ones, so widths come out right.
std::string moved_text(const TerminalStyle& style, const std::string& title,
                       const std::vector<Moved>& rows, Unit unit) {
    if (rows.empty()) return {};
    std::string out = "\n" + bold(style, title) + "\n";
    for (const Moved& row : rows)
        out += fmt::format("  {:>14}  {:>9} → {:<9}  {}\n", show_change(unit, row.after - row.before),
                           show({unit, row.before, 0}), show({unit, row.after, 0}), row.what);
    return out;
}

// Names of profiled programs are data: in a table cell of Markdown nothing in them may be markup.
std::string cell(const std::string& text) {
    std::string out;
    for (char c : text) {
        if (c == '\n' || c == '\r') c = ' ';
        if (c == '<') {
            out += "&lt;";
        } else if (c == '&') {
            out += "&amp;";
        } else {
            if (std::string_view("\\`*_[]|~").find(c) != std::string_view::npos) out += '\\';
            out += c;
        }
    }
    return out;
}

std::string moved_markdown(const std::string& title, const std::vector<Moved>& rows, Unit unit) {
    if (rows.empty()) return {};
    std::string out = fmt::format("\n{}\n\n| | old | new | change |\n|---|--:|--:|--:|\n", title);
    for (const Moved& row : rows)
        out += fmt::format("| {} | {} | {} | {} |\n", cell(row.what), show({unit, row.before, 0}),
                           show({unit, row.after, 0}), show_change(unit, row.after - row.before));
    return out;
}

std::string runs_words(const Diff& diff) {
    if (diff.old_runs == 1 && diff.new_runs == 1) return {};
    return fmt::format("{} old and {} new runs", diff.old_runs, diff.new_runs);
}

Json figures_json(const FigureChange& figures) {
    Json out = {{"old", figures.old_value.value}, {"new", figures.new_value.value}};
    if (double error = change_error(figures); error > 0) {
        out["old_error"] = figures.old_value.error;
        out["new_error"] = figures.new_value.error;
        out["change_error"] = error;
    }
    return out;
}

Json moved_json(const std::vector<Moved>& rows) {
    Json out = Json::array();
    for (const Moved& row : rows)
        out.push_back({{"what", row.what}, {"old", row.before}, {"new", row.after}});
    return out;
}

}  // namespace

std::string diff_text(const Diff& diff, const TerminalStyle& style) {
    std::string out = fmt::format("S {:.4f}   S_hat {:.4f}   (1 = the same shares at every distance)\n",
                                  diff.accuracy.value, diff.smoothed_accuracy.value);
    if (diff.accuracy.error > 0)
        out += fmt::format("noise alone may cost S {:.4f}\n", diff.accuracy.error);
    if (std::string runs = runs_words(diff); !runs.empty()) out += runs + ", means shown\n";
    for (const std::string& note : diff.notes) out += "note: " + note + "\n";
    out += "\n";
    std::size_t width = 18;
    for (const auto& [name, figures] : diff.figures) width = std::max(width, name.size());
    for (const auto& [name, figures] : diff.figures)
        out += fmt::format("  {:<{}} {:>10} → {:<10}  {}\n", name, width, show(figures.old_value),
                           show(figures.new_value), change_text(figures));
    if (!diff.caches.empty()) out += "\n" + bold(style, "Hit rates") + "\n";
    for (std::size_t i = 0; i < diff.caches.size(); ++i)
        out += fmt::format("  {:<{}} {:>10} → {:<10}  {:<14} {}\n", diff.caches[i].name, width,
                           show(diff.hit_rates[i].old_value), show(diff.hit_rates[i].new_value),
                           change_text(diff.hit_rates[i]), cache_words(diff.caches[i]));
    out += moved_text(style, "Distances that moved (share of accesses)", diff.bins, Unit::share);
    std::string misses = fmt::format(" (misses in {})", diff.moved_cache);
    out += moved_text(style, "Functions that moved" + misses, diff.functions, Unit::count);
    out += moved_text(style, "Lines that moved" + misses, diff.lines, Unit::count);
    out += moved_text(style, "Data that moved" + misses, diff.objects, Unit::count);
    if (!diff.gates.empty()) out += "\n" + bold(style, "Fail if") + "\n";
    for (const GateOutcome& gate : diff.gates)
        out += fmt::format("  {:<12}  {}    {}\n", verdict_word(gate.verdict), gate.text,
                           gate_figures(gate));
    return out;
}

std::string diff_json(const Diff& diff) {
    Json out = {{"schema", "revisit/diff@1"}, {"granularity", diff.granularity},
                {"old_runs", diff.old_runs},  {"new_runs", diff.new_runs},
                {"S", diff.accuracy.value},   {"S_hat", diff.smoothed_accuracy.value}};
    if (diff.accuracy.error > 0) out["S_noise"] = diff.accuracy.error;
    for (const auto& [name, figures] : diff.figures) out["metrics"][name] = figures_json(figures);
    out["caches"] = Json::array();
    for (std::size_t i = 0; i < diff.caches.size(); ++i)
        out["caches"].push_back({{"name", diff.caches[i].name},
                                 {"bytes", diff.caches[i].bytes},
                                 {"ways", diff.caches[i].associativity()},
                                 {"line", diff.caches[i].line},
                                 {"hit_rate", figures_json(diff.hit_rates[i])}});
    out["moved"] = {{"cache", diff.moved_cache},
                    {"bins", moved_json(diff.bins)},
                    {"functions", moved_json(diff.functions)},
                    {"lines", moved_json(diff.lines)},
                    {"objects", moved_json(diff.objects)}};
    out["fail_if"] = Json::array();
    for (const GateOutcome& gate : diff.gates) {
        Json entry = {{"condition", gate.text},
                      {"holds", gate.verdict == Verdict::holds},
                      {"within_noise", gate.verdict == Verdict::within_noise}};
        for (const auto& [name, figures] : gate.figures)
            entry["figures"][name] = figures.new_value.unit == Unit::score
                                         ? Json{{"new", figures.new_value.value}}
                                         : figures_json(figures);
        out["fail_if"].push_back(std::move(entry));
    }
    if (!diff.notes.empty()) out["notes"] = diff.notes;
    out["failed"] = diff.failed();
    return out.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string diff_markdown(const Diff& diff) {
    std::string out = fmt::format(
        "### Memory reuse {}\n\nS {:.4f}, Ŝ {:.4f} (1 = the same shares at every distance)",
        diff.failed() ? "got worse" : "compared", diff.accuracy.value, diff.smoothed_accuracy.value);
    if (diff.accuracy.error > 0)
        out += fmt::format("; noise alone may cost {:.4f}", diff.accuracy.error);
    if (std::string runs = runs_words(diff); !runs.empty()) out += "; " + runs;
    out += ".\n";
    for (const std::string& note : diff.notes) out += "\nNote: " + cell(note) + ".\n";
    if (!diff.gates.empty()) {
        out += "\n| | fail if | seen |\n|---|---|---|\n";
        for (const GateOutcome& gate : diff.gates) {
            const char* word = gate.verdict == Verdict::holds          ? "**fails**"
                               : gate.verdict == Verdict::within_noise ? "within noise"
                                                                       : "ok";
            out += fmt::format("| {} | {} | {} |\n", word, cell(gate.text), cell(gate_figures(gate)));
        }
    }
    out += "\n| | old | new | change |\n|---|--:|--:|--:|\n";
    for (std::size_t i = 0; i < diff.caches.size(); ++i)
        out += fmt::format("| {} hit rate ({}) | {} | {} | {} |\n", cell(diff.caches[i].name),
                           cache_words(diff.caches[i]), show(diff.hit_rates[i].old_value),
                           show(diff.hit_rates[i].new_value), change_text(diff.hit_rates[i]));
    for (const auto& [name, figures] : diff.figures)
        out += fmt::format("| {} | {} | {} | {} |\n", cell(name), show(figures.old_value),
                           show(figures.new_value), change_text(figures));
    std::string moved =
        moved_markdown("Distances, share of accesses", diff.bins, Unit::share) +
        moved_markdown("Functions, misses in " + cell(diff.moved_cache), diff.functions, Unit::count) +
        moved_markdown("Lines, misses in " + cell(diff.moved_cache), diff.lines, Unit::count) +
        moved_markdown("Data, misses in " + cell(diff.moved_cache), diff.objects, Unit::count);
    if (!moved.empty()) out += "\n<details><summary>What moved</summary>\n" + moved + "\n</details>\n";
    return out;
}

}  // namespace revisit
