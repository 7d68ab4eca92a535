// A progress line for long work: standard error, and only when that is a terminal.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace revisit {

class Progress {
 public:
    Progress(std::string what, bool quiet);
    ~Progress() { clear(); }

    // `done` of `total` (0 = unknown) in bytes, and accesses so far. Cheap to call often.
    void update(std::uint64_t done, std::uint64_t total, std::uint64_t accesses);
    // Takes the line away, before a result is printed where it stands.
    void clear();

 private:
    using Clock = std::chrono::steady_clock;
    std::string what_;
    bool shown_;
    bool drawn_ = false;
    Clock::time_point start_ = Clock::now();
    Clock::time_point next_ = start_ + std::chrono::milliseconds(300);
};

}  // namespace revisit
