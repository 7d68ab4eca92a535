// The miss ratio of a fully associative LRU cache of every size: one minus the cumulative histogram.
#include "revisit/cache.h"

namespace revisit {

std::vector<CurvePoint> miss_ratio_curve(const Histogram& reuse) {
    std::vector<CurvePoint> out;
    double total = reuse.total();
    if (total <= 0) return out;
    double hits = 0;
    out.push_back({0, 1});
    for (const Bin& bin : reuse.bins) {
        // Up to the bin's first distance nothing changes; over the bin the ratio falls evenly.
        if (static_cast<double>(bin.low) > out.back().blocks)
            out.push_back({static_cast<double>(bin.low), 1 - hits / total});
        hits += bin.count;
        out.push_back({static_cast<double>(bin.high), 1 - hits / total});
    }
    return out;
}

}  // namespace revisit
