// Loop nests as text: found in a source, and written in another order.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace revisit::predict {

// for (TYPE VARIABLE = LOWER; VARIABLE < UPPER; VARIABLE++)
struct LoopText {
    std::string type, variable, lower, upper;
    bool inclusive = false;
    std::uint32_t line = 0;
    std::vector<std::size_t> needs;  // loops of the nest whose variables its bounds have
};

// Loops with nothing between them, the outermost first, and what the innermost does.
struct Nest {
    std::size_t begin = 0, end = 0;  // in the source
    std::vector<LoopText> loops;
    std::string body;
    std::string indent;
};

// Nests of two loops or more with unit steps, whose bodies neither leave them nor change their
// variables or bounds.
std::vector<Nest> find_nests(const std::string& source);

// Which loops, outermost first, and in tiles of how many iterations: 0 is not tiled.
struct Order {
    std::vector<std::size_t> loops;
    std::int64_t tile = 0;
    std::vector<bool> tiled;  // by loop of the nest

    bool operator==(const Order&) const = default;
};
std::string rewritten(const Nest& nest, const Order& order);

}  // namespace revisit::predict
