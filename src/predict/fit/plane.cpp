#include "predict/fit/plane.h"

#include <algorithm>
#include <numeric>

namespace revisit::predict {
namespace {

using Wide = __int128;
constexpr std::size_t kMostBins = 2000;
constexpr std::int64_t kMostSlopes = 64;

Wide floor_of(Wide a, Wide b) {  // a / b for b > 0
    return a >= 0 ? a / b : -((-a + b - 1) / b);
}

struct Line {
    Wide start, step;
    Wide at(std::int64_t m) const { return start + step * m; }
    Line operator-(const Line& o) const { return {start - o.start, step - o.step}; }
};

// Where `line` comes to 0 or leaves it, as far as that is inside (0, end).
void add_turn(const Line& line, std::int64_t end, std::vector<std::int64_t>& turns) {
    if (line.step == 0) return;
    Wide at = line.step > 0 ? -floor_of(line.start, line.step)       // first that is not negative
                            : floor_of(line.start, -line.step) + 1;  // first that is
    if (at > 0 && at < end) turns.push_back(static_cast<std::int64_t>(at));
}

struct Interval {
    std::int64_t first, last;
};

// The numbers of `in` where the line is not negative: they have no gap.
Interval not_negative(const Line& line, Interval in) {
    if (in.first > in.last) return in;
    std::vector<std::int64_t> turns;
    add_turn({line.at(in.first), line.step}, in.last - in.first + 1, turns);
    bool begins = line.at(in.first) >= 0;
    if (turns.empty()) return begins ? in : Interval{0, -1};
    return begins ? Interval{in.first, in.first + turns[0] - 1}
                  : Interval{in.first + turns[0], in.last};
}

class Cutter {
 public:
    Cutter(const Plane& plane, BinEdges& bins) : plane_(plane), bins_(bins) {}

    std::optional<std::vector<PlanePiece>> run() {
        filled_ = not_negative({plane_.length - 1, plane_.longer}, {0, plane_.rows - 1});
        if (filled_.first > filled_.last) return pieces_;
        Wide least = kMostDistance, most = 0;
        for (std::int64_t row : {filled_.first, filled_.last})
            for (Wide point : {Wide{0}, last_of(row)}) {
                Wide d = plane_.distance + Wide{plane_.by_row} * row + plane_.by_point * point;
                if (d < 0 || d > kMostDistance) return std::nullopt;
                least = std::min(least, d);
                most = std::max(most, d);
            }
        std::int64_t down = std::abs(plane_.by_point);
        slopes_ = down == 0 ? 1 : down / std::gcd(plane_.by_row, down);
        if (slopes_ > kMostSlopes) return std::nullopt;
        std::size_t bins = 0;
        for (auto d = static_cast<std::int64_t>(least); d <= most;) {
            if (++bins > kMostBins) return std::nullopt;
            const auto end = std::min(bins_.around(d).last, static_cast<std::int64_t>(most));
            cut(static_cast<std::uint64_t>(d), static_cast<std::uint64_t>(end));
            d = end + 1;
        }
        return pieces_;
    }

 private:
    Wide last_of(std::int64_t row) const { return plane_.length - 1 + Wide{plane_.longer} * row; }

    void put(std::uint64_t distance, std::int64_t first, std::int64_t every, std::int64_t rows,
             const Line& low, const Line& high, std::int64_t from) {
        auto whole = [](Wide value) { return static_cast<std::int64_t>(value); };
        pieces_.push_back({distance, first + every * from, every, rows, whole(low.at(from)),
                           whole(low.step), whole(high.at(from)), whole(high.step)});
    }

    void cut(std::uint64_t from, std::uint64_t to) {
        if (plane_.by_point == 0) {
            Line above{Wide{plane_.distance} - from, plane_.by_row};
            Line below{Wide{to} - plane_.distance, -Wide{plane_.by_row}};
            Interval rows = not_negative(below, not_negative(above, filled_));
            if (rows.first <= rows.last)
                put(from, 0, 1, rows.last - rows.first + 1, {0, 0},
                    {Wide{plane_.length} - 1, plane_.longer}, rows.first);
            return;
        }
        // base + row * r + point * p in [low, high], p > 0
        Wide sign = plane_.by_point < 0 ? -1 : 1, down = sign * plane_.by_point;
        Wide low = sign > 0 ? Wide{from} : -Wide{to}, high = sign > 0 ? Wide{to} : -Wide{from};
        for (std::int64_t first = filled_.first; first < filled_.first + slopes_; first++) {
            if (first > filled_.last) break;
            std::int64_t rows = (filled_.last - first) / slopes_ + 1;
            Wide base = sign * (plane_.distance + Wide{plane_.by_row} * first);
            Wide slope = -sign * plane_.by_row * slopes_ / down;
            Line begin{-floor_of(base - low, down), slope};  // the first point not below
            Line end{floor_of(high - base, down), slope};
            Line row_end{last_of(first), Wide{plane_.longer} * slopes_};
            cut_rows(from, first, rows, begin, end, row_end);
        }
    }

    void cut_rows(std::uint64_t distance, std::int64_t first, std::int64_t rows, const Line& begin,
                  const Line& end, const Line& row_end) {
        std::vector<std::int64_t> turns{0, rows};
        for (const Line& line : {begin, end, end - row_end, end - begin, row_end - begin})
            add_turn(line, rows, turns);
        std::ranges::sort(turns);
        turns.erase(std::unique(turns.begin(), turns.end()), turns.end());
        for (std::size_t i = 0; i + 1 < turns.size(); i++) {
            const Line low = begin.at(turns[i]) >= 0 ? begin : Line{0, 0};
            const Line high = end.at(turns[i]) >= row_end.at(turns[i]) ? row_end : end;
            if (high.at(turns[i]) >= low.at(turns[i]))
                put(distance, first, slopes_, turns[i + 1] - turns[i], low, high, turns[i]);
        }
    }

    const Plane& plane_;
    BinEdges& bins_;
    Interval filled_{0, -1};  // rows that have points
    std::int64_t slopes_ = 1;
    std::vector<PlanePiece> pieces_;
};

}  // namespace

std::optional<std::vector<PlanePiece>> cut_plane(const Plane& plane, BinEdges& bins) {
    return Cutter(plane, bins).run();
}

}  // namespace revisit::predict
