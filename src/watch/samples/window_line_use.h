// How many bytes of a line are used, from windows.
//
// Exact engines follow a line from its fetch to its eviction (engines/line_use.h). A window sees a
// thousand accesses, which is where most of a line's use is: a struct's fields are read together, a
// sweep stays on a line until it has used it. Each block that a window touches first in its first half
// counts the bytes touched up to the window's end, for the site of that first touch. What is used
// later, before the line is evicted, is not seen: the figure is a lower bound. Fetches of a site are
// its misses in the cache. The error is that of a ratio of sums over windows.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "revisit/profile.h"
#include "watch/samples/access_log.h"

namespace revisit::watch {

class WindowLineUse {
 public:
    struct Sums {
        double lines = 0, bytes = 0;
        double lines_squared = 0, bytes_squared = 0, products = 0;  // window by window
        std::uint64_t parts = 0;
        double windows = 0;

        void merge(const Sums& other);
        double used() const { return lines > 0 ? bytes / lines : 0; }
        double error() const;  // of used(), 95 % half-width
    };

    void add(const AccessLog& log, unsigned shift);
    const std::unordered_map<std::uint64_t, Sums>& sites() const { return sites_; }  // by pc

 private:
    std::unordered_map<std::uint64_t, Sums> sites_;
};

}  // namespace revisit::watch
