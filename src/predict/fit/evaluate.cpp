// Cells at a size.
//
// Over its innermost free variable a cell's distance and count are polynomials in one unknown: written
// by forward differences they are integers, sums of the count over an interval are closed formulas, and
// where the distance is monotone the interval that falls into one bin is found by bisection. So a cell
// costs steps by the outer free variables and the bins crossed, not by its iterations. Where there are
// many rows and the distance is affine over the last two variables, bins cut the plane of both
// (plane.h), and what is counted in a row is summed over rows the same way.
#include "predict/fit/evaluate.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "predict/fit/bin_edges.h"
#include "predict/fit/plane.h"

namespace revisit::predict {
namespace {

using Wide = __int128;
constexpr std::int64_t kManyRows = 3000;  // a plane is cut into some hundred pieces

// A polynomial over 0, 1, 2, … by its forward differences at 0.
struct Series {
    static constexpr int kMostDegree = 9;
    std::array<std::int64_t, kMostDegree + 1> difference{};
    int degree = 0;

    // sum of difference[k] * C(u, k + shift), shift 0 or 1
    Wide at(std::int64_t u, int shift = 0) const {
        Wide sum = 0, binomial = shift ? u : 1;
        for (int d = 0, k = shift;; ++d, ++k) {
            sum += binomial * difference[d];
            if (d == degree) return sum;
            binomial *= u - k;
            if (k > 0) binomial /= k + 1;  // slow for 128 bits, and most are of degree 1
        }
    }
    Wide sum_below(std::int64_t u) const { return at(u, 1); }
    void take_differences() {  // of values at 0, 1, 2, …
        for (int k = 1; k <= degree; ++k)
            for (int j = degree; j >= k; --j) difference[j] -= difference[j - 1];
    }
    Series steps() const {
        Series s;
        s.degree = std::max(0, degree - 1);
        for (int k = 0; k < degree; ++k) s.difference[k] = difference[k + 1];
        return s;
    }
};

// Positions in (0, length) where the series may turn.
std::vector<std::int64_t> turns(const Series& s, std::int64_t length) {
    std::vector<std::int64_t> at;
    if (s.degree <= 1) return at;
    const auto step = s.steps();
    std::vector<std::int64_t> edges{0};
    for (const auto t : turns(step, length)) edges.push_back(t);
    edges.push_back(length - 1);
    for (std::size_t i = 0; i + 1 < edges.size(); ++i) {
        auto low = edges[i], high = edges[i + 1];
        if (low >= high) continue;
        const bool rising = step.at(low) >= 0;
        if ((step.at(high) >= 0) == rising) continue;
        while (high - low > 1) {
            const auto middle = low + (high - low) / 2;
            ((step.at(middle) >= 0) == rising ? low : high) = middle;
        }
        at.push_back(high);
    }
    for (const auto e : edges)
        if (e > 0 && e < length) at.push_back(e);
    std::sort(at.begin(), at.end());
    at.erase(std::unique(at.begin(), at.end()), at.end());
    return at;
}

class Walk {
 public:
    Walk(const Cell& cell, const BinOf& bin, const Emit& emit, std::uint64_t max_steps,
         const Deadline& deadline)
        : cell_(cell), bin_(bin), emit_(emit), steps_left_(max_steps), deadline_(deadline) {}

    Evaluation run(std::span<const std::int64_t> size) {
        std::copy(size.begin(), size.end(), x_.begin());
        descend(0);
        return result_;
    }

 private:
    void refuse(const char* why) {
        result_.valid = false;
        if (result_.why.empty()) result_.why = why;
    }

    bool step() {
        if (steps_left_ == 0 || ((--steps_left_ & 0x3fff) == 0 && deadline_.passed()))
            result_.complete = false;
        return result_.complete;
    }

    void check(const Polynomial& p, const char* what) {
        if (std::abs(p.approximate(x_.data())) > static_cast<long double>(kMostDistance)) {
            result_.too_large |= result_.why.empty();
            return refuse("a distance or count needs more than 59 bits");
        }
        if (p.determined_at(x_.data())) return;
        result_.determined = false;
        if (result_.why.empty()) result_.why = std::string("the samples do not determine the ") + what;
    }

    void descend(std::size_t level) {
        if (!result_.valid || !result_.complete) return;
        if (level == cell_.free.size()) return point();
        const Range& r = cell_.ranges[level];
        const auto low = r.low.integer(x_.data()), high = r.high.integer(x_.data());
        if (first_[level]) {
            first_[level] = false;
            check(r.low, "range");
            check(r.high, "range");
        }
        if (low < -kMostDistance || low > kMostDistance || high < -kMostDistance ||
            high > kMostDistance)
            return refuse("a range is not whole");
        if (high < low) return;
        if ((high - low) % r.stride != 0) return refuse("a range does not fit its stride");
        const auto length = (high - low) / r.stride + 1;
        const auto v = cell_.free[level];
        if (level + 1 == cell_.free.size()) return row(v, low, r.stride, length);
        if (level + 2 == cell_.free.size() && plane(level, low, r.stride, length)) return;
        for (std::int64_t u = 0; u < length; ++u) {
            if (!step()) return;
            x_[v] = low + u * r.stride;
            descend(level + 1);
        }
    }

