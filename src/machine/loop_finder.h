// Where a loop is: see loops.h.
#pragma once

#include <cstdint>

namespace revisit::machine {

// Whether the same few accesses come round again and again, and recording an iteration pays.
class LoopFinder {
 public:
    void start() {
        anchor_ = 0;
        since_ = period_ = repeats_ = 0;
        was_left_out_ = false;
        for (std::uint8_t& one : in_vain_) one = 0;
        for (std::uint8_t& one : skipped_) one = 0;
    }
    // After each access, at `pc`.
    bool comes_round(std::uint64_t pc) {
        constexpr unsigned kTimes = 3;
        since_++;
        if (pc == anchor_) {
            const bool is_round = since_ == period_;
            repeats_ = is_round ? repeats_ + 1 : 0;
            period_ = since_;
            since_ = 0;
            // An inner loop that was skipped before is known by its second iteration. The one or two
            // that are left over by that are not worth another try, of which nothing comes.
            if (!is_round) was_left_out_ = false;
            bool is_known = skipped_[slot(pc)] == period_ && !was_left_out_;
            return (repeats_ >= kTimes || is_known) && in_vain_[slot(pc)] < kTries;
        }
        if (since_ <= kLongest) return false;
        anchor_ = pc;
        since_ = period_ = repeats_ = 0;
        return false;
    }
    // So many iterations were found to be alike. `elsewhere`: another access to begin with may do.
    void found(std::uint64_t iterations, bool elsewhere) {
        std::uint8_t& in_vain = in_vain_[slot(anchor_)];
        in_vain = iterations < kFew ? static_cast<std::uint8_t>(in_vain + 1) : 0;
        skipped_[slot(anchor_)] = static_cast<std::uint8_t>(iterations < kFew ? 0 : period_);
        repeats_ = 0;
        was_left_out_ = iterations >= kFew;
        if (elsewhere && iterations < kFew) since_ = kLongest;
    }
    static constexpr std::uint64_t kFew = 8;

 private:
    static constexpr unsigned kTries = 4, kLongest = 64, kSlots = 64;

    static unsigned slot(std::uint64_t pc) { return (pc >> 2 ^ pc >> 8) & (kSlots - 1); }

    std::uint64_t anchor_ = 0;
    unsigned since_ = 0, period_ = 0, repeats_ = 0;
    bool was_left_out_ = false;
    std::uint8_t in_vain_[kSlots] = {};
    std::uint8_t skipped_[kSlots] = {};  // accesses of an iteration
};

}  // namespace revisit::machine
