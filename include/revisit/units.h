// Sizes and counts as people write them: 64, 32K, 1MiB, 1.5M; 1e9.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "revisit/error.h"

namespace revisit {

// K, M, G, T and their KB, KiB spellings are all powers of 1024, as cache sizes are.
REVISIT_API Result<std::uint64_t> parse_bytes(std::string_view text);

// Plain counts; K, M, G, T are powers of 1000 here.
REVISIT_API Result<std::uint64_t> parse_count(std::string_view text);

// A share from 0 to 1: 0.25, 25%, 1/1000.
REVISIT_API Result<double> parse_share(std::string_view text);

REVISIT_API std::string format_bytes(double bytes);  // "64 KiB", "1.5 MiB"
REVISIT_API std::string format_count(double count);  // "1.23 M", "640"

}  // namespace revisit
