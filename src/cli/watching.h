// Options of `profile --method watch`.
#pragma once

#include "cli/recording.h"
#include "watch/watch.h"

namespace revisit {

struct WatchingOptions {
    std::string every = "1ms";
    std::uint64_t window = 4096;
    unsigned watchpoints = 0;  // 0 = as many as there are
    std::string weights = "inverse";
    std::uint64_t check = 0;

    void declare(CLI::App& app);
    // Fills the sampler's part of `run`.
    Result<watch::WatchOptions> apply(const EngineOptions& engine, bool granularity_given,
                                      record::RunOptions& run) const;
};

}  // namespace revisit
