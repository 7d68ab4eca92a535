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

Interleaver::Turn& Interleaver::turn_of(std::uint32_t thread) {
    for (Turn& turn : turns_)
        if (turn.thread == thread) return turn;
    turns_.emplace_back();
    turns_.back().thread = thread;
    return turns_.back();
}

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

// Records go to the turn of the thread that they are of. A record that does not parse goes to the
// decoder, which says what is wrong with it.
Result<void> Interleaver::add_turns(const SlotView& slot) {
    std::uint32_t thread = slot.thread;
    bool is_new_turn = true;
    Turn* turn = nullptr;
    threads_[thread] = true;
    for (std::size_t at = 0; at < slot.words.size();) {
        const std::uint64_t word = slot.words[at];
        const std::optional<std::size_t> more = record_length(word);
        if (!more || at + *more >= slot.words.size()) {
            TRY(flush());
            return hand_on(thread, slot.words.subspan(at));
        }
        const auto record = slot.words.subspan(at, 1 + *more);
        at += record.size();
        const bool plain = (word & REVISIT_BLOCK_BIT) != 0;
        if (!plain && REVISIT_TAG(word) == REVISIT_THREAD) {
            is_new_turn |= thread != REVISIT_N(word);
            thread = static_cast<std::uint32_t>(REVISIT_N(word));
            threads_[thread] = true;
            continue;
        }
        if (is_definition(word)) {
            TRY(hand_on(thread, record));
            continue;
        }
        if (is_new_turn) {
            // A slot may end in the middle of a turn: the last one goes on.
            const bool goes_on = !turns_.empty() && turns_.back().thread == thread;
            const bool had_turn =
                std::ranges::any_of(turns_, [&](const Turn& other) { return other.thread == thread; });
            if ((had_turn && !goes_on) || buffered_ > kMostWords) TRY(flush());
            turn = &turn_of(thread);
            is_new_turn = false;
        }
        turn->records.push_back({static_cast<std::uint32_t>(turn->words.size()),
                                 static_cast<std::uint32_t>(record.size()), turn->words.size()});
        turn->words.insert(turn->words.end(), record.begin(), record.end());
        buffered_ += record.size();
        if (!plain && REVISIT_TAG(word) == REVISIT_THREAD_START) {
            TRY(flush());
            is_new_turn = true;
        }
    }
    return threads_.size() == 1 ? flush() : Result<void>();
}

// The oldest slot's records, and those of others that lie before its end, are handed on when there are
// enough slots that one with earlier records is not to be expected.
Result<void> Interleaver::add_stamped(const SlotView& slot) {
    constexpr std::size_t kSlotsPerThread = 2, kMostSlots = 512;
    threads_[slot.thread] = true;
    if (threads_.size() == 1) return feed_(slot);
    Turn turn;
    turn.thread = slot.thread;
    const std::uint64_t lasts = slot.ended > slot.began ? slot.ended - slot.began : 0;
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
                 slot.began + static_cast<std::uint64_t>(share * static_cast<double>(lasts))});
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
        for (; !turn.is_done(); turn.next++) pass(turn);
        return hand_on(turn.thread, turn.words);
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

// Hands on the turn's records up to that time, a wait or the end; at least one.
Result<void> Interleaver::run_stretch(Turn& turn, std::uint64_t until) {
    const std::uint32_t from = turn.records[turn.next].at;
    do {
        pass(turn);
        turn.next++;
    } while (!turn.is_done() && turn.time() <= until && !waits(turn));
    const std::uint32_t to =
        turn.is_done() ? static_cast<std::uint32_t>(turn.words.size()) : turn.records[turn.next].at;
    return hand_on(turn.thread, std::span(turn.words).subspan(from, to - from));
}

// The earliest first. Slots of one thread follow each other.
Result<void> Interleaver::merge(std::uint64_t until) {
    auto later = [](const Turn* a, const Turn* b) { return a->time() > b->time(); };
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
        TRY(run_stretch(*turn, heap.empty() ? until : std::min(until, heap.front()->time())));
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
    return {};
}

}  // namespace revisit::record
