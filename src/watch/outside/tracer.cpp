#include "watch/outside/tracer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>

#include "core/try.h"
#include "record/process_status.h"
#include "record/signals.h"
#include "watch/outside/attach.h"
#include "watch/outside/child_signals.h"
#include "watch/outside/looks.h"
#include "watch/outside/preload.h"
#include "watch/outside/processors.h"
#include "watch/outside/resting.h"
#include "watch/outside/unseized.h"

namespace revisit::watch::outside {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kGrace{3};  // from SIGTERM to SIGKILL at a limit
constexpr std::uint64_t kYoung = 1500000;  // nanoseconds: many processes end before

class Tracer {
 public:
    Tracer(const RunOptions& options, std::vector<std::unique_ptr<Program>> known)
        : options_(options), sampler_(options.settings, options.objects) {
        outcome_.programs = std::move(known);
        epoll_ = epoll_create1(EPOLL_CLOEXEC);
        listen_to(children_.file(), 0);
    }
    ~Tracer() { close(epoll_); }
    Tracer(const Tracer&) = delete;

    Result<Outcome> run() {
        outcome_.attached = options_.attach != 0;
        if (outcome_.attached)
            TRY(attach());
        else
            TRY(start());
        allow_many_files();
        auto began = Clock::now();
        Clock::time_point told_to_end{};
        Looks looks(options_, began);
        while (!ended_ && !tasks_.empty()) {
            step();
            auto now = Clock::now();
            if (looks.are_due(now)) looks.begin(so_far(), now);
            bool over = options_.duration && now - began >= *options_.duration;
            if (options_.attach != 0 && (over || interrupts_taken())) break;
            if (!over || options_.attach != 0 || ended_) continue;
            if (!outcome_.limit_reached) {
                outcome_.limit_reached = true;
                told_to_end = now;
                for (const auto& [pid, process] : living_) kill(pid, SIGTERM);
            } else if (now - told_to_end >= kGrace)
                kill(root_, SIGKILL);
        }
        take_unseized(~std::uint64_t{0});
        outcome_.outlived = options_.attach != 0 ? 0 : living_.size();
        outcome_.detached = !ended_ && !tasks_.empty();
        let_all_go();
        return std::move(outcome_);
    }

 private:
    static constexpr long kOptions =
        PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACEEXEC;

    Result<void> start() {
        signals_.emplace();
        record::LaunchOptions launch = options_.launch;
        launch.before_exec = [](pid_t child) -> Result<void> {
            if (ptrace(PTRACE_SEIZE, child, 0, kOptions) == 0) return {};
            return fail(why_not_seized(child, errno));
        };
        launch.ends_with_us |= options_.duration.has_value();
        root_ = TRY(record::start(options_.program.path, options_.program.arguments,
                                  options_.environment, launch));
        signals_->pass_to(root_);
        // It stands at its first instruction.
        int status = 0;
        if (waitpid(root_, &status, __WALL) == root_) on_wait(root_, status, {});
        return {};
    }

    // Threads may begin while others are seized: until none is new.
    Result<void> attach() {
        root_ = options_.attach;
        catch_interrupts();
        return seize_process(root_);
    }

    Result<void> seize_process(pid_t process) {
        std::set<pid_t> seized;
        for (bool found = true; found;) {
            found = false;
            std::vector<pid_t> threads = threads_of(process);
            if (threads.empty()) return fail(fmt::format("no process has the number {}", process));
            for (pid_t thread : threads) {
                if (tasks_.contains(thread) || !seized.insert(thread).second) continue;
                if (ptrace(PTRACE_SEIZE, thread, 0, kOptions) != 0) {
                    if (errno == ESRCH && thread != process) continue;
                    return fail(why_not_seized(process, errno));
                }
                found = true;
            }
        }
        for (pid_t thread : seized) {
            Task* task = adopt(thread, false);
            if (task != nullptr) begin(*task);
        }
        return {};
    }

    // … with what it has started before.
    void seize_tree(pid_t process) {
        if (living_.contains(process) || !seize_process(process)) return;
        for (pid_t thread : threads_of(process))
            for (pid_t child : children_of(process, thread)) seize_tree(child);
    }

    // As if all threads ended now; they go on.
    Outcome so_far() {
        Outcome out;
        std::map<const Program*, Program*> copies;
        for (const auto& program : outcome_.programs) {
            out.programs.push_back(std::make_unique<Program>(*program));
            copies[program.get()] = out.programs.back().get();
        }
        for (const auto& process : outcome_.processes)
            out.processes.push_back(process->summary(copies[process->program]));
        for (const auto& [id, task] : tasks_) {
            if (!task->started) continue;
            auto& threads = copies[task->process->program]->samples.threads;
            if (auto found = threads.find(task->number); found != threads.end())
                sampler_.end_samples(*task, found->second);
        }
        return out;
    }

