// What the other rooms know of the cluster: cluster.cpp explains how it works.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "revisit/engine.h"

namespace revisit {

struct ClusterReport {
    bool works = false;
    std::string detail;
};
ClusterReport describe_cluster();

// Run by every rank of `mpirun`, with the same arguments. Rank 0 gets the profile, the others nothing.
// After an Error the caller ends its process, which ends the job; where several ranks fail alike, all
// but one have an empty message. Granularity 0: what the trace says, or 64; threads 0: one a rank.
Result<std::optional<Profile>> analyze_on_cluster(const std::string& trace, std::string_view format,
                                                  EngineOptions options);

}  // namespace revisit
