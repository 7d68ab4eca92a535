// Which threads rest: their events are closed for a while, as they are switched often.
//
// How often is asked every ten milliseconds at first, every twenty while some rest, and less and less
// often where none does. Some threads at a time: to ask takes 6 us each.
#pragma once

#include <algorithm>
#include <memory>
#include <set>
#include <unordered_map>
#include <vector>

#include "watch/outside/sampler.h"

namespace revisit::watch::outside {

class Resting {
 public:
    explicit Resting(Sampler& sampler) : sampler_(sampler) {}

    int patience() const { return every_; }  // milliseconds
    void begins(Task& task) {
        awake_.push_back(&task);
        every_ = kOften;
    }
    // Whether it rested.
    bool ends(Task& task) {
        std::erase(awake_, &task);
        return resting_.erase(&task) != 0;
    }
    // Calls `wakes` with each thread whose events are open again.
    template <class Wakes>
    void look(std::uint64_t now, Wakes&& wakes) {
        if (now - looked_ < static_cast<std::uint64_t>(every_) * 1000000) return;
        looked_ = now;
        every_ = std::min(2 * every_, kSeldom);
        for (Task* task : std::vector(resting_.begin(), resting_.end())) {
            every_ = kWhileResting;
            if (!sampler_.end_rest(*task)) continue;
            resting_.erase(task);
            awake_.push_back(task);
            wakes(*task);
        }
        for (std::size_t i = std::min(kAtOnce, awake_.size()); i > 0; i--) {
            Task* task = awake_[next_++ % awake_.size()];
            if (task->process->forks.often || !sampler_.wants_rest(*task)) continue;
            sampler_.begin_rest(*task);
            std::erase(awake_, task);
            resting_.insert(task);
        }
    }

 private:
    static constexpr int kOften = 10, kWhileResting = 20, kSeldom = 160;
    static constexpr std::size_t kAtOnce = 16;

    Sampler& sampler_;
    std::vector<Task*> awake_;  // with events
    std::set<Task*> resting_;
    std::size_t next_ = 0;
    std::uint64_t looked_ = 0;
    int every_ = kOften;
};

}  // namespace revisit::watch::outside
