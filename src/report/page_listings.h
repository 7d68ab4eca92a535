// Machine code of the functions with the most misses, for the page.
#pragma once

#include <string>
#include <vector>

#include "report/page.h"

namespace revisit {

// JSON rows [module, [[address, text], …]], up to `most` bytes; modules that cannot be read are left
// out.
std::string listings_list(const std::vector<PageProfile>& profiles,
                          const std::vector<CacheSpec>& caches, std::size_t most);

}  // namespace revisit
