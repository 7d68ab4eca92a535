#include "engines/reuse_runs.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace revisit {

void count_run_distances(std::span<ReuseRun> runs) {
    const auto by_key = [](const ReuseRun& a, const ReuseRun& b) { return a.key < b.key; };
    if (std::ranges::is_sorted(runs, by_key)) return;
    std::vector<std::uint32_t> order(runs.size());
    std::iota(order.begin(), order.end(), 0u);
    std::ranges::sort(order,
                      [&](std::uint32_t a, std::uint32_t b) { return runs[a].key < runs[b].key; });
    std::vector<std::uint32_t> place(runs.size());  // by key, from 1
    for (std::uint32_t i = 0; i < order.size(); ++i) place[order[i]] = i + 1;

    std::vector<std::uint32_t> sums(runs.size() + 1);  // a Fenwick tree of lengths
    std::uint32_t all = 0;
    for (std::size_t i = 0; i < runs.size(); ++i) {
        std::uint32_t smaller = 0;
        for (std::uint32_t at = place[i]; at != 0; at &= at - 1) smaller += sums[at];
        runs[i].span -= all - smaller;
        for (std::size_t at = place[i]; at < sums.size(); at += at & -at) sums[at] += runs[i].length;
        all += runs[i].length;
    }
}

}  // namespace revisit
