#include "record/consume.h"

#include <fmt/format.h>

#include <algorithm>

namespace revisit::record {

Consumer::Consumer(Slots& slots, DecodeOptions options, MakeSink make_sink)
    : slots_(slots), options_(std::move(options)), make_sink_(std::move(make_sink)) {}

Result<Consumer::Process*> Consumer::process(const SlotView& slot) {
    auto found = by_producer_.find(slot.producer);
    if (found != by_producer_.end()) return &found->second;
    if (slot.words.size() < 3 || REVISIT_TAG(slot.words[0]) != REVISIT_PROCESS) {
        if (slot.salvaged) return nullptr;  // died before it had said who it is
        return fail("the recorder's stream is broken: a process does not say who it is");
    }
    auto pid = static_cast<std::uint32_t>(slot.words[1]);
    // The same process before exec: that program is gone.
    for (auto& [producer, other] : by_producer_)
        if (!other.finished && other.decoder->pid() == pid)
            if (Result<void> done = finish(producer, other, true); !done)
                return std::unexpected(done.error());
    auto sink = make_sink_(pid, processes_ == 0);
    if (!sink) return std::unexpected(sink.error());
    Process& made = by_producer_[slot.producer];
    made.sink = std::move(*sink);
    processes_++;
    auto add = [to = made.sink.get()](const AccessBatch& batch) { return to->add(batch); };
    auto watched = [to = made.sink.get()](const WatchEvent& event) { to->watched(event); };
    auto parent = by_producer_.find(static_cast<std::uint32_t>(slot.words[2]));
    if (slot.words[2] != REVISIT_NO_PARENT && parent != by_producer_.end())
        made.decoder = std::make_unique<Decoder>(*parent->second.decoder, add, watched);
    else
        made.decoder = std::make_unique<Decoder>(options_, add, watched);
    made.decoder->on_samples([to = made.sink.get()](const SampleRecord& record) { to->add(record); });
    return &made;
}

Result<void> Consumer::feed(const SlotView& slot) {
    Result<Process*> of = process(slot);
    if (!of) return std::unexpected(of.error());
    if (!*of || (*of)->finished) return {};
    Process& process = **of;
    Result<void> fed = process.decoder->feed(slot);
    accesses_ += process.decoder->accesses() - process.counted;
    process.counted = process.decoder->accesses();
    reached_most_ |= process.decoder->reached_most();
    return fed;
}

Result<bool> Consumer::step(std::chrono::milliseconds patience) {
    std::optional<SlotView> slot = slots_.take(patience);
    if (!slot) return false;
    Result<void> fed = feed(*slot);
    slots_.give_back(*slot);
    if (!fed) return std::unexpected(fed.error());
    return true;
}

Result<void> Consumer::finish(std::uint32_t producer, Process& process, bool dead) {
    if (process.finished) return {};
    if (dead)
        for (const SlotView& slot : slots_.salvage(producer)) {
            Result<void> fed = feed(slot);
            slots_.give_back(slot);
            if (!fed) return fed;
        }
    else
        cut_off_++;
    process.finished = true;
    if (Result<void> done = process.decoder->finish(); !done) return done;
    accesses_ += process.decoder->accesses() - process.counted;
    for (const std::string& name : process.decoder->regions_seen())
        if (std::ranges::find(regions_seen_, name) == regions_seen_.end())
            regions_seen_.push_back(name);
    Result<void> done = process.sink->finish(*process.decoder);
    process.sink.reset();
    return done;
}

Result<void> Consumer::reap() {
    for (auto& [producer, process] : by_producer_)
        if (!process.finished && !revisit_process_lives(process.decoder->pid()))
            if (Result<void> done = finish(producer, process, true); !done) return done;
    return {};
}

std::vector<std::int32_t> Consumer::living() const {
    std::vector<std::int32_t> pids;
    for (const auto& [producer, process] : by_producer_)
        if (!process.finished && revisit_process_lives(process.decoder->pid()))
            pids.push_back(static_cast<std::int32_t>(process.decoder->pid()));
    return pids;
}

Result<void> Consumer::finish() {
    for (;;) {
        Result<bool> more = step(std::chrono::milliseconds(0));
        if (!more) return std::unexpected(more.error());
        // A process killed while handing over leaves a hole in the queue: `take` steps over it in time.
        if (!*more && slots_.drained()) break;
    }
    // Processes so short that they handed nothing over.
    for (std::uint32_t producer = 1; producer <= slots_.producers(); producer++)
        if (!by_producer_.contains(producer))
            for (const SlotView& slot : slots_.salvage(producer)) {
                Result<void> fed = feed(slot);
                slots_.give_back(slot);
                if (!fed) return fed;
            }
    for (auto& [producer, process] : by_producer_)
        if (Result<void> done =
                finish(producer, process, !revisit_process_lives(process.decoder->pid()));
            !done)
            return done;
    if (slots_.words_handed_over() > slots_.words_taken())
        return fail(fmt::format("the recorder lost {} of {} words: the profile would be wrong",
                                slots_.words_handed_over() - slots_.words_taken(),
                                slots_.words_handed_over()));
    return {};
}

}  // namespace revisit::record
