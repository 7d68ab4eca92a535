// The statements on threads in docs/library.md under ThreadSanitizer: independent objects in several
// threads, a source of one's own that the library reads from several, one profile read by many, and
// callbacks from the calling thread alone. Every count is known.
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "engines/checked.h"
#include "revisit/analyze.h"
#include "revisit/blocks.h"
#include "revisit/profile.h"

namespace revisit {

Result<std::unique_ptr<Engine>> make_exact(const EngineOptions& options);

// The table of engines lists all of them; this is built with one.
Result<std::unique_ptr<Engine>> make_engine(std::string_view, const EngineOptions& options) {
    auto engine = make_exact(options);
    if (!engine) return engine;
    return make_checked(std::move(*engine));
}

}  // namespace revisit

using namespace revisit;

namespace {

constexpr std::uint64_t kAccesses = 300000, kBlocks = 5000;

void expect(bool good, const char* what) {
    if (good) return;
    std::fprintf(stderr, "%s\n", what);
    std::exit(1);
}

void expect_counts(const Result<Profile>& profile) {
    expect(profile.has_value(), "no profile");
    expect(profile->accesses == kAccesses && profile->distinct == kBlocks, "accesses were lost");
    expect(profile->reuse.total() == kAccesses, "the histogram does not add up");
}

// A source of one's own: what it hands out is computed, so it has no state to guard.
class Walk : public TraceReader, public AccessRanges {
 public:
    Result<AccessBatch> next() override { return AccessBatch{}; }
    const AccessRanges* ranges() const override { return this; }
    std::uint64_t count() const override { return kAccesses; }
    Result<AccessBatch> read(std::uint64_t first, std::size_t count,
                             AccessColumns& into) const override {
        into.has = {};
        into.resize(count);
        for (std::size_t i = 0; i < count; ++i) into.addresses[i] = (first + i) * 7 % kBlocks * 64;
        return into.batch();
    }
};

void by_batches() {
    auto engine = make_engine("exact", {});
    BlockCutter cutter(64);
    const Walk walk;
    AccessColumns columns;
    for (std::uint64_t at = 0; at < kAccesses; at += 1000)
        expect(cutter
                   .cut(*walk.read(at, 1000, columns),
                        [&](const BlockBatch& blocks) { return (*engine)->add(blocks); })
                   .has_value(),
               "not added");
    expect_counts((*engine)->finish());
}

// Counted in threads of its own, with a cache and the use of its lines.
void beside_the_caller() {
    AnalyzeOptions options;
    options.engine.streamed = true;
    options.engine.threads = 2;
    options.caches = {*CacheSpec::parse("64K:8:64")};
    options.line_use = options.caches[0];
    auto analysis = Analysis::begin(options);
    const Walk walk;
    AccessColumns columns;
    for (std::uint64_t at = 0; at < kAccesses; at += 1000)
        expect(analysis->add(*walk.read(at, 1000, columns)).has_value(), "not added");
    const auto profile = analysis->finish();
    expect_counts(profile);
    expect(profile->caches.size() == 1 && profile->caches[0].accesses == kAccesses &&
               profile->line_use->use.fetches == profile->caches[0].misses,
           "the cache did not see all accesses");
}

void by_source(unsigned threads) {
    const auto caller = std::this_thread::get_id();
    Walk walk;
    AnalyzeOptions options;
    options.engine.threads = threads;
    options.progress = [&](std::uint64_t, std::uint64_t) {
        expect(std::this_thread::get_id() == caller, "progress in another thread");
    };
    expect_counts(analyze(walk, options));
    std::uint64_t seen = 0;
    options.also = [&](const AccessBatch& batch) -> Result<void> {
        expect(std::this_thread::get_id() == caller, "accesses shown in another thread");
        seen += batch.count();
        return {};
    };
    expect_counts(analyze(walk, options));
    expect(seen == kAccesses, "accesses were not shown");
}

template <class Body>
void side_by_side(unsigned count, Body body) {
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < count; ++i) threads.emplace_back(body);
    for (std::thread& thread : threads) thread.join();
}

}  // namespace

int main() {
    side_by_side(3, by_batches);
    side_by_side(2, beside_the_caller);
    side_by_side(2, [] { by_source(1); });
    side_by_side(2, [] { by_source(3); });
    Walk walk;
    const Profile profile = *analyze(walk);
    side_by_side(3, [&] {
        expect(profile.reuse.percentile(0.5) > 0, "no median");
        Histogram mine = profile.reuse;
        mine.merge(profile.reuse);
        expect(mine.total() == 2 * kAccesses, "the sum does not add up");
    });
    std::puts("no race seen, nothing lost");
}
