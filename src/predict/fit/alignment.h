// How references move through blocks, loop by loop.
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "predict/run/interpret.h"

namespace revisit::predict {

// Of one run: by loop place, after how many iterations all references under it are again at the same
// place within a block; and all strides and trip counts, to see what a size changes.
struct Layout {
    std::vector<std::int64_t> period;                // by loop place; 0 = no period was found
    std::vector<std::int64_t> trips;                 // by loop place: most iterations of one run
    std::vector<std::int64_t> step;                  // by loop place: of its variable
    std::vector<std::vector<std::int64_t>> strides;  // by reference place, by loop; empty = not affine
    // By function, reference and context: `period` of the loops around it, outermost first.
    std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint64_t>, std::vector<std::int64_t>> around;
};

Result<Layout> layout_of(const Program& program, const Parameters& parameters,
                         std::uint64_t granularity, const Deadline& deadline);

// The least modulus that keeps the layout when a size moves from `base` to `moved`; at most `most`.
std::int64_t period_along(const Layout& base, const Layout& moved, std::int64_t most);

// And the one that keeps the residues of the steps of all loops that the size makes longer.
std::int64_t step_along(const Layout& base, const Layout& moved);

}  // namespace revisit::predict
