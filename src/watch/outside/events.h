// The perf events of one thread of another process: its processor time, what wakes us when a sample is
// due, ticks that note where it is, and its watchpoints.
//
// All are opened on the thread from outside and write records into one ring, so that one file per
// thread is waited on; the program gets no signal from any. The clock counts the thread's processor
// time and leads the group, so that every record carries its value (PERF_SAMPLE_READ). The watchpoints
// fire once (PERF_EVENT_IOC_REFRESH 1) and are then off: a word that is touched in a hot loop costs one
// trap. They are opened anew for each sample, 18 us: those moved by PERF_EVENT_IOC_MODIFY_ATTRIBUTES
// from outside do not fire again (1 of 300; aarch64, Linux 6.18).
//
// An event that is opened or enabled while its thread runs does not begin before the thread is next
// put on a processor, which on an idle machine may be never (580 of 610; x86_64, Linux 6.18). So the
// thread should stand for that, and a timer that is put off stays on: it is given another period, which
// holds at once for a thread that runs as well (all of 76 000).
#pragma once

#include <linux/perf_event.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>

namespace revisit::watch::outside {

// Every thread has a handful of files.
void allow_many_files();

class EventFile {
 public:
    EventFile() = default;
    explicit EventFile(int file) : file_(file) {}
    EventFile(EventFile&& other) noexcept : file_(std::exchange(other.file_, -1)) {}
    EventFile& operator=(EventFile&& other) noexcept {
        std::swap(file_, other.file_);
        return *this;
    }
    ~EventFile();
    int get() const { return file_; }
    explicit operator bool() const { return file_ >= 0; }
    void close() { *this = EventFile(); }

 private:
    int file_ = -1;
};

// Of the thread, when a record was written.
struct Moment {
    std::uint64_t time = 0;                    // of the thread's clock
    const std::uint64_t* registers = nullptr;  // as Machine::kSampledRegisters has them; null = none
    std::span<const std::uint8_t> stack;       // from the stack pointer up
};
struct Trap : Moment {
    std::uint64_t word = 0;  // that was watched
};
struct Fired : Moment {
    int processor = -1;
};

class TaskEvents {
 public:
    static constexpr unsigned kWatchpoints = 4;
    static constexpr std::uint64_t kStackBytes = 2048, kTimerStackBytes = 1024;

    // What the kernel may refuse, simulated for tests: bits of Refuse (settings.h).
    static inline std::uint64_t refuse = 0;

    ~TaskEvents() { close(); }
    // 0, or the error's number. The clock goes on from there.
    int open(pid_t thread, std::uint64_t clock = 0);
    void close();
    bool is_open() const { return static_cast<bool>(timer_); }
    int file() const { return timer_.get(); }  // readable when there is a record

    std::uint64_t clock() const;                       // nanoseconds of processor time
    bool gives_state() const { return gives_state_; }  // when the timer fires

    // The timer fires after so much processor time of user code. It is reported once, with the thread's
    // state unless the ring is small.
    void set_timer(std::uint64_t nanoseconds);

    // From now on the thread's place is noted every so often, for take_records; nobody is woken for it.
    void set_ticks(std::uint64_t nanoseconds);

    // Fires once, at the `touches`-th instruction that touches the aligned word. 0, or the error.
    int set_watchpoint(unsigned which, std::uint64_t word, std::uint64_t touches);
    void clear_watchpoint(unsigned which) { watchpoint_[which].close(); }

    struct Takers {
        std::function<void(const Fired&)> timer;
        std::function<void(const Trap&)> trap;
        std::function<void()> mapped;                    // a file with code was
        std::function<void(pid_t process)> forked = {};  // its own process: a thread
        std::function<void()> executed = {};
        std::function<void(std::uint64_t pc)> tick = {};
    };
    void take_records(const Takers& takers);

 private:
    int open_event(perf_event_attr& attributes, EventFile& to, bool in_group = true);
    int open_timer(bool with_state);
    bool map_ring();
    void unmap_ring();
    void timer_fired();

    pid_t thread_ = 0;
    std::uint64_t before_ = 0;  // on the clock when it was opened
    EventFile clock_, timer_, ticks_, watchpoint_[kWatchpoints];
    std::uint64_t timer_id_ = 0, timer_period_ = 0, ticks_id_ = 0;
    bool timer_fired_ = false;  // since it was set
    bool gives_state_ = false;
    int timer_left_ = 0;  // times that it still fires, as far as we have seen
    perf_event_mmap_page* ring_ = nullptr;
    std::size_t ring_bytes_ = 0;
    std::uint64_t stack_bytes_ = kStackBytes;
};

}  // namespace revisit::watch::outside
