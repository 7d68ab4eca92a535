#include "watch/outside/events.h"

#include <linux/hw_breakpoint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#include "watch/outside/machine.h"
#include "watch/samples/settings.h"

namespace revisit::watch::outside {

constexpr std::uint64_t kLongPeriod = 1000000000;  // nanoseconds

void allow_many_files() {
    rlimit limit{};
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

EventFile::~EventFile() {
    if (file_ >= 0) ::close(file_);
}

int TaskEvents::open_event(perf_event_attr& attributes, EventFile& to, bool in_group) {
    attributes.size = sizeof attributes;
    attributes.exclude_hv = 1;
    attributes.exclude_kernel = 1;
    if (in_group) attributes.read_format = PERF_FORMAT_GROUP;
    bool refused = refuse & kRefuseEvents ||
                   (refuse & kRefuseWatchpoints && attributes.type == PERF_TYPE_BREAKPOINT);
    if (refused) return EACCES;
    long file = syscall(SYS_perf_event_open, &attributes, thread_, -1,
                        in_group && clock_ ? clock_.get() : -1, PERF_FLAG_FD_CLOEXEC);
    if (file < 0) return errno;
    to = EventFile(static_cast<int>(file));
    return 0;
}

int TaskEvents::open(pid_t thread, std::uint64_t before) {
    close();
    before_ = before;
    thread_ = thread;
    perf_event_attr clock{};
    clock.type = PERF_TYPE_SOFTWARE;
    clock.config = PERF_COUNT_SW_TASK_CLOCK;
    if (int error = open_event(clock, clock_)) return error;
    int error = open_timer(true);
    if (error == 0 && stack_bytes_ < kStackBytes) {
        unmap_ring();
        error = open_timer(false);
    }
    if (error != 0) close();
    return error;
}

int TaskEvents::open_timer(bool with_state) {
    perf_event_attr timer{};
    timer.type = PERF_TYPE_SOFTWARE;
    timer.config = PERF_COUNT_SW_CPU_CLOCK;
    timer.sample_period = timer_period_ = kLongPeriod;
    timer_left_ = 0;
    timer.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_CPU | PERF_SAMPLE_READ;
    gives_state_ = with_state;
    if (with_state) {
        timer.sample_type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
        timer.sample_regs_user = Machine::kSampledRegisters;
        timer.sample_stack_user = kTimerStackBytes;
    }
    timer.disabled = 1;
    timer.wakeup_events = 1;
    timer.mmap = timer.mmap2 = timer.task = timer.comm = timer.comm_exec = 1;
    timer_.close();
    if (int error = open_event(timer, timer_)) return error;
    return ioctl(timer_.get(), PERF_EVENT_IOC_ID, &timer_id_) == 0 && map_ring() ? 0 : errno;
}

// Smaller where the user's locked memory is used up, by other threads.
bool TaskEvents::map_ring() {
    auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    for (std::size_t pages = 4; pages > 0; pages /= 4) {
        ring_bytes_ = (1 + pages) * page;
        void* at = mmap(nullptr, ring_bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, timer_.get(), 0);
        if (at == MAP_FAILED) continue;
        ring_ = static_cast<perf_event_mmap_page*>(at);
        stack_bytes_ = pages == 1 && page <= 4096 ? kStackBytes / 2 : kStackBytes;
        return true;
    }
    return false;
}

void TaskEvents::unmap_ring() {
    if (ring_ != nullptr) munmap(ring_, ring_bytes_);
    ring_ = nullptr;
}

void TaskEvents::close() {
    for (EventFile& one : watchpoint_) one.close();
    unmap_ring();
    ticks_.close();
    timer_.close();
    clock_.close();
}

std::uint64_t TaskEvents::clock() const {
    std::uint64_t values[3 + kWatchpoints] = {};  // their number, and the clock's first
    if (!clock_ || ::read(clock_.get(), values, sizeof values) < 16) return 0;
    return before_ + values[1];
}

// Each time that it fires takes the thread some 10 us, and we may be busy for many milliseconds: after
// a few times it is off, until it is set at a stop.
void TaskEvents::set_timer(std::uint64_t nanoseconds) {
    constexpr int kTimes = 4;
    if (!timer_) return;
    timer_fired_ = false;
    timer_period_ = nanoseconds;
    ioctl(timer_.get(), PERF_EVENT_IOC_PERIOD, &timer_period_);
    if (timer_left_ < kTimes) ioctl(timer_.get(), PERF_EVENT_IOC_REFRESH, kTimes - timer_left_);
    timer_left_ = kTimes;
}

// It goes on with its period, and each time interrupts the thread: a short one is made long.
void TaskEvents::timer_fired() {
    constexpr std::uint64_t kShort = 200000;  // nanoseconds; as a rule we come 50 us after it fired
    timer_fired_ = true;
    if (timer_period_ >= kShort) return;
    timer_period_ = kLongPeriod;
    ioctl(timer_.get(), PERF_EVENT_IOC_PERIOD, &timer_period_);
}

// Not of the clock's group: every event of it is read for every record. A small ring is left to traps.
void TaskEvents::set_ticks(std::uint64_t nanoseconds) {
    if (ticks_) {
        ioctl(ticks_.get(), PERF_EVENT_IOC_PERIOD, &nanoseconds);
        return;
    }
    if (!timer_ || stack_bytes_ < kStackBytes) return;
    perf_event_attr ticks{};
    ticks.type = PERF_TYPE_SOFTWARE;
    ticks.config = PERF_COUNT_SW_CPU_CLOCK;
    ticks.sample_period = nanoseconds;
    ticks.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP;
    ticks.remove_on_exec = 1;
    EventFile event;
    if (open_event(ticks, event, false) == 0 &&
        ioctl(event.get(), PERF_EVENT_IOC_ID, &ticks_id_) == 0 &&
        ioctl(event.get(), PERF_EVENT_IOC_SET_OUTPUT, timer_.get()) == 0)
        ticks_ = std::move(event);
}

int TaskEvents::set_watchpoint(unsigned which, std::uint64_t word, std::uint64_t touches) {
    perf_event_attr attributes{};
    attributes.type = PERF_TYPE_BREAKPOINT;
    attributes.bp_type = HW_BREAKPOINT_RW;
    attributes.bp_addr = word;
    attributes.bp_len = HW_BREAKPOINT_LEN_8;
    attributes.sample_period = touches;
    attributes.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_ADDR | PERF_SAMPLE_READ |
                             PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
    attributes.sample_regs_user = Machine::kSampledRegisters;
    attributes.sample_stack_user = static_cast<std::uint32_t>(stack_bytes_);
    attributes.disabled = 1;
    attributes.wakeup_events = 1;
    attributes.remove_on_exec = 1;
    EventFile& event = watchpoint_[which];
    event.close();
    if (int error = open_event(attributes, event)) return error;
    if (ioctl(event.get(), PERF_EVENT_IOC_SET_OUTPUT, timer_.get()) != 0 ||
        ioctl(event.get(), PERF_EVENT_IOC_REFRESH, 1) != 0) {
        int error = errno;
        event.close();
        return error;
    }
    return 0;
}

namespace {

// The words of a record, one after the other, up to its end.
class Words {
 public:
    Words(const std::uint8_t* at, std::size_t bytes) : at_(at), left_(bytes) {}
    std::uint64_t next() {
        std::uint64_t value = 0;
        if (const std::uint8_t* at = bytes(8)) std::memcpy(&value, at, 8);
        return value;
    }
    const std::uint8_t* bytes(std::uint64_t count) {
        if (count > left_) {
            left_ = 0;
            return nullptr;
        }
        at_ += count;
        left_ -= count;
        return at_ - count;
    }

 private:
    const std::uint8_t* at_;
    std::size_t left_;
};

std::uint64_t group_clock(Words& words) {
    std::uint64_t count = words.next(), clock = words.next();
    if (count > 1) words.bytes(8 * (count - 1));
    return clock;
}

void read_state(Words& words, Moment& moment) {
    constexpr auto kRegisters = static_cast<unsigned>(std::popcount(Machine::kSampledRegisters));
    if (words.next() != PERF_SAMPLE_REGS_ABI_64) return;
    moment.registers = reinterpret_cast<const std::uint64_t*>(words.bytes(8 * kRegisters));
    std::uint64_t size = words.next();
    const std::uint8_t* stack = words.bytes(size);
    std::uint64_t used = size != 0 ? words.next() : 0;
    if (stack != nullptr && used <= size) moment.stack = {stack, used};
}

}  // namespace

void TaskEvents::take_records(const Takers& takers) {
    if (ring_ == nullptr) return;
    const auto* data = reinterpret_cast<const std::uint8_t*>(ring_) + ring_->data_offset;
    std::uint64_t size = ring_->data_size, tail = ring_->data_tail;
    std::uint64_t head = __atomic_load_n(&ring_->data_head, __ATOMIC_ACQUIRE);
    alignas(8) static std::uint8_t whole[16384];
    while (tail < head) {
        perf_event_header header;
        std::memcpy(&header, data + tail % size, sizeof header);  // records are multiples of 8 bytes
        if (header.size < sizeof header || header.size > sizeof whole) {
            tail = head;
            break;
        }
        for (std::uint64_t done = 0; done < header.size;) {  // it may wrap
            std::uint64_t at = (tail + done) % size,
                          part = std::min<std::uint64_t>(header.size - done, size - at);
            std::memcpy(whole + done, data + at, part);
            done += part;
        }
        tail += header.size;
        __atomic_store_n(&ring_->data_tail, tail, __ATOMIC_RELEASE);
        Words words(whole + sizeof header, header.size - sizeof header);
        if (header.type == PERF_RECORD_MMAP2) takers.mapped();
        if (header.type == PERF_RECORD_COMM && header.misc & PERF_RECORD_MISC_COMM_EXEC &&
            takers.executed)
            takers.executed();
        if (header.type == PERF_RECORD_FORK && takers.forked)
            takers.forked(static_cast<pid_t>(words.next() & 0xffffffff));
        if (header.type != PERF_RECORD_SAMPLE) continue;
        const std::uint64_t event = words.next();
        if (event == timer_id_) {
            timer_left_--;
            if (timer_fired_) continue;
            timer_fired();
            Fired fired;
            fired.processor = static_cast<int>(words.next() & 0xffffffff);
            fired.time = before_ + group_clock(words);
            if (gives_state_) read_state(words, fired);
            takers.timer(fired);
        } else if (ticks_ && event == ticks_id_)
            takers.tick(words.next());
        else {
            Trap trap;
            trap.word = words.next();
            trap.time = before_ + group_clock(words);
            read_state(words, trap);
            takers.trap(trap);
        }
    }
    __atomic_store_n(&ring_->data_tail, tail, __ATOMIC_RELEASE);
}

}  // namespace revisit::watch::outside
