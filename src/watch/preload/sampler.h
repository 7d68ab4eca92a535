// What interrupts a thread to take samples: one of three, behind one interface.
//
// A timer of processor time (perf's, down to some ten microseconds); precise events of the
// processor, which tell an address and count accesses; where the kernel lets neither be opened, a POSIX
// timer, which ticks no faster than the kernel's own (4 ms). All of them come as SIGTRAP and wait
// for as long as a handler runs.
#pragma once

#include <signal.h>

#include <initializer_list>

#include "watch/preload/pmu_event.h"
#include "watch/preload/system.h"

namespace revisit::watch {

inline constexpr unsigned kSamplerData = 100, kSecondData = 98;

class Sampler {
 public:
    // Each is closed before it is opened again, and begins disabled.
    bool open_clock() {
        close();
        perf_event_attr attributes;
        memset(&attributes, 0, sizeof attributes);
        attributes.type = PERF_TYPE_SOFTWARE;
        attributes.config = PERF_COUNT_SW_CPU_CLOCK;
        attributes.sample_period = 500000;
        attributes.disabled = 1;
        return first_.open(attributes, kSamplerData);
    }

    bool open_pmu(const PmuSettings& settings, std::uint64_t period) {
        close();
        perf_event_attr attributes;
        int group = -1;
        if (settings.leader.config != 0) {
            fill_attributes(attributes, settings.leader, settings, 0);
            if (!leader_.open(attributes, 0, Event::kSilent)) return give_up();
            group = leader_.file();
        }
        fill_attributes(attributes, settings.event[0], settings, period);
        if (!first_.open(attributes, kSamplerData, Event::kSignals, group)) return give_up();
        if (settings.events > 1) {
            fill_attributes(attributes, settings.event[1], settings, period);
            if (!second_.open(attributes, kSecondData, Event::kSignals, group)) return give_up();
        }
        if (settings.counter.config != 0) {
            fill_attributes(attributes, settings.counter, settings, 0);
            counter_.open(attributes, 0, Event::kSilent);
        }
        if (settings.tells_address) {
            ring_[0] = map(first_, settings);
            if (settings.events > 1) ring_[1] = map(second_, settings);
        }
        is_pmu_ = true;
        counts_ = settings.counts != 0 || counter_.file() >= 0;
        return true;
    }

    bool open_timer(long thread) {
        close();
        sigevent event;
        memset(&event, 0, sizeof event);
        event.sigev_notify = SIGEV_THREAD_ID;
        event.sigev_signo = SIGTRAP;
        event.sigev_value.sival_int = kTimerMark;
        event._sigev_un._tid = static_cast<int>(thread);
        int timer = 0;
        if (system_call(SYS_timer_create, CLOCK_THREAD_CPUTIME_ID, reinterpret_cast<long>(&event),
                        reinterpret_cast<long>(&timer)) != 0)
            return false;
        timer_ = timer;
        return true;
    }

    void enable() { control(true); }
    void disable() { control(false); }

    // To the next sample, from when it is enabled: nanoseconds, or accesses where those are counted.
    void set_period(std::uint64_t period) {
        period_ = period;
        first_.set_period(period);
        second_.set_period(period);
    }

    void close() {
        disable();
        unmap();
        for (Event* event : {&second_, &first_, &counter_, &leader_}) event->close();
        if (timer_ >= 0) system_call(SYS_timer_delete, timer_);
        forget();
    }
    // In a forked child: events are the parent's, timers are not handed down.
    void close_copy() {
        unmap();
        for (Event* event : {&second_, &first_, &counter_, &leader_}) event->close_copy();
        forget();
    }

    bool sent(std::uint64_t data) const { return first_.sent(data) || second_.sent(data); }
    static bool is_tick(const siginfo_t* info) {
        return info->si_code == SI_TIMER && info->si_value.sival_int == kTimerMark;
    }

    bool is_pmu() const { return is_pmu_; }
    bool is_timer() const { return timer_ >= 0; }
    bool counts() const { return counts_; }  // accesses
    std::uint64_t count() const {
        if (!counts_) return 0;
        return counter_.file() >= 0 ? counter_.count() : first_.count() + second_.count();
    }
    // The access that the last signal was about.
    bool newest(PmuSample& sample, std::uint64_t data) {
        return ring_[Event::purpose(data) == kSecondData ? 1 : 0].newest(sample);
    }
    int error() const { return first_.error(); }

 private:
    static constexpr int kTimerMark = 0x7265766b;
    static constexpr std::uint64_t kPage = 4096, kPageMost = 65536;

    bool give_up() {
        close();
        return false;
    }
    void forget() {
        timer_ = -1;
        is_pmu_ = counts_ = false;
        ring_[0] = ring_[1] = PerfRing();
    }
    // One page of data after the kernel's own.
    PerfRing map(const Event& event, const PmuSettings& settings) {
        for (std::uint64_t page = kPage; page <= kPageMost; page *= 4) {
            long at = system_call(SYS_mmap, 0, static_cast<long>(2 * page), 3, 1 /* shared */,
                                  event.file(), 0);
            if (at < 0 && at > -4096) continue;
            auto* control = reinterpret_cast<perf_event_mmap_page*>(at);
            if (control->data_size == 0) {  // pages are larger here
                system_call(SYS_munmap, at, static_cast<long>(2 * page));
                continue;
            }
            mapped_[&event == &second_] = {at, 2 * page};
            return {control, reinterpret_cast<std::byte*>(at) + control->data_offset,
                    control->data_size, settings.raw != 0};
        }
        return {};
    }
    void unmap() {
        for (Mapped& mapped : mapped_) {
            if (mapped.bytes != 0) system_call(SYS_munmap, mapped.at, static_cast<long>(mapped.bytes));
            mapped = {};
        }
    }
    void control(bool on) {
        if (timer_ >= 0) {
            itimerspec when = {};
            if (on)
                when.it_value = {static_cast<time_t>(period_ / 1000000000),
                                 static_cast<long>(period_ % 1000000000)};
            system_call(SYS_timer_settime, timer_, 0, reinterpret_cast<long>(&when), 0);
            return;
        }
        for (Event* event : {&leader_, &counter_, &first_, &second_})
            if (on)
                event->enable();
            else
                event->disable();
    }

    Event first_, second_, leader_, counter_;
    PerfRing ring_[2];
    struct Mapped {
        long at = 0;
        std::uint64_t bytes = 0;
    } mapped_[2];
    long timer_ = -1;
    std::uint64_t period_ = 500000;
    bool is_pmu_ = false, counts_ = false;
};

}  // namespace revisit::watch
