// Static prediction: a kernel's source in, its reuse profile at a given size out, nothing run.
#pragma once

#include <functional>
#include <memory>
#include <string>
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
    std::uint64_t simulate_up_to = 1'000'000;  // accesses
    double branch_probability = 0.5;
    std::uint64_t seed = 1;
};

// What was learnt: formulas that hold for sizes like the target's.
struct Model {
    Design design;
    RowTable table{0, 1};
    std::vector<StreamModel> streams;  // beside table.streams()
    Program target;                    // as compiled at the target's sizes
    std::int64_t modulus = 1;
};

struct Prediction {
    Profile profile;
    std::shared_ptr<const Model> model;    // none when interpreted whole
    std::vector<std::string> certificate;  // what was checked
    std::vector<std::string> failures;     // why it is not certified; empty = exact
};

Result<Prediction> predict(const Request& request);

// The same formulas at another size; exact says whether they are determined there.
Profile evaluate_model(const Model& model, const std::vector<std::int64_t>& size, const Binning& bins,
                       std::vector<std::string>& failures);

// Interprets the whole run: exact, as long as the data decides nothing.
Result<Profile> simulate(const Program& program, const Parameters& parameters, const Request& request,
                         std::uint64_t max_accesses, std::vector<std::string>& doubts, bool& complete);

}  // namespace revisit::predict
