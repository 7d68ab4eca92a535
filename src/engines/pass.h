// One pass over accesses: the engine, and all that is counted beside it.
//
//     accesses ─ on cores ─┬─ cut ─ blocks ─┬─▶ engine
//                          │                ├─▶ simulated caches   (cache_bank.h)
//                          │                └─▶ line use           (line_use.h)
//                          ├─▶ pages, line use in lines of another size (beside.h)
//                          └─▶ AnalyzeOptions::also
//
// Whatever has accesses ends here: readers of traces (analyze.cpp), arrays and batches
// (revisit/analyze.h), recorded processes (record/sinks.cpp), interpreted programs (predict/run). So
// what is joined with what, and what becomes the profile, is stated once.
//
// Threads. An engine counts in the thread that adds. Where the accesses come from a running program
// (EngineOptions::streamed), or caches are simulated, whatever takes blocks has a thread of its own
// (block_workers.h), and whoever adds goes on meanwhile. A source with blocks in rooms of its own hands
// them over without a copy.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engines/beside.h"
#include "engines/block_workers.h"
#include "engines/cache_bank.h"
#include "engines/line_use.h"
#include "revisit/analyze.h"
#include "revisit/blocks.h"

namespace revisit {

class Pass {
 public:
    static Result<std::unique_ptr<Pass>> create(const AnalyzeOptions& options);
    Pass(const Pass&) = delete;  // threads have its address
    Pass& operator=(const Pass&) = delete;

    const AnalyzeOptions& options() const { return options_; }

    // An error once it is finished.
    Result<void> is_open() const;
    Result<void> add(const AccessBatch& accesses);
    // Cut already, to the profile's granularity. An error where accesses are needed whole.
    Result<void> add_blocks(const BlockBatch& blocks);

    // Only the engine counts: it may read a source itself, and nobody sees accesses whole.
    bool is_engine_alone() const { return !workers_ && takes_blocks(); }
    Engine& engine() { return *engine_; }
    // How a source may cut accesses itself (AccessColumns::cut_shift).
    std::optional<unsigned> cut_shift() const { return cutter_.shift(); }

    // What is wanted of blocks that come in rooms, without threads; none where they may not.
    std::optional<BlocksWanted> rooms_wanted() const { return rooms_wanted_; }
    BlockRoom take_room() { return workers_->take(); }
    Result<void> add_rooms(std::span<BlockRoom> rooms) { return workers_->hand_over(rooms); }

    // Once, after which nothing is added.
    Result<Profile> finish();

 private:
    Pass(const AnalyzeOptions& options, std::unique_ptr<Engine> engine, Beside beside);
    bool takes_blocks() const { return !options_.also && beside_.empty() && placement_.empty(); }
    Result<void> count(const BlockBatch& blocks);
    std::vector<BlockWorkers::Work> workers();

    const AnalyzeOptions options_;
    std::unique_ptr<Engine> engine_;  // none once it is finished
    Beside beside_;
    Placement placement_;
    BlockCutter cutter_;
    // With workers.
    std::optional<CacheSpec> line_use_cache_;
    std::optional<CacheParts> caches_;
    std::optional<LineUseParts> line_use_;
    std::optional<BlocksWanted> rooms_wanted_;
    std::optional<BlockWorkers> workers_;  // last: its threads use the others
};

}  // namespace revisit
