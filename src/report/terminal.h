// The report as text: what a profile says, on one screen.
#pragma once

#include <string>
#include <vector>

#include "revisit/cache.h"
#include "revisit/profile.h"

namespace revisit {

struct TerminalStyle {
    bool color = false;
    bool links = false;  // file:line as OSC 8 hyperlinks
    int width = 80;
    bool brief = false;  // caches, sites and advice only: one screen
};

// `caches`: whose hit rates to show.
std::string terminal_report(const Profile& profile, const std::vector<CacheSpec>& caches,
                            const TerminalStyle& style);

// Pieces of it that commands use alone.
std::string histogram_chart(const Histogram& histogram, std::uint64_t granularity,
                            const TerminalStyle& style);
std::string cache_table(const std::vector<CachePrediction>& predictions, const Profile& profile);
std::string curve_chart(const Profile& profile, const std::vector<CacheSpec>& marks,
                        const TerminalStyle& style);

}  // namespace revisit
