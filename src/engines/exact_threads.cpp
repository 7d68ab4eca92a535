// Exact reuse distances on several threads: chunks of time, and their first touches looked up together.
//
// Problem. An access's distance depends on everything before it.
// Idea. Cut a window of the trace into a chunk a thread. Within a chunk, an engine that starts empty
// gets every distance right but those of first touches, which it lists. These lists, and the order of
// last touches that each chunk leaves, are all that the rest of the work needs: stack_parts.h finds the
// distances of all first touches of the window at once, by all threads.
//
// Cost. A chunk's thread does what one thread would do, in a smaller table. A first touch costs a few
// ns (scans) to 80 (scattered blocks) on top, shared by all threads. So several threads lose only where
// they are few and many accesses of a chunk are first touches.
//
// Which way is faster is measured, on the trace and the machine at hand (Pace below). Of the first
// window, one chunk is counted while the other threads wait, which tells what an access costs where
// nobody else uses the caches; the rest tells what it costs together, and what a first touch does. What
// a window will take follows from the share of first touches, estimated from the blocks whose hash
// falls in a thousandth. If one thread would be faster, it counts with the usual engine and the others
// are tried again now and then, as seldom as bounds the loss at some three percent. The stack moves
// from one form to the other. The profile does not depend on any of this.
//
// Time distances need only a lookup an access: they are counted on a thread of their own beside.
//
// A trace that is read bit by bit is collected into longer windows while first touches are many; the
// next one is collected while this one is counted.
#include "engines/exact_threads.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <new>
#include <optional>
#include <unordered_set>

#include "core/parallel.h"
#include "engines/exact.h"
#include "engines/stack_parts.h"
#include "engines/time_distances.h"

