// The perf events of a thread, on a process that only computes.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "watch/outside/events.h"

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
        events.take_records(
            {[&](std::uint64_t time, int) { fired = time; }, [](const Trap&) {}, [] {}});
    EXPECT_GE(fired, kBefore + kPeriod / 2);
    EXPECT_GE(events.clock(), fired);
    events.open(child.pid());
    EXPECT_LT(events.clock(), kBefore);
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
    events.take_records({[](std::uint64_t, int) {}, [](const Trap&) {}, [] {},
                         [&](pid_t process) { reported = process; }});
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
        events.take_records({[&](std::uint64_t, int) { fired++; }, [](const Trap&) {}, [] {}});
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