    void step() {
        constexpr int kMost = 64, kTick = 4, kYoungWait = 1, kLoose = 10;  // milliseconds
        epoll_event events[kMost];
        int wait = !young_.empty() ? kYoungWait : without_events_ > 0 ? kTick : resting_.patience();
        if (has_loose()) wait = std::min(wait, kLoose);
        if (options_.look) wait = std::min(wait, static_cast<int>(options_.look_every.count()));
        int count = epoll_wait(epoll_, events, kMost, wait);
        std::uint64_t since = own_time(), counted = sampler_.own_time_counted();
        bool stops = count <= 0;
        for (int i = 0; i < count; i++) {
            if (events[i].data.u64 == 0) {
                children_.take();
                stops = true;
                continue;
            }
            auto found = tasks_.find(static_cast<pid_t>(events[i].data.u64));
            if (found == tasks_.end()) continue;
            Task& task = *found->second;
            sampler_.take_records(task);
            // Its thread has ended, and the file would be ready until that is known from waitpid: for
            // as long as other threads live, if it is the first one.
            if (events[i].events & (EPOLLHUP | EPOLLERR)) {
                epoll_ctl(epoll_, EPOLL_CTL_DEL, task.events.file(), nullptr);
                if (task.is_loose && (task.id != root_ || options_.attach != 0)) gone(task.id, 0);
            } else if (task.is_due)
                ask_to_stop(task);
        }
        if (stops) take_stops();
        if (has_loose()) look_after_loose();
        begin_grown();
        resting_.look(wall_time(), [&](const Task& task) { listen_to(task); });
        if (without_events_ > 0) tick();
        std::uint64_t all = own_time() - since, rest = sampler_.own_time_counted() - counted;
        if (busy_ && all > rest) sampler_.worked_beside(all - rest, busy_);
    }

    void take_stops() {
        int status = 0;
        rusage used{};
        for (pid_t thread; (thread = wait4(-1, &status, __WALL | WNOHANG, &used)) > 0;)
            on_wait(thread, status, used);
    }

    // For threads without events of their own.
    void tick() {
        std::vector<pid_t> due;
        for (const auto& [id, task] : tasks_)
            if (!task->events.is_open() && task->started && sampler_.is_due_by_time(*task))
                due.push_back(id);
        for (pid_t id : due)
            if (auto found = tasks_.find(id); found != tasks_.end()) {
                found->second->is_due = true;
                ask_to_stop(*found->second);
            }
    }

    void ask_to_stop(Task& task) {
        constexpr std::uint64_t kSoonAgain = 50000, kPatience = 60000;  // nanoseconds
        constexpr unsigned kMostMissed = 7;
        if (task.is_stopped || task.is_interrupted) return;
        // It waits in the kernel by now. Servers that run for some microseconds per request are met
        // rarely, and each try costs them as much: the next ones come later and later.
        if (!is_running(task.process->pid, task.id)) {
            bool is_own = !task.pair.asked;
            auto later = is_own ? kSoonAgain << std::min(task.missed++, kMostMissed) : kSoonAgain;
            task.is_due = false;
            sampler_.forget_running(task);
            if (is_own) task.period += later;
            task.events.set_timer(later);
            return;
        }
        task.missed = 0;
        busy_ = processors_.are_crowded();
        if (!busy_) {
            processors_.leave(task.processor);
            while (task.replay.runs && wall_time() < task.replay.until) {
            }
        }
        std::uint64_t since = wall_time();
        if (!seize_again(task) || ptrace(PTRACE_INTERRUPT, task.id, 0, 0) != 0) return;
        task.is_interrupted = true;
        // Mostly it stops at once; one that cannot (it waits for a child by vfork) is not waited for.
        take_stop_of(task.id, since + kPatience);
    }

    void take_stop_of(pid_t id, std::uint64_t until) {
        int status = 0;
        rusage used{};
        do {
            if (wait4(id, &status, __WALL | WNOHANG, &used) == id) {
                on_wait(id, status, used);
                return;
            }
            sched_yield();  // where there is one processor
        } while (wall_time() < until);
    }

