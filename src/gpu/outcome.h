// From what a device counted to a profile, and sites to the numbers that devices count by.
#pragma once

#include <algorithm>
#include <atomic>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "engines/tally.h"
#include "gpu/exact_counter.h"

namespace revisit {

// Calls add(distance, count) with one distance of every bin that is not empty.
template <class Add>
void each_bin(const std::vector<std::uint64_t>& by_bin, const Binning& bins, Add add) {
    constexpr std::uint64_t kTop = ~std::uint64_t{0};
    for (std::uint64_t low = 0; low < kTop; low = bins.high_edge(low)) {
        const std::uint64_t index = bins.index(low);
        if (index >= by_bin.size()) break;
        if (by_bin[index] != 0) add(low, by_bin[index]);
    }
}

inline Histogram histogram_of(const gpu::Counts& counts, const Binning& bins, std::uint64_t cold) {
    DistanceCounter counter(bins);
    counter.add_cold(cold);
    each_bin(counts.by_bin, bins, [&](auto distance, auto count) { counter.add(distance, count); });
    for (auto [distance, count] : counts.by_distance) counter.add(distance, count);
    return counter.histogram();
}

// Site ids are arbitrary; devices want 0, 1, 2, … Any thread may ask for numbers.
class SiteNumbers {
 public:
    // Replaces `numbers` by those of the batch's sites, and adds writes to `writes`, by number.
    void number(const BlockBatch& batch, std::vector<std::uint32_t>& numbers,
                std::vector<std::uint64_t>& writes) {
        numbers.resize(batch.count());
        for (std::size_t i = 0; i < batch.count(); ++i) {
            numbers[i] = number_of(batch.sites.empty() ? 0 : batch.sites[i]);
            if (numbers[i] >= writes.size()) writes.resize(2 * std::size_t{numbers[i]} + 64);
            writes[numbers[i]] += !batch.flags.empty() && (batch.flags[i] & kWrite) != 0;
        }
    }
    // How many a device should expect: some more than there are, so that it changes seldom.
    std::uint32_t expected() {
        std::lock_guard lock(guard_);
        if (ids_.size() > expected_) expected_ = std::max<std::size_t>(1024, ids_.size() * 2);
        return static_cast<std::uint32_t>(expected_);
    }
    std::uint32_t id(std::uint32_t number) const { return ids_[number]; }

    // Adds what a device counted, cold last; writes are known here.
    void add_counts(const gpu::Outcome& outcome, const Binning& binning, Attribution& out) const {
        for (std::size_t i = 0; i < ids_.size() && i * outcome.bins_a_site < outcome.sites.size();
             ++i) {
            SiteTally& tally = out.sites[ids_[i]];
            const auto first =
                outcome.sites.begin() + static_cast<std::ptrdiff_t>(i * outcome.bins_a_site);
            std::vector<std::uint64_t> bins(first,
                                            first + static_cast<std::ptrdiff_t>(outcome.bins_a_site));
            tally.reuse.cold += bins.back();
            tally.accesses += bins.back();
            bins.pop_back();
            each_bin(bins, binning, [&](std::uint64_t distance, std::uint64_t count) {
                tally.reuse.add(binning, distance, count);
                tally.accesses += count;
            });
        }
    }
    void add_writes(std::span<const std::uint64_t> writes, Attribution& out) const {
        for (std::size_t i = 0; i < std::min(ids_.size(), writes.size()); ++i)
            out.sites[ids_[i]].writes += writes[i];
    }

 private:
    static constexpr std::uint32_t kNear = 1u << 20;

    // Recorders number sites from 0: those are found by index, one more than the number.
    std::uint32_t number_of(std::uint32_t id) {
        if (id < kNear)
            if (const std::uint32_t known = near_[id].load(std::memory_order_relaxed); known != 0)
                return known - 1;
        std::lock_guard lock(guard_);
        auto [found, is_new] = number_of_.try_emplace(id, static_cast<std::uint32_t>(ids_.size()));
        if (is_new) {
            ids_.push_back(id);
            if (id < kNear) near_[id].store(found->second + 1, std::memory_order_relaxed);
        }
        return found->second;
    }

    std::vector<std::atomic<std::uint32_t>> near_ = std::vector<std::atomic<std::uint32_t>>(kNear);
    std::mutex guard_;  // of what follows
    std::unordered_map<std::uint32_t, std::uint32_t> number_of_;
    std::vector<std::uint32_t> ids_;
    std::size_t expected_ = 0;
};

}  // namespace revisit
