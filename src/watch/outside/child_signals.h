#pragma once

#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

namespace revisit::watch::outside {

// SIGCHLD comes through a file, not by a handler.
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
