// Static prediction: a kernel's source in, its reuse profile at a given size out, nothing run.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "predict/fit/model.h"
#include "predict/request.h"

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

Result<Prediction> predict(const Request& request);

}  // namespace revisit::predict
