// Time distances: the lookup of the exact engine without its counting.
//
// Times count accesses from 1 and are kept in 32 bits until there are more, then in 64: few traces are
// that long, and half the bytes are a third of the misses.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <variant>

#include "engines/big_vector.h"
#include "engines/distance_table.h"
#include "engines/last_access.h"

namespace revisit {

class TimeDistances {
 public:
    static constexpr std::uint64_t kNarrowTimes = 0xffffffffu;
    // With one bin a distance, counters for the distances up to here take 4 MiB; longer ones go to a
    // map.
    static constexpr std::uint64_t kDenseTimes = std::uint64_t{1} << 20;

    // Tests turn to wide times early.
    explicit TimeDistances(const Binning& binning, std::uint64_t narrow_times = kNarrowTimes,
                           LastAccessForm form = LastAccessForm::automatic);

    // Counts in a second binning as well, from now on.
    void count_also(const Binning& binning);

    void add(std::span<const std::uint64_t> blocks);

    std::uint64_t accesses() const { return now_; }
    std::uint64_t distinct() const { return distances_.cold(); }
    Histogram histogram() const { return distances_.histogram(); }
    std::optional<Histogram> also_histogram() const;

    // What an engine that goes on in another way needs; nothing is counted here afterwards. Times of
    // the last accesses to all blocks, from 0 and in order: the block touched longest ago first.
    BigVector<std::uint64_t> take_last_times();
    DistanceTable take_distances() { return std::move(distances_); }

 private:
    template <class Value>
    void add_to(LastAccess<Value>& last, std::span<const std::uint64_t> blocks);
    template <class Value>
    void count(std::span<const Value> distances);
    void widen();

    LastAccessForm form_;
    std::uint64_t narrow_times_;
    std::uint64_t now_ = 0;
    std::variant<LastAccess<std::uint32_t>, LastAccess<std::uint64_t>> last_;
    DistanceTable distances_;
    std::optional<DistanceTable> also_;
};

}  // namespace revisit
