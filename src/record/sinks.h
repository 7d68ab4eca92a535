// Where a process's accesses go: into an engine, for a profile, or into a trace.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "record/consume.h"
#include "revisit/analyze.h"
#include "revisit/profile.h"
#include "revisit/trace.h"

namespace revisit::record {

using TakeProfile = std::function<Result<void>(std::uint32_t pid, Profile profile)>;

// Analyses while the program runs; `take` gets the explained profile when the process has ended.
Result<std::unique_ptr<ProcessSink>> make_profile_sink(const AnalyzeOptions& options, TakeProfile take);

// The same for a program that samples itself (record/clang/sampler.c): adds its samples up.
std::unique_ptr<ProcessSink> make_sampled_sink(const EngineOptions& options, TakeProfile take);

// Writes a trace in revisit's own format, with all that is needed to explain a profile of it.
Result<std::unique_ptr<ProcessSink>> make_trace_sink(const std::string& path);

}  // namespace revisit::record
