// Which iterations of a nest must stay in order.
#pragma once

#include <set>
#include <vector>

#include "predict/advise/nest.h"
#include "predict/input/request.h"

namespace revisit::predict {

// Iterations from one access to a later one of the same element, one of them a write: by loop, how
// many.
using Distance = std::vector<std::int64_t>;

// All that the nest has at small sizes, every load and store of the source counted. An error where that
// does not show all that the target may have.
Result<std::set<Distance>> dependences(const Request& request, const Nest& nest);

// Whether the order, and tiles, keep every pair of iterations that depend on each other.
bool is_legal(const std::set<Distance>& dependences, const Nest& nest, const Order& order);

}  // namespace revisit::predict
