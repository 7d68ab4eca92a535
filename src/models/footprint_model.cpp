#include "models/footprint_model.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "models/time_to_reuse.h"

namespace revisit {
namespace {

// The mean of the shares from i - k to i + k; without the one at i where that is to be predicted.
class Neighbours {
 public:
    explicit Neighbours(std::span<const OpenShare> shares) : shares_(shares) {
        for (const OpenShare& one : shares) sums_.push_back(sums_.back() + one.share);
    }
    double mean(std::size_t i, std::size_t k, bool with_own) const {
        std::size_t low = i > k ? i - k : 0, high = std::min(shares_.size(), i + k + 1);
        double sum = sums_[high] - sums_[low], count = static_cast<double>(high - low);
        if (!with_own) {
            sum -= shares_[i].share;
            count -= 1;
        }
        return count > 0 ? sum / count : shares_[i].share;
    }
    double mean() const { return sums_.back() / static_cast<double>(shares_.size()); }

    // How many neighbours to either side predict a share best. More are taken where fewer are hardly
    // better.
    std::size_t best() const {
        constexpr double kBetter = 0.97;
        std::size_t best = shares_.size();
        double least = std::numeric_limits<double>::infinity();
        for (std::size_t k = shares_.size(); k > 0; k = k == 1 ? 0 : next(k)) {
            double off = 0;
            for (std::size_t i = 0; i < shares_.size(); i++)
                off += std::pow(mean(i, k, false) - shares_[i].share, 2);
            if (off >= least * kBetter) continue;
            least = off;
            best = k;
        }
        return best;
    }

 private:
    std::size_t next(std::size_t k) const {
        constexpr std::size_t kMost = 32;  // beyond that a phase is as good as the whole
        return std::min(kMost, std::size_t{1} << (std::bit_width(k - 1) - 1));
    }

    std::span<const OpenShare> shares_;
    std::vector<double> sums_{0};
};

}  // namespace

FootprintModel::FootprintModel(const Histogram& time, std::span<const OpenShare> shares, double window,
                               double length)
    : window_(window), length_(length) {
    TimeBars bars = time_bars(time);
    double left = bars.total;
    for (const TimeBar& bar : bars.bars) {
        // Nobody else's reuse ends where this one does: time_to_reuse.cpp.
        double others = bars.total - bar.count / bar.width(), beyond = left - bar.count / 2;
        bars_.push_back({bar.low, bar.high, others > 0 ? std::clamp(beyond / others, 0.0, 1.0) : 0.0});
        left = std::max(0.0, left - bar.count);
    }
    if (bars.total > 0)
        bars_.push_back({bars_.empty() ? 1 : bars_.back().high, std::numeric_limits<double>::infinity(),
                         left / bars.total});
    if (shares.empty()) return;
    Neighbours around(shares);
    double mean = around.mean();
    if (mean <= 0) return;
    neighbours_ = around.best();
    moments_.push_back(0);
    sums_.push_back(0);
    for (std::size_t i = 0; i < shares.size(); i++) {
        double to = i + 1 < shares.size() ? (shares[i].moment + shares[i + 1].moment) / 2 : length;
        to = std::max(to, moments_.back());
        sums_.push_back(sums_.back() +
                        (to - moments_.back()) * around.mean(i, neighbours_, true) / mean);
        moments_.push_back(to);
    }
}

double FootprintModel::opened(double moment) const {
    moment = std::clamp(moment, 0.0, length_);
    auto next = static_cast<std::size_t>(std::ranges::upper_bound(moments_, moment) - moments_.begin());
    if (next >= moments_.size()) return sums_.back() + moment - moments_.back();
    double width = moments_[next] - moments_[next - 1];
    double share = width > 0 ? (moment - moments_[next - 1]) / width : 0;
    return sums_[next - 1] + share * (sums_[next] - sums_[next - 1]);
}

template <class Opened>
double FootprintModel::sum(double time, Opened opened) const {
    double distinct = 0;
    for (const Bar& bar : bars_) {
        if (bar.low >= time) break;
        double low = bar.low, high = std::min(bar.high, time);
        double near = std::min(high, std::max(low, window_));
        distinct += (near - low) * bar.beyond;
        if (high > near) distinct += bar.beyond * opened(near, high);
    }
    return distinct;
}

double FootprintModel::distance(double moment, double time) const {
    if (moments_.empty()) return distance_where(1, time);
    return sum(time,
               [&](double from, double to) { return opened(moment - from) - opened(moment - to); });
}

double FootprintModel::distance_where(double open, double time) const {
    return sum(time, [&](double from, double to) { return open * (to - from); });
}

}  // namespace revisit
