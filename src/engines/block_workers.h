// Blocks for several workers at once: the engine, simulated caches, line use.
//
// Problem. Each takes one to five ns per access and none needs what another found, yet all must see
// every block in order. Idea. Whoever reads slots writes blocks into rooms, columns of some 16 000
// blocks; the workers go through the rooms side by side, without a copy and without waiting for each
// other, and a room that all have seen is filled again. At most kMostRooms are in use (6 MiB, and as
// much for dealt lines), then the reader waits, and so in the end does the program. Where most
// addresses are derived, a room has up to three times the blocks, and fewer are filled: kMostWaiting
// blocks.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "core/broadcast.h"
#include "engines/dealt_lines.h"
#include "revisit/access.h"
#include "revisit/error.h"

namespace revisit {

// What workers want to know of an access.
struct BlocksWanted {
    unsigned shift = 0;                  // blocks of 2^shift bytes
    bool parts = false;                  // and which parts of them
    std::optional<LinePlan> lines = {};  // and the blocks as lines of simulated caches
};

// Memory that is touched only as far as it is used.
template <class T>
class Column {
 public:
    // What it held is lost where it grows.
    T* make_room(std::size_t count) {
        if (count > room_) {
            values_ = std::make_unique_for_overwrite<T[]>(count);
            room_ = count;
        }
        return values_.get();
    }
    void assign(std::span<const T> from);
    std::span<const T> first(std::size_t count) const { return {values_.get(), count}; }

 private:
    std::unique_ptr<T[]> values_;
    std::size_t room_ = 0;
};

struct BlockRoom {
    Column<std::uint64_t> blocks;
    Column<std::uint32_t> sites;
    Column<std::uint16_t> threads;
    Column<std::uint8_t> flags;
    Column<std::uint16_t> parts;
    DealtLines lines;  // where they are wanted
    std::size_t count = 0;
    bool has_sites = false, has_threads = false, has_flags = false, has_parts = false;

    void assign(const BlockBatch& batch);
    BlockBatch batch() const {
        auto of = [&](const auto& column, bool has) { return column.first(has ? count : 0); };
        return {of(blocks, true), of(sites, has_sites), of(threads, has_threads), of(flags, has_flags),
                of(parts, has_parts)};
    }
    operator BlockBatch() const { return batch(); }  // NOLINT: for workers that want no more
};

class BlockWorkers {
 public:
    using Work = std::function<Result<void>(const BlockRoom&)>;
    static constexpr std::size_t kMostRooms = 24, kMostWaiting = std::size_t{1} << 19;

    // `side_by_side` false: everything is done in the caller's thread. Batches come with the parts that
    // are wanted, or that lines are dealt with; whoever fills rooms does so himself.
    BlockWorkers(std::vector<Work> workers, bool side_by_side, const BlocksWanted& wanted = {});

    BlockRoom take();
    // Errors of workers come out of a later call.
    Result<void> hand_over(std::span<BlockRoom> filled);
    Result<void> add(const BlockBatch& batch);
    // Returns when all is done.
    Result<void> finish();

 private:
    void work(const Work& worker, const BlockRoom& room);
    Result<void> state() const;

    const bool keeps_parts_;
    std::optional<LineDealer> dealer_;
    std::vector<Work> alone_;  // where there are no threads
    std::vector<BlockRoom> spare_;
    std::mutex guard_;
    std::optional<Error> failure_;  // the first one; written before failed_ is set, read after
    std::atomic<bool> failed_ = false;
    std::optional<Broadcast<BlockRoom>> rooms_;  // last: its threads use the others
};

}  // namespace revisit
