// One stream of jobs for several workers: each sees every job, in order, on a thread of its own and at
// its own pace. A job that all have seen comes back to be filled again, so that memory stays bounded
// and is not asked for with every job. A worker that falls behind holds the others up only when `most`
// jobs are out. Threads start with the first job.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <span>
#include <thread>
#include <utility>
#include <vector>

namespace revisit {

template <class Job>
class Broadcast {
 public:
    using Work = std::function<void(const Job&)>;  // does not throw

    using Weigh = std::size_t (*)(const Job&);

    // At most `most` jobs are out: being filled, waiting, or worked on. Where jobs differ in size, no
    // more are filled while those that wait or are worked on weigh `most_weight`.
    Broadcast(
        std::size_t most, std::vector<Work> workers, std::size_t most_weight = 1,
        Weigh weigh = [](const Job&) { return std::size_t{0}; })
        : most_(most), most_weight_(most_weight), weigh_(weigh), workers_(std::move(workers)) {}
    ~Broadcast() { finish(); }
    Broadcast(const Broadcast&) = delete;
    Broadcast& operator=(const Broadcast&) = delete;

    // A job to fill: one that was done, with what it held, or a new one. Waits while too many are out.
    Job take() {
        std::unique_lock lock(guard_);
        emptied_.wait(lock, [&] { return out_ < most_ && weight_ < most_weight_; });
        out_++;
        if (spare_.empty()) return {};
        Job job = std::move(spare_.back());
        spare_.pop_back();
        return job;
    }

    void hand_over(std::span<Job> jobs) {
        if (jobs.empty()) return;
        std::lock_guard lock(guard_);
        for (Job& job : jobs) {
            weight_ += weigh_(job);
            queue_.push_back({std::move(job), workers_.size()});
        }
        end_ += jobs.size();
        while (threads_.size() < workers_.size())
            threads_.emplace_back([this, worker = threads_.size()] { run(worker); });
        filled_.notify_all();
    }

    // Returns when all jobs are done; none may come after it.
    void finish() {
        {
            std::lock_guard lock(guard_);
            finishing_ = true;
            filled_.notify_all();
        }
        for (std::thread& thread : threads_)
            if (thread.joinable()) thread.join();
    }

 private:
    struct Queued {
        Job job;
        std::size_t left;  // workers that have not seen it
    };

    // References into the queue stay good while others are pushed and popped at its ends.
    void run(std::size_t worker) {
        std::unique_lock lock(guard_);
        for (std::size_t next = 0;; next++) {
            filled_.wait(lock, [&] { return finishing_ || next < end_; });
            if (next == end_) return;
            Queued& mine = queue_[next - (end_ - queue_.size())];
            lock.unlock();
            workers_[worker](mine.job);
            lock.lock();
            if (--mine.left != 0) continue;
            // Each worker goes in order, so the first ones are done first.
            while (!queue_.empty() && queue_.front().left == 0) {
                weight_ -= weigh_(queue_.front().job);
                spare_.push_back(std::move(queue_.front().job));
                queue_.pop_front();
                out_--;
            }
            emptied_.notify_one();
        }
    }

    const std::size_t most_, most_weight_;
    const Weigh weigh_;
    const std::vector<Work> workers_;
    std::mutex guard_;  // of all below
    std::condition_variable filled_, emptied_;
    std::deque<Queued> queue_;
    std::vector<Job> spare_;
    std::size_t end_ = 0;  // jobs handed over in all
    std::size_t out_ = 0, weight_ = 0;
    bool finishing_ = false;
    std::vector<std::thread> threads_;
};

}  // namespace revisit
