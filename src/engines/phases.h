// Phases: a histogram for each window of a run, in bounded memory, at no cost an access.
//
// Idea. Engines keep one running histogram. A window's own is the difference of two looks at it, one at
// each end. The run's length is not known in advance, so windows start short and are joined two by two
// whenever there are too many: any run ends with between half the most and the most of one length.
// Sites, where they are counted, are looked at the same way, in powers of two.
// Cost. One look a window: some ten microseconds, a few thousand times a run; with sites, some more
// for each site and pair.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engines/site_octaves.h"
#include "revisit/engine.h"

namespace revisit {

struct SiteGain {
    std::uint32_t site = 0;
    OctaveCounts counts;
};

// A stretch of accesses and what its histogram gained.
struct Window {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    Histogram gained;
    std::vector<SiteGain> sites = {};  // the same by site, those with most accesses, by id
};

// Adds gains of two windows up by site; at most so many stay.
std::vector<SiteGain> join_gains(const std::vector<SiteGain>& a, const std::vector<SiteGain>& b,
                                 std::size_t most);

class WindowRecorder {
 public:
    // `most` is even.
    WindowRecorder(std::size_t most, std::uint64_t first_length)
        : most_(most),
          most_sites_(std::clamp<std::size_t>(kMostGains / most, 2, 256)),
          length_(first_length) {}

    std::uint64_t window_end() const { return begin_ + length_; }
    // The run stands at `accesses` with this histogram so far: a window ends here.
    void end_window(std::uint64_t accesses, const Histogram& so_far);
    // The same by site, before it.
    void look_at_sites(SiteOctaves so_far);

    std::span<const Window> windows() const { return windows_; }

 private:
    void join_pairs();

    static constexpr std::size_t kMostGains = 1 << 16;  // over all windows
    std::size_t most_, most_sites_;
    std::uint64_t length_;
    std::uint64_t begin_ = 0;
    Histogram before_;
    SiteOctaves sites_before_;
    std::vector<SiteGain> gained_;
    std::vector<Window> windows_;
};

// Cuts the run of an engine that reports its histogram so far into options.phases windows.
Result<std::unique_ptr<Engine>> make_phased(std::unique_ptr<Engine> engine,
                                            const EngineOptions& options);

}  // namespace revisit
