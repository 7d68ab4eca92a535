// From the sampled processes of a run to one profile.
#pragma once

#include "record/run.h"
#include "watch/estimate/estimate.h"
#include "watch/outside/tracer.h"

namespace revisit::watch::outside {

struct ProfileOptions {
    EstimateOptions estimate;
    const FunctionCounts* counts = nullptr;
    bool contexts = true, objects = true;
    bool whole = false;  // one profile of all processes, not of the program that did most
};

// The profile of the program that took most processor time, all its processes together; `processes` has
// all of the run.
Result<Profile> profile_of(Outcome& outcome, const ProfileOptions& options);

// How the run ended, as other recorders give it.
record::RunOutcome summary_of(const Outcome& outcome);

}  // namespace revisit::watch::outside
