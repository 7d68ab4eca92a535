// What a sampled process told, sample by sample.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "record/decode.h"
#include "symbols/origins.h"

namespace revisit::watch {

struct Sample {
    enum class Outcome : std::uint8_t {
        unsearched,   // no address, or it only measured a rate
        passed_over,  // not met ahead and not watched to its end
        ahead,        // met while looking ahead: exact
        trapped,      // its watchpoint fired
        never,        // its watchpoint still waited when the thread ended
    };
    std::uint64_t period = 0;        // nanoseconds of user code since the sample before
    std::uint64_t time = 0;          // nanoseconds of the program's own processor time
    std::uint32_t place = kNowhere;  // where it was interrupted
    std::uint32_t label = kNowhere;  // of the use
    std::uint32_t reuse_label = kNowhere;
    Outcome outcome = Outcome::unsearched;
    bool has_address = false;
    bool write = false;
    bool watched = false;
    std::uint32_t accesses_to_use = 0;
    std::uint64_t distance = 0;  // ahead: time distance
    std::uint64_t distinct = 0;  // ahead: reuse distance
    std::uint64_t trap_time = 0;
    double chance_watched = 1;
    double chance_kept = 1;
};

struct Rate {  // accesses between two moments of one thread
    std::uint32_t place = kNowhere;
    double accesses = 0, nanoseconds = 0;
};

struct ThreadSamples {
    std::vector<Sample> samples;  // in order of time; sample number i is at i - 1
    std::uint64_t end = 0;        // the thread's time at its end; 0 = not told
    std::uint64_t recording = 0;  // nanoseconds that sampling took
    std::uint64_t checked = 0, missed = 0, stray = 0;
};

class Samples {
 public:
    void add(const record::WatchEvent& event);

    std::unordered_map<std::uint16_t, ThreadSamples> threads;
    std::vector<Rate> rates;
};

}  // namespace revisit::watch
