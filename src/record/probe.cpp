#include "record/probe.h"

#include <fmt/format.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <vector>

namespace revisit::record {
namespace {

// More than any processor has.
constexpr int kMostWatchpoints = 16;

int open_event(perf_event_attr& attributes) {
    if (pretends_no("events") ||
        (attributes.type == PERF_TYPE_BREAKPOINT && pretends_no("watchpoints"))) {
        errno = EACCES;
        return -1;
    }
    attributes.size = sizeof attributes;
    attributes.disabled = 1;
    attributes.exclude_kernel = 1;
    attributes.exclude_hv = 1;
    return static_cast<int>(syscall(SYS_perf_event_open, &attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC));
}

// Why an event would not open, in a user's words.
std::string reason(int code) {
    if (code != EACCES && code != EPERM) return std::strerror(code);
    std::ifstream file("/proc/sys/kernel/perf_event_paranoid");
    int level = 0;
    if (file >> level)
        return fmt::format("not permitted: perf_event_paranoid is {}, or a container forbids it",
                           level);
    return "not permitted";
}

}  // namespace

Probe probe_watchpoints() {
    static std::uint64_t watched[kMostWatchpoints];
    std::vector<int> open;
    int code = 0;
    for (std::uint64_t& word : watched) {
        perf_event_attr attributes{};
        attributes.type = PERF_TYPE_BREAKPOINT;
        attributes.bp_type = HW_BREAKPOINT_RW;
        attributes.bp_addr = reinterpret_cast<std::uintptr_t>(&word);
        attributes.bp_len = HW_BREAKPOINT_LEN_8;
        attributes.sample_period = 1;
        int event = open_event(attributes);
        if (event < 0) {
            code = errno;
            break;
        }
        open.push_back(event);
    }
    for (int event : open) close(event);
    if (open.empty()) return {false, reason(code)};
    return {true, fmt::format("{} per thread", open.size())};
}

bool pretends_no(const char* what) {
    const char* text = std::getenv("REVISIT_PRETEND");
    return text != nullptr && std::string("no-") + what == text;
}

Probe probe_clock() {
    perf_event_attr attributes{};
    attributes.type = PERF_TYPE_SOFTWARE;
    attributes.config = PERF_COUNT_SW_CPU_CLOCK;
    attributes.sample_period = 1000000;
    attributes.sigtrap = attributes.remove_on_exec = 1;
    int event = open_event(attributes);
    if (event < 0) return {false, reason(errno)};
    close(event);
    return {true, "perf's processor-time clock"};
}

Probe probe_counters() {
    perf_event_attr attributes{};
    attributes.type = PERF_TYPE_HARDWARE;
    attributes.config = PERF_COUNT_HW_INSTRUCTIONS;
    int event = open_event(attributes);
    if (event < 0) return {false, errno == ENOENT ? "this machine shows none" : reason(errno)};
    close(event);
    return {true, "the kernel opens them"};
}

}  // namespace revisit::record
