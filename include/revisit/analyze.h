// From accesses to a profile: of a source in one call, or batch by batch as they come.
//
// A source states what it offers (trace.h): ranges that any thread may read, chunks that any thread may
// decode, or a stream. An engine states what it takes. analyze() joins the two so that decoding and
// cutting to blocks happen in the threads that count, or beside them, and nothing is copied on the way
// that need not be. The profile does not depend on the way.
//
// Who has no source but gets accesses from elsewhere, a simulator or a tracer, adds them himself:
//
//     auto analysis = revisit::Analysis::begin(options);
//     while (...) analysis->add(batch);
//     auto profile = analysis->finish();
#pragma once

#include <functional>
#include <memory>
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
    AccessProgress progress = {};  // through a source; whoever adds batches knows it himself
    // Sees all accesses as well, in order, before they are cut: for simulators beside the engine.
    std::function<Result<void>(const AccessBatch&)> also = {};
    // Counted in the same pass.
    std::vector<std::uint64_t> more_granularities = {};  // Profile::granularities, beside the engine's
    // Thread i runs on core cores[i % size]; threads of a core share its stack. Empty: a core for each.
    std::vector<std::uint16_t> cores = {};
    std::optional<CacheSpec> line_use = {};  // Profile::line_use, in this cache
    // Simulated beside an engine of one stack: Profile::caches. Those with lines of another size than
    // the engine's granularity, without sets or of more than 64 ways are left out.
    std::vector<CacheSpec> caches = {};
};

// What is counted, from the first access to the profile. With EngineOptions::streamed it has threads
// of its own, up to EngineOptions::threads of them for the engine: add() copies blocks and returns, and
// an error may come out of a later call.
class REVISIT_API Analysis {
 public:
    static Result<Analysis> begin(const AnalyzeOptions& options = {});
    Analysis(Analysis&&) noexcept;
    Analysis& operator=(Analysis&&) noexcept;
    ~Analysis();

    Result<void> add(const AccessBatch& accesses);
    // Blocks of the granularity, cut already: an error where options ask for what only accesses show.
    Result<void> add_blocks(const BlockBatch& blocks);
    // All of a source, or what is left of it.
    Result<void> add(TraceReader& trace);
    // Once, after which nothing is added.
    Result<Profile> finish();

 private:
    explicit Analysis(std::unique_ptr<class Pass> pass);
    std::unique_ptr<class Pass> pass_;
};

REVISIT_API Result<Profile> analyze(TraceReader& trace, const AnalyzeOptions& options = {});
// Accesses in memory, read where they lie.
REVISIT_API Result<Profile> analyze(const AccessBatch& accesses, const AnalyzeOptions& options = {});
REVISIT_API Result<Profile> analyze(std::span<const std::uint64_t> addresses,
                                    std::string_view method = "exact",
                                    const EngineOptions& options = {});

}  // namespace revisit
