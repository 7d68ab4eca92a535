// A call path as the handlers note it.
#pragma once

#include <cstdint>

namespace revisit::watch {

struct Path {  // innermost first
    static constexpr unsigned kMost = 48;
    std::uint64_t pc = 0;
    std::uint64_t link = 0;  // a register's: on the path if the function keeps its return address there
    unsigned count = 0;
    std::uint64_t back[kMost];

    std::uint64_t hash() const {
        std::uint64_t hash = (pc * 3 + 1) ^ link;
        for (unsigned i = 0; i < count; i++) hash = (hash ^ back[i]) * 0x9e3779b97f4a7c15;
        return hash | 1;
    }
};

}  // namespace revisit::watch
