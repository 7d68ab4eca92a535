// TLBs, and what huge pages would do, out of a profile that counted pages beside lines.
#pragma once

#include <string>
#include <vector>

#include "revisit/cache.h"
#include "revisit/profile.h"

namespace revisit {

struct PageSize {
    std::uint64_t bytes = 0;
    double touched = 0;                 // pages of this size
    std::vector<CachePrediction> tlbs;  // nearest first
};

struct PageFindings {
    std::vector<PageSize> sizes;  // of 4 KiB and above, smallest first; empty: not counted
    bool typical = false;         // TLBs of this machine are not known: typical ones instead
    std::string huge_pages;       // what they would do, in a sentence; empty: not known
    double small_misses = 0;      // of the largest TLB, share of accesses, in the smallest pages
    double huge_misses = 0;       // and in pages of 2 MiB
};

// `caches` may hold TLBs, caches with lines as large as pages; else this machine's.
PageFindings page_findings(const Profile& profile, const std::vector<CacheSpec>& caches);

}  // namespace revisit
