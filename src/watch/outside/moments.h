// Which moments become samples: more of those at which accesses are made fast.
//
// Problem. A timer meets code as often as that takes time, but profiles count accesses. A loop that
// draws indices takes 92 % of the time, the gather that follows them makes two thirds of the accesses
// in the rest: of 50 samples it has 4. Idea. The timer fires more often than samples may be taken. Its
// record says where the thread is, which meanwhile runs on. Where the rate of that place is known, of
// stretches that were counted, the moment becomes a sample with a chance that grows with the rate, and
// the sample then stands for 1 / chance times the time since the timer fired before.
//
//     draws     0.1 accesses/ns    chance 0.28    92 % of the moments    76 % of the samples
//     gathers   1.3 accesses/ns    chance 1        8 %                   24 %
//
// The chance is the square root of the rate over the fastest that was met lately: with the rate itself,
// code that is slow because it misses caches, which is what most look for, would have too few. What
// has not been measured is taken as the others are. Moments that are passed over count as ticks do:
// they tell which loop takes the time. Cost. 10 us each, of which there are at most 1 / kLeast per
// sample.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

namespace revisit::watch::outside {

class Moments {
 public:
    // A stretch from there went at so many accesses per nanosecond.
    void measured(std::uint64_t pc, double rate) {
        constexpr float kNew = 0.5F;
        float& known = rate_[slot(pc)];
        known =
            known == 0 ? static_cast<float>(rate) : known + kNew * (static_cast<float>(rate) - known);
    }

    // At every moment that the timer fires: the chance that it is to become a sample.
    double chance(std::uint64_t pc) {
        constexpr double kLeast = 0.2, kForgets = 0.97, kLearns = 1.0 / 16;
        const double rate = rate_[slot(pc)];
        if (rate == 0) return taken_;
        fastest_ = std::max(rate, kForgets * fastest_);
        const double chance = std::clamp(std::sqrt(rate / fastest_), kLeast, 1.0);
        taken_ += kLearns * (chance - taken_);
        return chance;
    }
    // The part of the moments that becomes samples.
    double taken() const { return taken_; }

 private:
    static std::size_t slot(std::uint64_t pc) { return pc >> 7 & 255; }

    std::array<float, 256> rate_ = {};  // accesses per nanosecond, by place; 0 = not known
    double fastest_ = 0, taken_ = 1;
};

}  // namespace revisit::watch::outside
