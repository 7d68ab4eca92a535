// Whole runs, interpreted and measured.
#pragma once

#include <optional>
#include <vector>

#include "predict/request.h"

namespace revisit::predict {

// Interprets the whole run: exact, as long as the data decides nothing.
struct Simulation {
    Profile profile;  // site ids are places in `references`, plus one
    std::vector<ReferencePlace> references;
    std::vector<Doubt> doubts;
    bool complete = false;
};
// What is accessed while `counted` says so counts `times` times.
struct Again {
    bool counted = false;
    double times = 1;
};
Result<Simulation> simulate(const Program& program, const Parameters& parameters,
                            const Request& request, const Binning& bins, const Deadline& deadline,
                            std::uint64_t max_accesses,
                            const decltype(RunOptions::outermost)& outermost = {},
                            const Again* again = nullptr);

// The whole run from a part of it, where an outermost loop does the same again and again, moved on by
// whole blocks; nothing when none does, or the part is longer than `max_accesses`.
struct Repetition {
    Simulation run;
    std::uint32_t line = 0;  // of the loop
    std::int64_t period = 1, shown = 0, iterations = 0;
};
Result<std::optional<Repetition>> simulate_repeating(const Program& program,
                                                     const Parameters& parameters,
                                                     const Request& request, const Deadline& deadline,
                                                     std::uint64_t max_accesses);

}  // namespace revisit::predict
