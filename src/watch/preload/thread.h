// One sampled thread: its events, what its watchpoints wait for, its place in the stream.
#pragma once

#include <pthread.h>
#include <signal.h>
#include <ucontext.h>

#include "record/stream.h"
#include "watch/estimate/window.h"
#include "watch/preload/look_memory.h"
#include "watch/preload/sampler.h"
#include "watch/preload/settings.h"

namespace revisit::watch {

// Words into a slot of the stream; see record/stream.h.
class Writer {
 public:
    void start(revisit_stream* stream, std::uint32_t producer, std::uint32_t thread) {
        stream_ = stream;
        producer_ = producer;
        thread_ = thread;
        slot_ = -1;
        next_ = limit_ = nullptr;
        block_low_ = block_high_ = 0;
    }
    // Room for a record of so many words; false when nobody wants records any more.
    bool room(unsigned words) {
        if (next_ + words <= limit_ && next_ != nullptr) return true;
        hand_over();
        slot_ = revisit_slot_open(stream_, producer_, thread_);
        if (slot_ < 0) return false;
        begin_ = next_ = revisit_slot_data(stream_, static_cast<std::uint32_t>(slot_));
        limit_ = begin_ + REVISIT_SLOT_WORDS;
        last_path_ = 0;
        return true;
    }
    void put(std::uint64_t word) { *next_++ = word; }
    void put(double value) { put(__builtin_bit_cast(std::uint64_t, value)); }
    // Where the next words go, for a record whose length is not known before.
    std::uint64_t* reserve() { return next_; }
    void advance(std::uint64_t words) { next_ += words; }
    void put_text(const char* text, unsigned bytes) { next_ += revisit_put_text(next_, text, bytes); }
    void hand_over() {
        if (slot_ >= 0)
            revisit_slot_hand_over(stream_, slot_, static_cast<std::uint32_t>(next_ - begin_));
        slot_ = -1;
        next_ = limit_ = nullptr;
    }
    void forget() {
        slot_ = -1;
        next_ = limit_ = nullptr;
    }
    // Whether the analyzer must be told of the block that an address lies in (low = 0: in none).
    bool is_new_block(std::uint64_t address, std::uint64_t low, std::uint64_t high) {
        bool is_new = low != 0 ? low != block_low_ || high != block_high_
                               : address >= block_low_ && address < block_high_;
        if (is_new) {
            block_low_ = low;
            block_high_ = high;
        }
        return is_new;
    }
    // Whether a path differs from the last one in this slot.
    bool is_new_path(std::uint64_t hash) {
        bool is_new = hash != last_path_;
        last_path_ = hash;
        return is_new;
    }

 private:
    revisit_stream* stream_ = nullptr;
    std::uint32_t producer_ = 0, thread_ = 0;
    std::int32_t slot_ = -1;
    std::uint64_t *begin_ = nullptr, *next_ = nullptr, *limit_ = nullptr;
    std::uint64_t last_path_ = 0, block_low_ = 0, block_high_ = 0;
};

struct Watch {
    Event event;
    std::uint64_t word = 0;
    std::uint64_t sample = 0;           // whose reuse it waits for
    std::uint64_t touches = 0;          // that the kernel steps over before
    std::uint64_t use_pc = 0, set = 0;  // where the use is, and the program time it was set at
};

// One access: where it is and how the program came there.
struct Noted {
    std::uint64_t pc = 0, address = 0;
    std::uint64_t trap_pc = 0;   // where a watchpoint on it traps
    std::uint64_t accesses = 0;  // from the interruption to it, itself included
    unsigned bytes = 0;
    bool writes = false;
    Path path;
};

// Two points of the look-ahead; the time from the one to the other tells how fast accesses go.
struct Milepost {
    std::uint64_t word = 0, trap_pc = 0, accesses = 0;
};
struct Stretch {
    Event event;
    bool waits = false;
    bool checks = false;  // waits for a predicted reuse instead, to check it
    bool reuses = false;  // … for one that was counted, to time it
    unsigned at = 0;      // the post waited for
    Milepost post[3];
    std::uint64_t from_pc = 0, start = 0, touches = 0;
    std::uint64_t samples = 0;    // taken up to its start
    std::uint64_t taken[3] = {};  // time to each post
};

// Two interruptions, to count what happened in between: see replay.h.
struct Replay {
    enum class Phase : std::uint8_t { idle, settles, runs } phase = Phase::idle;
    Machine::State from;
    static constexpr unsigned kMostWords = 512;
    std::uint64_t stack = 0, word[kMostWords];  // what was above the stack pointer
    unsigned words = 0;
    std::uint64_t start = 0;  // program time
    struct Place {            // by where they begin, hashed
        float length;         // nanoseconds, of the next one; 0 = there was none yet
        std::uint8_t failed;  // how many came to nothing in a row
    } place[256];
    unsigned failed = 0;  // … anywhere

