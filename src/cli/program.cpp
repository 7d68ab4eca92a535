// The program: finds the command, lets it run, turns an Error into one line (a compiler's own words
// keep theirs) and status 2.
#include <fmt/format.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <system_error>

#include "cli/command.h"
#include "cli/completion.h"
#include "cli/help.h"
#include "cli/manuals.h"
#include "cli/program.h"
#include "core/pattern.h"
#include "formats/mapped_file.h"
#include "revisit/version.h"

namespace {

int complain(const std::string& program, std::string message) {
    while (!message.empty() && (message.back() == ' ' || message.back() == '\n')) message.pop_back();
    // Where several ranks of a cluster fail alike, one of them speaks.
    if (!message.empty()) revisit::say(fmt::format("{}: {}\n", program, message));
    return 2;
}

// What CLI11 says comes in lines of its own making.
std::string one_line(std::string message) {
    for (char& c : message)
        if (c == '\n') c = ' ';
    return message;
}

// The sentences of CLI11 that users meet most, as all others are written.
std::string in_our_words(const CLI::App& command, const std::string& said) {
    auto takes_a_value = [&](const std::string& name) {
        const CLI::Option* option = command.get_option_no_throw(name);
        return option == nullptr || option->get_items_expected_max() > 0;
    };
    if (auto found = revisit::Pattern("^Could not convert: ([^ ]+) = (.*)$").find(said))
        return fmt::format("{}: {}, found \"{}\"", found->group(1),
                           takes_a_value(found->group(1)) ? "expected a number" : "takes no value",
                           found->group(2));
    if (auto found = revisit::Pattern("^([^ ]+): At Most 1 required but received ([0-9]+)$").find(said))
        return fmt::format("{}: expected once, found {} times", found->group(1), found->group(2));
    // "1 to 9", or "[1 - 9]" by newer versions
    if (auto found =
            revisit::Pattern("^([^ ]+): Value (.*) not in range [[]?([^] ]+) (to|-) ([^] ]+)[]]?$")
                .find(said))
        return fmt::format("{}: expected {} to {}, found \"{}\"", found->group(1), found->group(3),
                           found->group(5), found->group(2));
    if (auto found = revisit::Pattern("^([^ ]+): (.*) not in [{](.*)[}]$").find(said))
        return fmt::format("{}: expected one of {}, found \"{}\"", found->group(1), found->group(3),
                           found->group(2));
    return said;
}

// Threads of our own have nobody to catch what they lack.
[[noreturn]] void end_without_memory() {
    try {
        if (std::exception_ptr error = std::current_exception()) std::rethrow_exception(error);
    } catch (const std::bad_alloc&) {
        constexpr std::string_view kLine = "revisit: out of memory\n";
        (void)!write(STDERR_FILENO, kLine.data(), kLine.size());
        _exit(2);
    } catch (...) {
    }
    std::abort();
}

// Limits of the process (ulimit) are errors like any other.
revisit::Result<int> run(revisit::Command& command) {
    try {
        return command.run();
    } catch (const std::bad_alloc&) {
        return revisit::fail("out of memory");
    } catch (const std::system_error& error) {
        return revisit::fail(one_line(error.what()));
    }
}

}  // namespace

int revisit::run_program(int argc, char** argv) {
    using namespace revisit;
    // A closed pipe and a limit on file sizes are write errors like any other.
    for (int number : {SIGPIPE, SIGXFSZ}) std::signal(number, SIG_IGN);
    allow_mapped_files();
    std::set_terminate(end_without_memory);

    CLI::App app{
        "revisit measures reuse distance: how much other memory a program touches between two uses of\n"
        "the same data, in which lines of code, and which cache sizes would help."};
    app.name("revisit");
    app.formatter(help_formatter());
    app.set_help_flag("-h,--help", "the common options and examples");
    app.set_help_all_flag("--help-all", "every option");
    app.set_version_flag("--version", "revisit " REVISIT_VERSION_STRING);
    app.require_subcommand(0, 1);
    std::string manuals_folder;
    app.add_option("--generate-manuals", manuals_folder,
                   "write man pages and completions below this folder")
        ->group("");

    std::vector<std::unique_ptr<Command>> made;
    std::vector<CLI::App*> declared;
    for (const CommandEntry& entry : commands()) {
        CLI::App* sub = app.add_subcommand(std::string(entry.name), std::string(entry.summary));
        made.push_back(entry.make());
        made.back()->declare(*sub);
        declared.push_back(sub);
    }
    app.footer(
        "Examples:\n"
        "  revisit profile -o app.json -- ./app ARGS    # sample a program as it is\n"
        "  revisit report app.json                      # which lines, which data, which cache sizes\n"
        "  revisit COMMAND --help                       # options and examples of a command");

    if (argc >= 2 && std::string_view(argv[1]) == "--complete") {
        const std::string offered = complete(app, {argv + 2, argv + argc});
        return print(offered) ? 0 : 2;
    }
    std::string speaker = "revisit";
    try {
        app.parse(argc, argv);
    } catch (const CLI::Success& success) {  // --help, --version
        return app.exit(success);
    } catch (const CLI::ParseError& error) {
        const CLI::App* spoken_to = &app;
        for (CLI::App* sub : declared)
            if (sub->parsed()) speaker = "revisit " + sub->get_name(), spoken_to = sub;
        return complain(speaker, in_our_words(*spoken_to, one_line(error.what())) + " (see " + speaker +
                                     " --help)");
    }

    if (!manuals_folder.empty()) {
        auto done = write_manuals(app, manuals_folder);
        return done ? 0 : complain(speaker, done.error().sentence());
    }
    for (std::size_t i = 0; i < declared.size(); ++i) {
        if (!declared[i]->parsed()) continue;
        auto status = run(*made[i]);
        return status ? *status
                      : complain("revisit " + declared[i]->get_name(), with_hint(status.error()));
    }
    fmt::print("{}", app.help());
    return 0;
}
