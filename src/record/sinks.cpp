#include "record/sinks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <unordered_map>

#include "core/try.h"
#include "engines/pass.h"
#include "engines/sample_tally.h"
#include "revisit/accuracy.h"
#include "symbols/origins.h"

namespace revisit::record {
namespace {

constexpr const char* kByStamps =
    "interleaving: by the times at which buffers of some 500 accesses were filled, evenly within each";

class ProfileSink : public ProcessSink {
 public:
    ProfileSink(std::unique_ptr<Pass> pass, TakeProfile take)
        : pass_(std::move(pass)), take_(std::move(take)) {}

    Result<void> add(const AccessBatch& batch) override { return pass_->add(batch); }
    std::optional<BlocksWanted> blocks_wanted() const override { return pass_->rooms_wanted(); }
    BlockRoom take_room() override { return pass_->take_room(); }
    Result<void> add_rooms(std::span<BlockRoom> rooms) override { return pass_->add_rooms(rooms); }

    Result<void> finish(const Decoder& process) override {
        Profile profile = TRY(pass_->finish());
        explain(profile, process.origins());
        if (profile.sharing_totals && process.threads() > 1)
            profile.notes.push_back(
                process.interleaving() == Interleaving::by_turns
                    ? "interleaving: valgrind runs one thread at a time; accesses are merged as if all "
                      "threads ran at the same speed between synchronisations"
                    : kByStamps);
        if (process.leaves_paths_out())
            profile.notes.push_back(
                "call paths: the first ones and those with more than 1 access in 16384 are kept; "
                "accesses on other paths have none");
        return take_(process.pid(), std::move(profile));
    }

 private:
    std::unique_ptr<Pass> pass_;
    TakeProfile take_;
};

// Samples begin in one thread and may end in another, so that either may arrive first. What is open at
// the end was not used again: cold. Where the rate falls while the program runs (a target error), those
// that the last level leaves out are dropped (record/stream.h).
class SampledSink : public ProcessSink {
 public:
    SampledSink(const EngineOptions& options, TakeProfile take)
        : granularity_(options.granularity),
          target_error_(options.sample.target_error),
          rate_(options.sample.rate),
          tally_(options),
          take_(std::move(take)) {}

    Result<void> add(const AccessBatch&) override {
        return fail(ErrorCode::not_sampling,
                    "the program was built to record its accesses, not to sample them");
    }
    void add(const SampleRecord& record) override {
        switch (record.kind) {
            case SampleRecord::counts:
                counts_.accesses += record.accesses;
                counts_.analyzed += record.analyzed;
                chosen_ += static_cast<double>(record.chosen);
                rise_to(record.level);
                return;
            case SampleRecord::begin:
                rise_to(REVISIT_SAMPLE_LEVEL(record.id));
                begun_ += std::ldexp(1, static_cast<int>(REVISIT_SAMPLE_LEVEL(record.id)));
                if (auto end = ended_.find(record.id); end != ended_.end()) {
                    count(record, end->second);
                    ended_.erase(end);
                } else
                    open_[record.id] = record;
                return;
            case SampleRecord::end:
                if (auto begin = open_.find(record.id); begin != open_.end()) {
                    count(begin->second, record);
                    open_.erase(begin);
                } else
                    ended_[record.id] = record;
                return;
        }
    }

    Result<void> finish(const Decoder& process) override {
        SampleRecord cold{};
        cold.outcome = REVISIT_COLD;
        for (const auto& [id, begin] : open_) count(begin, cold);
        drop();
        for (const Finished& one : finished_) tally(one);
        const double expected = static_cast<double>(counts_.accesses) * rate_;
        const bool is_short = target_error_ == 0 && expected > 100 && chosen_ < 0.9 * expected;
        // Instructions were counted; some touch several blocks, and count in each.
        auto in_blocks = [&](std::uint64_t& accesses) {
            if (chosen_ == 0) return;
            accesses = static_cast<std::uint64_t>(
                std::llround(static_cast<double>(accesses) * begun_ / chosen_));
        };
        in_blocks(counts_.accesses);
        in_blocks(counts_.analyzed);
        // The last page of a thread that was stopped short is not counted; its samples are.
        counts_.accesses = std::max(counts_.accesses, counts_.samples);
        Profile profile = tally_.profile(counts_);
        if (is_short)
            profile.notes.push_back(fmt::format(
                "only {:.0f} % of the samples that the rate asks for were followed: a shared stack "
                "follows 256 at a time; use a lower rate",
                100 * chosen_ / expected));
        if (const double wanted = target_error_ == 0 ? 0 : samples_for_error(target_error_);
            static_cast<double>(counts_.samples) < wanted)
            profile.notes.push_back(fmt::format(
                "a target error of {:g} % takes {:.0f} samples, and this run gave {}: shares "
                "are accurate to {:.2g} %; "
                "record it and analyze the trace",
                100 * target_error_, wanted, counts_.samples,
                100 * share_error(0.5, static_cast<double>(counts_.samples))));
        explain(profile, process.origins());
        if (profile.sharing_totals && process.threads() > 1) profile.notes.push_back(kByStamps);
        return take_(process.pid(), std::move(profile));
    }