    Place& at(std::uint64_t pc) { return place[pc >> 6 & 255]; }
};

struct Counts {  // what the summary tells
    std::uint64_t samples = 0, without_address = 0, stray = 0, checked = 0, missed = 0;
};

struct Thread {
    Thread* next = nullptr;  // of all there are
    bool in_use = false;
    bool in_handler = false;
    unsigned came_within = 0;  // bits of watchpoints whose trap came within a handler
    bool outside = false;      // writes to the stream outside of a handler
    long identity = 0;         // the kernel's number
    Sampler sampler;
    std::uint64_t counted = 0;     // accesses, where they are counted, when the handler began
    std::uint64_t sampled_at = 0;  // program time of the last sample of a precise event
    Watch watch[kMostWatchpoints];
    Stretch stretch;
    Replay replay;
    Reservoir reservoir;
    Random random{1};
    Writer writer;
    Counts counts;
    std::uint64_t recording = 0;  // nanoseconds spent in handlers
    std::uint64_t aftermath = 0;  // … that the program lost after them
    std::uint64_t rating = 0;     // … in handlers, on finding out how fast accesses go
    std::uint64_t number = 0;
    std::uint64_t period = 0;      // up to the next sample
    std::uint64_t usual_cost = 0;  // nanoseconds a sample takes
    bool ended = false;
    void* signal_stack = nullptr;
    stack_t program_stack = {};                      // the one the program has asked for
    std::uint8_t noted = 0;                          // bits of REVISIT_NOTE_… that were told
    std::uint32_t code_wait = 0, code_patience = 0;  // samples until modules are looked for again
    Machine::State state;
    Machine::Kept kept;
    LookMemory memory;
    Window window;
    std::uint64_t address[Window::kMost + 1];  // of the window's uses
    Noted use, reuse;
    std::uint64_t seen[1024];     // hashes of words met on the way to a milepost
    std::uint8_t soon_share = 0;  // of the last reuses by watchpoint, in 255ths
    std::int8_t soon[256];        // by use, hashed: how often its reuse may be looked for further ahead
    struct Loops {                // by use, hashed: looking through loops for its reuse
        std::uint8_t failed, wait;  // how often it did, and so many uses more until it is tried
    } loops[256];
    std::uint8_t timed_wait = 0;  // reuses that were counted until one is timed as well
    bool needs_vectors[256];      // by where it was interrupted: a look-ahead ended for want of them

    // For the next thread, or for this one in a child.
    void forget_the_past() {
        counts = {};
        stretch.waits = stretch.checks = stretch.reuses = false;
        recording = aftermath = rating = period = usual_cost = counted = sampled_at = 0;
        replay.phase = Replay::Phase::idle;
        code_wait = code_patience = 0;
        ended = outside = in_handler = false;
        came_within = 0;
        soon_share = noted = 0;
        timed_wait = 0;
        __builtin_memset(soon, 0, sizeof soon);
        __builtin_memset(loops, 0, sizeof loops);
        __builtin_memset(needs_vectors, 0, sizeof needs_vectors);
    }
};

inline constexpr std::size_t kSignalStack = 64 * 1024;
inline constexpr unsigned kStretchData = 99;  // and watchpoints from 1 up
inline constexpr int kOurSignals[] = {SIGTRAP, SIGSEGV, SIGBUS, SIGILL};

// Code that the stream knows the file of.
struct Code {
    static constexpr unsigned kMost = 512, kMostTold = 4096;
    struct Range {
        std::uint64_t low, high;
    } range[kMost] = {};
    std::uint32_t count = 0;
    std::uint64_t told[kMostTold] = {};  // hashes of what was told
    bool is_being_read = false;
    std::uint32_t unloads = 0;  // that were taken account of
};

// The process's part of it.
struct Process {
    revisit_stream* stream = nullptr;
    std::uint32_t producer = 0;
    long pid = 0;
    std::uint32_t threads = 0;
    Settings settings;
    std::uint64_t trap_cost = 0;   // nanoseconds from a touch to the handler and back, outside of it
    std::uint64_t timer_cost = 0;  // … of a signal of the timer
    std::uint64_t step_cost = 0;   // … of a touch that the kernel steps over
    bool active = false;
    int no_watchpoints = 0;  // the error that all of them ended with; 0 = there are some
    bool calibrates = false;
    std::uint32_t unloads = 0;  // calls of dlclose
    Code code;
    bool times_signals = false;  // while that is so:
    std::uint64_t signals = 0, in_handler = 0;
    struct sigaction program_action[32] = {};  // what the program wants for the signals we handle
};
extern Process process;

extern __thread Thread* self __attribute__((tls_model("initial-exec")));

void handle_trap(int signal, siginfo_t* info, void* context);

// faults.cpp
bool is_fault(int signal);
void install_fault_handler(int signal);
void pass_on(int signal, siginfo_t* info, void* context);

// handler.cpp: opens what samples and watches the calling thread.
bool start_sampling(Thread& thread);
void end_sampling(Thread& thread, std::uint64_t now);

// stream.cpp
void write_modules(Thread& thread);
void know_code(Thread& thread, std::uint64_t pc);
void write_note(Thread& thread, unsigned what, int error);  // once
void write_stack(Thread& thread);

// start.cpp
void end_all();

// heap.cpp: the block of the heap that an address lies in; low = 0: none that was noted.
struct HeapBlock {
    std::uint64_t low = 0, high = 0, where = 0;
};
HeapBlock find_block(std::uint64_t address);
bool is_of_heap_table(std::uint64_t word);  // which find_block reads

// stand_ins.cpp
int real_sigaction(int signal, const struct sigaction* action, struct sigaction* old);

// threads.cpp
using CreateThread = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
Thread* make_thread();
void leave_thread(Thread& thread);
void stop_everywhere();
int change_signal_stack(Thread& thread, const stack_t* wanted, stack_t* old);
int create_thread(CreateThread real, pthread_t* thread, const pthread_attr_t* attributes,
                  void* (*function)(void*), void* argument);

}  // namespace revisit::watch
