#include "engines/tally.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

namespace revisit {
namespace {

// Up to this many bins an octave the slot vector stays within a few KiB.
constexpr std::uint64_t kSlotsPerOctave = 8;

}  // namespace

bool SmallCounter::keeps_slots(const Binning& binning) {
    return binning.kind() == Binning::Kind::log2 && binning.parameter() <= kSlotsPerOctave;
}

std::uint64_t SmallCounter::total() const {
    std::uint64_t sum = cold + invalidated;
    for (std::uint64_t count : slots_) sum += count;
    for (auto [low, count] : sparse_) sum += count;
    return sum;
}

void SmallCounter::add(const Binning& binning, std::uint64_t distance, std::uint64_t count) {
    if (!keeps_slots(binning)) {
        sparse_[binning.low_edge(distance)] += count;
        return;
    }
    std::uint64_t index = binning.index(distance);
    if (index >= slots_.size()) slots_.resize(index + 1);
    slots_[index] += count;
}

void SmallCounter::merge(const SmallCounter& other) {
    cold += other.cold;
    invalidated += other.invalidated;
    if (slots_.size() < other.slots_.size()) slots_.resize(other.slots_.size());
    for (std::size_t i = 0; i < other.slots_.size(); ++i) slots_[i] += other.slots_[i];
    for (auto [low, count] : other.sparse_) sparse_[low] += count;
}

Histogram SmallCounter::histogram(const Binning& binning) const {
    Histogram out;
    out.cold = static_cast<double>(cold);
    out.invalidated = static_cast<double>(invalidated);
    std::map<std::uint64_t, std::uint64_t> by_edge(sparse_.begin(), sparse_.end());
    constexpr std::uint64_t kTop = ~std::uint64_t{0};
    for (std::uint64_t low = 0; low < kTop && !slots_.empty(); low = binning.high_edge(low)) {
        std::uint64_t index = binning.index(low);
        if (index >= slots_.size()) break;
        if (slots_[index] != 0) by_edge[low] += slots_[index];
    }
    for (auto [low, count] : by_edge)
        out.bins.push_back({low, binning.high_edge(low), static_cast<double>(count), 0});
    return out;
}

void SmallCounter::add_to(OctaveCounts& out, const Binning& binning) const {
    out.cold += cold;
    out.invalidated += invalidated;
    for (auto [low, count] : sparse_) out.add(low, count);
    for (std::uint64_t low = 0; !slots_.empty(); low = binning.high_edge(low)) {
        const std::uint64_t index = binning.index(low);
        if (index >= slots_.size()) break;
        if (slots_[index] != 0) out.add(low, slots_[index]);
    }
}

void Attribution::merge(const Attribution& other) {
    for (const auto& [id, tally] : other.sites) {
        SiteTally& mine = sites[id];
        mine.accesses += tally.accesses;
        mine.writes += tally.writes;
        mine.reuse.merge(tally.reuse);
    }
    for (const auto& [key, counter] : other.pairs) pairs[key].merge(counter);
}

void Attribution::fill(Profile& profile, const Binning& binning, bool with_sites,
                       bool with_pairs) const {
    if (with_sites) {
        for (const auto& [id, tally] : sites) {
            Site site;
            site.id = id;
            site.accesses = static_cast<double>(tally.accesses);
            site.writes = static_cast<double>(tally.writes);
            site.reuse = tally.reuse.histogram(binning);
            profile.sites.push_back(std::move(site));
        }
        std::sort(profile.sites.begin(), profile.sites.end(),
                  [](const Site& a, const Site& b) { return a.id < b.id; });
    }
    if (with_pairs) {
        for (const auto& [key, counter] : pairs) {
            Pair pair;
            pair.use = static_cast<std::uint32_t>(key >> 32);
            pair.reuse = static_cast<std::uint32_t>(key);
            pair.distances = counter.histogram(binning);
            pair.count = pair.distances.total();
            profile.pairs.push_back(std::move(pair));
        }
        std::sort(profile.pairs.begin(), profile.pairs.end(), [](const Pair& a, const Pair& b) {
            return std::tuple(-a.count, a.use, a.reuse) < std::tuple(-b.count, b.use, b.reuse);
        });
    }
}

template <class Use>
void Tally::attribute(std::uint32_t site, bool write, std::uint16_t thread, Use use) {
    ++accesses_;
    auto count_in = [&](SiteTally& tally) {
        ++tally.accesses;
        tally.writes += write;
        use(tally.reuse);
    };
    if (options_.sites) count_in(attribution_.sites[site]);
    if (options_.model == StackModel::private_) count_in(threads_[thread]);
}

void Tally::add_cold(std::uint32_t site, bool write, std::uint16_t thread) {
    reuse_.add_cold();
    time_.add_cold();
    attribute(site, write, thread, [](SmallCounter& counter) { ++counter.cold; });
}

void Tally::add_invalidated(std::uint32_t site, bool write, std::uint16_t thread) {
    reuse_.add_invalidated();
    time_.add_invalidated();
    attribute(site, write, thread, [](SmallCounter& counter) { ++counter.invalidated; });
}

void Tally::add_reuse(std::uint64_t distance, std::uint64_t time_distance, std::uint32_t use_site,
                      std::uint32_t site, bool write, std::uint16_t thread) {
    reuse_.add(distance);
    if (options_.time) time_.add(time_distance);
    attribute(site, write, thread,
              [&](SmallCounter& counter) { counter.add(options_.bins, distance); });
    if (options_.pairs)
        attribution_.pairs[Attribution::pair_key(use_site, site)].add(options_.bins, distance);
}

Profile Tally::profile(std::string_view method, std::uint64_t distinct) const {
    Profile profile;
    profile.method = method;
    profile.granularity = options_.granularity;
    profile.accesses = static_cast<double>(accesses_);
    profile.distinct = static_cast<double>(distinct);
    profile.reuse = reuse_.histogram();
    if (options_.time) profile.time = time_.histogram();
    attribution_.fill(profile, options_.bins, options_.sites, options_.pairs);
    if (options_.model == StackModel::private_) profile.model = "private";
    for (const auto& [id, tally] : threads_)
        profile.threads.push_back(
            {id, static_cast<double>(tally.accesses), tally.reuse.histogram(options_.bins)});
    return profile;
}

Result<void> require_single_model(std::string_view method, const EngineOptions& options) {
    if (options.model == StackModel::single) return {};
    return fail(fmt::format("the {} method has no private model", method));
}

}  // namespace revisit
