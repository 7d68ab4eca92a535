// The answer: a profile, and how sure it is.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "predict/fit/model.h"

namespace revisit::predict {

struct Prediction {
    Profile profile;
    std::shared_ptr<const Model> model;  // none when interpreted whole
    std::shared_ptr<const Program> target;
    std::vector<std::string> certificate;  // what was checked
    std::vector<Doubt> failures;           // why it is only an estimate
    std::vector<Doubt> unproven;           // of formulas: what a proof lacks

    Certainty certainty() const {
        return !failures.empty()   ? Certainty::estimated
               : !unproven.empty() ? Certainty::fitted
                                   : Certainty::exact;
    }
};

}  // namespace revisit::predict
