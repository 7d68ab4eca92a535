// How many accesses readers hand out at once.
#pragma once

#include "revisit/access.h"

namespace revisit {

using Columns = AccessColumns;

inline constexpr std::size_t kReadBatch = std::size_t{1} << 16;

}  // namespace revisit
