// What windows say about the sets of caches, and what becomes of it.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "watch/samples/window_sets.h"
#include "watch_simulation.h"

namespace revisit::watch {
namespace {

CacheSpec cache(std::uint64_t bytes, std::uint64_t ways) {
    return {bytes, ways, 64, "cache"};
}

// The same by lists: every set an LRU stack, from the window's beginning.
WindowSets naive_sets(const std::vector<std::uint64_t>& lines, unsigned uses, unsigned drawn,
                      unsigned open, const std::vector<CacheSpec>& caches) {
    WindowSets out;
    std::set<std::uint64_t> after(lines.begin() + open, lines.end());
    if (open == 0) after.clear();
    if (open != 0) after.erase(lines[open - 1]);
    out.lines_after = static_cast<std::uint16_t>(after.size());
    for (std::size_t c = 0; c < caches.size(); c++) {
        const std::uint64_t sets = caches[c].sets();
        for (std::size_t i = 0; i < lines.size(); i++) {
            std::size_t before = i;
            while (before > 0 && lines[before - 1] != lines[i]) before--;
            if (before == 0 || before > uses) continue;
            std::set<std::uint64_t> between;
            for (std::size_t k = before; k < i; k++)
                if (lines[k] % sets == lines[i] % sets) between.insert(lines[k]);
            if (between.size() < caches[c].associativity()) continue;
            out.caches[c].missed++;
            out.caches[c].drawn_missed |= before == drawn;
        }
        for (std::uint64_t line : after)
            out.caches[c].after += open != 0 && line % sets == lines[open - 1] % sets;
    }
    return out;
}

TEST(WatchSets, as_by_lists) {
    Random random(3);
    const std::vector<CacheSpec> caches = {cache(64 * 8, 2), cache(64 * 12, 3), cache(64 * 64, 4)};
    for (int round = 0; round < 400; round++) {
        std::vector<std::uint64_t> lines(1 + random.below(300));
        const unsigned kinds = 1 + random.below(120), stride = 1u << random.below(6);
        for (std::uint64_t& one : lines) one = 1000 + std::uint64_t{random.below(kinds)} * stride;
        const auto length = static_cast<unsigned>(lines.size()), uses = std::max(1u, length / 2);
        const unsigned drawn = random.below(uses + 1), open = random.below(uses + 1);
        const WindowSets seen = sets_of(lines, uses, drawn, open, caches),
                         expected = naive_sets(lines, uses, drawn, open, caches);
        ASSERT_EQ(seen.lines_after, expected.lines_after);
        for (std::size_t c = 0; c < caches.size(); c++) {
            ASSERT_EQ(seen.caches[c].missed, expected.caches[c].missed) << round;
            ASSERT_EQ(seen.caches[c].after, expected.caches[c].after);
            ASSERT_EQ(seen.caches[c].drawn_missed, expected.caches[c].drawn_missed);
        }
    }
}

TEST(WatchSets, nothing_was_seen_in_an_empty_window) {
    EXPECT_EQ(sets_of({}, 0, 0, 0, std::vector{cache(4096, 4)}).lines_after, 0);
}

// Columns of a matrix of 8-byte numbers and its rows, in turn, as multiplication walks them.
SimulatedTrace matrix(std::uint64_t n) {
    SimulatedTrace trace(6);
    for (std::uint64_t i = 0, left = 1'500'000; left > 0; i++)
        for (std::uint64_t j = 0; j < n && left > 0; j++)
            for (std::uint64_t k = 0; k < n && left > 0; k++, left--) {
                trace.add(8 * (i % n * n + k), 8, 1);
                trace.add((1u << 30) + 8 * (k * n + j), 8, 2);
            }
    trace.finish();
    return trace;
}

SimulatedTrace at_random(std::uint64_t lines) {
    SimulatedTrace trace(6);
    Random random(11);
    for (int i = 0; i < 1'500'000; i++)
        trace.add(64 * random.below(static_cast<unsigned>(lines)), 8, 1);
    trace.finish();
    return trace;
}

struct Rates {
    double truth = 0, seen = 0, error = 0, by_model = 0;
    int shown = 0, covered = 0;
};

// Means over seeds.
Rates rates_of(const SimulatedTrace& trace, const CacheSpec& spec) {
    constexpr int kSeeds = 10;
    SimulationOptions options;
    options.samples = 200;
    options.caches = {spec};
    Rates out;
    out.truth = trace.miss_rate(spec);
    for (int seed = 1; seed <= kSeeds; seed++) {
        const Profile profile = Simulation(trace, options, static_cast<std::uint64_t>(seed)).run();
        const CachePrediction rates = predict_cache(profile, spec);
        out.shown += rates.simulated;
        out.covered += std::abs(rates.miss_rate - out.truth) <= rates.error;
        out.seen += rates.miss_rate / kSeeds;
        out.error += rates.error / kSeeds;
        out.by_model += predict_by_model(profile, spec).miss_rate / kSeeds;
    }
    return out;
}

TEST(WatchSets, columns_of_a_power_of_two_miss_as_they_do_in_a_cache) {
    const SimulatedTrace trace = matrix(512);
    for (const CacheSpec& spec : {cache(32 << 10, 8), cache(48 << 10, 12), cache(256 << 10, 8)}) {
        const Rates rates = rates_of(trace, spec);
        EXPECT_NEAR(rates.truth, 0.5, 0.03) << spec.bytes;
        EXPECT_NEAR(rates.seen, rates.truth, 0.02) << spec.bytes;
        EXPECT_GE(rates.covered, 9) << rates.error;
    }
    EXPECT_LT(rates_of(trace, cache(256 << 10, 8)).by_model, 0.1);
}

TEST(WatchSets, a_matrix_that_a_cache_holds_stays_in_it) {
    // 2 MiB in 8192 sets: a column is in 128 of them, four lines in each.
    const Rates rates = rates_of(matrix(512), cache(8 << 20, 16));
    EXPECT_LT(rates.truth, 0.02);
    EXPECT_NEAR(rates.seen, rates.by_model, 0.01);
}

TEST(WatchSets, fillings_are_told_from_each_other) {
    const std::vector<CacheSpec> caches = {cache(32 << 10, 8), cache(256 << 10, 8),
                                           cache(32 << 20, 16)};
    std::vector<std::uint64_t> walked, strided, drawn;
    Random random(5);
    for (std::uint64_t i = 0; i < 1024; i++) {
        walked.push_back(i < 512 ? 7000 + i / 4 : 90000 + i / 4);
        strided.push_back(i % 2 == 0 ? 7000 + i / 16 : i * 4096);
        drawn.push_back(random.below(1u << 24));
    }
    for (std::size_t c = 0; c < caches.size(); c++) {
        EXPECT_EQ(sets_of(walked, 512, 0, 0, caches).caches[c].filling, SetFilling::even) << c;
        EXPECT_EQ(sets_of(strided, 512, 0, 0, caches).caches[c].filling, SetFilling::crowded) << c;
        EXPECT_EQ(sets_of(drawn, 512, 0, 0, caches).caches[c].filling, SetFilling::random) << c;
    }
}

TEST(WatchSets, arrays_that_are_walked_fill_a_cache_to_its_last_line) {
    // 90 % of the cache: random sets miss a third of the lines.
    SimulatedTrace trace(6);
    for (std::uint64_t i = 0; i < 4'000'000; i++) trace.add(64 * (i / 2 % 3686), 8, 1);
    trace.finish();
    const Rates rates = rates_of(trace, cache(256 << 10, 8));
    EXPECT_LT(rates.truth, 0.005);
    EXPECT_GT(rates.by_model, 0.1);
    EXPECT_LT(rates.seen, rates.by_model / 2);
    EXPECT_GE(rates.covered, 9);
}

TEST(WatchSets, lines_in_random_sets_are_left_to_the_model) {
    for (const CacheSpec& spec : {cache(32 << 10, 8), cache(256 << 10, 8), cache(1 << 20, 16)}) {
        const SimulatedTrace trace = at_random(8000);
        const Rates rates = rates_of(trace, spec);
        EXPECT_NEAR(rates.seen, rates.by_model, 0.01) << spec.bytes;
        EXPECT_NEAR(rates.seen, rates.truth, 0.03) << spec.bytes;
    }
}

TEST(WatchSets, rows_that_are_no_power_of_two_are_no_further_off_than_by_the_model) {
    const SimulatedTrace trace = matrix(500);
    for (const CacheSpec& spec : {cache(32 << 10, 8), cache(256 << 10, 8)}) {
        const Rates rates = rates_of(trace, spec);
        EXPECT_LE(std::abs(rates.seen - rates.truth), std::abs(rates.by_model - rates.truth) + 0.005)
            << spec.bytes << ": " << rates.seen << ", true " << rates.truth;
    }
}

}  // namespace
}  // namespace revisit::watch
