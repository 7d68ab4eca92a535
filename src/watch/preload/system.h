// System calls and machine registers as the sampler uses them: no libc, no errno, no allocation, so
// that all of it may run in a signal handler of any program.
#pragma once

#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <time.h>

#include <cstddef>
#include <cstdint>

#include "watch/preload/settings.h"

namespace revisit::watch {

// The result, or minus the error's number.
inline long system_call(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0,
                        long f = 0) {
#if defined(__aarch64__)
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;
    register long x5 __asm__("x5") = f;
    __asm__ volatile("svc 0"
                     : "+r"(x0)
                     : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                     : "memory", "cc");
    return x0;
#else
    long result;
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
#endif
}

inline std::uint64_t time_by(long clock) {
    timespec now = {};
    system_call(SYS_clock_gettime, clock, reinterpret_cast<long>(&now));
    return static_cast<std::uint64_t>(now.tv_sec) * 1000000000 +
           static_cast<std::uint64_t>(now.tv_nsec);
}

inline std::uint64_t thread_time() {
    return time_by(CLOCK_THREAD_CPUTIME_ID);
}
// Of another thread of this process, by the number that the kernel has for it.
inline std::uint64_t thread_time_of(long identity) {
    return time_by(~identity * 8 | 6);
}

inline void* map_memory(std::size_t bytes, int protection) {
    long at = system_call(SYS_mmap, 0, static_cast<long>(bytes), protection,
                          0x22 /* private, anonymous */, -1, 0);
    return at < 0 && at > -4096 ? nullptr : reinterpret_cast<void*>(at);
}

// A perf event of the calling thread, with a number out of the way of the program's own files.
// Its signals carry what it is for and a number of its own: a copy of the file in a forked child keeps
// an event alive that was closed here, and what it tells then must not be taken for its successor's.
class Event {
 public:
    enum Mode : bool { kSilent, kSignals };
    static inline std::uint64_t refuse;  // bits of Refuse

    bool open(perf_event_attr& attributes, unsigned purpose, Mode mode = kSignals, int group = -1) {
        close();
        complete(attributes, purpose, mode);
        period_ = attributes.sample_period;
        bool refused = refuse & kRefuseEvents ||
                       (refuse & kRefuseWatchpoints && attributes.type == PERF_TYPE_BREAKPOINT);
        long low = refused ? -13 /* EACCES */
                           : system_call(SYS_perf_event_open, reinterpret_cast<long>(&attributes), 0,
                                         -1, group, PERF_FLAG_FD_CLOEXEC);
        if (low < 0) {
            error_ = static_cast<int>(-low);
            return false;
        }
        long high = system_call(SYS_fcntl, low, 1030 /* F_DUPFD_CLOEXEC */, 600);
        if (high >= 0) {
            system_call(SYS_close, low);
            low = high;
        }
        file_ = static_cast<int>(low);
        identity_ = identity();
        return true;
    }
    // Puts an open watchpoint on another word, at a tenth of what opening one takes. The countdown of
    // touches starts anew only if the period is set while the event is off. All but the place must be
    // as the kernel has it, the period too.
    bool move(perf_event_attr& attributes, unsigned purpose) {
        if (file_ < 0 || identity() != identity_) return open(attributes, purpose);
        std::uint64_t period = attributes.sample_period, before = data_;
        disable();
        complete(attributes, purpose, kSignals);
        attributes.sample_period = period_;
        attributes.disabled = 1;
        bool moved = system_call(SYS_ioctl, file_, static_cast<long>(PERF_EVENT_IOC_MODIFY_ATTRIBUTES),
                                 reinterpret_cast<long>(&attributes)) == 0 &&
                     set_period(period);
        attributes.sample_period = period;
        attributes.disabled = 0;
        if (!moved) {
            data_ = before;
            return open(attributes, purpose);
        }
        enable();
        return true;
    }
    // The program may have closed the file and opened another in its place.
    void close() {
        if (file_ >= 0 && identity() == identity_) {
            disable();  // for copies that outlive this one
            system_call(SYS_close, file_);
        }
        file_ = -1;
    }
    // In a forked child, where the event is still the parent's.
    void close_copy() {
        if (file_ >= 0 && identity() == identity_) system_call(SYS_close, file_);
        file_ = -1;
    }
    bool sent(std::uint64_t data) const { return file_ >= 0 && data == data_; }
    static unsigned purpose(std::uint64_t data) { return data & 255; }
    void enable() { control(PERF_EVENT_IOC_ENABLE); }
    void disable() { control(PERF_EVENT_IOC_DISABLE); }
    bool set_period(std::uint64_t period) {
        if (file_ < 0 || system_call(SYS_ioctl, file_, static_cast<long>(PERF_EVENT_IOC_PERIOD),
                                     reinterpret_cast<long>(&period)) != 0)
            return false;
        period_ = period;
        return true;
    }
    std::uint64_t count() const {
        std::uint64_t value = 0;
        if (file_ < 0 || system_call(SYS_read, file_, reinterpret_cast<long>(&value), sizeof value) !=
                             static_cast<long>(sizeof value))
            return 0;
        return value;
    }
    int file() const { return file_; }
    int error() const { return error_; }  // of the last open that failed

 private:
    void complete(perf_event_attr& attributes, unsigned purpose, Mode mode) {
        data_ = purpose | ++opened_ << 8;
        attributes.size = sizeof attributes;
        attributes.exclude_hv = 1;
        if (attributes.type == PERF_TYPE_BREAKPOINT || attributes.config2 == 0)  // see pmu_event.h
            attributes.exclude_kernel = 1;
        if (mode == kSignals) {
            attributes.sig_data = data_;
            attributes.sigtrap = 1;
            attributes.remove_on_exec = 1;
        }
    }
    void control(unsigned long request) {
        if (file_ >= 0) system_call(SYS_ioctl, file_, static_cast<long>(request), 0);
    }
    std::uint64_t identity() const {
        std::uint64_t id = 0;
        if (system_call(SYS_ioctl, file_, static_cast<long>(PERF_EVENT_IOC_ID),
                        reinterpret_cast<long>(&id)) < 0)
            return 0;
        return id;
    }
    int file_ = -1, error_ = 0;
    std::uint64_t identity_ = 0, data_ = 0, opened_ = 0, period_ = 0;
};

}  // namespace revisit::watch
