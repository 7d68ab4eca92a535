#include "engines/site_attribution_thread.h"

#include <new>

namespace revisit {
namespace {

constexpr std::size_t kSitesJob = std::size_t{1} << 15;  // accesses
constexpr std::size_t kMostJobsWaiting = 4;

}  // namespace

SiteAttributionThread::SiteAttributionThread(const EngineOptions& options, SiteAttribution before)
    : attribution_(std::move(before)),
      apart_(options.threads != 1),
      relay_(kMostJobsWaiting, [this](Job& job) { count(job); }) {}

void SiteAttributionThread::add(const BlockBatch& batch, std::span<const std::uint32_t> distances,
                                std::span<const std::uint32_t> use_sites) {
    if (!apart_) return attribution_.add(batch, distances, use_sites);
    // Columns that are missing in one batch and there in the next are zeros, as everywhere.
    filling_.distances.insert(filling_.distances.end(), distances.begin(), distances.end());
    filling_.use_sites.insert(filling_.use_sites.end(), use_sites.begin(), use_sites.end());
    filling_.sites.insert(filling_.sites.end(), batch.sites.begin(), batch.sites.end());
    filling_.flags.insert(filling_.flags.end(), batch.flags.begin(), batch.flags.end());
    filling_.sites.resize(filling_.distances.size());
    filling_.flags.resize(filling_.distances.size());
    if (filling_.distances.size() < kSitesJob) return;
    relay_.hand_over(std::move(filling_));
    filling_ = relay_.take();
}

void SiteAttributionThread::count(Job& job) {
    try {
        if (!out_of_memory_)
            attribution_.add({{}, job.sites, {}, job.flags}, job.distances, job.use_sites);
    } catch (const std::bad_alloc&) {
        out_of_memory_ = true;
    }
    job.sites.clear();
    job.distances.clear();
    job.use_sites.clear();
    job.flags.clear();
}

void SiteAttributionThread::finish() {
    if (apart_ && !filling_.distances.empty()) relay_.hand_over(std::move(filling_));
    filling_ = {};
    relay_.finish();
    if (out_of_memory_) throw std::bad_alloc();
}

void SiteAttributionThread::fill(Profile& profile) {
    finish();
    attribution_.fill(profile);
}

void SiteAttributionThread::add_so_far(SiteOctaves& out) {
    if (apart_ && !filling_.distances.empty()) {
        relay_.hand_over(std::move(filling_));
        filling_ = relay_.take();
    }
    relay_.drain();
    if (out_of_memory_) throw std::bad_alloc();
    attribution_.add_so_far(out);
}

SiteAttribution SiteAttributionThread::take() {
    finish();
    attribution_.settle();
    return std::move(attribution_);
}

}  // namespace revisit
