// Work for a thread of its own: filled jobs go over through a short queue and come back empty, so that
// memory stays bounded and is not asked for again with every job. The thread starts with the first job.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace revisit {

template <class Job>
class Relay {
 public:
    // `work` runs on the thread, a job at a time, in their order, and does not throw.
    Relay(std::size_t most_waiting, std::function<void(Job&)> work)
        : most_waiting_(most_waiting), work_(std::move(work)) {}
    ~Relay() { finish(); }
    Relay(const Relay&) = delete;

    // A job to fill: one that was done, with what it held, or a new one. Waits while too many wait.
    Job take() {
        std::unique_lock lock(guard_);
        changed_.wait(lock, [&] { return waiting_.size() < most_waiting_; });
        if (spare_.empty()) return {};
        Job job = std::move(spare_.back());
        spare_.pop_back();
        return job;
    }

    void hand_over(Job job) {
        std::lock_guard lock(guard_);
        if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
        waiting_.push_back(std::move(job));
        changed_.notify_all();
    }

    // Returns when all jobs are done; more may come.
    void drain() {
        std::unique_lock lock(guard_);
        changed_.wait(lock, [&] { return waiting_.empty() && !working_; });
    }

    // Returns when all jobs are done; none may come after it.
    void finish() {
        {
            std::lock_guard lock(guard_);
            finishing_ = true;
            changed_.notify_all();
        }
        if (thread_.joinable()) thread_.join();
    }

 private:
    void run() {
        std::unique_lock lock(guard_);
        for (;;) {
            changed_.wait(lock, [&] { return finishing_ || !waiting_.empty(); });
            if (waiting_.empty()) return;
            Job job = std::move(waiting_.front());
            waiting_.pop_front();
            working_ = true;
            changed_.notify_all();
            lock.unlock();
            work_(job);
            lock.lock();
            working_ = false;
            spare_.push_back(std::move(job));
            changed_.notify_all();
        }
    }

    const std::size_t most_waiting_;
    const std::function<void(Job&)> work_;
    std::mutex guard_;
    std::condition_variable changed_;
    std::deque<Job> waiting_;
    std::vector<Job> spare_;
    bool finishing_ = false;
    bool working_ = false;
    std::thread thread_;
};

}  // namespace revisit
