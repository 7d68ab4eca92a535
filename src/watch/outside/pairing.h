// Looks at two threads of a process at nearly the same moment, for what they write to each other's
// lines (estimate/conflicts.h).
//
// The thread that was sampled goes on. Some others are drawn at random; where none of them runs or
// waits for a processor, nothing conflicts. The timers of those that do are set to fire at once: that
// happens in user code alone, so no system call is interrupted. The look-ahead of the first one that
// stops is merged with the sample's, and the others' timers are set back. The first comes within 0.1 to
// 5 milliseconds: on a machine with as many threads as processors it was us who took the second one's.
// Waiting for 0.3 of them only, one pair in twenty came about; now all but a few do.
#pragma once

#include <memory>
#include <vector>

#include "watch/outside/look.h"
#include "watch/samples/conflicts.h"

namespace revisit::watch::outside {

class Pairing {
 public:
    Pairing(const Settings& settings, bool objects) : settings_(settings), objects_(objects) {}

    bool wants(const Task& task) const;
    void begin(Task& task, const AccessLog& log, std::uint64_t stack_pointer,
               const std::vector<Task*>& others);
    // Another thread is stopped, its clock at `now`. Sets its timer to what it was; false when it
    // stopped for a sample of its own.
    bool at_stop(Task& other, std::uint64_t now);
    // A thread ends.
    void forget(const Task& task);

 private:
    void give_up();
    void let_others_go();
    void look_at(Task& other);
    void count(Task& victim, const AccessLog& victim_log, std::uint64_t victim_stack, Task& writer,
               const AccessLog& writer_log, std::uint64_t writer_stack) const;
    ConflictTally::Side side(Task& task, const LoggedAccess& access, std::uint64_t address,
                             std::uint64_t parts, std::uint64_t stack_pointer) const;

    const Settings& settings_;
    bool objects_;
    std::unique_ptr<Bench> bench_;  // from the first pair on
    AccessLog log_;                 // of the thread that was sampled
    Task* task_ = nullptr;
    std::vector<Task*> asked_;
    std::uint64_t stack_pointer_ = 0, since_ = 0;  // wall time
    double others_ = 1;
};

}  // namespace revisit::watch::outside