    void point() {
        check(cell_.distance, "distance");
        check(cell_.count, "count");
        const auto d = cell_.distance.integer(x_.data()), c = cell_.count.integer(x_.data());
        if (d < 0 || d > kMostDistance || c < 0 || c > kMostDistance)
            return refuse("a distance or count is not a whole number in range");
        result_.total += static_cast<std::uint64_t>(c);
        if (c) emit_(static_cast<std::uint64_t>(d), static_cast<std::uint64_t>(c));
    }

    // No further than the row goes: what holds for one residue need not be whole beside it.
    bool series(const Polynomial& p, std::uint8_t v, std::int64_t low, std::int64_t stride,
                std::int64_t length, Series& out) {
        out.degree =
            static_cast<int>(std::min<std::int64_t>({Series::kMostDegree, p.degree_in(v), length - 1}));
        for (int k = 0; k <= out.degree; ++k) {
            x_[v] = low + k * stride;
            out.difference[k] = p.integer(x_.data());
            if (out.difference[k] > kMostDistance || out.difference[k] < -kMostDistance) return false;
        }
        out.take_differences();
        return true;
    }

    // The last two free variables: rows of the outer, points of the inner one.
    struct Rows {
        std::uint8_t outer, inner;
        std::int64_t low, stride;  // of the outer one
        const Range& range;        // of the inner one
        Plane plane;
    };

    std::int64_t value(const Polynomial& p, const Rows& r, std::int64_t row, std::int64_t point) {
        x_[r.outer] = r.low + row * r.stride;
        x_[r.inner] = r.range.low.integer(x_.data()) + point * r.range.stride;
        return p.integer(x_.data());
    }

    // Whether the points make a plane on which the distance is affine.
    bool find_plane(Rows& r) {
        Plane& plane = r.plane;
        auto reach = [&](std::int64_t row) {
            x_[r.outer] = r.low + row * r.stride;
            return Wide{r.range.high.integer(x_.data())} - r.range.low.integer(x_.data());
        };
        const Wide begin = reach(0), end = reach(plane.rows - 1);
        if ((end - begin) % ((plane.rows - 1) * Wide{r.range.stride}) != 0 ||
            begin % r.range.stride != 0 || std::max(begin, end) > kMostDistance ||
            std::min(begin, end) < -kMostDistance)
            return false;
        plane.length = static_cast<std::int64_t>(begin / r.range.stride) + 1;
        plane.longer = static_cast<std::int64_t>((end - begin) / r.range.stride / (plane.rows - 1));
        auto length = [&](std::int64_t row) { return plane.length + row * plane.longer; };
        // Four points inside determine the plane; it must hold at the far ends too.
        const std::int64_t at = plane.longer >= 0 ? plane.rows - 2 : 0;
        if (length(at) < 2 || length(at + 1) < 2 || cell_.distance.degree_in(r.outer) > 1 ||
            cell_.distance.degree_in(r.inner) > 1)
            return false;
        auto distance = [&](std::int64_t row, std::int64_t point) {
            return value(cell_.distance, r, row, point);
        };
        const std::int64_t corner = distance(at, 0);
        plane.by_row = distance(at + 1, 0) - corner;
        plane.by_point = distance(at, 1) - corner;
        const Wide start = corner - Wide{plane.by_row} * at;
        if (distance(at + 1, 1) != corner + plane.by_row + plane.by_point || start > kMostDistance ||
            start < -kMostDistance)
            return false;
        plane.distance = static_cast<std::int64_t>(start);
        for (std::int64_t row : {std::int64_t{0}, plane.rows / 2, plane.rows - 1}) {
            if (reach(row) != (Wide{length(row)} - 1) * r.range.stride) return false;
            if (length(row) < 1) continue;
            for (std::int64_t point : {std::int64_t{0}, length(row) - 1})
                if (distance(row, point) !=
                    start + Wide{plane.by_row} * row + Wide{plane.by_point} * point)
                    return false;
        }
        return true;
    }

    // What a piece counts in its row number j.
    bool count_in(const Rows& r, const PlanePiece& piece, std::int64_t j, std::int64_t& out) {
        const std::int64_t row = piece.first + j * piece.every;
        const std::int64_t low = piece.low + j * piece.low_step,
                           high = piece.high + j * piece.high_step;
        x_[r.outer] = r.low + row * r.stride;
        Series count;
        if (!step() || !series(cell_.count, r.inner, r.range.low.integer(x_.data()), r.range.stride,
                               r.plane.length + row * r.plane.longer, count))
            return false;
        const Wide sum = count.sum_below(high + 1) - count.sum_below(low);
        out = static_cast<std::int64_t>(sum);
        return sum >= 0 && sum <= kMostDistance;
    }

