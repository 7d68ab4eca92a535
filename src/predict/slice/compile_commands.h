// How a project compiles a file: compile_commands.json.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "revisit/error.h"

namespace revisit::predict {

struct CompileCommand {
    std::vector<std::string> flags;  // what decides the program: macros, folders, dialect, processor
    int optimise = 0;                // 0, 1, 2, 3 or 's'
};

// The entry for `source` in `folder`/compile_commands.json.
Result<CompileCommand> compile_command(const std::string& folder, const std::string& source);

}  // namespace revisit::predict
