// Sources into slices: runs the slicer helper.
#pragma once

#include <string>
#include <vector>

#include "predict/slice/slice.h"

namespace revisit::predict {

// A further file of the same program.
struct Unit {
    std::string path;
    std::vector<std::string> flags;
};

struct Source {
    std::string path;
    std::string function;
    int optimise = 1;                // 0, 1, 2, 3 or 's'
    std::vector<std::string> flags;  // -I, -march, -D of everything that is not a size
    std::vector<Unit> others = {};   // linked with it
    bool in_program = false;  // compiled with its callers in sight, not as one called from elsewhere

    std::string level() const { return optimise == 's' ? "s" : std::to_string(optimise); }
};

// By its name.
bool is_cpp(const std::string& path);

// Runs a program (found by PATH when it has no slash) and takes all it writes; its exit status.
Result<int> run_program(std::vector<std::string> arguments, std::string& out, std::string& messages);

// The helper beside this program, or where it is installed; empty when this build has none.
std::string slicer_path();

// Names among the macros, and the -D of the flags, that change nothing in the source.
Result<std::vector<std::string>> unused_macros(const Source& source, const Parameters& macros);

// Builds the whole program so that it notes what decides in the function (record_data.cpp).
Result<void> compile_notes(const Source& source, const Parameters& macros, const std::string& program);

// One program a set of macros.
Result<std::vector<Program>> compile(const Source& source, const std::vector<Parameters>& macros);

}  // namespace revisit::predict
