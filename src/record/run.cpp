// The loop waits for slots, not for the program: the program is waited for without blocking whenever no
// slot comes within a few milliseconds. Signals that would end us are the program's to decide about: a
// Ctrl-C reaches it through the terminal, others are passed on, and the profile is written after it
// ended. If we fail, the program is asked to record no more and runs to its end, or to its limit. Where
// there is a limit the program does not outlive us, however we end: nobody else would end it.
#include "record/run.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstring>
#include <thread>

#include "core/try.h"
#include "record/messages.h"
#include "record/signals.h"

namespace revisit::record {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kPatience{20};
constexpr std::chrono::seconds kGrace{3};  // from SIGTERM to SIGKILL at a limit

void note_status(int status, RunOutcome& outcome) {
    if (WIFSIGNALED(status)) {
        outcome.signal = WTERMSIG(status);
        outcome.exit_status = 128 + outcome.signal;
    } else
        outcome.exit_status = WEXITSTATUS(status);
}

}  // namespace

void note_end(RunOutcome& outcome, std::size_t outlived) {
    if (outcome.limit_reached)
        outcome.notes.push_back(
            {"the program was stopped at the requested limit; later accesses are not included"});
    else if (outcome.signal != 0)
        outcome.notes.push_back({fmt::format("the program was ended by signal {} ({})", outcome.signal,
                                             strsignal(outcome.signal))});
    if (outlived > 0)
        outcome.notes.push_back(
            {outlived == 1
                 ? "1 child process outlived the program; its profile stops when that exited"
                 : fmt::format(
                       "{} child processes outlived the program; their profiles stop when it exited",
                       outlived)});
}

Result<RunOutcome> run(const RunOptions& options, Consumer::MakeSink make_sink) {
    Slots slots = TRY(Slots::create(options.want));
    slots.stream()->plan = options.plan;
    // Programs built with the plug-in do not count theirs: one is always under way.
    slots.stream()->forks = options.launch.recorder == Recorder::valgrind ? 0 : 1;
    DecodeOptions decode = options.decode;
    const bool in_order = options.want & REVISIT_WANT_ORDER && !(options.want & REVISIT_WANT_SAMPLES);
    if (in_order)
        decode.interleaving = options.launch.recorder == Recorder::valgrind ? Interleaving::by_turns
                                                                            : Interleaving::by_stamps;
    Consumer consumer(slots, decode, std::move(make_sink));
    RunOutcome outcome;

    SignalsPassedOn signals;
    const Messages messages;
    LaunchOptions how = options.launch;
    how.messages = messages.path();
    how.in_order = in_order;
    how.ends_with_us |= options.duration || options.counts_to_limit();
    const pid_t program = TRY(launch(options.program, slots, how));
    signals.pass_to(program);

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
            slots.stop();
        }
        Clock::time_point now = Clock::now();
        if (fed && *fed && now < next_look) continue;
        next_look = now + kPatience;

        int status = 0;
        pid_t ended = waitpid(program, &status, WNOHANG);
        if (ended == program) {
            note_status(status, outcome);
            signals.pass_to(0);
            running = false;
        } else if (ended < 0 && errno != EINTR)
            return fail(fmt::format("lost the program: {}", std::strerror(errno)));
        else if (!failure) {  // slots of others may come without a pause, and what it counted is MBs
            if (Result<void> done = consumer.reap(); !done && !failure) {
                failure = done.error();
                slots.stop();
            }
        }
        // Accesses that can no longer be counted would never reach their limit.
        bool over = (options.duration && now - started >= *options.duration) ||
                    consumer.reached_most() || (failure && options.counts_to_limit());
        if (running && over) {
            if (!outcome.limit_reached) {
                outcome.limit_reached = true;
                slots.stop();
                kill(program, SIGTERM);
                for (pid_t child : consumer.living())
                    if (child != program) kill(child, SIGTERM);
                told_to_end = now;
            } else if (now - told_to_end >= kGrace)
                kill(program, SIGKILL);
        }
    }
    if (!failure) {
        slots.stop();  // for children that outlive the program
        if (Result<void> done = consumer.finish(); !done) failure = done.error();
    }
    if (failure) return unexpected(*failure);
    const bool is_starter = how.recorder == Recorder::clang && !options.program.instrumented;
    if (is_starter && consumer.processes() == 0)
        return fail(ErrorCode::not_instrumented, options.program.path, "",
                    fmt::format("ended with status {}; it was not built with the compiler plug-in, nor "
                                "was a program that it started and that kept its environment; build "
                                "with revisit-clang",
                                outcome.exit_status));
    const std::string said = messages.text();
    if (how.recorder == Recorder::valgrind && !outcome.limit_reached)
        if (const std::optional<std::string> why = valgrind_failure(said, program))
            return fail(ErrorCode::not_recordable, options.program.path, "",
                        fmt::format("valgrind gave up on it (\"{}\"); revisit-clang can build a "
                                    "program that records itself",
                                    *why));

    outcome.accesses = consumer.accesses();
    outcome.processes = consumer.processes();
    outcome.regions_seen = consumer.regions_seen();
    if (outcome.limit_reached) outcome.exit_status = 0;
    note_end(outcome, consumer.cut_off());
    if (is_starter && !options.program.wraps_instrumented)
        outcome.notes.push_back({fmt::format(
            "{} was not built with revisit-clang: only programs that were, started by it, are recorded",
            options.program.arguments[0])});
    for (const pid_t child : processes_ended_by_signals(said))
        if (const std::optional<std::string> why = valgrind_failure(said, child)) {
            outcome.notes.push_back(
                {fmt::format("valgrind gave up on child processes (\"{}\"): they ended there, unlike "
                             "without it",
                             *why),
                 true});
            break;
        }
    if (how.recorder == Recorder::valgrind && outcome.signal == SIGSYS)
        outcome.notes.push_back(
            {"a filter of the program's (seccomp) forbids system calls that valgrind needs", true});
    if (const std::uint32_t count = slots.out_of_reach())
        outcome.notes.push_back(
            {fmt::format("{} child processes or programs ran unrecorded (set-user-ID, or in a file "
                         "system without the recorder)",
                         count),
             true});
    else if (how.recorder == Recorder::valgrind && how.follow_exec && !outcome.limit_reached &&
             outcome.signal == 0 && !consumer.saw_end_of(static_cast<std::uint32_t>(program)))
        outcome.notes.push_back(
            {"the program executed another one that could not be recorded; its accesses are not "
             "included",
             true});
    if (slots.threads_unrecorded() > 0)
        outcome.notes.push_back({fmt::format("{} threads were not recorded: more than {} ran at once",
                                             slots.threads_unrecorded(), REVISIT_SLOTS)});
    return outcome;
}

}  // namespace revisit::record
