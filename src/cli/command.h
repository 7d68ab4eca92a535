// What a command is, and what most of them share. A new command is one file and one line in
// command.cpp.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "report/low_locality.h"
#include "report/terminal.h"
#include "revisit/revisit.h"

namespace revisit {

class Command {
 public:
    virtual ~Command() = default;
    virtual void declare(CLI::App& app) = 0;  // options, and examples as the footer
    virtual Result<int> run() = 0;            // the exit status; an Error is one line and 2
};

struct CommandEntry {
    std::string_view name;
    std::string_view summary;
    std::unique_ptr<Command> (*make)();
};
std::span<const CommandEntry> commands();

// An Error where an option of `app` was given that another method has use for, and this one has not.
// Where the method was chosen by what the machine can do, options of watching are let pass: elsewhere
// they have their use.
Result<void> check_options(const CLI::App& app, std::string_view method, bool automatic = false);

// What is lost of a trace in a format that cannot hold all its columns: "threads and writes"; empty =
// nothing. Constant columns of zeros lose nothing.
class LostColumns {
 public:
    explicit LostColumns(const TraceWriter& writer) : holds_(writer.holds()) {}
    void see(const AccessBatch& batch);
    // On standard error, unless quiet.
    void report(std::string_view command, const std::string& output, bool quiet) const;

 private:
    ColumnSet holds_;
    ColumnSet lost_;
};

// The sentence of an error, and the option that helps where there is one.
std::string with_hint(const Error& error);

// A word as a shell takes it: in quotes where it has spaces and the like.
std::string shell_word(const std::string& word);
std::string shell_words(const std::vector<std::string>& words);

// Of the inputs of a command, one may be standard input.
Result<void> check_inputs(const std::vector<std::string>& inputs);

// For CLI11's check(): it takes "" for 0 and -1 for the largest number.
std::string whole_number(const std::string& text);

// Options of several commands, declared and parsed alike.
struct AnalysisOptions {
    std::string granularity_text;
    std::string bins_text = "log2:8";
    std::string model_of = "time=phases";
    unsigned threads = 0;
    unsigned phases = 0;
    std::uint64_t seed = 1;

    void declare(CLI::App& app);
    Result<EngineOptions> engine_options() const;
    // All block sizes that were asked for, the main one first; none: the default.
    Result<std::vector<std::uint64_t>> granularities() const;
    bool granularity_given() const { return !granularity_text.empty(); }
    bool several_granularities() const { return granularity_text.find(',') != std::string::npos; }
};

// What is counted beside the main histogram, in the same pass.
struct BesideOptions {
    std::string line_use, cores;

    void declare(CLI::App& app);
    Result<void> apply(const AnalysisOptions& analysis, AnalyzeOptions& options) const;
};

struct ModelOption {
    std::string model = "single";

    void declare(CLI::App& app);
    void apply(EngineOptions& options) const;
    // What the profile calls it: `both` is the private model with the shared histogram beside.
    std::string name() const { return model == "both" ? "private" : model; }
};

// Options of the sampling methods.
struct SamplingOptions {
    std::string rate = "0.01";
    std::string target_error;
    std::string prune = "99%";
    std::uint64_t prune_after = 100;
    const CLI::Option* rate_option = nullptr;  // was a rate asked for?

    void declare(CLI::App& app);
    Result<void> apply(EngineOptions& options) const;
};

struct OutputOptions {
    std::string output;
    bool json = false;
    bool quiet = false;

    void declare(CLI::App& app, const std::string& output_help);
};

struct CacheOptions {
    std::vector<std::string> specs;

    void declare(CLI::App& app, const std::string& help);
    // `--cache A B PROFILE` hands PROFILE to the caches; gives it back to an empty `positional`.
    Result<void> give_back(std::string& positional, std::string_view name);
    // The given caches, or this machine's when none is given.
    Result<std::vector<CacheSpec>> caches() const;
};

// What `report --miss-coverage` and `diff --weight-match` ask for: no coverage given means the usual
// four, no cache given the size chosen by the profile itself.
Result<LowLocalityOptions> low_locality_options(const std::vector<std::string>& coverages,
                                                const CacheOptions& given,
                                                const std::vector<CacheSpec>& caches, bool reuses_only);

// Colour and width of this terminal; NO_COLOR is honoured.
TerminalStyle stdout_style();

// Writes to standard output; a closed pipe or full disk is an Error.
Result<void> print(std::string_view text);
// To standard error. Where that cannot be written, nobody can be told.
void say(std::string_view text);

}  // namespace revisit
