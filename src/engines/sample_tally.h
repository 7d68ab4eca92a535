// From samples that have ended to a profile of the whole run, for whoever follows them: the engine on a
// trace, or the recorder inside the program.
#pragma once

#include <cstdint>
#include <map>

#include "engines/sharing.h"
#include "engines/tally.h"
#include "engines/thread_counter.h"
#include "revisit/engine.h"

namespace revisit {

enum class SampleOutcome : std::uint8_t { reused, cold, invalidated };

struct FinishedSample {
    std::uint64_t time = 0;  // accesses from the use to the reuse
    std::uint32_t distance = 0;
    std::uint32_t use_site = 0;
    std::uint32_t site = 0;  // of the reuse; of the use when there is none
    std::uint16_t thread = 0;
    SampleOutcome outcome = SampleOutcome::cold;
    bool write = false;
    // Invalidated: the block, the parts that the reuse touched, and the write that took it.
    bool writer_is_known = false;
    std::uint16_t parts = 0;
    BlockTable::Touch writer = {};
    std::uint64_t block = 0;
};

struct SampleCounts {
    std::uint64_t accesses = 0;  // of the run
    std::uint64_t analyzed = 0;
    std::uint64_t samples = 0;
    std::uint64_t pruned = 0;
};

class SampleTally {
 public:
    explicit SampleTally(const EngineOptions& options) : options_(options), reuse_(options.bins) {}

    void add(const FinishedSample& sample);
    // Scaled to the whole run, with 95 % half-widths.
    Profile profile(const SampleCounts& counts) const;

 private:
    bool is_private() const { return options_.model == StackModel::private_; }

    EngineOptions options_;
    ThreadCounter reuse_;
    SmallCounter time_;
    std::map<std::uint16_t, ThreadCounter> threads_;
    Attribution attribution_;
    SharingTally sharing_;
    bool has_sharing_ = false;
};

}  // namespace revisit
