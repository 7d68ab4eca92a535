#include "watch/outside/unseized.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "record/process_status.h"

namespace revisit::watch::outside {

// Access to its memory takes the same rights. Where only descendants may be seized, that holds for as
// long as it is traced, whosever child it is.
bool can_be_seized_again(pid_t process) {
    int memory = open(fmt::format("/proc/{}/mem", process).c_str(), O_RDONLY | O_CLOEXEC);
    if (memory < 0) return false;
    close(memory);
    if (geteuid() == 0) return true;
    constexpr int kMostParents = 64;
    for (int i = 0; i < kMostParents && process > 1; i++) {
        process = record::status_field(process, "PPid:");
        if (process == getpid()) return true;
    }
    return false;
}

std::vector<pid_t> threads_of(pid_t process) {
    std::vector<pid_t> threads;
    std::error_code error;
    std::filesystem::directory_iterator entry(fmt::format("/proc/{}/task", process), error), end;
    for (; !error && entry != end; entry.increment(error))
        if (pid_t thread = std::atoi(entry->path().filename().c_str())) threads.push_back(thread);
    return threads;
}

std::vector<pid_t> children_of(pid_t process, pid_t thread) {
    std::ifstream file(fmt::format("/proc/{}/task/{}/children", process, thread));
    std::vector<pid_t> children;
    for (pid_t child = 0; file >> child;) children.push_back(child);
    return children;
}

void Unseized::forget(pid_t pid) {
    std::erase_if(young_, [&](const Child& one) { return one.pid == pid; });
}

std::vector<Unseized::Child> Unseized::take_grown(std::uint64_t now) {
    auto end =
        std::ranges::find_if(young_, [&](const Child& one) { return now - one.since < kShortLife; });
    std::vector<Child> grown(young_.begin(), end);
    young_.erase(young_.begin(), end);
    return grown;
}

// Its number may be another process's by now, and one that has ended is there until it is waited for.
bool Unseized::is_there(pid_t pid, pid_t parent) {
    constexpr unsigned kState = 3, kParent = 4;
    record::StatFields fields(pid);
    const std::string_view state = fields.text(kState);
    return !state.empty() && state != "Z" && state != "X" &&
           (parent == 0 || fields.number(kParent) == static_cast<std::uint64_t>(parent));
}

std::uint64_t Unseized::time_of_ended(Process& parent) {
    constexpr unsigned kUser = 16, kSystem = 17;  // of its children
    record::StatFields fields(parent.pid);
    std::uint64_t all = (fields.number(kUser) + fields.number(kSystem)) *
                        (1000000000 / static_cast<std::uint64_t>(sysconf(_SC_CLK_TCK)));
    std::uint64_t known = parent.forks.known;
    if (all <= known) return 0;
    parent.forks.known = all;
    return all - known;
}

}  // namespace revisit::watch::outside
