#include "watch/outside/pairing.h"

#include <algorithm>
#include <bit>
#include <map>
#include <thread>
#include <tuple>
#include <utility>

#include "watch/outside/sampler.h"

namespace revisit::watch::outside {
namespace {

constexpr std::size_t kEvery = 2;              // samples
constexpr std::size_t kMostAsked = 8;          // threads
constexpr std::size_t kMostTried = 32;         // … whose state is read
constexpr std::uint64_t kAtOnce = 1000;        // nanoseconds; the kernel makes it ten microseconds
constexpr std::uint64_t kPatience = 20000000;  // … of wall time, for one that wants a processor
constexpr std::uint64_t kLeast = 20000;        // … to a sample that was put off
constexpr unsigned kSmallest = 4;              // shift of the smallest blocks

}  // namespace

bool Pairing::wants(const Task& t) const {
    return settings_.shift >= kSmallest && t.process->threads.size() > 1 && t.events.is_open() &&
           t.samples().samples.size() % kEvery == 0 &&
           (task_ == nullptr || wall_time() - since_ > kPatience);
}

void Pairing::begin(Task& t, const AccessLog& log, std::uint64_t stack_pointer,
                    const std::vector<Task*>& others) {
    task_ = nullptr;  // none of those asked got a processor
    let_others_go();
    if (log.accesses().empty()) return;
    std::vector<Task*> free;
    for (Task* other : others)
        if (other->events.is_open() && !other->is_due && !other->is_stopped && !other->is_interrupted &&
            !other->replay.runs && (!other->pair.asked || other->pair.let_go) && !other->ended)
            free.push_back(other);
    if (free.empty()) return;
    task_ = &t;
    log_ = log;
    stack_pointer_ = stack_pointer;
    since_ = wall_time();
    std::vector<Task*> running;
    std::size_t tried = 0;
    for (; !free.empty() && running.size() < kMostAsked && tried < kMostTried; tried++) {
        const std::size_t drawn = t.random.below(static_cast<unsigned>(free.size()));
        Task& other = *std::exchange(free[drawn], free.back());
        free.pop_back();
        if (is_running(other.process->pid, other.id)) running.push_back(&other);
    }
    if (running.empty()) return give_up();
    // So many run at the same time as this one.
    const unsigned processors = std::max(2u, std::thread::hardware_concurrency());
    others_ =
        std::clamp(static_cast<double>(others.size() * running.size()) / static_cast<double>(tried),
                   1.0, processors - 1.0);
    for (Task* one : running) {
        Task& other = *one;
        other.pair = {true, false, other.due_since, other.due_since + other.period};
        other.events.set_timer(kAtOnce);
        asked_.push_back(&other);
    }
}

void Pairing::forget(const Task& t) {
    if (task_ == &t) {
        task_ = nullptr;
        let_others_go();
    }
    std::erase(asked_, &t);
}

void Pairing::let_others_go() {
    for (Task* other : asked_) {
        if (!other->pair.asked) continue;
        const std::uint64_t now = other->events.clock();
        other->pair.let_go = true;  // it may have fired already
        other->events.set_timer(other->pair.planned > now + kLeast ? other->pair.planned - now
                                                                   : kLeast);
    }
    asked_.clear();
}

// The others did not run: their accesses conflict with none of these.
void Pairing::give_up() {
    if (task_ != nullptr) {
        ConflictTally& tally = task_->process->program->samples.conflicts;
        tally.begin_pair(static_cast<double>(log_.accesses().size()));
        tally.end_pair();
    }
    task_ = nullptr;
    let_others_go();
}

bool Pairing::at_stop(Task& other, std::uint64_t now) {
    other.pair.asked = false;
    if (other.pair.let_go && other.due_since + kLeast >= other.pair.planned) return false;
    other.due_since = other.pair.due_since;
    other.events.set_timer(other.pair.planned > now + kLeast ? other.pair.planned - now : kLeast);
    if (other.pair.let_go || std::erase(asked_, &other) == 0 || task_ == nullptr) return true;
    look_at(other);
    task_ = nullptr;
    let_others_go();
    return true;
}

void Pairing::look_at(Task& other) {
    if (!bench_) bench_ = std::make_unique<Bench>(settings_);
    if (!other.process->kept || !bench_->begin(other)) return give_up();
    Look look(*bench_, other, true, true);
    look.run(0, static_cast<unsigned>(settings_.uses), static_cast<unsigned>(settings_.window),
             settings_.budget);
    Task& task = *task_;
    const std::uint64_t stack = Machine::stack_pointer(bench_->stopped);
    count(task, log_, stack_pointer_, other, bench_->log, stack);
    count(other, bench_->log, stack, task, log_, stack_pointer_);
}

ConflictTally::Side Pairing::side(Task& t, const LoggedAccess& access, std::uint64_t address,
                                  std::uint64_t parts, std::uint64_t stack_pointer) const {
    DataTouched data;
    if (objects_) data = t.process->data_at(address, stack_pointer);
    Path path;
    path.pc = access.pc;
    path.link = access.link;
    return {t.process->label(path, access.pc, data), t.number, parts, access.writes, address, data.low};
}

void Pairing::count(Task& victim, const AccessLog& victim_log, std::uint64_t victim_stack, Task& writer,
                    const AccessLog& writer_log, std::uint64_t writer_stack) const {
    const auto shift = static_cast<unsigned>(settings_.shift);
    ConflictTally& tally = victim.process->program->samples.conflicts;
    tally.begin_pair(
        static_cast<double>(std::min(victim_log.accesses().size(), writer_log.accesses().size())));
    // A contended line is met hundreds of times in a window, by few instructions.
    using Which = std::tuple<const Task*, std::uint64_t, std::uint64_t, std::uint64_t>;
    std::map<Which, ConflictTally::Side> known;
    auto known_side = [&](Task& t, const LoggedAccess& access, std::uint64_t address,
                          std::uint64_t parts, std::uint64_t stack) {
        auto [found, is_new] = known.try_emplace({&t, access.pc, access.link, address});
        if (is_new) found->second = side(t, access, address, parts, stack);
        found->second.parts = parts;
        return found->second;
    };
    for (const Conflict& one : conflicts_in(victim_log, writer_log, shift, others_)) {
        auto address = [&](std::uint64_t parts) {
            const auto part = static_cast<std::uint64_t>(std::countr_zero(parts));
            return (one.line << shift) + (shift > 6 ? part << (shift - 6) : part);
        };
        ConflictTally::Entry entry;
        entry.line = one.line;
        entry.writer = known_side(writer, writer_log.accesses()[one.writer], address(one.written),
                                  one.written, writer_stack);
        entry.victim = known_side(victim, victim_log.accesses()[one.victim], address(one.used),
                                  one.used, victim_stack);
        entry.is_false = (one.written & one.used) == 0;
        tally.add(entry, one.weight);
    }
    tally.end_pair();
}

}  // namespace revisit::watch::outside
