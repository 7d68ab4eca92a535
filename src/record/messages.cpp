#include "record/messages.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <sstream>
#include <string_view>

namespace revisit::record {
namespace {

constexpr std::size_t kMostText = std::size_t{1} << 20;

// What valgrind's core says when it ends a program that would have gone on.
constexpr std::array<std::string_view, 9> kFatal = {
    "the 'impossible' happened",  // an assertion of its own, or of VEX
    "debuginfo reader",           // debug information that it cannot read
    "Assertion",
    "FATAL:",
    "Fatal error",
    "VEX temporary storage exhausted",
    "Valgrind's memory management: out of memory",
    "unhandled instruction",
    "does not support general clone()",
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
    for (std::string line; std::getline(lines, line);) {
        if (line.starts_with(mine) || line.starts_with(mine_too))
            line.erase(0, mine.size());
        else if (line.starts_with("==") || line.starts_with("--"))
            continue;  // another process's
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

}  // namespace revisit::record
