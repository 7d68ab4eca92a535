// From time distances to reuse distances: models of one idea, see docs/models.md.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "revisit/error.h"
#include "revisit/histogram.h"

namespace revisit {

enum class TimeModel : std::uint8_t {
    phases,      // expected, asked of each phase of the run by itself. O(phases * L)
    expected,    // the mean number of distinct blocks in a window: StatStack, AET. O(L)
    shen,        // the same mean on the paper's bars, with a binomial spread around it. O(L)
    shen_basic,  // the paper's reference: bars of width 1, binomials term by term. Slow
};

struct TimeModelEntry {
    std::string_view name;
    std::string_view summary;
    TimeModel model;
};
REVISIT_API std::span<const TimeModelEntry> time_models();
REVISIT_API Result<TimeModel> parse_time_model(std::string_view name);

// A stretch of the run and the time distances of the reuses that end in it.
struct TimePhase {
    double begin = 0;  // in accesses
    double end = 0;
    Histogram time;
};

// The reuse distances of a run whose phases follow each other from access 0 on.
REVISIT_API Histogram reuse_from_phases(std::span<const TimePhase> phases, double distinct,
                                        const Binning& bins);

// The reuse distances that `time` implies when `distinct` blocks exist (0 = unknown), cut by `bins`.
// Cold and invalidated counts carry over and the finite counts sum to those of `time`. Without phases,
// the model of phases is the expected one.
REVISIT_API Result<Histogram> reuse_from_time(const Histogram& time, double distinct, TimeModel model,
                                              const Binning& bins);

}  // namespace revisit
