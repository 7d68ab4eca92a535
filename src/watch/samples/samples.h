// What a sampled process reported, sample by sample.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "symbols/origins.h"
#include "watch/samples/conflicts.h"
#include "watch/samples/visits.h"
#include "watch/samples/window.h"
#include "watch/samples/window_line_use.h"
#include "watch/samples/window_sets.h"

namespace revisit::watch {

struct Sample {
    std::uint64_t period = 0;  // nanoseconds of user code since the one before
    // … that it stands for: as much over all samples, but not of each, where moments become samples
    // more often in some code than in other. 0 = the period.
    std::uint64_t stands_for = 0;
    std::uint64_t time = 0;          // nanoseconds of the program's own processor time
    std::uint32_t place = kNowhere;  // where it was interrupted
    bool has_address = false;

    // Its window: accesses that the look-ahead took for uses, and those of them it did not meet again.
    std::uint16_t uses = 0, open = 0;
    double open_share() const { return uses > 0 ? static_cast<double>(open) / uses : -1; }
    std::uint32_t time_entries = 0, reuse_entries = 0;  // in ThreadSamples::entries, time first
    std::size_t first_entry = 0;

    // One of the uses, drawn at random.
    std::uint32_t label = kNowhere, reuse_label = kNowhere;
    bool write = false;
    bool ahead = false;  // whether it came back: exact
    std::uint64_t distance = 0, distinct = 0;

    // One of the open uses that got a watchpoint.
    enum class Watched : std::uint8_t {
        no,
        replaced,  // it lost the watchpoint to a later sample
        trapped,
        foreseen,  // by looking further ahead: exact
        never,     // it still waited when the thread ended
    };
    Watched watched = Watched::no;
    std::uint32_t far_label = kNowhere, far_reuse_label = kNowhere;
    std::uint64_t far_accesses = 0;  // from the interruption to the use
    std::uint64_t trap_time = 0, far_distance = 0;
    std::uint64_t far_counted = 0;  // accesses from the interruption to the trap; 0 = not known
    double chance_watched = 1, chance_kept = 1;
    // Which words of the block were watched, as bits from its first word on, what the use touched last
    // and where it sprang (word_choice.h). No bits: the word of the use alone.
    std::uint32_t watched_words = 0;
    std::uint8_t use_word = 0, trapped_word = 0;
    std::uint64_t use_pc = 0, use_address = 0;  // use_pc as in Samples::visits; 0 = not noted
    WindowSets sets;                            // of Samples::caches; the open use is that of far_label

    bool is_told() const { return watched >= Watched::trapped; }
};

// Three touches that were foreseen, and when they came. What a trap costs is in all three times alike.
struct Rate {
    std::uint32_t place = kNowhere;
    struct Stretch {
        double accesses = 0, nanoseconds = 0;
    } first, second, third;  // from the interruption to the first touch, and on
    std::uint64_t when = 0;  // the time of the sample before, in its thread
};

// A reuse whose accesses from the interruption on were counted, timed as those that a watchpoint
// reports.
struct TimedReuse {
    std::uint32_t place = kNowhere;
    double accesses = 0, nanoseconds = 0;
    std::uint64_t when = 0;
};

// Accesses from one interruption to the next; none = they could not be counted.
struct Replayed {
    std::uint32_t place = kNowhere;
    double accesses = 0, nanoseconds = 0;
    std::uint64_t when = 0;
    std::uint32_t end = kNowhere;  // the place that it ended at
    bool follows_sample = false;   // it began where a sample was taken, not at a short stop
    double before = 0;             // accesses before the loop that it ended in; 0 = not known
    double open = -1;              // share of the uses at its end that are not used again in the window
    bool began_running = false;    // it began without a stop
};

struct ThreadSamples {
    struct Entry {  // a distance in a window, and how many uses had it
        std::uint16_t value, count;
    };
    struct Met {
        std::uint32_t sample, place;  // in the period of this sample
    };
    std::vector<Sample> samples;  // in order of time; sample number i is at i - 1
    std::vector<Met> met;         // at other moments: ticks, and those passed over
    std::vector<Entry> entries;
    std::uint64_t keeps = 1;      // windows: every so many
    std::uint64_t end = 0;        // the thread's time at its end; 0 = unknown
    std::uint64_t recording = 0;  // nanoseconds that sampling took
    std::uint64_t checked = 0, missed = 0, stray = 0;

    void add_window(const Window& window);  // of the last sample
    // Where the thread was: take(number of a sample, place, share of the sample's period). All moments
    // of that count alike, the sample's own among them.
    template <class Take>
    void for_places(Take take) const {
        std::vector<std::uint32_t> moments(samples.size(), 1);
        auto is_known = [&](const Met& one) {
            return one.sample < samples.size() && one.place != kNowhere;
        };
        for (const Met& one : met)
            if (is_known(one)) moments[one.sample]++;
        for (std::uint32_t i = 0; i < samples.size(); i++) take(i, samples[i].place, 1.0 / moments[i]);
        for (const Met& one : met)
            if (is_known(one)) take(one.sample, one.place, 1.0 / moments[one.sample]);
    }
    static constexpr std::size_t kMostEntries = 32u << 20;  // then half of the windows go
};

enum class Hindrance : std::uint8_t {
    no_watchpoint,  // a thread has none
    looks_only,     // no watchpoint can be set on this machine
    by_timer,       // perf events cannot be opened: a timer takes the samples
};

struct Note {  // something that kept the sampler from its work
    unsigned threads = 0;
    int error = 0;
};

struct Ended {  // look-aheads that ended at an instruction: before the first access, and after
    unsigned before = 0, after = 0;
};

// The memory that a process may have touched, in bytes.
struct Touchable {
    std::uint64_t resident = 0;   // at most at one time; 0 = not known
    std::uint64_t only_read = 0;  // never written, and so not resident
    std::uint64_t code = 0;       // of what is resident

    std::uint64_t all() const { return resident > code ? resident - code + only_read : resident; }
    // Of a granularity; 0 where it is not known.
    double blocks(std::uint64_t granularity) const {
        return static_cast<double>(all()) / static_cast<double>(granularity);
    }
};

// How long a program is slow after it stood still, before anything is measured of this one:
// clock/slow_start.h.
struct UsualSlowStart {
    double nanoseconds = 20000, spread = 8000;
};

struct Samples {
    std::unordered_map<std::uint16_t, ThreadSamples> threads;
    std::vector<Rate> rates;
    std::vector<TimedReuse> timed;
    std::vector<CacheSpec> caches;            // whose sets the windows were put into
    std::uint64_t taken = 0, taken_busy = 0;  // samples; those while all processors were busy
    std::map<Hindrance, Note> notes;
    std::vector<Replayed> replays;
    std::map<std::pair<std::uint32_t, std::uint64_t>, Ended> ended;  // by place and first bytes
    VisitStatistics visits;                               // what windows say about blocks, by site
    WindowLineUse line_use;                               // … and about the bytes of blocks
    std::map<std::uint64_t, std::uint32_t> places_by_pc;  // … whose sites are these places
    ConflictTally conflicts;  // lines that threads invalidate for each other
    Touchable touchable;
    UsualSlowStart slow_start, without_stop{12000, 8000};
};

}  // namespace revisit::watch
