// Machine code of the places of a profile, as text: read from the modules when a report is made.
//
// Decoding begins at a site, which is an instruction, so no function bounds are needed: sites of one
// function that lie near each other are one stretch, from the first of them to a little after the last.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "revisit/error.h"

namespace revisit {

struct Instruction {
    std::uint64_t address = 0;  // as objdump prints it
    std::string text;           // "ldr x1, [x0, #8]"
};

// `sites`: addresses of instructions, in any order. An Error when the file cannot be read, is of
// another machine, or there is no disassembler in this build.
Result<std::vector<Instruction>> listing_of(const std::string& module,
                                            std::vector<std::uint64_t> sites);

}  // namespace revisit
