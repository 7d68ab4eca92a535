// Static prediction: a kernel's source in, its reuse profile at a given size out, nothing run.
#pragma once

#include "predict/certify/prediction.h"
#include "predict/input/request.h"

namespace revisit::predict {

Result<Prediction> predict(const Request& request);

}  // namespace revisit::predict