    void on_wait(pid_t id, int status, const rusage& used) {
        std::uint64_t since = own_time();
        if (WIFEXITED(status) || WIFSIGNALED(status)) {
            if (auto found = living_.find(id); found != living_.end())
                found->second->was_resident(1024 * static_cast<std::uint64_t>(used.ru_maxrss));
            return gone(id, status);
        }
        if (!WIFSTOPPED(status)) return;
        int signal = WSTOPSIG(status), event = status >> 16;
        if (event == 0 && signal == SIGTRAP && stepping_.contains(id) && is_end_of_step(id)) signal = 0;
        stepping_.erase(id);
        auto found = tasks_.find(id);
        Task* task = found != tasks_.end() ? found->second.get() : nullptr;
        if (event == PTRACE_EVENT_EXEC)
            task = executed(id, true);
        else if (task == nullptr)
            task = adopt(id, true);
        if (task == nullptr) {  // not ours to sample
            ptrace(PTRACE_DETACH, id, 0, event == 0 ? signal : 0);
            return;
        }
        task->is_stopped = true;
        task->is_interrupted = false;  // any stop, one for a signal as well, takes the request away
        auto taken = Sampler::Taken::nothing;
        if (event == PTRACE_EVENT_STOP && is_group_stop(signal)) {
            task->is_stopped = false;
            ptrace(PTRACE_LISTEN, id, 0, 0);
            return;
        }
        if (task->is_due && task->started) {
            const auto at_stop = [&] { return sampler_.at_stop(*task); };
            taken = Machine::kReadWhereItRan && !busy_ ? processors_.on(task->processor, at_stop)
                                                       : at_stop();
            since = own_time();
        } else
            sampler_.lost_time(kStopCost);
        task->is_stopped = false;
        unsigned long child = 0;
        if (event == PTRACE_EVENT_FORK || event == PTRACE_EVENT_VFORK)
            ptrace(PTRACE_GETEVENTMSG, id, 0, &child);
        if (child != 0) announced(*task, static_cast<pid_t>(child));
        if (event == PTRACE_EVENT_CLONE) task->process->forks.are_few();
        // Where it stood for long, its processor sleeps and is woken by the host: 50 to 120 us.
        go_on(*task, event == 0 ? signal : 0);
        const std::uint64_t went_on = wall_time();
        sampler_.worked_at_stop(own_time() - since);
        using Taken = Sampler::Taken;
        if (taken == Taken::sample || taken == Taken::sample_and_beginning) {
            sampler_.after_stop(*task, !busy_);
            if (sampler_.wants_another(*task)) look_at_another(*task);
        } else if (taken == Taken::stretch)
            sampler_.after_stretch(*task, !busy_);
        if (busy_ && taken == Taken::sample_and_beginning) sampler_.forget_stretch(*task);
        if (!busy_ && (taken == Taken::beginning || taken == Taken::sample_and_beginning))
            stop_after(*task, went_on);
        // It stands until it is let go, and to sleep and wake up for it takes us longer.
        if (child != 0 && !tasks_.contains(static_cast<pid_t>(child)))
            take_stop_of(static_cast<pid_t>(child), wall_time() + kChildStops);
    }

    void look_at_another(Task& task) {
        std::vector<Task*> others;
        for (const auto& [id, one] : tasks_)
            if (one.get() != &task && one->process == task.process && one->started &&
                !one->rest.is_resting)
                others.push_back(one.get());
        if (!others.empty()) sampler_.look_at_another(task, others);
    }

    // On aarch64 the kernel steps over an access that is watched, all watchpoints of the thread off
    // until then. PTRACE_CONT would take the step away, and they would stay off for good.
    void go_on(Task& task, int signal) {
        if (Machine::is_stepping(task.id)) {
            stepping_.insert(task.id);
            ptrace(PTRACE_SINGLESTEP, task.id, 0, signal);
        } else if (task.process->forks.often && !task.awaits_fork && task.events.is_open()) {
            ptrace(PTRACE_DETACH, task.id, 0, signal);
            task.is_loose = true;
            loose_.insert(task.id);
        } else
            ptrace(PTRACE_CONT, task.id, 0, signal);
    }

    // Of one that forks often.
    void note_children(Task& task, std::uint64_t now) {
        sampler_.take_records(task);
        for (pid_t child : std::exchange(task.forked, {}))
            if (child == task.process->pid)  // a thread
                task.process->forks.are_few();
            else if (!living_.contains(child))
                unseized_.add(child, *task.process, now);
    }

    // A child that is seized from its beginning.
    void announced(Task& task, pid_t child) {
        task.awaits_fork = false;
        if (!task.process->forks.often) return;
        note_children(task, wall_time());
        unseized_.forget(child);
    }

    bool seize_again(Task& task) {
        if (!task.is_loose) return true;
        if (ptrace(PTRACE_SEIZE, task.id, 0, kOptions) != 0) return task.is_due = false;
        loose_.erase(task.id);
        task.is_loose = false;
        return true;
    }

