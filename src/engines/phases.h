// Phases: a histogram for each window of a run, in bounded memory, at no cost an access.
//
// Idea. Engines keep one running histogram. A window's own is the difference of two looks at it, one at
// each end. The run's length is not known in advance, so windows start short and are joined two by two
// whenever there are too many: any run ends with between half the most and the most of one length.
// Cost. One look a window: some ten microseconds, a few thousand times a run.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "revisit/engine.h"

namespace revisit {

// A stretch of accesses and what its histogram gained.
struct Window {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    Histogram gained;
};

class WindowRecorder {
 public:
    // `most` is even.
    WindowRecorder(std::size_t most, std::uint64_t first_length) : most_(most), length_(first_length) {}

    std::uint64_t window_end() const { return begin_ + length_; }
    // The run stands at `accesses` with this histogram so far: a window ends here.
    void end_window(std::uint64_t accesses, const Histogram& so_far);

    std::span<const Window> windows() const { return windows_; }

 private:
    void join_pairs();

    std::size_t most_;
    std::uint64_t length_;
    std::uint64_t begin_ = 0;
    Histogram before_;
    std::vector<Window> windows_;
};

// Cuts the run of an engine that reports its histogram so far into options.phases windows.
Result<std::unique_ptr<Engine>> make_phased(std::unique_ptr<Engine> engine,
                                            const EngineOptions& options);

}  // namespace revisit
