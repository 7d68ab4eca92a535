// What the recorder itself says while a program runs under it: valgrind's own messages.
//
// They go to memory without a name, so that nothing is left behind, and are looked at after the run:
// a recorder that gave up must not look like a program that ended.
#pragma once

#include <sys/types.h>

#include <optional>
#include <set>
#include <string>

namespace revisit::record {

class Messages {
 public:
    Messages();
    Messages(const Messages&) = delete;
    Messages& operator=(const Messages&) = delete;
    ~Messages();

    std::string path() const;  // what the recorder opens to append; empty: no memory for it
    std::string text() const;  // what it has said so far

 private:
    int fd_;
};

// Why valgrind could not run process `pid` to its end, out of its messages; nothing when it could.
std::optional<std::string> valgrind_failure(const std::string& messages, pid_t pid);
// The processes that it says the end of.
std::set<pid_t> processes_ended_by_signals(const std::string& messages);

}  // namespace revisit::record
