// Processor time that may still be spent.
#pragma once

#include <ctime>
#include <limits>

namespace revisit::predict {

// Counted in the time this process has run, so that a busy machine does not change the answer much.
class Deadline {
 public:
    Deadline() = default;  // never
    explicit Deadline(double seconds) : at_(now() + seconds) {}

    bool passed() const { return at_ != kNever && now() >= at_; }
    double left() const { return at_ == kNever ? kNever : at_ - now(); }
    // The given share of what is left.
    Deadline part(double share) const { return at_ == kNever ? *this : Deadline(left() * share); }

    static double now() {
        std::timespec t{};
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
        return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
    }

 private:
    static constexpr double kNever = std::numeric_limits<double>::infinity();
    double at_ = kNever;
};

}  // namespace revisit::predict
