// From time distances to reuse distances, as Shen and Shaw do it.
//
// Idea. Of N blocks, one chosen at random is accessed in a window of length d with probability
//     p(d) = 1/(N - 1) * sum over tau = 1 .. d of P(time distance > tau).
// Take blocks as independent coins: a reuse over time d sees Binomial(N - 1, p) of the others.
// Basic form: every time distance by itself, binomials term by term. O(bars * sqrt(N)), bars of
// width 1. Scalable form: bars [l, r) of any width, P(bar) = p at its middle, in three steps with P_T
// the bar's share of accesses, w = r - l and H a sum of reciprocals:
//     P1 = (l + r - 3) / (2 (N - 1)) * P_T                a random moment lies in such a reuse of a
//     block P2 = w * sum over later bars of P1/w * (H(r - 2) - H(l - 2))      the block's last access
//     lies in
//          + P1/w * [w - 1 - (l - 1) (H(r - 2) - H(l - 1))]             this stretch of the past
//     P  = P2/2 + sum over earlier bars of P2
// (The paper prints -2 where the bracket has -1; only -1 equals the sum it came from.) The sum over
// later bars is the same for every bar but for its width, so one sweep from the right makes it O(L)
// where the paper has O(L^2). The paper takes H as a logarithm, off by 10 % in the first bars; here H
// is exact to double precision. The binomial is taken as Normal, and spread over the bar's own range.
// Differences from the paper, each checked against the unit-width form: cold accesses count as reuses
// from infinitely far; the d - 1 accesses between are the window, so distance 0 stays reachable;
// N - 1 coins, because a block does not see itself.
// Source. Shen and Shaw, Scalable Implementation of Efficient Locality Approximation, LCPC 2008.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "models/time_to_reuse.h"

namespace revisit {
namespace {

constexpr double kMostBasicBars = 1 << 24;
constexpr double kMostBinomialTerms = 1e9;

// 1/(from + 1) + ... + 1/to. Far out, the midpoint rule is exact to double precision.
double reciprocals(double from, double to) {
    double sum = 0;
    for (; from < to && from < 1000; ++from) sum += 1 / (from + 1);
    if (from < to) {
        double a = from + 0.5, b = to + 0.5;
        sum += std::log1p((to - from) / a) - (1 / (a * a) - 1 / (b * b)) / 24;
    }
    return sum;
}

double others_of(double distinct, const TimeBars& time) {
    // Unknown: as many blocks as accesses, which leaves the mean alone and the spread at its largest.
    return std::max(1.0, (distinct > 0 ? distinct : time.total) - 1);
}

// Binomial(others, p) term by term, from its mode outwards until a term no longer counts.
void spread_binomial(double others, double p, double count, DistanceSpread& spread) {
    p = std::clamp(p, 0.0, 1.0);
    double mode = std::min(others, std::floor((others + 1) * p));
    if (p <= 0 || p >= 1) return spread.add_even(mode, mode, count);
    double log_term = std::lgamma(others + 1) - std::lgamma(mode + 1) - std::lgamma(others - mode + 1) +
                      mode * std::log(p) + (others - mode) * std::log1p(-p);
    const double first = std::exp(log_term) * count, least = first * 1e-17, odds = p / (1 - p);
    double term = first;
    for (double k = mode; k <= others && term > least; ++k) {
        spread.add_even(k, k, term);
        term *= odds * (others - k) / (k + 1);
    }
    term = first;
    for (double k = mode; k > 0 && term > least; --k) {
        term *= k / (odds * (others - k + 1));
        spread.add_even(k - 1, k - 1, term);
    }
}

}  // namespace

void spread_shen(const TimeBars& time, double distinct, DistanceSpread& spread) {
    if (time.total <= 0) return;
    const double others = others_of(distinct, time);
    const std::size_t count = time.bars.size();
    std::vector<double> stretch(count);                  // P2
    double later = time.infinite / time.total / others;  // the sum over later bars, without the width
    for (std::size_t i = count; i-- > 0;) {
        const TimeBar& bar = time.bars[i];
        double width = bar.width();
        double in_reuse = (bar.low + bar.high - 3) / 2 * (bar.count / time.total) / others;  // P1
        double own = width - 1 - (bar.low - 1) * reciprocals(bar.low - 1, bar.high - 2);
        stretch[i] = width * later + in_reuse / width * std::max(0.0, own);
        if (bar.low >= 2) later += in_reuse / width * reciprocals(bar.low - 2, bar.high - 2);
    }
    double before = 0;  // sum of P2 over earlier bars: p at the bar's low edge
    for (std::size_t i = 0; i < count; ++i) {
        const TimeBar& bar = time.bars[i];
        if (bar.count > 0) {
            double p = std::min(1.0, before + stretch[i] / 2);
            double low = std::min(1.0, before) * others;
            // p of the bar's last time distance: one access short of the next bar.
            double high = std::min(1.0, before + stretch[i] * (bar.width() - 1) / bar.width()) * others;
            if (bar.width() == 1) p = low / others;
            double deviation = std::sqrt(std::max(0.0, others * p * (1 - p)));
            // Distance k owns [k, k + 1), so a mean of m lies at m + 1/2.
            spread.add_normal(low + 0.5, high + 0.5, deviation, bar.count);
        }
        before += stretch[i];
    }
}

Result<void> spread_shen_basic(const TimeBars& time, double distinct, DistanceSpread& spread) {
    if (time.bars.empty()) return {};
    double longest = time.bars.back().high - 1;
    const double others = others_of(distinct, time);
    double terms = 0;
    for (const TimeBar& bar : time.bars)
        if (bar.count > 0) terms += bar.width() * 12 * std::sqrt(others);
    if (longest > kMostBasicBars || terms > kMostBinomialTerms)
        return fail(
            fmt::format("the shen-basic model works on time distances one by one and these reach "
                        "{:.3g} over {:.3g} "
                        "blocks; use shen",
                        longest, others + 1));
    double left = time.total, sum = 0;
    for (const TimeBar& bar : time.bars) {
        double at_one_time = bar.count / bar.width();
        for (double tau = bar.low; tau < bar.high; ++tau) {
            if (at_one_time > 0)
                spread_binomial(others, sum / time.total / others, at_one_time, spread);
            left = std::max(0.0, left - at_one_time);
            sum += left;
        }
    }
    return {};
}

}  // namespace revisit
