// Looks at what was sampled so far, one after the other, beside the sampling.
#pragma once

#include <atomic>
#include <thread>
#include <utility>

#include "watch/outside/tracer.h"

namespace revisit::watch::outside {

class Looks {
 public:
    using Clock = std::chrono::steady_clock;
    Looks(const RunOptions& options, Clock::time_point now)
        : options_(options), due_(now + options.look_every) {}
    ~Looks() {
        if (thread_.joinable()) thread_.join();
    }
    Looks(const Looks&) = delete;
    bool are_due(Clock::time_point now) const { return options_.look && now >= due_ && !busy_; }
    void begin(Outcome so_far, Clock::time_point now) {
        if (thread_.joinable()) thread_.join();
        due_ = std::max(due_ + options_.look_every, now);
        busy_ = true;
        thread_ = std::thread([this, outcome = std::move(so_far)]() mutable {
            options_.look(std::move(outcome));
            busy_ = false;
        });
    }

 private:
    const RunOptions& options_;
    Clock::time_point due_;
    std::atomic<bool> busy_ = false;
    std::thread thread_;
};

}  // namespace revisit::watch::outside
