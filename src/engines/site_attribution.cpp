#include "engines/site_attribution.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace revisit {
namespace {

constexpr std::size_t kIdsWithoutHash = std::size_t{1} << 16;
constexpr std::uint64_t kPairHash = 0x9e3779b97f4a7c15u;

bool writes(const BlockBatch& batch, std::size_t i) {
    return !batch.flags.empty() && (batch.flags[i] & kWrite) != 0;
}

}  // namespace

SiteAttribution SiteAttribution::piece(const EngineOptions& options, std::uint64_t time) {
    constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();
    SiteAttribution out(options, {kAll, kAll, 0});
    out.is_piece_ = true;
    out.pair_shift_ = 64 - kPieceCacheBits;
    out.now_ = time;
    return out;
}

void SiteAttribution::add(const BlockBatch& batch, std::span<const std::uint32_t> distances,
                          std::span<const std::uint32_t> use_sites) {
    if (options_.pairs)
        add_to_pairs(batch, distances, use_sites);
    else
        add_to_sites(batch, distances);
}

SiteTally& SiteAttribution::site_tally(std::uint32_t id) {
    if (id >= site_of_id_.size()) [[unlikely]] {
        if (id >= kIdsWithoutHash) return attribution_.sites[id];
        site_of_id_.resize(std::min(kIdsWithoutHash, std::bit_ceil(std::size_t{id} + 64)));
    }
    if (site_of_id_[id] == nullptr) site_of_id_[id] = &attribution_.sites[id];
    return *site_of_id_[id];
}

void SiteAttribution::add_to_sites(const BlockBatch& batch, std::span<const std::uint32_t> distances) {
    for (std::size_t i = 0; i < distances.size(); i++) {
        SiteTally& tally = site_tally(batch.sites.empty() ? 0 : batch.sites[i]);
        tally.accesses++;
        tally.writes += writes(batch, i);
        if (distances[i] == kCold)
            tally.reuse.cold++;
        else if (distances[i] == kInvalidated)
            tally.reuse.invalidated++;
        else
            count(tally.reuse, distances[i]);
    }
}

void SiteAttribution::add_to_pairs(const BlockBatch& batch, std::span<const std::uint32_t> distances,
                                   std::span<const std::uint32_t> use_sites) {
    if (slots_) return add_to_pairs_in_slots(batch, distances, use_sites);
    for (std::size_t i = 0; i < distances.size(); i++, now_++) {
        const std::uint32_t site = batch.sites.empty() ? 0 : batch.sites[i];
        if (writes(batch, i)) site_tally(site).writes++;
        if (distances[i] == kCold)
            site_tally(site).reuse.cold++;
        else if (distances[i] == kInvalidated)
            site_tally(site).reuse.invalidated++;
        else
            add_to_pair(use_sites[i], site, distances[i]);
    }
}

// The same where bins have numbers, as they have by default: 2 ns per access less.
void SiteAttribution::add_to_pairs_in_slots(const BlockBatch& batch,
                                            std::span<const std::uint32_t> distances,
                                            std::span<const std::uint32_t> use_sites) {
    if (pair_cache_.empty()) pair_cache_.resize(std::size_t{1} << (64 - pair_shift_));
    // Counters may be anything to a compiler, which would read all of these again for every access.
    const std::uint32_t* const sites = batch.sites.empty() ? nullptr : batch.sites.data();
    const std::uint8_t* const flags = batch.flags.empty() ? nullptr : batch.flags.data();
    const std::uint16_t* const near_bins = near_bins_.data();
    CachedPair* const cache = pair_cache_.data();
    const unsigned shift = pair_shift_;
    const std::size_t count = distances.size();
    const std::uint64_t begin = now_;
    for (std::size_t i = 0; i < count; i++) {
        const std::uint32_t site = sites == nullptr ? 0 : sites[i], distance = distances[i];
        const std::uint64_t write = flags == nullptr ? 0 : flags[i] & kWrite;
        if (distance >= kInvalidated) [[unlikely]] {
            SiteTally& tally = site_tally(site);
            tally.writes += write;
            ++(distance == kCold ? tally.reuse.cold : tally.reuse.invalidated);
            continue;
        }
        const std::uint64_t key = Attribution::pair_key(use_sites[i], site);
        const std::uint64_t bin =
            distance < kNearBins ? near_bins[distance] : options_.bins.index(distance);
        CachedPair& cached = cache[key * kPairHash >> shift];
        if (cached.key == key && bin < cached.size) [[likely]] {
            cached.bins[bin]++;
            cached.writes += write;
            continue;
        }
        now_ = begin + i;
        add_new_to_cached(cached, key, bin, write);
    }
    now_ = begin + count;
}

