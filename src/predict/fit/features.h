// What distinguishes iterations: how close a loop is to its ends, differences of variables, residues.
#pragma once

#include <string>
#include <vector>

#include "predict/fit/cells.h"
#include "predict/fit/loop_bounds.h"
#include "predict/fit/rows.h"

namespace revisit::predict {

// How finely rows are cut; plans are tried from the coarsest on.
struct Plan {
    int clip = 0;        // bounds: how many iterations from either end are distinguished
    int pair_clip = 0;   // differences of loop variables, 0 = not used
    int modulus = 0;     // residues of iteration numbers
    bool phase = false;  // address within the block
    bool doubled = false;
    bool own = false;     // residues only of loops that move within blocks
    bool blocks = false;  // clip and pair_clip are in blocks, not in iterations
    bool wide = false;    // differences of all loop variables, and of variables and sizes
};

// `period`: of addresses within a block, in iterations, 1 = elements; `modulus`: of the samples' sizes.
// `shift`: iterations from either end that may matter, where they are many.
std::vector<Plan> plans_for(std::size_t loops, std::int64_t period, std::int64_t modulus,
                            std::int64_t shift);

struct Feature {
    // `below` and `before`: a variable less a size, and a size less the iterations left.
    enum class Kind : std::uint8_t { first, last, pair, doubled, residue, phase, below, before } kind;
    std::uint8_t a = 0, b = 0;
    int clip = 0;
    int unit = 1;
};

// The features of one stream's rows.
class Features {
 public:
    Features(const Stream& stream, const RowTable& table, const LoopBounds& bounds,
             const CellOptions& options);

    std::vector<Feature> of(const Plan& plan) const;
    std::int8_t value(const Feature& feature, std::size_t row) const;
    std::vector<std::int8_t> column(const Feature& feature) const;      // the value of every row
    std::string name(const Feature& feature, std::int8_t value) const;  // for people

 private:
    int period_of(std::size_t loop) const;
    template <class Act>
    auto with(const Feature& feature, Act&& act) const;

    const Stream& s_;
    const RowTable& table_;
    const LoopBounds& bounds_;
    const CellOptions& options_;
    std::size_t sizes_, loops_;
    std::vector<std::int32_t> least_first_, least_left_;
};

}  // namespace revisit::predict