    bool count_piece(const Rows& r, const PlanePiece& piece) {
        const int degree = cell_.count.degree_in(r.outer) + cell_.count.degree_in(r.inner) + 1;
        if (degree > Series::kMostDegree) return false;
        Series rows;
        rows.degree = static_cast<int>(std::min<std::int64_t>(degree, piece.rows - 1));
        for (int j = 0; j <= rows.degree; ++j)
            if (!count_in(r, piece, j, rows.difference[j])) return false;
        rows.take_differences();
        std::int64_t last = 0;
        if (!count_in(r, piece, piece.rows - 1, last) || rows.at(piece.rows - 1) != last) return false;
        const Wide sum = rows.sum_below(piece.rows);
        if (sum < 0 || sum > kMostDistance) return false;
        counted_.emplace_back(piece.distance, static_cast<std::uint64_t>(sum));
        return true;
    }

    // False: it has to be walked row by row.
    bool plane(std::size_t level, std::int64_t low, std::int64_t stride, std::int64_t length) {
        if (!bin_ || length < kManyRows) return false;
        Rows r{cell_.free[level], cell_.free[level + 1], low, stride, cell_.ranges[level + 1], {}};
        r.plane.rows = length;
        if (!find_plane(r)) return false;
        const auto pieces = cut_plane(r.plane, edges_);
        if (!pieces) return false;
        counted_.clear();
        for (const PlanePiece& piece : *pieces)
            if (!count_piece(r, piece)) return false;
        for (std::int64_t row = 0; row < length; row += row < 64 ? 1 : 997) {
            const std::int64_t points = r.plane.length + row * r.plane.longer;
            if (points < 1) continue;
            for (const auto point : {std::int64_t{0}, points / 2, points - 1}) {
                value(cell_.distance, r, row, point);
                check(cell_.distance, "distance");
                check(cell_.count, "count");
            }
            if (row == 0) {
                check(r.range.low, "range");
                check(r.range.high, "range");
            }
        }
        for (const auto& [distance, count] : counted_) {
            result_.total += count;
            if (count) emit_(distance, count);
        }
        return true;
    }

    void row(std::uint8_t v, std::int64_t low, std::int64_t stride, std::int64_t length) {
        if (corners_ < 64 || corners_ % 997 == 0) {
            for (const auto u : {std::int64_t{0}, length / 2, length - 1}) {
                x_[v] = low + u * stride;
                check(cell_.distance, "distance");
                check(cell_.count, "count");
            }
        }
        ++corners_;
        Series distance, count;
        if (!series(cell_.distance, v, low, stride, length, distance) ||
            !series(cell_.count, v, low, stride, length, count))
            return refuse("a distance or count is not a whole number");
        std::int64_t begin = 0;
        auto edges = turns(distance, length);
        edges.push_back(length);
        for (const auto end : edges) {
            while (begin < end) {
                if (!step()) return;
                const auto d = distance.at(begin);
                if (d < 0 || d > kMostDistance) return refuse("a distance is negative or too large");
                std::int64_t after = begin + 1;
                if (distance.degree == 0) {
                    after = end;
                } else if (bin_) {
                    const auto& bin = edges_.around(static_cast<std::int64_t>(d));
                    const auto slope = distance.difference[1];
                    if (distance.degree == 1 && slope != 0) {
                        const auto left = slope > 0 ? (bin.last - d) / slope : (d - bin.first) / -slope;
                        after = static_cast<std::int64_t>(std::min<Wide>(end, begin + left + 1));
                    } else {
                        const auto same = [&](std::int64_t u) {
                            const auto e = distance.at(u);
                            return e >= bin.first && e <= bin.last;
                        };
                        auto in = begin, out = end;
                        if (same(end - 1)) in = end - 1;
                        while (out - in > 1) {
                            const auto middle = in + (out - in) / 2;
                            (same(middle) ? in : out) = middle;
                        }
                        after = in + 1;
                    }
                }
                const auto c = count.degree == 0 ? Wide{count.difference[0]} * (after - begin)
                                                 : count.sum_below(after) - count.sum_below(begin);
                if (c < 0 || c > kMostDistance) return refuse("a count is negative or too large");
                result_.total += static_cast<std::uint64_t>(c);
                if (c) emit_(static_cast<std::uint64_t>(d), static_cast<std::uint64_t>(c));
                begin = after;
            }
        }
    }

    const Cell& cell_;
    const BinOf& bin_;
    BinEdges edges_{bin_};
    const Emit& emit_;
    std::uint64_t steps_left_;
    const Deadline& deadline_;
    std::array<std::int64_t, kMaxVariables> x_{};
    std::array<bool, kMaxVariables> first_{true, true, true, true, true, true, true, true,
                                           true, true, true, true, true, true, true, true};
    std::uint64_t corners_ = 0;
    std::vector<std::pair<std::uint64_t, std::uint64_t>> counted_;  // of a plane: distance, count
    Evaluation result_;
};

}  // namespace

Evaluation evaluate(const Cell& cell, std::span<const std::int64_t> size, const BinOf& bin,
                    const Emit& emit, std::uint64_t max_steps, const Deadline& deadline) {
    return Walk(cell, bin, emit, max_steps, deadline).run(size);
}

}  // namespace revisit::predict
