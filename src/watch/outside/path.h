// A call stack as samples and traps note it.
#pragma once

#include <cstdint>

namespace revisit::watch::outside {

struct Path {  // innermost first
    static constexpr unsigned kMost = 48;
    std::uint64_t pc = 0;
    std::uint64_t link = 0;  // a register's: on the path if the function keeps its return address there
    unsigned count = 0;
    std::uint64_t back[kMost];
};

}  // namespace revisit::watch::outside
