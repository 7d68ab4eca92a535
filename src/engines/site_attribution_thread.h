// Attribution on a thread of its own: counting a distance and counting whose it is take about as long,
// and the second needs nothing of the first but the distances.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "engines/site_attribution.h"

namespace revisit {

class SiteAttributionThread {
 public:
    // With one thread allowed, everything is done in the caller's.
    explicit SiteAttributionThread(const EngineOptions& options);
    ~SiteAttributionThread();
    SiteAttributionThread(const SiteAttributionThread&) = delete;

    void add(const BlockBatch& batch, std::span<const std::uint32_t> distances);
    void fill(Profile& profile);  // waits for all that was added; may throw what the thread met

 private:
    struct Job {
        std::vector<std::uint64_t> blocks;
        std::vector<std::uint32_t> sites, distances;
        std::vector<std::uint8_t> flags;
    };
    void work();
    void hand_over();
    void stop();

    SiteAttribution attribution_;
    bool apart_;
    Job filling_;
    std::mutex guard_;
    std::condition_variable changed_;
    std::deque<Job> waiting_;  // at most kMostWaiting
    std::vector<Job> spare_;
    bool stopping_ = false;
    bool out_of_memory_ = false;
    std::thread thread_;
};

}  // namespace revisit
