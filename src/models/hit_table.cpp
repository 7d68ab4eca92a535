#include "models/hit_table.h"

namespace revisit {

double HitTable::probability(const Bin& bin) {
    auto [entry, is_new] = known_.try_emplace({bin.low, bin.high}, 0);
    if (is_new) entry->second = hit_probability(cache_, bin);
    return entry->second;
}

double HitTable::hits(const Histogram& histogram) {
    double sum = 0;
    for (const Bin& bin : histogram.bins) sum += bin.count * probability(bin);
    return sum;
}

Histogram HitTable::missed(const Histogram& histogram) {
    Histogram out = histogram;
    for (Bin& bin : out.bins) bin.count *= 1 - probability(bin);
    std::erase_if(out.bins, [](const Bin& bin) { return bin.count <= 0; });
    return out;
}

}  // namespace revisit
