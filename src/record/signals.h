// Signals that would end us while a program runs are the program's to decide about.
//
// A Ctrl-C reaches it through the terminal, others are passed on. A third Ctrl-C kills the program.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <atomic>
#include <cerrno>
#include <iterator>

namespace revisit::record {

// Handlers in place while it lives, as they were afterwards.
class SignalsPassedOn {
 public:
    SignalsPassedOn() {
        interrupts_ = 0;
        program_ = 0;
        struct sigaction action{};
        action.sa_sigaction = pass_on;
        action.sa_flags = SA_SIGINFO | SA_RESTART;
        for (std::size_t i = 0; i < std::size(kSignals); i++)
            sigaction(kSignals[i], &action, &before_[i]);
    }
    ~SignalsPassedOn() {
        for (std::size_t i = 0; i < std::size(kSignals); i++)
            sigaction(kSignals[i], &before_[i], nullptr);
        program_ = 0;
    }
    SignalsPassedOn(const SignalsPassedOn&) = delete;

    void pass_to(pid_t program) { program_ = program; }

 private:
    static void pass_on(int signal, siginfo_t* info, void*) {
        pid_t program = program_.load();
        if (program <= 0) return;
        int saved = errno;
        bool from_terminal = info->si_code == SI_KERNEL;  // the program got it too
        if (signal == SIGINT && from_terminal) {
            if (++interrupts_ >= 3) kill(program, SIGKILL);
        } else if (!from_terminal)
            kill(program, signal);
        errno = saved;
    }

    static constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};
    static inline std::atomic<pid_t> program_{0};
    static inline std::atomic<int> interrupts_{0};
    struct sigaction before_[std::size(kSignals)];
};

}  // namespace revisit::record
