// One cache: its size, its ways, its line.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "revisit/error.h"

namespace revisit {

struct REVISIT_API CacheSpec {
    std::uint64_t bytes = 0;
    std::uint64_t ways = 0;  // 0 = fully associative
    std::uint64_t line = 64;
    std::string name;  // "L1d", or the spec as written

    std::uint64_t blocks() const { return line == 0 ? 0 : bytes / line; }
    std::uint64_t associativity() const { return ways == 0 ? blocks() : ways; }
    std::uint64_t sets() const { return associativity() == 0 ? 0 : blocks() / associativity(); }
    bool same_geometry(const CacheSpec& other) const {
        return bytes == other.bytes && associativity() == other.associativity() && line == other.line;
    }
    // SIZE:WAYS:LINE or NAME=SIZE:WAYS:LINE; "full" as WAYS is fully associative.
    static Result<CacheSpec> parse(std::string_view spec);
};

}  // namespace revisit
