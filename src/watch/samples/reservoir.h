// Which watchpoint a new sample takes, and with what probability.
//
// Problem. A thread has four watchpoints and samples come faster than long reuses end. Keeping the old
// ones sees no short reuse, replacing them sees no long one. Idea, as in RDX: every register remembers
// how many samples came since it was last empty; the k-th replaces what it holds with probability 1/k,
// registers tried in random order. Every sample then has had the same chance to be the one still
// watched. All probabilities are known here, so a reuse that is seen can be weighted by one over the
// chance that it would be (Horvitz and Thompson): the chance that its watchpoint was set, times that of
// having kept it. Samples do not stand for the same: where they are dear they come rarely. So what is
// counted is what they stand for, open uses in nanoseconds of the run, not samples; a line that was
// watched in a phase of many samples kept the watchpoints through most of the next one, of few (a join
// of 80 million rows: S 0.86 in the median of six runs, now 0.87 to 0.90). In a short run a block that
// is never touched again would often be watched up to the end: after a fifth of the run so far, holding
// on gets no likelier with age. S of a hash join in 100 samples, simulated: 0.913 (worst of 24 seeds
// 0.858) instead of 0.907 (0.833). Source. Wang, Liu, Chabbi 2019 (RDX), section IV; the weights are
// ours.
#pragma once

#include <algorithm>
#include <cstdint>

namespace revisit::watch {

class Random {  // xorshift64*: four instructions, no state elsewhere
 public:
    explicit Random(std::uint64_t seed) : state_(seed ? seed : 1) {}
    std::uint64_t next() {
        state_ ^= state_ >> 12;
        state_ ^= state_ << 25;
        state_ ^= state_ >> 27;
        return state_ * 0x2545f4914f6cdd1d;
    }
    unsigned below(unsigned bound) { return static_cast<unsigned>((next() >> 32) * bound >> 32); }
    double unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }

 private:
    std::uint64_t state_;
};

inline constexpr unsigned kMostWatchpoints = 4;

class Reservoir {
 public:
    explicit Reservoir(unsigned watchpoints = kMostWatchpoints) : count_(watchpoints) {}

    struct Choice {
        int watchpoint = -1;     // the one to set, or none
        double probability = 1;  // that this sample got one
    };

    // A new sample wants to be watched that stands for so much. What stays has its chance of having
    // stayed updated.
    Choice choose(Random& random, double mass = 1) {
        constexpr double kMostLeast = 0.1, kPart = 5;
        wanted_++;
        wanted_mass_ += mass;
        mass_ = mass;
        const double usual = wanted_mass_ / wanted_,
                     least = std::min(1.0, mass / usual * std::min(kMostLeast, kPart / wanted_));
        for (unsigned i = 0; i < count_; i++)
            if (!held_[i]) {
                for (unsigned k = 0; k < count_; k++)
                    if (held_[k]) since_empty_[k] += mass;
                return {static_cast<int>(i), 1};
            }
        double chance[kMostWatchpoints], none = 1;
        for (unsigned i = 0; i < count_; i++) {
            since_empty_[i] += mass;
            chance[i] = std::max(least, mass / since_empty_[i]);
            none *= 1 - chance[i];
        }
        unsigned order[kMostWatchpoints] = {};
        for (unsigned i = 0; i < count_; i++) {
            unsigned at = random.below(i + 1);
            order[i] = order[at];
            order[at] = i;
        }
        int taken = -1;
        for (unsigned i = 0; i < count_ && taken < 0; i++)
            if (random.unit() < chance[order[i]]) taken = static_cast<int>(order[i]);
        double lost[kMostWatchpoints] = {};
        replacement_chances(chance, lost);
        for (unsigned i = 0; i < count_; i++)
            if (static_cast<int>(i) != taken) kept_[i] *= 1 - lost[i];
        return {taken, 1 - none};
    }

    void set(unsigned watchpoint) {
        held_[watchpoint] = true;
        since_empty_[watchpoint] = mass_;
        kept_[watchpoint] = 1;
    }
    void release(unsigned watchpoint) { held_[watchpoint] = false; }
    bool held(unsigned watchpoint) const { return held_[watchpoint]; }
    double kept(unsigned watchpoint) const { return kept_[watchpoint]; }
    unsigned watchpoints() const { return count_; }

 private:
    // Each register's chance of being the one replaced, over all orders of trying them: the register is
    // reached when all before it in the order declined. Sums over the subsets that come before it.
    void replacement_chances(const double* chance, double* lost) const {
        static constexpr double kFactorial[] = {1, 1, 2, 6, 24};
        for (unsigned i = 0; i < count_; i++)
            for (unsigned before = 0; before < 1u << count_; before++) {
                if (before >> i & 1) continue;
                double all_declined = 1;
                for (unsigned k = 0; k < count_; k++)
                    if (before >> k & 1) all_declined *= 1 - chance[k];
                auto size = static_cast<unsigned>(__builtin_popcount(before));
                double orders = kFactorial[size] * kFactorial[count_ - 1 - size] / kFactorial[count_];
                lost[i] += orders * all_declined * chance[i];
            }
    }

    unsigned count_;
    double wanted_ = 0, wanted_mass_ = 0;  // samples that wanted to be watched, and their masses
    double mass_ = 1;                      // that of the last
    bool held_[kMostWatchpoints] = {};
    double since_empty_[kMostWatchpoints] = {};  // what came since, in mass
    double kept_[kMostWatchpoints] = {};
};

}  // namespace revisit::watch
