#include "symbols/scopes.h"

#include <dwarf.h>

#include <algorithm>
#include <tuple>

namespace revisit {
namespace {

template <class Visit>
void for_children(Dwarf_Die* parent, Visit visit) {
    Dwarf_Die child;
    if (dwarf_child(parent, &child) != 0) return;
    do visit(child);
    while (dwarf_siblingof(&child, &child) == 0);
}

bool has_range(Dwarf_Die* die) {
    return dwarf_hasattr(die, DW_AT_low_pc) || dwarf_hasattr(die, DW_AT_ranges);
}

// Functions may be within others (C, Fortran), within blocks and within types (lambdas).
bool may_hold_functions(int tag) {
    switch (tag) {
        case DW_TAG_subprogram:
        case DW_TAG_lexical_block:
        case DW_TAG_namespace:
        case DW_TAG_module:
        case DW_TAG_class_type:
        case DW_TAG_structure_type:
        case DW_TAG_union_type:
            return true;
        default:
            return false;
    }
}

// Debug information may be broken or made to be: no deeper than so many levels.
constexpr unsigned kDeepest = 200;

template <class Found>
void find_functions(Dwarf_Die* parent, unsigned depth, const Found& found) {
    for_children(parent, [&](Dwarf_Die& child) {
        const int tag = dwarf_tag(&child);
        if (tag == DW_TAG_subprogram && has_range(&child)) found(child);
        if (may_hold_functions(tag) && depth < kDeepest) find_functions(&child, depth + 1, found);
    });
}

// Appends the scopes within `scope`, outermost first. A block without a range of its own may hold ones
// that have one.
void go_in(Dwarf_Die* scope, Dwarf_Addr address, std::vector<Dwarf_Die>& chain) {
    if (chain.size() >= kDeepest) return;
    bool found = false;
    for_children(scope, [&](Dwarf_Die& child) {
        const int tag = dwarf_tag(&child);
        if (found || (tag != DW_TAG_lexical_block && tag != DW_TAG_inlined_subroutine)) return;
        const bool is_there = dwarf_haspc(&child, address) > 0;
        if (!is_there && has_range(&child)) return;
        const std::size_t before = chain.size();
        chain.push_back(child);
        go_in(&child, address, chain);
        found = is_there || chain.size() > before + 1;
        if (!found) chain.pop_back();
    });
}

}  // namespace

std::vector<Dwarf_Die> Scopes::around(Dwarf_Die* unit, Dwarf_Addr address) {
    auto [known, is_new] = by_unit_.try_emplace(dwarf_dieoffset(unit));
    std::vector<Range>& ranges = known->second;
    if (is_new) {
        find_functions(unit, 0, [&](Dwarf_Die& function) {
            Dwarf_Addr base = 0, low = 0, high = 0;
            for (ptrdiff_t at = 0; (at = dwarf_ranges(&function, at, &base, &low, &high)) > 0;)
                ranges.push_back({low, high, 0, function});
        });
        // Of those that begin together the shortest comes last, and of names for the same the first.
        std::ranges::sort(ranges, {}, [](Range& one) {
            return std::tuple(one.low, ~one.high, ~dwarf_dieoffset(&one.function));
        });
        Dwarf_Addr reaches = 0;
        for (Range& one : ranges) one.reaches = reaches = std::max(reaches, one.high);
    }
    auto one = std::ranges::upper_bound(ranges, address, {}, &Range::low);
    while (one != ranges.begin() && std::prev(one)->reaches > address)
        if (address < (--one)->high) {
            std::vector<Dwarf_Die> chain{one->function};
            go_in(&one->function, address, chain);
            std::ranges::reverse(chain);
            return chain;
        }
    return {};
}

}  // namespace revisit
