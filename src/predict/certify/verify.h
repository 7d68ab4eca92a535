// A prediction against a recorded run of the same function.
#pragma once

#include "predict/certify/prediction.h"
#include "predict/input/request.h"

namespace revisit::predict {

struct Verification {
    Profile measured;
    bool equal = false;   // every bin, cold and the number of accesses
    double accuracy = 0;  // S over the bins
};

// Builds the source with revisit-clang around a main that calls the function with the request's sizes,
// runs it under the exact recorder and compares.
Result<Verification> verify(const Request& request, const Prediction& prediction);

}  // namespace revisit::predict
