// Attribution on a thread of its own: counting a distance and counting whose it is take about as long,
// and the second needs nothing of the first but the distances.
#pragma once

#include <vector>

#include "core/relay.h"
#include "engines/site_attribution.h"

namespace revisit {

class SiteAttributionThread {
 public:
    // With one thread allowed, everything is done in the caller's.
    explicit SiteAttributionThread(const EngineOptions& options)
        : SiteAttributionThread(options, SiteAttribution(options)) {}
    // Goes on with what was attributed before.
    SiteAttributionThread(const EngineOptions& options, SiteAttribution before);

    void add(const BlockBatch& batch, std::span<const std::uint32_t> distances,
             std::span<const std::uint32_t> use_sites);
    // Both wait for all that was added, and may throw what the thread met. Nothing is added afterwards.
    void fill(Profile& profile);
    SiteAttribution take();
    // Waits for all that was added; more may be.
    void add_so_far(SiteOctaves& out);

 private:
    struct Job {
        std::vector<std::uint32_t> sites, distances, use_sites;
        std::vector<std::uint8_t> flags;
    };
    void count(Job& job);
    void finish();

    SiteAttribution attribution_;
    bool apart_;
    bool out_of_memory_ = false;  // the thread's own until it has finished
    Job filling_;
    Relay<Job> relay_;  // last: its thread uses the others
};

}  // namespace revisit
