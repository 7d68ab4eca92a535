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
// It begins as one thread would, and goes on so to the end of a short trace. Where a window is long
// enough, which way is faster is measured, on the trace and the machine at hand (Pace below). Of the
// first part, one chunk is counted while the other threads wait, which measures what an access costs
// where nobody else uses the caches; the rest measures what it costs together, and what a first touch
// does. What a window will take follows from the share of first touches, estimated from an eighth of a
// chunk and the blocks whose hash falls in a thousandth. If one thread would be faster, it counts with
// the usual engine and the others are tried again now and then, as seldom as bounds the loss at some
// three percent. The stack moves from one form to the other. The profile does not depend on any of
// this. Windows that are too short to measure go by a guess that rather leaves a gain than takes a
// loss: `bench_parallel lengths` looks for any.
//
// Sites, pairs and time distances go the same way: a chunk says when each of its first touches was, and
// who touched its blocks last and when (chunk_resolver.h). The end of a window of phases is the end of
// a window here.
//
// A trace that is read bit by bit is collected into longer windows while first touches are many; the
// next one is collected while this one is counted.
#include "engines/exact_threads.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <new>
#include <optional>
#include <utility>

#include "core/parallel.h"
#include "core/try.h"
#include "engines/chunk_resolver.h"
#include "engines/exact.h"
#include "engines/held_blocks.h"
#include "engines/trace_window.h"

