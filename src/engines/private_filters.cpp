#include "engines/private_filters.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace revisit {
namespace {

constexpr std::uint64_t kLeastCommonSets = 512, kMostCommonSets = 8192;  // 256 KiB to 4 MiB of lines
constexpr std::uint32_t kCommonWays = 8, kLeastDepth = 16, kSharedDepth = 32;
constexpr std::uint32_t kFollowedSets = 32, kFollowedAskedSets = 256;
constexpr std::uint64_t kMostAskedWays = 64, kMostAskedSets = std::uint64_t{1} << 20;
constexpr std::size_t kMostAsked = 8;
constexpr std::uint32_t kMostThreads = 1024;

std::uint64_t next_random(std::uint64_t& state) {  // splitmix64
    std::uint64_t x = state += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

// Two lines of a set have one tag once in 2^31.
std::uint32_t tag_of(std::uint64_t block) {
    return static_cast<std::uint32_t>((block ^ block >> 32) * 0xd6e8feb86659fd93u >> 32) | 1;
}

// The tag goes on top: into the topmost hole above where it was, else from there, else over the last.
// Returns the depth where it was; `depth` = not there.
std::uint32_t touch(std::uint32_t* set, std::uint32_t depth, std::uint32_t tag) {
    std::uint32_t carried = set[0], at = 0;
    if (carried == tag) return 0;
    set[0] = tag;
    while (carried != 0 && ++at < depth) {  // each moves one down, up to where it was or a hole
        std::swap(carried, set[at]);
        if (carried == tag) return at;
    }
    if (carried != 0) return depth;
    while (++at < depth)
        if (set[at] == tag) {
            set[at] = 0;
            return at;
        }
    return depth;
}

}  // namespace

bool PrivateFilters::is_common(const CacheSpec& cache) {
    return cache.associativity() == kCommonWays && std::has_single_bit(cache.sets()) &&
           cache.sets() >= kLeastCommonSets && cache.sets() <= kMostCommonSets;
}

PrivateFilters::PrivateFilters(const std::vector<CacheSpec>& asked, std::uint64_t granularity,
                               std::uint64_t seed)
    : masks_(kMasks) {
    std::uint64_t random = seed;
    for (const CacheSpec& one : asked)
        if (one.line == granularity && one.associativity() <= kMostAskedWays &&
            one.sets() <= kMostAskedSets && filters_.size() < kMostAsked)
            add_filter(one.sets(), static_cast<std::uint32_t>(one.associativity()), kFollowedAskedSets,
                       random);
    for (std::uint64_t sets = kLeastCommonSets; sets <= kMostCommonSets; sets *= 2)
        add_filter(sets, kCommonWays, kFollowedSets, random);
    std::ranges::stable_sort(filters_, {}, [](const Filter& one) { return one.sets * one.ways; });
    for (std::size_t i = 0; i < filters_.size(); ++i) {
        Filter& filter = filters_[i];
        filter.masked = i < 8 && kMasks % filter.sets == 0;
        follows_any_ = follows_any_ || !filter.masked;
        for (std::uint64_t at = 0; filter.masked && at < kMasks; ++at)
            if (filter.slot[at % filter.sets] != 0)
                masks_[at] = static_cast<std::uint8_t>(masks_[at] | 1u << i);
    }
}

void PrivateFilters::add_filter(std::uint64_t sets, std::uint32_t ways, std::uint32_t most,
                                std::uint64_t& random) {
    for (const Filter& one : filters_)
        if (one.sets == sets && one.ways == ways) return;
    Filter& out = filters_.emplace_back();
    out.sets = sets;
    out.ways = ways;
    out.depth = std::max(kLeastDepth, ways);
    out.followed = static_cast<std::uint32_t>(std::min<std::uint64_t>(most, sets));
    out.slot.resize(static_cast<std::size_t>(sets));
    for (std::uint32_t slot = 1; slot <= out.followed;) {
        std::uint32_t& chosen = out.slot[static_cast<std::size_t>(next_random(random) % sets)];
        if (chosen == 0) chosen = slot++;
    }
    out.offset.resize(std::size_t{out.followed} + 1);
    for (std::uint32_t& offset : out.offset) offset = static_cast<std::uint32_t>(next_random(random));
    out.depths.resize(out.depth + 1);
    for (unsigned i = 0; i < kNumbersOfSets; ++i) {
        out.shared[i].resize(std::size_t{out.followed} * kSharedDepth);
        out.shared_depths[i].resize(kSharedDepth + 1);
    }
}

void PrivateFilters::add(const Event& event) {
    if (event.thread >= kMostThreads) given_up_ = true;
    if (given_up_) return;
    const unsigned mask = masks_[event.block % kMasks];
    for (std::size_t i = 0; i < filters_.size(); ++i)
        if (!filters_[i].masked || (mask >> i & 1) != 0) add_to(filters_[i], event);
}

void PrivateFilters::add_to(Filter& filter, const Event& event) {
    const std::uint32_t slot = filter.slot[static_cast<std::size_t>(event.block % filter.sets)];
    if (slot == 0) return;
    if (event.thread >= filter.own.size()) filter.own.resize(event.thread + std::size_t{1});
    Tags& own = filter.own[event.thread];
    if (own.empty()) own.resize(std::size_t{filter.followed} * filter.depth);
    std::uint32_t* const set = own.data() + std::size_t{slot - 1} * filter.depth;
    const std::uint32_t tag = tag_of(event.block);
    if (event.kind == Kind::remove) {
        std::replace(set, set + filter.depth, tag, 0u);
        return;
    }
    const std::uint32_t depth = touch(set, filter.depth, tag);
    if (event.kind == Kind::reuse) {
        ++filter.depths[depth];
        if (depth < filter.ways) return;
    }
    // Of the 2^i shared sets behind this one, the one whose number has the low bits of `offset`.
    const auto above = static_cast<std::uint32_t>(event.block / filter.sets) ^ filter.offset[slot];
    const auto numbers =
        std::min<unsigned>(kNumbersOfSets - 1, static_cast<unsigned>(std::countr_zero(above)));
    for (unsigned i = 0; i <= numbers; ++i) {
        const std::uint32_t shared_depth =
            touch(filter.shared[i].data() + std::size_t{slot - 1} * kSharedDepth, kSharedDepth, tag);
        if (event.kind != Kind::first) ++filter.shared_depths[i][shared_depth];
    }
}

void PrivateFilters::fill(Profile& profile) const {
    if (given_up_) return;
    auto scaled = [](std::uint64_t sets, const std::vector<std::uint64_t>& depths, double by) {
        SetDepths out{sets, {}};
        for (std::uint64_t count : depths) out.counts.push_back(static_cast<double>(count) * by);
        return out;
    };
    for (const Filter& filter : filters_) {
        const double by = static_cast<double>(filter.sets) / filter.followed;
        PrivateFilter out{filter.ways, scaled(filter.sets, filter.depths, by), {}};
        for (unsigned i = 0; i < kNumbersOfSets; ++i)
            out.shared.push_back(
                scaled(filter.sets << i, filter.shared_depths[i], by * static_cast<double>(1u << i)));
        profile.filters.push_back(std::move(out));
    }
}

}  // namespace revisit
