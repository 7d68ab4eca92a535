// Static prediction: a kernel's source in, its reuse profile at a given size out, nothing run.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "predict/cells.h"
#include "predict/design.h"
#include "predict/frontend.h"
#include "revisit/profile.h"

namespace revisit::predict {

enum class Method : std::uint8_t {
    automatic,  // small targets are interpreted whole, large ones fitted
    fit,
    simulate,
    estimate,  // as where there is no certificate: to see how good that is
};

// Programs for sets of macros; by default the slicer's (frontend.h).
using Compiler = std::function<Result<std::vector<Program>>(const std::vector<Parameters>& macros)>;

struct Request {
    Source source;
    Compiler compiler;
    Parameters macros;      // sizes given as -D
    Parameters parameters;  // sizes that are arguments or globals
    std::uint64_t granularity = 64;
    Binning bins = Binning::log2();
    Method method = Method::automatic;
    std::uint64_t simulate_up_to = 3'000'000;      // accesses: interpreted at once
    std::uint64_t simulate_at_most = 400'000'000;  // accesses: interpreted when no formulas are found
    double budget = 15;                            // seconds of processor time
    double branch_probability = 0.5;
    bool estimate = true;  // where there is no certificate; else only why not
    std::set<std::string>
        untied;  // sizes that vary on their own, though they equal others at the target
    std::uint64_t seed = 1;
    int layout = 0;  // of objects, see RunOptions
};

// What was learnt: formulas that hold for sizes like the target's.
struct Model {
    Design design;
    RowTable table{0, 1};
    std::vector<StreamModel> streams;  // beside table.streams()
    Program target;                    // as compiled at the target's sizes
    std::int64_t modulus = 1;
    std::int64_t shift = 0;  // iterations from a loop's ends that are told apart, where more than usual
    Pinned pinned;           // tiles: what stays as it is in the samples
    bool parted = false;     // or, instead, how large tiles are and how many there are, each varied
};

struct Prediction {
    Profile profile;
    std::shared_ptr<const Model> model;  // none when interpreted whole
    std::shared_ptr<const Program> target;
    std::vector<std::string> certificate;  // what was checked
    std::vector<std::string> failures;     // why it is not certified; empty = exact
};

Result<Prediction> predict(const Request& request);

// The formulas at a size; failures say where there are none, or why they do not hold there.
Profile evaluate_model(const Model& model, const std::vector<std::int64_t>& size, const Binning& bins,
                       std::vector<std::string>& failures, const Deadline& deadline = {});

// Interprets the whole run: exact, as long as the data decides nothing.
struct Simulation {
    Profile profile;  // site ids are places in `references`, plus one
    std::vector<ReferencePlace> references;
    std::vector<std::string> doubts;
    bool complete = false;
};
// What is accessed while `counted` says so counts `times` times.
struct Again {
    bool counted = false;
    double times = 1;
};
Result<Simulation> simulate(const Program& program, const Parameters& parameters,
                            const Request& request, const Binning& bins, const Deadline& deadline,
                            std::uint64_t max_accesses,
                            const decltype(RunOptions::outermost)& outermost = {},
                            const Again* again = nullptr);

// The whole run from a part of it, where an outermost loop does the same again and again, moved on by
// whole blocks; nothing when none does, or the part is longer than `max_accesses`.
struct Repetition {
    Simulation run;
    std::uint32_t line = 0;  // of the loop
    std::int64_t period = 1, shown = 0, iterations = 0;
};
Result<std::optional<Repetition>> simulate_repeating(const Program& program,
                                                     const Parameters& parameters,
                                                     const Request& request, const Deadline& deadline,
                                                     std::uint64_t max_accesses);

// From reduced copies of the run, for what has no formulas and is too long to interpret.
struct Reduction {
    const Design& design;
    const Program& target;
    std::function<Result<Program>(const std::vector<std::int64_t>& size)> program_at;
    // Accesses at the target by function, reference and context, as far as they are known.
    using Totals = std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint64_t>, double>;
    Totals totals;
};
struct Estimate {
    Profile profile;
    double accuracy = 0;    // to be expected at least
    double tested = 0;      // of an estimate of the largest copy from smaller ones
    Parameters parameters;  // of that copy
    double accesses = 0;
};
Result<Estimate> estimate(const Reduction& how, const Request& request, const Deadline& deadline);

}  // namespace revisit::predict
