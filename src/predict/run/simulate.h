// Whole runs, interpreted and measured.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "predict/input/request.h"
#include "predict/run/replay.h"

namespace revisit::predict {

// Interprets the whole run: exact, as long as the data decides nothing.
struct Simulation {
    Profile profile;  // site ids are places in `references`, plus one
    std::vector<ReferencePlace> references;
    std::vector<Doubt> doubts;
    bool complete = false;
};
// Which part of a run is interpreted, and stands for the rest.
struct Plan {
    std::vector<Skip> skips;
    std::map<std::int32_t, Leap> leaps;  // control flow that need not be walked
};
enum class Attributed : bool { no, yes };  // to sites and pairs
Result<Simulation> simulate(const Program& program, const Parameters& parameters,
                            const Request& request, const Binning& bins, const Deadline& deadline,
                            std::uint64_t max_accesses, const Plan* plan = nullptr,
                            Attributed attributed = Attributed::yes);

// The whole run from a part of it, where outermost loops do the same again and again, moved on by
// whole blocks; nothing when none does, or the part is longer than `max_accesses`.
// `if_shown`: only where their text shows it, for all of them, so that nothing needs to be walked; and
// where the run has more accesses than this, and the part is much less.
struct Repetition {
    struct Loop {
        std::uint32_t line = 0;
        std::int64_t period = 1, shown = 0, iterations = 0;
    };
    Simulation run;
    std::vector<Loop> loops;
};
Result<std::optional<Repetition>> simulate_repeating(const Program& program,
                                                     const Parameters& parameters,
                                                     const Request& request, const Deadline& deadline,
                                                     std::uint64_t max_accesses,
                                                     std::optional<std::uint64_t> if_shown = {});

}  // namespace revisit::predict
