#include "watch/profile.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "core/try.h"
#include "record/leading.h"
#include "symbols/origins.h"
#include "watch/estimate/notes.h"
#include "watch/estimate/site_facts.h"

namespace revisit::watch::outside {
namespace {

std::string base_name(const std::string& path) {
    return std::filesystem::path(path).filename().string();
}

// Processor time of a program's threads. Many end before their first sample, as processes that a server
// forks for a request: their accesses are as many as the others had in that time.
struct Times {
    double sampled = 0, unsampled = 0;
    std::map<const Process*, double> unsampled_of;

    double share() const { return sampled > 0 ? sampled / (sampled + unsampled) : 1; }
};

Times times_of(const Program& program, const Outcome& outcome) {
    Times times;
    const auto& threads = program.samples.threads;
    auto time_of = [](const ThreadSamples& thread) {  // its end may not be known
        return static_cast<double>(std::max(thread.end, thread.samples.back().time));
    };
    for (const auto& [number, thread] : threads) times.sampled += time_of(thread);
    for (const auto& process : outcome.processes) {
        if (process->program != &program) continue;
        double rest = static_cast<double>(process->time);
        bool all_sampled = !process->threads.empty();
        for (std::uint16_t number : process->threads) {
            auto found = threads.find(number);
            if (found == threads.end())
                all_sampled = false;
            else
                rest -= time_of(found->second);
        }
        if (all_sampled || rest <= 0) continue;
        times.unsampled_of[process.get()] = rest;
        times.unsampled += rest;
    }
    return times;
}

Profile estimate_program(Program& program, const Times& times, const Outcome& outcome,
                         const ProfileOptions& options) {
    Origins origins =
        program.places.finish(program.samples, program.path, options.contexts, options.objects);
    EstimateOptions how = options.estimate;
    how.runs = outcome.runs;
    how.from_beginning = !outcome.attached;
    how.sampled_share = times.share();
    Profile profile = estimate(program.samples, origins, how, options.counts);
    program.samples.conflicts.fill(profile);
    explain(profile, origins);
    add_site_facts(profile, program.samples, origins);
    add_notes(program.samples, origins, profile.notes);
    return profile;
}

// Accesses go with the samples: threads of one program are estimated one by one, but all of a program
// whose single thread has no part of its own.
double accesses_of(const Process& process, const Profile& profile, const Times& times) {
    const auto unsampled = times.unsampled_of.find(&process);
    const double of_time =
        unsampled == times.unsampled_of.end()
            ? 0
            : profile.accesses * (1 - times.share()) * unsampled->second / times.unsampled;
    if (profile.threads.empty()) {
        const bool has_samples = std::ranges::any_of(process.threads, [&](std::uint16_t number) {
            return process.program->samples.threads.contains(number);
        });
        return of_time + (has_samples ? times.share() * profile.accesses : 0);
    }
    double sum = of_time;
    for (const ThreadProfile& thread : profile.threads)
        if (std::ranges::find(process.threads, thread.id) != process.threads.end())
            sum += times.share() * thread.accesses;
    return sum;
}

// libdw ends the process, or crashes, where a limit keeps it from mapping what it names functions by.
bool has_room_for_names() {
    constexpr rlim_t kRoom = 56u << 20;  // the C library's, and those of a few programs
    rlimit limit{};
    if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return true;
    std::ifstream file("/proc/self/statm");
    rlim_t pages = 0;
    file >> pages;
    return pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + kRoom <= limit.rlim_cur;
}

std::map<const Program*, double> claims_of(const Outcome& outcome) {
    std::vector<record::RanAs<const Program*>> processes;
    for (const auto& one : outcome.processes)
        processes.push_back({one->pid, one->program, one->command, static_cast<double>(one->time)});
    auto claims = record::claims_to_lead(processes);
    for (const auto& program : outcome.programs) claims.try_emplace(program.get());
    return claims;
}

}  // namespace

Result<Profile> profile_of(Outcome& outcome, const ProfileOptions& options) {
    if (!has_room_for_names())
        return fail("out of memory: naming functions needs 56 MB more address space (ulimit -v)");
    std::map<const Program*, Profile> profiles;
    std::map<const Program*, Times> times;
    for (const auto& program : outcome.programs) {
        std::erase_if(program->samples.threads,
                      [](const auto& one) { return one.second.samples.empty(); });
        times[program.get()] = times_of(*program, outcome);
        if (!program->samples.threads.empty() || outcome.programs.size() == 1)
            profiles[program.get()] =
                estimate_program(*program, times[program.get()], outcome, options);
    }
    const auto claims = claims_of(outcome);
    auto lead = std::ranges::max_element(outcome.programs, {},
                                         [&](const auto& one) { return claims.at(one.get()); });
    // Of a program without a sample nothing is known but that it ran: another leads that did as much.
    if (lead != outcome.programs.end() && !profiles.contains(lead->get())) {
        const double most = claims.at(lead->get());
        auto sampled = std::ranges::max_element(outcome.programs, {}, [&](const auto& one) {
            return profiles.contains(one.get()) ? claims.at(one.get()) : -1;
        });
        if (profiles.contains(sampled->get()) && 2 * claims.at(sampled->get()) >= most)
            lead = sampled;
        else
            profiles[lead->get()] = estimate_program(**lead, times[lead->get()], outcome, options);
    }
    Profile profile;
    profile.method = "watch";
    profile.granularity = options.estimate.granularity;
    const Program* leading = nullptr;
    if (lead != outcome.programs.end() && profiles.contains(lead->get())) {
        leading = lead->get();
        profile = profiles.at(leading);
    }
    std::set<pid_t> all, of_leading;  // a process has an entry for each program that it becomes
    for (const auto& process : outcome.processes) {
        all.insert(process->pid);
        ProcessSummary one;
        one.pid = static_cast<std::uint32_t>(process->pid);
        one.parent = static_cast<std::uint32_t>(process->parent);
        one.command = process->command;
        one.seconds = static_cast<double>(process->time) / 1e9 / outcome.runs;
        if (auto found = profiles.find(process->program); found != profiles.end())
            one.accesses = accesses_of(*process, found->second, times[process->program]);
        for (std::uint16_t number : process->threads)
            if (auto found = process->program->samples.threads.find(number);
                found != process->program->samples.threads.end())
                one.samples += static_cast<double>(found->second.samples.size());
        if (process->program == leading) {
            of_leading.insert(process->pid);
            if (profile.command.empty() && one.samples > 0) profile.command = one.command;
        }
        profile.processes.push_back(std::move(one));
    }
    if (options.whole) {
        for (const auto& [program, other] : profiles)
            if (program != leading) TRY(merge_profile(profile, other));
        if (profiles.size() > 1) profile.command.clear();
    } else if (outcome.processes.size() > 1 && leading != nullptr)
        profile.notes.push_back(
            record::leading_note(base_name(leading->path), of_leading.size(), all.size()));
    return profile;
}

record::RunOutcome summary_of(const Outcome& outcome) {
    record::RunOutcome out;
    out.exit_status = outcome.exit_status;
    out.signal = outcome.signal;
    out.limit_reached = outcome.limit_reached;
    out.processes = outcome.processes.size();
    if (outcome.runs > 1)
        out.notes.push_back({fmt::format(
            "the samples are of {} runs of the program, the counts of one{}", outcome.runs,
            outcome.ended_otherwise ? "; the last run ended with another status than the first" : "")});
    if (outcome.limit_reached) out.exit_status = 0;
    record::note_end(out, outcome.outlived);
    return out;
}

}  // namespace revisit::watch::outside
