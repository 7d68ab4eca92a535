#include "watch/outside/sampler.h"

#include <elf.h>
#include <fmt/format.h>
#include <linux/hw_breakpoint.h>
#include <time.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <string>

#include "watch/outside/resident.h"
#include "watch/outside/scheduled.h"
#include "watch/outside/trap_count.h"

namespace revisit::watch::outside {
namespace {

using Watched = Sample::Watched;

// What stopping a thread and letting it go takes, beside our own time.
constexpr std::uint64_t kStopCost = 8000;  // nanoseconds
// What is read goes through caches that the program has its data in: programs that touch memory at
// random (xz) lost as much time afterwards as they had stood still when 4096 bytes were read each time.
constexpr std::uint64_t kBytesRead = 2;  // per nanosecond

// A trap takes some microseconds, and not always the same: too long to time reuses that come within a
// few. Where the last one from a use did, its reuse is looked for further ahead instead, and so it is
// where loops on the way are affine, so that looking goes far at little cost. That is decided before it
// is known how this one ends, so nothing is biased.
constexpr std::uint64_t kSoon = 60000;                // nanoseconds
constexpr unsigned kFurther = 3000, kAtFirst = 1500;  // accesses
// … as far as the last one took, where that is not too far: a list of half a megabyte that comes round
// after 16 000 accesses and 50 us, of which the sample's own traces are a third.
constexpr unsigned kFurthest = 48000;
constexpr int kMostFailed = 4;
constexpr std::uint64_t kNotLate = 150000;  // nanoseconds
// Traps that come sooner are counted to, where the time says little (trap_count.h); accesses per
// nanosecond.
constexpr std::uint64_t kCounted = 1000000, kFastest = 12;
// Accesses per nanosecond; faster code has more samples without (a sparse matrix 58, now 71).
constexpr double kSlow = 0.7;
constexpr unsigned kLooksOnly = 12000;  // … where there are no watchpoints
constexpr std::int8_t kTries = 6;
// Accesses that are passed before a window, and instructions interpreted for it: fewer than so many.
constexpr unsigned kWay = 1u << 18, kOnWay = 2500;

unsigned slot_of(std::uint64_t use_pc) {
    return use_pc >> 2 & 255;
}

std::int8_t& tries_further(Task& t, std::uint64_t use_pc) {
    return t.soon[slot_of(use_pc)];
}

// The accesses to look ahead for a reuse that took so many nanoseconds the last time.
double reach_further(const Task& t, std::uint64_t nanoseconds) {
    constexpr double kMore = 1.25;
    return kMore * static_cast<double>(nanoseconds) * t.replay.rate;
}

// Whether a use is one that is looked for through loops: each time it was found, less and less often
// where it was not.
bool tries_loops(Task::Loops& loops) {
    if (loops.wait == 0) return true;
    loops.wait--;
    return false;
}

void looked_through(Task::Loops& loops, bool found) {
    constexpr std::uint8_t kMostFailed = 5;
    if (found)
        loops.failed = loops.failed > 0 ? loops.failed - 1 : 0;
    else if (loops.failed < kMostFailed)
        loops.failed++;
    loops.wait = static_cast<std::uint8_t>((1u << loops.failed) - 1) / 2 * 2;
}

// A share of about so many last cases, in 255ths.
void learn(std::uint8_t& share, bool was_so, unsigned cases = 4) {
    share = static_cast<std::uint8_t>((share * (cases - 1) + (was_so ? 255u : 0u)) / cases);
}
bool are_most(std::uint8_t share) {
    return share > 128;
}
bool are_few(std::uint8_t share) {
    return share < 32;
}

Sample& sample_of(Task& t, std::uint64_t number) {
    return t.samples().samples[number - 1];
}

std::uint64_t time_by(clockid_t clock) {
    timespec now{};
    clock_gettime(clock, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1000000000 +
           static_cast<std::uint64_t>(now.tv_nsec);
}

}  // namespace

std::uint64_t wall_time() {
    return time_by(CLOCK_MONOTONIC);
}
std::uint64_t own_time() {
    return time_by(CLOCK_THREAD_CPUTIME_ID);
}

Sampler::Sampler(const Settings& settings, bool objects)
    : settings_(settings), objects_(objects), bench_(settings_), pairing_(settings_, objects) {
    TaskEvents::refuse = settings.refuse;
    budget_.share = settings.share;
    calibrate();
}

// Without events, what the scheduler counts.
std::uint64_t Sampler::clock(Task& t) {
    std::uint64_t now = t.events.clock();
    if (!t.events.is_open()) {
        now = scheduled(t.process->pid, t.id).time;
        if (t.rest.is_resting && now != 0) now = now - t.rest.scheduled + t.rest.since;
        now = std::max(now, t.clock_seen);
    }
    budget_.ran += now - t.clock_seen;
    t.process->time += now - t.clock_seen;
    t.process->program->time += now - t.clock_seen;
    t.clock_seen = now;
    return now;
}

void Sampler::note(Task& t, Hindrance what, int error) {
    const auto bit = static_cast<std::uint8_t>(1u << static_cast<unsigned>(what));
    if (t.noted & bit) return;
    t.noted |= bit;
    Note& note = samples(t).notes[what];
    note.threads++;
    note.error = error;
}

void Sampler::take_records(Task& t) {
    t.events.take_records(
        {[&](const Fired& fired) { due(t, fired); }, [&](const Trap& trap) { trapped(t, trap); },
         [&] { t.process->maps_have_changed(); },
         [&](pid_t process) {
             // … or did until now: nobody else tells of its children until it is seized again.
             if (t.process->forks.often || t.is_loose) t.forked.push_back(process);
         },
         [&] { t.has_executed |= t.is_loose; }, [&](std::uint64_t pc) { tick(t, pc); }});
}

bool Sampler::is_due_by_time(Task& t) {
    if (t.events.is_open() || t.rest.is_resting) return false;
    std::uint64_t before = t.clock_seen, now = clock(t);
    return now > before && now >= t.due_since + t.period;
}

std::uint32_t Sampler::label(Task& t, const Noted& access) {
    DataTouched data;
    if (objects_) data = t.process->data_at(access.address, Machine::stack_pointer(bench_.stopped));
    return t.process->label(access.path, access.pc, data);
}

// What vector registers hold is followed only where that was needed before: most code that computes
// with them branches on integers. Likewise what is at random places in memory, and where a window
// begins further on, through loops. A place not met before is taken for one as most are in this thread.
// Some looks are not, as that may change. Without it perl was looked at 2.6 times per sample, and half
// of the time went into looking for loops.
Look Sampler::look_ahead(Task& t) {
    unsigned skip = t.random.below(static_cast<unsigned>(settings_.spread));
    std::uint64_t place = bench_.stopped.pc >> 6 & 255;
    const std::size_t number = t.samples().samples.size();
    const bool goes_by_others = number % 8 != 0;
    bool& needs_vectors = t.needs_vectors[place];
    bool follows_vectors =
        needs_vectors || !Machine::kFollowsVectors || (goes_by_others && are_most(t.vectors_share));
    constexpr std::uint8_t kReadNext = 4;  // looks that read them at once, where one needed them
    std::uint8_t& needs_pages = t.needs_pages[place];
    bool reads_pages = needs_pages > 0 || (goes_by_others && are_most(t.pages_share));
    if (needs_pages > 0) needs_pages--;
    const bool tries_without_vectors = !follows_vectors, tries_without_pages = !reads_pages;
    // Two threads are compared at the same moment.
    Task::Loops& passed = t.passed[place];
    const bool goes_further = settings_.uses > 1 && !pairing_.wants(t) &&
                              (!are_few(t.passed_share) || number % 4 == 0) && tries_loops(passed);
    for (;;) {
        Look look(bench_, t, follows_vectors, reads_pages);
        if (goes_further) look.begin_further(kWay, kOnWay);
        look.run(skip, static_cast<unsigned>(settings_.uses), static_cast<unsigned>(settings_.window),
                 settings_.budget);
        if (!follows_vectors && look.lacked_vectors())
            needs_vectors = follows_vectors = true;
        else if (!reads_pages && look.lacked_pages()) {
            reads_pages = true;
            needs_pages = kReadNext;
        } else {
            if (tries_without_vectors) learn(t.vectors_share, follows_vectors);
            if (tries_without_pages) learn(t.pages_share, reads_pages);
            if (!goes_further) return look;
            looked_through(passed, look.went_further());
            learn(t.passed_share, look.went_further());
            return look;
        }
    }
}

// What the look ended at, if that was not its length.
void Sampler::note_end(Task& t, const Look& look) {
    if (!look.ended_early()) return;
    std::uint64_t code = 0;
    bench_.memory.load(bench_.state.pc, 8, code);
    Ended& ended = samples(t).ended[{t.process->place(bench_.state.pc), code}];
    (look.looked_at() == 0 ? ended.before : ended.after)++;
}

void Sampler::sample(Task& t) {
    ThreadSamples& thread = t.samples();
    thread.samples.emplace_back();
    std::uint64_t number = thread.samples.size();
    std::uint64_t interrupted = bench_.stopped.pc;
    foreseen_ = false;
    bench_.far_use.pc = 0;
    bench_.open = 0;
    Look look = look_ahead(t);
    note_end(t, look);
    drawn_ = look.distance();
    Sample& sample = thread.samples.back();
    sample.time = program_time(t);
    const std::uint64_t times = number == 1 ? 2 : 1;  // see to_first_sample()
    sample.period = times * (t.passed_over + t.period);
    sample.stands_for = static_cast<std::uint64_t>(static_cast<double>(times * t.period) / t.chance);
    sample.place = t.process->place(interrupted);
    begin_ticks(t);
    sample.has_address = look.use().pc != 0;
    if (!sample.has_address) return;
    sample.uses = static_cast<std::uint16_t>(bench_.window.uses());
    sample.open = static_cast<std::uint16_t>(bench_.window.open());
    watch_an_open_use(t, look);
    if (settings_.check && no_watchpoints_ == 0 && number % settings_.check == 0 && drawn_.time != 0)
        check_prediction(t, look);
    else if (t.replay.failed > 0 && no_watchpoints_ == 0 && may_rate(t) && number >= t.next_rate) {
        constexpr std::uint64_t kEvery = 2;  // it costs as much as two samples
        std::uint64_t before = own_time();
        t.next_rate = number + kEvery;
        measure_rate(t, look);
        t.rating += own_time() - before;
    }
}

// What was touched by whom, and what the window says.
void Sampler::finish_sample(Task& t) {
    ThreadSamples& thread = t.samples();
    Sample& sample = thread.samples.back();
    if (!sample.has_address) return;
    sample.write = bench_.use.writes;
    sample.label = label(t, bench_.use);
    if (drawn_.time != 0) {
        sample.ahead = true;
        sample.reuse_label = label(t, bench_.reuse);
        sample.distance = drawn_.time;
        sample.distinct = drawn_.distinct;
    }
    if (sample.watched != Watched::no && bench_.far_use.pc != 0)
        sample.far_label = label(t, bench_.far_use);
    if (foreseen_) sample.far_reuse_label = label(t, bench_.far_reuse);
    thread.add_window(bench_.window);
    count_sets(t);
    budget_.charge_heap_library(bench_.log, sample.stands_for,
                                [&](std::uint64_t pc) { return t.process->is_in_heap_library(pc); });
    count_visits(t);
}

Sample& Sampler::set_on(Task& t, const Noted& use, double chance) {
    Sample& sample = t.samples().samples.back();
    sample.watched = Watched::replaced;
    sample.far_accesses = use.accesses;
    sample.chance_watched = chance;
    return sample;
}

void Sampler::found_further(Task& t, const Noted& use, std::uint64_t distance) {
    Sample& sample = set_on(t, use, 1);
    sample.watched = Watched::foreseen;
    foreseen_ = true;
    sample.trap_time = sample.time;
    sample.far_distance = distance;
}

bool Sampler::look_further(Task& t, Look& look, unsigned index, const Noted& use,
                           std::uint64_t touches) {
    std::int8_t& tries = tries_further(t, use.pc);
    if (tries == 0 && t.soon_share > 64) tries = 2;  // a use not met before, where others come soon
    bool soon = tries > 0;
    Task::Loops& loops = t.loops[slot_of(use.pc)];
    bool through_loops = tries_loops(loops);
    if (!soon && !through_loops) return false;
    const unsigned far = soon ? t.reach[slot_of(use.pc)] : 0;
    const Look::Reach reach =
        far > kFurther ? Look::Reach{far, 4 * far, far / 64} : Look::Reach{soon ? kFurther : kAtFirst};
    std::uint64_t distance = look.find_further(bench_.address[index], reach, bench_.far_reuse);
    looked_through(loops, distance != 0);
    if (soon) {
        // What was not found for the second time is looked for more and more rarely: in a loop of 8000
        // iterations each such look took as long as three samples.
        std::uint8_t& failed = t.further_failed[slot_of(use.pc)];
        failed = static_cast<std::uint8_t>(distance != 0 ? 0 : std::min(kMostFailed, failed + 1));
        const bool was_last = tries == 1 || far > kFurther || failed > 1;
        tries = static_cast<std::int8_t>(distance != 0 ? kTries
                                         : was_last    ? -(kTries << (failed - 1))
                                                       : tries - 1);
    }
    if (distance == 0) return false;
    found_further(t, use, distance);
    time_reuse(t, use, distance, touches);
    return true;
}

// Where there are no watchpoints: as far as looking goes. What is not met there counts with what never
// comes back, and the profile says so.
void Sampler::look_only(Task& t, Look& look, const Noted& use) {
    if (std::uint64_t distance = look.find_further(use.address, {kLooksOnly}, bench_.far_reuse))
        return found_further(t, use, distance);
    Sample& sample = set_on(t, use, 1);
    sample.watched = Watched::never;
    sample.chance_kept = 1;
}

void Sampler::drop(Task& t, unsigned slot) {
    t.events.clear_watchpoint(slot);
    t.watch[slot].waits_for = Watch::For::nothing;
}

// The block that is watched there, if any, is not from now on.
void Sampler::forget_use(Task& t, unsigned block) {
    for (unsigned slot = 0; slot < TaskEvents::kWatchpoints; slot++)
        if (t.watch[slot].waits_for == Watch::For::reuse && t.watch[slot].block == block) drop(t, slot);
    t.reservoir.release(block);
}

bool Sampler::wait_for(Task& t, unsigned slot, const Watch& watch) {
    t.watch[slot] = watch;
    if (int error = t.events.set_watchpoint(slot, watch.word, 1 + watch.touches)) {
        t.watch[slot].waits_for = Watch::For::nothing;
        note(t, Hindrance::no_watchpoint, error);
        return false;
    }
    return true;
}

// Words of the block of a use, if the reservoir gives it the watchpoints.
void Sampler::watch_use(Task& t, const Noted& use) {
    const Sample& last = t.samples().samples.back();
    const double stands_for =
        static_cast<double>(last.stands_for) * last.open / std::max<int>(1, last.uses);
    Reservoir::Choice choice = t.reservoir.choose(t.random, std::max(1.0, stands_for));
    if (choice.watchpoint < 0) return;
    auto block = static_cast<unsigned>(choice.watchpoint);
    if (t.reservoir.held(block)) sample_of(t, t.waiting[block]).trap_time = program_time(t);  // lost
    forget_use(t, block);
    // Some are left free: to time accesses where replays go astray, or for how late traps are.
    constexpr std::size_t kTimedEnough = 12;
    unsigned spare = t.replay.failed > 0 ? 2 : samples(t).timed.size() < kTimedEnough ? 1 : 0;
    unsigned most = 0;
    for (unsigned slot = 0; slot < TaskEvents::kWatchpoints; slot++)
        most += t.watch[slot].waits_for == Watch::For::nothing;
    most = most > spare ? most - spare : std::min(most, 1u);
    auto shift = static_cast<unsigned>(settings_.shift);
    WatchedWords words = choose_words(
        bench_.log, use.address, use.pc, shift, t.process->program->habits, samples(t).visits,
        std::min(most, static_cast<unsigned>(settings_.watchpoints)), kMostTouches, t.random);
    std::uint32_t set = 0;
    for (unsigned i = 0, slot = 0; i < words.count && slot < TaskEvents::kWatchpoints; slot++) {
        if (t.watch[slot].waits_for != Watch::For::nothing) continue;
        if (words.touches[i] <= kMostTouches) {
            Watch watch;
            watch.waits_for = Watch::For::reuse;
            watch.block = block;
            watch.word = words.address[i];
            watch.sample = t.samples().samples.size();
            watch.touches = words.touches[i];
            watch.use_pc = use.pc;
            watch.set = program_time(t);
            if (!wait_for(t, slot, watch)) break;
            set |= 1u << word_of(watch.word);
        }
        i++;
    }
    if (set == 0) return;
    t.reservoir.set(block);
    t.waiting[block] = t.samples().samples.size();
    Sample& sample = set_on(t, use, choice.probability);
    sample.watched_words = set;
    sample.use_word = static_cast<std::uint8_t>(words.use_word);
    sample.use_pc = use.pc;
    sample.use_address = use.address;
    TrapCount(bench_, t).keep();
}

// The page table is looked at more and more rarely.
void Sampler::note_peak(Task& t) {
    const bool ends = t.ended && t.id == t.process->pid;
    note_touchable(t.process->shown_by(), ends || std::has_single_bit(t.samples().samples.size()),
                   samples(t).touchable);
}

// Where the lines of the window lie in caches.
void Sampler::count_sets(Task& t) {
    if (settings_.caches.empty()) return;
    Samples& all = samples(t);
    if (all.caches.empty()) all.caches = settings_.caches;
    lines_.clear();
    for (unsigned i = 1; i <= bench_.window.length(); i++)
        lines_.push_back(bench_.address[i] >> settings_.shift);
    t.samples().samples.back().sets =
        sets_of(lines_, bench_.window.uses(), bench_.drawn, bench_.open, settings_.caches);
}

// What the window says about visits to blocks. It takes as long as a fifth of a sample, and one of four
// says enough.
void Sampler::count_visits(Task& t) {
    constexpr std::size_t kAll = 64, kEvery = 4;
    std::size_t number = t.samples().samples.size();
    if (number > kAll && number % kEvery != 0) return;
    // It cannot be asked once the process has ended, and what grows late must be seen: nothing is taken
    // for further away than this.
    constexpr std::size_t kAsked = 8, kAskedFirst = 4;
    if (number % (number < kAll ? kAskedFirst : kAsked) == 0) note_peak(t);
    samples(t).visits.add(bench_.log, static_cast<unsigned>(settings_.shift));
    samples(t).line_use.add(bench_.log, static_cast<unsigned>(settings_.shift));
    for (const LoggedAccess& access : bench_.log.accesses())
        if (auto [found, is_new] = samples(t).places_by_pc.try_emplace(access.pc, 0); is_new)
            found->second = t.process->place(access.pc);
}

// Lets one of the uses that are open, each with the same chance, have a watchpoint if the reservoir
// gives them.
void Sampler::watch_an_open_use(Task& t, Look& look) {
    unsigned open = bench_.window.open();
    if (open == 0) return;
    unsigned index = bench_.window.open_use(t.random.below(open));
    std::uint64_t touches;
    Noted& use = bench_.far_use;
    if (!look.find_again(index, use, touches) || touches == 0) return;
    bench_.open = index;
    if (no_watchpoints_ != 0 || !t.events.is_open()) return look_only(t, look, use);
    if (settings_.uses > 1 && look_further(t, look, index, use, touches)) return;
    watch_use(t, use);
}

void Sampler::trapped(Task& t, const Trap& trap) {
    std::uint64_t now = trap.time - t.traps_cost;
    t.traps_cost += trap_cost_;
    for (unsigned slot = 0; slot < TaskEvents::kWatchpoints; slot++) {
        Watch& watch = t.watch[slot];
        if (watch.waits_for == Watch::For::nothing || watch.word != trap.word) continue;
        bool reuses = watch.waits_for == Watch::For::reuse;
        std::uint64_t touches = 0;
        for (const Watch& other : t.watch)
            if (&other == &watch ||
                (reuses && other.waits_for == Watch::For::reuse && other.block == watch.block))
                touches += other.touches;
        t.traps_cost += touches * step_cost_;
        now -= std::min(now, touches * step_cost_);
        // What has fired is off. To close it now would interrupt the thread once more.
        if (reuses) {
            reused(t, slot, trap, now);
            watch.waits_for = Watch::For::nothing;
            return forget_use(t, watch.block);
        }
        if (trap.registers != nullptr) {
            Machine::State state;
            Machine::read_state(trap.registers, state);
            ThreadSamples& thread = t.samples();
            thread.checked++;
            if (state.pc != watch.trap_pc)
                thread.missed++;
            else
                milepost_reached(t, slot, now);
        }
        watch.waits_for = Watch::For::nothing;
        return;
    }
    t.samples().stray++;
}

void Sampler::reused(Task& t, unsigned slot, const Trap& trap, std::uint64_t now) {
    Watch& watch = t.watch[slot];
    const std::uint64_t after = now > watch.set ? now - watch.set : 0;
    const double reach = reach_further(t, after);
    const bool can_reach = after <= kNotLate && reach < kFurthest && t.replay.rate < kSlow &&
                           t.further_failed[slot_of(watch.use_pc)] < 2;
    bool came_soon = after <= kSoon || (can_reach && reach > 0);
    learn(t.soon_share, came_soon, 16);
    std::int8_t& tries = tries_further(t, watch.use_pc);
    t.reach[slot_of(watch.use_pc)] = static_cast<std::uint16_t>(can_reach ? reach : 0);
    if (!came_soon)
        tries = 0;
    else if (++tries > 0)  // one that was not found further ahead waits a while
        tries = kTries;
    Sample& sample = sample_of(t, watch.sample);
    sample.watched = Watched::trapped;
    sample.trap_time = now;
    sample.chance_kept = t.reservoir.kept(watch.block);
    sample.trapped_word = static_cast<std::uint8_t>(word_of(trap.word));
    t.process->program->habits.learn(sample.use_pc, sample.use_word, sample.watched_words,
                                     sample.trapped_word);
    if (trap.registers == nullptr) return;
    Machine::State& state = bench_.state;
    Machine::read_state(trap.registers, state);
    bench_.memory.start(t.process->pid, t.process->shown_by());
    std::uint64_t stack_pointer = Machine::stack_pointer(state);
    TrapMemory memory(bench_.memory, Machine::stack_top(state), trap.stack.data(), trap.stack.size());
    Path path;
    read_path(memory, state, *t.process, path);
    path.pc = Machine::sprung_by(memory, state, watch.word);
    DataTouched data;
    if (objects_) data = t.process->data_at(watch.word, stack_pointer);
    sample.far_reuse_label = t.process->label(path, path.pc, data);
    if (busy_ || after > kCounted || !tries_loops(t.trap_counts)) return;
    const std::uint64_t since = own_time();
    Machine::read_state(trap.registers, state);
    const Machine::State at_trap = state;
    sample.far_counted = TrapCount(bench_, t).count(watch.sample, at_trap, trap);
    // Faster than any code goes: it has come to the same place by another way.
    if (sample.far_counted > kFastest * after) sample.far_counted = 0;
    looked_through(t.trap_counts, sample.far_counted != 0);
    t.stopped_for += worked_beside(own_time() - since, busy_);
}

Sampler::Taken Sampler::at_stop(Task& t) {
    take_records(t);
    t.is_due = false;
    const std::uint64_t since = own_time(), now = clock(t), bytes = bench_.memory.bytes_read();
    auto others_cost = [&] { return kStopCost + (bench_.memory.bytes_read() - bytes) / kBytesRead; };
    if (t.pair.asked && pairing_.at_stop(t, now)) {
        spend(t, own_time() - since, others_cost());
        return Taken::nothing;
    }
    if (!bench_.begin(t)) return Taken::nothing;
    if (!t.process->kept) t.process->kept = std::make_unique<Machine::Kept>();
    if (t.replay.runs && t.replay.follows_sample) {
        end_following(t, now);
        const std::uint64_t own = own_time() - since;
        t.rating += own + others_cost();
        spend(t, own, others_cost());
        return Taken::stretch;
    }
    if (now > t.due_since && t.events.is_open()) t.period += now - t.due_since;  // until it stood
    const bool follows = !t.replay.runs && wants_following(t);
    const bool sampled = t.replay.runs || follows || !wants_beginning(t);
    if (sampled) {
        t.rest.user += t.passed_over + t.period;
        t.rest.sampled = now;
        t.replay.ended = now - t.traps_cost;
        if (t.replay.runs) Replayer(bench_, t).compare_stack();
        sample(t);
    } else
        begin_replay(t);
    std::uint64_t cost = own_time() - since + others_cost();
    // A sample's period is all time since the one before, the replay's stop included.
    // Where nobody waits for the stretch to end, the timer ends it.
    std::uint64_t time = sampled ? to_next_sample(t, cost) : stretch_ = Replayer::next_length(t);
    t.period = sampled ? time : t.period + time;
    if (sampled) t.passed_over = 0;
    t.due_since = now;
    t.events.set_timer(time);
    if (follows) begin_following(t);
    if (!sampled || follows) t.replay.start = program_time(t);
    std::uint64_t own = own_time() - since;
    if (!sampled) t.rating += own + others_cost();
    spend(t, own, others_cost());
    return follows ? Taken::sample_and_beginning : sampled ? Taken::sample : Taken::beginning;
}

void Sampler::after_stop(Task& t, bool on_another_processor) {
    std::uint64_t since = own_time();
    samples(t).taken++;
    samples(t).taken_busy += !on_another_processor;
    finish_sample(t);
    charge_switches(t);
    std::uint64_t finished = own_time();
    std::uint64_t cost = worked_beside(finished - since, !on_another_processor);
    if (t.replay.runs && !t.replay.follows_sample) {
        t.replay.runs = false;
        count_replay(t, on_another_processor);
        std::uint64_t rating = worked_beside(own_time() - finished, !on_another_processor);
        t.rating += rating;
        cost += rating;
    }
    t.stopped_for += cost;
}

void Sampler::look_at_another(Task& t, const std::vector<Task*>& others) {
    pairing_.begin(t, bench_.log, Machine::stack_pointer(bench_.stopped), others);
}

}  // namespace revisit::watch::outside
