#include "cli/recording.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "core/files.h"
#include "core/try.h"
#include "record/stream.h"

namespace revisit {
namespace {

std::string base_name(const std::string& path) {
    std::string name = std::filesystem::path(path).filename().string();
    return name.empty() ? "program" : name;
}

}  // namespace

Result<std::chrono::nanoseconds> parse_time(const std::string& option, const std::string& text) {
    std::size_t used = 0;
    double value = 0;
    try {
        value = std::stod(text, &used);
    } catch (const std::exception&) {
    }
    std::string unit = text.substr(used);
    double scale = unit.empty() || unit == "s" ? 1e9
                   : unit == "us"              ? 1e3
                   : unit == "ms"              ? 1e6
                   : unit == "m"               ? 60e9
                   : unit == "h"               ? 3600e9
                                               : 0;
    if (used == 0 || scale == 0 || !(value > 0) || value * scale > 1e18)
        return fail(
            fmt::format("{}: expected a time such as 10s, 250ms or 2m, found \"{}\"", option, text));
    return std::chrono::nanoseconds(static_cast<std::int64_t>(value * scale));
}

void RecordingOptions::declare(CLI::App& app) {
    app.add_option("PROGRAM", command, "the program and its arguments, after --")->expected(-1);
    app.add_option("--via", via,
                   "recorder: clang (programs built with revisit-clang), valgrind (any binary), auto")
        ->check(CLI::IsMember({"auto", "clang", "valgrind"}))
        ->capture_default_str()
        ->group("Recording");
    app.add_option("--duration", duration_text, "stop the program after this time (10s, 250ms, 2m)")
        ->type_name("TIME")
        ->group("Recording");
    app.add_option("--max-accesses", most_accesses_text,
                   "stop the program after N accesses (1e9, 500M)")
        ->type_name("N")
        ->group("Recording");
    app.add_option("--function", functions, "only inside this function and the functions it calls")
        ->type_name("NAME")
        ->expected(1)
        ->take_all()
        ->group("Recording");
    app.add_option("--region", regions,
                   "only inside this region, marked in the source (revisit/region.h)")
        ->type_name("NAME")
        ->expected(1)
        ->take_all()
        ->group("Recording");
    app.add_flag("--no-stack", no_stack, "ignore accesses to thread stacks")->group("Recording");
    app.add_flag("--no-children", no_children, "ignore child processes")->group("Recording");
    app.add_flag("--no-contexts", no_contexts, "do not record call stacks")->group("Recording");
    app.add_flag("--no-objects", no_objects,
                 "do not record data objects (heap blocks by allocation site, globals, stacks)")
        ->group("Recording");
}

Result<record::RunOptions> RecordingOptions::run_options() const {
    record::RunOptions run;
    if (command.empty()) return fail("PROGRAM is required");
    run.program = TRY(record::find_program(command));
    const bool is_built_for_it = run.program.instrumented || run.program.wraps_instrumented;
    const bool by_clang = !sampled && (via == "clang" || (via == "auto" && is_built_for_it));
    run.launch.recorder = by_clang ? record::Recorder::clang : record::Recorder::valgrind;
    run.launch.functions = functions;
    run.launch.output_to_error = output_to_error;
    run.launch.follow_exec = !no_children;
    if (!by_clang && !sampled) {
        TRY(record::find_valgrind());
        TRY(record::check_for_valgrind(run.program));
    }
    TRY(apply(run));
    return run;
}

Result<void> RecordingOptions::apply(record::RunOptions& run) const {
    if (!duration_text.empty())
        run.duration =
            std::chrono::ceil<std::chrono::milliseconds>(TRY(parse_time("--duration", duration_text)));
    if (!most_accesses_text.empty()) {
        Result<std::uint64_t> most = parse_count(most_accesses_text);
        if (!most) return fail("--max-accesses: " + most.error().message);
        if (*most == 0) return fail("--max-accesses: expected at least 1");
        run.decode.most_accesses = *most;
    }
    run.decode.contexts = !no_contexts;
    run.decode.objects = !no_objects;
    run.decode.stack = !no_stack;
    run.decode.only_regions = !functions.empty() || !regions.empty();
    run.decode.regions = regions;
    if (!functions.empty()) run.decode.regions.push_back("()");
    run.launch.regions = run.decode.regions;

    if (!no_contexts) run.want |= REVISIT_WANT_CALLS;
    if (!no_objects) run.want |= REVISIT_WANT_OBJECTS | REVISIT_WANT_CALLS;
    if (run.decode.only_regions) run.want |= REVISIT_WANT_REGIONS;
    if (!no_children) run.want |= REVISIT_WANT_CHILDREN;
    return {};
}

std::string default_output(const std::string& program, std::uint32_t pid, const std::string& ending) {
    return fmt::format("revisit-{}-{}{}", base_name(program), pid, ending);
}

// Pipes and devices are opened once, when there is something to write.
Result<void> check_output(const std::string& output, const std::string& program) {
    std::string path =
        output.empty() ? default_output(program, static_cast<std::uint32_t>(getpid()), "") : output;
    std::error_code error;
    auto status = std::filesystem::status(path, error);
    if (path == "-" || (exists(status) && !is_regular_file(status) && !is_directory(status))) return {};
    constexpr std::size_t kLeast = 4096;  // bytes: a disk without them is full
    OutputFile file = TRY(OutputFile::create(path));
    return file.write(std::string(kLeast, ' '));
}

std::string child_output(const std::string& output, const std::string& program, std::uint32_t pid,
                         const std::string& ending) {
    if (output == "/dev/null") return output;
    std::filesystem::path path(output);
    std::error_code error;
    if (auto status = std::filesystem::status(path, error);
        output == "-" || (exists(status) && !is_regular_file(status)))
        return default_output(program, pid, ending);
    return path.parent_path() / fmt::format("{}-{}-{}{}", path.stem().string(), base_name(program), pid,
                                            path.extension().string());
}

std::vector<std::string> notes_of(const record::RunOutcome& outcome, const RecordingOptions& options) {
    std::vector<std::string> notes;
    for (const record::RunNote& note : outcome.notes)
        notes.push_back(note.text +
                        (note.sampling_helps ? "; sampling (--method watch) has no such limit" : ""));
    auto seen = [&](const std::string& name) {
        return std::ranges::find(outcome.regions_seen, name) != outcome.regions_seen.end();
    };
    for (const std::string& name : options.regions)
        if (!seen(name)) notes.push_back(fmt::format("region \"{}\" was never entered", name));
    if (!options.functions.empty() && !seen("()"))
        notes.push_back(
            fmt::format("function {} was never entered (inlined, or not a symbol of the program)",
                        fmt::join(options.functions, ", ")));
    return notes;
}

}  // namespace revisit
