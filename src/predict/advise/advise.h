// What to do about a nest: orders and tiles of its loops, by what they would miss.
#pragma once

#include <optional>

#include "predict/advise/nest.h"
#include "predict/input/request.h"
#include "revisit/cache.h"

namespace revisit::predict {

struct Variant {
    Order order;
    std::string name;            // "i k j, tiles of 32"
    std::vector<double> misses;  // by cache
    double cost = 0;             // cycles lost, roughly
    double accesses = 0;
    Certainty certainty = Certainty::estimated;
};

struct Advice {
    std::uint32_t line = 0;  // of the nest
    std::vector<CacheSpec> caches;
    std::vector<Variant> variants;  // the best first
    std::size_t original = 0;       // which of them the source has
    std::string source;             // of the best
    std::size_t illegal = 0;        // orders that would change results
    std::vector<std::string> notes;
};

// One per nest of the function that can be rewritten.
Result<std::vector<Advice>> advise(const Request& request, const std::vector<CacheSpec>& caches);
std::string text_of(const Advice& advice);

}  // namespace revisit::predict
