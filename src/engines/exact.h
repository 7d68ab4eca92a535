// The exact engine; exact.cpp explains how it works.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "engines/big_vector.h"
#include "engines/distance_table.h"
#include "engines/last_access.h"
#include "engines/position_column.h"
#include "engines/site_attribution_thread.h"
#include "engines/time_bitmap.h"
#include "engines/time_distances.h"
#include "engines/touch_stretches.h"
#include "revisit/engine.h"

namespace revisit {

// What tests turn to reach every path with small traces.
struct ExactTuning {
    std::uint64_t least_lines = 512;            // of the window
    std::uint64_t roomy_positions = 3'500'000;  // up to here the window is 8 times the live blocks
    unsigned least_levels = 2;
    std::uint64_t most_blocks = 3'000'000'000;
    LastAccessForm form = LastAccessForm::automatic;
    std::uint64_t narrow_times = TimeDistances::kNarrowTimes;
};

class ExactEngine : public Engine, public SiteSnapshots {
 public:
    explicit ExactEngine(const EngineOptions& options, const ExactTuning& tuning = {});

    Result<void> add(const BlockBatch& batch) override;
    Result<Profile> finish() override;
    Result<Histogram> reuse_so_far() override;
    Result<void> sites_so_far(SiteOctaves& out) override;

    // What counting on several threads needs (exact_threads.cpp).
    // So many blocks are thought to come, in so many accesses: nothing need grow or be renumbered on
    // the way. For an engine that is new.
    void expect(std::size_t blocks, std::size_t accesses);
    // From now on blocks touched for the first time are appended to `list`, or to `stretches` where
    // they can be, to `at` how many accesses came before each, as far as sites, pairs or times are
    // counted, and with that, to `sites` the site of each; null ends it.
    void list_first_touches(BigVector<std::uint64_t>* list, BigVector<std::uint32_t>* at = nullptr,
                            TouchStretches* stretches = nullptr,
                            BigVector<std::uint32_t>* sites = nullptr) {
        first_touches_ = list;
        first_touches_at_ = at;
        stretches_ = stretches;
        first_touch_sites_ = sites;
    }
    // For an engine that is new: its first access is the `time`-th of all, from 0. Time distances are
    // counted by position, so that times can be handed on, not in a table of their own.
    void keep_times(std::uint64_t time);
    // For an engine that is new: goes on with what was attributed before.
    void attribute_to(SiteAttribution before) { sites_.emplace(options_, std::move(before)); }
    // Counts what was added and still waits to fill a batch.
    Result<void> settle();
    // Accesses blocks, all known, without counting distances. Sites and times are those of their last
    // accesses, where they are kept.
    Result<void> touch(std::span<const std::uint64_t> blocks, std::span<const std::uint32_t> sites = {},
                       std::span<const std::uint64_t> times = {});
    // Of all blocks, the one touched longest ago first; empty where they are not kept. Times are
    // counted no more.
    BigVector<std::uint32_t> last_sites() const;
    BigVector<std::uint64_t> take_last_times();
    // Calls take(block, rank) for all blocks, in any order; rank 0 has the oldest last access. Leaves
    // an empty table.
    template <class Take>
    void drain(Take take) {
        bitmap_.settle();
        bitmap_.with_ranks([&](auto rank) {
            last_.drain(
                [&](std::uint64_t block, std::uint32_t position) { take(block, rank(position)); });
        });
    }
    // The same as it is, where the table has pages: positions, and what their ranks are. Leaves an
    // engine that counts no more.
    std::pair<LastAccessPages<std::uint32_t>, TimeBitmap> take_pages() {
        bitmap_.settle();
        bitmap_.stop_growing();
        last_.pages()->stop_growing();
        return {std::move(*last_.pages()), std::move(bitmap_)};
    }
    std::size_t live() const { return bitmap_.live(); }
    const DistanceTable& distances() const { return distances_; }
    DistanceTable take_distances() { return std::move(distances_); }
    std::optional<DistanceTable> take_time_distances();
    SiteAttribution take_attribution() { return sites_->take(); }

    std::uint64_t renumberings() const { return renumberings_; }
    bool uses_hash() const { return last_.is_hash(); }

 private:
    Result<void> add_unattributed(std::span<const std::uint64_t> blocks);
    Result<void> add_without_repeats(std::span<const std::uint64_t> blocks);
    Result<void> feed(const BlockBatch& batch);
    Result<void> count(const BlockBatch& batch);
    Result<void> count_without_repeats(const BlockBatch& batch);
    // What is known of accesses and wanted of them, one by one; null where it is not.
    struct ByAccess {
        std::uint32_t* distances = nullptr;
        std::uint32_t* use_sites = nullptr;
        const std::uint32_t* sites = nullptr;  // null: all are 0
        const std::uint64_t* times = nullptr;  // null: they follow now_
        ByAccess from(std::size_t first) const;
    };
    Result<void> count_blocks(std::span<const std::uint64_t> blocks, ByAccess by_access);
    template <class Table>
    std::size_t count_batches(Table& table, std::span<const std::uint64_t> blocks,
                              const ByAccess& by_access);
    void pass_columns(std::uint32_t position, const std::uint32_t* previous, unsigned size,
                      const ByAccess& by_access);
    void forget_pending();
    Result<void> renumber();
    std::uint64_t window_lines(std::uint64_t live) const;

    EngineOptions options_;
    ExactTuning tuning_;
    TimeBitmap bitmap_;
    DistanceTable distances_;
    LastAccess<std::uint32_t> last_;
    std::optional<TimeDistances> times_;
    std::optional<SiteAttributionThread> sites_;
    std::optional<PositionColumn<std::uint32_t>> site_at_;  // where pairs are counted
    std::optional<PositionTimes> time_at_;
    std::optional<DistanceTable> timed_;  // with time_at_
    std::uint64_t accesses_ = 0;
    std::uint64_t now_ = 0;      // time of the next access to be counted
    std::uint64_t counted_ = 0;  // accesses
    std::uint64_t renumberings_ = 0;

    // Accesses that do not fill a batch yet, with what is known of them.
    std::vector<std::uint64_t> pending_blocks_;
    std::vector<std::uint32_t> pending_sites_;
    std::vector<std::uint8_t> pending_flags_;

    BigVector<std::uint64_t>* first_touches_ = nullptr;
    BigVector<std::uint32_t>* first_touches_at_ = nullptr;
    BigVector<std::uint32_t>* first_touch_sites_ = nullptr;
    TouchStretches* stretches_ = nullptr;
    bool silent_ = false;  // distances are not counted

    std::optional<std::uint64_t> last_block_;
    std::vector<std::uint32_t> distance_of_access_, use_site_of_access_;
    // The same of accesses that are no repeats, and where the row of repeats of each ends.
    std::vector<std::uint64_t> kept_blocks_;
    std::vector<std::uint32_t> kept_end_, kept_sites_, kept_distances_, kept_use_sites_;
};

}  // namespace revisit
