// What chunks of time that were counted side by side add up to.
//
// Problem. A chunk's counter starts empty, on a thread (exact_threads.cpp) or a GPU (gpu/devices.cpp):
// it gets everything right but the first touches of its blocks.
// Idea. The stack of all that came before (stack_parts.h) knows the distance of every first touch, and
// who touched the block last and when. So a first touch is counted like any other access: in the
// histograms of distances and of times, at its site, and in its pair. What was counted for it in the
// chunk is its access; what the chunk took for cold is not counted.
// Order. Sums do not depend on it. Which pairs are kept when there are too many does, and pieces know
// when they met each of them. So the profile is the same whatever took how long.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "engines/site_attribution.h"
#include "engines/stack_parts.h"

namespace revisit {

// A chunk as its counter leaves it.
struct CountedChunk {
    explicit CountedChunk(const Binning& bins) : distances(bins) {}

    std::uint64_t begin = 0;  // time of its first access; times count accesses of the trace from 0
    ChunkTouches touches;
    BigVector<std::uint32_t> first_at;     // accesses before each first touch, where it is wanted
    BigVector<std::uint32_t> first_sites;  // of each, where sites are wanted and not in the window
    DistanceTable distances;
    std::optional<DistanceTable> times;
    std::optional<SiteAttribution> sites;
};

class ChunkResolver {
 public:
    ChunkResolver(const EngineOptions& options, unsigned threads, unsigned parts);

    bool attributes() const { return options_.sites || options_.pairs; }
    // Whether chunks must say when their first touches were.
    bool wants_times_of_touches() const { return attributes() || options_.time; }

    Crew& crew() { return crew_; }
    const PartOf& part_of() const { return stack_.part_of(); }
    std::size_t live() const { return stack_.live(); }

    // Adds the chunks of a window, in order of time. `window` holds its accesses, where sites are
    // wanted and chunks have none, and begins at time `begin`. A stack that another engine had may come
    // first: it is on top of nothing, and nothing of it is counted.
    Result<void> resolve(std::optional<ChunkTouches> before, std::span<CountedChunk> chunks,
                         const BlockBatch& window, std::uint64_t begin);

    // The stack goes to an engine that knows all, and so does what was attributed; it comes back as the
    // stack `before`, and counts come back as they are.
    StackParts::Stack take_stack() { return stack_.take(); }
    SiteAttribution take_attribution() { return std::move(*sites_); }
    void give_attribution(SiteAttribution sites) { sites_ = std::move(sites); }
    void add_counts(const DistanceTable& distances, const std::optional<DistanceTable>& times);

    // Of reuses.
    const Histogram& reuse() const { return reuse_; }
    const Histogram& time() const { return time_; }
    void fill_sites(Profile& profile) const { sites_->fill(profile); }

 private:
    // What one thread finds out of first touches.
    struct Share {
        std::optional<SiteAttribution> sites;
        std::optional<DistanceTable> times;
    };
    Share make_share() const;
    void count_found(Share& share, const FoundTouches& found, const CountedChunk& chunk,
                     const BlockBatch& window, std::uint64_t begin) const;

    EngineOptions options_;
    Crew crew_;
    StackParts stack_;
    Histogram reuse_, time_;
    std::optional<SiteAttribution> sites_;
};

}  // namespace revisit
