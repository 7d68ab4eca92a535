#include "record/interleave.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <ranges>
#include <utility>

#include "core/try.h"
#include "record/decode.h"

namespace revisit::record {
namespace {

constexpr std::size_t kMostWords = std::size_t{1} << 23;
constexpr std::size_t kMostFutexes = 4096;
constexpr std::uint64_t kAlways = std::numeric_limits<std::uint64_t>::max();

bool is_definition(std::uint64_t word) {
    if (word & REVISIT_BLOCK_BIT) return false;
    switch (REVISIT_TAG(word)) {
        case REVISIT_PROCESS:
        case REVISIT_MODULE:
        case REVISIT_UNLOAD:
        case REVISIT_DEFINE_BLOCK:
        case REVISIT_DEFINE_SITE:
        case REVISIT_STACK:
            return true;
        default:
            return false;
    }
}

bool is_lock(std::uint64_t word, std::uint64_t kind) {
    return !(word & REVISIT_BLOCK_BIT) && REVISIT_TAG(word) == REVISIT_SYNC && REVISIT_N(word) == kind;
}

}  // namespace

Result<void> Interleaver::hand_on(std::uint32_t thread, std::span<const std::uint64_t> words) {
    return feed_({0, producer_, thread, false, words});
}

Result<void> Interleaver::add(const SlotView& slot) {
    producer_ = slot.producer;
    if (slot.salvaged) {
        TRY(flush());
        return feed_(slot);
    }
    return how_ == Interleaving::by_turns ? add_turns(slot) : add_stamped(slot);
}

// The clock that a record leaves its thread with, and others.
void Interleaver::advance(Clock& clock, std::span<const std::uint64_t> record) {
    clock.now += record.size();
    clock.waits = false;
    if (record[0] & REVISIT_BLOCK_BIT) return;
    const std::uint64_t n = REVISIT_N(record[0]);
    switch (REVISIT_TAG(record[0])) {
        case REVISIT_THREAD_START:
            threads_[static_cast<std::uint32_t>(n)].now = clock.now;
            break;
        case REVISIT_THREAD_EXIT:
            clock.waits = true;
            exit_ = {++events_, clock.now};
            break;
        case REVISIT_SYNC:
            if (n == REVISIT_SYNC_SIGNAL) {
                if (wakes_.size() > kMostFutexes) wakes_.clear();
                wakes_[record[1]] = {++events_, clock.now};
            } else if (n == REVISIT_SYNC_REST) {
                clock.waits = true;
                clock.since = events_;
            } else if (n == REVISIT_SYNC_WAIT) {
                auto woken = wakes_.find(record[1]);
                const Event by =
                    woken != wakes_.end() && woken->second.number > clock.since ? woken->second : exit_;
                if (by.number > clock.since) clock.now = std::max(clock.now, by.time);
            }
            break;
        default:
            break;
    }
}

// Hands on what lies before the clocks of all threads that may still add something there; if that is
// little, everything, and the clocks go on from there.
Result<void> Interleaver::make_room() {
    std::uint64_t until = kAlways;
    for (const auto& [thread, clock] : threads_)
        if (!clock.waits) until = std::min(until, clock.now);
    if (until != 0) TRY(merge(until - 1));
    if (buffered_ <= kMostWords / 2) return {};
    std::uint64_t last = 0;
    for (const Turn& turn : turns_) last = std::max(last, turn.end());
    TRY(flush());
    for (auto& [thread, clock] : threads_) clock.now = std::max(clock.now, last);
    return {};
}

// Records go to the turn of the thread that they are of. A record that does not parse goes to the
// decoder, which says what is wrong with it.
Result<void> Interleaver::add_turns(const SlotView& slot) {
    std::uint32_t thread = slot.thread;
    Clock* clock = &threads_[thread];
    for (std::size_t at = 0; at < slot.words.size();) {
        const std::uint64_t word = slot.words[at];
        const std::optional<std::size_t> more = record_length(word);
        if (!more || at + *more >= slot.words.size()) {
            TRY(flush());
            return hand_on(thread, slot.words.subspan(at));
        }
        const auto record = slot.words.subspan(at, 1 + *more);
        at += record.size();
        if (!(word & REVISIT_BLOCK_BIT) && REVISIT_TAG(word) == REVISIT_THREAD) {
            thread = static_cast<std::uint32_t>(REVISIT_N(word));
            clock = &threads_[thread];
            continue;
        }
        if (is_definition(word)) {
            TRY(hand_on(thread, record));
            continue;
        }
        if (turns_.empty() || turns_.back().thread != thread) {
            if (buffered_ > kMostWords) TRY(make_room());
            turns_.emplace_back();
            turns_.back().thread = thread;
        }
        Turn& turn = turns_.back();
        advance(*clock, record);
        const std::uint64_t time = clock->now - record.size();
        turn.records.push_back({static_cast<std::uint32_t>(turn.words.size()),
                                static_cast<std::uint32_t>(record.size()), time});
        turn.words.insert(turn.words.end(), record.begin(), record.end());
        buffered_ += record.size();
    }
    return threads_.size() == 1 ? flush() : Result<void>();
}

// The oldest slot's records, and those of others that lie before its end, are handed on when there are
// enough slots that one with earlier records is not to be expected.
Result<void> Interleaver::add_stamped(const SlotView& slot) {
    constexpr std::size_t kSlotsPerThread = 2, kMostSlots = 512;
    Clock& clock = threads_[slot.thread];
    // A thread opens its next slot at once; if that took until later, it waited for the analyzer. On
    // its own it would have gone on meanwhile, as others would.
    const std::uint64_t began = clock.now != 0 ? std::min(clock.now, slot.began) : slot.began;
    const std::uint64_t lasts = slot.ended > began ? slot.ended - began : 0;
    clock.now = slot.ended;
    if (threads_.size() == 1) return feed_(slot);
    Turn turn;
    turn.thread = slot.thread;
    for (std::size_t at = 0; at < slot.words.size();) {
        const std::optional<std::size_t> more = record_length(slot.words[at]);
        if (!more || at + *more >= slot.words.size()) {
            TRY(flush());
            return feed_(slot);
        }
        const auto record = slot.words.subspan(at, 1 + *more);
        if (is_definition(record[0])) {
            TRY(hand_on(slot.thread, record));
        } else {
            const double share = static_cast<double>(at) / static_cast<double>(slot.words.size());
            turn.records.push_back(
                {static_cast<std::uint32_t>(turn.words.size()),
                 static_cast<std::uint32_t>(record.size()),
                 began + static_cast<std::uint64_t>(share * static_cast<double>(lasts))});
            turn.words.insert(turn.words.end(), record.begin(), record.end());
        }
        at += record.size();
    }
    if (!turn.records.empty()) turns_.push_back(std::move(turn));
    while (turns_.size() > std::min(kMostSlots, kSlotsPerThread * threads_.size()))
        TRY(merge(turns_.front().end()));
    return {};
}

Result<void> Interleaver::flush() {
    if (turns_.size() == 1) {
        Turn turn = std::move(turns_.front());
        turns_.clear();
        buffered_ = 0;
        if (turn.is_done()) return {};
        const auto left = std::span(turn.words).subspan(turn.records[turn.next].at);
        for (; !turn.is_done(); turn.next++) pass(turn);
        return hand_on(turn.thread, left);
    }
    TRY(merge(kAlways));
    turns_.clear();
    buffered_ = 0;
    return {};
}

bool Interleaver::waits(const Turn& turn) const {
    if (turn.is_done()) return false;
    const std::uint64_t* record = turn.words.data() + turn.records[turn.next].at;
    if (!is_lock(record[0], REVISIT_SYNC_LOCK)) return false;
    auto held = locks_.find(record[1]);
    return held != locks_.end() && held->second != turn.thread;
}

void Interleaver::pass(Turn& turn) {
    const std::uint64_t* record = turn.words.data() + turn.records[turn.next].at;
    if (is_lock(record[0], REVISIT_SYNC_LOCK)) locks_[record[1]] = turn.thread;
    if (is_lock(record[0], REVISIT_SYNC_UNLOCK)) locks_.erase(record[1]);
}

// Hands on the turn's records up to the time when another one's is next, to a wait or the end; at least
// one.
Result<void> Interleaver::run_stretch(Turn& turn, std::uint64_t other, std::uint64_t until) {
    const std::uint32_t from = turn.records[turn.next].at;
    do {
        pass(turn);
        turn.next++;
    } while (!turn.is_done() && turn.time() < other && turn.time() <= until && !waits(turn));
    const std::uint32_t to =
        turn.is_done() ? static_cast<std::uint32_t>(turn.words.size()) : turn.records[turn.next].at;
    return hand_on(turn.thread, std::span(turn.words).subspan(from, to - from));
}

// The earliest first. Slots of one thread follow each other.
Result<void> Interleaver::merge(std::uint64_t until) {
    auto later = [](const Turn* a, const Turn* b) {
        return std::pair(a->time(), a->thread) > std::pair(b->time(), b->thread);
    };
    std::vector<Turn*> heap, waiting;
    auto push = [&](Turn* turn) {
        heap.push_back(turn);
        std::ranges::push_heap(heap, later);
    };
    std::map<std::uint32_t, std::vector<Turn*>> of_thread;  // the last one comes first
    for (Turn& turn : turns_ | std::views::reverse) of_thread[turn.thread].push_back(&turn);
    auto push_next_of = [&](std::uint32_t thread) {
        std::vector<Turn*>& left = of_thread[thread];
        while (!left.empty() && left.back()->is_done()) left.pop_back();
        if (!left.empty()) push(left.back());
    };
    for (const auto& [thread, left] : of_thread) push_next_of(thread);

    while (!heap.empty() || !waiting.empty()) {
        if (heap.empty()) {  // a lock whose release was not seen
            locks_.clear();
            for (Turn* turn : std::exchange(waiting, {})) push(turn);
        }
        std::ranges::pop_heap(heap, later);
        Turn* const turn = heap.back();
        heap.pop_back();
        if (turn->time() > until) break;
        if (waits(*turn)) {
            waiting.push_back(turn);
            continue;
        }
        const std::size_t held = locks_.size();
        TRY(run_stretch(*turn, heap.empty() ? kAlways : heap.front()->time(), until));
        if (locks_.size() < held) {  // what waited goes on now, as much later
            const std::uint64_t now = turn->is_done() ? turn->end() : turn->time();
            for (Turn* other : std::exchange(waiting, {})) {
                if (other->time() < now) other->delay += now - other->time();
                push(other);
            }
        }
        push_next_of(turn->thread);
    }
    std::erase_if(turns_, [](const Turn& turn) { return turn.is_done(); });
    buffered_ = 0;
    for (const Turn& turn : turns_) buffered_ += turn.words.size() - turn.records[turn.next].at;
    return {};
}

}  // namespace revisit::record
