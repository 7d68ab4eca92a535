// Who invalidates whose lines, from pairs of look-aheads.
//
// Problem. An invalidated reuse needs two threads: one touches a line, another writes it, the first
// comes back. Watchpoints are per thread and cover 8 of a line's 64 bytes; to set four on each of many
// threads, for one use, costs 18 us each, and misses the words that are not watched.
// Idea. A look-ahead knows the next thousand accesses of a thread, writes among them. Two threads of a
// process that are looked at soon after each other, both running, give two such windows; merged access
// by access, as if both went on at the same speed, they show every line that the one writes between a
// use and a reuse of the other:
//
//     victim   reads L+8   …         …          reads L+8      reuse: invalidated
//     other    …           writes L+0 …                        the writer
//
// No byte is common to the two: false sharing.
//
// The two windows are up to some milliseconds apart, millions of accesses. A line counts only if the
// one writes it and the other uses it from the first to the last quarter of its window: then it is
// contended whatever the shift. Two threads that pass by the same lines of a buffer, in step with each
// other, are left out. If no other thread runs, nothing conflicts, and that counts as such. One other
// thread is drawn at random out of m: with a share p of a line's reuses invalidated by it, the share
// invalidated by any is taken as 1 - (1 - p)^m. Estimate. Invalidated reuses per access, summed over
// all pairs of windows, times the accesses of the run; the error is that of a ratio of sums over pairs,
// so a line is known beyond its error from four pairs that show it: with m threads of which two contend
// for it, some 2 m^2 pairs. Limits. Reuses longer than a window are not seen, nor writes beyond it:
// what is contended is touched more often than that. Cost. One more stop for every second sample of a
// program with several threads. Source. Look-aheads and their merge are ours; Schuff, Kulkarni, Pai
// 2010 for what an invalidation is.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "revisit/profile.h"
#include "watch/samples/access_log.h"

namespace revisit::watch {

// Half the 95 % interval of sum / whole, both sums over `count` observations, from their squares and
// products: the spread of what an observation has beyond its part.
double ratio_error(double count, double sum, double squares, double products, double whole,
                   double whole_squares);

// One invalidated reuse of a pair of windows.
struct Conflict {
    std::uint64_t line = 0;               // number of the block
    std::size_t writer = 0, victim = 0;   // indices into their logs
    std::uint64_t written = 0, used = 0;  // parts of the block, as bits of 64
    double weight = 1;                    // reuses that it stands for
};

// The victim's reuses that one of the other's writes invalidates, in the first accesses of both.
// `others` threads might have done the same.
std::vector<Conflict> conflicts_in(const AccessLog& victim, const AccessLog& other, unsigned shift,
                                   double others);

// Sums over pairs of windows.
class ConflictTally {
 public:
    struct Side {
        std::uint32_t label = 0;  // as samples have it
        std::uint16_t thread = 0;
        std::uint64_t parts = 0;
        bool write = false;
        std::uint64_t address = 0;    // of the first byte
        std::uint64_t block_low = 0;  // where its heap block begins; 0 = it is in none
    };
    struct Entry {
        std::uint64_t line = 0;
        Side writer, victim;
        bool is_false = false;
        double sum = 0, squares = 0, products = 0;  // of weights per pair; with its accesses
        double here = 0;                            // in the pair that is being added
        std::uint64_t seen = 0;
    };

    // A pair of windows with so many accesses of the victim.
    void begin_pair(double accesses);
    void add(const Entry& one, double weight);
    void end_pair();

    std::vector<Entry>& entries() { return entries_; }
    const std::vector<Entry>& entries() const { return entries_; }
    std::uint64_t pairs() const { return pairs_; }

    // Into Profile::sharing; sites are labels.
    void fill(Profile& profile) const;

 private:
    static constexpr std::size_t kMost = 4096;
    double error(double sum, double squares, double products) const;

    std::vector<Entry> entries_;
    std::map<std::vector<std::uint64_t>, std::size_t> known_;
    std::vector<std::size_t> touched_;
    std::uint64_t pairs_ = 0;
    double accesses_ = 0, accesses_squared_ = 0, here_ = 0;
    double all_ = 0, all_squares_ = 0, all_products_ = 0, all_here_ = 0;
    double false_ = 0, unlisted_ = 0;
};

}  // namespace revisit::watch
