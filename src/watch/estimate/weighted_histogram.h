// A histogram of weighted counts, with the 95 % half-width that weights imply.
#pragma once

#include <cmath>
#include <map>
#include <span>

#include "revisit/histogram.h"
#include "watch/samples/samples.h"

namespace revisit::watch {

class WeightedHistogram {
 public:
    explicit WeightedHistogram(const Binning& bins) : bins_(bins) {}

    void add(std::uint64_t distance, double weight) { cells_[bins_.low_edge(distance)].add(weight); }
    // One observation whose distance is not known exactly: any of these, alike.
    void add(std::span<const double> distances, double weight) {
        std::map<std::uint64_t, double> sums;
        for (double one : distances)
            sums[bins_.low_edge(static_cast<std::uint64_t>(one))] +=
                weight / static_cast<double>(distances.size());
        for (auto [low, sum] : sums) add(low, sum);
    }
    // What one sample says: errors within it go together.
    void add(std::span<const ThreadSamples::Entry> entries, double weight) {
        std::map<std::uint64_t, double> sums;
        for (auto [value, count] : entries) sums[bins_.low_edge(value)] += weight * count;
        for (auto [low, sum] : sums) add(low, sum);
    }
    void add_cold(double weight) { cold_.add(weight); }

    Histogram histogram() const {
        constexpr double kDeviations = 1.96;
        Histogram out;
        out.cold = cold_.sum;
        out.cold_error = kDeviations * std::sqrt(cold_.squares);
        for (const auto& [low, cell] : cells_)
            out.bins.push_back(
                {low, bins_.high_edge(low), cell.sum, kDeviations * std::sqrt(cell.squares), 0});
        double squares = cold_.squares;
        auto bin = out.bins.rbegin();
        for (auto cell = cells_.rbegin(); cell != cells_.rend(); ++cell, ++bin) {
            squares += cell->second.squares;
            bin->beyond_error = kDeviations * std::sqrt(squares);
        }
        return out;
    }

 private:
    struct Cell {
        double sum = 0, squares = 0;
        void add(double weight) {
            sum += weight;
            squares += weight * weight;
        }
    };
    Binning bins_;
    std::map<std::uint64_t, Cell> cells_;
    Cell cold_;
};

}  // namespace revisit::watch
