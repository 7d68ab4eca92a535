// Exact reuse distances on several threads: chunks of time, and their first touches handed back.
//
// Problem. An access's distance depends on everything before it.
// Idea. Cut a window of the trace into a chunk a thread. Within a chunk, an engine that starts empty
// gets every distance right but those of first touches, which it lists. Played in order to the engine
// of the chunk before, as if they were its next accesses, they find their distances there: what lies
// above a block on that stack is what was touched after it in that chunk or earlier in the list, and
// everything else of the later chunk that was touched in between is in the list or was resolved on the
// way. What that engine does not know either goes on to the one before it, and in the end to the engine
// that knows the whole past:
//
//     hop 1:  list of chunk 3 → engine 2,  of 2 → 1,  of 1 → 0        (side by side)
//     hop 2:  what is left of 3 → engine 1,  of 2 → 0
//     hop 3:  what is left of 3 → engine 0
//
// Engine 0 outlives the window. Its order is then put right: blocks whose last access lies in chunk k
// are those engine k still has from before the lists came, in its order, and are touched again in that
// order. Cost. Each thread counts its chunk and about as many list entries as a chunk has blocks; the
// last repair is as many touches as the window has blocks. So chunks grow until first touches are few.
// Results do not depend on timing: what each engine does is fixed by the cut, and the histogram by
// nothing. Source. Niu et al., PARDA, IPDPS 2012, for the handing back; the engines and the repair are
// ours.
#include "engines/exact_threads.h"

#include <algorithm>
#include <new>

#include "core/parallel.h"
#include "engines/exact.h"

namespace revisit {
namespace {

class ThreadedExactEngine : public Engine {
 public:
    ThreadedExactEngine(const EngineOptions& options, unsigned threads, const ThreadTuning& tuning)
        : options_(options),
          threads_(threads),
          tuning_(tuning),
          chunk_(tuning.first_chunk),
          past_(options) {}

    Result<void> add(const BlockBatch& batch) override {
        try {
            accesses_ += batch.count();
            auto blocks = batch.blocks;
            // A trace that is in memory anyway is counted where it lies.
            while (collected_.empty() && blocks.size() >= threads_ * tuning_.first_chunk) {
                const std::size_t take = std::min(blocks.size(), threads_ * tuning_.direct_chunk);
                if (auto done = count_window(blocks.first(take)); !done) return done;
                blocks = blocks.subspan(take);
            }
            while (!blocks.empty()) {
                const std::size_t take = std::min(blocks.size(), threads_ * chunk_ - collected_.size());
                collected_.insert(collected_.end(), blocks.begin(),
                                  blocks.begin() + static_cast<std::ptrdiff_t>(take));
                blocks = blocks.subspan(take);
                if (collected_.size() < threads_ * chunk_) break;
                if (auto done = count_window(collected_); !done) return done;
                collected_.clear();
            }
            return {};
        } catch (const std::bad_alloc&) {
            return fail("not enough memory to count on several threads; use --threads 1");
        }
    }

    Result<Profile> finish() override {
        try {
            if (auto done = count_window(collected_); !done) return std::unexpected(done.error());
            auto profile = past_.finish();
            if (!profile) return profile;
            profile->accesses = static_cast<double>(accesses_);
            profile->reuse.merge(others_);
            return profile;
        } catch (const std::bad_alloc&) {
            return fail("not enough memory to count on several threads; use --threads 1");
        }
    }

 private:
    struct Worker {
        std::unique_ptr<ExactEngine> engine;
        std::vector<std::uint64_t> list;  // first touches nobody has known yet
        std::size_t own = 0;              // blocks of the chunk that no later chunk has touched
        Histogram counted;
        Result<void> status;
    };