namespace revisit {
namespace {

unexpected<Error> no_memory() {
    return fail(ErrorCode::no_threads, "not enough memory to count on several threads");
}

// First touches take some 75 bytes each, tables included, and may be all there is: windows that could
// need more than a quarter of the machine are not tried.
std::size_t most_window() {
    const auto pages = static_cast<std::uint64_t>(std::max(1L, sysconf(_SC_PHYS_PAGES)));
    const auto page = static_cast<std::uint64_t>(std::max(4096L, sysconf(_SC_PAGESIZE)));
    return std::min<std::uint64_t>(StackParts::kMostPlaces / 2, pages * page / (4 * 75));
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
    static constexpr std::size_t kLeastSegments = 4;

 public:
    ThreadedExactEngine(const EngineOptions& options, unsigned threads, const ThreadTuning& tuning)
        : options_(options),
          threads_(threads),
          tuning_(tuning),
          most_window_(most_window()),
          chunk_(tuning.first_chunk),
          memory_(std::make_shared<HeldSegments>(attributes())),
          collected_(memory_),
          counting_(memory_),
          alone_(std::make_unique<ExactEngine>(options)) {}
    ~ThreadedExactEngine() override {
        (void)wait();
        GrowingBytes::drop_spares();
    }

    Result<void> add(const BlockBatch& whole) override {
        try {
            BlockBatch batch = whole;
            since_look_ += batch.count();
            auto drop = [&](std::size_t count) { batch = batch.part(count, batch.count() - count); };
            // Phases that are too short for several threads need not be collected for them, nor what
            // may be all there is.
            const bool idle = collected_.size() == 0 && !running_.valid();
            const bool first = idle && now_ == 0;
            const std::size_t least = threads_ * tuning_.least_chunk;
            if (idle && batch.count() < least &&
                (options_.phases != 0
                     ? last_look_ < least
                     : first || (alone_ && now_ + batch.count() <= tuning_.least_chunk)))
                return count_window(batch, {});
            // A trace that is in memory anyway is counted where it lies.
            while (collected_.size() == 0 &&
                   batch.count() >= (first ? least : threads_ * tuning_.first_chunk)) {
                TRY(wait());
                const std::size_t take =
                    std::min({batch.count(), threads_ * tuning_.direct_chunk, most_window_});
                const auto window = batch.part(0, take);
                TRY(count_window(window, first_touches(window)));
                drop(take);
            }
            while (batch.count() != 0) {
                const std::size_t window = threads_ * chunk_;
                const std::size_t take =
                    std::min({batch.count(), window - collected_.size(), HeldSegments::kAccesses});
                // While one window is counted, the next one takes its place.
                memory_->wait_below(
                    std::max(kLeastSegments, (window + window / 3) / HeldSegments::kAccesses),
                    is_counting_);
                collected_.append(batch.part(0, take));
                drop(take);
                if (collected_.size() < window) continue;
                const FirstTouches touches = first_touches(collected_);
                if (touches.share > 1.0 / 16 && 2 * window <= most_window_ &&
                    chunk_ < tuning_.most_chunk) {
                    chunk_ *= 2;
                    continue;
                }
                TRY(wait());
                std::swap(counting_, collected_);
                collected_.clear();
                running_ = std::async(std::launch::async, [this, touches] {
                    const Counting counting(*this);
                    return count_window(counting_, touches);
                });
            }
            return {};
        } catch (const std::bad_alloc&) {
            return no_memory();
        }
    }

    // Sites and times are looked up again where they lie, so those traces are collected.
    bool takes_ranges() const override {
        return !attributes() && !options_.time && options_.phases == 0;
    }
    Result<void> add_ranges(const AccessRanges& trace, const AccessProgress& progress) override {
        try {
            TRY(count_collected());
            const std::uint64_t total = trace.count();
            for (std::uint64_t at = 0; at < total;) {
                // Often enough to show how far it is, and few enough for long chunks.
                const std::size_t take = std::min<std::uint64_t>(
                    {total - at, threads_ * tuning_.direct_chunk, most_window_});
                const TraceWindow window(trace, options_.granularity, at, take);
                TRY(count_window(window, first_touches(window)));
                at += take;
                if (progress) progress(at, total);
            }
            return {};
        } catch (const std::bad_alloc&) {
            return no_memory();
        }
    }

    bool takes_chunks() const override { return takes_ranges(); }
    Result<void> add_chunks(const AccessChunks& trace, const AccessProgress& progress) override {
        try {
            TRY(count_collected());
            const std::size_t chunks = trace.count();
            const std::size_t most = std::min(threads_ * tuning_.direct_chunk, most_window_);
            for (std::size_t at = 0; at < chunks;) {
                const TraceWindow rest(trace, options_.granularity, at, chunks);
                const TraceWindow window = rest.part(0, std::clamp(most, rest.grain(), rest.count()));
                TRY(count_window(window, first_touches(window)));
                at += window.count() / window.grain();
                if (progress) progress(at * window.grain(), chunks * window.grain());
            }
            return {};
        } catch (const std::bad_alloc&) {
            return no_memory();
        }
    }

    Result<Histogram> reuse_so_far() override {
        try {
            TRY(count_collected());
            last_look_ = std::exchange(since_look_, 0);
            if (!resolver_) return alone_->reuse_so_far();
            Histogram histogram = resolver_->reuse();
            if (alone_) {
                TRY(alone_->settle());
                histogram.merge(alone_->distances().histogram());
            }
            histogram.cold = static_cast<double>(live());
            return histogram;
        } catch (const std::bad_alloc&) {
            return no_memory();
        }
    }

    Result<Profile> finish() override {
        Histogram reuse = TRY(reuse_so_far());
        if (!resolver_) return alone_->finish();
        try {
            Profile profile;
            profile.method = "exact";
            profile.granularity = options_.granularity;
            profile.accesses = static_cast<double>(now_);
            profile.reuse = std::move(reuse);
            profile.distinct = profile.reuse.cold;
            if (alone_) take_counts();
            if (options_.time) {
                profile.time = resolver_->time();
                profile.time->cold = profile.distinct;
            }
            if (attributes()) resolver_->fill_sites(profile);
            return profile;
        } catch (const std::bad_alloc&) {
            return no_memory();
        }
    }

 private:
    // While a window is counted beside the collecting.
    struct Counting {
        explicit Counting(ThreadedExactEngine& all) : all(all) { all.is_counting_ = true; }
        ~Counting() {
            all.is_counting_ = false;
            all.memory_->wake();
        }
        ThreadedExactEngine& all;
    };
    Result<void> wait() {
        if (!running_.valid()) return {};
        return running_.get();
    }

    bool attributes() const { return options_.sites || options_.pairs; }
    std::size_t live() const { return alone_ ? alone_->live() : resolver_->live(); }

    Result<void> count_collected() {
        TRY(wait());
        auto counted = count_window(collected_, first_touches(collected_));
        collected_.clear();
        return counted;
    }

    Result<void> count_window(TraceWindow window, const FirstTouches& touches) {
        try {
            while (window.count() != 0) {
                const Step step = next_step(window, touches);
                const auto part =
                    window.part(0, std::clamp(step.accesses, window.grain(), window.count()));
                window = window.part(part.count(), window.count() - part.count());
                const double begin = now();
                if (step.together) {
                    // A short part has more first touches than the window.
                    const double share =
                        window.count() == 0 ? touches.share : first_touches(part).share;
                    now_ += TRY(count_together(part, share, step.calibrate));
                    alone_since_ = 0;
                } else {
                    const bool was_alone = alone_ != nullptr;
                    now_ += TRY(count_alone(part));
                    // Moving the stack over is not what an access costs.
                    if (was_alone && pace_.known())
                        pace_.alone =
                            (now() - begin) / static_cast<double>(part.count()) / pace_.access;
                    alone_since_ += part.count();
                }
            }
            return {};
        } catch (const std::bad_alloc&) {
            return no_memory();
        }
    }

    struct Step {
        bool together;
        std::size_t accesses;
        bool calibrate = false;
    };
    Step next_step(const TraceWindow& window, const FirstTouches& touches) const {
        const std::size_t left = window.count();
        if (left < threads_ * tuning_.least_chunk) return {!alone_, left};
        if (!tuning_.weigh || threads_ >= tuning_.sure_from) return {true, left};
        const std::size_t trial = threads_ * tuning_.trial;
        // Worth more than the window: it stays as it is.
        const bool stay = live() > left / 4;
        if (!pace_.known()) return first_step(window, touches, stay);
        const double ratio = pace_.together(touches.share, threads_);
        if (!alone_ ? ratio < 1 || stay : ratio < 0.95 && !stay) return {true, left};
        if (!alone_) return {false, std::min(left, trial)};
        const double wait = (8 + 32 * std::max(0.0, ratio - 1)) * static_cast<double>(trial + live());
        if (static_cast<double>(alone_since_) >= wait) return {true, trial};
        return {false, std::min(left, trial + static_cast<std::size_t>(wait) - alone_since_)};
    }

    // Where nothing was measured yet. A first touch costs some three accesses to scattered blocks; in
    // order it costs one, and hardly anything in a long scan where nothing but distances is wanted.
    Step first_step(const TraceWindow& window, const FirstTouches& touches, bool stay) const {
        const std::size_t left = window.count(), trial = 4 * threads_ * tuning_.trial;
        if (stay) return {!alone_, left};
        if (!attributes() && touches.only_repeats) return {false, left};
        const double scattered = 1 + 3 * touches.scattered();
        const double run = !attributes() && !options_.time && left >= trial ? 0.5 : 1;
        const bool seems_faster = scattered + run * touches.in_order < 0.8 * threads_;
        // A guess that is good enough for a short window is not for a long one.
        const unsigned trials = seems_faster && touches.scattered() < 0.05 ? 64
                                : seems_faster || touches.in_order > 0.5   ? 16
                                                                           : 8;
        if (left >= trials * trial && scattered < 1.1 * threads_) return {true, trial, true};
        return {seems_faster, left};
    }

    // Of the chunk in the middle, from its beginning: looking at all of it reads half the trace a
    // second time on two threads (bench.check holds the passes), and would decode it twice.
    FirstTouches first_touches(const TraceWindow& window) const {
        const std::size_t count = window.count(), chunk = count / threads_;
        if (count < threads_ * tuning_.least_chunk) return {};  // left to one thread anyway
        if (only_repeats(window)) return {0, 0, true};
        std::size_t look = std::max(chunk / 8, std::min(chunk, tuning_.least_chunk / 4));
        if (window.is_decoded())
            look = std::max(std::min(look, 4 * tuning_.first_chunk), window.grain());
        return estimate_first_touches(window.part(chunk * (threads_ / 2), look), chunk, threads_);
    }

    // Engines beside each other, and those that take the stack over, keep times by position.
    EngineOptions piece_options() const {
        EngineOptions options = options_;
        options.time = false;
        return options;
    }

    // Gives the number of blocks, as does count_together.
    Result<std::uint64_t> count_alone(const TraceWindow& part) {
        if (!alone_) {
            alone_ = std::make_unique<ExactEngine>(piece_options());
            if (options_.time) alone_->keep_times(now_);
            if (attributes()) alone_->attribute_to(resolver_->take_attribution());
            const StackParts::Stack stack = resolver_->take_stack();
            TRY(alone_->touch(stack.blocks, stack.sites, stack.times));
        }
        return part.each_once([&](const BlockBatch& batch) { return alone_->add(batch); },
                              threads_ - 1);
    }

    // Leaves an engine that has nothing but the stack.
    void take_counts() {
        resolver_->add_counts(alone_->distances(), alone_->take_time_distances());
        if (attributes()) resolver_->give_attribution(alone_->take_attribution());
    }

    Result<std::uint64_t> count_together(const TraceWindow& window, double share, bool calibrate) {
        // Cores are not equally fast at all times. Where it costs few first touches, chunks are cut
        // smaller, so that whoever is done takes another.
        const bool divisible = window.count() >= 4 * threads_ * tuning_.least_chunk;
        calibrate = calibrate && divisible;
        const unsigned each = calibrate || (divisible && share <= 1.0 / 256) ? 4
                              : divisible && share <= 1.0 / 64               ? 2
                                                                             : 1;
        const std::size_t pieces = calibrate + each * threads_;
        if (!resolver_) resolver_.emplace(options_, threads_, std::max(threads_, tuning_.parts));
        std::optional<ChunkTouches> before;
        if (alone_) {
            TRY(alone_->settle());
            take_counts();
            if (alone_->live() != 0) before = touches_of(*alone_, {}, {});
            alone_.reset();
        }
        const auto expected =
            static_cast<std::size_t>(share * static_cast<double>(window.count() / threads_));
        std::vector<CountedChunk> chunks;
        for (std::size_t k = 0; k < pieces; ++k) chunks.emplace_back(options_.bins);
        std::vector<Result<std::uint64_t>> status(pieces);
        auto count_piece = [&](std::size_t k, unsigned threads) {
            const auto low = window.count() * k / pieces, high = window.count() * (k + 1) / pieces;
            EngineOptions options = piece_options();
            options.threads = threads;
            status[k] =
                count_chunk(chunks[k], options, window.part(low, high - low), now_ + low, expected);
        };
        const double start = now();
        if (calibrate) count_piece(0, threads_);  // as it would be counted alone
        const double begin = now();
        resolver_->crew().run(pieces - calibrate,
                              [&](std::size_t k) { count_piece(k + calibrate, 1); });
        std::uint64_t blocks = 0;
        for (const Result<std::uint64_t>& done : status) {
            if (!done) return done;
            blocks += *done;
        }
        const double counted = now();
        std::size_t first_touches = 0;
        for (const CountedChunk& chunk : chunks) first_touches += chunk.touches.count();
        TRY(resolver_->resolve(std::move(before), chunks, window.in_memory(), now_));
        const auto per_piece = static_cast<double>(window.count()) / static_cast<double>(pieces);
        pace_.access =
            (counted - begin) * threads_ / (per_piece * static_cast<double>(pieces - calibrate));
        if (calibrate) pace_.alone = (begin - start) / per_piece / pace_.access;
        pace_.first_touch =
            (now() - counted) * threads_ / static_cast<double>(std::max<std::size_t>(first_touches, 1));
        return blocks;
    }

    // One thread counts a chunk that begins at `time`, with an engine that starts empty. Of what is
    // read from a source, how many blocks came before is not known yet, and not needed.
    Result<std::uint64_t> count_chunk(CountedChunk& chunk, const EngineOptions& options,
                                      const TraceWindow& part, std::uint64_t time,
                                      std::size_t expected) const {
        ExactEngine engine(options);
        engine.expect(expected, part.count());
        if (options_.time) engine.keep_times(time);
        if (attributes()) engine.attribute_to(SiteAttribution::piece(options, time));
        BigVector<std::uint64_t> list;
        list.reserve(expected + expected / 16);
        TouchStretches stretches(part.in_memory().blocks);
        engine.list_first_touches(
            &list, resolver_->wants_times_of_touches() ? &chunk.first_at : nullptr, &stretches,
            part.is_held() && attributes() ? &chunk.first_sites : nullptr);
        const std::uint64_t blocks = TRY(part.each_once(
            [&](const BlockBatch& batch) { return engine.add(batch); }, options.threads - 1));
        TRY(engine.settle());
        chunk.begin = time;
        chunk.distances = engine.take_distances();
        chunk.times = engine.take_time_distances();
        if (attributes()) chunk.sites = engine.take_attribution();
        chunk.touches = touches_of(engine, std::move(list), std::move(stretches));
        return blocks;
    }

    // Without a list, the order of first touches does not matter.
    ChunkTouches touches_of(ExactEngine& engine, BigVector<std::uint64_t> list,
                            TouchStretches stretches) const {
        const PartOf& part_of = resolver_->part_of();
        auto sites = engine.last_sites();
        auto times = engine.take_last_times();
        ChunkTouches touches;
        if (!engine.uses_hash()) {
            auto [pages, marks] = engine.take_pages();
            touches = {std::move(list), std::move(stretches), std::move(pages), std::move(marks),
                       part_of};
        } else if (list.empty() && stretches.count() == 0) {
            std::vector<std::pair<std::uint64_t, std::uint32_t>> all;
            engine.drain([&](std::uint64_t block, std::uint32_t rank) {
                all.emplace_back(block, rank);
                list.push_back(block);
            });
            touches = {std::move(list), part_of};
            for (const auto& [block, rank] : all) touches.add_last(block, rank, part_of);
        } else {
            touches = {stretches.write_down(std::move(list)), part_of};
            engine.drain([&](std::uint64_t block, std::uint32_t rank) {
                touches.add_last(block, rank, part_of);
            });
        }
        touches.set_last(std::move(sites), std::move(times));
        return touches;
    }

    EngineOptions options_;
    unsigned threads_;
    ThreadTuning tuning_;
    std::size_t most_window_;
    std::size_t chunk_;  // accesses a thread to collect
    std::shared_ptr<HeldSegments> memory_;
    HeldBlocks collected_, counting_;
    std::atomic<bool> is_counting_ = false;
    std::future<Result<void>> running_;  // counts counting_
    Pace pace_;
    std::size_t alone_since_ = 0;                 // accesses counted by one thread since several did
    std::optional<ChunkResolver> resolver_;       // has the stack of all that was counted, unless
    std::unique_ptr<ExactEngine> alone_;          // this has it, as at first
    std::uint64_t now_ = 0;                       // accesses counted
    std::size_t since_look_ = 0, last_look_ = 0;  // accesses between looks at the histogram
};

}  // namespace

std::unique_ptr<Engine> make_exact_threads(const EngineOptions& options, const ThreadTuning& tuning) {
    const unsigned threads = thread_count(options.threads);
    if (threads < 2) return nullptr;
    return std::make_unique<ThreadedExactEngine>(options, threads, tuning);
}

}  // namespace revisit
