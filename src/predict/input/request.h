// What to predict, and how.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "predict/input/data.h"
#include "predict/slice/frontend.h"
#include "revisit/profile.h"

namespace revisit::predict {

enum class Method : std::uint8_t {
    automatic,  // small targets are interpreted whole, large ones fitted
    fit,
    simulate,
    repeat,    // a part of the run, where it repeats; or no answer
    estimate,  // as where there is no certificate: to see how good that is
};

// Programs for sets of macros; by default the slicer's (frontend.h).
using Compiler = std::function<Result<std::vector<Program>>(const std::vector<Parameters>& macros)>;

struct Request {
    Source source;
    Compiler compiler;
    Parameters macros;      // sizes given as -D
    Parameters parameters;  // sizes that are arguments or globals
    std::vector<DataSource> data;
    // Take data and missing sizes from a run of the program with these arguments.
    std::optional<std::vector<std::string>> record;
    std::vector<std::string> argv;  // of main, after the program's name
    unsigned threads = 1;           // of parallel loops, a stack each; 1: in sequence
    std::uint64_t granularity = 64;
    Binning bins = Binning::log2();
    Method method = Method::automatic;
    std::uint64_t simulate_up_to = 50'000'000;     // accesses: interpreted at once
    std::uint64_t simulate_at_most = 400'000'000;  // accesses: interpreted when no formulas are found
    double budget = 15;                            // seconds of processor time
    double branch_probability = 0.5;
    bool estimate = true;  // where there is no certificate; else only why not
    std::set<std::string>
        untied;  // sizes that vary on their own, though they equal others at the target
    std::uint64_t seed = 1;
    int layout = 0;  // of objects, see RunOptions
};

}  // namespace revisit::predict
