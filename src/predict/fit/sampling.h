// From a target to a model: which programs, which sizes, which samples.
#pragma once

#include <optional>
#include <set>

#include "predict/fit/extremes.h"
#include "predict/fit/family.h"
#include "predict/fit/fixed_numbers.h"
#include "predict/fit/model.h"
#include "predict/input/request.h"

namespace revisit::predict {

// What one prediction works on.
struct Session {
    const Request& request;
    Deadline deadline;
    Parameters sizes;  // given: macros and parameters
    Program target;    // as compiled at them

    Result<std::vector<Program>> compiled(const std::vector<Parameters>& macros) const;
};

// The program at any sizes like the target's. Sizes that are macros need a compiler: its constants are
// interpolated from a few compilations, or it is compiled each time. Large fixed numbers are sizes too.
class Programs {
 public:
    static Result<Programs> prepare(const Session& session, std::int64_t modulus,
                                    const Pinned& pinned = {});

    Result<Program> at(const Parameters& sizes) const;
    bool interpolated() const { return family_.has_value(); }
    bool whole() const { return family_ && family_->whole(); }  // tiles may vary
    const Program& target() const { return target_; }           // with its numbers as parameters
    const Parameters& sizes() const { return sizes_; }          // of the target, numbers among them
    const std::vector<Doubt>& left() const { return left_; }    // numbers that are not varied
    // By axis of a design: the residues it has to keep for periods other than those of blocks.
    Result<std::vector<std::int64_t>> periods(const Design& design, std::uint64_t granularity,
                                              std::int64_t modulus) const;

 private:
    explicit Programs(const Session& session) : session_(&session) {}
    // Compiles at a few sizes and interpolates; adds the programs of the target's shape to `kept`.
    using SizesAndPrograms = std::pair<std::vector<std::vector<std::int64_t>>, std::vector<Program>>;
    Result<void> compile_family(bool near, SizesAndPrograms& kept);
    Parameters macros_at(const Parameters& sizes) const;
    std::vector<std::int64_t> family_size(const Parameters& sizes) const;
    // The target with other constants wherever a size of the axis is in them.
    Program marked(const Axis& axis, std::int64_t& denominator) const;

    const Session* session_;
    Design design_;  // of the macros alone
    std::optional<ProgramFamily> family_;
    VariedNumbers numbers_;
    Program target_;
    Parameters sizes_;
    std::vector<Doubt> left_;
};

struct Learning {
    Programs programs;
    std::set<Doubt> doubts;
    Reach reach;          // how far the samples' numbers went
    bool sampled = true;  // false: nothing but the design, for an estimate
    bool rough = false;   // samples without the target's residues: counts for an estimate, no formulas
};

// Runs the samples and fits. `period`: iterations after which places within blocks repeat, 1 =
// elements. The model has its modulus; the rest is filled in. `rough`: an estimate is all that is
// wanted.
Result<Learning> learn_model(const Session& session, Model& model, std::int64_t period,
                             bool proportional, const Deadline& deadline, bool rough = false);

Error too_deep(const Session& session);

bool data_decides(const std::set<Doubt>& doubts);

}  // namespace revisit::predict
