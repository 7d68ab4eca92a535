#include "engines/site_attribution_thread.h"

#include <new>

namespace revisit {
namespace {

constexpr std::size_t kJob = std::size_t{1} << 15;  // accesses
constexpr std::size_t kMostWaiting = 4;

}  // namespace

SiteAttributionThread::SiteAttributionThread(const EngineOptions& options)
    : attribution_(options),
      apart_(options.threads != 1),
      relay_(kMostWaiting, [this](Job& job) { count(job); }) {}

void SiteAttributionThread::add(const BlockBatch& batch, std::span<const std::uint32_t> distances) {
    if (!apart_) return attribution_.add(batch, distances);
    // Columns that are missing in one batch and there in the next are zeros, as everywhere.
    filling_.blocks.insert(filling_.blocks.end(), batch.blocks.begin(), batch.blocks.end());
    filling_.distances.insert(filling_.distances.end(), distances.begin(), distances.end());
    filling_.sites.insert(filling_.sites.end(), batch.sites.begin(), batch.sites.end());
    filling_.flags.insert(filling_.flags.end(), batch.flags.begin(), batch.flags.end());
    filling_.sites.resize(filling_.blocks.size());
    filling_.flags.resize(filling_.blocks.size());
    if (filling_.blocks.size() < kJob) return;
    relay_.hand_over(std::move(filling_));
    filling_ = relay_.take();
}

void SiteAttributionThread::count(Job& job) {
    try {
        if (!out_of_memory_) attribution_.add({job.blocks, job.sites, {}, job.flags}, job.distances);
    } catch (const std::bad_alloc&) {
        out_of_memory_ = true;
    }
    job.blocks.clear();
    job.sites.clear();
    job.distances.clear();
    job.flags.clear();
}

void SiteAttributionThread::fill(Profile& profile) {
    if (apart_ && !filling_.blocks.empty()) relay_.hand_over(std::move(filling_));
    relay_.finish();
    if (out_of_memory_) throw std::bad_alloc();
    attribution_.fill(profile);
}

}  // namespace revisit
