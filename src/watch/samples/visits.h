// What windows say about visits to blocks, site by site: the words they touch, and how regular they
// are.
//
// A visit is what one window sees of a block. Its words show how likely a watched word is to be among
// those of another visit (unwatched.h). Blocks at either end of the window are left out, as their
// visits may be cut.
//
// Regular. A prefetcher hides misses that follow a constant stride. At each site the blocks that a
// window has not met before are what may miss; one is regular if it is as far from the last such block
// of the site as one of the two before it was from its predecessor (engines/line_use.h counts the same
// way). Lists, hash tables and gathers have none of them, sweeps
// have nearly all.
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>

#include "watch/samples/access_log.h"

namespace revisit::watch {

struct SiteVisits {
    std::map<std::uint32_t, std::uint64_t>
        sets;                              // words as bits: how often; by the site of the last access
    std::uint64_t visits = 0;              // … all of them
    std::uint64_t fresh = 0, regular = 0;  // blocks not met before, with a stride to compare
};

class VisitStatistics {
 public:
    void add(const AccessLog& log, unsigned shift);

    const std::unordered_map<std::uint64_t, SiteVisits>& sites() const { return sites_; }
    const std::map<std::uint32_t, std::uint64_t>& all() const { return all_; }

    std::uint64_t known(std::uint64_t pc) const;  // visits of a site
    // The share of visits that touch one of `words`, by what the site is known for; `least` visits of
    // its own count, else those of all sites. 1 where nothing is known.
    double share_seen(std::uint64_t pc, std::uint32_t words, std::uint64_t least = 8) const;

 private:
    std::unordered_map<std::uint64_t, SiteVisits> sites_;
    std::map<std::uint32_t, std::uint64_t> all_;
};

}  // namespace revisit::watch
