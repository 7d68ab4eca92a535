// What one look-ahead met, access by access.
//
// The sampler appends while the thread is stopped (a few nanoseconds per access); what is drawn from it
// that need not be known at once, `VisitStatistics`, waits until the thread runs again.
//
//     log.start();
//     ahead.run(…, [&] { log.add(op.address, op.pieces * op.bytes, ahead.at(), ahead.is_first()); … });
//     WatchedWords words = choose_words(log, use_address, use_pc, shift, …);
//     … set the watchpoints, let the thread go on …
//     samples.visits.add(log, shift);
//
// Every access counts, those before the window's first use too: a watchpoint is set where the thread
// was stopped, and what it meets on the way to the use has to be stepped over. Of a way through loops
// that is not logged, the touches of one block are (on_the_way).
#pragma once

#include <algorithm>
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

// Calls take(block) with the number of each block that it touches.
template <class Take>
void for_blocks(const LoggedAccess& access, unsigned shift, Take take) {
    const std::uint64_t last = (access.address + (access.bytes ? access.bytes - 1 : 0)) >> shift;
    for (std::uint64_t block = access.address >> shift; block <= last; block++) take(block);
}

inline constexpr unsigned kWordShift = 3;  // a watchpoint covers 8 bytes

// Parts of 2^unit bytes of a block of 2^shift bytes that an access touches, as bits; the block is named
// by its number.
inline std::uint64_t parts_of(std::uint64_t block, unsigned shift, unsigned unit, std::uint64_t address,
                              std::uint32_t bytes) {
    const std::uint64_t first = block << shift, last = first + (std::uint64_t{1} << shift) - 1;
    const std::uint64_t low = std::max(address, first),
                        high = std::min(address + (bytes ? bytes - 1 : 0), last);
    if (low > high) return 0;
    return (~std::uint64_t{0} >> (63 - ((high - first) >> unit))) &
           (~std::uint64_t{0} << ((low - first) >> unit));
}
// … of 64.
inline std::uint64_t parts_of(std::uint64_t block, unsigned shift, std::uint64_t address,
                              std::uint32_t bytes) {
    return parts_of(block, shift, shift > 6 ? shift - 6 : 0, address, bytes);
}
// Words.
inline std::uint32_t words_of(std::uint64_t block, unsigned shift, std::uint64_t address,
                              std::uint32_t bytes) {
    return static_cast<std::uint32_t>(parts_of(block, shift, kWordShift, address, bytes));
}

}  // namespace revisit::watch
