// Exact reuse distances on one thread.
//
// Problem. For each access, how many other blocks were touched since this block's last access?
//
// Idea. Mark, on a bitmap over time, the last access of every block; the answer is the number of marks
// after ours. Nothing is a tree and nothing is allocated per access.
//
//     time      0 1 2 3 4
//     access    a b c b a     at time 4 the marks are a at 0, c at 2 and b at 3: two after that of a,
//     distance  – – – 1 2     so its distance is 2, and its mark moves to 4
//
// Accesses go through three stages, 64 at a time, so that none waits for memory:
//
//   look up   the block's last position, and put the new one in its place (last_access.h); lines were
//             prefetched 192 accesses ahead;
//   count     marks after that position and move the mark (time_bitmap.h), one batch behind the lookup,
//             while the bitmap's lines for the next batch are on their way;
//   tally     distances, some hundred at once (distance_table.h).
//
// When the window of time is full, positions are renumbered: marks move to its front and keep their
// order. The window is 4 to 12 times the live blocks, so that costs a fraction of a lookup per access
// and positions have 32 bits however long the trace is.
//
// Immediate repeats have distance 0. Where a trace has many of them they are dropped before the first
// stage; with sites, each is then counted in the pair of the access before it.
//
// Time distances, sites and pairs are counted beside, when asked for, from the same batches: the plain
// path has no branch for them. Which site used a block last is kept by position (position_column.h).
//
// Memory beyond the trace: at most 24 bytes per block: 4 in dense pages or 18 in the hash for the
// lookup, 1 to 2 for the window, 4 for counters when there is a bin for every distance.
#include "engines/exact.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>

#include "core/parallel.h"
#include "core/try.h"
#include "engines/exact_threads.h"