    bool has_loose() const { return !loose_.empty() || !unseized_.is_empty(); }

    void look_after_loose() {
        constexpr std::uint64_t kForkCost = 200000, kEvery = 10000000;  // nanoseconds
        const std::uint64_t now = wall_time();
        for (pid_t id : std::vector(loose_.begin(), loose_.end())) {
            Task& task = *tasks_.at(id);
            Process& process = *task.process;
            note_children(task, now);
            if (task.has_executed) {
                if (seize_again(task)) executed(id, false);
            } else if (!process.forks.often) {
                if (seize_again(task)) (void)seize_process(id);
            } else if (now - task.fork_seized >= kEvery && sampler_.has_budget_left()) {
                sampler_.lost_time(kForkCost);
                task.fork_seized = now;
                task.awaits_fork = seize_again(task);
            }
        }
        take_unseized(now);
    }

    // Those that live on are seized, if they may be.
    void take_unseized(std::uint64_t now) {
        std::map<Process*, std::vector<Process*>> ended;
        for (const auto& [pid, parent, since] : unseized_.take_grown(now)) {
            const bool has_parent = living_.contains(parent->pid);
            if (Unseized::is_there(pid, has_parent ? parent->pid : 0)) seize_tree(pid);
            if (auto found = living_.find(pid); found != living_.end()) {
                // Other programs are to be sampled from their beginning.
                if (found->second->program != parent->program) parent->forks.are_few();
                continue;
            }
            parent->has_children = true;
            outcome_.processes.push_back(parent->make_child(pid));
            ended[parent].push_back(outcome_.processes.back().get());
        }
        for (auto& [parent, children] : ended) {
            const std::uint64_t time = Unseized::time_of_ended(*parent);
            for (Process* child : children)
                sampler_.ran_unseen(*child, time / children.size(), !options_.preloaded.empty());
        }
    }

    // A timer would wake us some fifty microseconds late, which is as long as the stretch is to be.
    void stop_after(Task& task, std::uint64_t went_on) {
        std::uint64_t until = went_on + sampler_.stretch();
        while (wall_time() < until) {
        }
        task.is_due = true;
        ask_to_stop(task);
    }

    // A thread or process that was not known before, and whether it stands.
    Task* adopt(pid_t id, bool stands) {
        pid_t pid = record::status_field(id, "Tgid:");
        if (pid == 0) return nullptr;
        unseized_.forget(pid);
        bool is_new = !living_.contains(pid), at_once = pid == root_ || options_.attach != 0;
        if (is_new) {
            pid_t parent = record::status_field(pid, "PPid:");
            auto from = living_.find(parent);
            if (from != living_.end() && (from->second->program->traces_others || !options_.children))
                return nullptr;
            at_once |= from != living_.end() && from->second->forks.often;
            make_process(pid, parent);
        }
        auto task = std::make_unique<Task>();
        task->id = id;
        task->is_stopped = stands;
        task->process = living_[pid];
        Task* made = (tasks_[id] = std::move(task)).get();
        if (at_once)
            begin(*made);
        else
            young_.emplace_back(id, wall_time());
        return made;
    }

    void make_process(pid_t pid, pid_t parent) {
        auto process = std::make_unique<Process>();
        process->pid = pid;
        process->parent = parent;
        process->began = wall_time();
        process->command = command_of(pid);
        std::error_code ignored;
        auto path = std::filesystem::read_symlink(fmt::format("/proc/{}/exe", pid), ignored).string();
        auto from = living_.find(parent);
        if (from != living_.end()) from->second->has_children = true;
        // One that is ending has none any more.
        process->program = path.empty() && from != living_.end() ? from->second->program
                                                                 : program_at(path, outcome_.programs);
        living_[pid] = process.get();
        outcome_.processes.push_back(std::move(process));
    }

    void listen_to(int file, std::uint64_t number) {
        epoll_event event{};
        event.events = EPOLLIN;
        event.data.u64 = number;
        epoll_ctl(epoll_, EPOLL_CTL_ADD, file, &event);
    }
    void listen_to(const Task& task) {
        listen_to(task.events.file(), static_cast<std::uint64_t>(task.id));
    }

    void begin(Task& task) {
        if (task.started) return;
        task.started = true;
        sampler_.start(task);
        if (!task.events.is_open()) {
            without_events_++;
            return;
        }
        listen_to(task);
        resting_.begins(task);
        // Events of a thread that runs begin when it is next put on a processor (events.h).
        if (!task.is_stopped && ptrace(PTRACE_INTERRUPT, task.id, 0, 0) == 0)
            task.is_interrupted = true;
    }

