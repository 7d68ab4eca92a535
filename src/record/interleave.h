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
//       Now and then it stands still for a few dozen words, at random, as a thread does that waits for
//       memory: threads that run the same loop at the very same speed would settle into a rotation in
//       which none ever finds a lock taken (examples/sharing/lock.c: 34 false invalidations where there
//       are thousands on real cores).
//
//   stamps (clang):    a slot carries the times when it was opened and handed over; its records lie
//                      evenly from the end of the thread's slot before it to its own end: between the
//                      two slots the thread waited for the analyzer.
//
// What synchronisation fixes stays. The clock of a new thread begins at that of its creator. A thread
// that waited for a futex goes on at the time of the call that woke it, or of the exit that did; so
// does one that joins a thread, ended or not. A record of taking a lock that another thread holds at
// that point of the merge waits until it is released, and what comes after in that thread is late by as
// much. A lock is what pthread functions take, or a word that a thread changes atomically and later
// stores to, with no other atomic change by that thread in between: a spinlock. Threads that
// communicate through memory in other ways are not held apart. Definitions of blocks, sites and modules
// belong to the process and go first.
//
// Cost. Words are copied once; some 30 ns per block of code that changes the thread. At most 64 MiB of
// words.
#pragma once

#include <bitset>
#include <cstdint>
#include <functional>
#include <map>
#include <unordered_map>
#include <unordered_set>
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
        std::uint32_t order = 0;  // in `orders`, from 1; 0 = none
    };
    // What a record has to do with other threads.
    struct Order {
        std::uint64_t after = 0;  // the event that it waits for
        std::uint64_t event = 0;  // the one that it is
        std::uint32_t lock = 0;   // where the address of a spinlock is in it; 0 = none
        bool releases = false;    // … which it releases
    };
    struct Turn {
        std::uint64_t serial = 0;
        std::uint32_t thread = 0;
        std::vector<std::uint64_t> words;
        std::vector<Record> records;
        std::vector<Order> orders = {{}};
        std::size_t next = 0;
        std::uint64_t delay = 0;  // spent waiting

        bool is_done() const { return next == records.size(); }
        std::uint64_t time() const { return records[next].time + delay; }
        std::uint64_t end() const { return records.back().time + delay; }
        const std::uint64_t* words_of(const Record& record) const { return words.data() + record.at; }
        const Order& order_of(const Record& record) const { return orders[record.order]; }
        Order& make_order(Record& record) {
            if (record.order == 0) {
                record.order = static_cast<std::uint32_t>(orders.size());
                orders.emplace_back();
            }
            return orders[record.order];
        }
    };

    struct Clock {
        std::uint64_t now = 0;
        bool waits = false;            // for a futex, or it has ended
        std::uint64_t since = 0;       // events_ when it began to wait
        std::uint64_t begins = 0;      // the event that its next record waits for
        std::uint64_t pause_in = 512;  // so many words
        std::uint64_t random = 0;      // state; 0 = not drawn from yet
    };
    struct Event {
        std::uint64_t number = 0, time = 0;
    };

    // What a block's accesses are: positions of atomic changes and of other stores in its records.
    struct Stores {
        std::vector<std::uint32_t> atomic, plain;
    };
    struct Taken {
        std::uint64_t turn = 0;  // its serial number
        std::size_t record = 0;
        std::uint32_t lock = 0;
    };

    Result<void> add_turns(const SlotView& slot);
    Order advance(Clock& clock, std::span<const std::uint64_t> words);
    std::uint64_t pause(Clock& clock, std::uint64_t words);
    std::uint64_t happens(const Clock& clock, Event& event);
    void learn_stores(std::span<const std::uint64_t> definition);
    void find_spinlocks(Turn& turn);
    Result<void> make_room();
    Result<void> add_stamped(const SlotView& slot);
    Result<void> hand_on(std::uint32_t thread, std::span<const std::uint64_t> words);
    Result<void> merge(std::uint64_t until);
    bool waits(const Turn& turn) const;
    bool pass(Turn& turn);
    Result<bool> run_stretch(Turn& turn, std::uint64_t other, std::uint64_t until, bool others_wait);

    Interleaving how_;
    Feed feed_;
    std::uint32_t producer_ = 0;
    std::map<std::uint32_t, Clock> threads_;  // seen
    std::vector<Turn> turns_;                 // in the order they came
    std::size_t buffered_ = 0;                // words
    std::uint64_t events_ = 0;
    std::map<std::uint64_t, Event> wakes_;          // by futex: the last one
    std::map<std::uint64_t, Event> exits_;          // by the word that the kernel clears then
    Event exit_;                                    // of a thread, the last one
    std::map<std::uint64_t, std::uint32_t> locks_;  // held → by whom
    std::unordered_map<std::uint32_t, std::uint64_t> wanted_;  // spinlocks tried, by thread
    std::unordered_set<std::uint64_t> ahead_;  // events whose records were not handed on yet
    std::unordered_map<std::uint32_t, std::uint64_t> delays_;  // by thread
    std::uint64_t turns_begun_ = 0;
    std::uint64_t drawn_from_ = 0;                      // clocks
    std::unordered_map<std::uint64_t, Stores> stores_;  // by block
    std::unordered_map<std::uint64_t, Taken> taken_;    // by word and thread: the last atomic change
    std::bitset<4096> taken_words_;                     // hashed: those in taken_, and some others
};

}  // namespace revisit::record
