#include "engines/beside.h"

#include "core/parallel.h"
#include "core/try.h"

namespace revisit {

namespace {

constexpr unsigned kForLineUse = 3;  // threads

}  // namespace

Result<Beside> Beside::create(const AnalyzeOptions& options) {
    Beside out;
    for (const std::uint64_t granularity : options.more_granularities) {
        EngineOptions plain = options.engine;
        plain.granularity = granularity;
        plain.device = Device::cpu;
        plain.threads = 1;
        plain.time = plain.sites = plain.pairs = plain.shared = plain.sharing = false;
        plain.phases = 0;
        out.sizes_.push_back(
            {granularity, BlockCutter(granularity), TRY(make_engine(options.method, plain))});
    }
    if (options.line_use) {
        // Two have enough to do with reading and counting.
        const bool apart = thread_count(options.engine.threads) >= kForLineUse;
        out.line_use_ =
            std::make_unique<LineUseThread>(TRY(LineUseTally::create(*options.line_use)), apart);
        out.line_use_cache_ = options.line_use;
        out.lines_.emplace(options.line_use->line);
        out.lines_->keep_parts();
    }
    return out;
}

std::optional<CacheSpec> Beside::take_line_use(std::uint64_t granularity) {
    if (!line_use_ || line_use_cache_->line != granularity) return std::nullopt;
    line_use_.reset();
    lines_.reset();
    return line_use_cache_;
}

Result<void> Beside::add(const AccessBatch& batch) {
    for (Size& size : sizes_)
        TRY(size.cutter.cut(batch, [&](const BlockBatch& piece) { return size.engine->add(piece); }));
    if (line_use_)
        TRY(lines_->cut(batch, [&](const BlockBatch& piece) -> Result<void> {
            line_use_->add(piece);
            return {};
        }));
    return {};
}

Result<void> Beside::fill(Profile& profile) {
    if (!sizes_.empty())
        profile.granularities.push_back({profile.granularity, profile.distinct, profile.reuse});
    for (Size& size : sizes_) {
        Profile one = TRY(size.engine->finish());
        profile.granularities.push_back({size.granularity, one.distinct, std::move(one.reuse)});
    }
    if (line_use_) line_use_->fill(profile);
    return {};
}

}  // namespace revisit
