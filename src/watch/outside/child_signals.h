// Stops: of job control, at the end of a step; and SIGCHLD, which comes through a file, not by a
// handler.
#pragma once

#include <signal.h>
#include <sys/ptrace.h>
#include <sys/signalfd.h>
#include <unistd.h>

namespace revisit::watch::outside {

inline bool is_group_stop(int signal) {
    return signal == SIGSTOP || signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU;
}

// The kernel keeps the end of its own step to itself; that of ours is not the program's.
inline bool is_end_of_step(pid_t id) {
    siginfo_t info{};
    return ptrace(PTRACE_GETSIGINFO, id, 0, &info) == 0 && info.si_code == TRAP_TRACE;
}

class ChildSignals {
 public:
    ChildSignals() {
        sigset_t child;
        sigemptyset(&child);
        sigaddset(&child, SIGCHLD);
        sigprocmask(SIG_BLOCK, &child, &before_);
        file_ = signalfd(-1, &child, SFD_NONBLOCK | SFD_CLOEXEC);
    }
    ~ChildSignals() {
        if (file_ >= 0) close(file_);
        sigprocmask(SIG_SETMASK, &before_, nullptr);
    }
    ChildSignals(const ChildSignals&) = delete;
    int file() const { return file_; }
    void take() {
        signalfd_siginfo info[8];
        while (read(file_, info, sizeof info) > 0) {
        }
    }

 private:
    sigset_t before_;
    int file_;
};

}  // namespace revisit::watch::outside