 private:
    void count(const SampleRecord& begin, const SampleRecord& end) {
        FinishedSample done;
        bool has_reuse = end.outcome == REVISIT_REUSED || end.outcome == REVISIT_INVALIDATED;
        done.time = end.time;
        done.distance = static_cast<std::uint32_t>(end.distance);
        done.use_site = begin.site;
        done.site = has_reuse ? end.site : begin.site;
        done.thread = begin.thread;
        done.outcome = end.outcome == REVISIT_REUSED        ? SampleOutcome::reused
                       : end.outcome == REVISIT_INVALIDATED ? SampleOutcome::invalidated
                                                            : SampleOutcome::cold;
        done.write = has_reuse && end.write;
        done.writer_is_known = end.outcome == REVISIT_INVALIDATED;
        done.parts = end.parts;
        done.writer = {end.writer.site, end.writer.thread, end.writer.parts};
        done.block = end.line / granularity_;
        const Finished one{begin.id, end.outcome == REVISIT_PRUNED, done};
        if (target_error_ == 0)
            tally(one);
        else
            finished_.push_back(one);
    }
    struct Finished {
        std::uint64_t id;
        bool is_pruned;
        FinishedSample sample;
    };
    void tally(const Finished& one) {
        counts_.samples++;
        counts_.pruned += one.is_pruned;
        tally_.add(one.sample);
    }

    void rise_to(std::uint32_t level) {
        if (level <= level_) return;
        level_ = level;
        drop();
    }
    void drop() {
        auto is_out = [&](std::uint64_t id) { return revisit_sample_is_kept(id, level_) == 0; };
        std::erase_if(finished_, [&](const Finished& one) { return is_out(one.id); });
        std::erase_if(open_, [&](const auto& one) { return is_out(one.first); });
        std::erase_if(ended_, [&](const auto& one) { return is_out(one.first); });
    }

    std::uint64_t granularity_;
    double target_error_, rate_;
    SampleTally tally_;
    TakeProfile take_;
    SampleCounts counts_;
    double chosen_ = 0, begun_ = 0;  // each as many times as one stands for at the first rate
    std::uint32_t level_ = 0;
    std::vector<Finished> finished_;  // where some may be dropped yet
    std::unordered_map<std::uint64_t, SampleRecord> open_, ended_;
};

class TraceSink : public ProcessSink {
 public:
    explicit TraceSink(std::unique_ptr<TraceWriter> writer) : writer_(std::move(writer)) {}

    Result<void> add(const AccessBatch& batch) override { return writer_->write(batch); }
    Result<void> finish(const Decoder& process) override {
        return writer_->finish(to_trace_info(process.origins()));
    }

 private:
    std::unique_ptr<TraceWriter> writer_;
};

}  // namespace

Result<std::unique_ptr<ProcessSink>> make_profile_sink(const AnalyzeOptions& options,
                                                       TakeProfile take) {
    AnalyzeOptions streamed = options;
    streamed.engine.streamed = true;
    return std::make_unique<ProfileSink>(TRY(Pass::create(streamed)), std::move(take));
}

std::unique_ptr<ProcessSink> make_sampled_sink(const EngineOptions& options, TakeProfile take) {
    return std::make_unique<SampledSink>(options, std::move(take));
}

Result<std::unique_ptr<ProcessSink>> make_trace_sink(const std::string& path) {
    return std::make_unique<TraceSink>(TRY(create_trace(path, "revisit")));
}

}  // namespace revisit::record
