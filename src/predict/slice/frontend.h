// Sources into slices: runs the slicer helper.
#pragma once

#include <string>
#include <vector>

#include "predict/run/interpret.h"

namespace revisit::predict {

struct Source {
    std::string path;
    std::string function;
    int optimise = 1;
    std::vector<std::string> flags;  // -I, -D of everything that is not a size
};

// Runs a program (found by PATH when it has no slash) and takes all it writes; its exit status.
Result<int> run_program(std::vector<std::string> arguments, std::string& out, std::string& messages);

// The helper beside this program, or where it is installed; empty when this build has none.
std::string slicer_path();

// One program a set of macros.
Result<std::vector<Program>> compile(const Source& source, const std::vector<Parameters>& macros);

}  // namespace revisit::predict
