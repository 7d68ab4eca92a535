// What the private model counts beside its stacks, on a thread of its own where there may be several:
// the one stack that all threads would share, what shared caches see behind private ones, and who took
// which block from whom. None is needed to go on, and together they take a third of the time.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/relay.h"
#include "engines/exact.h"
#include "engines/private_filters.h"
#include "engines/sharing.h"
#include "revisit/engine.h"

namespace revisit {

class SharedStack {
 public:
    explicit SharedStack(const EngineOptions& options);

    // Blocks in the order of all threads' accesses.
    Result<void> add(std::span<const std::uint64_t> blocks);
    // An invalidated reuse.
    void add_invalidated(std::uint64_t block, const SharingTally::Touch& writer,
                         const SharingTally::Touch& victim, bool victim_writes) {
        if (sharing_) filling_.invalidated.push_back({block, writer, victim, victim_writes});
    }
    // Events of the private caches in front of a shared one.
    bool follows(std::uint64_t block) const { return filters_ && filters_->follows(block); }
    void add_event(const PrivateFilters::Event& event) { filling_.events.push_back(event); }
    // Into Profile::shared and Profile::sharing. Nothing is added afterwards.
    Result<void> fill(Profile& profile);

 private:
    struct Invalidated {
        std::uint64_t block;
        SharingTally::Touch writer, victim;
        bool victim_writes;
    };
    struct Job {
        std::vector<std::uint64_t> blocks;
        std::vector<Invalidated> invalidated;
        std::vector<PrivateFilters::Event> events;
    };
    void count(Job& job);
    void hand_over();

    bool apart_;
    std::unique_ptr<ExactEngine> engine_;
    std::optional<SharingTally> sharing_;
    std::optional<PrivateFilters> filters_;
    std::optional<Error> trouble_;  // the thread's own until it has finished
    Job filling_;
    Relay<Job> relay_;  // last: its thread uses the others
};

}  // namespace revisit
