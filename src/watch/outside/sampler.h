// What is done at a sample and at a trap: see docs/watch.md for the whole.
//
// A sample: the thread is stopped; look ahead from there for some thousand accesses. The uses among
// them that come back there are counted, exactly; of those that do not, one is drawn and the reservoir
// decides whether its block is watched: all watchpoints of the thread are on words of one block, or two
// of up to 16 bytes. Some
// samples are followed by a replay, which gives how fast accesses go. A trap: the watchpoint has fired
// and is off; its record has the thread's clock, registers and the top of its stack. The thread has not
// been stopped for it.
#pragma once

#include "watch/outside/budget.h"
#include "watch/outside/look.h"
#include "watch/outside/pairing.h"
#include "watch/outside/replay.h"

namespace revisit::watch::outside {

class Sampler {
 public:
    explicit Sampler(const Settings& settings, bool objects);

    // A thread that has begun; it need not be stopped.
    void start(Task& task);
    // Records of its events: traps are noted, `is_due` is set when a sample is.
    void take_records(Task& task);
    enum class Taken : std::uint8_t { nothing, sample, sample_and_beginning, beginning, stretch };
    // It is stopped and due: takes a sample, then after_stop is to be called once the thread goes on,
    // or the beginning of a replay, then the next stop is to come after stretch() nanoseconds. Sets the
    // timer for the next stop, in any case. What a stop costs is counted in our processor time, as a
    // busy machine would have it look dear, from when the thread stands: while it is waited for, it
    // runs (pages that it touches for the first time take the kernel longer than the sample takes us).
    Taken at_stop(Task& task);
    std::uint64_t stretch() const { return stretch_; }
    // What can wait until the thread runs: on another processor it costs little.
    void after_stop(Task& task, bool on_another_processor);
    void after_stretch(Task& task, bool on_another_processor);
    void forget_stretch(Task& task) { task.replay.runs = task.replay.follows_sample = false; }
    // The thread waits in the kernel by now.
    void forget_running(Task& task) {
        if (task.replay.began_running) forget_stretch(task);
    }
    void end(Task& task);
    // Samples of a thread as they stand if it ends now; the thread's own, or a copy of them.
    void end_samples(Task& task, ThreadSamples& thread);

    // After a sample: looks at another thread too, out of so many.
    bool wants_another(const Task& task) const { return pairing_.wants(task); }
    void look_at_another(Task& task, const std::vector<Task*>& others);

    // Children that are not sampled ran so long; to fork each took the run longer where the heap
    // library is loaded.
    void ran_unseen(Process& process, std::uint64_t nanoseconds, bool has_heap_library);
    bool has_budget_left() const { return budget_.wait() == 0; }
    // It was stopped for something else, so long.
    void lost_time(std::uint64_t nanoseconds) { budget_.spent += nanoseconds; }
    // All our processor time counts, of whatever process of the run: in full while a thread stands
    // still or all processors are busy, else a quarter of the work on samples.
    void worked_at_stop(std::uint64_t nanoseconds) {
        own_time_counted_ += nanoseconds;
        budget_.spent += nanoseconds;
    }
    std::uint64_t worked_beside(std::uint64_t nanoseconds, bool busy) {
        constexpr std::uint64_t kBeside = 8;
        busy_ = busy;
        own_time_counted_ += nanoseconds;
        std::uint64_t cost = busy ? nanoseconds : nanoseconds / kBeside;
        budget_.spent += cost;
        return cost;
    }
    std::uint64_t own_time_counted() const { return own_time_counted_; }
    // Switches cost a thread more than they may: its events are to be closed for a while.
    bool wants_rest(Task& task);
    void begin_rest(Task& task);
    bool end_rest(Task& task);  // if it is time
    // Where the kernel gives no events: whether enough time has gone by for a sample.
    bool is_due_by_time(Task& task);

 private:
    // Each touch before the one that is waited for is a trap too, which the kernel steps over.
    static constexpr std::uint64_t kMostTouches = 32;

