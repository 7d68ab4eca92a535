// Another process's memory as the sampler reads it, on this process: what is loaded is what is there.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <random>

#include "watch/clock/clock.h"
#include "watch/clock/stretches.h"
#include "watch/clock/time_shares.h"
#include "watch/estimate/later_run.h"
#include "watch/outside/remote_memory.h"
#include "watch/outside/resident.h"

namespace revisit::watch {
namespace {

using machine::Loaded;
using outside::RemoteMemory;

constexpr std::size_t kBytes = 64 * 4096;

class WatchMemory : public testing::Test {
 protected:
    WatchMemory() {
        std::mt19937_64 random(7);
        void* at =
            mmap(nullptr, kBytes + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        bytes_ = static_cast<std::uint8_t*>(at);
        for (std::size_t i = 0; i < kBytes; i++) bytes_[i] = static_cast<std::uint8_t>(random());
        mprotect(bytes_ + kBytes, 4096, PROT_NONE);
        memory_.start(getpid(), getpid());
    }
    ~WatchMemory() override { munmap(bytes_, kBytes + 4096); }

    std::uint64_t address(std::size_t offset) const {
        return reinterpret_cast<std::uint64_t>(bytes_) + offset;
    }
    std::uint64_t there(std::size_t offset, unsigned bytes) const {
        std::uint64_t value = 0;
        std::memcpy(&value, bytes_ + offset, bytes);
        return value;
    }

    std::uint8_t* bytes_;
    RemoteMemory memory_;
};

TEST_F(WatchMemory, loads_give_what_is_there_in_any_order) {
    std::mt19937_64 random(1);
    for (int i = 0; i < 20000; i++) {
        unsigned bytes = 1u << random() % 4;
        std::size_t offset = random() % (kBytes - 8);
        if (i % 3 == 0) offset = static_cast<std::size_t>(i) * 8 % (kBytes - 8);         // onwards
        if (i % 3 == 1) offset = kBytes - 16 - static_cast<std::size_t>(i) * 8 % 65536;  // backwards
        std::uint64_t value = 0;
        ASSERT_EQ(memory_.load(address(offset), bytes, value), Loaded::value) << offset;
        ASSERT_EQ(value, there(offset, bytes)) << offset << " " << bytes;
    }
}

TEST_F(WatchMemory, what_changes_is_read_again_at_the_next_stop) {
    std::uint64_t value = 0;
    memory_.load(address(8000), 8, value);
    std::memset(bytes_ + 8000, 3, 8);
    memory_.start(getpid(), getpid());
    memory_.load(address(8000), 8, value);
    EXPECT_EQ(value, 0x0303030303030303u);
}

TEST_F(WatchMemory, pages_that_cannot_be_read_fault_also_next_to_one_that_can) {
    std::uint64_t value = 0;
    EXPECT_EQ(memory_.load(address(kBytes - 8), 8, value), Loaded::value);
    EXPECT_EQ(memory_.load(address(kBytes), 8, value), Loaded::fault);
    EXPECT_EQ(memory_.load(address(kBytes + 2048), 8, value), Loaded::fault);
    EXPECT_EQ(memory_.load(address(kBytes - 4), 8, value), Loaded::fault);
}

TEST_F(WatchMemory, little_is_read_at_random_and_nothing_beyond_the_limit) {
    std::uint64_t value = 0, before = memory_.bytes_read();
    memory_.allow_pages(4);
    for (std::size_t page : {1, 9, 17, 25})
        ASSERT_EQ(memory_.load(address(page * 4096 + 2048), 8, value), Loaded::value);
    EXPECT_LE(memory_.bytes_read() - before, 4u * 512);
    EXPECT_EQ(memory_.load(address(33 * 4096), 8, value), Loaded::unknown);
    EXPECT_TRUE(memory_.left_out());
    EXPECT_EQ(memory_.load(address(17 * 4096 + 2056), 8, value), Loaded::value);
    EXPECT_EQ(value, there(17 * 4096 + 2056, 8));
}

// Two loops in turn: 2 accesses per nanosecond in the one that the sample met, 0.5 in the mean.
// Pages that are only read are the kernel's page of zeros: touched, and resident in no process.
TEST(WatchResident, pages_that_are_only_read_count_as_touched) {
    constexpr std::size_t kBytes = 16u << 20;
    auto* zeros = static_cast<volatile char*>(
        mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ASSERT_NE(zeros, MAP_FAILED);
    madvise(const_cast<char*>(zeros), kBytes, MADV_NOHUGEPAGE);
    auto only_read = [] {
        const outside::Resident resident = outside::resident(getpid());
        const outside::Present present = outside::present(getpid());
        EXPECT_GT(present.code, 0u);
        EXPECT_LT(present.code, resident.peak);
        return static_cast<double>(present.anonymous) - static_cast<double>(resident.anonymous);
    };
    const double before = only_read();
    char sum = 0;
    for (std::size_t at = 0; at < kBytes; at += 4096) sum = static_cast<char>(sum + zeros[at]);
    EXPECT_EQ(sum, 0);
    EXPECT_NEAR(only_read() - before, kBytes, kBytes / 8.0);
    munmap(const_cast<char*>(zeros), kBytes);
}

TEST(WatchClock, reuses_go_at_the_rate_of_their_loop_while_the_program_stays_there) {
    AccessClock::ThreadClock clock;
    clock.time = {1e6, 2e6, 100e6};
    clock.accesses = {0.5e6, 1e6, 50e6};
    clock.rate = {2, 2, 2};
    clock.stays = {1e6, 0, 1e6};
    clock.last_rate = 0.5;
    EXPECT_NEAR(clock.since(0, 1e6 + 1e4), 2e4, 200);
    EXPECT_NEAR(clock.since(0, 91e6), 45e6 + 1.5e6, 1e5);
    EXPECT_NEAR(clock.since(1, 2e6 + 1e4), 0.5e4, 1);
    for (double t = 1e6; t < 90e6; t *= 1.3) EXPECT_LE(clock.since(0, t), clock.since(0, t * 1.3));
}

// At 1 and 100 ms, of a loop of this rate that stays for a millisecond.
AccessClock::ThreadClock two_samples(double rate) {
    AccessClock::ThreadClock clock;
    clock.time = {1e6, 100e6};
    clock.accesses = {0.5e6, 50e6};
    clock.rate = {rate, rate};
    clock.stays = {1e6, 1e6};
    clock.lost = {0, 0};
    return clock;
}

// The look-ahead went through what is left of a slow loop, 0.1 ms, and on into one ten times as fast.
TEST(WatchClock, a_use_in_the_next_loop_goes_at_the_rate_of_that_loop) {
    AccessClock::ThreadClock clock = two_samples(0.2);
    clock.rate_of_use = {2, 0};
    clock.stays_at_use = {1e6, 0};
    clock.last_rate = 0.5;
    EXPECT_NEAR(clock.since_use(0, 1e6 + 1.2e5, 2e4), 4e4, 1000);
    EXPECT_NEAR(clock.since_use(0, 1e6 + 1e4, 1e3), 1e4, 500);
    clock.rate_of_use = {0, 0};
    EXPECT_NEAR(clock.since_use(0, 1e6 + 1.2e5, 2e4), clock.since(0, 1e6 + 1.2e5) - 2e4, 1e-6);
}

// Turns of 1 ms, and 3 ms in which others make half a million accesses.
TEST(WatchClock, a_reuse_in_the_next_turn_has_what_others_made_in_between_and_a_sooner_one_has_not) {
    AccessClock::ThreadClock clock = two_samples(1);
    clock.turns = {{1, 1e6, 3e6, 5e5, 0.5, 0.1}, {}};
    auto after = [&](double nanoseconds) { return clock.by_turns(0, 1e6 + nanoseconds, 0).value(); };
    EXPECT_EQ(after(2e5).times, 0);
    EXPECT_NEAR(after(2e5).all(), 2e5, 2e4);
    EXPECT_EQ(after(3.6e6).times, 1);
    EXPECT_NEAR(after(3.6e6).in_loop, 6e5, 1);
    EXPECT_NEAR(after(3.6e6).all(), 1.1e6, 1);
    EXPECT_NEAR(after(2.9e6).in_loop, 4e5, 1) << "some of the turn was left";
    EXPECT_EQ(after(7.5e6).times, 2);
    EXPECT_FALSE(clock.by_turns(1, 101e6, 0).has_value());
}

// Places 0 and 1 are in functions of their own.
Origins two_functions() {
    Origins origins;
    origins.modules.emplace_back().path = "/no/such/file";
    for (std::uint64_t offset : {0x1000, 0x9000}) origins.places.push_back({0, offset, kNowhere});
    return origins;
}

Origins three_functions() {
    Origins origins = two_functions();
    origins.places.push_back({0, 0x11000, kNowhere});
    return origins;
}

// One thread and ten samples.
Samples ten_samples() {
    Samples samples;
    for (std::uint64_t i = 1; i <= 10; i++) {
        Sample sample;
        sample.place = 0;
        sample.time = i * 1000000;
        sample.period = 1000000;
        samples.threads[0].samples.push_back(sample);
    }
    samples.taken = 10;
    return samples;
}

AccessClock::ThreadClock clock_of(const Samples& samples) {
    Origins origins;
    origins.places.emplace_back();
    return AccessClock(samples, origins, nullptr).thread(0);
}

// With stretches of so many accesses in 100 microseconds.
double stated_error(unsigned stretches, std::uint64_t busy_samples) {
    Samples samples = ten_samples();
    for (unsigned i = 0; i < stretches; i++)
        samples.replays.push_back({0, 100000, 100000, i * std::uint64_t{1000000}, 0});
    samples.taken_busy = busy_samples;
    return clock_of(samples).error;
}

TEST(WatchClock, error_is_larger_on_a_busy_machine_and_largest_where_nothing_was_measured) {
    const double idle = stated_error(8, 0), busy = stated_error(8, 10);
    EXPECT_LT(idle, 0.2);
    EXPECT_GT(busy, 0.25);
    EXPECT_GT(stated_error(8, 5), idle);
    EXPECT_LT(stated_error(8, 5), busy);
    EXPECT_GT(stated_error(0, 0), 1);
}

// A program that does one access per nanosecond, and 70 us less after a sample.
TEST(WatchClock, what_is_lost_after_a_sample_is_measured_by_stretches_that_follow_one) {
    Samples samples = ten_samples();
    for (unsigned i = 0; i < 8; i++)
        for (double length : {100000.0, 300000.0})
            samples.replays.push_back({0, length, length + 20000, i * std::uint64_t{1000000}, 0});
    const double usual = clock_of(samples).lost[3];
    EXPECT_NEAR(usual, 13000, 4000);
    for (std::uint64_t i = 1; i <= 2; i++)
        samples.replays.push_back({0, 180000, 250000, i * 1000000, 0, true});
    const double with_two = clock_of(samples).lost[3];
    EXPECT_GT(with_two, 2 * usual);
    EXPECT_LT(with_two, 65000);
    for (std::uint64_t i = 3; i <= 4; i++)
        samples.replays.push_back({0, 180000, 250000, i * 1000000, 0, true});
    const AccessClock::ThreadClock clock = clock_of(samples);
    EXPECT_NEAR(clock.lost[3], 70000, 5000);
    EXPECT_NEAR(clock.rate[3], 1, 0.02) << "the loop's rate is that of stretches that follow nothing";
    // Nothing is lost at once: a reuse after 20 us came when a quarter or so was done, not before.
    EXPECT_NEAR(clock.since(3, 4e6 + 20000), 6000, 2500);
    EXPECT_NEAR(clock.since(3, 4e6 + 400000), 330000, 15000);
}

// One access per nanosecond. 60 us are lost where a stretch begins at a stop, 12 where it does not.
TEST(WatchClock, stretches_that_begin_without_a_stop_lose_less) {
    Samples samples = ten_samples();
    samples.slow_start = {25000, 30000};
    for (unsigned i = 0; i < 8; i++)
        for (const bool running : {false, true}) {
            const double length = 60000 + 25000 * i;
            Replayed one{0, length, length + (running ? 12000 : 60000), i * std::uint64_t{1000000}, 0};
            one.began_running = running;
            samples.replays.push_back(one);
        }
    EXPECT_NEAR(clock_of(samples).rate[3], 1, 0.03);
}

// A slow loop that was measured, and a sample of another that was not.
TEST(WatchClock, code_that_was_not_measured_may_make_most_of_the_accesses) {
    const Origins origins = two_functions();
    Samples samples = ten_samples();
    for (unsigned i = 0; i < 8; i++)
        samples.replays.push_back({0, 10000, 220000, i * std::uint64_t{1000000}, 0});
    EXPECT_LT(AccessClock(samples, origins, nullptr).thread(0).error, 0.2);
    samples.threads[0].samples[4].place = 1;
    EXPECT_GT(AccessClock(samples, origins, nullptr).thread(0).error, 0.4);
}

// A loop that waits for memory, measured, and code that was not measured: whether that waits, its
// windows tell.
TEST(WatchClock, code_that_finds_its_data_in_caches_is_not_taken_for_a_slow_loop) {
    const Origins origins = two_functions();
    auto rate_of_other = [&](std::uint16_t open) {
        Samples samples = ten_samples();
        for (Sample& sample : samples.threads[0].samples) {
            sample.uses = 500;
            sample.open = 250;
        }
        Sample& other = samples.threads[0].samples[4];
        other.place = 1;
        other.open = open;
        for (unsigned i = 0; i < 8; i++)
            samples.replays.push_back({0, 20000, 100000, i * std::uint64_t{1000000}, 0});
        const AccessClock::ThreadClock clock = AccessClock(samples, origins, nullptr).thread(0);
        EXPECT_LT(clock.rate[0], 0.3);
        return clock.rate[4];
    };
    EXPECT_GT(rate_of_other(5), 1.5);
    EXPECT_LT(rate_of_other(250), 0.4);
    EXPECT_LT(rate_of_other(400), 0.4);
}

// A short loop with full windows, measured itself, is not a third of what misses elsewhere.
TEST(WatchClock, loops_count_for_misses_as_they_count_for_rates) {
    const Origins origins = three_functions();
    auto rate_of_other = [&](bool measures_short_loop) {
        Samples samples = ten_samples();
        for (Sample& sample : samples.threads[0].samples) {
            sample.uses = 100;
            sample.open = 56;
        }
        for (std::size_t i = 0; i < 5; i++) {
            samples.threads[0].samples[i].place = i < 4 ? 1 : 2;
            samples.threads[0].samples[i].uses = 500;
            samples.threads[0].samples[i].open = 10;
        }
        for (unsigned i = 5; i < 10; i++)
            samples.replays.push_back({0, 36000, 200000, i * std::uint64_t{1000000}, 0});
        const Rate::Stretch stretch{8000, 5000};
        for (unsigned i = 0; measures_short_loop && i < 3; i++)
            samples.rates.push_back({1, stretch, stretch, stretch, 1000000});
        return AccessClock(samples, origins, nullptr).thread(0).rate[4];
    };
    const double without = rate_of_other(false);
    EXPECT_GT(without, 1);
    EXPECT_GT(rate_of_other(true), 0.8 * without);
}

// Few uses may miss in a loop that is slow all the same: it waits for something else, and so may code
// that was not measured.
TEST(WatchClock, code_is_not_taken_for_fast_where_few_uses_explain_what_is_slow) {
    const Origins origins = two_functions();
    Samples samples = ten_samples();
    for (Sample& sample : samples.threads[0].samples) {
        sample.uses = 500;
        sample.open = 15;
    }
    Sample& other = samples.threads[0].samples[4];
    other.place = 1;
    other.open = 3;
    for (unsigned i = 0; i < 8; i++)
        samples.replays.push_back({0, 100000, 220000, i * std::uint64_t{1000000}, 0});
    const AccessClock::ThreadClock clock = AccessClock(samples, origins, nullptr).thread(0);
    EXPECT_NEAR(clock.rate[0], 0.5, 0.03);
    EXPECT_GT(clock.rate[4], 0.5);
    EXPECT_LT(clock.rate[4], 0.9);
}

// Two loops that take turns, the first a quarter of the time and four times as fast.
TEST(WatchClock, turns_of_loops_are_told_by_stretches_that_leave_and_by_samples) {
    Origins origins = two_functions();
    for (std::uint32_t place : {0, 1}) origins.labels.emplace_back().place = place;
    Samples samples = ten_samples();
    for (unsigned i = 0; i < 10; i++) {
        Sample& sample = samples.threads[0].samples[i];
        sample.place = i % 4 != 0;
        sample.uses = 100;
        sample.open = sample.place == 0 ? 60 : 10;
        sample.far_label = sample.far_reuse_label = sample.place;
    }
    samples.threads[0].samples[8].far_reuse_label = 1;
    for (std::uint64_t i = 0; i < 8; i++) {
        const std::uint64_t when = i * 1000000;
        samples.replays.push_back({0, 200000, 220000, when, i < 2 ? 1u : 0u});
        samples.replays.push_back({1, 50000, 220000, when, 1});
    }
    const auto turns = AccessClock(samples, origins, nullptr).thread(0).turns;
    EXPECT_NEAR(turns[0].rate, 1, 0.2);
    EXPECT_GT(turns[0].stays, 400000);  // 8 stretches of 0.2 ms, of which two end elsewhere
    EXPECT_LT(turns[0].stays, 900000);
    EXPECT_NEAR(turns[0].leaves / turns[0].stays, 7.0 / 3, 0.3);
    EXPECT_NEAR(turns[0].between / turns[0].leaves, 0.25, 0.05);
    EXPECT_NEAR(turns[0].open, 0.6, 1e-9);
    EXPECT_NEAR(turns[0].open_between, 0.1, 1e-9);
    EXPECT_EQ(turns[8].rate, 0) << "its reuse is in the other loop";
    EXPECT_EQ(turns[1].rate, 0) << "no stretch left that loop";
}

// A loop that samples met once in ten, and other moments half of the time.
TEST(WatchClock, moments_between_samples_tell_which_loop_takes_the_time) {
    const Origins origins = two_functions();
    auto time_of_second = [&](bool with_others) {
        Samples samples = ten_samples();
        samples.threads[0].samples[4].place = 1;
        for (std::uint32_t i = 0; with_others && i < 10; i++)
            samples.threads[0].met.insert(samples.threads[0].met.end(), {{i, 1}, {i, 1}, {i, 0}});
        samples.threads[0].met.push_back({10, 1});  // after the last: of no sample's time
        double whole = 0;
        samples.threads[0].for_places(
            [&](std::size_t, std::uint32_t, double share) { whole += share; });
        EXPECT_NEAR(whole, 10, 1e-9);
        FunctionNames names(origins);
        const std::map<std::string, double> over = time_over_samples(samples, names);
        EXPECT_EQ(over.size(), 2u);
        EXPECT_NEAR(9 * over.at(names.loop(0)) + over.at(names.loop(1)), 10, 1e-9);
        return over.at(names.loop(1));
    };
    EXPECT_NEAR(time_of_second(false), 1, 1e-9);
    EXPECT_GT(time_of_second(true), 2);  // 5.25, if one sample were enough to believe it
    EXPECT_LT(time_of_second(true), 5.25);
}

// Moments in code that no sample met, of the time between two samples in different loops.
TEST(WatchClock, code_that_no_sample_met_is_like_what_was_met_before_it) {
    const Origins origins = three_functions();
    auto time_of_second = [&](bool met_between) {
        Samples samples = ten_samples();
        samples.threads[0].samples[4].place = 1;
        if (met_between) samples.threads[0].met.push_back({5, 0});
        for (unsigned i = 0; i < 30; i++) samples.threads[0].met.push_back({5, 2});
        FunctionNames names(origins);
        const std::map<std::string, double> over = time_over_samples(samples, names);
        EXPECT_EQ(over.size(), 2u);
        EXPECT_NEAR(9 * over.at(names.loop(0)) + over.at(names.loop(1)), 10, 1e-9);
        return over.at(names.loop(1));
    };
    EXPECT_NEAR(time_of_second(false), 1.9, 0.1);
    EXPECT_NEAR(time_of_second(true), 1, 0.05);
}

// A loop that one short sample met, and most moments of the time before a long one.
TEST(WatchClock, a_loop_that_one_short_sample_met_has_the_time_of_its_moments) {
    const Origins origins = two_functions();
    Samples samples = ten_samples();
    auto& all = samples.threads[0].samples;
    all[0].place = 1;
    all[0].time = all[0].period = 100000;
    all[1].period = all[1].time - all[0].time;
    for (std::uint32_t i = 1; i < 10; i++)
        for (unsigned k = 0; k < 9; k++) samples.threads[0].met.push_back({i, i < 3 ? 1u : 0u});
    FunctionNames names(origins);
    const double time = 0.1 * time_over_samples(samples, names).at(names.loop(1));  // milliseconds
    EXPECT_GT(time, 0.8 * 2.7);
    EXPECT_LT(time, 2.8);
}

// Of each sample's period four moments in the second loop were passed over, so that half of the samples
// are in the first, which has a tenth of the time.
TEST(WatchClock, moments_that_were_passed_over_have_their_time) {
    const Origins origins = two_functions();
    Samples samples = ten_samples();
    ThreadSamples& thread = samples.threads[0];
    for (std::uint32_t i = 0; i < 10; i++) {
        thread.samples[i].place = i % 2;
        thread.samples[i].stands_for = thread.samples[i].period * (i % 2 ? 9 : 1) / 5;
        for (unsigned k = 0; k < 4; k++) thread.met.push_back({i, 1});
    }
    FunctionNames names(origins);
    for (const auto& [name, over] : time_over_samples(samples, names)) EXPECT_NEAR(over, 1, 0.01);
    double first = 0, all = 0;
    for (std::size_t i = 0; i < 10; i++) {
        first += thread.samples[i].place == 0 ? time_of(thread.samples, i) : 0;
        all += time_of(thread.samples, i);
    }
    EXPECT_NEAR(first, 0.1 * all, 0.01 * all);
}

// Two of rate 2, and those that end in a loop of rate 0.2 after half the way, or a fifth of it.
TEST(WatchClock, stretches_that_end_in_another_loop_count_without_what_they_made_there) {
    const std::string slow = "slow";
    Measured loop;
    loop.stretches.push_back({1, 200000, 100000});
    loop.stretches.push_back({2, 200000, 100000});
    for (double there : {0.2, 0.5, 0.8})
        loop.stretches.push_back(
            {3, 100000 * (2 * (1 - there) + 0.2 * there), 100000, false, true, true, &slow});
    Measured as_it_is = loop;
    EXPECT_LT(as_it_is.rate_at(2), 1.7);
    loop.correct_those_that_leave({{slow, 0.2}});
    EXPECT_NEAR(loop.rate_at(2), 2, 0.1);
}

// What a later run met and timed belongs to its own samples, not to those of the first run.
TEST(WatchRepeat, a_later_run_comes_after_the_first) {
    Samples samples = ten_samples();
    samples.threads[0].end = 11000000;
    samples.threads[0].met = {{3, 0}};
    samples.replays.push_back({0, 1, 2, 5000000, 0});
    const RunsBefore before(samples, 1);
    ThreadSamples later = ten_samples().threads[0];
    later.end = 12000000;
    later.met = {{4, 1}};
    samples.threads[1] = later;
    samples.replays.push_back({0, 1, 2, 6000000, 0});
    samples.rates.emplace_back().when = 7;
    samples.timed.emplace_back().when = 8;
    EXPECT_EQ(join_later_run(samples, before, 2), 1u);
    ASSERT_EQ(samples.threads.size(), 1u);
    const ThreadSamples& all = samples.threads[0];
    ASSERT_EQ(all.samples.size(), 20u);
    EXPECT_EQ(all.samples[10].time, 12000000u);
    EXPECT_EQ(all.end, 23000000u);
    ASSERT_EQ(all.met.size(), 2u);
    EXPECT_EQ(all.met[1].sample, 14u);
    EXPECT_EQ(all.met[1].place, 1u);
    EXPECT_EQ(samples.replays[0].when, 5000000u);
    EXPECT_EQ(samples.replays[1].when, 17000000u);
    EXPECT_EQ(samples.rates[0].when, 11000007u);
    EXPECT_EQ(samples.timed[0].when, 11000008u);
}

// One loop with strides of a byte and of a line, in turn: two accesses per nanosecond and a half.
TEST(WatchClock, a_loop_is_slower_where_more_of_its_uses_are_open) {
    const Origins origins = two_functions();
    Samples samples = ten_samples();
    std::vector<Sample>& all = samples.threads[0].samples;
    for (unsigned i = 0; i < all.size(); i++) {
        all[i].place = 0;
        all[i].uses = 100;
        all[i].open = i % 2 ? 95 : 5;
    }
    for (unsigned i = 0; i < 12; i++)
        samples.replays.push_back({0, i % 2 ? 50000.0 : 200000.0, 120000, i * std::uint64_t{800000}, 0,
                                   false, 0, i % 2 ? 0.95 : 0.05});
    const AccessClock clock(samples, origins, nullptr);
    const std::vector<double>& rates = clock.thread(0).rate;
    EXPECT_GT(rates[4] / rates[5], 3);
    EXPECT_LT(rates[4] / rates[5], 4.2);
    EXPECT_NEAR(rates[4] + rates[5], 2.5, 0.4);
    // Where stretches do not tell, nothing is made of it.
    for (Replayed& one : samples.replays) one.open = 0.5;
    const AccessClock even(samples, origins, nullptr);
    EXPECT_NEAR(even.thread(0).rate[4] / even.thread(0).rate[5], 1, 0.15);
}

// Rates that differ by chance, as stretches' do, and shares that do.
TEST(WatchClock, what_is_open_by_chance_says_nothing_of_the_rate) {
    Measured loop;
    std::mt19937_64 random(7);
    std::normal_distribution<double> by_chance;
    for (unsigned i = 0; i < 8; i++)
        loop.stretches.push_back({i + 1.0, 100000 * std::exp(0.15 * by_chance(random)), 100000});
    for (auto& one : loop.stretches) one.open = 0.5 + 0.1 * by_chance(random);
    for (double open : {0.3, 0.5, 0.7}) EXPECT_NEAR(loop.by_open(open), 1, 0.08);
    EXPECT_EQ(loop.by_open(-1), 1);
    EXPECT_EQ(Measured{}.by_open(0.5), 1);
}

// Of a fast loop there is no stretch of its own; some of the slow loop's end in it.
TEST(WatchClock, stretches_that_end_in_a_loop_tell_its_rate) {
    const Origins origins = two_functions();
    auto clock_of = [&](bool enters) {
        Samples samples = ten_samples();
        for (unsigned i : {2, 7}) samples.threads[0].samples[i].place = 1;
        for (unsigned i = 0; i < 6; i++)
            samples.replays.push_back({0, 20000, 120000, i * std::uint64_t{1000000}, 0});
        for (unsigned i = 0; enters && i < 3; i++) {
            const double there = 0.3 + 0.2 * i;
            samples.replays.push_back({0, 100000 * (2 * there + 0.2 * (1 - there)), 120000,
                                       (i + 6) * std::uint64_t{1000000}, 1});
        }
        return AccessClock(samples, origins, nullptr).thread(0);
    };
    FunctionNames names(origins);
    ASSERT_NE(names.loop(0), names.loop(1));
    EXPECT_NEAR(clock_of(true).rate[2], 2, 0.7);
    EXPECT_LT(clock_of(false).rate[2], 0.4);
    EXPECT_GT(clock_of(false).error, clock_of(true).error / 2);
}

// A slow loop that stays, and a fast one that no stretch stays in: what each made in those that go from
// one to the other is known, however little of the time that was.
TEST(WatchClock, accesses_of_each_loop_tell_the_rates_of_both) {
    const Origins origins = two_functions();
    Samples samples = ten_samples();
    for (unsigned i : {2, 7}) samples.threads[0].samples[i].place = 1;
    for (unsigned i = 0; i < 6; i++)
        samples.replays.push_back({0, 20000, 120000, i * std::uint64_t{1000000}, 0});
    for (unsigned i = 0; i < 4; i++) {
        const double slow = 1000 * (10 + 10 * i), fast = 200000;  // 0.2 and 3.2 per nanosecond
        const double time = slow / 0.2 + fast / 3.2 + 20000;
        samples.replays.push_back(
            {0, slow + fast, time, (i + 6) * std::uint64_t{1000000}, 1, false, slow});
        samples.replays.push_back(
            {1, slow + fast, time, (i + 6) * std::uint64_t{1000000}, 0, false, fast});
    }
    const auto clock = AccessClock(samples, origins, nullptr).thread(0);
    EXPECT_NEAR(clock.rate[2], 3.2, 0.4);
    EXPECT_NEAR(clock.rate[4], 0.2, 0.02);
}

// Which of two loops a sample meets is chance, unless each goes on for many.
TEST(WatchClock, loops_of_different_rates_that_take_turns_make_the_clock_uncertain) {
    AccessClock::ThreadClock even, turns, phases;
    const std::vector<double> times(40, 1e6);
    for (unsigned i = 0; i < 40; i++) {
        even.made.push_back(1e6);
        turns.made.push_back(i * 7 % 3 == 0 ? 4e6 : 0.2e6);
        phases.made.push_back(i < 20 ? 4e6 : 0.2e6);
    }
    EXPECT_EQ(even.error_by_samples(times), 0);
    EXPECT_GT(turns.error_by_samples(times), 0.15);
    EXPECT_LT(phases.error_by_samples(times), 0.05);
}

}  // namespace
}  // namespace revisit::watch
