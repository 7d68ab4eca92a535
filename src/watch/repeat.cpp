#include "watch/repeat.h"

#include <unistd.h>

#include <algorithm>
#include <map>

#include "core/try.h"
#include "watch/estimate/later_run.h"

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

// The n-th process of a command is the same one in every run.
void join_processes(Outcome& outcome, Outcome& later,
                    const std::map<const Program*, RunsBefore>& before) {
    using Which = std::pair<std::vector<std::string>, unsigned>;
    std::map<std::vector<std::string>, unsigned> met;
    std::map<Which, Process*> known;
    for (const auto& process : outcome.processes)
        known[{process->command, met[process->command]++}] = process.get();
    met.clear();
    for (auto& process : later.processes) {
        auto known_before = before.find(process->program);
        for (std::uint16_t& thread : process->threads)
            if (known_before != before.end() && thread >= known_before->second.threads)
                thread = static_cast<std::uint16_t>(thread - known_before->second.threads);
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
        std::map<const Program*, RunsBefore> before;
        for (const auto& program : outcome.programs)
            before.emplace(program.get(), RunsBefore(program->samples, program->threads));
        if (std::ranges::any_of(before,
                                [](const auto& one) { return one.second.threads > kMostThreads; }))
            break;
        if (input >= 0) lseek(STDIN_FILENO, input, SEEK_SET);
        Outcome later = TRY(run(options, std::move(outcome.programs)));
        outcome.programs = std::move(later.programs);
        for (const auto& program : outcome.programs)
            if (auto found = before.find(program.get()); found != before.end())
                program->threads = join_later_run(program->samples, found->second, program->threads);
        join_processes(outcome, later, before);
        outcome.runs++;
        outcome.ended_otherwise = later.exit_status != outcome.exit_status;
        outcome.outlived += later.outlived;
    }
    return outcome;
}

}  // namespace revisit::watch::outside
