// Two profiles, or two sets of runs, held against each other.
#pragma once

#include <string>
#include <vector>

#include "report/gate.h"
#include "report/terminal.h"

namespace revisit {

struct DiffOptions {
    std::vector<CacheSpec> caches;
    std::vector<Condition> fail_if;
    bool across_models = false;  // a private against a single stack, for who asks for it
    bool coarse = false;         // S over the bins of the paper on watchpoints
    std::size_t most_moved = 8;  // rows of each list of what moved
};

struct NamedChange {
    std::string name;
    FigureChange figures;
};

// One row of what moved: a distance range (shares of all accesses), a function, line or object (misses
// a run).
struct Moved {
    std::string what;
    double before = 0;
    double after = 0;
};

struct GateOutcome {
    std::string text;
    Verdict verdict = Verdict::no;
    std::vector<NamedChange> figures;  // what it looked at
};

struct Diff {
    std::uint64_t granularity = 64;
    std::size_t old_runs = 1;
    std::size_t new_runs = 1;
    Figure accuracy;           // S; its error is what noise alone may cost
    Figure smoothed_accuracy;  // S-hat
    std::vector<NamedChange> figures;
    std::vector<CacheSpec> caches;
    std::vector<FigureChange> hit_rates;  // one a cache
    std::string moved_cache;              // whose misses functions, lines and objects are counted in
    std::vector<Moved> bins;
    std::vector<Moved> functions;
    std::vector<Moved> lines;
    std::vector<Moved> objects;
    std::vector<GateOutcome> gates;
    std::vector<std::string> notes;  // what else differs, and what was done about it

    bool failed() const;
};

// S of two histograms over the bins that they have in common.
double similarity(const Histogram& before, const Histogram& after);

// Granularities must agree; each side has at least one run.
Result<Diff> compare(const std::vector<Profile>& old_runs, const std::vector<Profile>& new_runs,
                     const DiffOptions& options);

std::string diff_text(const Diff& diff, const TerminalStyle& style);
std::string diff_json(const Diff& diff);
std::string diff_markdown(const Diff& diff);

}  // namespace revisit
