// Accuracy of one histogram against another.
//
// The two may be binned differently. They are compared over the edges that no bin of either side
// straddles, so S never rewards or punishes detail that only one side has.
#include "revisit/accuracy.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace revisit {
namespace {

struct SharePair {
    double truth = 0;
    double estimate = 0;
};

std::vector<SharePair> line_up(const Histogram& truth, const Histogram& estimate, double truth_total,
                               double estimate_total, const AccuracyOptions& options) {
    std::vector<SharePair> out;
    auto a = truth.bins.begin(), a_end = truth.bins.end();
    auto b = estimate.bins.begin(), b_end = estimate.bins.end();
    while (a != a_end || b != b_end) {
        SharePair pair;
        bool from_truth = b == b_end || (a != a_end && a->low <= b->low);
        std::uint64_t reach = from_truth ? a->high : b->high;
        for (bool grew = true; grew;) {  // take bins as long as they start inside what is taken
            grew = false;
            for (; a != a_end && a->low < reach; ++a, grew = true) {
                pair.truth += a->count;
                reach = std::max(reach, a->high);
            }
            for (; b != b_end && b->low < reach; ++b, grew = true) {
                pair.estimate += b->count;
                reach = std::max(reach, b->high);
            }
        }
        out.push_back(pair);
    }
    if (options.infinite_as_bins) {
        out.push_back({truth.cold, estimate.cold});
        out.push_back({truth.invalidated, estimate.invalidated});
    }
    for (SharePair& pair : out) {
        pair.truth /= truth_total;
        pair.estimate /= estimate_total;
    }
    return out;
}

double total_of(const Histogram& histogram, const AccuracyOptions& options) {
    return options.infinite_as_bins ? histogram.total() : histogram.finite();
}

double accuracy_of(const std::vector<SharePair>& pairs) {
    double apart = 0;
    for (const SharePair& pair : pairs) apart += std::fabs(pair.truth - pair.estimate);
    return std::max(0.0, 1 - apart / 2);
}

}  // namespace

double accuracy(const Histogram& truth, const Histogram& estimate, const AccuracyOptions& options) {
    double a = total_of(truth, options), b = total_of(estimate, options);
    if (a <= 0 || b <= 0) return a <= 0 && b <= 0 ? 1 : 0;
    return accuracy_of(line_up(truth, estimate, a, b, options));
}

double smoothed_accuracy(const Histogram& truth, const Histogram& estimate,
                         const AccuracyOptions& options) {
    double a = total_of(truth, options), b = total_of(estimate, options);
    if (a <= 0 || b <= 0) return a <= 0 && b <= 0 ? 1 : 0;
    std::vector<SharePair> pairs = line_up(truth, estimate, a, b, options);
    std::size_t finite = pairs.size() - (options.infinite_as_bins ? 2 : 0);
    std::vector<SharePair> smooth;
    // Averages of neighbours, the ends with an empty neighbour so that shares still sum to 1.
    for (std::size_t i = 0; i <= finite && finite > 0; ++i) {
        SharePair left = i > 0 ? pairs[i - 1] : SharePair{};
        SharePair right = i < finite ? pairs[i] : SharePair{};
        smooth.push_back({(left.truth + right.truth) / 2, (left.estimate + right.estimate) / 2});
    }
    smooth.insert(smooth.end(), pairs.begin() + static_cast<std::ptrdiff_t>(finite), pairs.end());
    return accuracy_of(smooth);
}

double share_error(double share, double samples) {
    if (samples <= 0) return 1;
    return 1.96 * std::sqrt(std::max(0.0, share * (1 - share)) / samples);
}

double samples_for_error(double error) {
    return std::ceil(0.25 * 1.96 * 1.96 / (error * error));  // the worst share is a half
}

double histogram_error(double bins, double samples) {
    return samples <= 0 ? 1 : 1.96 * std::sqrt(bins / samples);
}

}  // namespace revisit
