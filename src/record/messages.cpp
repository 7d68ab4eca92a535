#include "record/messages.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <sstream>
#include <string_view>
#include <utility>

namespace revisit::record {
namespace {

constexpr std::size_t kMostText = std::size_t{1} << 20;

// What valgrind's core says when it ends a program that would have gone on.
constexpr std::array<std::string_view, 8> kFatal = {
    "the 'impossible' happened",  // an assertion of its own, or of VEX
    "debuginfo reader",           // debug information that it cannot read
    "Assertion",
    "FATAL:",
    "Fatal error",
    "VEX temporary storage exhausted",
    "Valgrind's memory management: out of memory",
    "does not support general clone()",
};

// An instruction that valgrind does not know is a SIGILL to the program, which may expect one: it fails
// only where the program ends by it. The decoder says which bytes they are, without a process, and
// nothing about those that are undefined on every processor (__builtin_trap).
constexpr std::string_view kUnrecognised = "valgrind: Unrecognised instruction";
constexpr std::string_view kEndedByIt = "Process terminating with default action of signal 4 ";

struct UnknownInstruction {
    std::optional<std::string> decoder, mine;

    void decoder_says(const std::string& line) { decoder = line; }
    void is_of_another() { decoder.reset(); }
    void is_mine() { mine = std::exchange(decoder, std::nullopt); }
};

}  // namespace

Messages::Messages() : fd_(memfd_create("revisit-messages", MFD_CLOEXEC)) {}

Messages::~Messages() {
    if (fd_ >= 0) close(fd_);
}

std::string Messages::path() const {
    return fd_ < 0 ? "" : fmt::format("/proc/{}/fd/{}", getpid(), fd_);
}

std::string Messages::text() const {
    std::string text(kMostText, '\0');
    const ssize_t got = fd_ < 0 ? 0 : pread(fd_, text.data(), text.size(), 0);
    text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    return text;
}

std::optional<std::string> valgrind_failure(const std::string& messages, pid_t pid) {
    const std::string mine = fmt::format("=={}== ", pid), mine_too = fmt::format("--{}-- ", pid);
    std::istringstream lines(messages);
    UnknownInstruction unknown;
    for (std::string line; std::getline(lines, line);) {
        if (line.find("unhandled instruction") != std::string::npos) unknown.decoder_says(line);
        if (line.starts_with(mine) || line.starts_with(mine_too))
            line.erase(0, mine.size());
        else if (line.starts_with("==") || line.starts_with("--")) {
            if (line.find(kUnrecognised) != std::string::npos) unknown.is_of_another();
            continue;
        }
        if (line.find(kUnrecognised) != std::string::npos) unknown.is_mine();
        if (line.find(kEndedByIt) != std::string::npos && unknown.mine) return unknown.mine;
        for (const std::string_view fatal : kFatal)
            if (line.find(fatal) != std::string::npos) {
                // A heading says less than the line below it.
                std::string next;
                if (line.find("impossible") != std::string::npos)
                    while (std::getline(lines, next) &&
                           next.find_first_not_of(" =-") == std::string::npos);
                if (next.starts_with(mine)) next.erase(0, mine.size());
                const std::string& told = next.empty() ? line : next;
                return told.substr(std::min(told.find_first_not_of(' '), told.size()));
            }
    }
    return std::nullopt;
}

std::set<pid_t> processes_ended_by_signals(const std::string& messages) {
    std::set<pid_t> ended;
    std::istringstream lines(messages);
    for (std::string line; std::getline(lines, line);)
        if (pid_t pid = 0; line.find("Process terminating with ") != std::string::npos &&
                           std::sscanf(line.c_str(), "==%d==", &pid) == 1)
            ended.insert(pid);
    return ended;
}

}  // namespace revisit::record
