// Looks at two threads of a process at nearly the same moment, for what they write to each other's
// lines (estimate/conflicts.h).
//
// The thread that was sampled goes on. The timer of another one, drawn at random, is set to fire at
// once: that happens in user code alone, so no system call is interrupted. If it stops soon, its
// look-ahead is merged with the sample's; if not, it did not run, and nothing conflicts.
#pragma once

#include <memory>

#include "watch/estimate/conflicts.h"
#include "watch/outside/look.h"

namespace revisit::watch::outside {

class Pairing {
 public:
    Pairing(const Settings& settings, bool objects) : settings_(settings), objects_(objects) {}

    bool wants(const Task& task) const;
    void begin(Task& task, const AccessLog& log, std::uint64_t stack_pointer, Task& other,
               std::size_t others);
    // The other thread is stopped, its clock at `now`. Sets its timer to what it was.
    void at_stop(Task& other, std::uint64_t now);
    // A thread ends.
    void forget(const Task& task);

 private:
    void give_up();
    void count(Task& victim, const AccessLog& victim_log, std::uint64_t victim_stack, Task& writer,
               const AccessLog& writer_log, std::uint64_t writer_stack) const;
    ConflictTally::Side side(Task& task, const LoggedAccess& access, std::uint64_t address,
                             std::uint64_t parts, std::uint64_t stack_pointer) const;

    const Settings& settings_;
    bool objects_;
    std::unique_ptr<Bench> bench_;  // from the first pair on
    AccessLog log_;                 // of the thread that was sampled
    Task *task_ = nullptr, *other_ = nullptr;
    std::uint64_t stack_pointer_ = 0, since_ = 0;  // wall time
    double others_ = 1;
};

}  // namespace revisit::watch::outside
