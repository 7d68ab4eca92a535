// What happens at a sample and at a trap: see docs/watch.md for the whole.
//
// A sample: look ahead from where the thread was interrupted for some thousand accesses. The uses among
// them that come back there are counted, exactly; of those that do not, one is drawn and the reservoir
// decides whether its word is watched.
// A trap: on aarch64 it comes before the touch and comes again for as long as the watchpoint is there,
// so it is taken away first; on x86_64 it comes after. Touches that must happen before (the use itself)
// are counted down by the kernel, which steps over them.
#include <string.h>
#include <ucontext.h>

#include "watch/preload/rates.h"

namespace revisit::watch {
namespace {

constexpr int kTrapPerf = 6;  // si_code of events with sigtrap

std::uint64_t signal_data(const siginfo_t* info) {
    std::uint64_t data;
    memcpy(&data, reinterpret_cast<const char*>(info) + 24, sizeof data);
    return data;
}

// What vector registers hold is followed only where that was needed before: most code that computes
// with them branches on integers.
Look look_ahead(Thread& t, const ucontext_t& context) {
    const Settings& settings = process.settings;
    unsigned skip = t.random.below(static_cast<unsigned>(settings.spread));
    bool& needs_vectors = t.needs_vectors[Machine::pc(context) >> 6 & 255];
    for (;;) {
        bool follows_vectors = needs_vectors;
        Look look(t, context, follows_vectors);
        look.run(skip, static_cast<unsigned>(settings.uses), static_cast<unsigned>(settings.window),
                 settings.budget);
        if (follows_vectors || !look.lacked_vectors() || !Machine::kFollowsVectors) return look;
        needs_vectors = true;
    }
}

// A trap takes some microseconds, and not always the same: too long to time reuses that come within a
// few. Where the last one from a use did, its reuse is looked for further ahead instead, and so it is
// where loops on the way are plain, so that looking goes far at little cost. That is decided before it
// is known how this one ends, so nothing is biased.
constexpr std::uint64_t kSoon = 15000;                // nanoseconds
constexpr unsigned kFurther = 6000, kAtFirst = 1500;  // accesses
constexpr std::int8_t kTries = 6;

std::int8_t& tries_further(Thread& t, std::uint64_t use_pc) {
    return t.soon[use_pc >> 2 & 255];
}

void tell_further(Thread& t, const Noted& use, std::uint64_t distance) {
    write_set(t, use, 1);
    write_path(t, t.reuse.path);
    write_reuse(t, t.counts.samples, REVISIT_REUSE_FAR, 0, t.reuse.pc, use.address, distance);
}

// Whether a use is one that is looked for through loops: each time it was found, less and less often
// where it was not.
bool tries_loops(Thread::Loops& loops) {
    if (!Machine::kSkipsLoops) return false;
    if (loops.wait == 0) return true;
    loops.wait--;
    return false;
}

void looked_through(Thread::Loops& loops, bool found) {
    constexpr std::uint8_t kMostFailed = 5;
    if (found)
        loops.failed = loops.failed > 0 ? loops.failed - 1 : 0;
    else if (loops.failed < kMostFailed)
        loops.failed++;
    loops.wait = static_cast<std::uint8_t>((1u << loops.failed) - 1) / 2 * 2;
}

bool look_further(Thread& t, Look& look, unsigned index, const Noted& use, std::uint64_t touches,
                  std::uint64_t now) {
    std::int8_t& tries = tries_further(t, use.pc);
    if (tries == 0 && t.soon_share > 64) tries = 2;  // a use not met before, where others come soon
    bool soon = tries > 0;
    Thread::Loops& loops = t.loops[use.pc >> 2 & 255];
    bool through_loops = tries_loops(loops);
    if (!soon && !through_loops) return false;
    std::uint64_t distance = look.find_further(t.address[index], soon ? kFurther : kAtFirst, t.reuse);
    looked_through(loops, distance != 0);
    if (soon)
        tries = distance != 0 ? kTries : static_cast<std::int8_t>(tries == 1 ? -kTries : tries - 1);
    if (distance == 0) return false;
    tell_further(t, use, distance);
    time_reuse(t, use, distance, touches, now);
    return true;
}

// Where there are no watchpoints: as far as looking goes. What is not met there counts with what never
// comes back, and the profile says so.
void look_only(Thread& t, Look& look, const Noted& use, std::uint64_t looked_at) {
    if (std::uint64_t distance = look.find_further(use.address, 2 * kFurther, t.reuse)) {
        tell_further(t, use, looked_at + distance);
        return;
    }
    write_set(t, use, 1);
    write_reuse(t, t.counts.samples, REVISIT_REUSE_NEVER, 0, 0, use.address,
                __builtin_bit_cast(std::uint64_t, 1.0));
}

// The word of a use, if the reservoir gives it a watchpoint.
void watch_use(Thread& t, const Noted& use, std::uint64_t touches, std::uint64_t now) {
    std::uint64_t word = use.address & ~std::uint64_t{7};
    Reservoir::Choice choice = t.reservoir.choose(t.random);
    if (choice.watchpoint < 0) return;
    auto slot = static_cast<unsigned>(choice.watchpoint);
    Watch& watch = t.watch[slot];
    t.reservoir.release(slot);
    perf_event_attr attributes;
    set_watchpoint(attributes, word, 1 + touches);
    if (!watch.event.move(attributes, slot + 1))
        return write_note(t, REVISIT_NOTE_NO_WATCHPOINT, watch.event.error());
    t.reservoir.set(slot);
    watch.word = word;
    watch.sample = t.counts.samples;
    watch.touches = touches;
    watch.use_pc = use.pc;
    watch.set = program_time(t, now);
    write_set(t, use, choice.probability);
}

// Lets one of the uses that are open, each with the same chance, have a watchpoint if the reservoir
// gives one. One that is touched very often before it would cost as many traps: it is left out.
void watch_an_open_use(Thread& t, Look& look, std::uint64_t now) {
    unsigned open = t.window.open();
    if (open == 0) return;
    unsigned index = t.window.open_use(t.random.below(open));
    std::uint64_t word = t.address[index] & ~std::uint64_t{7}, touches;
    if (is_ours(t, word)) return;
    Noted use;
    if (!look.find_again(index, use, touches) || touches == 0) return;
    if (process.no_watchpoints) return look_only(t, look, use, 0);
    if (process.settings.uses > 1 && look_further(t, look, index, use, touches, now)) return;
    if (touches <= kMostTouches) watch_use(t, use, touches, now);
}

void reused(Thread& t, unsigned index, const ucontext_t& context, std::uint64_t now) {
    Watch& watch = t.watch[index];
    watch.event.disable();
    if (!t.reservoir.held(index)) {
        t.counts.stray++;
        return;
    }
    t.recording += watch.touches * process.step_cost;
    bool came_soon = program_time(t, now) <= watch.set + kSoon;
    t.soon_share = static_cast<std::uint8_t>((t.soon_share * 15 + (came_soon ? 255 : 0)) / 16);
    std::int8_t& tries = tries_further(t, watch.use_pc);
    if (!came_soon)
        tries = 0;
    else if (++tries > 0)  // one that was not found further ahead waits a while
        tries = kTries;
    t.memory.start(process.pid);
    for (unsigned i = 0; i < t.reservoir.watchpoints(); i++)
        if (t.reservoir.held(i)) t.memory.avoid(t.watch[i].word);
    if (t.stretch.waits) t.memory.avoid(t.stretch.post[t.stretch.at].word);
    Machine::read_state(t.state, context);
    Machine::read_path(t.memory, t.state, t.kept, t.reuse.path);
    t.reuse.path.pc = Machine::sprung_by(t.memory, t.state, watch.word);
    write_block(t, watch.word);
    write_path(t, t.reuse.path);
    write_reuse(t, watch.sample, REVISIT_REUSE_TRAPPED, program_time(t, now), t.reuse.path.pc,
                watch.word, __builtin_bit_cast(std::uint64_t, t.reservoir.kept(index)));
    t.reservoir.release(index);
}

// The access that a precise event told of is the use; its reuse is looked for from where the thread is.
void use_told(Thread& t, Look& look, const ucontext_t& context, const PmuSample& told) {
    Noted use;
    use.pc = told.pc;
    use.address = told.address;
    use.bytes = 8;
    use.writes = told.writes;
    Machine::read_state(t.state, context);
    t.memory.start(process.pid);
    Machine::read_path(t.memory, t.state, t.kept, use.path);
    use.path.pc = told.pc;
    look.run_from(use, static_cast<unsigned>(process.settings.window), process.settings.budget);
}

void watch_use_told(Thread& t, Look& look, std::uint64_t now) {
    const Noted use = look.use();
    if (look.distance().time != 0 || is_ours(t, use.address & ~std::uint64_t{7})) return;
    if (process.no_watchpoints)
        look_only(t, look, use, look.looked_at());
    else
        watch_use(t, use, 0, now);
}

// `told` is the access that a precise event gave, if it does.
void sample(Thread& t, const ucontext_t& context, std::uint64_t now, const PmuSample* told) {
    const Settings& settings = process.settings;
    std::uint64_t number = ++t.counts.samples, interrupted = Machine::pc(context);
    know_code(t, interrupted);
    Look look = told != nullptr ? Look(t, context, false) : look_ahead(t, context);
    if (told != nullptr) use_told(t, look, context, *told);
    look.write_end();
    const Noted& use = look.use();
    bool have_use = use.pc != 0;
    if (!have_use) t.counts.without_address++;
    if (have_use) {
        write_block(t, use.address);
        write_path(t, use.path);
    }
    if (!t.writer.room(10)) return;
    t.writer.put(REVISIT_RECORD(REVISIT_WATCH_USE, (use.writes ? REVISIT_USE_WRITE : 0) |
                                                       (have_use ? 0 : REVISIT_USE_NO_ADDRESS)));
    t.writer.put(number);
    t.writer.put(program_time(t, now));
    t.writer.put(interrupted);
    t.writer.put(use.pc);
    t.writer.put(use.address);
    t.writer.put(std::uint64_t{use.bytes});
    t.writer.put(use.accesses);
    t.writer.put(look.looked_at());
    t.writer.put(t.period);
    if (!have_use) return;
    write_window(t);
    if (look.distance().time != 0) {
        write_path(t, look.reuse().path);
        write_reuse(t, number, REVISIT_REUSE_AHEAD, 0, look.reuse().pc, use.address,
                    look.distance().time | std::uint64_t{look.distance().distinct} << 32);
    }
    if (told != nullptr)
        watch_use_told(t, look, now);
    else
        watch_an_open_use(t, look, now);
    if (settings.check && told == nullptr && !process.no_watchpoints && number % settings.check == 0 &&
        look.distance().time != 0)
        check_prediction(t, look);
    else if (settings.rates && t.rating * settings.rates <= t.recording) {
        std::uint64_t before = thread_time();
        rate_accesses(t, look, interrupted);
        t.rating += thread_time() - before;
    }
}

// What the program loses after a signal, because its data and the kernel's have to come back from
// further away, in costs of a signal to a loop that touches nothing. Where that cost is 3.5
// microseconds, an interruption that does nothing cost two programs of docs/watch.md about 4 and 11
// more than its parts, a sample up to 30. Trials at the start of each run were tried and told less, as
// they depend on what else the machine does.
constexpr std::uint64_t kAfterSignal = 2, kAfterSample = 6;

// The next sample: after the period while all sampling so far has kept to its share of the time (a few
// milliseconds are free, for short runs), else much later. Not in step with what the program does.
std::uint64_t to_next_sample(Thread& t, std::uint64_t now, std::uint64_t cost) {
    constexpr std::uint64_t kFree = 3000000;
    const Settings& settings = process.settings;
    std::uint64_t spent = t.recording + t.aftermath + cost;
    bool over = settings.share != 0 && spent > kFree + now / 1000 * settings.share;
    constexpr std::uint64_t kDear = 200000;  // the first may have been a replay's
    if (t.usual_cost == 0) t.usual_cost = cost < kDear ? cost : kDear;
    std::uint64_t most = 4 * t.usual_cost;  // a replay takes far longer than a sample
    t.usual_cost = (t.usual_cost * 7 + (cost < most ? cost : most)) / 8;
    std::uint64_t period = settings.period;
    if (over) period += 2 * t.usual_cost * 1000 / settings.share;
    return period * 7 / 8 + t.random.below(static_cast<unsigned>(period / 4));
}

// For a precise event, that many of it: at the rate of all so far where they are accesses, else by as
// much more as the time is longer than asked for. AMD takes multiples of 16.
std::uint64_t events_in(const Thread& t, std::uint64_t time, std::uint64_t now) {
    const Settings& settings = process.settings;
    constexpr std::uint64_t kLeast = 2000;
    auto wanted = static_cast<double>(time);
    if (t.sampler.counts()) {
        wanted *= static_cast<double>(t.counted + 1000) / static_cast<double>(now + 1000);
        return wanted < kLeast ? kLeast : static_cast<std::uint64_t>(wanted) & ~std::uint64_t{15};
    }
    wanted *= static_cast<double>(settings.pmu.first) / static_cast<double>(settings.period);
    auto events = static_cast<std::uint64_t>(wanted + 0.5);
    return events > kLeast ? events & ~std::uint64_t{15} : events > 0 ? events : 1;
}

// A sample's period is all time since the one before, replays between them included.
void set_timer(Thread& t, std::uint64_t now, std::uint64_t begin, bool after_sample) {
    std::uint64_t time =
        t.replay.phase == Replay::Phase::idle
            ? to_next_sample(t, now, now - begin + (1 + kAfterSample) * process.timer_cost)
            : Replayer::next_stop(t);
    t.period = after_sample ? time : t.period + time;
    if (t.sampler.is_pmu()) time = events_in(t, time, now);
    t.sampler.set_period(time);
}

constexpr std::uint64_t kTrialPeriod = 20000;

// A precise event that told of no access of the program's (an operation that makes none, the kernel's)
// is no sample.
void event_went(Thread& t, const ucontext_t& context, std::uint64_t now, std::uint64_t data) {
    PmuSample told;
    bool has_told = process.settings.pmu.tells_address != 0;
    if (has_told && !t.sampler.newest(told, data)) return;
    std::uint64_t at = program_time(t, now);
    t.period = at - t.sampled_at;
    t.sampled_at = at;
    sample(t, context, now, has_told ? &told : nullptr);
}

void timer_went(Thread& t, const ucontext_t& context, std::uint64_t now) {
    using Phase = Replay::Phase;
    switch (t.replay.phase) {
        case Phase::idle:
            return sample(t, context, now, nullptr);
        case Phase::settles:
            Replayer(t).keep(context);
            t.replay.phase = Phase::runs;
            return;
        case Phase::runs:
            replay_ends(t, context, now);
            t.replay.phase = Phase::idle;
            t.rating += thread_time() - now;
    }
}

// The watchpoint that sent `data`, unless that has been closed since.
Event* sender(Thread& t, std::uint64_t data) {
    unsigned purpose = Event::purpose(data);
    Event* event = purpose == kStretchData                       ? &t.stretch.event
                   : purpose >= 1 && purpose <= kMostWatchpoints ? &t.watch[purpose - 1].event
                                                                 : nullptr;
    return event != nullptr && event->sent(data) ? event : nullptr;
}

// A thread that blocks faults would be killed by one of ours. They are let through until the handler
// returns, unless one was sent that the program does not want yet.
bool lets_faults_through(const ucontext_t& context) {
    std::uint64_t faults = 0, pending = 0;
    for (int signal : kOurSignals)
        if (is_fault(signal) && sigismember(&context.uc_sigmask, signal))
            faults |= std::uint64_t{1} << (signal - 1);
    if (faults == 0) return true;
    system_call(SYS_rt_sigpending, reinterpret_cast<long>(&pending), sizeof pending);
    if (pending & faults) return false;
    return system_call(SYS_rt_sigprocmask, SIG_UNBLOCK, reinterpret_cast<long>(&faults), 0,
                       sizeof faults) == 0;
}

void handle_event(Thread& t, const siginfo_t* info, void* raw) {
    std::uint64_t now = thread_time(), data = signal_data(info);
    auto& context = *static_cast<ucontext_t*>(raw);
    bool by_sampler = Sampler::is_tick(info) || t.sampler.sent(data);
    Event* event = by_sampler ? nullptr : sender(t, data);
    unsigned purpose = Event::purpose(data);
    // When `outside`, the stream is being written to, outside of handlers.
    if ((event == nullptr && !by_sampler) || t.outside || !lets_faults_through(context)) {
        t.counts.stray++;
        if (event != nullptr) event->disable();
        if (by_sampler && t.sampler.is_timer()) t.sampler.enable();
        if (event != nullptr && purpose <= kMostWatchpoints) t.reservoir.release(purpose - 1);
        if (event == &t.stretch.event) t.stretch.waits = false;
        return;
    }
    bool sampled = t.replay.phase == Replay::Phase::idle;
    t.sampler.disable();
    t.counted = t.sampler.count();
    if (by_sampler && t.sampler.is_pmu())
        event_went(t, context, now, data);
    else if (by_sampler)
        timer_went(t, context, now);
    else if (purpose == kStretchData)
        milepost_reached(t, context, now);
    else
        reused(t, purpose - 1, context, now);
    if (by_sampler) set_timer(t, thread_time(), now, sampled);
    t.sampler.enable();
    std::uint64_t end = thread_time();  // arming the timer takes some microseconds in a virtual machine
    t.recording += end - now + (by_sampler ? process.timer_cost : process.trap_cost);
    t.aftermath += process.timer_cost * (by_sampler && sampled ? kAfterSample : kAfterSignal);
    if (by_sampler) t.replay.start = program_time(t, end);
    if (t.stretch.waits && (purpose == kStretchData || t.stretch.start == 0)) t.stretch.start = end;
}

// Those whose trap came within a handler: when they were touched is not known.
void drop_watches(Thread& t) {
    for (unsigned i = 0; i < kMostWatchpoints; i++)
        if (t.came_within >> (i + 1) & 1) {
            t.watch[i].event.disable();
            t.reservoir.release(i);
            t.counts.stray++;
        }
    t.came_within = 0;
}

}  // namespace

// Nothing may be asked of the kernel before it is known that we are still wanted: the program may have
// forbidden it since.
void handle_trap(int signal, siginfo_t* info, void* raw) {
    if (info->si_code != kTrapPerf && !Sampler::is_tick(info)) return pass_on(signal, info, raw);
    Thread* t = self;
    if (process.calibrates) {
        if (t != nullptr) t->stretch.event.disable();
        return;
    }
    if (t == nullptr || t->ended) return;
    if (process.times_signals) {
        std::uint64_t now = thread_time();
        t->sampler.disable();
        process.signals++;
        t->sampler.set_period(kTrialPeriod);
        t->sampler.enable();
        process.in_handler += thread_time() - now;
        return;
    }
    if (t->in_handler) {  // a trap that is blocked can come all the same: see comes_too_soon
        if (unsigned purpose = Event::purpose(signal_data(info)); purpose <= kMostWatchpoints)
            t->came_within |= 1u << purpose;
        return;
    }
    __atomic_store_n(&t->in_handler, true, __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&process.active, __ATOMIC_SEQ_CST)) {
        handle_event(*t, info, raw);
        if (t->came_within != 0) drop_watches(*t);
    }
    __atomic_store_n(&t->in_handler, false, __ATOMIC_RELEASE);
}

