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
constexpr std::size_t kMostFutexes = 4096, kMostSpinlocks = 4096;
constexpr std::uint64_t kDescriptor = 4096;  // more than a thread's descriptor takes in the C library
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

std::size_t hash_of(std::uint64_t address) {
    return (address >> 2) * 0x9e3779b97f4a7c15u >> 52;
}
std::uint64_t key_of(std::uint64_t address, std::uint32_t thread) {
    return address ^ std::uint64_t{thread} << 48;
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

std::uint64_t Interleaver::happens(const Clock& clock, Event& event) {
    event = {++events_, clock.now};
    ahead_.insert(event.number);
    return event.number;
}

// How long the thread stands still before its next words: 0 to 63, every 128 to 383. Not at the very
// beginning, when threads start side by side.
std::uint64_t Interleaver::pause(Clock& clock, std::uint64_t words) {
    if (clock.pause_in > words) {
        clock.pause_in -= words;
        return 0;
    }
    if (clock.random == 0) clock.random = ++drawn_from_ * 0x9e3779b97f4a7c15;
    clock.random ^= clock.random << 13;
    clock.random ^= clock.random >> 7;
    clock.random ^= clock.random << 17;
    clock.pause_in = 128 + (clock.random >> 32 & 255);
    return clock.random >> 48 & 63;
}

// The clock that a record leaves its thread with, and others; what it waits for, and what waits for it.
Interleaver::Order Interleaver::advance(Clock& clock, std::span<const std::uint64_t> words) {
    Order order;
    order.after = std::exchange(clock.begins, 0);
    clock.now += pause(clock, words.size()) + words.size();
    clock.waits = false;
    if (words[0] & REVISIT_BLOCK_BIT) return order;
    auto wait_for = [&](const Event& event) {
        clock.now = std::max(clock.now, event.time);
        order.after = event.number;
    };
    const std::uint64_t n = REVISIT_N(words[0]);
    Event event;
    switch (REVISIT_TAG(words[0])) {
        case REVISIT_THREAD_START: {
            order.event = happens(clock, event);
            Clock& begun = threads_[static_cast<std::uint32_t>(n)];
            begun.now = clock.now;
            begun.begins = order.event;
            break;
        }
        case REVISIT_THREAD_EXIT:
            clock.waits = true;
            order.event = happens(clock, exit_);
            break;
        case REVISIT_SYNC:
            if (n == REVISIT_SYNC_SIGNAL || n == REVISIT_SYNC_EXIT) {
                auto& of = n == REVISIT_SYNC_EXIT ? exits_ : wakes_;
                if (of.size() > kMostFutexes) of.clear();
                order.event = happens(clock, of[words[1]]);
            } else if (n == REVISIT_SYNC_REST) {
                clock.waits = true;
                clock.since = events_;
            } else if (n == REVISIT_SYNC_WAIT) {
                auto woken = wakes_.find(words[1]);
                const Event by =
                    woken != wakes_.end() && woken->second.number > clock.since ? woken->second : exit_;
                if (by.number > clock.since) wait_for(by);
            } else if (n == REVISIT_SYNC_JOIN) {
                auto ended = exits_.lower_bound(words[1]);
                if (ended != exits_.end() && ended->first - words[1] < kDescriptor)
                    wait_for(ended->second);
            }
            break;
        default:
            break;
    }
    return order;
}

void Interleaver::learn_stores(std::span<const std::uint64_t> definition) {
    if (REVISIT_TAG(definition[0]) != REVISIT_DEFINE_BLOCK) return;
    Stores& stores = stores_[definition[1]];
    stores = {};
    std::uint32_t word = 0;
    for (std::uint32_t i = 0; 3 + 2 * i < definition.size(); i++) {
        const std::uint64_t flags = definition[2 + 2 * i] >> 32;
        if (flags & REVISIT_DERIVED) continue;  // such a store is not atomic, and opens no lock
        word++;
        if (flags & REVISIT_WRITE)
            (flags & REVISIT_ATOMIC ? stores.atomic : stores.plain).push_back(word);
    }
}

// Marks the turn's last record and the one that took the lock that it releases.
void Interleaver::find_spinlocks(Turn& turn) {
    Record& record = turn.records.back();
    const std::uint64_t* words = turn.words_of(record);
    if (!(words[0] & REVISIT_BLOCK_BIT)) return;
    auto found = stores_.find(REVISIT_BLOCK_ID(words[0]));
    if (found == stores_.end()) return;
    const Stores& stores = found->second;
    if (taken_.empty() && stores.atomic.empty()) return;
    for (const std::uint32_t at : stores.plain) {
        if (at >= record.words || !taken_words_.test(hash_of(words[at]))) continue;
        auto taken = taken_.find(key_of(words[at], turn.thread));
        if (taken == taken_.end()) continue;
        const Taken by = taken->second;
        taken_.erase(taken);
        auto holder = std::ranges::lower_bound(turns_, by.turn, {}, &Turn::serial);
        if (holder == turns_.end() || holder->serial != by.turn || by.record < holder->next) continue;
        if (&*holder == &turn && by.record + 1 == turn.records.size()) continue;  // at once
        holder->make_order(holder->records[by.record]).lock = by.lock;
        Order& order = turn.make_order(record);
        order.lock = at;
        order.releases = true;
    }
    for (const std::uint32_t at : stores.atomic) {
        if (at >= record.words) continue;
        if (taken_.size() >= kMostSpinlocks) {
            taken_.clear();
            taken_words_.reset();
        }
        taken_words_.set(hash_of(words[at]));
        taken_[key_of(words[at], turn.thread)] = {turn.serial, turn.records.size() - 1, at};
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
    delays_.clear();
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
            learn_stores(record);
            TRY(hand_on(thread, record));
            continue;
        }
        if (turns_.empty() || turns_.back().thread != thread) {
            if (buffered_ > kMostWords) TRY(make_room());
            turns_.emplace_back();
            turns_.back().serial = ++turns_begun_;
            turns_.back().thread = thread;
        }
        Turn& turn = turns_.back();
        Record& added = turn.records.emplace_back();
        added.at = static_cast<std::uint32_t>(turn.words.size());
        added.words = static_cast<std::uint32_t>(record.size());
        if (const Order order = advance(*clock, record); order.after != 0 || order.event != 0)
            turn.make_order(added) = order;
        added.time = clock->now - record.size();
        turn.words.insert(turn.words.end(), record.begin(), record.end());
        buffered_ += record.size();
        if (threads_.size() > 1) find_spinlocks(turn);
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
            Record& added = turn.records.emplace_back();
            added.at = static_cast<std::uint32_t>(turn.words.size());
            added.words = static_cast<std::uint32_t>(record.size());
            added.time = began + static_cast<std::uint64_t>(share * static_cast<double>(lasts));
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
        while (!turn.is_done()) pass(turn);
        return hand_on(turn.thread, left);
    }
    TRY(merge(kAlways));
    turns_.clear();
    buffered_ = 0;
    return {};
}

