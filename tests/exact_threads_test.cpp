// The exact engine on threads against one thread and the definition, cut everywhere.
#include "engines/exact_threads.h"

#include <gtest/gtest.h>

#include <random>

#include "engines/phases.h"
#include "engines/site_attribution.h"
#include "random_traces.h"
#include "revisit/revisit.h"

namespace revisit {
namespace {

std::string profile_of(Engine& engine, std::span<const std::uint64_t> blocks, std::size_t piece) {
    for (std::size_t at = 0; at < blocks.size(); at += piece)
        EXPECT_TRUE(engine.add({blocks.subspan(at, std::min(piece, blocks.size() - at)), {}, {}, {}}));
    auto profile = engine.finish();
    EXPECT_TRUE(profile);
    if (!profile) return {};
    profile->method = "any";
    return to_json(*profile);
}

std::string truth(std::span<const std::uint64_t> blocks) {
    EngineOptions options;
    options.bins = Binning::exact();
    return profile_of(*make_engine("naive", options).value(), blocks, blocks.size() + 1);
}

std::string threaded(std::span<const std::uint64_t> blocks, unsigned threads, std::size_t chunk,
                     std::size_t piece, bool weigh = false) {
    EngineOptions options;
    options.bins = Binning::exact();
    options.threads = threads;
    ThreadTuning tuning{1, chunk, chunk * 4, chunk * 3, weigh, 3, 16, 100};
    return profile_of(*make_exact_threads(options, tuning), blocks, piece);
}

// With sites and flags that are all different from their neighbours'.
struct Attributed {
    std::vector<std::uint32_t> sites;
    std::vector<std::uint8_t> flags;
    explicit Attributed(std::size_t count, std::uint32_t sites_in_all) {
        std::mt19937_64 random(count);
        for (std::size_t i = 0; i < count; ++i) {
            sites.push_back(static_cast<std::uint32_t>(random() % sites_in_all));
            flags.push_back(random() % 3 == 0 ? kWrite : 0);
        }
    }
};

std::string attributed_profile(Engine& engine, std::span<const std::uint64_t> blocks,
                               const Attributed& known, std::size_t piece) {
    const BlockBatch whole{blocks, known.sites, {}, known.flags};
    for (std::size_t at = 0; at < blocks.size(); at += piece) {
        BlockBatch batch = whole.part(at, std::min(piece, blocks.size() - at));
        if (at / piece % 5 == 3) batch.sites = {}, batch.flags = {};  // as a source may lack them
        EXPECT_TRUE(engine.add(batch));
    }
    auto profile = engine.finish();
    EXPECT_TRUE(profile);
    if (!profile) return {};
    profile->method = "any";
    return to_json(*profile);
}

TEST(ExactThreads, agree_with_naive_for_every_cut) {
    for (const auto& trace : testing::small_traces(31)) {
        const std::string expected = truth(trace.blocks);
        for (unsigned threads : {2u, 5u})
            for (std::size_t chunk : {1, 65, 300})
                for (std::size_t piece : {std::size_t{97}, std::size_t{100000}}) {
                    if (chunk == 1 && trace.blocks.size() > 200) continue;
                    EXPECT_EQ(threaded(trace.blocks, threads, chunk, piece), expected)
                        << trace.name << ": " << threads << " threads, chunks of " << chunk
                        << ", added by " << piece;
                    EXPECT_EQ(threaded(trace.blocks, threads, chunk, piece, true), expected)
                        << trace.name << ", weighed";
                }
    }
}

TEST(ExactThreads, one_past_and_one_before_the_end_of_a_window) {
    std::mt19937_64 random(6);
    for (std::size_t count : {255u, 256u, 257u, 511u, 512u, 513u, 2559u, 2561u}) {
        std::vector<std::uint64_t> blocks(count);
        for (auto& block : blocks) block = random() % 90;
        EXPECT_EQ(threaded(blocks, 4, 64, 1000), truth(blocks)) << count;
        EXPECT_EQ(threaded(blocks, 4, 64, 50), truth(blocks)) << count;
    }
}

// Marks of places take more than 4 MiB, where memory comes as zeros, and fewer in the second window
// than in the first: what the first one marked must be gone.
TEST(ExactThreads, marks_of_a_window_do_not_outlive_it) {
    constexpr std::uint64_t kBlocks = 2'200'000, kSome = 1'010'000;
    std::vector<std::uint64_t> blocks;
    for (int round = 0; round < 2; ++round)
        for (std::uint64_t i = 0; i < kBlocks; ++i) blocks.push_back(i * 7919 % kBlocks);
    const std::size_t window = blocks.size();
    for (int chunk = 0; chunk < 2; ++chunk)
        for (std::uint64_t i = 0; i < kSome; ++i) blocks.push_back((i * 104'729 + 5) % kBlocks);
    for (bool time : {false, true}) {
        EngineOptions options;
        options.time = time;
        options.threads = 1;
        const std::string expected =
            profile_of(*make_engine("exact", options).value(), blocks, blocks.size());
        options.threads = 2;
        const ThreadTuning tuning{1, window / 2, window, window, false, 3, 16, 100};
        EXPECT_EQ(profile_of(*make_exact_threads(options, tuning), blocks, window), expected) << time;
    }
}

// Ways through memory in order, whose first touches are found in runs, and ways that break them.
TEST(ExactThreads, scans_and_what_breaks_them) {
    std::mt19937_64 random(9);
    std::vector<testing::NamedTrace> traces;
    auto make = [&](std::string name, auto next) {
        std::vector<std::uint64_t> blocks(6000);
        for (std::size_t i = 0; i < blocks.size(); ++i) blocks[i] = next(i);
        traces.push_back({std::move(name), std::move(blocks)});
    };
    make("scan across pages", [](std::uint64_t i) { return 1000 + i % 1100; });
    make("scan backwards", [](std::uint64_t i) { return 3000 - i % 700; });
    make("there and back", [](std::uint64_t i) { return i / 900 % 2 == 0 ? i % 900 : 899 - i % 900; });
    make("three arrays", [](std::uint64_t i) { return i % 3 * 5000 + i / 3 % 300; });
    make("growing scan", [](std::uint64_t i) { return i % (i / 1000 * 300 + 200); });
    make("hot blocks between",
         [&](std::uint64_t i) { return random() % 50 == 0 ? 9000 + random() % 4 : i % 1300; });
    make("two scans in turn", [](std::uint64_t i) { return i / 500 % 2 * 20000 + i % 500 + i / 1000; });
    // Few enough pages for a chunk to have them, too many for the whole stack.
    make("sparse pages", [&](std::uint64_t i) {
        return (i / 4 % 1000 * 7919 % 5000 * 11) << 10 | i % 4 | random() % 2 << 6;
    });
    for (const auto& trace : traces) {
        const std::string expected = truth(trace.blocks);
        for (unsigned threads : {2u, 3u})
            for (std::size_t chunk : {130, 700, 1500})
                EXPECT_EQ(threaded(trace.blocks, threads, chunk, 10000), expected)
                    << trace.name << ": " << threads << " threads, chunks of " << chunk;
        EXPECT_EQ(threaded(trace.blocks, 2, 400, 300, true), expected) << trace.name << ", weighed";
    }
}

// Large enough for renumbering, the hash and several windows of usual size.
TEST(ExactThreads, agree_with_one_thread_at_usual_sizes) {
    std::mt19937_64 random(7);
    std::vector<std::uint64_t> blocks(1 << 21);
    for (auto& block : blocks)
        block = (random() % 4 == 0 ? random() % 200000 : random() % 3000) * 0x9e3779b97f4a7c15u;
    EngineOptions options;
    const std::string one = profile_of(*make_engine("exact", options).value(), blocks, blocks.size());
    options.threads = 4;
    EXPECT_EQ(profile_of(*make_engine("exact", options).value(), blocks, blocks.size()), one);
    EXPECT_EQ(profile_of(*make_engine("exact", options).value(), blocks, 4096), one);
    EXPECT_EQ(
        profile_of(*make_exact_threads(options, {1000, 50000, 200000, 100000, false}), blocks, 70000),
        one);
}

// First touches that lie in the trace and are not written down, between some that are, in lists of
// several pieces.
TEST(ExactThreads, long_scans_that_are_broken_now_and_then) {
    std::mt19937_64 random(14);
    for (std::uint64_t often : {0, 100, 3000}) {
        std::vector<std::uint64_t> blocks(1'200'000);
        for (std::size_t i = 0; i < blocks.size(); ++i)
            blocks[i] = often != 0 && random() % often == 0 ? 1'000'000 + random() % 9
                                                            : i % 301'000 + i / 700'000;
        const Attributed known(blocks.size(), 6);
        EngineOptions options;
        options.sites = options.pairs = options.time = often == 3000;
        const std::string one =
            attributed_profile(*make_engine("exact", options).value(), blocks, known, blocks.size());
        options.threads = 3;
        EXPECT_EQ(
            attributed_profile(*make_exact_threads(options, {1000, 90'000, 90'000, 200'000, false}),
                               blocks, known, blocks.size()),
            one)
            << often;
    }
}

// Which way is taken depends on the clock, the profile does not: short trials, many of them.
TEST(ExactThreads, trials_do_not_show) {
    std::mt19937_64 random(10);
    std::vector<std::uint64_t> blocks(120000);
    for (std::size_t i = 0; i < blocks.size(); ++i)
        blocks[i] = random() % 3 == 0 ? random() % 5000 * 0x9e3779b97f4a7c15u : i % 7000;
    EngineOptions options;
    const std::string one = profile_of(*make_engine("exact", options).value(), blocks, blocks.size());
    options.threads = 2;
    for (std::size_t trial : {1, 64, 900})
        for (std::size_t piece : {3000, 120000})
            EXPECT_EQ(profile_of(*make_exact_threads(options, {1, 1000, 4000, 40000, true, 4, trial}),
                                 blocks, piece),
                      one)
                << "trials of " << trial << ", added by " << piece;
}

// Stretches that pay for two threads and stretches that do not: the stack changes its form and back.
TEST(ExactThreads, take_turns_with_one_thread) {
    std::mt19937_64 random(8);
    std::vector<std::uint64_t> blocks;
    for (int turn = 0; turn < 6; ++turn)
        for (std::uint64_t i = 0; i < 40000; ++i)
            blocks.push_back(turn % 2 == 0 ? random() % 1000 : 5000 + random() % 100 * 977 + i % 9000);
    EngineOptions options;
    const std::string one = profile_of(*make_engine("exact", options).value(), blocks, blocks.size());
    options.threads = 2;
    EXPECT_EQ(profile_of(*make_exact_threads(options, {100, 2500, 10000, 20000, true, 64, 300}), blocks,
                         40000),
              one);
    EXPECT_EQ(profile_of(*make_exact_threads(options, {100, 2500, 10000, 20000, true, 64, 300}), blocks,
                         1000),
              one);
}

TEST(ExactThreads, time_distances_are_counted_beside) {
    for (const auto& trace : testing::small_traces(33)) {
        EngineOptions options;
        options.bins = Binning::exact();
        options.time = true;
        const std::string expected =
            profile_of(*make_engine("naive", options).value(), trace.blocks, 99);
        options.threads = 3;
        for (std::size_t piece : {50, 4000})
            EXPECT_EQ(profile_of(*make_exact_threads(options, {1, 100, 400, 300, false, 3}),
                                 trace.blocks, piece),
                      expected)
                << trace.name;
    }
    // Long enough for a thread of its own.
    std::mt19937_64 random(11);
    std::vector<std::uint64_t> blocks(200000);
    for (auto& block : blocks) block = random() % (1 + random() % 30000);
    EngineOptions options;
    options.time = true;
    const std::string one = profile_of(*make_engine("exact", options).value(), blocks, 7000);
    options.threads = 2;
    EXPECT_EQ(profile_of(*make_exact_threads(options, {100, 20000, 40000, 40000, true, 8, 1000}),
                         blocks, 7000),
              one);
}

// A first touch carries its site, a block the site and the time of its last touch, across every cut.
TEST(ExactThreads, sites_pairs_and_times_agree_with_naive_for_every_cut) {
    for (const auto& trace : testing::small_traces(34)) {
        const Attributed known(trace.blocks.size(), 6);
        for (int wanted : {1, 2, 4, 7}) {
            EngineOptions options;
            options.bins = Binning::exact();
            options.sites = (wanted & 1) != 0;
            options.pairs = (wanted & 2) != 0;
            options.time = (wanted & 4) != 0;
            const std::size_t piece = wanted == 2 ? 97 : 2000;
            const std::string expected =
                attributed_profile(*make_engine("naive", options).value(), trace.blocks, known, piece);
            options.threads = 3;
            for (std::size_t chunk : {1, 65, 300}) {
                if (chunk == 1 && trace.blocks.size() > 200) continue;
                const ThreadTuning tuning{1, chunk, chunk * 4, chunk * 3, chunk == 65, 3, 16, 9};
                EXPECT_EQ(attributed_profile(*make_exact_threads(options, tuning), trace.blocks, known,
                                             piece),
                          expected)
                    << trace.name << " in chunks of " << chunk << ", wanted " << wanted;
            }
        }
    }
}

// Both forms of the stack, runs of first touches, renumbering and turns with one thread.
TEST(ExactThreads, sites_pairs_and_times_agree_with_one_thread_at_length) {
    std::mt19937_64 random(12);
    std::vector<std::uint64_t> blocks;
    for (int turn = 0; turn < 6; ++turn)
        for (std::uint64_t i = 0; i < 40000; ++i)
            blocks.push_back(turn % 3 == 0   ? random() % 1000
                             : turn % 3 == 1 ? 5000 + random() % 100 * 977 + i % 9000
                                             : (i % 11000) * 0x9e3779b97f4a7c15u);
    const Attributed known(blocks.size(), 30);
    EngineOptions options;
    options.sites = options.pairs = options.time = true;
    for (std::size_t piece : {1000, 60000}) {
        options.threads = 1;
        const std::string one =
            attributed_profile(*make_engine("exact", options).value(), blocks, known, piece);
        options.threads = 2;
        EXPECT_EQ(attributed_profile(*make_engine("exact", options).value(), blocks, known, piece),
                  one);
        for (bool weigh : {false, true})
            for (unsigned threads : {2u, 3u}) {
                options.threads = threads;
                EXPECT_EQ(attributed_profile(
                              *make_exact_threads(options, {100, 2500, 10000, 20000, weigh, 64, 300}),
                              blocks, known, piece),
                          one)
                    << threads << " threads, added by " << piece << (weigh ? ", weighed" : "");
            }
    }
}

// First touches among repeats: when they were, and whose block it is next.
TEST(ExactThreads, sites_and_pairs_of_repeats_agree_with_naive) {
    std::mt19937_64 random(16);
    std::vector<std::uint64_t> blocks;
    while (blocks.size() < 12'000) {
        const std::uint64_t block = random() % (1 + random() % 900);
        blocks.insert(blocks.end(), 1 + random() % 5, block);
    }
    const Attributed known(blocks.size(), 9);
    for (const char* bins : {"log2:8", "exact"})
        for (int wanted : {1, 2, 3}) {
            EngineOptions options;
            options.bins = Binning::parse(bins).value();
            options.sites = (wanted & 1) != 0;
            options.pairs = (wanted & 2) != 0;
            const std::string expected =
                attributed_profile(*make_engine("naive", options).value(), blocks, known, 1500);
            options.threads = 3;
            for (std::size_t chunk : {65, 300, 2500}) {
                const ThreadTuning tuning{1, chunk, chunk * 4, chunk * 3, chunk == 65, 3, 16, 9};
                EXPECT_EQ(attributed_profile(*make_exact_threads(options, tuning), blocks, known, 1500),
                          expected)
                    << bins << " in chunks of " << chunk << ", wanted " << wanted;
            }
        }
}

// Of too many pairs the first are kept, and they are the same whoever met them.
TEST(ExactThreads, a_surplus_of_pairs_is_cut_off_where_one_thread_would) {
    std::mt19937_64 random(13);
    std::vector<std::uint64_t> blocks(3000);
    for (auto& block : blocks) block = random() % 200;
    const Attributed known(blocks.size(), 40);
    EngineOptions options;
    options.bins = Binning::exact();
    options.sites = options.pairs = true;
    for (std::size_t most : {0, 1, 7, 500}) {
        auto whole = [&](std::size_t chunk) {
            SiteAttribution sum(options, FrequentLimits{most, most, 16});
            std::vector<std::pair<std::size_t, std::uint32_t>> last(200);  // when + 1, site
            for (std::size_t low = 0; low < blocks.size(); low += chunk) {
                std::vector<SiteAttribution> pieces;
                pieces.push_back(SiteAttribution::piece(options, low));
                pieces.push_back(SiteAttribution::piece(options, 0));
                for (std::size_t i = low; i < std::min(low + chunk, blocks.size()); ++i) {
                    auto& [when, use] = last[blocks[i]];
                    const auto distance =
                        when == 0 ? SiteAttribution::kCold : static_cast<std::uint32_t>(i + 1 - when);
                    const std::uint32_t in_chunk = when > low ? distance : SiteAttribution::kCold;
                    pieces[0].add({{}, {&known.sites[i], 1}, {}, {}}, {&in_chunk, 1}, {&use, 1});
                    if (when <= low) pieces[1].add_found({i, known.sites[i], use, distance});
                    when = i + 1;
                    use = known.sites[i];
                }
                sum.add_pieces(pieces, 1);
            }
            Profile profile;
            sum.fill(profile);
            return to_json(profile);
        };
        const std::string one = whole(1);
        for (std::size_t chunk : {2, 333, 5000}) EXPECT_EQ(whole(chunk), one) << most << " " << chunk;
    }
}

TEST(ExactThreads, phases_end_windows) {
    for (const auto& trace : testing::small_traces(35)) {
        EngineOptions options;
        options.bins = Binning::exact();
        options.phases = 3;
        const std::string expected =
            profile_of(*make_engine("exact", options).value(), trace.blocks, 500);
        options.threads = 3;
        auto engine =
            make_phased(make_exact_threads(options, {20, 40, 400, 300, false, 3}), options).value();
        EXPECT_EQ(profile_of(*engine, trace.blocks, 500), expected) << trace.name;
    }
}

TEST(ExactThreads, one_thread_is_left_alone) {
    EngineOptions options;
    EXPECT_EQ(make_exact_threads(options), nullptr);
}

}  // namespace
}  // namespace revisit
