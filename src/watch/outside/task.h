// One sampled thread, as the sampler keeps it.
#pragma once

#include <sys/types.h>

#include <bitset>

#include "watch/outside/events.h"
#include "watch/outside/moments.h"
#include "watch/outside/process.h"
#include "watch/samples/reservoir.h"

namespace revisit::watch::outside {

// One access: where it is and how the program came there.
struct Noted {
    std::uint64_t pc = 0, address = 0;
    std::uint64_t trap_pc = 0;   // where a watchpoint on it traps
    std::uint64_t accesses = 0;  // from the stop to it, itself included
    unsigned bytes = 0;
    bool writes = false;
    Path path;
};

// What a watchpoint waits for.
struct Watch {
    enum class For : std::uint8_t {
        nothing,
        reuse,
        timed_reuse,
        check,
        milepost
    } waits_for = For::nothing;
    std::uint64_t word = 0, trap_pc = 0;
    std::uint64_t sample = 0;   // the number of the one that set it
    std::uint64_t touches = 0;  // that the kernel steps over before
    std::uint64_t use_pc = 0;
    unsigned block = 0;          // of the reservoir
    std::uint64_t set = 0;       // program time
    std::uint64_t accesses = 0;  // from the stop to the touch, where that is known
};

// A stretch of the run up to a sample, to count what happened in it: see replay.h.
struct Replay {
    bool runs = false;            // the stretch has begun
    bool follows_sample = false;  // … at a sample's stop, not before one
    bool began_running = false;   // … without a stop
    std::uint64_t until = 0;      // wall time at which the thread is stopped, then; 0 = any
    Machine::State from;
    static constexpr unsigned kMostWords = 512;
    std::uint64_t stack = 0, word[kMostWords];  // what was above the stack pointer
    unsigned words = 0;
    // What lay below the stack pointer is not in a record: read soon after. Words of it that have
    // changed by the end are not known.
    unsigned below = 0;                  // words
    std::uint32_t changed = 0;           // … by number
    bool same_stack = false;             // the nearest of these were the same when it ended
    std::uint64_t start = 0, ended = 0;  // program time
    double length = 0;                   // nanoseconds, of the next one; 0 = there was none yet
    unsigned failed = 0;                 // how many came to nothing in a row
    unsigned wait = 0;                   // samples without one, until the first that did not
    bool has_counted = false;            // … there was one
    double rate = 0;                     // accesses per nanosecond, of the last
    // Whether more is interpreted, as the shortest had too many instructions.
    enum class Far : std::uint8_t { not_tried, yes, no } far = Far::not_tried;
    unsigned followed = 0;  // samples that a stretch followed
};

// How a thread stood at the last sample that watches a block: see trap_count.h.
struct Standing {
    static constexpr unsigned kWords = 64;
    std::uint64_t sample = 0;  // its number; 0 = there is none
    Machine::State state;
    std::uint64_t word[kWords];  // of the stack, those below its pointer first
};

struct Task {
    pid_t id = 0;
    Process* process = nullptr;
    std::uint16_t number = 0;

    // How it is traced.
    bool is_stopped = false, is_interrupted = false;  // a stop was asked for
    bool started = false;                             // it is sampled
    bool is_due = false;                              // for a sample, or a replay's stop
    std::uint64_t due_since = 0;                      // the thread's clock when the timer fired
    unsigned missed = 0;                              // stops that came too late in a row
    int processor = -1;                               // where it was then

    // It is not seized at present, as its process forks often: see unseized.h.
    bool is_loose = false;
    bool awaits_fork = false;       // it is seized for the next
    bool has_executed = false;      // another program, since it is loose
    std::vector<pid_t> forked;      // processes, since its process forks often; its own: a thread
    std::uint64_t fork_seized = 0;  // wall time

    // Its events are closed for a while, as it is switched often: see sampler_budget.cpp.
    struct Rest {
        bool is_resting = false;
        std::uint64_t since = 0;      // its clock when that, or the time between two rests, began
        std::uint64_t scheduled = 0;  // the scheduler's count then
        std::uint64_t imposed = 0;    // nanoseconds that switches took since then
        std::uint64_t user = 0;       // … of user code up to the last sample
        std::uint64_t sampled = 0;    // its clock then
        double duty = 1;              // the part of its time that its events are open
    } rest;

    // Its timer is another thread's doing: see pairing.h.
    struct {
        bool asked = false, let_go = false;        // … and no longer
        std::uint64_t due_since = 0, planned = 0;  // what they are without it
    } pair;

    // What samples it.
    TaskEvents events;
    bool ended = false;
    Reservoir reservoir;
    Random random{1};
    Watch watch[TaskEvents::kWatchpoints];
    std::uint64_t waiting[kMostWatchpoints] =
        {};  // the numbers of the samples whose blocks are watched
    Replay replay;
    std::uint64_t traps_cost = 0;   // nanoseconds of its clock that traps took
    std::uint64_t stopped_for = 0;  // nanoseconds it was stopped
    std::uint64_t rating = 0;       // … of all that it costs, to find out how fast accesses go
    std::uint64_t period = 0;       // since the timer fired before, up to the next sample
    // Moments at which it fired and that did not become samples: their periods, since the last sample.
    std::uint64_t passed_over = 0;
    double next_moment = 0;  // nanoseconds from one to the next, in the mean
    double chance = 1;       // that the moment which became a sample was to do so
    Moments moments;
    std::uint64_t ticks = 0, tick_period = 770000;  // so far; nanoseconds
    std::uint64_t switches = 0;    // how often it was put on a processor, when that was last read
    std::uint64_t clock_seen = 0;  // when it was last read
    std::uint8_t soon_share = 0;   // of the last reuses by watchpoint, in 255ths
    std::int8_t soon[256] = {};  // by use, hashed: how often its reuse may be looked for further ahead
    std::uint16_t reach[256] = {};          // … accesses that it may take; 0 = as many as usual
    std::uint8_t further_failed[256] = {};  // … looks in a row that did not find it
    struct Loops {                          // by use, hashed: looking through loops for its reuse
        std::uint8_t failed = 0, wait = 0;  // how often it did; so many uses more until it is tried
    } loops[256];
    struct Replays : Loops {
        std::uint8_t by_stop = 0;  // so many more begin at a stop
    } replays[64];                 // by where they begin: counting its accesses to the next stop
    std::bitset<256> measured;     // by where replays begin: one was counted
    Standing stood;
    Loops trap_counts;  // counting to a trap: how often that came to nothing
    Loops passed[256];  // by where it was stopped: going through loops to where the window begins
    struct {
        std::uint64_t sample = 0;
        double accesses = 0, taken = 0;
    } first_post;                 // the milepost that was reached first
    std::uint64_t next_rate = 0;  // the sample at which mileposts are set next
    std::uint8_t timed_wait = 0;  // reuses that were counted until one is timed as well
    // By where it was stopped: a look-ahead ended for want of them.
    bool needs_vectors[256] = {};
    std::uint8_t needs_pages[256] = {};  // … so many looks more read them at once
    // … of the last looks at other places, in 255ths; and of those that tried to, what went through
    // loops
    std::uint8_t vectors_share = 0, pages_share = 0, passed_share = 255;
    std::uint8_t noted = 0;  // bits of notes that were made

    ThreadSamples& samples() const { return process->program->samples.threads[number]; }
};

}  // namespace revisit::watch::outside
