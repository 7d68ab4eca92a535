// The perf events of a thread, on a process that only computes.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <string>
#include <vector>

#include "watch/outside/events.h"
#include "watch/outside/machine.h"
#include "watch/outside/remote_memory.h"

namespace revisit::watch::outside {
namespace {

// A child that computes from when it is told to.
class Spinner {
 public:
    Spinner() {
        int ends[2];
        if (pipe(ends) != 0) return;
        child_ = fork();
        if (child_ == 0) {
            char told = 0;
            if (read(ends[0], &told, 1) != 1) _exit(1);
            volatile unsigned n = 0;
            for (;;) static_cast<void>(n);
        }
        ::close(ends[0]);
        tell_ = ends[1];
    }
    ~Spinner() {
        ::close(tell_);
        if (child_ <= 0) return;
        kill(child_, SIGKILL);
        waitpid(child_, nullptr, 0);
    }
    pid_t pid() const { return child_; }
    bool go() const { return write(tell_, "g", 1) == 1; }
    bool stop() const {
        int status = 0;
        return kill(child_, SIGSTOP) == 0 && waitpid(child_, &status, WUNTRACED) == child_ &&
               WIFSTOPPED(status);
    }
    void go_on() const { kill(child_, SIGCONT); }

 private:
    pid_t child_ = -1;
    int tell_ = -1;
};

// Events of a thread that is switched often are closed for a while: its clock must not begin anew.
TEST(WatchEvents, a_clock_goes_on_from_where_it_is_said_to) {
    constexpr std::uint64_t kBefore = 7000000000, kPeriod = 100000;  // nanoseconds
    Spinner child;
    ASSERT_GT(child.pid(), 0);
    TaskEvents events;
    if (int error = events.open(child.pid(), kBefore))
        GTEST_SKIP() << "no perf events: error " << error;
    events.set_timer(kPeriod);
    ASSERT_TRUE(child.go());
    std::uint64_t fired = 0;
    while (fired == 0 && events.clock() < 2 * kBefore)
        events.take_records({[&](const Fired& one) { fired = one.time; }, [](const Trap&) {}, [] {}});
    EXPECT_GE(fired, kBefore + kPeriod / 2);
    EXPECT_GE(events.clock(), fired);
    events.open(child.pid());
    EXPECT_LT(events.clock(), kBefore);
}

// A stretch may begin there without a stop: where the thread is, and what is on its stack.
TEST(WatchEvents, the_timer_tells_the_state_of_the_thread) {
    constexpr std::uint64_t kPeriod = 100000, kPatience = 3000000000;  // nanoseconds
    Spinner child;
    ASSERT_GT(child.pid(), 0);
    TaskEvents events;
    if (int error = events.open(child.pid())) GTEST_SKIP() << "no perf events: error " << error;
    if (!events.gives_state()) GTEST_SKIP() << "the ring is small";
    events.set_timer(kPeriod);
    ASSERT_TRUE(child.go());
    Machine::State state;
    std::vector<std::uint8_t> stack;
    const auto note = [&](const Fired& fired) {
        ASSERT_NE(fired.registers, nullptr);
        Machine::read_state(fired.registers, state);
        stack.assign(fired.stack.begin(), fired.stack.end());
    };
    while (stack.empty() && events.clock() < kPatience)
        events.take_records({note, [](const Trap&) {}, [] {}});
    ASSERT_TRUE(child.stop());
    EXPECT_EQ(stack.size(), TaskEvents::kTimerStackBytes);
    // The child was forked from here and spins: its code and its stack are where ours are.
    std::ifstream maps("/proc/" + std::to_string(child.pid()) + "/maps");
    unsigned found = 0;
    for (std::string line; std::getline(maps, line);) {
        const std::uint64_t low = std::stoull(line, nullptr, 16),
                            high = std::stoull(line.substr(line.find('-') + 1), nullptr, 16);
        auto holds = [&](std::uint64_t address) { return low <= address && address < high; };
        const std::string rights = line.substr(line.find(' ') + 1, 3);
        found += (holds(state.pc) && rights[2] == 'x') +
                 (holds(Machine::stack_top(state)) && rights == "rw-");
    }
    EXPECT_EQ(found, 2u);
    std::vector<std::uint8_t> now(stack.size());
    ASSERT_TRUE(RemoteMemory::read(child.pid(), Machine::stack_top(state), now.data(), now.size()));
    EXPECT_TRUE(std::equal(now.end() - 256, now.end(), stack.end() - 256)) << "callers' frames";
}

// So that a process need not be stopped when it forks.
TEST(WatchEvents, a_fork_is_reported) {
    TaskEvents events;
    if (int error = events.open(0)) GTEST_SKIP() << "no perf events: error " << error;
    events.set_timer(1000000000);  // records come while it is on
    pid_t child = fork();
    if (child == 0) _exit(0);
    waitpid(child, nullptr, 0);
    pid_t reported = 0;
    events.take_records(
        {[](const Fired&) {}, [](const Trap&) {}, [] {}, [&](pid_t process) { reported = process; }});
    EXPECT_EQ(reported, child);
}

// A sampled thread runs on while its next sample is put off, by microseconds: the timer must not wait
// until the thread is put on a processor again, which on an idle machine it is not for seconds.
TEST(WatchEvents, a_timer_that_is_set_while_the_thread_runs_fires_and_is_reported_once) {
    constexpr std::uint64_t kPeriod = 100000, kPatience = 3000000;  // nanoseconds of the child's
    Spinner child;
    ASSERT_GT(child.pid(), 0);
    TaskEvents events;
    if (int error = events.open(child.pid())) GTEST_SKIP() << "no perf events: error " << error;
    ASSERT_TRUE(child.go());
    unsigned fired = 0;
    const auto take = [&] {
        events.take_records({[&](const Fired&) { fired++; }, [](const Trap&) {}, [] {}});
    };
    for (unsigned round = 1; round <= 200; round++) {
        ASSERT_TRUE(child.stop());
        take();
        fired = 0;
        events.set_timer(1000 * kPeriod);
        child.go_on();
        const std::uint64_t stood = events.clock();
        while (events.clock() == stood) {  // until it runs
        }
        events.set_timer(kPeriod);
        const std::uint64_t since = events.clock();
        while (fired == 0 && events.clock() < since + kPatience) take();
        take();  // we may have been away
        ASSERT_EQ(fired, 1u) << "in round " << round;
    }
    const std::uint64_t since = events.clock();
    while (events.clock() < since + 5 * kPeriod) take();
    EXPECT_EQ(fired, 1u) << "it is reported again";
}

}  // namespace
}  // namespace revisit::watch::outside
