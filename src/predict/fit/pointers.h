// Which array each address of a slice is in, and the offsets that may be in it.
#pragma once

#include <compare>
#include <cstdint>
#include <set>
#include <vector>

#include "predict/fit/sets.h"
#include "predict/slice/slice.h"

namespace revisit::predict {

struct Place {  // of an instruction
    std::size_t function, block, index;
    auto operator<=>(const Place&) const = default;
};

inline const Instruction& instruction(const Program& p, const Place& at) {
    return p.functions[at.function].blocks[at.block].code[at.index];
}

// Without regard to the order of the code: all that any way through it can bring to a register.
class Pointers {
 public:
    explicit Pointers(const Program& program);

    // Arrays that one pointer may point to are one.
    std::size_t root(std::size_t function, std::int32_t reg) const {
        return roots_.find(node(function, reg));
    }
    const std::set<Place>& offsets(std::size_t function, std::int32_t reg) const {
        return offsets_[node(function, reg)];
    }
    // Whether a pointer to it goes round a loop, is one of several, or comes from nowhere known.
    bool mixed(std::size_t root) const;

 private:
    std::size_t node(std::size_t f, std::int32_t reg) const {
        return first_[f] + static_cast<std::size_t>(reg);
    }
    std::size_t fresh();
    bool flow(std::size_t to, std::size_t from);
    bool follow(std::size_t function);  // one pass; whether there was anything new

    const Program& program_;
    Sets roots_;  // registers, results, globals
    std::vector<std::size_t> first_, results_;
    std::vector<std::set<Place>> offsets_;
    std::vector<bool> pointer_;
    std::set<std::size_t> mixed_;
};

}  // namespace revisit::predict