// What a signal of the timer takes outside of its handler: a loop that touches nothing, with and
// without.
void time_signals(Thread& t) {
    constexpr unsigned kTimes = 3, kRounds = 200000;
    auto loop = [] {
        std::uint64_t begin = thread_time();
        for (unsigned i = 0; i < kRounds; i++) __asm__ volatile("" : "+r"(i));
        return thread_time() - begin;
    };
    std::uint64_t plain = loop(), cost = 0;
    for (unsigned i = 0; i < kTimes; i++)
        if (std::uint64_t time = loop(); time < plain) plain = time;
    process.times_signals = true;
    for (unsigned i = 0; i < kTimes; i++) {
        process.signals = process.in_handler = 0;
        t.sampler.set_period(kTrialPeriod);
        t.sampler.enable();
        std::uint64_t time = loop();
        t.sampler.disable();
        time -= plain + process.in_handler < time ? plain + process.in_handler : time;
        if (process.signals == 0) continue;
        time /= process.signals;
        if (cost == 0 || time < cost) cost = time;
    }
    process.times_signals = false;
    process.timer_cost = cost > 0 ? cost : 1;
}

namespace {

// Precise events if there are any, else a timer of processor time, else the kernel's slow one.
bool open_sampler(Thread& t) {
    PmuSettings& pmu = process.settings.pmu;
    if (pmu.events != 0) {
        if (t.sampler.open_pmu(pmu, pmu.first)) {
            if (t.sampler.counts()) write_note(t, REVISIT_NOTE_COUNTED, 0);
            return true;
        }
        if (t.number != 0) return false;  // the first thread's clock is all threads'
        write_note(t, REVISIT_NOTE_NO_PMU, t.sampler.error());
        pmu.events = 0;
    }
    if (t.sampler.open_clock()) return true;
    int error = t.sampler.error();
    if (!t.sampler.open_timer(t.identity)) return false;
    write_note(t, REVISIT_NOTE_BY_TIMER, error);
    return true;
}

}  // namespace