    std::uint64_t clock(Task& task);
    std::uint64_t program_time(Task& task) { return clock(task) - task.traps_cost; }
    // For how fast accesses go no more is spent than its part; twice that while little is known, of the
    // program or of the code that it is in, and not much was tried: where nothing comes of it, a run of
    // a second had 20 samples.
    static bool knows_rates(Task& task) {
        constexpr std::size_t kEnough = 4;  // mileposts
        return task.replay.has_counted || samples(task).rates.size() >= kEnough;
    }
    bool may_rate(Task& task, bool is_new = false) const {
        constexpr std::uint64_t kMuch = 8000000;  // nanoseconds
        const bool is_known = (knows_rates(task) && !is_new) || task.rating > kMuch;
        const std::uint64_t part = is_known ? 1 : 2;
        return settings_.rates != 0 && task.events.is_open() &&
               task.rating * settings_.rates <= part * task.stopped_for;
    }
    void note(Task& task, Hindrance what, int error);
    static Samples& samples(Task& task) { return task.process->program->samples; }
    std::uint32_t label(Task& task, const Noted& access);

    void sample(Task& task);
    Look look_ahead(Task& task);
    void note_end(Task& task, const Look& look);
    void watch_an_open_use(Task& task, Look& look);
    bool look_further(Task& task, Look& look, unsigned index, const Noted& use, std::uint64_t touches);
    void look_only(Task& task, Look& look, const Noted& use);
    void found_further(Task& task, const Noted& use, std::uint64_t distance);
    Sample& set_on(Task& task, const Noted& use, double chance);
    void finish_sample(Task& task);
    void watch_use(Task& task, const Noted& use);
    void forget_use(Task& task, unsigned block);
    // All watchpoints are on one block, but where a block is one word or two.
    unsigned blocks_at_once() const { return settings_.shift <= 4 ? 2 : 1; }
    unsigned word_of(std::uint64_t address) const {  // in its block
        return static_cast<unsigned>(address >> kWordShift) &
               ((1u << (settings_.shift - kWordShift)) - 1);
    }
    void count_visits(Task& task);
    void count_sets(Task& task);
    void note_peak(Task& task);
    void drop(Task& task, unsigned slot);

    bool wait_for(Task& task, unsigned slot, const Watch& watch);
    int free_slot(const Task& task, unsigned from) const;
    void time_reuse(Task& task, const Noted& use, std::uint64_t distance, std::uint64_t touches);
    void check_prediction(Task& task, Look& look);
    void measure_rate(Task& task, Look& look);
    void due(Task& task, const Fired& fired);
    bool is_passed_over(Task& task, std::uint64_t pc);
    bool wants_replay(Task& task, std::uint64_t pc);
    static bool is_measured(const Task& task, std::uint64_t pc);
    bool wants_beginning(Task& task);
    bool wants_following(Task& task) const;
    void begin_following(Task& task);
    void end_following(Task& task, std::uint64_t now);
    void begin_replay(Task& task);
    void tick(Task& task, std::uint64_t pc);
    void begin_ticks(Task& task);
    void count_replay(Task& task, bool on_another_processor);

    void trapped(Task& task, const Trap& trap);
    void reused(Task& task, unsigned slot, const Trap& trap, std::uint64_t now);
    void milepost_reached(Task& task, unsigned slot, std::uint64_t now);

    std::uint64_t to_next_sample(Task& task, std::uint64_t cost);
    std::uint64_t to_first_sample(Task& task);
    void charge_switches(Task& task);
    void calibrate();
    void spend(Task& task, std::uint64_t own, std::uint64_t others) {
        worked_at_stop(own);
        budget_.spent += Budget::felt(own + others, task.switches, task.clock_seen) - own;
        task.stopped_for += own + others;
    }

    Settings settings_;
    bool objects_;
    Bench bench_;
    Pairing pairing_;
    std::vector<std::uint64_t> lines_;  // of a window
    std::uint64_t stretch_ = 0;         // nanoseconds from a replay's beginning to its end
    Window::Reuse drawn_;               // of the use that was drawn at this stop
    bool foreseen_ = false;             // the open one's reuse was found at this stop
    Budget budget_;
    bool busy_ = false;                   // all processors were, at the last sample
    std::uint64_t own_time_counted_ = 0;  // … of our own that budget_.spent has, at full length
    std::uint64_t spent_at_last_ = 0;     // when the last sample was taken
    std::uint64_t trap_cost_ = 0, step_cost_ = 0;
    int no_watchpoints_ = 0;  // the error that they ended with; 0 = there are some
};

std::uint64_t wall_time();  // nanoseconds
std::uint64_t own_time();   // … of this thread's processor time

}  // namespace revisit::watch::outside
