#include "engines/cache_bank.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/try.h"

namespace revisit {
namespace {

constexpr std::uint64_t kMostBankWays = 64;
constexpr std::uint64_t kMostBankLines = std::uint64_t{1} << 24;  // a cache of 1 GiB

class WithCaches final : public Engine {
 public:
    WithCaches(std::unique_ptr<Engine> engine, CacheBank bank)
        : engine_(std::move(engine)), bank_(std::move(bank)) {}

    Result<void> add(const BlockBatch& batch) override {
        bank_.access(batch.blocks);
        return engine_->add(batch);
    }
    Result<Profile> finish() override {
        Profile profile = TRY(engine_->finish());
        profile.caches = bank_.results();
        return profile;
    }
    Result<Histogram> reuse_so_far() override { return engine_->reuse_so_far(); }

 private:
    std::unique_ptr<Engine> engine_;
    CacheBank bank_;
};

}  // namespace

CacheBank::CacheBank(const std::vector<CacheSpec>& caches, std::uint64_t line) {
    for (const CacheSpec& spec : caches) {
        if (spec.line != line || spec.associativity() > kMostBankWays || spec.sets() < 2 ||
            spec.blocks() > kMostBankLines)
            continue;
        Cache cache;
        cache.spec = spec;
        cache.sets = spec.sets();
        cache.mask = std::has_single_bit(cache.sets) ? cache.sets - 1 : 0;
        cache.ways = static_cast<std::size_t>(spec.associativity());
        cache.tags.resize(static_cast<std::size_t>(spec.blocks()));
        caches_.push_back(std::move(cache));
    }
    std::ranges::stable_sort(caches_, {}, &Cache::sets);
    for (Cache& cache : caches_) cache.divides = cache.sets % caches_[0].sets == 0;
}

void CacheBank::Cache::access(std::uint64_t line) {
    std::uint64_t* set = tags.data() + set_of(line) * ways;
    const std::uint64_t tag = line + 1;
    std::uint64_t carried = set[0];
    if (carried == tag) return;
    set[0] = tag;
    for (std::size_t way = 1; way < ways; ++way) {  // each moves one back, up to where it was
        std::swap(carried, set[way]);
        if (carried == tag) return;
    }
    ++misses;
}

void CacheBank::access(std::span<const std::uint64_t> lines) {
    accesses_ += lines.size();
    Cache& first = caches_[0];
    for (const std::uint64_t line : lines) {
        const bool last_used = first.tags[first.set_of(line) * first.ways] == line + 1;
        if (!last_used) first.access(line);
        for (std::size_t i = 1; i < caches_.size(); ++i)
            if (!last_used || !caches_[i].divides) caches_[i].access(line);
    }
}

std::vector<SimulatedCache> CacheBank::results() const {
    std::vector<SimulatedCache> out;
    for (const Cache& cache : caches_)
        out.push_back({cache.spec, static_cast<double>(accesses_), static_cast<double>(cache.misses)});
    std::ranges::stable_sort(out, {}, [](const SimulatedCache& one) { return one.spec.bytes; });
    return out;
}

std::unique_ptr<Engine> with_caches(std::unique_ptr<Engine> engine,
                                    const std::vector<CacheSpec>& caches, std::uint64_t line) {
    CacheBank bank(caches, line);
    if (bank.empty()) return engine;
    return std::make_unique<WithCaches>(std::move(engine), std::move(bank));
}

}  // namespace revisit
