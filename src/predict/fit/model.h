// Formulas and what they came from.
#pragma once

#include <string>
#include <vector>

#include "predict/fit/cells.h"
#include "predict/fit/design.h"
#include "predict/run/deadline.h"
#include "predict/slice/doubt.h"
#include "revisit/profile.h"

namespace revisit::predict {

// What was learnt: formulas that hold for sizes like the target's.
struct Model {
    Design design;
    RowTable table{0, 1};
    std::vector<StreamModel> streams;  // beside table.streams()
    Program target;                    // as compiled at the target's sizes
    std::int64_t modulus = 1;
    std::int64_t shift =
        0;                // iterations from a loop's ends that are distinguished, where more than usual
    Pinned pinned;        // tiles: what stays as it is in the samples
    bool parted = false;  // or, instead, how large tiles are and how many there are, each varied
};

// The formulas at a size; failures say where there are none, or why they do not hold there.
Profile evaluate_model(const Model& model, const std::vector<std::int64_t>& size, const Binning& bins,
                       std::vector<Doubt>& failures, const Deadline& deadline = {});

}  // namespace revisit::predict