namespace revisit {

Result<std::unique_ptr<Engine>> make_private(const EngineOptions& options);

namespace {

constexpr unsigned kBatch = TimeBitmap::kBatch;
constexpr unsigned kBatchesAtOnce = 8;                  // of distances tallied together
constexpr std::size_t kPiece = 4096;                    // accesses attributed together
constexpr std::size_t kStretch = std::size_t{1} << 20;  // accesses that share a verdict on repeats
constexpr std::size_t kSample = 1024;                   // looked at for it

// Accesses of a running program that are held back for all threads: 9 MiB, with sites 12, and a third
// of it again. A chunk's counter starts empty, so short windows take longer: on 16 cores a tiled matrix
// multiply took with sites 5.7 s with a third of this, 3.6 s with two thirds and 3.1 s with a third
// more (98, 116 and 146 MiB in all).
constexpr std::size_t kStreamedWindow = std::size_t{3} << 19;
constexpr std::size_t kLeastStreamed = std::size_t{1} << 16;  // per thread
constexpr unsigned kCoresForWindows = 4;

bool repeats_often(std::span<const std::uint64_t> blocks) {
    const std::size_t looked_at = std::min(blocks.size(), kSample);
    std::size_t repeats = 0;
    for (std::size_t i = 1; i < looked_at; i++) repeats += blocks[i] == blocks[i - 1];
    return repeats * 8 > looked_at;
}

}  // namespace

ExactEngine::ExactEngine(const EngineOptions& options, const ExactTuning& tuning)
    : options_(options),
      tuning_(tuning),
      distances_(options.bins),
      last_(tuning.form, distances_.one_a_distance() ? 18.4 : 22.4) {
    if (options.time) times_.emplace(options.bins, tuning.narrow_times, tuning.form);
    if (options.sites || options.pairs) sites_.emplace(options);
    if (options.pairs) site_at_.emplace();
    bitmap_.restart(window_lines(0), 0, tuning_.least_levels);
}

Result<void> ExactEngine::add(const BlockBatch& batch) {
    try {
        accesses_ += batch.count();
        if (times_) times_->add(batch.blocks);
        if (!sites_ && !time_at_) return add_unattributed(batch.blocks);
        for (std::size_t at = 0; at < batch.count(); at += kPiece)
            TRY(feed(batch.part(at, std::min(kPiece, batch.count() - at))));
        return {};
    } catch (const std::bad_alloc&) {
        return fail(
            fmt::format("not enough memory for the last accesses of {} blocks", distances_.cold()));
    }
}

Result<void> ExactEngine::add_unattributed(std::span<const std::uint64_t> blocks) {
    while (!blocks.empty()) {
        const auto stretch = blocks.first(std::min(kStretch, blocks.size()));
        blocks = blocks.subspan(stretch.size());
        const auto fed =
            repeats_often(stretch) ? add_without_repeats(stretch) : feed({stretch, {}, {}, {}});
        if (!fed) return fed;
        last_block_ = stretch.back();
    }
    return {};
}

Result<void> ExactEngine::add_without_repeats(std::span<const std::uint64_t> blocks) {
    std::uint64_t kept[kPiece];
    for (std::size_t at = 0; at < blocks.size(); at += kPiece) {
        const auto piece = blocks.subspan(at, std::min(kPiece, blocks.size() - at));
        std::size_t count = 0;
        // Anything but the first block stands for "no block before".
        std::uint64_t before = last_block_.value_or(~piece.front());
        for (std::uint64_t block : piece) {
            kept[count] = block;
            count += block != before;
            before = block;
        }
        last_block_ = before;
        if (count < piece.size()) distances_.add(0, piece.size() - count);
        TRY(feed({{kept, count}, {}, {}, {}}));
    }
    return {};
}

// Cuts what comes into whole batches, so that it does not matter how it comes.
Result<void> ExactEngine::feed(const BlockBatch& batch) {
    std::size_t at = 0;
    auto keep = [&](std::size_t count) {
        const BlockBatch kept = batch.part(at, count);
        pending_blocks_.insert(pending_blocks_.end(), kept.blocks.begin(), kept.blocks.end());
        if (sites_) {
            pending_sites_.insert(pending_sites_.end(), kept.sites.begin(), kept.sites.end());
            pending_flags_.insert(pending_flags_.end(), kept.flags.begin(), kept.flags.end());
            pending_sites_.resize(pending_blocks_.size());
            pending_flags_.resize(pending_blocks_.size());
        }
        at += count;
    };
    if (!pending_blocks_.empty()) {
        keep(std::min(batch.count(), kBatch - pending_blocks_.size()));
        if (pending_blocks_.size() < kBatch) return {};
        auto counted = count({pending_blocks_, pending_sites_, {}, pending_flags_});
        forget_pending();
        if (!counted) return counted;
    }
    const std::size_t whole = (batch.count() - at) / kBatch * kBatch;
    TRY(count(batch.part(at, whole)));
    at += whole;
    keep(batch.count() - at);
    return {};
}

Result<void> ExactEngine::count(const BlockBatch& batch) {
    if (!sites_) return count_blocks(batch.blocks, {});
    distance_of_access_.resize(batch.count());
    if (site_at_) use_site_of_access_.resize(batch.count());
    if (!time_at_ && repeats_often(batch.blocks))
        TRY(count_without_repeats(batch));
    else
        TRY(count_blocks(batch.blocks, {distance_of_access_.data(), use_site_of_access_.data(),
                                        batch.sites.empty() ? nullptr : batch.sites.data(), nullptr}));
    sites_->add(batch, distance_of_access_, use_site_of_access_);
    return {};
}

// Repeats have distance 0, and their pair is that of the access before. The last one of a row is the
// block's last use, so its site is what the first one of the row leaves behind.
Result<void> ExactEngine::count_without_repeats(const BlockBatch& batch) {
    const std::size_t count = batch.count();
    const std::uint64_t* const blocks = batch.blocks.data();
    const std::uint32_t* const sites = batch.sites.empty() ? nullptr : batch.sites.data();
    kept_blocks_.resize(count);
    kept_end_.resize(count);
    kept_sites_.resize(count);
    kept_distances_.resize(count);
    kept_use_sites_.resize(count);
    // Without a branch: where rows end is hard to predict.
    std::size_t kept = 0;
    for (std::size_t i = 0; i < count; i++) {
        kept += i == 0 || blocks[i] != blocks[i - 1];
        kept_blocks_[kept - 1] = blocks[i];
        kept_sites_[kept - 1] = sites == nullptr ? 0 : sites[i];
        kept_end_[kept - 1] = static_cast<std::uint32_t>(i + 1);
    }
    distances_.add(0, count - kept);
    auto first_of = [&](std::size_t k) { return k == 0 ? 0 : kept_end_[k - 1]; };
    const auto before = static_cast<std::uint32_t>(counted_);
    const std::size_t touches = first_touches_at_ == nullptr ? 0 : first_touches_at_->size();
    TRY(count_blocks({kept_blocks_.data(), kept},
                     {kept_distances_.data(), kept_use_sites_.data(), kept_sites_.data(), nullptr}));
    counted_ += count - kept;
    if (first_touches_at_ != nullptr)
        for (std::size_t i = touches; i < first_touches_at_->size(); i++) {
            std::uint32_t& at = (*first_touches_at_)[i];
            const auto first = first_of(at - before);
            at = before + first;
            if (first_touch_sites_ != nullptr && sites != nullptr)
                (*first_touch_sites_)[i] = sites[first];
        }
    std::ranges::fill(distance_of_access_, 0u);
    for (std::size_t k = 0; k < kept; k++) distance_of_access_[first_of(k)] = kept_distances_[k];
    if (!site_at_) return {};
    if (sites == nullptr)
        std::ranges::fill(use_site_of_access_, 0u);
    else
        std::copy_n(sites, count - 1, use_site_of_access_.begin() + 1);
    for (std::size_t k = 0; k < kept; k++) use_site_of_access_[first_of(k)] = kept_use_sites_[k];
    return {};
}

ExactEngine::ByAccess ExactEngine::ByAccess::from(std::size_t first) const {
    auto on = [first](auto* pointer) { return pointer == nullptr ? nullptr : pointer + first; };
    return {on(distances), on(use_sites), on(sites), on(times)};
}

Result<void> ExactEngine::count_blocks(std::span<const std::uint64_t> blocks, ByAccess by_access) {
    while (!blocks.empty()) {
        if (bitmap_.full()) TRY(renumber());
        last_.adapt(distances_.cold());
        if (site_at_) site_at_->require(bitmap_);
        const std::size_t done =
            last_.visit([&](auto& table) { return count_batches(table, blocks, by_access); });
        blocks = blocks.subspan(done);
        by_access = by_access.from(done);
        counted_ += done;
    }
    return {};
}

// Puts what is known of the accesses of a batch and gets what was known of their blocks.
void ExactEngine::pass_columns(std::uint32_t position, const std::uint32_t* previous, unsigned size,
                               const ByAccess& by_access) {
    if (site_at_) {
        for (unsigned j = 0; j < size; j++)
            site_at_->at(position)[j] = by_access.sites == nullptr ? 0 : by_access.sites[j];
        if (by_access.use_sites != nullptr) site_at_->get(previous, size, by_access.use_sites);
    }
    if (!time_at_) return;
    if (by_access.times != nullptr) return time_at_->put(position, {by_access.times, size});
    time_at_->put(position, now_);
    std::uint64_t times[kBatch];
    time_at_->get(previous, size, times);
    unsigned reuses = 0;
    for (unsigned j = 0; j < size; j++) {
        times[reuses] = now_ + j - times[j];
        reuses += previous[j] != 0;
    }
    timed_->add(std::span<const std::uint64_t>(times, reuses));
    now_ += size;
}

// Until the blocks end, the window is full or the table wants another form. Returns how many were
// counted.
template <class Table>
std::size_t ExactEngine::count_batches(Table& table, std::span<const std::uint64_t> blocks,
                                       const ByAccess& by_access) {
    const TimeBitmap::Count count_batch = bitmap_.counter(by_access.distances != nullptr);
    const bool prefetch = bitmap_.worth_prefetching(), columns = site_at_ || time_at_;
    Lookahead look(table, blocks);
    alignas(64) std::uint32_t previous[2][kBatch] = {};
    std::uint32_t found[kBatchesAtOnce * kBatch];
    std::uint8_t order[kBatch];
    unsigned found_count = 0;

    auto look_up = [&](std::size_t batch, std::uint32_t position) {
        std::uint32_t* const positions = previous[batch % 2];
        look.exchange(batch, positions, [position](unsigned j) { return position + j; });
        if (prefetch)
            for (unsigned j = 0; j < kBatch; j++) bitmap_.prefetch(positions[j]);
        if (prefetch && site_at_)
            for (unsigned j = 0; j < kBatch; j++) site_at_->prefetch(positions[j]);
        if (prefetch && time_at_)
            for (unsigned j = 0; j < kBatch; j++) time_at_->prefetch(positions[j]);
    };
    auto finish_look_up = [&](std::size_t batch, std::uint32_t position) {
        look.finish(batch, previous[batch % 2], [position](unsigned j) { return position + j; });
    };

    look_up(0, bitmap_.position());
    finish_look_up(0, bitmap_.position());
    for (std::size_t batch = 0;; batch++) {
        const std::uint32_t next = TimeBitmap::next_position(bitmap_.position());
        const bool more = batch + 1 < look.batches() && bitmap_.has(next) && !look.crowded();
        if (more) look_up(batch + 1, next);

        if (columns)
            pass_columns(bitmap_.position(), previous[batch % 2], look.size(batch),
                         by_access.from(batch * kBatch));
        std::uint32_t* const distances = found + found_count;
        const auto [count, fresh] =
            (bitmap_.*count_batch)(previous[batch % 2], look.size(batch), distances, order);
        distances_.add_cold(static_cast<std::uint64_t>(std::popcount(fresh)));
        const auto these = blocks.subspan(batch * kBatch, look.size(batch));
        if (first_touches_ != nullptr &&
            (fresh != ~std::uint64_t{0} || stretches_ == nullptr ||
             !stretches_->take(std::span<const std::uint64_t, kBatch>(these), first_touches_->size())))
            for (std::uint64_t left = fresh; left != 0; left &= left - 1)
                first_touches_->push_back(these[static_cast<unsigned>(std::countr_zero(left))]);
        if (first_touches_at_ != nullptr)
            for (std::uint64_t left = fresh; left != 0; left &= left - 1)
                first_touches_at_->push_back(static_cast<std::uint32_t>(counted_ + batch * kBatch) +
                                             static_cast<std::uint32_t>(std::countr_zero(left)));
        if (first_touch_sites_ != nullptr)
            for (std::uint64_t left = fresh; left != 0; left &= left - 1)
                first_touch_sites_->push_back(
                    by_access.sites == nullptr
                        ? 0
                        : by_access
                              .sites[batch * kBatch + static_cast<unsigned>(std::countr_zero(left))]);
        if (by_access.distances != nullptr) {
            std::uint32_t* const to = by_access.distances + batch * kBatch;
            std::fill_n(to, look.size(batch), SiteAttribution::kCold);
            for (unsigned i = 0; i < count; i++) to[order[i]] = distances[i];
        }
        found_count += count;
        if (found_count > (kBatchesAtOnce - 1) * kBatch || !more) {
            if (!silent_) distances_.add(std::span<const std::uint32_t>(found, found_count));
            found_count = 0;
        }
        if (!more) return std::min(blocks.size(), (batch + 1) * kBatch);
        finish_look_up(batch + 1, next);
    }
}

Result<void> ExactEngine::renumber() {
    const std::uint32_t live = bitmap_.live();
    if (live > tuning_.most_blocks)
        return fail(fmt::format("the exact method keeps at most {} blocks; use a coarser granularity",
                                tuning_.most_blocks));
    bitmap_.settle();
    bitmap_.with_ranks([&](auto rank) {
        last_.transform([&](std::uint32_t position) { bitmap_.prefetch(position); },
                        [&](std::uint32_t position) { return TimeBitmap::renumbered(rank(position)); });
    });
    if (site_at_) site_at_->renumber(bitmap_);
    if (time_at_) time_at_->renumber(bitmap_);
    renumberings_++;
    bitmap_.restart(window_lines(live), live, tuning_.least_levels);
    return {};
}

void ExactEngine::expect(std::size_t blocks, std::size_t accesses) {
    last_.expect(blocks);
    const std::uint64_t lines =
        std::min(window_lines(blocks), TimeBitmap::lines_for(accesses + kBatch));
    bitmap_.restart(lines, 0, tuning_.least_levels);
}

std::uint64_t ExactEngine::window_lines(std::uint64_t live) const {
    const std::uint64_t positions = std::max(4 * live, std::min(8 * live, tuning_.roomy_positions));
    return std::clamp(TimeBitmap::lines_for(std::max(positions, live + kBatch)), tuning_.least_lines,
                      TimeBitmap::kMostLines);
}

void ExactEngine::keep_times(std::uint64_t time) {
    times_.reset();
    time_at_.emplace();
    timed_.emplace(options_.bins, TimeDistances::kDenseTimes);
    now_ = time;
}

BigVector<std::uint32_t> ExactEngine::last_sites() const {
    return site_at_ ? site_at_->by_rank(bitmap_) : BigVector<std::uint32_t>();
}
BigVector<std::uint64_t> ExactEngine::take_last_times() {
    if (times_) return times_->take_last_times();
    return time_at_ ? time_at_->by_rank(bitmap_) : BigVector<std::uint64_t>();
}
std::optional<DistanceTable> ExactEngine::take_time_distances() {
    if (times_) return times_->take_distances();
    return std::move(timed_);
}

void ExactEngine::forget_pending() {
    pending_blocks_.clear();
    pending_sites_.clear();
    pending_flags_.clear();
}

Result<void> ExactEngine::settle() {
    auto counted = count({pending_blocks_, pending_sites_, {}, pending_flags_});
    forget_pending();
    return counted;
}

Result<void> ExactEngine::touch(std::span<const std::uint64_t> blocks,
                                std::span<const std::uint32_t> sites,
                                std::span<const std::uint64_t> times) {
    TRY(settle());
    silent_ = true;
    auto touched = count_blocks(blocks, {nullptr, nullptr, sites.empty() ? nullptr : sites.data(),
                                         times.empty() ? nullptr : times.data()});
    silent_ = false;
    if (!blocks.empty()) last_block_ = blocks.back();
    return touched;
}

Result<Histogram> ExactEngine::reuse_so_far() {
    TRY(settle());
    return distances_.histogram();
}

Result<void> ExactEngine::sites_so_far(SiteOctaves& out) {
    TRY(settle());
    if (sites_) sites_->add_so_far(out);
    return {};
}

Result<Profile> ExactEngine::finish() {
    try {
        TRY(settle());
        Profile profile;
        profile.method = "exact";
        profile.granularity = options_.granularity;
        profile.accesses = static_cast<double>(accesses_);
        profile.distinct = static_cast<double>(distances_.cold());
        profile.reuse = distances_.histogram();
        if (times_) profile.time = times_->histogram();
        if (sites_) sites_->fill(profile);
        return profile;
    } catch (const std::bad_alloc&) {
        return fail("not enough memory for the histogram");
    }
}

Result<std::unique_ptr<Engine>> make_exact(const EngineOptions& options) {
    if (options.model == StackModel::private_) return make_private(options);
    try {
        ThreadTuning tuning;
        if (options.streamed) {
            // Where cores are few, decoding and attribution beside the counting use them already, and a
            // window for two threads takes more memory than the stack.
            if (thread_count(options.threads) < kCoresForWindows)
                return std::make_unique<ExactEngine>(options);
            tuning.first_chunk = tuning.most_chunk =
                std::max(kStreamedWindow / thread_count(options.threads), kLeastStreamed);
            tuning.least_chunk = std::min(tuning.least_chunk, tuning.first_chunk);
        }
        if (std::unique_ptr<Engine> threaded = make_exact_threads(options, tuning)) return threaded;
        return std::make_unique<ExactEngine>(options);
    } catch (const std::bad_alloc&) {
        return fail("not enough memory for the exact method");
    }
}

}  // namespace revisit