    void begin_grown() {
        std::uint64_t now = wall_time();
        auto grown =
            std::ranges::find_if(young_, [&](const auto& one) { return one.second + kYoung > now; });
        for (auto one = young_.begin(); one != grown; one++)
            if (auto found = tasks_.find(one->first); found != tasks_.end()) begin(*found->second);
        young_.erase(young_.begin(), grown);
    }

    void end(Task& task) {
        if (!task.started) return;
        if (!resting_.ends(task) && !task.events.is_open()) without_events_--;
        sampler_.end(task);
    }

    // Another program in the same process: all threads but one are gone, and that has the process's
    // number.
    Task* executed(pid_t pid, bool stands) {
        if (auto before = living_.find(pid); before != living_.end())
            if (auto parent = living_.find(before->second->parent); parent != living_.end())
                parent->second->forks.are_few();
        for (auto one = tasks_.begin(); one != tasks_.end();) {
            if (one->second->process->pid != pid) {
                one++;
                continue;
            }
            end(*one->second);
            one = tasks_.erase(one);
        }
        living_.erase(pid);
        if (!options_.preloaded.empty() && stands) {
            if (pid != root_) sampler_.lost_time(kLoadCost);
            withdraw_unloadable(pid, options_.preloaded);
        }
        return adopt(pid, stands);
    }

    void gone(pid_t id, int status) {
        if (auto found = tasks_.find(id); found != tasks_.end()) {
            loose_.erase(id);
            if (found->second->process->forks.often) note_children(*found->second, wall_time());
            end(*found->second);
            tasks_.erase(found);
        }
        if (auto found = living_.find(id); found != living_.end()) {
            found->second->kept.reset();
            const Process& ended = *found->second;
            living_.erase(found);
            if (auto parent = living_.find(ended.parent); parent != living_.end())
                child_ended(*parent->second, ended);
        }
        if (id != root_) return;
        ended_ = true;
        if (signals_) signals_->pass_to(0);
        if (options_.attach != 0) return;
        if (WIFSIGNALED(status)) outcome_.signal = WTERMSIG(status);
        outcome_.exit_status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    }

    // From then on its children are not seized at once (unseized.h).
    void child_ended(Process& parent, const Process& child) {
        constexpr unsigned kMany = 16;
        const bool is_young = wall_time() - child.began < Unseized::kShortLife;
        parent.forks.ended_young = is_young ? parent.forks.ended_young + 1 : 0;
        if (parent.forks.often)
            parent.forks.known += child.time;
        else if (parent.forks.ended_young >= kMany && threads_of(parent.pid).size() == 1 &&
                 can_be_seized_again(parent.pid)) {
            if (auto task = tasks_.find(parent.pid); task != tasks_.end())
                sampler_.take_records(*task->second);  // of those that were seized
            Unseized::time_of_ended(parent);           // likewise
            parent.forks.often = true;
        }
    }

    void let_all_go() {
        std::set<pid_t> seized;
        for (auto& [id, task] : tasks_) {
            end(*task);
            if (!loose_.contains(id)) seized.insert(id);
        }
        let_go(std::move(seized));
        tasks_.clear();
    }

    // Nanoseconds: a stop for a signal or an event; the heap library's loading, once per program.
    static constexpr std::uint64_t kStopCost = 10000, kLoadCost = 300000;
    static constexpr std::uint64_t kChildStops = 40000;  // … a child's first stop, at most

    RunOptions options_;
    Sampler sampler_;
    Processors processors_;
    bool busy_ = false;  // all of them were, when threads were last asked to stop
    ChildSignals children_;
    std::optional<record::SignalsPassedOn> signals_;
    int epoll_ = -1;
    pid_t root_ = 0;
    bool ended_ = false;
    std::unordered_map<pid_t, std::unique_ptr<Task>> tasks_;
    std::unordered_map<pid_t, Process*> living_;
    std::vector<std::pair<pid_t, std::uint64_t>>
        young_;              // not sampled yet, and since when they are there
    std::set<pid_t> loose_;  // threads that are not seized at present
    Unseized unseized_;
    Resting resting_{sampler_};
    std::size_t without_events_ = 0;
    std::set<pid_t> stepping_;  // threads that were let go for one instruction
    Outcome outcome_;
};

}  // namespace

Result<Outcome> run(const RunOptions& options, std::vector<std::unique_ptr<Program>> known) {
    Tracer tracer(options, std::move(known));
    return tracer.run();
}

}  // namespace revisit::watch::outside
