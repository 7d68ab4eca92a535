// Which program of a run its report is about.
//
// The one that did most, by accesses or processor time. But what only prepares for another and becomes
// it by exec (env, chroot, nice, taskset) is not what was meant, though it may take longer than a short
// run does: Ubuntu 26.04's env makes 670 000 accesses, `true` 48 000. It is known by its command, which
// ends with that of another program in the same process: `nice -n 5 xz -k a`, `xz -k a`.
#pragma once

#include <fmt/format.h>
#include <sys/types.h>

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace revisit::record {

template <class Program>
struct RanAs {  // a process from one exec to the next
    pid_t pid;
    Program program;
    std::vector<std::string> command;
    double did;
};

inline bool starts(const std::vector<std::string>& wrapper, const std::vector<std::string>& command) {
    auto file = [](std::string_view path) { return path.substr(path.rfind('/') + 1); };
    if (command.empty() || wrapper.size() <= command.size()) return false;
    const auto its = wrapper.end() - static_cast<std::ptrdiff_t>(command.size());
    return file(*its) == file(command[0]) && std::equal(its + 1, wrapper.end(), command.begin() + 1);
}

// Of each program, what counts of what it did.
template <class Program>
std::map<Program, double> claims_to_lead(const std::vector<RanAs<Program>>& processes) {
    constexpr double kOfWrapper = 0.01;
    std::multimap<pid_t, const RanAs<Program>*> by_pid;
    for (const RanAs<Program>& one : processes) by_pid.emplace(one.pid, &one);
    std::map<Program, double> out;
    for (const RanAs<Program>& one : processes) {
        const auto [from, to] = by_pid.equal_range(one.pid);
        const bool is_wrapper = std::any_of(
            from, to, [&](const auto& other) { return starts(one.command, other.second->command); });
        out[one.program] += (is_wrapper ? kOfWrapper : 1) * one.did;
    }
    return out;
}

// For the report: of `processes`, so many are this program's. One process may be several programs.
inline std::string leading_note(std::string_view program, std::size_t its, std::size_t processes) {
    return fmt::format(
        "this is the profile of {}{}, which made most accesses of {}, wrappers left out; "
        "--follow makes one profile of all",
        program, its > 1 ? fmt::format(" ({} processes)", its) : "",
        processes == 1 ? "the programs that the process executed"
                       : fmt::format("{} processes", processes));
}

}  // namespace revisit::record
