// Options of `profile --method watch`.
#pragma once

#include "cli/recording.h"
#include "watch/watch.h"

namespace revisit {

struct WatchingOptions {
    std::string every = "500us";
    std::string overhead = "4%";
    std::uint64_t window = 1024;
    unsigned watchpoints = 0;  // 0 = as many as there are
    std::string weights = "inverse";
    std::string clock = "run";
    std::uint64_t check = 0;
    int pid = 0;  // of a process to attach to; 0 = none
    // Runs at most, until there are samples enough. Text, because CLI11 sets numbers of flags that are
    // not given to 0.
    std::string repeat = "1";
    unsigned runs() const { return static_cast<unsigned>(std::stoul(repeat)); }

    void declare(CLI::App& app);
    Result<watch::WatchOptions> apply(const EngineOptions& engine, bool granularity_given) const;
    // For --clock count: the second run.
    Result<watch::FunctionCounts> count(const record::RunOptions& watched,
                                        std::uint64_t granularity) const;
};

}  // namespace revisit
