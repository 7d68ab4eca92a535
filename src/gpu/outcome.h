// From what a device counted to a profile, and sites to the numbers that devices count by.
#pragma once

#include <algorithm>
#include <atomic>
#include <mutex>
#include <numeric>
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

// Site ids are arbitrary; devices want 0, 1, 2, … Reads and writes of a site have numbers of their own:
// so the device counts writes as well, and numbering is a table's entry per access. Any thread may
// ask for numbers.
class SiteNumbers {
 public:
    // Replaces `numbers` by those of the batch's sites.
    void number(const BlockBatch& batch, std::vector<std::uint32_t>& numbers) {
        numbers.resize(batch.count());
        const bool has_sites = !batch.sites.empty(), has_flags = !batch.flags.empty();
        for (std::size_t i = 0; i < batch.count(); ++i) {
            const std::uint64_t site = has_sites ? batch.sites[i] : 0;
            numbers[i] = number_of(2 * site + (has_flags ? batch.flags[i] & kWrite : 0));
        }
    }
    // How many a device should expect: some more than there are, so that it changes seldom.
    std::uint32_t expected() {
        std::lock_guard lock(guard_);
        if (keys_.size() > expected_) expected_ = std::max<std::size_t>(1024, keys_.size() * 2);
        return static_cast<std::uint32_t>(expected_);
    }
    std::uint32_t id(std::uint32_t number) const {
        return static_cast<std::uint32_t>(keys_[number] / 2);
    }

    // Adds what a device counted, cold last.
    void add_counts(const gpu::Outcome& outcome, const Binning& binning, Attribution& out) const {
        for (std::size_t i = 0; i < keys_.size() && i * outcome.bins_a_site < outcome.sites.size();
             ++i) {
            SiteTally& tally = out.sites[id(static_cast<std::uint32_t>(i))];
            const auto first =
                outcome.sites.begin() + static_cast<std::ptrdiff_t>(i * outcome.bins_a_site);
            std::vector<std::uint64_t> bins(first,
                                            first + static_cast<std::ptrdiff_t>(outcome.bins_a_site));
            const std::uint64_t accesses = std::accumulate(bins.begin(), bins.end(), std::uint64_t{0});
            tally.accesses += accesses;
            if (keys_[i] & kWrite) tally.writes += accesses;
            tally.reuse.cold += bins.back();
            bins.pop_back();
            each_bin(bins, binning, [&](std::uint64_t distance, std::uint64_t count) {
                tally.reuse.add(binning, distance, count);
            });
        }
    }

 private:
    static constexpr std::uint64_t kNear = 1u << 21;

    // Recorders number sites from 0: those are found by index, one more than the number.
    std::uint32_t number_of(std::uint64_t key) {
        if (key < kNear) [[likely]]
            if (const std::uint32_t known = near_[key].load(std::memory_order_relaxed); known != 0)
                return known - 1;
        std::lock_guard lock(guard_);
        auto [found, is_new] = number_of_.try_emplace(key, static_cast<std::uint32_t>(keys_.size()));
        if (is_new) {
            keys_.push_back(key);
            if (key < kNear) near_[key].store(found->second + 1, std::memory_order_relaxed);
        }
        return found->second;
    }

    std::vector<std::atomic<std::uint32_t>> near_ = std::vector<std::atomic<std::uint32_t>>(kNear);
    std::mutex guard_;  // of what follows
    std::unordered_map<std::uint64_t, std::uint32_t> number_of_;
    std::vector<std::uint64_t> keys_;  // 2 * site, and one more for its writes
    std::size_t expected_ = 0;
};

}  // namespace revisit
