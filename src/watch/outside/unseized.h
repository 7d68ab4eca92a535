// Children of a process that forks often, found without stopping it.
//
// Problem. A seized process stops when it forks, its child when it begins and when it ends, and the
// process again for SIGCHLD. A connection of pgbench -C that takes 2.6 ms took 0.5 ms longer (two
// cores, virtual machine). Idea. A process whose last children all ended young, without another
// program, is let go; its events stay and name its children (PERF_RECORD_FORK). Those that live on
// are seized; of the others their number is known, and their time from their parent's account of
// children. As the budget allows, the process is seized for its next fork, so that such children are
// sampled too. It is seized for each sample of its own.
//
// A child's child is missed if both its parent and itself ended before they were looked for.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <vector>

#include "watch/outside/process.h"

namespace revisit::watch::outside {

// Whether a process that is let go can be seized later: a descendant, or anything for root.
bool can_be_seized_again(pid_t process);

std::vector<pid_t> threads_of(pid_t process);
std::vector<pid_t> children_of(pid_t process, pid_t thread);

class Unseized {
 public:
    struct Child {
        pid_t pid = 0;
        Process* parent = nullptr;
        std::uint64_t since = 0;  // wall time
    };

    static constexpr std::uint64_t kShortLife = 50000000;  // nanoseconds

    void add(pid_t pid, Process& parent, std::uint64_t now) { young_.push_back({pid, &parent, now}); }
    bool is_empty() const { return young_.empty(); }
    void forget(pid_t pid);  // it is seized after all
    // Those that are there for long enough to be seized, or have ended, since this was last asked.
    std::vector<Child> take_grown(std::uint64_t now);
    // Whether it lives, as a child of that process; 0 = of any.
    static bool is_there(pid_t pid, pid_t parent);
    // The processor time that ended children of a process took, since this was last asked, less what is
    // known already (Process::Forks::known).
    static std::uint64_t time_of_ended(Process& parent);

 private:
    std::vector<Child> young_;  // in the order in which they began
};

}  // namespace revisit::watch::outside
