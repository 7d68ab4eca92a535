// How fast accesses go: what the sampler does for the clock (clock/clock.h), beside taking samples.
#include "watch/outside/sampler.h"
#include "watch/outside/scheduled.h"

namespace revisit::watch::outside {

int Sampler::free_slot(const Task& t, unsigned from) const {
    for (unsigned i = from; i < TaskEvents::kWatchpoints; i++)
        if (t.watch[i].waits_for == Watch::For::nothing) return static_cast<int>(i);
    return -1;
}

// A reuse that was counted is timed now and then as those that a watchpoint reports: what comes
// out too long is what they are too long by.
void Sampler::time_reuse(Task& t, const Noted& use, std::uint64_t distance, std::uint64_t touches) {
    constexpr std::uint8_t kEvery = 3;
    const Noted& reuse = bench_.far_reuse;
    std::uint64_t word = use.address & ~std::uint64_t{7};
    int slot = free_slot(t, 0);
    if (slot < 0 || reuse.trap_pc == 0 || touches > kMostTouches ||
        (reuse.address & ~std::uint64_t{7}) != word)
        return;
    if (t.timed_wait > 0) {
        t.timed_wait--;
        return;
    }
    t.timed_wait = kEvery;
    Watch watch;
    watch.waits_for = Watch::For::timed_reuse;
    watch.word = word;
    watch.trap_pc = reuse.trap_pc;
    watch.sample = t.samples().samples.size();
    watch.touches = touches;
    watch.use_pc = use.pc;
    watch.set = program_time(t);
    watch.accesses = use.accesses + distance;
    wait_for(t, static_cast<unsigned>(slot), watch);
}

// A watchpoint on the word of the use that was drawn must fire at the reuse that was foreseen.
void Sampler::check_prediction(Task& t, Look& look) {
    const Noted use = look.use(), reuse = look.reuse();
    std::uint64_t word = use.address & ~std::uint64_t{7}, touches;
    int slot = free_slot(t, 0);
    if (slot < 0 || reuse.trap_pc == 0 || look.distance().time <= 64 ||
        (reuse.address & ~std::uint64_t{7}) != word)
        return;
    Noted again;
    if (!look.find_again(static_cast<unsigned>(use.accesses - look.skipped()), again, touches) ||
        touches > kMostTouches)
        return;
    Watch watch;
    watch.waits_for = Watch::For::check;
    watch.word = word;
    watch.trap_pc = reuse.trap_pc;
    watch.touches = touches;
    wait_for(t, static_cast<unsigned>(slot), watch);
}

// Where replays go astray: two touches that are foreseen, and the time from the one to the other.
void Sampler::measure_rate(Task& t, Look& look) {
    constexpr std::uint64_t kMostToMilepost = 60000;  // instructions
    int first = free_slot(t, 0),
        second = first < 0 ? -1 : free_slot(t, static_cast<unsigned>(first) + 1);
    if (second < 0) return;
    Milepost post[2];
    if (!look.find_mileposts(kMostToMilepost, post)) return;
    for (unsigned i = 0; i < 2; i++) {
        Watch watch;
        watch.waits_for = Watch::For::milepost;
        watch.word = post[i].word;
        watch.trap_pc = post[i].trap_pc;
        watch.sample = t.samples().samples.size();
        watch.use_pc = bench_.stopped.pc;
        watch.set = program_time(t);
        watch.accesses = post[i].accesses;
        if (!wait_for(t, static_cast<unsigned>(i == 0 ? first : second), watch)) return;
    }
}

// Where they came to nothing they are tried less and less often. That must not depend on the place:
// else samples would come sooner at some than at others.
namespace {

// By code: what cannot be replayed, an allocator that fills a table, may be followed by what can.
Task::Replays& replays_of(Task& t, std::uint64_t pc) {
    return t.replays[pc >> 12 & 63];
}

}  // namespace

bool Sampler::is_measured(const Task& t, std::uint64_t pc) {
    return t.measured[pc >> 7 & 255];
}

bool Sampler::wants_replay(Task& t, std::uint64_t pc) {
    constexpr std::size_t kFirst = 3;  // samples that a short run may need more
    Task::Replays& here = replays_of(t, pc);
    const bool is_first = t.replay.has_counted && here.failed == 0 && !is_measured(t, pc);
    if (!may_rate(t, is_first) || t.samples().samples.size() < kFirst) return false;
    // A loop that takes a twelfth of the time may make two thirds of the accesses, and be met twice.
    if (is_first) return true;
    if (!t.replay.has_counted && t.replay.wait > 0) {
        t.replay.wait--;
        return false;
    }
    if (here.wait == 0) return true;
    here.wait--;
    return false;
}

// A stretch begins while the thread runs, with what the timer's record has of it: a stop would leave it
// slow for a while (clock/slow_start.h), and costs time.
void Sampler::due(Task& t, const Fired& fired) {
    constexpr std::uint64_t kLate = 50000;  // nanoseconds, that we know of it
    t.is_due = true;
    t.due_since = fired.time;
    t.processor = fired.processor;
    t.chance = 1;
    Replay& replay = t.replay;
    if (fired.registers == nullptr || t.pair.asked || replay.runs) return;
    Machine::read_state(fired.registers, replay.from);
    if (is_passed_over(t, replay.from.pc)) return;
    if (busy_) return;
    if (wants_following(t) && is_measured(t, replay.from.pc)) return;
    if (replays_of(t, replay.from.pc).by_stop > 0 || !wants_replay(t, replay.from.pc)) return;
    Replayer(bench_, t).keep(fired);
    replay.runs = true;
    replay.start = fired.time - t.traps_cost;
    replay.until = wall_time() + std::max(kLate, Replayer::next_length(t)) - kLate;
}

// Whether the moment at which the timer fired is left to be a tick (moments.h).
bool Sampler::is_passed_over(Task& t, std::uint64_t pc) {
    ThreadSamples& thread = t.samples();
    if (settings_.share == 0 || thread.samples.empty()) return false;
    t.chance = t.moments.chance(pc);
    if (t.random.unit() < t.chance) return false;
    thread.met.push_back({static_cast<std::uint32_t>(thread.samples.size()), t.process->place(pc)});
    const auto next = static_cast<std::uint64_t>(Budget::out_of_step(t.next_moment, t.random.unit()));
    t.passed_over += t.period;
    t.period = clock(t) - t.due_since + next;
    t.events.set_timer(next);
    t.is_due = false;
    return true;
}

// At a stop where none has begun.
bool Sampler::wants_beginning(Task& t) {
    const std::uint64_t pc = bench_.stopped.pc;
    return (busy_ || !t.events.gives_state() || replays_of(t, pc).by_stop > 0) && wants_replay(t, pc);
}

// Now and then a stretch begins where a sample was taken: how much less is done in it is what the
// program loses after each. Not where it had to be left to the timer.
bool Sampler::wants_following(Task& t) const {
    constexpr unsigned kEvery = 3, kMany = 12, kSeldom = 24;
    const std::size_t number = t.samples().samples.size();
    return !busy_ && !pairing_.wants(t) && may_rate(t) && t.replay.failed == 0 && number > kEvery &&
           number % (t.replay.followed < kMany ? kEvery : kSeldom) == 0;
}

void Sampler::begin_following(Task& t) {
    begin_replay(t);
    t.replay.follows_sample = true;
    t.replay.followed++;
    stretch_ = Replayer::next_length(t);
}

void Sampler::end_following(Task& t, std::uint64_t now) {
    constexpr std::uint64_t kLeast = 200000;  // nanoseconds
    t.replay.ended = now - t.traps_cost;
    Replayer(bench_, t).compare_stack();
    const std::uint64_t planned = t.due_since + t.period;  // the next sample
    t.events.set_timer(planned > now + kLeast ? planned - now : kLeast);
}

void Sampler::after_stretch(Task& t, bool on_another_processor) {
    std::uint64_t since = own_time();
    count_replay(t, on_another_processor);
    forget_stretch(t);
    std::uint64_t rating = worked_beside(own_time() - since, !on_another_processor);
    t.rating += rating;
    t.stopped_for += rating;
}

// The thread was at a place at a moment that no place was chosen for.
// A tick shows where a thread is and nothing else, at a thirtieth of a sample's cost.
void Sampler::tick(Task& t, std::uint64_t pc) {
    constexpr std::uint64_t kFirst = 256, kMany = 4096;  // then a third and half as often
    ThreadSamples& thread = t.samples();
    thread.met.push_back({static_cast<std::uint32_t>(thread.samples.size()), t.process->place(pc)});
    if (++t.ticks == kFirst) t.events.set_ticks(t.tick_period *= 3);
    if (t.ticks % kMany == 0) t.events.set_ticks(t.tick_period *= 2);
}

// Not of a thread that is switched often: every event more takes half a microsecond at each switch.
void Sampler::begin_ticks(Task& t) {
    constexpr std::size_t kFirst = 2;              // samples; what ends sooner needs none
    constexpr std::uint64_t kMostOften = 1000000;  // nanoseconds from switch to switch
    if (t.samples().samples.size() != kFirst) return;
    const Scheduled now = scheduled(t.process->pid, t.id);
    if (now.switches * kMostOften <= now.time + 4 * kMostOften) t.events.set_ticks(t.tick_period);
}

void Sampler::begin_replay(Task& t) {
    Replayer(bench_, t).keep();
    t.replay.runs = true;
}

void Sampler::count_replay(Task& t, bool on_another_processor) {
    constexpr unsigned kMostFailed = 4, kMostWait = 2, kTwice = 2;
    constexpr std::uint8_t kByStop = 32;
    Replay& replay = t.replay;
    Task::Replays& here = replays_of(t, replay.from.pc);
    if (!replay.began_running && !replay.follows_sample && here.by_stop > 0) here.by_stop--;
    // Until it goes on takes some 20 microseconds; and we may have been kept from stopping it.
    constexpr std::uint64_t kShort = 40000, kLong = 1000000;
    std::uint64_t taken = replay.ended - replay.start;
    if (taken < kShort || taken > kLong) return;
    machine::ReplayCount counted = Replayer(bench_, t).count(taken);
    const double open_share = bench_.window.uses() > 0
                                  ? static_cast<double>(bench_.window.open()) / bench_.window.uses()
                                  : -1;
    if (Replayer::stood_still(counted, taken, std::abs(open_share))) return;
    bool is_too_long = Replayer::is_too_long(counted), goes_shorter = Replayer::can_be_shorter(replay);
    replay.length = Replayer::length_after(replay.length, counted);
    replay.has_counted |= counted.accesses != 0;
    if (counted.accesses != 0) {
        constexpr double kToGoOn = 20000;  // nanoseconds
        const auto ran = static_cast<double>(taken);
        replay.rate = static_cast<double>(counted.accesses) / std::max(ran / 4, ran - kToGoOn);
        replay.failed = here.failed = 0;
        t.moments.measured(replay.from.pc, replay.rate);
        if (!replay.follows_sample) t.measured.set(replay.from.pc >> 7 & 255);
    } else if (is_too_long && goes_shorter)
        return;
    else if (replay.changed != 0) {
        here.by_stop = kByStop;
        return;
    } else if (is_too_long && on_another_processor && replay.far == Replay::Far::not_tried) {
        replay.far = Replay::Far::yes;
        return;
    } else {
        // A record has no vector registers: code that needs them may be counted from a stop.
        const bool needs_stop = replay.began_running && !is_too_long;
        if (!needs_stop) replay.failed = std::min(kMostFailed, replay.failed + 1);
        here.failed = static_cast<std::uint8_t>(std::min(kMostFailed, here.failed + 1u));
        if (needs_stop && here.failed >= kTwice) here.by_stop = kByStop;
    }
    if (counted.accesses == 0 && replay.far == Replay::Far::yes) replay.far = Replay::Far::no;
    here.wait = static_cast<std::uint8_t>((1u << here.failed) - 1);
    replay.wait = std::min(kMostWait, (1u << replay.failed) - 1);
    samples(t).replays.push_back(
        {t.process->place(replay.from.pc), static_cast<double>(counted.accesses),
         static_cast<double>(taken), replay.start, t.process->place(bench_.stopped.pc),
         replay.follows_sample, static_cast<double>(counted.before), open_share, replay.began_running});
}

void Sampler::milepost_reached(Task& t, unsigned slot, std::uint64_t now) {
    const Watch& watch = t.watch[slot];
    const auto& so_far = t.samples().samples;
    if (watch.waits_for == Watch::For::check || watch.sample != so_far.size()) return;
    auto accesses = static_cast<double>(watch.accesses);
    double taken = static_cast<double>(now) - static_cast<double>(watch.set);
    std::uint32_t place = t.process->place(watch.use_pc);
    std::uint64_t when = so_far.empty() ? 0 : so_far.back().time;
    if (watch.waits_for == Watch::For::timed_reuse) {
        samples(t).timed.push_back({place, accesses, std::max(0.0, taken), when});
        return;
    }
    if (t.first_post.sample != watch.sample) {  // the first of the two
        t.first_post = {watch.sample, accesses, taken};
        return;
    }
    Rate::Stretch first{t.first_post.accesses, t.first_post.taken};
    samples(t).rates.push_back(
        {place, first, first, {accesses - first.accesses, taken - first.nanoseconds}, when});
}

}  // namespace revisit::watch::outside
