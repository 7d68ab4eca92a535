// Distributions of reuse distances, by description, as histograms of shares.
//
// Narrow bins wherever a bin's inside is not flat: every distance by itself up to 8192 and 4096 bins a
// power of two above for the falling distributions, 512 bins a standard deviation for the Normal.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>

#include "core/parse_floating.h"
#include "revisit/generate.h"

namespace revisit {
namespace {

constexpr double kMostOutside = 0.01;  // share of a distribution that may be cut off at its ends
constexpr std::string_view kExpected =
    "normal:MEAN,SD, exponential:RATE, zipf:S, uniform or mix:SHARE*DISTRIBUTION+…";

double normal_below(double z) {
    return 0.5 * std::erfc(-z / std::numbers::sqrt2);
}

// "3.5,20" → two numbers; nothing when it is not that many finite ones.
std::optional<std::vector<double>> parse_numbers(std::string_view text, std::size_t count) {
    std::vector<double> out;
    const char *at = text.data(), *end = at + text.size();
    while (true) {
        double number = 0;
        auto [next, code] = parse_floating(at, end, number);
        if (code != std::errc{} || !std::isfinite(number)) return std::nullopt;
        out.push_back(number);
        at = next;
        if (at == end) break;
        if (*at++ != ',') return std::nullopt;
    }
    if (out.size() != count) return std::nullopt;
    return out;
}

// Bins over [low, high) whose shares are differences of `below`, the share under a distance.
template <class Below>
Histogram from_cumulative(const Binning& binning, std::uint64_t low, std::uint64_t high, Below below) {
    Histogram out;
    double at = below(low), sum = 0;
    for (std::uint64_t edge = binning.low_edge(low); edge < high;) {
        std::uint64_t next = std::min(binning.high_edge(edge), high);
        double share = below(next) - at;
        if (share > 0) out.bins.push_back({std::max(edge, low), next, share, 0});
        at += std::max(0.0, share);
        sum += std::max(0.0, share);
        edge = next;
    }
    for (Bin& bin : out.bins) bin.count /= sum;
    return out;
}

Result<Histogram> refuse_outside(std::string_view description, double share, std::string_view where) {
    return fail(fmt::format("{:.3g} % of {} lies {}", 100 * share, description, where));
}

Result<Histogram> normal(std::string_view description, double mean, double deviation,
                         std::uint64_t distinct) {
    const auto blocks = static_cast<double>(distinct);
    if (deviation < 0) return fail(fmt::format("{} has a negative deviation", description));
    auto below = [&](double distance) {  // distance k stands for [k - 1/2, k + 1/2)
        if (deviation == 0) return distance > std::round(mean) ? 1.0 : 0.0;
        return normal_below((distance - 0.5 - mean) / deviation);
    };
    if (double share = 1 - below(blocks); share > kMostOutside)
        return refuse_outside(
            description, share,
            fmt::format("at distances of {0} or more, which {0} blocks cannot have", distinct));
    if (double share = below(0); share > kMostOutside)
        return refuse_outside(description, share, "below distance 0");
    double low = std::clamp(std::floor(mean - 9 * deviation - 1), 0.0, blocks - 1);
    double high = std::clamp(std::ceil(mean + 9 * deviation + 2), low + 1, blocks);
    auto width = static_cast<std::uint64_t>(std::max(1.0, deviation / 512));
    return from_cumulative(
        Binning::linear(width), static_cast<std::uint64_t>(low), static_cast<std::uint64_t>(high),
        [&](std::uint64_t distance) { return below(static_cast<double>(distance)); });
}

Result<Histogram> exponential(std::string_view description, double rate, std::uint64_t distinct) {
    if (!(rate > 0)) return fail(fmt::format("{} has a rate that is not positive", description));
    if (double share = std::exp(-rate * static_cast<double>(distinct)); share > kMostOutside)
        return refuse_outside(
            description, share,
            fmt::format("at distances of {0} or more, which {0} blocks cannot have", distinct));
    return from_cumulative(Binning::log2(4096), 0, distinct, [&](std::uint64_t distance) {
        return -std::expm1(-rate * static_cast<double>(distance));
    });
}

// Distance k with a share in proportion to (k + 1)^-s.
Result<Histogram> zipf(std::string_view description, double s, std::uint64_t distinct) {
    if (s < 0) return fail(fmt::format("{} has a negative exponent", description));
    Binning binning = Binning::log2(4096);
    Histogram out;
    double sum = 0;
    for (std::uint64_t low = 0; low < distinct;) {
        std::uint64_t high = std::min(binning.high_edge(low), distinct);
        // The middle of the bin stands for all of it: bins are single distances or 0.03 % wide.
        double middle = (static_cast<double>(low) + static_cast<double>(high) + 1) / 2;
        double share = static_cast<double>(high - low) * std::pow(middle, -s);
        out.bins.push_back({low, high, share, 0});
        sum += share;
        low = high;
    }
    for (Bin& bin : out.bins) bin.count /= sum;
    return out;
}

// Both, cut at the edges of either.
Histogram add_shares(const Histogram& a, const Histogram& b) {
    std::vector<std::uint64_t> edges;
    for (const Histogram* part : {&a, &b})
        for (const Bin& bin : part->bins) edges.push_back(bin.low), edges.push_back(bin.high);
    std::sort(edges.begin(), edges.end());
    edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
    Histogram out;
    std::size_t at[2] = {0, 0};
    for (std::size_t i = 0; i + 1 < edges.size(); ++i) {
        Bin piece{edges[i], edges[i + 1], 0, 0};
        for (int k = 0; k < 2; ++k) {
            const std::vector<Bin>& bins = (k == 0 ? a : b).bins;
            while (at[k] < bins.size() && bins[at[k]].high <= piece.low) ++at[k];
            if (at[k] == bins.size() || bins[at[k]].low > piece.low) continue;
            const Bin& bin = bins[at[k]];
            piece.count += bin.count * (static_cast<double>(piece.high - piece.low) /
                                        static_cast<double>(bin.high - bin.low));
        }
        if (piece.count > 0) out.bins.push_back(piece);
    }
    return out;
}

Result<Histogram> mix(std::string_view description, std::string_view parts, std::uint64_t distinct) {
    Histogram sum;
    double shares = 0;
    while (!parts.empty()) {
        auto end = parts.find('+');
        while (end != std::string_view::npos && end > 0 && (parts[end - 1] | 0x20) == 'e')
            end = parts.find('+', end + 1);  // 1e+3
        std::string_view part = parts.substr(0, end);
        parts.remove_prefix(end == std::string_view::npos ? parts.size() : end + 1);
        auto star = part.find('*');
        auto share =
            star == std::string_view::npos ? std::nullopt : parse_numbers(part.substr(0, star), 1);
        if (!share || !((*share)[0] >= 0))
            return fail(
                fmt::format("expected SHARE*DISTRIBUTION in {}, found \"{}\"", description, part));
        if (part.substr(star + 1).starts_with("mix:"))
            return fail(fmt::format("{} has a mix inside a mix", description));
        auto one = parse_distribution(part.substr(star + 1), distinct);
        if (!one) return one;
        for (Bin& bin : one->bins) bin.count *= (*share)[0];
        sum = add_shares(sum, *one);
        shares += (*share)[0];
    }
    if (std::fabs(shares - 1) > 1e-6)
        return fail(fmt::format("the shares of {} sum to {:.6g}, not 1", description, shares));
    return sum;
}

}  // namespace

Result<Histogram> parse_distribution(std::string_view description, std::uint64_t distinct) {
    if (distinct == 0) return fail("a distribution of reuse distances needs at least one block");
    auto colon = description.find(':');
    std::string_view name = description.substr(0, colon);
    std::string_view rest =
        colon == std::string_view::npos ? std::string_view{} : description.substr(colon + 1);
    if (name == "uniform" && colon == std::string_view::npos)
        return Histogram{0, 0, 0, 0, {{0, distinct, 1, 0}}};
    if (name == "mix" && !rest.empty()) return mix(description, rest, distinct);
    if (name == "normal") {
        if (auto numbers = parse_numbers(rest, 2))
            return normal(description, (*numbers)[0], (*numbers)[1], distinct);
    } else if (auto numbers = parse_numbers(rest, 1)) {
        if (name == "exponential") return exponential(description, (*numbers)[0], distinct);
        if (name == "zipf") return zipf(description, (*numbers)[0], distinct);
    }
    return fail(fmt::format("expected {}, found \"{}\"", kExpected, description));
}

}  // namespace revisit
