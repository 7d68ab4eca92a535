// What one look-ahead met, access by access.
//
// The sampler appends while the thread is stopped (a few nanoseconds an access); what is drawn from it
// that need not be known at once, `VisitStatistics`, waits until the thread runs again.
//
//     log.start();
//     ahead.run(…, [&] { log.add(op.address, op.pieces * op.bytes, ahead.at(), ahead.is_first()); … });
//     WatchedWords words = choose_words(log, use_address, use_bytes, use_pc, shift, …);   //
//     word_choice.h … set the watchpoints, let the thread go on … samples.visits.add(log, shift); //
//     visits.h
//
// Every access counts, those before the window's first use too: a watchpoint is set where the thread
// was stopped, and what it meets on the way to the use has to be stepped over. Of a way through loops
// that is not logged, the touches of one block are (on_the_way).
#pragma once

#include <cstdint>
#include <vector>

namespace revisit::watch {

struct LoggedAccess {
    std::uint64_t address = 0, pc = 0;
    std::uint64_t link = 0;  // the register for return addresses, where there is one
    std::uint32_t bytes = 0;
    bool begins = true;  // the first access of its instruction
    bool writes = false;
};

class AccessLog {
 public:
    void start() {
        accesses_.clear();
        on_the_way_.clear();
    }
    void start_way() { on_the_way_.clear(); }
    void add_to_way(const LoggedAccess& access) { on_the_way_.push_back(access); }
    void add(std::uint64_t address, std::uint32_t bytes, std::uint64_t pc, bool begins,
             bool writes = false, std::uint64_t link = 0) {
        accesses_.push_back({address, pc, link, bytes, begins, writes});
    }
    const std::vector<LoggedAccess>& accesses() const { return accesses_; }
    const std::vector<LoggedAccess>& on_the_way() const { return on_the_way_; }

 private:
    std::vector<LoggedAccess> accesses_, on_the_way_;
};

inline constexpr unsigned kWordShift = 3;  // a watchpoint covers 8 bytes

// Words of a block of 2^shift bytes that an access touches, as bits; the block is named by its number.
inline std::uint32_t words_of(std::uint64_t block, unsigned shift, std::uint64_t address,
                              std::uint32_t bytes) {
    std::uint64_t first = block << shift, last = first + (std::uint64_t{1} << shift) - 1;
    std::uint64_t low = address < first ? first : address, high = address + (bytes ? bytes - 1 : 0);
    if (high > last) high = last;
    if (low > high) return 0;
    unsigned from = static_cast<unsigned>((low - first) >> kWordShift);
    unsigned to = static_cast<unsigned>((high - first) >> kWordShift);
    return ((2u << to) - 1) & ~((1u << from) - 1);
}

}  // namespace revisit::watch