bool start_sampling(Thread& t) {
    t.period = process.settings.period;
    if (!open_sampler(t)) {
        write_note(t, REVISIT_NOTE_NO_SAMPLES, t.sampler.error());
        return false;
    }
    if (t.number == 0 && process.no_watchpoints)
        write_note(t, REVISIT_NOTE_LOOKS_ONLY, process.no_watchpoints);
    if (t.sampler.is_pmu()) {
        if (process.timer_cost == 0) process.timer_cost = process.trap_cost;
        t.sampler.enable();
        return true;
    }
    std::uint64_t begin = thread_time();
    if (process.timer_cost == 0 && !t.sampler.is_timer()) time_signals(t);
    t.recording += thread_time() - begin;
    t.sampler.set_period(t.period);
    t.sampler.enable();
    return true;
}

void end_sampling(Thread& t, std::uint64_t now) {
    if (t.ended) return;
    t.sampler.disable();
    t.counted = t.sampler.count();
    now = program_time(t, now);
    t.ended = true;
    t.sampler.close();
    t.stretch.event.close();
    for (unsigned i = 0; i < t.reservoir.watchpoints(); i++) {
        t.watch[i].event.close();
        if (t.reservoir.held(i))
            write_reuse(t, t.watch[i].sample, REVISIT_REUSE_NEVER, now, 0, t.watch[i].word,
                        __builtin_bit_cast(std::uint64_t, t.reservoir.kept(i)));
    }
    if (t.writer.room(7)) {
        t.writer.put(REVISIT_RECORD(REVISIT_WATCH_CLOCK, now));
        t.writer.put(t.recording + t.aftermath);
        t.writer.put(t.counts.samples);
        t.writer.put(t.counts.without_address);
        t.writer.put(t.counts.checked);
        t.writer.put(t.counts.missed);
        t.writer.put(t.counts.stray);
    }
    t.writer.hand_over();
}

}  // namespace revisit::watch