    Result<void> count_window(std::span<const std::uint64_t> blocks) {
        // The order of what was counted before is put right only when something follows.
        if (blocks.empty()) return {};
        if (auto done = repair(); !done) return done;
        if (blocks.size() < threads_ * tuning_.least_chunk) return past_.add({blocks, {}, {}, {}});
        workers_.clear();
        workers_.resize(threads_);
        run(threads_, [&](std::size_t k) {
            const auto low = blocks.size() * k / threads_, high = blocks.size() * (k + 1) / threads_;
            return count_chunk(k, blocks.subspan(low, high - low));
        });
        std::size_t listed = 0;
        for (const Worker& worker : workers_) listed += worker.list.size();
        for (std::size_t hop = 1; hop < threads_; ++hop)
            run(threads_ - hop, [&](std::size_t k) { return hand_back(workers_[k + hop].list, k); });
        run(threads_, [&](std::size_t k) -> Result<void> {
            if (k == 0) return {};
            workers_[k].counted = workers_[k].engine->distances().histogram();
            workers_[k].counted.cold =
                0;  // known to an earlier engine, or new to the past and cold there
            return {};
        });
        for (Worker& worker : workers_) {
            if (!worker.status) return std::unexpected(worker.status.error());
            others_.merge(worker.counted);
        }
        if (listed * 16 > blocks.size()) chunk_ = std::min(chunk_ * 2, tuning_.most_chunk);
        return {};
    }

    template <class Work>
    void run(std::size_t pieces, Work work) {
        parallel_for(threads_, pieces, [&](std::size_t k) {
            if (!workers_[k].status) return;
            try {
                workers_[k].status = work(k);
            } catch (const std::bad_alloc&) {
                workers_[k].status =
                    fail("not enough memory to count on several threads; use --threads 1");
            }
        });
    }

    ExactEngine& engine(std::size_t k) { return k == 0 ? past_ : *workers_[k].engine; }

    Result<void> count_chunk(std::size_t k, std::span<const std::uint64_t> blocks) {
        Worker& worker = workers_[k];
        if (k != 0) {
            worker.engine = std::make_unique<ExactEngine>(options_);
            worker.engine->list_first_touches(&worker.list);
        }
        if (auto done = engine(k).add({blocks, {}, {}, {}}); !done) return done;
        if (auto done = engine(k).settle(); !done) return done;
        worker.own = engine(k).live();
        return {};
    }

    // Plays a later chunk's list to engine k; what that one does not know takes the list's place.
    Result<void> hand_back(std::vector<std::uint64_t>& list, std::size_t k) {
        if (list.empty()) return {};
        std::vector<std::uint64_t> unknown;
        ExactEngine& earlier = engine(k);
        earlier.list_first_touches(&unknown);
        auto played = earlier.add({list, {}, {}, {}});
        if (played) played = earlier.settle();
        earlier.list_first_touches(nullptr);
        workers_[k].own -= list.size() - unknown.size();
        list = std::move(unknown);
        return played;
    }

    Result<void> repair() {
        if (workers_.empty()) return {};
        run(threads_, [&](std::size_t k) -> Result<void> {
            if (k == 0) return {};
            workers_[k].list = workers_[k].engine->take_oldest(workers_[k].own);
            workers_[k].engine.reset();
            return {};
        });
        for (const Worker& worker : workers_) {
            if (!worker.status) return std::unexpected(worker.status.error());
            if (auto done = past_.touch(worker.list); !done) return done;
        }
        workers_.clear();
        return {};
    }

    EngineOptions options_;
    std::size_t threads_;
    ThreadTuning tuning_;
    std::size_t chunk_;  // accesses a thread to collect
    std::vector<std::uint64_t> collected_;
    ExactEngine past_;
    std::vector<Worker> workers_;  // of the window counted last, until its order is put right
    Histogram others_;             // distances that engines other than past_ counted
    std::uint64_t accesses_ = 0;
};

}  // namespace

std::unique_ptr<Engine> make_exact_threads(const EngineOptions& options, const ThreadTuning& tuning) {
    const unsigned threads = thread_count(options.threads);
    if (threads < 2 || options.time || options.sites || options.pairs || options.phases != 0)
        return nullptr;
    return std::make_unique<ThreadedExactEngine>(options, threads, tuning);
}

}  // namespace revisit
