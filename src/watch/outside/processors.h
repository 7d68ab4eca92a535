// Which processor we run on beside a sampled thread.
//
// Where another one is idle, that one: the timer wakes us where the thread runs, as a rule; then the
// thread cannot come to its stop while it is waited for (60 us instead of 10), and when it goes on it
// is moved to another processor, away from what it has in its caches. Where all are busy, we stay: the
// thread's processor is free while it stands, and elsewhere we would keep a second one waiting (two
// compilers on two cores: 12 % longer instead of 5 %).
//
// While the thread stands its processor is idle, and what it has written is in the caches there. Read
// from another one, each of these lines is shared afterwards, and the thread must ask for it again
// before it writes: increments at random in 512 KiB went 15 times slower at first and lost 120 us after
// each stop. Read from where the thread ran, it is 4 times slower and loses 40 us (Xeon, virtual
// machine).
#pragma once

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace revisit::watch::outside {

class Processors {
 public:
    Processors() : count_(sysconf(_SC_NPROCESSORS_ONLN)) {
        CPU_ZERO(&allowed_);
        several_ = sched_getaffinity(0, sizeof allowed_, &allowed_) == 0 && CPU_COUNT(&allowed_) > 1;
        load_ = open("/proc/loadavg", O_RDONLY | O_CLOEXEC);
    }
    ~Processors() {
        if (several_) sched_setaffinity(0, sizeof allowed_, &allowed_);
        if (load_ >= 0) close(load_);
    }
    Processors(const Processors&) = delete;

    // Whether more threads want to run than there are processors, ours included. 1.5 us.
    bool are_busy() const {
        if (!several_) return true;
        char text[128] = {};
        if (load_ < 0 || pread(load_, text, sizeof text - 1, 0) <= 0) return false;
        const char* running = text;  // "0.20 0.18 0.12 3/80 11206"
        for (int field = 0; field < 3 && running != nullptr; field++) {
            running = std::strchr(running, ' ');
            if (running != nullptr) running++;
        }
        return running != nullptr && std::strtol(running, nullptr, 10) > count_;
    }

    // … again and again: one thread of the kernel, for a moment, is no crowd.
    bool are_crowded() {
        crowd_ = are_busy() ? std::min(crowd_ + 1, 3) : std::max(crowd_ - 1, 0);
        return crowd_ >= 2;
    }

    void leave(int processor) const {
        if (!several_ || processor < 0 || processor >= CPU_SETSIZE || sched_getcpu() != processor)
            return;
        cpu_set_t others = allowed_;
        CPU_CLR(processor, &others);
        sched_setaffinity(0, sizeof others, &others);
        sched_setaffinity(0, sizeof allowed_, &allowed_);  // free to move again: others may be busy
    }

    // What `work` gives, done on the processor of a thread that stands.
    template <class Work>
    auto on(int processor, Work&& work) const {
        const bool moves =
            several_ && processor >= 0 && processor < CPU_SETSIZE && CPU_ISSET(processor, &allowed_);
        if (moves) {
            cpu_set_t one;
            CPU_ZERO(&one);
            CPU_SET(processor, &one);
            sched_setaffinity(0, sizeof one, &one);
        }
        auto result = work();
        if (moves) leave(processor);
        return result;
    }

 private:
    cpu_set_t allowed_;
    bool several_ = false;
    long count_;
    int crowd_ = 0;
    int load_ = -1;
};

}  // namespace revisit::watch::outside
