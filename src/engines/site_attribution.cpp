#include "engines/site_attribution.h"

#include <fmt/format.h>

#include <algorithm>

namespace revisit {
namespace {

constexpr std::size_t kIdsWithoutHash = std::size_t{1} << 16;
constexpr unsigned kPairCacheBits = 12;
constexpr unsigned kBatch = 64;

}  // namespace

void SiteAttribution::add(const BlockBatch& batch, std::span<const std::uint32_t> distances,
                          std::span<const std::uint32_t> use_sites) {
    if (options_.pairs && use_sites.empty()) {
        sum_pairs_ = true;
        return add_to_pairs(batch, distances);
    }
    if (options_.sites) add_to_sites(batch, distances);
    if (!options_.pairs) return;
    for (std::size_t i = 0; i < distances.size(); i++)
        if (distances[i] < kInvalidated)
            add_to_pair(use_sites[i], batch.sites.empty() ? 0 : batch.sites[i], distances[i]);
}

SiteTally& SiteAttribution::site_tally(std::uint32_t id) {
    if (site_of_id_.empty()) site_of_id_.resize(kIdsWithoutHash);
    if (id >= kIdsWithoutHash) return attribution_.sites[id];
    if (site_of_id_[id] == nullptr) site_of_id_[id] = &attribution_.sites[id];
    return *site_of_id_[id];
}

void SiteAttribution::add_to_sites(const BlockBatch& batch, std::span<const std::uint32_t> distances) {
    for (std::size_t i = 0; i < distances.size(); i++) {
        SiteTally& tally = site_tally(batch.sites.empty() ? 0 : batch.sites[i]);
        tally.accesses++;
        tally.writes += !batch.flags.empty() && (batch.flags[i] & kWrite) != 0;
        if (distances[i] == kCold)
            tally.reuse.cold++;
        else if (distances[i] == kInvalidated)
            tally.reuse.invalidated++;
        else
            count(tally.reuse, distances[i]);
    }
}

void SiteAttribution::add_to_pairs(const BlockBatch& batch, std::span<const std::uint32_t> distances) {
    for (std::size_t begin = 0; begin < distances.size();) {
        last_site_.adapt(blocks_);
        begin += last_site_.visit([&](auto& table) {
            Lookahead look(table, batch.blocks.subspan(begin));
            std::uint64_t previous[kBatch];
            std::size_t n = 0;
            for (; n < look.batches() && !look.crowded(); n++) {
                const std::size_t first = begin + n * kBatch;
                auto site = [&](std::size_t j) {
                    return batch.sites.empty() ? 0 : batch.sites[first + j];
                };
                auto next = [&](unsigned j) { return std::uint64_t{site(j)} + 1; };
                look.exchange(n, previous, next);
                look.finish(n, previous, next);
                for (unsigned j = 0; j < look.size(n); j++) {
                    if (!batch.flags.empty() && (batch.flags[first + j] & kWrite) != 0)
                        site_tally(site(j)).writes++;
                    if (previous[j] == 0) {
                        blocks_++;
                        site_tally(site(j)).reuse.cold++;
                        continue;
                    }
                    const auto use = static_cast<std::uint32_t>(previous[j] - 1);
                    add_to_pair(use, site(j), distances[first + j]);
                }
            }
            return std::min(distances.size() - begin, n * kBatch);
        });
    }
}

void SiteAttribution::add_to_pair(std::uint32_t use, std::uint32_t reuse, std::uint32_t distance) {
    if (SmallCounter* counter = pair_counter(Attribution::pair_key(use, reuse)))
        count(*counter, distance);
    else {
        reuses_outside_pairs_++;
        if (sum_pairs_) count(site_tally(reuse).reuse, distance);
    }
}

SmallCounter* SiteAttribution::pair_counter(std::uint64_t key) {
    if (pair_cache_.empty()) pair_cache_.resize(std::size_t{1} << kPairCacheBits);
    CachedPair& cached = pair_cache_[key * 0x9e3779b97f4a7c15u >> (64 - kPairCacheBits)];
    if (cached.counter != nullptr && cached.key == key) return cached.counter;
    auto found = attribution_.pairs.find(key);
    if (found == attribution_.pairs.end()) {
        if (attribution_.pairs.size() >= most_pairs_) return nullptr;
        found = attribution_.pairs.try_emplace(key).first;
    }
    cached = {key, &found->second};
    return cached.counter;
}

void SiteAttribution::fill(Profile& profile) const {
    if (!sum_pairs_) {
        attribution_.fill(profile, options_.bins, options_.sites, options_.pairs);
    } else {
        Attribution whole = attribution_;
        for (const auto& [key, counter] : attribution_.pairs)
            whole.sites[static_cast<std::uint32_t>(key)].reuse.merge(counter);
        for (auto& [id, tally] : whole.sites) tally.accesses = tally.reuse.total();
        whole.fill(profile, options_.bins, options_.sites, options_.pairs);
    }
    if (reuses_outside_pairs_ != 0)
        profile.notes.push_back(fmt::format("pairs: the first {} are kept; {} reuses belong to others",
                                            most_pairs_, reuses_outside_pairs_));
}

}  // namespace revisit