namespace revisit {
namespace {

constexpr std::string_view kNoMemory = "not enough memory to count on several threads; use --threads 1";

constexpr std::size_t kWorthThread = std::size_t{1} << 14;  // accesses

// First touches take some 75 bytes each, tables included, and may be all there is: windows that could
// need more than a quarter of the machine are not tried.
std::size_t most_window() {
    const auto pages = static_cast<std::uint64_t>(std::max(1L, sysconf(_SC_PHYS_PAGES)));
    const auto page = static_cast<std::uint64_t>(std::max(4096L, sysconf(_SC_PAGESIZE)));
    return std::min<std::uint64_t>(StackParts::kMostPlaces / 2, pages * page / (4 * 75));
}

// Distinct blocks of a chunk, from those whose hash falls in 1/1024: few enough that a cache line's
// worth of accesses is passed over at once.
std::size_t estimate_distinct(std::span<const std::uint64_t> blocks, unsigned threads) {
    constexpr unsigned kBits = 10;
    constexpr std::size_t kAtOnce = 64, kPiece = std::size_t{1} << 19;
    auto hash = [](std::uint64_t block) {
        return static_cast<std::uint32_t>(block ^ block >> 32 ^ block >> 15) * 0x9e3779b1u;
    };
    std::vector<std::unordered_set<std::uint64_t>> seen(blocks.size() / kPiece + 1);
    parallel_for(threads, seen.size(), [&](std::size_t piece) {
        auto rest = blocks.subspan(piece * kPiece);
        rest = rest.first(std::min(kPiece, rest.size()));
        for (; rest.size() >= kAtOnce; rest = rest.subspan(kAtOnce)) {
            std::uint32_t least = ~0u;
            for (std::size_t j = 0; j < kAtOnce; ++j) least = std::min(least, hash(rest[j]));
            if (least >> (32 - kBits) != 0) continue;
            for (std::uint64_t block : rest.first(kAtOnce))
                if (hash(block) >> (32 - kBits) == 0) seen[piece].insert(block);
        }
    });
    for (std::size_t piece = 1; piece < seen.size(); ++piece) seen[0].merge(seen[piece]);
    return seen[0].size() << kBits;
}

double now() {  // ns
    return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

// How fast the two ways were when they were last taken, in ns.
struct Pace {
    double access = 0;       // of a chunk, times threads
    double first_touch = 0;  // on top, times threads
    double alone = 0;        // an access on one thread, in units of `access` then

    bool known() const { return alone != 0; }
    // Of the time of one thread.
    double together(double share, unsigned threads) const {
        return (access + first_touch * share) / (alone * access * threads);
    }
};

class ThreadedExactEngine : public Engine {
 public:
    ThreadedExactEngine(const EngineOptions& options, unsigned threads, const ThreadTuning& tuning)
        : options_(options),
          threads_(threads),
          tuning_(tuning),
          most_window_(most_window()),
          chunk_(tuning.first_chunk),
          crew_(threads),
          stack_(crew_, std::max(threads, tuning.parts)) {
        if (options.time) times_.emplace(options.bins);
        options_.time = false;  // of the engines of chunks
    }
    ~ThreadedExactEngine() override { (void)wait(); }

    Result<void> add(const BlockBatch& batch) override {
        try {
            accesses_ += batch.count();
            auto blocks = batch.blocks;
            // A trace that is in memory anyway is counted where it lies.
            while (collected_.empty() && blocks.size() >= threads_ * tuning_.first_chunk) {
                if (auto done = wait(); !done) return done;
                const std::size_t take =
                    std::min({blocks.size(), threads_ * tuning_.direct_chunk, most_window_});
                const auto window = blocks.first(take);
                if (auto done = count_window(window, first_touch_share(window)); !done) return done;
                blocks = blocks.subspan(take);
            }
            while (!blocks.empty()) {
                const std::size_t take = std::min(blocks.size(), threads_ * chunk_ - collected_.size());
                collected_.insert(collected_.end(), blocks.begin(),
                                  blocks.begin() + static_cast<std::ptrdiff_t>(take));
                blocks = blocks.subspan(take);
                if (collected_.size() < threads_ * chunk_) break;
                const double share = first_touch_share(collected_);
                if (share > 1.0 / 16 && 2 * threads_ * chunk_ <= most_window_ &&
                    chunk_ < tuning_.most_chunk) {
                    chunk_ *= 2;
                    continue;
                }
                if (auto done = wait(); !done) return done;
                std::swap(counting_, collected_);
                collected_.clear();
                running_ = std::async(std::launch::async,
                                      [this, share] { return count_window(counting_, share); });
            }
            return {};
        } catch (const std::bad_alloc&) {
            return fail(std::string(kNoMemory));
        }
    }

    Result<Profile> finish() override {
        try {
            if (auto done = wait(); !done) return std::unexpected(done.error());
            if (auto done = count_window(collected_, first_touch_share(collected_)); !done)
                return std::unexpected(done.error());
            Profile profile;
            profile.method = "exact";
            profile.granularity = options_.granularity;
            profile.accesses = static_cast<double>(accesses_);
            if (alone_) {
                if (auto done = alone_->settle(); !done) return std::unexpected(done.error());
                take_counts(alone_->distances());
            }
            profile.reuse = std::move(counted_);
            profile.distinct = profile.reuse.cold = static_cast<double>(live());
            if (times_) profile.time = times_->histogram();
            return profile;
        } catch (const std::bad_alloc&) {
            return fail(std::string(kNoMemory));
        }
    }

 private:
    Result<void> wait() {
        if (!running_.valid()) return {};
        return running_.get();
    }

    std::size_t live() const { return alone_ ? alone_->live() : stack_.live(); }

    Result<void> count_window(std::span<const std::uint64_t> blocks, double share) {
        try {
            std::future<void> timed;  // waits when it goes
            if (times_)
                timed = std::async(
                    blocks.size() < kWorthThread ? std::launch::deferred : std::launch::async,
                    [this, blocks] { times_->add(blocks); });
            auto counted = count_steps(blocks, share);
            if (timed.valid()) timed.get();
            return counted;
        } catch (const std::bad_alloc&) {
            return fail(std::string(kNoMemory));
        }
    }

    Result<void> count_steps(std::span<const std::uint64_t> blocks, double share) {
        while (!blocks.empty()) {
            const Step step = next_step(blocks.size(), share);
            const auto part = blocks.first(std::min(step.accesses, blocks.size()));
            blocks = blocks.subspan(part.size());
            const double begin = now();
            if (step.together) {
                // A short part has more first touches than the window.
                const double its_share = blocks.empty() ? share : first_touch_share(part);
                if (auto done = count_together(part, its_share); !done) return done;
                alone_since_ = 0;
                continue;
            }
            const bool was_alone = alone_ != nullptr;
            if (auto done = count_alone(part); !done) return done;
            // Moving the stack over is not what an access costs.
            if (was_alone && pace_.known())
                pace_.alone = (now() - begin) / static_cast<double>(part.size()) / pace_.access;
            alone_since_ += part.size();
        }
        return {};
    }

    struct Step {
        bool together;
        std::size_t accesses;
    };
    Step next_step(std::size_t left, double share) const {
        const bool is_together = !alone_ && stack_.live() != 0;
        if (left < threads_ * tuning_.least_chunk) return {is_together, left};
        if (!tuning_.weigh || threads_ >= tuning_.sure_from) return {true, left};
        const std::size_t trial = threads_ * tuning_.trial;
        // Too short to measure: a first touch costs some three accesses to scattered blocks.
        if (!pace_.known() && left < trial) return {share <= (threads_ - 1) / 4.0, left};
        if (!pace_.known()) return {true, std::min(left, 4 * trial)};
        const double ratio = pace_.together(share, threads_);
        // Worth more than the window: it stays as it is.
        const bool stay = live() > left / 4;
        if (is_together ? ratio < 1 || stay : ratio < 0.95 && !stay) return {true, left};
        if (is_together) return {false, std::min(left, trial)};
        const double wait = (8 + 32 * std::max(0.0, ratio - 1)) * static_cast<double>(trial + live());
        if (static_cast<double>(alone_since_) >= wait) return {true, trial};
        return {false, std::min(left, trial + static_cast<std::size_t>(wait) - alone_since_)};
    }

    // The share of first touches in one of the chunks, the middle one.
    double first_touch_share(std::span<const std::uint64_t> blocks) const {
        const auto chunk =
            blocks.subspan(blocks.size() / threads_ * (threads_ / 2), blocks.size() / threads_);
        if (chunk.empty()) return 1;
        return static_cast<double>(estimate_distinct(chunk, threads_)) /
               static_cast<double>(chunk.size());
    }

    Result<void> count_alone(std::span<const std::uint64_t> blocks) {
        if (!alone_) {
            alone_ = std::make_unique<ExactEngine>(options_);
            if (auto done = alone_->touch(stack_.take()); !done) return done;
        }
        return alone_->add({blocks, {}, {}, {}});
    }

    Result<void> count_together(std::span<const std::uint64_t> blocks, double share) {
        std::vector<ChunkTouches> chunks;
        // Cores are not equally fast at all times. Where it costs few first touches, chunks are cut
        // smaller, so that whoever is done takes another.
        const bool divisible = blocks.size() >= 4 * threads_ * tuning_.least_chunk;
        const bool calibrate =
            tuning_.weigh && threads_ < tuning_.sure_from && !pace_.known() && divisible;
        const std::size_t pieces =
            calibrate + (calibrate || (share <= 1.0 / 64 && divisible) ? 4 * threads_ : threads_);
        std::vector<DistanceTable> tables;
        for (std::size_t k = 0; k < pieces; ++k) tables.emplace_back(options_.bins);
        if (alone_) {
            if (auto done = alone_->settle(); !done) return done;
            take_counts(alone_->distances());
            chunks.push_back(touches_of(*alone_, {}));
            alone_.reset();
        }
        const auto expected =
            static_cast<std::size_t>(share * static_cast<double>(blocks.size() / threads_));
        const std::size_t first = chunks.size();
        chunks.resize(first + pieces);
        std::vector<Result<void>> status(pieces);
        auto count_piece = [&](std::size_t k) {
            const auto low = blocks.size() * k / pieces, high = blocks.size() * (k + 1) / pieces;
            ExactEngine engine(options_);
            engine.expect(expected, high - low);
            BigVector<std::uint64_t> list;
            list.reserve(expected + expected / 16);
            engine.list_first_touches(&list);
            status[k] = engine.add({blocks.subspan(low, high - low), {}, {}, {}});
            if (status[k]) status[k] = engine.settle();
            if (!status[k]) return;
            tables[k] = engine.take_distances();
            chunks[first + k] = touches_of(engine, std::move(list));
        };
        const double start = now();
        if (calibrate) count_piece(0);
        const double begin = now();
        crew_.run(pieces - calibrate, [&](std::size_t k) { count_piece(k + calibrate); });
        for (const Result<void>& done : status)
            if (!done) return done;
        if (stack_.live() + blocks.size() > StackParts::kMostPlaces)
            return fail("more blocks than several threads can count; use --threads 1");
        const double counted = now();
        std::size_t first_touches = 0;
        for (std::size_t k = first; k < chunks.size(); ++k) first_touches += chunks[k].count();
        stack_.resolve(chunks, tables);
        for (const DistanceTable& table : tables) take_counts(table);
        const auto per_piece = static_cast<double>(blocks.size()) / static_cast<double>(pieces);
        pace_.access =
            (counted - begin) * threads_ / (per_piece * static_cast<double>(pieces - calibrate));
        if (calibrate) pace_.alone = (begin - start) / per_piece / pace_.access;
        pace_.first_touch =
            (now() - counted) * threads_ / static_cast<double>(std::max<std::size_t>(first_touches, 1));
        return {};
    }

    // Without a list, the order of first touches does not matter.
    ChunkTouches touches_of(ExactEngine& engine, BigVector<std::uint64_t> list) const {
        const PartOf& part_of = stack_.part_of();
        if (!engine.uses_hash()) {
            auto [pages, marks] = engine.take_pages();
            return {std::move(list), std::move(pages), std::move(marks), part_of};
        }
        if (list.empty()) {
            std::vector<std::pair<std::uint64_t, std::uint32_t>> all;
            engine.drain([&](std::uint64_t block, std::uint32_t rank) {
                all.emplace_back(block, rank);
                list.push_back(block);
            });
            ChunkTouches touches(std::move(list), part_of);
            for (const auto& [block, rank] : all) touches.add_last(block, rank, part_of);
            return touches;
        }
        ChunkTouches touches(std::move(list), part_of);
        engine.drain(
            [&](std::uint64_t block, std::uint32_t rank) { touches.add_last(block, rank, part_of); });
        return touches;
    }

    void take_counts(const DistanceTable& table) {
        Histogram histogram = table.histogram();
        histogram.cold = 0;  // first touches of a chunk; what is cold is counted at the end
        counted_.merge(histogram);
    }

    EngineOptions options_;
    unsigned threads_;
    ThreadTuning tuning_;
    std::size_t most_window_;
    std::size_t chunk_;  // accesses a thread to collect
    BigVector<std::uint64_t> collected_, counting_;
    std::future<Result<void>> running_;  // counts counting_
    Pace pace_;
    std::size_t alone_since_ = 0;  // accesses counted by one thread since several did
    Crew crew_;
    StackParts stack_;                    // of all that was counted, unless
    std::unique_ptr<ExactEngine> alone_;  // this has it
    Histogram counted_;
    std::optional<TimeDistances> times_;
    std::uint64_t accesses_ = 0;
};

}  // namespace

std::unique_ptr<Engine> make_exact_threads(const EngineOptions& options, const ThreadTuning& tuning) {
    const unsigned threads = thread_count(options.threads);
    if (threads < 2 || options.sites || options.pairs || options.phases != 0) return nullptr;
    return std::make_unique<ThreadedExactEngine>(options, threads, tuning);
}

}  // namespace revisit
