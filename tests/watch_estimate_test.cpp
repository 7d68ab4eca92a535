// The estimator against the truth, sampling simulated on small traces: bias and coverage over seeds.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <functional>

#include "models/footprint_model.h"
#include "revisit/accuracy.h"
#include "watch/estimate/memoryless.h"
#include "watch/estimate/seen.h"
#include "watch/estimate/share_errors.h"
#include "watch_simulation.h"

namespace revisit::watch {
namespace {

struct Spread {
    double similarity = 1;                   // the least
    std::array<double, 4> bias{}, stated{};  // means, in points
    double covered = 0;                      // of all miss rates
};

Spread simulate(const SimulatedTrace& trace, const SimulationOptions& options, int seeds) {
    Spread out;
    std::vector<double> similar;
    for (int seed = 1; seed <= seeds; seed++) {
        Profile profile = Simulation(trace, options, static_cast<std::uint64_t>(seed)).run();
        EXPECT_NEAR(profile.reuse.total(), profile.accesses, 1e-6 * profile.accesses);
        SimulationResult result = compare(trace, profile);
        similar.push_back(result.similarity);
        for (std::size_t k = 0; k < 4; k++) {
            out.bias[k] += 100 * result.off[k] / seeds;
            out.stated[k] += 100 * result.stated[k] / seeds;
            out.covered += (std::abs(result.off[k]) <= result.stated[k]) / (4.0 * seeds);
        }
    }
    std::ranges::sort(similar);
    out.similarity = similar[similar.size() / 4];
    return out;
}

// Arrays far apart; sites are numbers.
constexpr std::uint64_t kFirst = 1u << 28, kSecond = 2u << 28;

SimulatedTrace random_gather(unsigned shift) {
    SimulatedTrace trace(shift);
    Random random(11);
    constexpr unsigned kWords = 1 << 17;  // 1 MiB
    for (std::uint64_t i = 0; i < 1'000'000; i++) {
        trace.add(kSecond + 4 * (i % (1 << 19)), 4, 1);
        trace.add(kFirst + 8 * random.below(kWords), 8, 2);
    }
    trace.finish();
    return trace;
}

SimulatedTrace permutation_scatter() {
    SimulatedTrace trace(6);
    Random random(11);
    std::vector<std::uint32_t> order(1 << 16);
    for (std::uint32_t i = 0; i < order.size(); i++) order[i] = i;
    for (std::uint32_t i = static_cast<std::uint32_t>(order.size()); i > 1; i--)
        std::swap(order[i - 1], order[random.below(i)]);
    for (int round = 0; round < 14; round++)
        for (std::uint64_t i = 0; i < order.size(); i++) {
            trace.add(kSecond + 8 * i, 8, 1);
            trace.add(kFirst + 8 * order[i], 8, 2);
        }
    trace.finish();
    return trace;
}

// A matrix of doubles with 1500 rows, by columns: each line comes back at the next word.
SimulatedTrace column_walk() {
    SimulatedTrace trace(6);
    for (std::uint64_t column = 0; column < 800; column++)
        for (std::uint64_t row = 0; row < 1500; row++)
            trace.add(kFirst + 8 * (800 * row + column), 8, 1);
    trace.finish();
    return trace;
}

SimulatedTrace sweep() {
    SimulatedTrace trace(6);
    for (int round = 0; round < 20; round++)
        for (std::uint64_t i = 0; i < 80'000; i++) trace.add(kFirst + 8 * i, 8, 1);
    trace.finish();
    return trace;
}

// Half of the time a scan that leaves few lines open, half a gather that leaves many.
SimulatedTrace phases() {
    SimulatedTrace trace(6);
    Random random(5);
    for (int round = 0; round < 8; round++) {
        for (std::uint64_t i = 0; i < 160'000; i++) trace.add(kSecond + 2 * i, 2, 1);
        for (std::uint64_t i = 0; i < 120'000; i++) trace.add(kFirst + 8 * random.below(1 << 16), 8, 2);
    }
    trace.finish();
    return trace;
}

TEST(WatchEstimate, random_gather_by_lines_is_right_though_half_of_the_words_are_watched) {
    SimulatedTrace trace = random_gather(6);
    SimulationOptions options;
    options.reservoir = false;
    Spread spread = simulate(trace, options, 8);
    EXPECT_GT(spread.similarity, 0.93);
    for (std::size_t k = 0; k < 4; k++) EXPECT_LT(std::abs(spread.bias[k]), 1.5) << k;
    EXPECT_GE(spread.covered, 0.9);
}

TEST(WatchEstimate, words_watched_whole_need_no_correction) {
    SimulatedTrace trace = random_gather(3);
    SimulationOptions options;
    options.reservoir = false;
    Spread spread = simulate(trace, options, 6);
    EXPECT_GT(spread.similarity, 0.93);
    EXPECT_GE(spread.covered, 0.9);
}

TEST(WatchEstimate, scatter_along_a_permutation_is_right) {
    SimulationOptions options;
    options.reservoir = false;
    Spread spread = simulate(permutation_scatter(), options, 8);
    // Visits to a line are not independent here (each word once per round), as the correction has it:
    // 3.1 points are left.
    EXPECT_GT(spread.similarity, 0.92);
    for (std::size_t k = 0; k < 4; k++) EXPECT_LT(std::abs(spread.bias[k]), 3.5) << k;
    EXPECT_GE(spread.covered, 0.85);
}

TEST(WatchEstimate, column_walks_are_learnt_and_not_corrected) {
    SimulationOptions options;
    options.reservoir = false;
    options.clock_error = 0;
    Spread spread = simulate(column_walk(), options, 6);
    EXPECT_GT(spread.similarity, 0.95);
    for (std::size_t k = 0; k < 4; k++) EXPECT_LT(std::abs(spread.bias[k]), 1) << k;
}

TEST(WatchEstimate, sweeps_are_exact_but_for_the_clock) {
    Spread spread = simulate(sweep(), {}, 8);
    EXPECT_GT(spread.similarity, 0.98);
    for (std::size_t k = 0; k < 4; k++) EXPECT_LT(std::abs(spread.bias[k]), 0.6) << k;
    EXPECT_GE(spread.covered, 0.9);
}

TEST(WatchEstimate, phases_have_distances_of_their_own) {
    SimulationOptions options;
    options.reservoir = false;
    Spread spread = simulate(phases(), options, 8);
    // How long open lines stay open is taken from the whole run, of which half are of another kind: 5.2
    // points are left.
    EXPECT_GT(spread.similarity, 0.92);
    for (std::size_t k = 0; k < 4; k++) EXPECT_LT(std::abs(spread.bias[k]), 5.5) << k;
    EXPECT_GE(spread.covered, 0.9);
}

// The gather's windows are cut short, for the pages that are read: what it leaves open counts all the
// same. With the scan's share alone misses were 14 points off.
TEST(WatchEstimate, phases_have_distances_of_their_own_where_one_has_short_windows) {
    SimulationOptions options;
    options.reservoir = false;
    options.short_site = 2;
    options.short_window = 490;
    Spread spread = simulate(phases(), options, 8);
    EXPECT_GT(spread.similarity, 0.92);
    for (std::size_t k = 0; k < 4; k++) EXPECT_LT(std::abs(spread.bias[k]), 5.5) << k;
    EXPECT_GE(spread.covered, 0.9);
}

// Watchpoints are lost to later samples most of the time here; what was lost says how long it waited.
TEST(WatchEstimate, reuses_that_lose_their_watchpoints_are_accounted_for) {
    SimulatedTrace trace(6);
    Random random(3);
    for (std::uint64_t i = 0; i < 1'500'000; i++) {
        trace.add(kFirst + 8 * random.below(500), 8, 1);
        if (i % 8 == 0) trace.add(kSecond + 64 * (i / 8 % 50'000), 8, 2);  // comes back after 450 000
    }
    trace.finish();
    Spread spread = simulate(trace, {}, 10);
    for (std::size_t k = 0; k < 3; k++) EXPECT_LT(std::abs(spread.bias[k]), 2) << k;
    EXPECT_GE(spread.covered, 0.85);
}

TEST(WatchEstimate, model_with_all_distances_known_counts_a_cyclic_scan_exactly) {
    Histogram time;
    time.cold = 1000;
    time.bins = {{1000, 1001, 99'000}};
    FootprintModel model(time, {}, 0, 100'000);
    EXPECT_NEAR(model.distance(50'000, 1000), 999, 15);
    EXPECT_EQ(model.distance(50'000, 1), 0);
}

// Where twice as many uses are open as in the mean, twice as many blocks are met beyond the window.
TEST(WatchEstimate, a_reuse_where_more_is_open_saw_more_blocks) {
    Histogram time;
    time.bins = {{1, 2, 700}, {1000000, 1000001, 300}};
    const std::vector<OpenShare> even{{1000000, 0.3}, {2000000, 0.3}};
    FootprintModel model(time, even, 1000, 3000000);
    EXPECT_NEAR(model.distance_where(1, 500000), model.distance(2000000, 500000), 1);
    const double window = model.distance_where(0, 500000);
    EXPECT_NEAR(window, 300, 5);
    EXPECT_NEAR(model.distance_where(2, 500000) - window,
                2 * (model.distance_where(1, 500000) - window), 1);
}

TEST(WatchEstimate, what_may_be_touched_is_what_was_resident_without_code_and_what_was_only_read) {
    EXPECT_EQ((Touchable{10 << 20, 4 << 20, 1 << 20}.all()), 13u << 20);
    EXPECT_EQ((Touchable{0, 4 << 20, 1 << 20}.all()), 0u);  // not known
}

// Fifty samples of one thread, each with a reuse by watchpoint after nine tenths of its time.
Profile profile_of_fifty(std::uint64_t resident, const EstimateOptions& options,
                         Sample::Watched watched = Sample::Watched::trapped,
                         std::uint64_t counted = 0) {
    Samples samples;
    samples.touchable.resident = resident;
    ThreadSamples& thread = samples.threads[1];
    for (std::uint64_t i = 1; i <= 50; i++) {
        Sample sample;
        sample.time = i * 1000;
        sample.period = 1000;
        sample.uses = 10;
        sample.open = 10;
        sample.label = sample.far_label = sample.far_reuse_label = 0;
        sample.watched = watched;
        sample.trap_time = i * 1000 + 900;
        sample.far_accesses = 20;
        sample.far_counted = counted;
        thread.samples.push_back(sample);
    }
    AccessClock::ThreadClock clock;
    clock.last_rate = 1;
    for (const Sample& sample : thread.samples) clock.time.push_back(static_cast<double>(sample.time));
    clock.accesses = clock.time;
    Origins origins;
    origins.labels.push_back({});
    return estimate(samples, origins, options, AccessClock({{std::uint16_t{1}, clock}}, "simulated"));
}

TEST(WatchEstimate, nothing_can_be_further_than_what_was_resident) {
    const Profile profile = profile_of_fifty(64 * 100, {});
    ASSERT_FALSE(profile.reuse.bins.empty());
    EXPECT_LE(profile.reuse.bins.back().low, 100u);
    EXPECT_LE(profile.distinct, 100);
}

// By time each reuse takes 880 accesses; registers say that it was 220 from the stop, 200 from the use.
TEST(WatchEstimate, accesses_counted_to_a_trap_are_believed_before_its_time) {
    auto middle = [](const Histogram& time) {
        double sum = 0, count = 0;
        for (const Bin& bin : time.bins) {
            sum += bin.count * static_cast<double>(bin.low + bin.high) / 2;
            count += bin.count;
        }
        return sum / count;
    };
    const Profile by_time = profile_of_fifty(0, {});
    const Profile counted = profile_of_fifty(0, {}, Sample::Watched::trapped, 220);
    EXPECT_GT(middle(*by_time.time), 700);
    EXPECT_NEAR(middle(*counted.time), 200, 25);
    const Profile impossible = profile_of_fifty(0, {}, Sample::Watched::trapped, 15);
    EXPECT_NEAR(middle(*impossible.time), middle(*by_time.time), 1e-9) << "it trapped before the use";
}

// Each run touches its memory for the first time, and the counts are of one.
TEST(WatchEstimate, runs_of_a_program_have_the_first_touches_of_one) {
    EstimateOptions options;
    options.runs = 10;
    const Profile profile = profile_of_fifty(64 * 100, options, Sample::Watched::never);
    EXPECT_NEAR(profile.reuse.cold, 100, 1e-6);
    EXPECT_NEAR(profile.distinct, 100, 1e-6);
}

// A server's children, of which a few met a sample: their accesses were a twentieth of what there are.
TEST(WatchEstimate, threads_without_a_sample_count_by_their_time) {
    EstimateOptions options;
    const Profile sampled = profile_of_fifty(0, options);
    options.sampled_share = 0.25;
    const Profile all = profile_of_fifty(0, options);
    ASSERT_GT(sampled.accesses, 0);
    EXPECT_NEAR(all.accesses, 4 * sampled.accesses, 1e-6 * all.accesses);
    EXPECT_NEAR(accuracy(all.reuse, sampled.reuse), 1, 1e-9);
    ASSERT_EQ(all.sites.size(), sampled.sites.size());
    for (std::size_t i = 0; i < all.sites.size(); i++)
        EXPECT_NEAR(all.sites[i].accesses, 4 * sampled.sites[i].accesses, 1e-6 * all.accesses);
}

// Of a thread with one sample, whose window brought back three uses of four, one was drawn; where that
// one did not come back nothing says where the three are.
TEST(WatchEstimate, sites_are_all_accesses_however_few_samples_a_thread_has) {
    Samples samples;
    std::unordered_map<std::uint16_t, AccessClock::ThreadClock> clocks;
    constexpr std::uint16_t kThreads = 8;
    for (std::uint16_t number = 0; number < kThreads; number++) {
        ThreadSamples& thread = samples.threads[number];
        Sample sample;
        sample.time = sample.period = 1000;
        sample.uses = 4;
        sample.open = 1;
        sample.label = sample.reuse_label = sample.far_label = sample.far_reuse_label = 0;
        sample.ahead = number % 4 != 0;
        sample.distance = sample.distinct = 2;
        sample.watched = Sample::Watched::foreseen;
        sample.far_distance = 500;
        sample.time_entries = sample.reuse_entries = 1;
        thread.entries = {{2, 3}, {2, 3}};
        thread.samples.push_back(sample);
        AccessClock::ThreadClock clock;
        clock.last_rate = 1;
        clock.time = clock.accesses = {1000};
        clocks[number] = clock;
    }
    Origins origins;
    origins.labels.push_back({});
    const Profile profile = estimate(samples, origins, {}, AccessClock(clocks, "simulated"));
    EXPECT_NEAR(profile.accesses, 1000 * kThreads, 1e-6);
    ASSERT_EQ(profile.sites.size(), 1u);
    EXPECT_NEAR(profile.sites[0].accesses, profile.accesses, 1e-6 * profile.accesses);
}

TEST(WatchEstimate, chances_of_words_are_found_from_where_traps_sprang) {
    UnwatchedWords::Chances even;
    even.fill(1.0 / 8);
    Random random(9);
    std::vector<UnwatchedWords::Trap> traps;
    // From word 0 the next visit is at word 1 with chance 0.6, at each other with 0.4 / 7.
    for (int i = 0; i < 4000; i++) {
        std::uint32_t watched = 0;
        while (std::popcount(watched) < 4) watched |= 1u << random.below(8);
        unsigned next = 0;
        do next = random.unit() < 0.6 ? 1 : (random.below(7) + 2) % 8;
        while (!(watched >> next & 1));
        traps.push_back({watched, 0, next});
    }
    UnwatchedWords::Chances chances = UnwatchedWords::fit(traps, even, 2);
    double all = 0;
    for (unsigned word = 0; word < 8; word++) all += chances[offset_index(word, 0)];
    EXPECT_NEAR(chances[offset_index(1, 0)] / all, 0.6, 0.05);
    EXPECT_NEAR(chances[offset_index(4, 0)] / all, 0.4 / 7, 0.02);
}

// One site visits lines through any word; the traps of another are all at the word after its use's.
TEST(WatchEstimate, traps_of_another_site_say_little_of_random_words) {
    double sum = 0;
    constexpr unsigned kSeeds = 40, kUses = 30;
    for (unsigned seed = 1; seed <= kSeeds; seed++) {
        Random random(seed);
        Samples samples;
        AccessLog log;
        for (std::uint64_t i = 0; i < 2000; i++) log.add(64 * i + 8 * random.below(8), 8, 7, true);
        samples.visits.add(log, 6);
        std::vector<Sample>& all = samples.threads[0].samples;
        for (unsigned i = 0; i < 2 * kUses; i++) {
            Sample sample;
            sample.watched = Sample::Watched::trapped;
            sample.use_word = static_cast<std::uint8_t>(random.below(8));
            sample.use_pc = i < kUses ? 7 : 9;
            if (i >= kUses) {
                sample.trapped_word = (sample.use_word + 1) % 8;
                sample.watched_words = 1u << sample.trapped_word;
            } else {
                while (std::popcount(sample.watched_words) < 3)
                    sample.watched_words |= 1u << random.below(8);
                do sample.trapped_word = static_cast<std::uint8_t>(random.below(8));
                while (!(sample.watched_words >> sample.trapped_word & 1));
            }
            all.push_back(sample);
        }
        const UnwatchedWords words(samples, 6);
        for (unsigned i = 0; i < kUses; i++) sum += words.scale(all[i]) / (kSeeds * kUses);
    }
    EXPECT_NEAR(sum, 3.0 / 8, 0.045);
}

// Turns of a million accesses; lines are visited after 125 000 of them in the mean, at half of the
// times through a watched word. So a trap comes in a later turn in a quarter of all cases, a visit in
// an eighth.
TEST(WatchEstimate, visits_in_a_later_turn_are_fewer_than_traps) {
    constexpr double kTurn = 1e6, kLeaves = 3e6, kBetween = 5e5, kMean = 125000;
    constexpr std::uint64_t kPeriod = 40'000'000;
    Random random(11);
    Samples samples;
    AccessLog log;
    for (std::uint64_t i = 0; i < 4000; i++) log.add(64 * i + 8 * random.below(8), 8, 7, true);
    samples.visits.add(log, 6);
    ThreadSamples& thread = samples.threads[0];
    AccessClock::ThreadClock clock;
    for (std::uint64_t i = 1; i <= 400; i++) {
        Sample sample;
        sample.time = i * kPeriod;
        sample.period = kPeriod;
        sample.uses = sample.open = 10;
        sample.label = sample.far_label = sample.far_reuse_label = 0;
        sample.watched = Sample::Watched::trapped;
        sample.watched_words = 0x0f;
        sample.trapped_word = static_cast<std::uint8_t>(random.below(4));
        sample.use_pc = 7;
        const double wait = -2 * kMean * std::log(1 - random.unit());
        const double turns = std::floor(random.unit() + wait / kTurn);
        sample.trap_time = sample.time + static_cast<std::uint64_t>(wait + turns * kLeaves);
        thread.samples.push_back(sample);
        clock.time.push_back(static_cast<double>(sample.time));
        clock.accesses.push_back(clock.time.back() / 2);
        clock.turns.push_back({1, kTurn, kLeaves, kBetween, 1, 1});
        clock.rate.push_back(1);
        clock.stays.push_back(kTurn);
        clock.lost.push_back(0);
    }
    Origins origins;
    origins.labels.push_back({});
    const SeenThread seen = see(samples, thread, clock, UnwatchedWords(samples, 6), origins, {});
    double later = 0, all = 0;
    for (const Seen& one : seen.pairs) {
        if (!one.far || one.cold()) continue;
        ASSERT_EQ(one.between.size(), one.time.size());
        for (double between : one.between) {
            all += one.weight;
            later += between > 0 ? one.weight : 0;
        }
    }
    EXPECT_NEAR(later / all, 0.125, 0.03);
}

// Waits with these times, of which each is lost with its chance before it comes.
std::vector<Waited> waits(unsigned count, double lost, const std::function<double(Random&)>& draw,
                          std::uint64_t seed) {
    Random random(seed);
    std::vector<Waited> out;
    for (unsigned i = 0; i < count; i++) {
        Waited one;
        one.time = draw(random);
        one.lost = random.unit() < lost;
        if (one.lost) one.time *= random.unit();
        out.push_back(one);
    }
    return out;
}

unsigned taken_for_memoryless(unsigned count, const std::function<double(Random&)>& draw) {
    unsigned taken = 0;
    for (std::uint64_t seed = 1; seed <= 200; seed++)
        taken += memoryless_rate(waits(count, 0, draw, seed)).has_value();
    return taken;
}

TEST(WatchEstimate, memoryless_reuses_are_told_from_others) {
    auto memoryless = [](Random& random) { return -1e5 * std::log(1 - random.unit()); };
    auto constant = [](Random& random) { return 1e5 * (1 + 0.1 * random.unit()); };
    auto mostly_short = [](Random& random) {
        return random.below(8) ? 3e3 * (1 + random.unit()) : 1e6;
    };
    auto constant_but_for_some = [](Random& random) {
        return random.below(5) ? 1e6 * (1 + 0.3 * random.unit()) : 4e3 * (0.5 + random.unit());
    };
    EXPECT_GE(taken_for_memoryless(20, memoryless), 180u);
    EXPECT_LE(taken_for_memoryless(12, constant_but_for_some), 20u);
    EXPECT_LE(taken_for_memoryless(30, constant_but_for_some), 2u);
    EXPECT_EQ(taken_for_memoryless(4, constant), 0u);
    EXPECT_EQ(taken_for_memoryless(20, constant), 0u);
    EXPECT_LE(taken_for_memoryless(40, mostly_short), 20u);
    EXPECT_FALSE(memoryless_rate(waits(3, 0, memoryless, 1)));
    EXPECT_FALSE(memoryless_rate({}));
}

TEST(WatchEstimate, the_rate_of_memoryless_reuses_counts_what_was_lost) {
    // Lost at a time that has nothing to do with the reuse: a twice as fast clock of losses.
    double sum = 0;
    constexpr int kSeeds = 100;
    for (int seed = 1; seed <= kSeeds; seed++) {
        Random random(static_cast<std::uint64_t>(seed));
        std::vector<Waited> all(60);
        for (Waited& one : all) {
            double reuse = -1e5 * std::log(1 - random.unit()),
                   loss = -5e4 * std::log(1 - random.unit());
            one.time = std::min(reuse, loss);
            one.lost = loss < reuse;
        }
        sum += memoryless_rate(all).value_or(1e-5) / kSeeds;
    }
    EXPECT_NEAR(sum, 1e-5, 0.1e-5);
}

TEST(WatchEstimate, times_of_memoryless_reuses_fill_their_ranks) {
    std::vector<double> low = times_between(0.001, 0, 0.5, 8), high = times_between(0.001, 0.5, 1, 8);
    EXPECT_TRUE(std::ranges::is_sorted(low));
    EXPECT_LT(low.back(), 1000 * std::log(2));
    EXPECT_GT(high.front(), 1000 * std::log(2));
    double mean = 0;
    for (double time : low) mean += time / 16;
    for (double time : high) mean += time / 16;
    EXPECT_NEAR(mean, 1000, 100);
}

TEST(WatchEstimate, few_samples_of_a_random_table_tell_all_of_its_distances) {
    SimulatedTrace trace(6);
    Random random(7);
    for (std::uint64_t i = 0; i < 1'000'000; i++) {
        trace.add(kSecond + 8 * (i % 16), 8, 1);
        trace.add(kFirst + 64 * random.below(1 << 14), 8, 2);
    }
    trace.finish();
    SimulationOptions options;
    options.samples = 60;
    Spread spread = simulate(trace, options, 12);
    EXPECT_GT(spread.similarity, 0.89);  // 0.86 with each at the time that it was seen
    EXPECT_GE(spread.covered, 0.9);
}

}  // namespace
}  // namespace revisit::watch
