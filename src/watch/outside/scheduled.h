// What the scheduler counts of a thread.
#pragma once

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/types.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>

namespace revisit::watch::outside {

struct Scheduled {
    std::uint64_t time = 0, switches = 0;  // nanoseconds it ran; how often it was put on a processor
};

inline Scheduled scheduled(pid_t process, pid_t thread) {
    char text[96] = {};
    int file =
        open(fmt::format("/proc/{}/task/{}/schedstat", process, thread).c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) return {};
    ssize_t got = read(file, text, sizeof text - 1);
    close(file);
    if (got <= 0) return {};
    char* next = text;
    Scheduled out;
    out.time = std::strtoull(next, &next, 10);
    std::strtoull(next, &next, 10);  // nanoseconds it waited
    out.switches = std::strtoull(next, &next, 10);
    return out;
}

}  // namespace revisit::watch::outside
