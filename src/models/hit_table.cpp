#include "models/hit_table.h"

namespace revisit {

double HitTable::hits(const Histogram& histogram) {
    double sum = 0;
    for (const Bin& bin : histogram.bins) {
        auto [entry, is_new] = known_.try_emplace({bin.low, bin.high}, 0);
        if (is_new) entry->second = hit_probability(cache_, bin);
        sum += bin.count * entry->second;
    }
    return sum;
}

}  // namespace revisit
