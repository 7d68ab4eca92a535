#include "record/sinks.h"

#include "core/blocks.h"
#include "symbols/origins.h"

namespace revisit::record {
namespace {

class ProfileSink : public ProcessSink {
 public:
    ProfileSink(std::unique_ptr<Engine> engine, std::uint64_t granularity, TakeProfile take)
        : engine_(std::move(engine)), cutter_(granularity), take_(std::move(take)) {}

    Result<void> add(const AccessBatch& batch) override {
        return cutter_.cut(batch, [&](const BlockBatch& piece) { return engine_->add(piece); });
    }

    Result<void> finish(const Decoder& process) override {
        Result<Profile> profile = engine_->finish();
        if (!profile) return std::unexpected(profile.error());
        engine_.reset();
        explain(*profile, process.origins());
        return take_(process.pid(), std::move(*profile));
    }

 private:
    std::unique_ptr<Engine> engine_;
    BlockCutter cutter_;
    TakeProfile take_;
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

Result<std::unique_ptr<ProcessSink>> make_profile_sink(const std::string& method,
                                                       const EngineOptions& options, TakeProfile take) {
    Result<std::unique_ptr<Engine>> engine = make_engine(method, options);
    if (!engine) return std::unexpected(engine.error());
    return std::make_unique<ProfileSink>(std::move(*engine), options.granularity, std::move(take));
}

Result<std::unique_ptr<ProcessSink>> make_trace_sink(const std::string& path) {
    Result<std::unique_ptr<TraceWriter>> writer = create_trace(path, "revisit");
    if (!writer) return std::unexpected(writer.error());
    return std::make_unique<TraceSink>(std::move(*writer));
}

}  // namespace revisit::record
