// From a source of accesses to a profile, in one call.
//
// A source states what it offers (trace.h): ranges that any thread may read, chunks that any thread may
// decode, or a stream. An engine states what it takes. analyze() joins the two so that decoding and
// cutting to blocks happen in the threads that count, or beside them, and nothing is copied on the way
// that need not be. The profile does not depend on the way.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "revisit/engine.h"
#include "revisit/profile.h"
#include "revisit/source.h"

namespace revisit {

struct AnalyzeOptions {
    std::string method = "exact";
    EngineOptions engine;
    AccessProgress progress = {};
    // Sees all accesses as well, in order, before they are cut: for simulators beside the engine.
    std::function<Result<void>(const AccessBatch&)> also = {};
};

REVISIT_API Result<Profile> analyze(TraceReader& trace, const AnalyzeOptions& options = {});
// Accesses in memory, read where they lie.
REVISIT_API Result<Profile> analyze(const AccessBatch& accesses, const AnalyzeOptions& options = {});
REVISIT_API Result<Profile> analyze(std::span<const std::uint64_t> addresses,
                                    std::string_view method = "exact",
                                    const EngineOptions& options = {});

}  // namespace revisit
