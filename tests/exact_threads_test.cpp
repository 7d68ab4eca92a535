// The exact engine on threads against one thread and the definition, cut everywhere.
#include "engines/exact_threads.h"

#include <random>

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

TEST(ExactThreads, one_thread_is_left_alone) {
    EngineOptions options;
    EXPECT_EQ(make_exact_threads(options), nullptr);
    options.threads = 2;
    options.sites = true;
    EXPECT_EQ(make_exact_threads(options), nullptr);
}

}  // namespace
}  // namespace revisit