// Of a pair that is not there, or has not met this bin yet.
void SiteAttribution::add_new_to_cached(CachedPair& cached, std::uint64_t key, std::uint64_t bin,
                                        std::uint64_t writes) {
    const auto site = static_cast<std::uint32_t>(key);
    SmallCounter* const counter = pair_counter(key);
    if (counter == nullptr) {
        reuses_outside_pairs_++;
        SiteTally& tally = site_tally(site);
        tally.writes += writes;
        tally.reuse.add_to_bin(bin);
        return;
    }
    if (cached.writes != 0) site_tally(static_cast<std::uint32_t>(cached.key)).writes += cached.writes;
    const std::span<std::uint64_t> bins = counter->bins(bin + 1);
    cached = {key, bins.data(), writes, static_cast<std::uint32_t>(bins.size())};
    bins[bin]++;
}

void SiteAttribution::settle() {
    for (const CachedPair& one : pair_cache_)
        if (one.writes != 0) site_tally(static_cast<std::uint32_t>(one.key)).writes += one.writes;
    pair_cache_ = {};
}

void SiteAttribution::add_found(const Found& found) {
    now_ = found.time;
    if (!pair_cache_.empty()) settle();  // counters may move
    if (found.distance == kCold)
        site_tally(found.site).reuse.cold++;
    else if (options_.pairs)
        add_to_pair(found.use_site, found.site, found.distance);
    else
        count(site_tally(found.site).reuse, found.distance);
}

void SiteAttribution::add_to_pair(std::uint32_t use, std::uint32_t reuse, std::uint32_t distance) {
    if (SmallCounter* counter = pair_counter(Attribution::pair_key(use, reuse))) {
        count(*counter, distance);
        return;
    }
    reuses_outside_pairs_++;
    count(site_tally(reuse).reuse, distance);
}

// Null: the pair is not kept apart.
SmallCounter* SiteAttribution::pair_counter(std::uint64_t key, std::uint64_t weight) {
    std::uint32_t number = pair_numbers_.find(key);
    if (number == KeyTable::kNone) {
        if (!pairs_.admit(key, weight, now_)) return nullptr;
        number = static_cast<std::uint32_t>(pair_of_number_.size());
        pair_numbers_.add(key, number);
        pair_of_number_.push_back(&attribution_.pairs.try_emplace(key).first->second);
        if (is_piece_) new_pairs_.push_back({now_, key});
    }
    return pair_of_number_[number];
}

void SiteAttribution::add_pieces(std::span<SiteAttribution> pieces, std::size_t chunks) {
    settle();  // counters may move
    for (SiteAttribution& piece : pieces) {
        piece.settle();
        now_ = std::max(now_, piece.now_);
    }
    make_pairs(pieces);
    for (std::size_t i = 0; i < pieces.size(); i++) {
        for (auto& [id, tally] : pieces[i].attribution_.sites) {
            if (i < chunks) tally.reuse.cold = 0;
            SiteTally& sum = site_tally(id);
            sum.accesses += tally.accesses;
            sum.writes += tally.writes;
            sum.reuse.merge(tally.reuse);
        }
        for (const auto& [key, counter] : pieces[i].attribution_.pairs) {
            const std::uint64_t total = counter.total();
            if (SmallCounter* const sum = pair_counter(key, total)) {
                sum->merge(counter);
                continue;
            }
            reuses_outside_pairs_ += total;
            site_tally(static_cast<std::uint32_t>(key)).reuse.merge(counter);
        }
    }
}

// Makes room for the pairs that are met first, as long as there is any.
void SiteAttribution::make_pairs(std::span<const SiteAttribution> pieces) {
    std::vector<NewPair> met;
    for (const SiteAttribution& piece : pieces)
        for (const NewPair& pair : piece.new_pairs_)
            if (!attribution_.pairs.contains(pair.key)) met.push_back(pair);
    std::ranges::sort(met);
    for (const NewPair& pair : met)
        if (!pairs_.is_selective()) (void)pair_counter(pair.key);
}

void SiteAttribution::add_so_far(SiteOctaves& out) const {
    for (const auto& [id, tally] : attribution_.sites) tally.reuse.add_to(out[id], options_.bins);
    for (const auto& [key, counter] : attribution_.pairs)
        counter.add_to(out[static_cast<std::uint32_t>(key)], options_.bins);
}

void SiteAttribution::fill(Profile& profile) const {
    if (!options_.pairs) {
        attribution_.fill(profile, options_.bins, options_.sites, false);
        return;
    }
    Attribution whole = attribution_;
    for (const CachedPair& one : pair_cache_)
        if (one.writes != 0) whole.sites[static_cast<std::uint32_t>(one.key)].writes += one.writes;
    for (const auto& [key, counter] : attribution_.pairs)
        whole.sites[static_cast<std::uint32_t>(key)].reuse.merge(counter);
    for (auto& [id, tally] : whole.sites) tally.accesses = tally.reuse.total();
    whole.fill(profile, options_.bins, options_.sites, true);
    if (reuses_outside_pairs_ != 0)
        profile.notes.push_back(
            fmt::format("pairs: {} are kept apart, the first ones and those with more than 1 reuse in "
                        "{}; {} reuses belong to others",
                        attribution_.pairs.size(), 1u << kPairs.share_bits, reuses_outside_pairs_));
}

}  // namespace revisit
