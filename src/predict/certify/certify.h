// What an answer must pass to be called exact.
#pragma once

#include <memory>
#include <string>

#include "predict/certify/prediction.h"
#include "predict/fit/sampling.h"

namespace revisit::predict {

// Of a reference, the same in every run: function, reference, path of calls.
inline std::tuple<std::uint32_t, std::uint32_t, std::uint64_t> key_of(const ReferenceInfo& r) {
    return {r.function, r.reference, r.context};
}

Doubt outside(const Reference& r, std::size_t extent, std::int64_t index);

// The model at the target, with what was checked and what failed; no profile where anything did.
Result<Prediction> certify(const Session& session, std::shared_ptr<Model> model,
                           const Learning& learning);

}  // namespace revisit::predict
