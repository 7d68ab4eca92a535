// From rows to formulas: iteration cells and what is true of each.
#pragma once

#include <string>
#include <vector>

#include "predict/fit/rows.h"

namespace revisit::predict {

struct Range {
    Polynomial low, high;  // of one variable, in the sizes and the free variables before it; affine
    std::int64_t stride = 1;
};

// A set of iterations whose distance is one polynomial. `free` are the iteration variables it (or the
// number of iterations that share it) depends on: at the target only they are enumerated.
struct Cell {
    std::int32_t reference = 0;
    std::int32_t source = kCold;
    Polynomial distance;
    Polynomial count;
    std::vector<std::uint8_t> free;
    std::vector<Range> ranges;
    std::size_t rows = 0;
    std::string where;  // the conditions that cut it out, for people
};

struct StreamModel {
    std::vector<Cell> cells;
    std::size_t rows = 0;
    std::size_t lost = 0;  // rows in no cell: the formulas do not cover them
    std::int64_t work = 0;
};

struct CellOptions {
    int max_degree = 3;
    std::vector<std::int32_t> anchors;  // the largest samples; what they do not show is gone at scale
    std::int64_t period = 1;            // of addresses within a block, in iterations; 1 = elements
    std::vector<std::int64_t> periods;  // the same by loop, where it is known
    std::int64_t modulus = 1;           // the samples' sizes are all in one residue class of it
    std::int64_t shift = 0;             // iterations from either end to be distinguished, or 0: few
    bool boxes = false;                 // many sizes: sets are looked for that are boxes
    bool hurry = false;                 // end where finer cuts bring nothing: larger samples may
    std::int64_t work = 60'000'000;     // rows looked at before a stream is given up
    Deadline deadline;
};

// Rows looked at so far, and how many may be.
struct Work {
    std::int64_t done = 0, most = 0;
    Deadline deadline;
    bool spent() const { return done > most || deadline.passed(); }
};

StreamModel learn(const Stream& stream, const RowTable& table, const CellOptions& options);

}  // namespace revisit::predict
