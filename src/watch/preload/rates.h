// How fast accesses go, measured while the program runs, and whether what was foreseen happens.
//
// A rate is found in one of two ways: by a replay (replay.h), or, where replays go astray, by three
// touches that are foreseen, the mileposts, on which the thread's last watchpoint waits in turn. The
// same watchpoint checks now and then that a reuse comes at the instruction where it was foreseen.
#pragma once

#include <string.h>
#include <ucontext.h>

#include "watch/preload/records.h"
#include "watch/preload/replay.h"

namespace revisit::watch {

// Each touch before the one that is waited for is a trap too, which the kernel steps over.
constexpr std::uint64_t kMostTouches = 32;

inline void set_watchpoint(perf_event_attr& attributes, std::uint64_t word, std::uint64_t touches) {
    memset(&attributes, 0, sizeof attributes);
    attributes.type = PERF_TYPE_BREAKPOINT;
    attributes.bp_type = HW_BREAKPOINT_RW;
    attributes.bp_addr = word;
    attributes.bp_len = HW_BREAKPOINT_LEN_8;
    attributes.sample_period = touches;
}

inline bool is_ours(const Thread& t, std::uint64_t word) {
    auto inside = [&](const void* begin, std::size_t bytes) {
        return word - reinterpret_cast<std::uint64_t>(begin) < bytes;
    };
    return inside(&t, sizeof t) || inside(t.signal_stack, kSignalStack) || inside(&self, sizeof self) ||
           inside(process.stream, REVISIT_STREAM_BYTES) || inside(&process, sizeof process) ||
           is_of_heap_table(word);
}

inline void wait_for(Thread& t, std::uint64_t word, std::uint64_t touches) {
    perf_event_attr attributes;
    set_watchpoint(attributes, word, touches);
    t.stretch.waits = t.stretch.event.move(attributes, kStretchData);
}

constexpr std::uint64_t kMostToMilepost = 200000;  // instructions

inline void measure_rate(Thread& t, Look& look, std::uint64_t interrupted) {
    Stretch& stretch = t.stretch;
    if (!look.find_mileposts(kMostToMilepost, stretch.post) || is_ours(t, stretch.post[0].word) ||
        is_ours(t, stretch.post[1].word) || is_ours(t, stretch.post[2].word))
        return;
    stretch.checks = stretch.reuses = false;
    stretch.at = 0;
    stretch.from_pc = interrupted;
    stretch.start = 0;  // the time this handler ends
    stretch.samples = t.counts.samples;
    wait_for(t, stretch.post[0].word, 1);
}

// A watchpoint on the word of the use that was drawn must fire at the reuse that was foreseen.
inline void check_prediction(Thread& t, Look& look) {
    const Noted &use = look.use(), &reuse = look.reuse();
    std::uint64_t word = use.address & ~std::uint64_t{7}, touches;
    if (t.stretch.waits || reuse.trap_pc == 0 || look.distance().time <= 64 ||
        (reuse.address & ~std::uint64_t{7}) != word)
        return;
    std::uint64_t pc = reuse.trap_pc;
    Noted again;
    if (!look.find_again(static_cast<unsigned>(use.accesses - look.skipped()), again, touches) ||
        touches > kMostTouches)
        return;
    t.stretch.checks = true;
    t.stretch.reuses = false;
    t.stretch.at = 0;
    t.stretch.post[0] = {word, pc, 0};
    wait_for(t, word, 1 + touches);
}

// A reuse that was counted is timed now and then as those are that a watchpoint tells of: what comes
// out too long is what they are too long by.
inline void time_reuse(Thread& t, const Noted& use, std::uint64_t distance, std::uint64_t touches,
                       std::uint64_t now) {
    constexpr std::uint64_t kFar = 400000;  // accesses: how late it is would not show
    constexpr std::uint8_t kEvery = 3;
    Stretch& stretch = t.stretch;
    const Noted& reuse = t.reuse;
    std::uint64_t word = use.address & ~std::uint64_t{7};
    if (stretch.waits || process.settings.watchpoints >= kMostWatchpoints || process.no_watchpoints ||
        t.sampler.is_pmu() || t.sampler.is_timer() || reuse.trap_pc == 0 || distance > kFar ||
        touches > kMostTouches || (reuse.address & ~std::uint64_t{7}) != word)
        return;
    if (t.timed_wait > 0) {
        t.timed_wait--;
        return;
    }
    t.timed_wait = kEvery;
    stretch.checks = false;
    stretch.reuses = true;
    stretch.at = 0;
    stretch.samples = t.counts.samples;
    stretch.touches = touches;
    stretch.from_pc = use.pc;
    stretch.start = program_time(t, now);
    stretch.post[0] = {word, reuse.trap_pc, use.accesses + distance};
    wait_for(t, word, 1 + touches);
}

inline void write_timed_reuse(Thread& t, std::uint64_t now) {
    const Stretch& stretch = t.stretch;
    std::uint64_t from = stretch.start + stretch.touches * process.step_cost;
    if (!t.writer.room(7)) return;
    t.writer.put(REVISIT_RECORD(REVISIT_WATCH_RATE, stretch.from_pc));
    t.writer.put(stretch.post[0].accesses);
    t.writer.put(now > from ? now - from : 0);
    for (unsigned i = 0; i < 4; i++) t.writer.put(std::uint64_t{0});
}

inline void milepost_reached(Thread& t, const ucontext_t& context, std::uint64_t now) {
    Stretch& stretch = t.stretch;
    stretch.event.disable();
    if (!stretch.waits) {
        t.counts.stray++;
        return;
    }
    stretch.waits = false;
    t.counts.checked++;
    const Milepost& post = stretch.post[stretch.at];
    if (Machine::pc(context) != post.trap_pc) {
        t.counts.missed++;
        return;
    }
    if (stretch.checks || stretch.samples != t.counts.samples) return;  // a sample came in between
    if (stretch.reuses) return write_timed_reuse(t, program_time(t, now));
    std::uint64_t before = stretch.start + process.trap_cost;
    stretch.taken[stretch.at] = now > before ? now - before : 0;
    if (stretch.at < 2) {
        stretch.at++;
        wait_for(t, stretch.post[stretch.at].word, 1);
        return;
    }
    if (!t.writer.room(7)) return;
    t.writer.put(REVISIT_RECORD(REVISIT_WATCH_RATE, stretch.from_pc));
    for (unsigned i = 0; i < 3; i++) {
        t.writer.put(stretch.post[i].accesses - (i ? stretch.post[i - 1].accesses : 0));
        t.writer.put(stretch.taken[i]);
    }
}

// How fast accesses go is found out by a replay, or, at places where these go astray, by foreseeing.
constexpr unsigned kAstray = 1, kAstrayAnywhere = 2, kAgain = 8;

inline void replay_ends(Thread& t, const ucontext_t& context, std::uint64_t now) {
    Replay& replay = t.replay;
    std::uint64_t taken = program_time(t, now) - replay.start;
    taken -=
        taken < 2 * process.timer_cost ? taken / 2 : process.timer_cost;  // out of one, into the other
    Replay::Place& place = replay.at(replay.from.pc);
    constexpr unsigned kFastest = 12, kUsual = 8;  // instructions a nanosecond
    ReplayCount counted =
        Replayer(t).count(context, taken, replay.failed + place.failed > 1 ? kUsual : kFastest);
    place.length = Replayer::length_after(place, counted, taken);
    if (counted.accesses == 0) {  // astray, or too long to interpret
        place.failed++;
        replay.failed++;
    } else
        place.failed = replay.failed = 0;
    if (!t.writer.room(3)) return;
    t.writer.put(REVISIT_RECORD(REVISIT_WATCH_REPLAY, replay.from.pc));
    t.writer.put(counted.accesses);
    t.writer.put(taken);
}

// Replays need a timer that is fine enough.
inline void rate_accesses(Thread& t, Look& look, std::uint64_t interrupted) {
    if (t.sampler.is_pmu() || t.sampler.is_timer()) {
        if (!t.stretch.waits && process.settings.watchpoints < kMostWatchpoints &&
            !process.no_watchpoints)
            measure_rate(t, look, interrupted);
        return;
    }
    Replay::Place& place = t.replay.at(interrupted);
    unsigned& anywhere = t.replay.failed;
    if (place.failed < kAstray && anywhere < kAstrayAnywhere) {
        t.replay.phase = Replay::Phase::settles;
        return;
    }
    if (place.failed >= kAstray && ++place.failed == kAgain) place.failed = kAstray - 1;
    if (anywhere >= kAstrayAnywhere && ++anywhere == kAgain) anywhere = kAstrayAnywhere - 1;
    if (!t.stretch.waits && process.settings.watchpoints < kMostWatchpoints)
        measure_rate(t, look, interrupted);
}

}  // namespace revisit::watch
