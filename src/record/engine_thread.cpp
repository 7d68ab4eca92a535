#include "record/engine_thread.h"

#include <utility>

namespace revisit::record {

Result<void> EngineThread::add(const BlockBatch& batch) {
    Job job;
    {
        std::unique_lock lock(guard_);
        if (!thread_.joinable()) thread_ = std::thread([this] { work(); });
        changed_.wait(lock, [&] { return failure_ || waiting_.size() < kMostWaiting; });
        if (failure_) return std::unexpected(*failure_);
        if (!spare_.empty()) {
            job = std::move(spare_.back());
            spare_.pop_back();
        }
    }
    job.blocks.assign(batch.blocks.begin(), batch.blocks.end());
    job.sites.assign(batch.sites.begin(), batch.sites.end());
    job.threads.assign(batch.threads.begin(), batch.threads.end());
    job.flags.assign(batch.flags.begin(), batch.flags.end());
    std::lock_guard lock(guard_);
    waiting_.push_back(std::move(job));
    changed_.notify_all();
    return {};
}

void EngineThread::work() {
    std::unique_lock lock(guard_);
    for (;;) {
        changed_.wait(lock, [&] { return stopping_ || !waiting_.empty(); });
        if (waiting_.empty()) return;
        Job job = std::move(waiting_.front());
        waiting_.pop_front();
        changed_.notify_all();
        if (failure_) continue;
        lock.unlock();
        Result<void> added = engine_->add({job.blocks, job.sites, job.threads, job.flags});
        lock.lock();
        if (!added) failure_ = added.error();
        spare_.push_back(std::move(job));
    }
}

void EngineThread::stop() {
    {
        std::lock_guard lock(guard_);
        stopping_ = true;
        changed_.notify_all();
    }
    if (thread_.joinable()) thread_.join();
}

Result<Profile> EngineThread::finish() {
    stop();
    if (failure_) return std::unexpected(*failure_);
    return engine_->finish();
}

}  // namespace revisit::record
