// How a prediction comes about, for people.
#pragma once

#include <string>
#include <vector>

#include "predict/predict.h"
#include "revisit/cache.h"

namespace revisit::predict {

// Control-flow graph with execution counts and branch probabilities, the loop-annotated trace in
// bracket notation, profiles at small sizes, and the fitted formulas.
Result<std::string> explain(const Request& request, const Prediction& prediction);

// Loops as [TRIPS~variable, …], references as array~index~index.
std::string bracket_notation(const Program& program, const Trace& trace);

// Accesses, first touches, families of distances and misses of given caches as formulas in the sizes.
std::string symbolic(const Prediction& prediction, const std::vector<CacheSpec>& caches);

}  // namespace revisit::predict
