// Rounds of an inner loop that touch the same blocks as the round before them.
//
// Problem. By lines of 64 bytes a loop over doubles crosses into a new line once in eight rounds, and
// measures the seven others access by access. Idea. A round that touches the blocks of the round
// before, in the same order, leaves the stack as it found it, and finds each block where that round, or
// this one, used it last. So its distances follow from the order of its blocks alone: go back round the
// round to the block's last use and count the different blocks on the way. Rounds of the same order are
// counted together and worked out once, at the end. Example. A[i], B[i], A[i+1] in one line of A and
// one of B: A, B, A. Going back from the first A there is the last A, distance 0; from B, past one A,
// the B of the round before: distance 1; from the last A, past B, the first: distance 1. Cost. Some 50
// ns for all the rounds between two crossings. heat-3d has five in eight such rounds.
#include "predict/run/same_blocks.h"

#include <algorithm>
#include <map>

#include "predict/run/pair_distances.h"

namespace revisit::predict {
namespace {

void count(Histogram& to, const Binning& bins, std::uint64_t distance, std::uint64_t times) {
    Histogram one;
    const auto low = bins.low_edge(distance);
    one.bins.push_back({low, bins.high_edge(low), static_cast<double>(times)});
    to.merge(one);
}

}  // namespace

std::size_t SameBlocks::Hash::operator()(const Pattern& p) const {
    std::uint64_t h = p.size();
    for (const auto part : p) h = (h ^ part) * 0x9E3779B97F4A7C15ull, h ^= h >> 32;
    return h;
}

void SameBlocks::add(std::span<const Stretch> round, std::int64_t times,
                     const std::function<std::uint32_t(std::uint32_t)>& site) {
    pattern_.clear();
    blocks_.clear();
    for (const Stretch& s : round) {
        const auto last = (s.address + std::max<std::uint32_t>(s.size, 1) - 1) / granularity_;
        for (auto block = s.address / granularity_; block <= last; ++block) {
            const auto same = std::find(blocks_.begin(), blocks_.end(), block) - blocks_.begin();
            blocks_.push_back(block);
            pattern_.push_back(site(s.reference));
            pattern_.push_back(static_cast<std::uint32_t>(same));
        }
    }
    times_[pattern_] += static_cast<std::uint64_t>(times);
}

void SameBlocks::add_to(Profile& measured) const {
    std::map<std::uint32_t, Histogram> sites;
    PairDistances pairs;
    for (const auto& [pattern, times] : times_) {
        const auto length = pattern.size() / 2;
        for (std::size_t p = 0; p < length; ++p) {
            std::vector<bool> passed(length);
            std::uint64_t distance = 0;
            auto q = p;
            for (;;) {
                q = (q + length - 1) % length;
                const auto block = pattern[2 * q + 1];
                if (block == pattern[2 * p + 1]) break;
                distance += !passed[block];
                passed[block] = true;
            }
            count(sites[pattern[2 * p]], bins_, distance, times);
            count(pairs[{pattern[2 * q], pattern[2 * p]}], bins_, distance, times);
        }
    }
    for (const auto& [site, reuse] : sites) measured.reuse.merge(reuse);
    for (Site& s : measured.sites)
        if (const auto at = sites.find(s.id); at != sites.end()) s.reuse.merge(at->second);
    for (Pair& p : measured.pairs)
        if (const auto at = pairs.find({p.use, p.reuse}); at != pairs.end()) {
            p.distances.merge(at->second);
            p.count += at->second.total();
            pairs.erase(at);
        }
    add_pairs(measured, std::move(pairs));
}

}  // namespace revisit::predict
