// Which words of an open block the watchpoints are set on.
//
// Problem. A line has eight words, a thread four watchpoints. A visit that touches none of the watched
// words goes unseen, and the reuse looks longer than it is. Idea. Put them where the next visit will
// be: a site's habits, learnt from its own traps, say at which offset from the word last used a line is
// entered again (the next word where a matrix is walked by columns, the first field of a record, any
// word in a random gather). What is usual gets most of the watchpoints; the rest are drawn at random,
// so that the habits go on being learnt and the estimator knows how likely a visit is to be seen
// (unwatched.h). Blocks of up to four words are watched whole. Setting a watchpoint costs some twenty
// microseconds, so no more are set than it takes to see nearly every visit that windows know from the
// site: one for sweeps, which touch all words.
//
// Small example. After `b[k][j]` was used at word 2 the column comes back at word 3: nine of ten traps
// had offset +1, so word 3 is watched for sure and three others by lot.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <unordered_map>

#include "watch/samples/access_log.h"
#include "watch/samples/reservoir.h"
#include "watch/samples/visits.h"

namespace revisit::watch {

inline constexpr unsigned kMostShift = 7;  // blocks of 128 bytes
inline constexpr unsigned kMostBlockWords = 1u << (kMostShift - kWordShift);

// By offset from the word of the use, -15 … 15.
inline constexpr unsigned kOffsets = 2 * kMostBlockWords - 1;
inline unsigned offset_index(unsigned word, unsigned use_word) {
    return kMostBlockWords - 1 + word - use_word;
}

// Where the next visit to a block began, by site of the use. One for all threads of a process.
class WordHabits {
 public:
    // A sample was watched on these words (bits) and sprang on one of them.
    void learn(std::uint64_t use_pc, unsigned use_word, std::uint32_t watched, unsigned trapped_word);

    // How often words at an offset sprang, of the times that they were watched; a site of which little
    // is known is like all of them together.
    double rate(std::uint64_t use_pc, unsigned offset) const;

 private:
    struct Counts {
        std::array<float, kOffsets> watched{}, sprang{};
    };
    std::unordered_map<std::uint64_t, Counts> sites_;
    Counts all_;
};

struct WatchedWords {
    unsigned count = 0;
    std::uint32_t mask = 0;                                 // of the block's words
    unsigned use_word = 0;                                  // the last one that the use touched
    std::array<std::uint64_t, kMostWatchpoints> address{};  // of each word watched
    // Instructions of the log that touch it: what the kernel steps over before the trap that counts.
    std::array<std::uint64_t, kMostWatchpoints> touches{};
};

// The use is the last access of the log to its block: an open one (window.h). `most` watchpoints are
// free; words that more than `most_touches` instructions touch on the way are left out where others are
// left.
WatchedWords choose_words(const AccessLog& log, std::uint64_t use_address, std::uint64_t use_pc,
                          unsigned shift, const WordHabits& habits, const VisitStatistics& visits,
                          unsigned most, std::uint64_t most_touches, Random& random);

}  // namespace revisit::watch
