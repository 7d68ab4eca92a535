// What is counted beside the main histogram, from the same accesses in the same pass.
//
// Pages. Caches hold lines, TLBs hold pages: the run in blocks of 4 KiB and 2 MiB has histograms of its
// own. Each size has an engine of the same method and model as the main one. Most accesses stay in the
// page of the one before, which the exact engine counts without a lookup, so pages cost a fraction of
// lines.
//
// Line use. Of the bytes of a line that a cache fetches, how many are used before it is evicted? A true
// LRU cache (line_use.h) shows, per site that fetched the line.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "engines/line_use_thread.h"
#include "revisit/analyze.h"
#include "revisit/blocks.h"

namespace revisit {

// Threads placed on cores (AnalyzeOptions::cores): what the engine takes for threads are cores then.
class Placement {
 public:
    explicit Placement(std::vector<std::uint16_t> cores) : cores_(std::move(cores)) {}
    bool empty() const { return cores_.empty(); }
    AccessBatch apply(const AccessBatch& batch) {
        if (cores_.empty()) return batch;
        placed_.resize(batch.count());
        for (std::size_t i = 0; i < batch.count(); ++i)
            placed_[i] = cores_[batch.threads.empty() ? 0 : batch.threads[i] % cores_.size()];
        return {batch.addresses, batch.sites, batch.sizes, placed_, batch.flags};
    }

 private:
    std::vector<std::uint16_t> cores_, placed_;
};

class Beside {
 public:
    static Result<Beside> create(const AnalyzeOptions& options);

    bool empty() const { return sizes_.empty() && !line_use_; }
    // Leaves line use to the caller, whose blocks are of this size, so that accesses are not cut twice.
    // Gives the cache; none where line use is not counted in such blocks.
    std::optional<CacheSpec> take_line_use(std::uint64_t granularity);
    Result<void> add(const AccessBatch& batch);
    // Into Profile::granularities, the profile's own first, and Profile::line_use. Sites still have the
    // ids that the accesses had.
    Result<void> fill(Profile& profile);

 private:
    struct Size {
        std::uint64_t granularity;
        BlockCutter cutter;
        std::unique_ptr<Engine> engine;
    };
    std::vector<Size> sizes_;
    std::unique_ptr<LineUseThread> line_use_;
    std::optional<BlockCutter> lines_;  // with line_use_
    std::optional<CacheSpec> line_use_cache_;
};

}  // namespace revisit
