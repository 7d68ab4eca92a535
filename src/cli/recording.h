// What `profile` and `record` share: the program to run, how to record it and what of it.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "cli/command.h"
#include "record/run.h"

namespace revisit {

struct RecordingOptions {
    std::vector<std::string> command;
    std::string via = "auto";
    std::string duration_text;
    std::string most_accesses_text;
    std::vector<std::string> functions;
    std::vector<std::string> regions;
    bool no_stack = false;
    bool no_children = false;
    bool no_contexts = false;
    bool no_objects = false;
    bool output_to_error = false;  // not set by an option: standard output has the result alone
    bool sampled = false;          // not set by an option: the program runs as it is, under the sampler

    void declare(CLI::App& app);
    Result<record::RunOptions> run_options() const;
    // Of these, what holds for any program.
    Result<void> apply(record::RunOptions& run) const;
};

// "10", "10s", "250ms", "200us", "2m"; an Error names the option.
Result<std::chrono::nanoseconds> parse_time(const std::string& option, const std::string& text);

// "revisit-ls-4711.json": where a result goes when no path was given.
std::string default_output(const std::string& program, std::uint32_t pid, const std::string& ending);

// Whether a result can be written there, found out before the program runs; empty: default_output of
// it.
Result<void> check_output(const std::string& output, const std::string& program);

// The name of a child process's result, beside that of the program: "out-sort-4712.json". What goes
// to a pipe or a device has no beside: its children's results are in the current directory.
std::string child_output(const std::string& output, const std::string& program, std::uint32_t pid,
                         const std::string& ending);

// What a run reports beside its result, one line each: limits, regions never entered.
std::vector<std::string> notes_of(const record::RunOutcome& outcome, const RecordingOptions& options);

}  // namespace revisit