bool Interleaver::waits(const Turn& turn) const {
    if (turn.is_done()) return false;
    auto is_held = [&](std::uint64_t lock) {
        auto held = locks_.find(lock);
        return held != locks_.end() && held->second != turn.thread;
    };
    if (auto wanted = wanted_.find(turn.thread); wanted != wanted_.end() && is_held(wanted->second))
        return true;
    const Record& record = turn.records[turn.next];
    const Order& order = turn.order_of(record);
    if (order.after != 0 && ahead_.contains(order.after)) return true;
    const std::uint64_t* words = turn.words_of(record);
    return is_lock(words[0], REVISIT_SYNC_LOCK) && is_held(words[1]);
}

// True when others may wait for what it releases. Who finds a spinlock taken tries it all the same,
// which takes the line from the holder, and waits before the next record.
bool Interleaver::pass(Turn& turn) {
    if (auto wanted = wanted_.find(turn.thread); wanted != wanted_.end()) {
        locks_[wanted->second] = turn.thread;
        wanted_.erase(wanted);
    }
    const Record& record = turn.records[turn.next++];
    const Order& order = turn.order_of(record);
    const std::uint64_t* words = turn.words_of(record);
    if (order.lock != 0 && !order.releases) wanted_[turn.thread] = words[order.lock];
    if (is_lock(words[0], REVISIT_SYNC_LOCK)) locks_[words[1]] = turn.thread;
    bool released = order.event != 0 && ahead_.erase(order.event) != 0;
    if (order.lock != 0 && order.releases) released |= locks_.erase(words[order.lock]) != 0;
    if (is_lock(words[0], REVISIT_SYNC_UNLOCK)) released |= locks_.erase(words[1]) != 0;
    return released;
}

// Hands on the turn's records up to the time when another one's is next, to a wait, to what another one
// waits for, or to the end; at least one. True when others may go on.
Result<bool> Interleaver::run_stretch(Turn& turn, std::uint64_t other, std::uint64_t until,
                                      bool others_wait) {
    const std::uint32_t from = turn.records[turn.next].at;
    bool released = false;
    do {
        released |= pass(turn);
    } while (!turn.is_done() && turn.time() < other && turn.time() <= until && !waits(turn) &&
             !(released && others_wait));
    const std::uint32_t to =
        turn.is_done() ? static_cast<std::uint32_t>(turn.words.size()) : turn.records[turn.next].at;
    TRY(hand_on(turn.thread, std::span(turn.words).subspan(from, to - from)));
    return released;
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
        if (left.empty()) return;
        std::uint64_t& delay = delays_[thread];
        delay = left.back()->delay = std::max(left.back()->delay, delay);
        push(left.back());
    };
    for (const auto& [thread, left] : of_thread) push_next_of(thread);

    while (!heap.empty() || !waiting.empty()) {
        if (heap.empty()) {  // a lock whose release was not seen
            locks_.clear();
            ahead_.clear();
            for (Turn* turn : std::exchange(waiting, {})) push(turn);
        }
        std::ranges::pop_heap(heap, later);
        Turn* const turn = heap.back();
        heap.pop_back();
        // Stamps do not make two threads hold one lock for long: what waits goes on with this call.
        if (turn->time() > until && (how_ == Interleaving::by_turns || waiting.empty())) break;
        if (waits(*turn)) {
            waiting.push_back(turn);
            continue;
        }
        const bool released = TRY(
            run_stretch(*turn, heap.empty() ? kAlways : heap.front()->time(), until, !waiting.empty()));
        if (released) {  // what waited goes on now, as much later
            const std::uint64_t now = turn->is_done() ? turn->end() : turn->time();
            std::erase_if(waiting, [&](Turn* other) {
                if (waits(*other)) return false;
                if (other->time() < now) {
                    other->delay += now - other->time();
                    delays_[other->thread] = other->delay;
                }
                push(other);
                return true;
            });
        }
        push_next_of(turn->thread);
    }
    std::erase_if(turns_, [](const Turn& turn) { return turn.is_done(); });
    buffered_ = 0;
    for (const Turn& turn : turns_) buffered_ += turn.words.size() - turn.records[turn.next].at;
    return {};
}

}  // namespace revisit::record
