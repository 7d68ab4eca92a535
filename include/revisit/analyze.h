// From a source of accesses to a profile, in one call.
//
// A source states what it offers (trace.h): ranges that any thread may read, chunks that any thread may
// decode, or a stream. An engine states what it takes. analyze() joins the two so that decoding and
// cutting to blocks happen in the threads that count, or beside them, and nothing is copied on the way
// that need not be. The profile does not depend on the way.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "revisit/cache.h"
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
    // Counted in the same pass.
    std::vector<std::uint64_t> more_granularities = {};  // Profile::granularities, beside the engine's
    // Thread i runs on core cores[i % size]; threads of a core share its stack. Empty: a core for each.
    std::vector<std::uint16_t> cores = {};
    std::optional<CacheSpec> line_use = {};  // Profile::line_use, in this cache
};

REVISIT_API Result<Profile> analyze(TraceReader& trace, const AnalyzeOptions& options = {});
// Accesses in memory, read where they lie.
REVISIT_API Result<Profile> analyze(const AccessBatch& accesses, const AnalyzeOptions& options = {});
REVISIT_API Result<Profile> analyze(std::span<const std::uint64_t> addresses,
                                    std::string_view method = "exact",
                                    const EngineOptions& options = {});

}  // namespace revisit
