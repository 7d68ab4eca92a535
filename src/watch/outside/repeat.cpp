#include "watch/outside/repeat.h"

#include <unistd.h>

#include <algorithm>
#include <map>

#include "core/try.h"

namespace revisit::watch::outside {
namespace {

double samples_of(const Outcome& outcome) {
    std::size_t most = 0;  // of the program that leads, so far as that can be known
    for (const auto& program : outcome.programs) {
        std::size_t sum = 0;
        for (const auto& [number, thread] : program->samples.threads) sum += thread.samples.size();
        most = std::max(most, sum);
    }
    return static_cast<double>(most);
}

void append(ThreadSamples& to, ThreadSamples& more) {
    for (Sample& sample : more.samples) {
        sample.time += to.end;
        if (sample.trap_time != 0) sample.trap_time += to.end;
        sample.first_entry += to.entries.size();
        to.samples.push_back(sample);
    }
    to.entries.insert(to.entries.end(), more.entries.begin(), more.entries.end());
    to.keeps = std::max(to.keeps, more.keeps);
    to.end += more.end;
    to.recording += more.recording;
    to.checked += more.checked;
    to.missed += more.missed;
    to.stray += more.stray;
}

// Threads from number `first` on are those of a later run.
void join_threads(Program& program, std::uint32_t first) {
    if (first == 0) return;
    auto& threads = program.samples.threads;
    for (std::uint32_t number = first; number < program.threads; number++) {
        auto later = threads.find(static_cast<std::uint16_t>(number));
        if (later == threads.end()) continue;
        ThreadSamples samples = std::move(later->second);
        threads.erase(later);
        append(threads[static_cast<std::uint16_t>(number - first)], samples);
    }
    program.threads = std::max(first, program.threads - first);
}

// The n-th process of a command is the same one in every run.
void join_processes(Outcome& outcome, Outcome& later,
                    const std::map<const Program*, std::uint32_t>& first) {
    using Which = std::pair<std::vector<std::string>, unsigned>;
    std::map<std::vector<std::string>, unsigned> met;
    std::map<Which, Process*> known;
    for (const auto& process : outcome.processes)
        known[{process->command, met[process->command]++}] = process.get();
    met.clear();
    for (auto& process : later.processes) {
        auto number = first.find(process->program);
        for (std::uint16_t& thread : process->threads)
            if (number != first.end() && thread >= number->second)
                thread = static_cast<std::uint16_t>(thread - number->second);
        auto found = known.find({process->command, met[process->command]++});
        if (found == known.end()) {
            outcome.processes.push_back(std::move(process));
            continue;
        }
        found->second->time += process->time;
        for (std::uint16_t thread : process->threads)
            if (std::ranges::find(found->second->threads, thread) == found->second->threads.end())
                found->second->threads.push_back(thread);
    }
}

}  // namespace

Result<Outcome> run_repeatedly(RunOptions options, const RepeatOptions& repeat) {
    constexpr std::uint32_t kMostThreads = 30000;  // numbers that are given out
    const off_t input = repeat.most_runs > 1 ? lseek(STDIN_FILENO, 0, SEEK_CUR) : -1;
    Outcome outcome = TRY(run(options));
    options.launch.silent = true;
    options.launch.keeps_input = input >= 0;
    while (outcome.runs < repeat.most_runs && samples_of(outcome) < repeat.samples &&
           outcome.signal == 0 && !outcome.limit_reached && !outcome.ended_otherwise) {
        std::map<const Program*, std::uint32_t> first;
        for (const auto& program : outcome.programs) first[program.get()] = program->threads;
        if (std::ranges::any_of(first, [](const auto& one) { return one.second > kMostThreads; }))
            break;
        if (input >= 0) lseek(STDIN_FILENO, input, SEEK_SET);
        Outcome later = TRY(run(options, std::move(outcome.programs)));
        outcome.programs = std::move(later.programs);
        for (const auto& program : outcome.programs)
            if (auto found = first.find(program.get()); found != first.end())
                join_threads(*program, found->second);
        join_processes(outcome, later, first);
        outcome.runs++;
        outcome.ended_otherwise = later.exit_status != outcome.exit_status;
        outcome.outlived += later.outlived;
    }
    return outcome;
}

}  // namespace revisit::watch::outside
