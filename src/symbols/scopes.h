// What is inlined into what at an address, from a unit's debug information.
//
// dwarf_getscopes_die looks for one entry's parents through the whole unit, for every question: of
// 0.25 s that the profile of a C++ program took, 0.14 s were that. Here a unit is gone through once,
// for the ranges of its functions; a question is a binary search and a way down one function.
#pragma once

#include <elfutils/libdw.h>

#include <map>
#include <vector>

namespace revisit {

class Scopes {
 public:
    // Blocks and inlined calls around an address, innermost first; the function itself is the last.
    // Empty = in no function of the unit.
    std::vector<Dwarf_Die> around(Dwarf_Die* unit, Dwarf_Addr address);

 private:
    struct Range {
        Dwarf_Addr low, high;
        Dwarf_Addr reaches;  // the highest end up to here
        Dwarf_Die function;
    };
    std::map<Dwarf_Off, std::vector<Range>> by_unit_;  // sorted by low
};

}  // namespace revisit
