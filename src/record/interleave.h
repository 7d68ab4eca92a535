// The accesses of threads in the order in which they would have run side by side.
//
// Problem. Slots are analyzed one after the other. Under valgrind one thread runs at a time, for 100
// 000 basic blocks; on real cores a slot holds some 500 accesses. Analyzed in that order, two threads
// that write to one line in turn, each a million times, lose it to each other 20 times or 4000 times.
// Idea. Give every record a time and merge the threads' records by it, a block of code at a time.
//
//   turns (valgrind):  a round is a sequence of turns in which no thread comes twice. All threads of a
//                      round start together, and each access takes one unit of time.
//
//       run:      A1 A2 A3 A4 │ B1 B2 B3 B4 │ A5 …
//       analyzed: A1 B1 A2 B2 A3 B3 A4 B4   │ A5 …
//
//   stamps (clang):    a slot carries the times when it was opened and handed over; its records lie
//                      evenly between them.
//
// What synchronisation fixes stays: rounds follow each other, so whatever a thread waited for in the
// kernel came before; a new thread begins after the call that made it; and a record of taking a lock
// that another thread holds at that point of the merge waits until it is released (what comes after in
// that thread is late by as much). Threads that communicate through memory alone within one round are
// not held apart. Definitions of blocks, sites and modules belong to the process and go first.
//
// Cost. Words are copied once; some 30 ns per block of code that changes the thread. At most 64 MiB.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "record/slots.h"
#include "revisit/error.h"

namespace revisit::record {

enum class Interleaving : std::uint8_t { as_it_came, by_turns, by_stamps };

class Interleaver {
 public:
    using Feed = std::function<Result<void>(const SlotView&)>;

    Interleaver(Interleaving how, Feed feed) : how_(how), feed_(std::move(feed)) {}

    Result<void> add(const SlotView& slot);
    Result<void> flush();
    std::size_t threads() const { return threads_.size(); }

 private:
    struct Record {
        std::uint32_t at, words;  // in `words`
        std::uint64_t time;
    };
    struct Turn {
        std::uint32_t thread = 0;
        std::vector<std::uint64_t> words;
        std::vector<Record> records;
        std::size_t next = 0;
        std::uint64_t delay = 0;  // spent waiting for locks

        bool is_done() const { return next == records.size(); }
        std::uint64_t time() const { return records[next].time + delay; }
        std::uint64_t end() const { return records.back().time + delay; }
    };

    Result<void> add_turns(const SlotView& slot);
    Result<void> add_stamped(const SlotView& slot);
    Turn& turn_of(std::uint32_t thread);
    Result<void> hand_on(std::uint32_t thread, std::span<const std::uint64_t> words);
    Result<void> merge(std::uint64_t until);
    bool waits(const Turn& turn) const;
    void pass(Turn& turn);
    Result<void> run_stretch(Turn& turn, std::uint64_t until);

    Interleaving how_;
    Feed feed_;
    std::uint32_t producer_ = 0;
    std::map<std::uint32_t, bool> threads_;         // seen
    std::vector<Turn> turns_;                       // in the order they came
    std::size_t buffered_ = 0;                      // words
    std::map<std::uint64_t, std::uint32_t> locks_;  // held → by whom
};

}  // namespace revisit::record
