// Working-set knees: the cache sizes at which the miss ratio falls steeply.
#pragma once

#include <vector>

#include "revisit/histogram.h"

namespace revisit {

struct Knee {
    double blocks = 0;  // a cache this large holds the working set
    double miss_before = 0;
    double miss_after = 0;
};

// At most `most` knees, by falling size of the drop, each at least a twentieth of all accesses.
std::vector<Knee> working_set_knees(const Histogram& reuse, std::size_t most = 3);

}  // namespace revisit
