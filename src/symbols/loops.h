// Loops in machine code, for files without debug information about them.
//
// Problem. "Which loop misses?" is how people think of numeric code; debug information knows lines and
// functions, not loops. Idea. Compilers lay a loop out as one stretch of code with a branch at its end
// that goes back to its beginning, so every direct branch backwards inside a function is taken as a
// loop from its target to itself; two to the same target are one loop with a `continue`. The innermost
// around an instruction is the shortest that holds it. Cost. One pass over the functions that have
// accesses, some ten million instructions a second. Limits. Cold parts moved out of a loop are not seen
// as in it, and a backward `goto` is a loop to us. Decoding is capstone's; without it there are no
// loops.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace revisit {

struct CodeLoop {
    std::uint64_t head = 0;    // first instruction
    std::uint64_t branch = 0;  // the last branch back to it
    bool operator==(const CodeLoop&) const = default;
};

// Of one function, `code` at `address`; `machine` is the ELF header's. Sorted by length, shortest
// first.
std::vector<CodeLoop> loops_in(std::span<const std::uint8_t> code, std::uint64_t address,
                               std::uint16_t machine);

const CodeLoop* innermost(const std::vector<CodeLoop>& loops, std::uint64_t address);

}  // namespace revisit
