// Neighbouring bins with much mass, in log2 bins, are one working set: a loop over an array reuses each
// block at about the array's size. A knee is such a group; its size is where the group ends.
#include "report/knees.h"

#include <algorithm>

namespace revisit {
namespace {

constexpr double kSmallestDrop = 0.05;  // of all accesses, for a whole group
constexpr double kQuietBin = 0.01;      // a bin with less ends a group

}  // namespace

std::vector<Knee> working_set_knees(const Histogram& reuse, std::size_t most) {
    double total = reuse.total();
    std::vector<Knee> knees;
    if (total <= 0) return knees;
    double miss = 1;
    Knee open;
    bool inside = false;
    auto close = [&] {
        if (inside && open.miss_before - open.miss_after >= kSmallestDrop) knees.push_back(open);
        inside = false;
    };
    for (const Bin& bin : reuse.rebin(Binning::log2()).bins) {
        double share = bin.count / total;
        bool gap = inside && static_cast<double>(bin.low) > open.blocks;
        if (share < kQuietBin || gap) close();
        if (share >= kQuietBin) {
            if (!inside) open.miss_before = miss;
            inside = true;
            open.blocks = static_cast<double>(bin.high);
            open.miss_after = miss - share;
        }
        miss -= share;
    }
    close();
    std::stable_sort(knees.begin(), knees.end(), [](const Knee& a, const Knee& b) {
        return a.miss_before - a.miss_after > b.miss_before - b.miss_after;
    });
    if (knees.size() > most) knees.resize(most);
    return knees;
}

}  // namespace revisit
