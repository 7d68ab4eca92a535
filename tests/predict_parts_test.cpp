// Random nests whose runs are measured from a part of them, against every access one by one: rounds
// that stay in their blocks (same_blocks.cpp), and outermost loops that repeat (repeat.cpp, replay.cpp,
// steady_loops.cpp). REVISIT_RANDOM_NESTS=N takes N nests instead of some hundreds, REVISIT_SEED=S from
// seed S on.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "predict/run/simulate.h"
#include "random_nests.h"
#include "revisit/blocks.h"
#include "revisit/engine.h"

namespace revisit::predict {
namespace {

constexpr std::uint64_t kMostAccesses = 400'000;

std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
    const char* given = std::getenv(name);
    return given ? std::strtoull(given, nullptr, 10) : otherwise;
}

// Every access of the run, interpreted one by one and given to the exact engine; nothing if it is long.
std::optional<Profile> one_by_one(const Program& program, const Request& request) {
    EngineOptions engine_options;
    engine_options.bins = request.bins;
    engine_options.granularity = request.granularity;
    engine_options.sites = engine_options.pairs = true;
    engine_options.threads = 1;
    auto engine = make_engine("exact", engine_options);
    if (!engine) return std::nullopt;
    BlockCutter cutter(request.granularity);
    RunOptions options;
    options.keep = options.stride = false;
    options.max_accesses = kMostAccesses;
    options.max_steps = 40 * kMostAccesses;
    std::vector<std::uint32_t> sites;
    options.sink = [&](std::span<const std::uint64_t> addresses,
                       std::span<const std::uint32_t> references,
                       std::span<const std::uint32_t> sizes) {
        sites.assign(references.begin(), references.end());
        for (auto& s : sites) ++s;
        return cutter
            .cut({addresses, sites, sizes, {}, {}},
                 [&](const BlockBatch& batch) { return (*engine)->add(batch); })
            .has_value();
    };
    const auto trace = interpret(program, request.parameters, options);
    if (!trace || !trace->complete) return std::nullopt;
    auto profile = (*engine)->finish();
    return profile ? std::optional(std::move(*profile)) : std::nullopt;
}

// Every bin of the run, of each site and of each pair.
void expect_same(const Profile& part, const Profile& whole, const std::string& what) {
    EXPECT_EQ(part.reuse, whole.reuse) << what;
    std::map<std::uint32_t, Histogram> sites;
    for (const Site& s : whole.sites) sites[s.id] = s.reuse;
    for (const Site& s : part.sites)
        if (s.accesses > 0) EXPECT_EQ(s.reuse, sites[s.id]) << what << " site " << s.id;
    std::map<std::pair<std::uint32_t, std::uint32_t>, Histogram> pairs;
    for (const Pair& p : whole.pairs) pairs[{p.use, p.reuse}] = p.distances;
    EXPECT_EQ(part.pairs.size(), whole.pairs.size()) << what;
    for (const Pair& p : part.pairs)
        EXPECT_EQ(p.distances, (pairs[{p.use, p.reuse}]))
            << what << " pair " << p.use << " " << p.reuse;
}

TEST(RunsInParts, random_nests_come_out_as_every_access_one_by_one) {
    const auto first = from_environment("REVISIT_SEED", 1);
    const auto nests = from_environment("REVISIT_RANDOM_NESTS", 400);
    constexpr std::uint64_t kGranularities[] = {64, 64, 32, 16, 128, 48, 1};
    std::uint64_t repeated = 0, by_text = 0, compared = 0;
    for (auto seed = first; seed < first + nests; ++seed) {
        const auto program = RandomNest(seed, static_cast<Oddity>(seed % 3)).program();
        Request request;
        request.parameters = {{"n", 16 + static_cast<std::int64_t>(seed * 7 % 61)},
                              {"m", 16 + static_cast<std::int64_t>(seed * 11 % 53)}};
        request.granularity = kGranularities[seed / 3 % std::size(kGranularities)];
        request.bins = seed % 5 == 0 ? Binning::log2() : Binning::exact();
        const auto what = "seed " + std::to_string(seed) + " blocks of " +
                          std::to_string(request.granularity) + " bytes";
        const auto truth = one_by_one(program, request);
        if (!truth) continue;
        ++compared;
        const auto whole =
            simulate(program, request.parameters, request, request.bins, Deadline(), 2 * kMostAccesses);
        ASSERT_TRUE(whole && whole->complete) << what;
        expect_same(whole->profile, *truth, what + ", whole");
        const auto plain = simulate(program, request.parameters, request, request.bins, Deadline(),
                                    2 * kMostAccesses, nullptr, Attributed::no);
        ASSERT_TRUE(plain && plain->complete) << what;
        EXPECT_EQ(plain->profile.reuse, truth->reuse) << what << ", without sites";
        // What the text shows alone, and what walking all iterations shows.
        const auto shown = simulate_repeating(program, request.parameters, request, Deadline(),
                                              std::uint64_t{1} << 40, 0);
        const auto walked = simulate_repeating(program, request.parameters, request, Deadline(),
                                               std::uint64_t{1} << 40);
        ASSERT_TRUE(shown && walked) << what;
        if (*shown) expect_same((*shown)->run.profile, *truth, what + ", by its text");
        if (*walked) expect_same((*walked)->run.profile, *truth, what + ", in part");
        by_text += shown->has_value();
        repeated += walked->has_value();
        if (HasFailure()) {
            ADD_FAILURE() << what << ", n = " << request.parameters["n"]
                          << ", m = " << request.parameters["m"] << "\n"
                          << to_text(program);
            break;
        }
    }
    RecordProperty("compared", static_cast<int>(compared));
    RecordProperty("repeated", static_cast<int>(repeated));
    std::printf("%llu nests compared, %llu repeat, %llu of them by their text\n",
                static_cast<unsigned long long>(compared), static_cast<unsigned long long>(repeated),
                static_cast<unsigned long long>(by_text));
    if (nests >= 400) {
        EXPECT_GT(repeated, nests / 10);
        EXPECT_GT(by_text, 0u);
    }
}

}  // namespace
}  // namespace revisit::predict
