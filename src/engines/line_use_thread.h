// Line use on a thread of its own: it takes as long as looking a block up (9 ns per access of a sparse
// product), and needs nothing of what else is counted.
#pragma once

#include <new>
#include <vector>

#include "core/relay.h"
#include "engines/line_use.h"

namespace revisit {

class LineUseThread {
 public:
    // `apart` false: everything is done in the caller's thread.
    LineUseThread(LineUseTally tally, bool apart)
        : tally_(std::move(tally)),
          apart_(apart),
          relay_(kMostWaiting, [this](Job& job) { count(job); }) {}

    void add(const BlockBatch& batch) {
        if (!apart_) return tally_.add(batch);
        Job job = relay_.take();
        job.blocks.assign(batch.blocks.begin(), batch.blocks.end());
        job.sites.assign(batch.sites.begin(), batch.sites.end());
        job.parts.assign(batch.parts.begin(), batch.parts.end());
        relay_.hand_over(std::move(job));
    }
    // Waits for all that was added, and may throw what the thread met. Nothing is added afterwards.
    void fill(Profile& profile) {
        relay_.finish();
        if (out_of_memory_) throw std::bad_alloc();
        tally_.fill(profile);
    }

 private:
    static constexpr std::size_t kMostWaiting = 4;
    struct Job {
        std::vector<std::uint64_t> blocks;
        std::vector<std::uint32_t> sites;
        std::vector<std::uint16_t> parts;
    };

    void count(Job& job) {
        try {
            if (!out_of_memory_) tally_.add({job.blocks, job.sites, {}, {}, job.parts});
        } catch (const std::bad_alloc&) {
            out_of_memory_ = true;
        }
    }

    LineUseTally tally_;
    bool apart_;
    bool out_of_memory_ = false;  // the thread's own until it has finished
    Relay<Job> relay_;            // last: its thread uses the others
};

}  // namespace revisit
