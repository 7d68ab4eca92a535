#include "record/consume.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/try.h"
#include "record/process_status.h"

namespace revisit::record {
namespace {

constexpr std::size_t kSlotsAtOnce = 12;
static_assert(kSlotsAtOnce < BlockWorkers::kMostRooms);
constexpr std::size_t kMostLeft =
    31;  // slots that are left to the decoder after one that it had to read

// Which process it is, as this one would name it, and whether it was found.
std::pair<std::uint32_t, bool> pid_here(std::uint64_t told) {
    const auto pid = static_cast<std::uint32_t>(told);
    const std::uint64_t space = REVISIT_NAMESPACE_OF(told);
    if (space == 0 || space == pid_namespace("self")) return {pid, true};
    const pid_t found = process_in_namespace(static_cast<pid_t>(pid), space);
    return {found != 0 ? static_cast<std::uint32_t>(found) : pid, found != 0};
}

}  // namespace

Consumer::Consumer(Slots& slots, DecodeOptions options, MakeSink make_sink)
    : slots_(slots), options_(std::move(options)), make_sink_(std::move(make_sink)) {}

Result<Consumer::Process*> Consumer::process(const SlotView& slot) {
    auto found = by_producer_.find(slot.producer);
    if (found != by_producer_.end()) return &found->second;
    if (slot.words.size() < 3 || REVISIT_TAG(slot.words[0]) != REVISIT_PROCESS) {
        if (slot.salvaged) return nullptr;  // died before it had said who it is
        return fail(
            fmt::format("the recorder's stream is broken: a process does not say who it is (producer "
                        "{} of {}, thread "
                        "{}: {} words, {:#x})",
                        slot.producer, slots_.producers(), slot.thread, slot.words.size(),
                        slot.words.empty() ? 0 : slot.words[0]));
    }
    const auto [pid, is_found] = pid_here(slot.words[1]);
    // The same process before exec: that program is gone.
    for (auto& [producer, other] : by_producer_)
        if (!other.finished && is_found && other.is_found && other.pid == pid)
            TRY(finish(producer, other, true));
    if (is_found)
        for (const Silent& one : silent())
            if (one.producer < slot.producer && pid_here(one.told) == std::pair(pid, true))
                TRY(finish_silent(one, true));
    auto parent = by_producer_.find(static_cast<std::uint32_t>(slot.words[2]));
    const bool is_fork = slot.words[2] != REVISIT_NO_PARENT && parent != by_producer_.end();
    if (is_fork && !parent->second.decoder)
        return fail("the recorder's stream is broken: a process that ended before forks again");
    std::unique_ptr<ProcessSink> sink =
        TRY(make_sink_({pid, parent_of(pid, is_fork ? &parent->second : nullptr), processes_ == 0}));
    Process& made = by_producer_[slot.producer];
    made.sink = std::move(sink);
    made.pid = pid;
    made.is_found = is_found;
    processes_++;
    auto add = [to = made.sink.get()](const AccessBatch& batch) { return to->add(batch); };
    if (is_fork)
        made.decoder = std::make_unique<Decoder>(*parent->second.decoder, add);
    else
        made.decoder = std::make_unique<Decoder>(options_, add);
    made.decoder->name_by(symbols_);
    made.decoder->on_samples([to = made.sink.get()](const SampleRecord& record) { to->add(record); });
    if (options_.interleaving != Interleaving::as_it_came)
        made.order = std::make_unique<Interleaver>(
            options_.interleaving,
            [to = made.decoder.get()](const SlotView& piece) { return to->feed(piece); });
    return &made;
}

// A process that has ended is in /proc no more, and one whose parent has ended is given to another
// there. It may have been known before it executed this program.
std::uint32_t Consumer::parent_of(std::uint32_t pid, const Process* forked_from) {
    std::uint32_t parent =
        forked_from != nullptr
            ? forked_from->pid
            : static_cast<std::uint32_t>(status_field(static_cast<pid_t>(pid), "PPid:"));
    std::uint32_t& known = parents_[pid];
    if (parent != 0) known = parent;
    return known;
}

Result<void> Consumer::feed(const SlotView& slot) {
    Process* const of = TRY(process(slot));
    if (!of || of->finished) return {};
    Process& process = *of;
    Result<void> fed = process.order ? process.order->add(slot) : process.decoder->feed(slot);
    accesses_ += process.decoder->accesses() - process.counted;
    process.counted = process.decoder->accesses();
    reached_most_ |= process.decoder->reached_most();
    return fed;
}

Result<bool> Consumer::step(std::chrono::milliseconds patience) {
    std::optional<SlotView> slot = slots_.take(patience);
    if (!slot) return false;
    auto known = by_producer_.find(slot->producer);
    if (known != by_producer_.end() && !known->second.finished && !known->second.order &&
        SlotReaders::can_read(options_))
        if (const std::optional<BlocksWanted> wanted = known->second.sink->blocks_wanted()) {
            // As many as are there, up to one of another process.
            taken_.assign(1, *slot);
            slot.reset();
            while (taken_.size() < kSlotsAtOnce && (slot = slots_.take(std::chrono::milliseconds(0)))) {
                if (slot->producer != taken_[0].producer) break;
                taken_.push_back(*slot);
                slot.reset();
            }
            TRY(feed_readers(known->second, *wanted, taken_));
            if (!slot) return true;
        }
    Result<void> fed = feed(*slot);
    slots_.give_back(*slot);
    TRY(std::move(fed));
    return true;
}

// A slot with something new takes the long way. In a program that has much of it, the ones after it are
// not tried either: twice as many each time, up to a bound.
Result<void> Consumer::feed_readers(Process& process, const BlocksWanted& wanted,
                                    std::span<const SlotView> slots) {
    if (!crew_) crew_ = std::make_unique<Crew>(options_.readers);
    if (!process.readers) process.readers = std::make_unique<SlotReaders>(*process.decoder, *crew_);
    Result<void> fed;
    while (!slots.empty() && fed) {
        if (process.left == 0) {
            while (process.rooms.size() < slots.size())
                process.rooms.push_back(process.sink->take_room());
            fed = process.decoder->flush();
            if (!fed) break;
            const std::size_t read =
                process.readers->read(slots, wanted, process.rooms, [this](const SlotView& slot) {
                    slots_.clean(slot);
                    slots_.give_back_clean(slot);
                });
            fed = process.sink->add_rooms(std::span(process.rooms).first(read));
            process.rooms.erase(process.rooms.begin(),
                                process.rooms.begin() + static_cast<std::ptrdiff_t>(read));
            slots = slots.subspan(read);
            if (read > 1 || slots.empty()) process.leave = 0;
            if (slots.empty() || !fed) break;
            process.left = 1 + process.leave;
            process.leave = std::min(2 * process.leave + 1, kMostLeft);
        }
        process.left--;
        fed = process.decoder->feed(slots[0]);
        slots_.give_back(slots[0]);
        slots = slots.subspan(1);
    }
    accesses_ += process.decoder->accesses() - process.counted;
    process.counted = process.decoder->accesses();
    reached_most_ |= process.decoder->reached_most();
    return fed;
}

Result<void> Consumer::finish(std::uint32_t producer, Process& process, bool dead) {
    if (process.finished) return {};
    if (dead)
        for (const SlotView& slot : slots_.salvage(producer)) {
            Result<void> fed = feed(slot);
            slots_.give_back(slot);
            if (!fed) return fed;
        }
    process.finished = true;
    if (process.order) TRY(process.order->flush());
    TRY(process.decoder->finish());
    saw_end_[process.pid] = process.decoder->ended();
    accesses_ += process.decoder->accesses() - process.counted;
    for (const std::string& name : process.decoder->regions_seen())
        if (std::ranges::find(regions_seen_, name) == regions_seen_.end())
            regions_seen_.push_back(name);
    Result<void> done = process.sink->finish(*process.decoder);
    process.sink.reset();
    process.readers.reset();
    process.rooms.clear();
    process.order.reset();
    parents_kept_.push_back(producer);
    forget_parents();
    return done;
}

std::vector<Consumer::Silent> Consumer::silent() const {
    std::vector<Silent> found;
    for (const Slots::Opening& one : slots_.openings())
        if (REVISIT_TAG(one.words[0]) == REVISIT_PROCESS && one.words[1] != 0 && one.words[2] != 0 &&
            !by_producer_.contains(one.producer))
            found.push_back({one.producer, one.words[1], static_cast<std::uint32_t>(one.words[2])});
    std::ranges::sort(found, {}, &Silent::producer);
    return found;
}

bool Consumer::lives(const Silent& one) {
    const auto [pid, is_found] = pid_here(one.told);
    return is_found && revisit_process_lives(pid);
}

Result<void> Consumer::finish_silent(const Silent& one, bool dead) {
    for (const SlotView& slot : slots_.salvage(one.producer)) {
        Result<void> fed = feed(slot);
        slots_.give_back(slot);
        TRY(std::move(fed));
    }
    auto process = by_producer_.find(one.producer);
    return process == by_producer_.end() ? Result<void>{} : finish(one.producer, process->second, dead);
}

// A process that is over forks no more. Once no fork is under way, its children are known, or silent.
void Consumer::forget_parents() {
    if (parents_kept_.empty() || slots_.forks_under_way()) return;
    const std::vector<Silent> children = silent();
    std::erase_if(parents_kept_, [&](std::uint32_t producer) {
        const bool goes = std::ranges::find(children, producer, &Silent::parent) == children.end();
        if (goes) by_producer_.at(producer).decoder.reset();
        return goes;
    });
}

// A process may have handed a slot over and died since the queue was last looked at: what is queued
// comes first, or it would be taken twice, once from here and once as left behind.
Result<void> Consumer::reap() {
    std::vector<std::uint32_t> dead;
    for (auto& [producer, process] : by_producer_)
        if (!process.finished && !process.lives()) dead.push_back(producer);
    std::vector<Silent> dead_silent = silent();
    std::erase_if(dead_silent, lives);
    if (dead.empty() && dead_silent.empty()) {
        forget_parents();
        return {};
    }
    for (const std::uint64_t until = slots_.handed_over(); !slots_.taken_up_to(until);)
        TRY(step(std::chrono::milliseconds(1)));
    for (std::uint32_t producer : dead) TRY(finish(producer, by_producer_.at(producer), true));
    for (const Silent& one : dead_silent)
        if (!by_producer_.contains(one.producer)) TRY(finish_silent(one, true));
    return {};
}

std::vector<std::int32_t> Consumer::living() const {
    std::vector<std::int32_t> pids;
    for (const auto& [producer, process] : by_producer_)
        if (!process.finished && process.lives())
            pids.push_back(static_cast<std::int32_t>(process.pid));
    return pids;
}

Result<void> Consumer::finish() {
    // Now: many end while the others' results are made.
    cut_off_ = living().size() + static_cast<std::size_t>(std::ranges::count_if(silent(), lives));
    for (;;) {
        auto more = TRY(step(std::chrono::milliseconds(0)));
        // A process killed while handing over leaves a hole in the queue: `take` steps over it in time.
        if (!more && slots_.drained()) break;
    }
    for (const Silent& one : silent()) TRY(finish_silent(one, !lives(one)));
    for (auto& [producer, process] : by_producer_) TRY(finish(producer, process, !process.lives()));
    if (slots_.words_handed_over() > slots_.words_taken())
        return fail(fmt::format("the recorder lost {} of {} words: the profile would be wrong",
                                slots_.words_handed_over() - slots_.words_taken(),
                                slots_.words_handed_over()));
    return {};
}

}  // namespace revisit::record
