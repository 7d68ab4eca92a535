// The model of phases, asked for one reuse at a time: see time_phases.cpp.
#pragma once

#include <span>
#include <vector>

#include "revisit/time_model.h"

namespace revisit {

class PhaseModel {
 public:
    // Phases that follow each other from access 0 on.
    explicit PhaseModel(std::span<const TimePhase> time);

    // The distinct blocks that a reuse ending at `moment` after `time` accesses saw, on average.
    double distance(double moment, double time) const;

    // One phase on the bars common to all.
    struct PhaseBars {
        double begin = 0;
        double end = 0;
        std::vector<double> ending;     // reuses that end here, by bar
        std::vector<double> beginning;  // and that begin here
        std::vector<double> distinct;   // sum of P(time distance > j) for j = 1 .. low edge - 1

        double length() const { return end - begin; }
    };
    const std::vector<PhaseBars>& phases() const { return phases_; }
    const std::vector<double>& edges() const { return edges_; }

 private:
    std::vector<double> edges_;
    std::vector<PhaseBars> phases_;
};

}  // namespace revisit
