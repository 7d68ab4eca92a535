// The analyzer's loop over the stream: every process its own decoder and its own sink.
//
// Slots come in order of hand-over, from any number of processes. A process shows itself with its first
// record; a fork starts from what its parent had defined, an exec ends the image before it. When a
// process is gone, what it had not handed over is salvaged, then its sink is finished.
//
// A shell script is hundreds of processes, each of which takes some MB here. So one that ended, or
// executed another program, before it had handed anything over is found in the slots it left; and a
// decoder goes as soon as no fork of its process can still be on its way.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/parallel.h"
#include "record/decode.h"
#include "record/slot_readers.h"
#include "record/slots.h"
#include "revisit/error.h"

namespace revisit::record {

// What becomes of one process's accesses: an engine, or a trace.
class ProcessSink {
 public:
    virtual ~ProcessSink() = default;
    virtual Result<void> add(const AccessBatch& batch) = 0;
    virtual void add(const SampleRecord&) {}  // from a recorder that samples
    virtual Result<void> finish(const Decoder& process) = 0;

    // Where accesses need not be seen whole, what is wanted of the blocks that they touch. They may
    // then come in rooms as well, which are filled by several readers (slot_readers.h): with sites and
    // flags, if the decoder was asked for labels and flags, and without threads.
    virtual std::optional<BlocksWanted> blocks_wanted() const { return std::nullopt; }
    virtual BlockRoom take_room() { return {}; }
    virtual Result<void> add_rooms(std::span<BlockRoom>) { return {}; }
};

struct StartedProcess {
    std::uint32_t pid = 0;
    std::uint32_t parent = 0;  // 0 = not known
    bool is_first = false;
};

class Consumer {
 public:
    using MakeSink = std::function<Result<std::unique_ptr<ProcessSink>>(const StartedProcess&)>;

    Consumer(Slots& slots, DecodeOptions options, MakeSink make_sink);

    // Analyses the next slot, or some; false when none came within `patience`.
    Result<bool> step(std::chrono::milliseconds patience);

    // Finishes processes that are no longer there.
    Result<void> reap();

    // All there is: what is queued, what the dead left; processes that still run are cut off here.
    Result<void> finish();

    std::uint64_t accesses() const { return accesses_; }  // of all processes
    bool reached_most() const { return reached_most_; }
    std::vector<std::int32_t> living() const;  // process ids
    std::size_t processes() const { return processes_; }
    std::size_t cut_off() const { return cut_off_; }
    const std::vector<std::string>& regions_seen() const { return regions_seen_; }
    // Whether a process that is finished was recorded up to its end: it may have executed a program
    // that cannot be.
    bool saw_end_of(std::uint32_t pid) const {
        auto found = saw_end_.find(pid);
        return found == saw_end_.end() || found->second;
    }

 private:
    struct Process {
        std::unique_ptr<ProcessSink> sink;
        std::unique_ptr<Decoder> decoder;
        std::unique_ptr<Interleaver> order;  // null: as slots come
        std::unique_ptr<SlotReaders> readers;
        std::vector<BlockRoom> rooms;     // taken from the sink and not filled yet
        std::size_t left = 0, leave = 0;  // slots for the decoder: now, and when the next one fails
        std::uint32_t pid = 0;  // here; its own where it was gone before that could be found out
        bool lives() const { return is_found && revisit_process_lives(pid); }
        bool is_found = true;
        bool finished = false;
        std::uint64_t counted = 0;
    };
    Result<Process*> process(const SlotView& slot);
    std::uint32_t parent_of(std::uint32_t pid, const Process* forked_from);
    Result<void> feed(const SlotView& slot);
    Result<void> feed_readers(Process& process, const BlocksWanted& wanted,
                              std::span<const SlotView> slots);
    Result<void> finish(std::uint32_t producer, Process& process, bool dead);
    // One that handed nothing over says in its slot who it is.
    struct Silent {
        std::uint32_t producer;
        std::uint64_t told;  // REVISIT_PROCESS_ID
        std::uint32_t parent;
    };
    std::vector<Silent> silent() const;
    static bool lives(const Silent& one);
    Result<void> finish_silent(const Silent& one, bool dead);
    void forget_parents();

    Slots& slots_;
    DecodeOptions options_;
    MakeSink make_sink_;
    std::map<std::uint32_t, std::uint32_t> parents_;  // by process
    std::map<std::uint32_t, bool> saw_end_;           // … of the last program that it was
    // Of all processes: a shell's hundred children would each hold what the C library's has.
    std::shared_ptr<Symbolizer> symbols_ = std::make_shared<Symbolizer>();
    std::unique_ptr<Crew> crew_;
    std::vector<SlotView> taken_;
    std::map<std::uint32_t, Process> by_producer_;
    std::vector<std::uint32_t> parents_kept_;  // finished, and their decoders still there
    std::uint64_t accesses_ = 0;
    std::size_t processes_ = 0, cut_off_ = 0;
    bool reached_most_ = false;
    std::vector<std::string> regions_seen_;
};

}  // namespace revisit::record
