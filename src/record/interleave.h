// The accesses of threads in the order in which they would have run side by side.
//
// Problem. Slots are analyzed one after the other. Under valgrind one thread runs at a time, for 100
// 000 basic blocks; on real cores a slot holds some 500 accesses. Analyzed in that order, two threads
// that write to one line in turn, each a million times, lose it to each other 20 times or 4000 times.
// Idea. Give every record a time and merge the threads' records by it, a block of code at a time.
//
//   turns (valgrind):  every thread has a clock of its own that advances by one per word of the stream.
//
//       run:      A1 A2 A3 A4 │ B1 B2 B3 B4 │ A5 …
//       analyzed: A1 B1 A2 B2 A3 B3 A4 B4 A5 …
//
//   stamps (clang):    a slot carries the times when it was opened and handed over; its records lie
//                      evenly from the end of the thread's slot before it to its own end: between the
//                      two slots the thread waited for the analyzer.
//
// What synchronisation fixes stays. The clock of a new thread begins at that of its creator. A thread
// that waited for a futex goes on at the time of the call that woke it, or of the exit that did. A
// record of taking a lock that another thread holds at that point of the merge waits until it is
// released, and what comes after in that thread is late by as much. Threads that communicate through
// memory alone are not held apart. Definitions of blocks, sites and modules belong to the process and
// go first.
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

    struct Clock {
        std::uint64_t now = 0;
        bool waits = false;       // for a futex, or it has ended
        std::uint64_t since = 0;  // events_ when it began to wait
    };
    struct Event {
        std::uint64_t number = 0, time = 0;
    };

    Result<void> add_turns(const SlotView& slot);
    void advance(Clock& clock, std::span<const std::uint64_t> record);
    Result<void> make_room();
    Result<void> add_stamped(const SlotView& slot);
    Result<void> hand_on(std::uint32_t thread, std::span<const std::uint64_t> words);
    Result<void> merge(std::uint64_t until);
    bool waits(const Turn& turn) const;
    void pass(Turn& turn);
    Result<void> run_stretch(Turn& turn, std::uint64_t other, std::uint64_t until);

    Interleaving how_;
    Feed feed_;
    std::uint32_t producer_ = 0;
    std::map<std::uint32_t, Clock> threads_;  // seen
    std::vector<Turn> turns_;                 // in the order they came
    std::size_t buffered_ = 0;                // words
    std::uint64_t events_ = 0;
    std::map<std::uint64_t, Event> wakes_;          // by futex: the last one
    Event exit_;                                    // of a thread, the last one
    std::map<std::uint64_t, std::uint32_t> locks_;  // held → by whom
};

}  // namespace revisit::record
