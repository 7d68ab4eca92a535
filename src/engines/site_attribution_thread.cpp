#include "engines/site_attribution_thread.h"

#include <new>

namespace revisit {
namespace {

constexpr std::size_t kJob = std::size_t{1} << 15;  // accesses
constexpr std::size_t kMostWaiting = 4;

}  // namespace

SiteAttributionThread::SiteAttributionThread(const EngineOptions& options)
    : attribution_(options), apart_(options.threads != 1) {}

SiteAttributionThread::~SiteAttributionThread() {
    stop();
}

void SiteAttributionThread::add(const BlockBatch& batch, std::span<const std::uint32_t> distances) {
    if (!apart_) return attribution_.add(batch, distances);
    // Columns that are missing in one batch and there in the next are zeros, as everywhere.
    filling_.blocks.insert(filling_.blocks.end(), batch.blocks.begin(), batch.blocks.end());
    filling_.distances.insert(filling_.distances.end(), distances.begin(), distances.end());
    filling_.sites.insert(filling_.sites.end(), batch.sites.begin(), batch.sites.end());
    filling_.flags.insert(filling_.flags.end(), batch.flags.begin(), batch.flags.end());
    filling_.sites.resize(filling_.blocks.size());
    filling_.flags.resize(filling_.blocks.size());
    if (filling_.blocks.size() >= kJob) hand_over();
}

void SiteAttributionThread::hand_over() {
    std::unique_lock lock(guard_);
    if (!thread_.joinable()) thread_ = std::thread([this] { work(); });
    changed_.wait(lock, [&] { return waiting_.size() < kMostWaiting; });
    waiting_.push_back(std::move(filling_));
    filling_ = {};
    if (!spare_.empty()) {
        filling_ = std::move(spare_.back());
        spare_.pop_back();
    }
    changed_.notify_all();
}

void SiteAttributionThread::work() {
    std::unique_lock lock(guard_);
    for (;;) {
        changed_.wait(lock, [&] { return stopping_ || !waiting_.empty(); });
        if (waiting_.empty()) return;
        Job job = std::move(waiting_.front());
        waiting_.pop_front();
        bool skip = out_of_memory_;
        changed_.notify_all();
        lock.unlock();
        try {
            if (!skip) attribution_.add({job.blocks, job.sites, {}, job.flags}, job.distances);
        } catch (const std::bad_alloc&) {
            skip = true;
        }
        job.blocks.clear();
        job.sites.clear();
        job.distances.clear();
        job.flags.clear();
        lock.lock();
        out_of_memory_ |= skip;
        spare_.push_back(std::move(job));
    }
}

void SiteAttributionThread::stop() {
    {
        std::lock_guard lock(guard_);
        stopping_ = true;
        changed_.notify_all();
    }
    if (thread_.joinable()) thread_.join();
}

void SiteAttributionThread::fill(Profile& profile) {
    if (apart_ && !filling_.blocks.empty()) hand_over();
    stop();
    if (out_of_memory_) throw std::bad_alloc();
    attribution_.fill(profile);
}

}  // namespace revisit
