// A plane of iterations, cut by bins.
//
// Two nested variables, rows of points, and a distance that is affine in both: at a large size there
// are too many rows to go through one by one. The points of a bin lie between two lines. Where the
// slope of these is whole, which it is in every g-th row for a small g, the first and the last point of
// a row are affine in the row's number; clipped by the row's own ends they are so piece by piece. A
// plane costs steps by the bins it crosses, whatever its size.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "predict/fit/bin_edges.h"

namespace revisit::predict {

struct Plane {
    std::int64_t rows = 0;
    std::int64_t length = 0, longer = 0;  // row k has length + k * longer points, none when negative
    std::int64_t distance = 0, by_row = 0, by_point = 0;  // of the first point, and how it grows
};

// Rows first, first + every, … of which each has the points from low to high in one bin; both move
// from one row to the next.
struct PlanePiece {
    std::uint64_t distance;  // any of the bin
    std::int64_t first, every, rows;
    std::int64_t low, low_step, high, high_step;
};

// Nothing where distances leave [0, 2^59], or bins or slopes are too many to be worth it.
std::optional<std::vector<PlanePiece>> cut_plane(const Plane& plane, BinEdges& bins);

}  // namespace revisit::predict
