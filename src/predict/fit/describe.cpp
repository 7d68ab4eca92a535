// Counts and ranges of a set of rows with one distance polynomial.
//
// Some iteration variables are kept free (those the distance depends on, and as few more as will do).
// Their values have to form affine intervals, one inside the other, without holes; how many rows share
// each point has to be a polynomial. At the target only the free variables are then enumerated.
#include "predict/fit/describe.h"

#include <algorithm>
#include <numeric>

namespace revisit::predict {
namespace {

constexpr std::size_t kMaxFree = 7, kMaxBoxExtra = 2;
constexpr int kBits = 16;

}  // namespace

bool Describer::describe(const std::vector<std::uint32_t>& rows, const Polynomial& distance,
                         Cell& cell) {
    std::vector<std::uint8_t> base, rest;
    for (std::size_t l = 0; l < loops_; ++l) {
        const auto v = static_cast<std::uint8_t>(sizes_ + l);
        (distance.uses(v) ? base : rest).push_back(v);
    }
    for (std::size_t extra = 0; extra <= std::min(rest.size(), boxes_ ? kMaxBoxExtra : kMaxFree);
         ++extra)
        for (std::uint32_t mask = 0; mask < (1u << rest.size()); ++mask) {
            if (static_cast<std::size_t>(__builtin_popcount(mask)) != extra) continue;
            auto free = base;
            for (std::size_t k = 0; k < rest.size(); ++k)
                if (mask >> k & 1) free.push_back(rest[k]);
            std::sort(free.begin(), free.end());
            if (describe_over(rows, free, cell)) {
                cell.distance = distance;
                cell.rows = rows.size();
                return true;
            }
        }
    return false;
}

bool Describer::describe_over(const std::vector<std::uint32_t>& rows,
                              const std::vector<std::uint8_t>& free, Cell& cell) {
    if (free.size() > kMaxFree || work_.spent()) return false;
    work_.done += static_cast<std::int64_t>(rows.size()) + 3000;
    // Distinct (sample, free variables) and how many rows share each.
    packed_.clear();
    for (const auto row : rows) {
        packed_.push_back(packed(row, free));
    }
    std::sort(packed_.begin(), packed_.end());
    std::vector<std::pair<Packed, std::int64_t>> shared;
    for (const auto key : packed_) {
        if (shared.empty() || shared.back().first != key)
            shared.emplace_back(key, 1);
        else
            ++shared.back().second;
    }
    std::vector<Range> ranges;
    for (std::size_t k = 0; k < free.size(); ++k) {
        Range r;
        if (!range_of(shared, free, k, r)) return false;
        ranges.push_back(std::move(r));
    }
    if (boxes_)
        if (auto count = boxed(rows, free, shared)) {
            cell.count = std::move(*count);
            cell.free = free;
            cell.ranges = std::move(ranges);
            return present_where_it_should(rows, cell);
        }
    Points p;
    p.variables = sizes_ + loops_;
    std::vector<std::uint32_t> which;
    for (const auto& [key, n] : shared) {
        unpack(key, free, free.size(), p);
        p.y.push_back(n);
        which.push_back(static_cast<std::uint32_t>(which.size()));
    }
    std::vector<std::uint8_t> variables;
    for (std::size_t v = 0; v < sizes_; ++v)
        if (bounds_.caps[v]) variables.push_back(static_cast<std::uint8_t>(v));
    variables.insert(variables.end(), free.begin(), free.end());
    const int degree = static_cast<int>(loops_ - free.size());
    auto count = fit_simplest(p, which, variables, degree, bounds_.caps);
    if (!count) {
        // Other loops' bounds can cut the set as well: all sizes then.
        variables.resize(sizes_);
        std::iota(variables.begin(), variables.end(), std::uint8_t{0});
        variables.insert(variables.end(), free.begin(), free.end());
        count = fit_simplest(p, which, variables, degree);
    }
    if (!count) return false;
    cell.count = std::move(*count);
    cell.free = free;
    cell.ranges = std::move(ranges);
    return present_where_it_should(rows, cell);
}

Packed Describer::packed(std::uint32_t row, const std::vector<std::uint8_t>& free) const {
    Packed key = static_cast<std::uint32_t>(s_.sample[row]);
    for (const auto v : free) key = key << kBits | static_cast<std::uint16_t>(s_.points.at(row)[v]);
    return key;
}

// How many rows share a point, where they make a box: the product of its sides, each an affine
// function. With many sizes that takes far fewer samples than a polynomial of all of them.
std::optional<Polynomial> Describer::boxed(
    const std::vector<std::uint32_t>& rows, const std::vector<std::uint8_t>& free,
    const std::vector<std::pair<Packed, std::int64_t>>& shared) const {
    std::vector<std::uint8_t> rest;
    for (std::size_t l = 0; l < loops_; ++l)
        if (const auto v = static_cast<std::uint8_t>(sizes_ + l);
            std::find(free.begin(), free.end(), v) == free.end())
            rest.push_back(v);
    std::vector<Extremes> sides(shared.size() * rest.size());
    for (const auto row : rows) {
        const auto key = packed(row, free);
        const auto at = std::lower_bound(shared.begin(), shared.end(), key,
                                         [](const auto& s, Packed k) { return s.first < k; }) -
                        shared.begin();
        for (std::size_t k = 0; k < rest.size(); ++k)
            sides[static_cast<std::size_t>(at) * rest.size() + k].add(s_.points.at(row)[rest[k]]);
    }
    for (std::size_t i = 0; i < shared.size(); ++i) {
        std::int64_t volume = 1;
        for (std::size_t k = 0; k < rest.size(); ++k) {
            const auto& side = sides[i * rest.size() + k];
            volume *= side.high - side.low + 1;
        }
        if (volume != shared[i].second) return std::nullopt;
    }
    Points p;
    p.variables = sizes_ + loops_;
    std::vector<std::uint32_t> which(shared.size());
    std::iota(which.begin(), which.end(), 0u);
    for (const auto& [key, n] : shared) unpack(key, free, free.size(), p);
    p.y.resize(shared.size());
    std::vector<std::uint8_t> variables(sizes_);
    std::iota(variables.begin(), variables.end(), std::uint8_t{0});
    variables.insert(variables.end(), free.begin(), free.end());
    std::vector<Polynomial> lengths;
    for (std::size_t k = 0; k < rest.size(); ++k) {
        for (std::size_t i = 0; i < shared.size(); ++i) {
            const auto& side = sides[i * rest.size() + k];
            p.y[i] = side.high - side.low + 1;
        }
        auto length = fit_simplest(p, which, variables, 1);
        if (!length) return std::nullopt;
        lengths.push_back(std::move(*length));
    }
    return Polynomial::product(std::move(lengths));
}

// Appends the point a key stands for; its last `free.size() - known` variables are left 0.
void Describer::unpack(Packed key, const std::vector<std::uint8_t>& free, std::size_t known,
                       Points& to) const {
    const auto base = to.x.size();
    to.x.resize(base + sizes_ + loops_, 0);
    for (std::size_t k = known; k-- > 0; key >>= kBits)
        to.x[base + free[k]] = static_cast<std::int32_t>(static_cast<std::uint16_t>(key));
    const auto& size = table_.samples()[static_cast<std::size_t>(key)];
    for (std::size_t v = 0; v < sizes_; ++v) to.x[base + v] = static_cast<std::int32_t>(size[v]);
}

// The k-th free variable given the sizes and those before it: an affine interval without holes.
bool Describer::range_of(const std::vector<std::pair<Packed, std::int64_t>>& shared,
                         const std::vector<std::uint8_t>& free, std::size_t k, Range& out) const {
    struct Interval {
        Packed prefix;
        std::int64_t low, high, values, last;
    };
    std::vector<Interval> intervals;
    const int below = kBits * static_cast<int>(free.size() - 1 - k);
    std::int64_t stride = 0;
    for (const auto& [key, n] : shared) {
        const auto upto = key >> below;
        const auto value = static_cast<std::int64_t>(static_cast<std::uint16_t>(upto));
        const auto prefix = upto >> kBits;
        if (intervals.empty() || intervals.back().prefix != prefix) {
            intervals.push_back({prefix, value, value, 1, value});
        } else if (auto& i = intervals.back(); i.last != value) {
            stride = std::gcd(stride, value - i.last);
            i.high = i.last = value;
            ++i.values;
        }
    }
    if (stride == 0) stride = 1;
    Points low;
    low.variables = sizes_ + loops_;
    std::vector<std::uint32_t> which;
    for (const auto& i : intervals) {
        if (i.values != (i.high - i.low) / stride + 1) return false;
        unpack(i.prefix, free, k, low);
        low.y.push_back(i.low);
        which.push_back(static_cast<std::uint32_t>(which.size()));
    }
    std::vector<std::uint8_t> variables;
    for (std::size_t v = 0; v < sizes_; ++v) variables.push_back(static_cast<std::uint8_t>(v));
    variables.insert(variables.end(), free.begin(), free.begin() + static_cast<std::ptrdiff_t>(k));
    auto l = fit_simplest(low, which, variables, 1);
    if (!l) return false;
    for (std::size_t i = 0; i < intervals.size(); ++i) low.y[i] = intervals[i].high;
    auto h = fit_simplest(low, which, variables, 1);
    if (!h) return false;
    out = {std::move(*l), std::move(*h), stride};
    return true;
}

// A sample the cell does not occur in must be one where its formulas say it is empty, or one
// smaller than all where it does occur.
bool Describer::present_where_it_should(const std::vector<std::uint32_t>& rows,
                                        const Cell& cell) const {
    const auto samples = table_.samples().size();
    std::vector<bool> present(samples, false);
    for (const auto row : rows) present[s_.sample[row]] = true;
    std::vector<std::int64_t> least(sizes_, INT64_MAX);
    for (std::size_t i = 0; i < samples; ++i)
        for (std::size_t v = 0; v < sizes_ && present[i]; ++v)
            least[v] = std::min(least[v], table_.samples()[i][v]);
    for (std::size_t i = 0; i < samples; ++i) {
        if (present[i]) continue;
        std::vector<std::int64_t> x(kMaxVariables, 0);
        std::copy(table_.samples()[i].begin(), table_.samples()[i].end(), x.begin());
        if (cell.free.empty()
                ? cell.count.integer(x.data()) == 0
                : cell.ranges[0].high.integer(x.data()) < cell.ranges[0].low.integer(x.data()))
            continue;
        bool smaller = false;
        for (std::size_t v = 0; v < sizes_; ++v) smaller |= table_.samples()[i][v] < least[v];
        if (!smaller) return false;
    }
    return true;
}

}  // namespace revisit::predict
