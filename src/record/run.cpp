// The loop waits for slots, not for the program: the program is waited for without blocking whenever no
// slot comes within a few milliseconds. Signals that would end us are the program's to decide about: a
// Ctrl-C reaches it through the terminal, others are passed on, and the profile is written after it
// ended. If we fail, the program is told to record no more and runs to its end, or to its limit. Where
// there is a limit the program does not outlive us, however we end: nobody else would end it.
#include "record/run.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <thread>

namespace revisit::record {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kPatience{20};
constexpr std::chrono::seconds kGrace{3};  // from SIGTERM to SIGKILL at a limit

std::atomic<pid_t> program_running{0};
std::atomic<int> interrupts{0};

void pass_on(int signal, siginfo_t* info, void*) {
    pid_t program = program_running.load();
    if (program <= 0) return;
    int saved = errno;
    // From the terminal the program got it too. Whoever presses three times means it.
    bool from_terminal = info->si_code == SI_KERNEL;
    if (signal == SIGINT && from_terminal) {
        if (++interrupts >= 3) kill(program, SIGKILL);
    } else if (!from_terminal)
        kill(program, signal);
    errno = saved;
}

// Handlers in place while the program runs, as they were afterwards.
class SignalsPassedOn {
 public:
    SignalsPassedOn() {
        interrupts = 0;
        struct sigaction action{};
        action.sa_sigaction = pass_on;
        action.sa_flags = SA_SIGINFO | SA_RESTART;
        for (std::size_t i = 0; i < std::size(kSignals); i++)
            sigaction(kSignals[i], &action, &before_[i]);
    }
    ~SignalsPassedOn() {
        for (std::size_t i = 0; i < std::size(kSignals); i++)
            sigaction(kSignals[i], &before_[i], nullptr);
        program_running = 0;
    }

 private:
    static constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};
    struct sigaction before_[std::size(kSignals)];
};

void note_status(int status, RunOutcome& outcome) {
    if (WIFSIGNALED(status)) {
        outcome.signal = WTERMSIG(status);
        outcome.exit_status = 128 + outcome.signal;
    } else
        outcome.exit_status = WEXITSTATUS(status);
}

}  // namespace

Result<RunOutcome> run(const RunOptions& options, Consumer::MakeSink make_sink) {
    Result<Slots> slots = Slots::create(options.want);
    if (!slots) return std::unexpected(slots.error());
    slots->stream()->plan = options.plan;
    Consumer consumer(*slots, options.decode, std::move(make_sink));
    RunOutcome outcome;

    SignalsPassedOn signals;
    LaunchOptions how = options.launch;
    how.ends_with_us |= options.duration || options.counts_to_limit();
    Result<pid_t> program = launch(options.program, *slots, how);
    if (!program) return std::unexpected(program.error());
    program_running = *program;

    std::optional<Error> failure;
    Clock::time_point started = Clock::now(), told_to_end{};
    Clock::time_point next_look = started;
    for (bool running = true; running;) {
        Result<bool> fed = false;
        if (failure)
            std::this_thread::sleep_for(kPatience);
        else
            fed = consumer.step(kPatience);
        if (!fed) {
            failure = fed.error();
            slots->stop();
        }
        Clock::time_point now = Clock::now();
        if (fed && *fed && now < next_look) continue;
        next_look = now + kPatience;

        int status = 0;
        pid_t ended = waitpid(*program, &status, WNOHANG);
        if (ended == *program) {
            note_status(status, outcome);
            program_running = 0;
            running = false;
        } else if (ended < 0 && errno != EINTR)
            return fail(fmt::format("lost the program: {}", std::strerror(errno)));
        else if (!failure && !*fed) {
            if (Result<void> done = consumer.reap(); !done && !failure) {
                failure = done.error();
                slots->stop();
            }
        }
        // Accesses that can no longer be counted would never reach their limit.
        bool over = (options.duration && now - started >= *options.duration) ||
                    consumer.reached_most() || (failure && options.counts_to_limit());
        if (running && over) {
            if (!outcome.limit_reached) {
                outcome.limit_reached = true;
                slots->stop();
                kill(*program, SIGTERM);
                for (pid_t child : consumer.living())
                    if (child != *program) kill(child, SIGTERM);
                told_to_end = now;
            } else if (now - told_to_end >= kGrace)
                kill(*program, SIGKILL);
        }
    }
    if (!failure) {
        slots->stop();  // for children that outlive the program
        if (Result<void> done = consumer.finish(); !done) failure = done.error();
    }
    if (failure) return std::unexpected(*failure);

    outcome.accesses = consumer.accesses();
    outcome.processes = consumer.processes();
    outcome.regions_seen = consumer.regions_seen();
    if (outcome.limit_reached) {
        outcome.exit_status = 0;
        outcome.notes.push_back(
            "the program was ended at the limit asked for; its later accesses are not in here");
    } else if (outcome.signal != 0)
        outcome.notes.push_back(fmt::format("the program was ended by signal {} ({})", outcome.signal,
                                            strsignal(outcome.signal)));
    if (consumer.cut_off() > 0)
        outcome.notes.push_back(
            fmt::format("{} child processes outlived the program; they are told up to its end",
                        consumer.cut_off()));
    if (slots->threads_unrecorded() > 0)
        outcome.notes.push_back(fmt::format("{} threads were not recorded: more than {} ran at once",
                                            slots->threads_unrecorded(), REVISIT_SLOTS));
    return outcome;
}

}  // namespace revisit::record
