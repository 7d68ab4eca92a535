// Chunk after chunk through the parallel count (partition_count.cpp), on threads.
//
// A trace of any length is cut into chunks. Each is preceded by the LRU stack as it stands, least
// recent block first, as that many virtual accesses: they are first touches in the combined sequence,
// so nothing is counted for them, and every real access finds its previous one either in the chunk or
// among them. After the chunk, the accesses that nothing follows are the new stack, in order.
//
// The exact engine beats this on a CPU; it is here because the GPU engine is the same algorithm, and
// this one runs where there is no GPU: in the tests, and under the fuzzer.
#include "core/parallel.h"
#include "core/try.h"
#include "engines/partition_count.h"
#include "engines/partition_engine.h"
#include "engines/tally.h"

namespace revisit {
namespace {

struct Sequence {
    std::vector<std::uint64_t> blocks;
    std::vector<std::uint64_t> times;
    std::vector<std::uint32_t> sites;
    std::vector<bool> writes;
};

class PartitionEngine : public Engine {
 public:
    PartitionEngine(const EngineOptions& options, std::size_t chunk, const PartitionShape& shape)
        : tally_(options), threads_(thread_count(options.threads)), chunk_(chunk), shape_(shape) {}

    Result<void> add(const BlockBatch& batch) override {
        for (std::size_t i = 0; i < batch.count(); ++i) {
            all_.blocks.push_back(batch.blocks[i]);
            all_.times.push_back(now_++);
            all_.sites.push_back(batch.sites.empty() ? 0 : batch.sites[i]);
            all_.writes.push_back(!batch.flags.empty() && (batch.flags[i] & kWrite) != 0);
            // At least as many real accesses as virtual ones, or the stack would be most of the work.
            if (all_.blocks.size() - stacked_ < std::max(chunk_, stacked_)) continue;
            TRY(count_chunk());
        }
        return {};
    }

    Result<Profile> finish() override {
        TRY(count_chunk());
        return tally_.profile("partition", stacked_);
    }

 private:
    Result<void> count_chunk() {
        if (all_.blocks.size() >= kMostAtOnce)
            return fail("the partition method holds at most 2^30 blocks at a time");
        const auto previous = previous_accesses(all_.blocks, threads_);
        const Reuses reuses = reuses_of(previous);
        const auto distance = distances_by_key(reuses, threads_, shape_);
        std::vector<bool> reused(previous.size());
        std::size_t reuse = 0;
        for (std::size_t i = 0; i < previous.size(); ++i) {
            const std::uint32_t p = previous[i];
            if (p != kNoAccess) {
                reused[p] = true;
                tally_.add_reuse(distance[reuses.key[reuse++]], all_.times[i] - all_.times[p],
                                 all_.sites[p], all_.sites[i], all_.writes[i]);
            } else if (i >= stacked_) {
                tally_.add_cold(all_.sites[i], all_.writes[i]);
            }
        }
        stacked_ = 0;
        for (std::size_t i = 0; i < previous.size(); ++i) {
            if (reused[i]) continue;
            all_.blocks[stacked_] = all_.blocks[i];
            all_.times[stacked_] = all_.times[i];
            all_.sites[stacked_] = all_.sites[i];
            ++stacked_;
        }
        all_.blocks.resize(stacked_);
        all_.times.resize(stacked_);
        all_.sites.resize(stacked_);
        all_.writes.resize(stacked_);
        return {};
    }

    Tally tally_;
    unsigned threads_;
    std::size_t chunk_;
    PartitionShape shape_;
    Sequence all_;             // the stack, then the chunk
    std::size_t stacked_ = 0;  // how many of them are the stack
    std::uint64_t now_ = 0;
};

}  // namespace

std::unique_ptr<Engine> make_partition_in_chunks(const EngineOptions& options, std::size_t chunk,
                                                 const PartitionShape& shape) {
    return std::make_unique<PartitionEngine>(options, chunk, shape);
}

Result<std::unique_ptr<Engine>> make_partition(const EngineOptions& options) {
    TRY(require_single_model("partition", options));
    return make_partition_in_chunks(options, std::size_t{1} << 22, {});
}

}  // namespace revisit
