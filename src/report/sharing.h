// Cache lines that threads take from each other, out of a profile's writer → victim records.
//
// One entry per line: how many reuses it cost, how many of them by false sharing, and for each byte who
// wrote and who missed it. What the terminal prints and the page draws comes from here.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "revisit/error.h"
#include "revisit/profile.h"

namespace revisit {

// Bytes of a line that the same threads touch, the end not included.
struct SharedBytes {
    unsigned begin = 0, end = 0;
    std::vector<std::uint32_t> writers, readers;  // threads, in rising order
    std::string object;                           // what lies there, and where in it
    std::uint64_t offset = 0;
};

struct SharedLine {
    std::uint64_t line = 0;
    std::string object;        // of its lowest touched byte
    std::uint64_t offset = 0;  // of that byte in the object
    double invalidated = 0;
    double false_sharing = 0;
    double error = 0;  // of both, where they were sampled
    std::vector<std::uint32_t> threads;
    std::vector<SharedBytes> bytes;
    std::vector<std::size_t> records;  // of Profile::sharing, most frequent first

    bool mostly_false() const { return 2 * false_sharing > invalidated; }
};

// By falling number of invalidated reuses.
std::vector<SharedLine> shared_lines(const Profile& profile);

// Lines whose false sharing is worth mending: one access in 5000 and 100 in all at least; of sampled
// ones, beyond their error.
bool is_worth_mending(const SharedLine& line, const Profile& profile);

// What to do about such a line, in one sentence; empty for others.
std::string sharing_advice(const SharedLine& line, const Profile& profile);

// What its invalidations come of, and whether that matters.
struct SharingVerdict {
    std::string text;
    bool is_gain = false;  // moving data apart ends these misses
};
SharingVerdict sharing_verdict(const SharedLine& line, const Profile& profile);

// The first `rows` of them as text. An Error when the profile does not have it.
Result<std::string> shared_line_table(const Profile& profile, std::size_t rows);

}  // namespace revisit
