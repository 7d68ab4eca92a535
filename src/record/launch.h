// Starting a program under a recorder.
//
// The program keeps its input, output, working directory, environment and process group; what goes
// wrong before its first instruction is reported in one line. A recorder is picked by name: `clang`
// runs a program built with the plug-in as it is, `valgrind` runs any binary under our tool.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "record/slots.h"
#include "revisit/error.h"

namespace revisit::record {

enum class Recorder { clang, valgrind };

struct Program {
    std::string path;                    // as found
    std::vector<std::string> arguments;  // with the name as it was typed
    bool instrumented = false;           // built with the compiler plug-in
    bool wraps_instrumented = false;     // … or one that it only prepares for (env, taskset)
};

// Whether a file has these bytes in it.
bool contains(const std::string& path, std::string_view mark);
// Looks the program up as a shell would and checks that it can run here.
Result<Program> find_program(const std::vector<std::string>& command);

// Files of ours that a recorder needs at run time, beside the program or under the install prefix;
// empty when they are not there.
std::string support_directory(const std::string& name);

struct ValgrindParts {
    std::string launcher;
    std::string directory;  // holds our tool
};
Result<ValgrindParts> find_valgrind();
// Whether valgrind can run it at all.
Result<void> check_for_valgrind(const Program& program);

struct LaunchOptions {
    Recorder recorder = Recorder::valgrind;
    std::vector<std::string> functions;  // mark what happens inside of these
    std::vector<std::string> regions;    // the marks that count, where the program samples itself
    bool follow_exec = true;
    bool silent = false;           // input and output at /dev/null
    bool keeps_input = false;      // … but for its input
    bool output_to_error = false;  // standard output has the result alone
    std::string messages;          // valgrind: a file that its messages are appended to
    bool in_order = false;         // valgrind: threads run in turn, each as long as the others
    bool ends_with_us = false;     // killed when this process ends first
    // Called with the child's process id before it becomes the program.
    std::function<Result<void>(pid_t)> before_exec;
};

using Environment = std::vector<std::pair<std::string, std::string>>;  // what is added to ours

// The process id of what was started.
Result<pid_t> start(const std::string& file, std::vector<std::string> arguments,
                    const Environment& environment, const LaunchOptions& options);
// The process id of the started program.
Result<pid_t> launch(const Program& program, const Slots& slots, const LaunchOptions& options);

}  // namespace revisit::record
