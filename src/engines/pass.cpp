#include "engines/pass.h"

#include <bit>

#include "core/parallel.h"
#include "core/try.h"

namespace revisit {
namespace {

// Whoever adds and the engine have processors of their own.
unsigned threads_for_caches(const EngineOptions& options) {
    return options.threads == 1 ? 1 : thread_count(0) / 2;
}

}  // namespace

Result<std::unique_ptr<Pass>> Pass::create(const AnalyzeOptions& options) {
    if (!options.caches.empty() && options.engine.model != StackModel::single)
        return fail(ErrorCode::unsupported,
                    "caches are simulated as one stack; private stacks invalidate each other");
    auto engine = TRY(make_engine(options.method, options.engine));
    Beside beside = TRY(Beside::create(options));
    return std::unique_ptr<Pass>(new Pass(options, std::move(engine), std::move(beside)));
}

Pass::Pass(const AnalyzeOptions& options, std::unique_ptr<Engine> engine, Beside beside)
    : options_(options),
      engine_(std::move(engine)),
      beside_(std::move(beside)),
      placement_(options.cores),
      cutter_(options.engine.granularity) {
    const EngineOptions& how = options_.engine;
    if (how.sharing) cutter_.keep_parts();
    if (!how.streamed && options_.caches.empty()) return;

    line_use_cache_ = beside_.take_line_use(how.granularity);
    caches_.emplace(options_.caches, how.granularity, threads_for_caches(how), line_use_cache_);
    if (line_use_cache_) {
        line_use_.emplace(*line_use_cache_, static_cast<unsigned>(caches_->count()));
        cutter_.keep_parts();
    }
    BlocksWanted wanted{0, how.sharing, {}};
    if (!caches_->empty() || line_use_) wanted.lines = caches_->plan();
    workers_.emplace(workers(), how.threads != 1, wanted);
    // Granularity 1 counts addresses, not bytes; samples belong to threads.
    if (options_.method != "sample" && takes_blocks() && how.model == StackModel::single &&
        how.granularity > 1 && std::has_single_bit(how.granularity)) {
        wanted.shift = static_cast<unsigned>(std::countr_zero(how.granularity));
        rooms_wanted_ = wanted;
    }
}

std::vector<BlockWorkers::Work> Pass::workers() {
    std::vector<BlockWorkers::Work> all;
    all.emplace_back([this](const BlockRoom& room) {
        BlockBatch batch = room.batch();
        if (!options_.engine.sharing) batch.parts = {};
        return engine_->add(batch);
    });
    auto add = [&](bool caches, bool line_use, std::size_t part) {
        all.emplace_back([=, this](const BlockRoom& room) -> Result<void> {
            if (caches) caches_->access(part, room.lines);
            if (line_use) line_use_->add(part, room.lines);
            return {};
        });
    };
    // As one part each, the two still have a thread each.
    const bool caches = !caches_->empty(), line_use = line_use_.has_value();
    if (caches_->count() == 1) {
        if (caches) add(true, false, 0);
        if (line_use) add(false, true, 0);
    } else if (caches || line_use) {
        for (std::size_t part = 0; part < caches_->count(); ++part) add(caches, line_use, part);
    }
    return all;
}

Result<void> Pass::is_open() const {
    if (!engine_) return fail("the analysis was finished already; begin another one");
    return {};
}

Result<void> Pass::count(const BlockBatch& blocks) {
    return workers_ ? workers_->add(blocks) : engine_->add(blocks);
}

Result<void> Pass::add(const AccessBatch& accesses) {
    TRY(is_open());
    if (accesses.count() == 0) return {};
    TRY(check(accesses));
    const AccessBatch batch = placement_.apply(accesses);
    TRY(cutter_.cut(batch, [&](const BlockBatch& piece) { return count(piece); }));
    if (options_.also) TRY(options_.also(batch));
    return beside_.add(batch);
}

Result<void> Pass::add_blocks(const BlockBatch& blocks) {
    TRY(is_open());
    if (!takes_blocks() || (line_use_ && blocks.parts.empty()))
        return fail(ErrorCode::unsupported,
                    "blocks of one size are not enough for all that is counted; add accesses");
    if (blocks.count() == 0) return {};
    TRY(check(blocks));
    return count(blocks);
}

Result<Profile> Pass::finish() {
    TRY(is_open());
    if (workers_) TRY(workers_->finish());
    Result<Profile> counted = engine_->finish();
    engine_.reset();  // its memory, before the others' results take more
    Profile profile = TRY(std::move(counted));
    if (caches_ && !caches_->empty()) caches_->fill(profile);
    if (line_use_) line_use_->fill(profile);
    TRY(beside_.fill(profile));
    return profile;
}

}  // namespace revisit
