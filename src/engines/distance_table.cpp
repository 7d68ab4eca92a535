#include "engines/distance_table.h"

#include <algorithm>
#include <bit>
#include <map>
#include <utility>

#include "engines/simd.h"

namespace revisit {
namespace {

constexpr std::uint64_t kEmptyEvery = std::uint64_t{1} << 31;
constexpr std::uint64_t kMostBinsPerOctave = 1024;

// Slots: distances below 2^m one by one, then 2^m slots an octave.
template <class Distance>
REVISIT_INLINE std::size_t slot_of(Distance distance, unsigned mantissa_bits) {
    const int octave = static_cast<int>(sizeof(Distance) * 8) - 1 -
                       std::countl_zero(static_cast<Distance>(distance | 1));
    const int shift = std::max(0, octave - static_cast<int>(mantissa_bits));
    return (static_cast<std::size_t>(shift) << mantissa_bits) +
           static_cast<std::size_t>(distance >> shift);
}

}  // namespace

DistanceTable::DistanceTable(const Binning& binning, std::uint64_t dense)
    : binning_(binning), dense_limit_(dense) {
    const std::uint64_t bins = binning.parameter();
    slotted_ = binning.kind() == Binning::Kind::log2 && bins <= kMostBinsPerOctave &&
               std::has_single_bit(bins);
    if (!slotted_) return;
    mantissa_bits_ = std::max(6u, static_cast<unsigned>(std::countr_zero(bins)));
    slots_ = slot_of(~std::uint64_t{0}, mantissa_bits_) + 1;
    copies_.resize(kCopies * slots_);
    totals_.resize(slots_);
}

void DistanceTable::add(std::span<const std::uint32_t> distances) {
    make_room(distances.size());
    if (slotted_)
        add_slots(distances);
    else
        add_dense(distances);
}

void DistanceTable::add(std::span<const std::uint64_t> distances) {
    make_room(distances.size());
    if (slotted_)
        add_slots(distances);
    else
        add_dense(distances);
}

void DistanceTable::add(std::uint64_t distance, std::uint64_t count) {
    if (slotted_)
        totals_[slot_of(distance, mantissa_bits_)] += count;
    else
        rest_[binning_.low_edge(distance)] += count;
}

template <class Distance>
void DistanceTable::add_slots(std::span<const Distance> distances) {
    std::uint32_t* const copy[kCopies] = {copies_.data(), copies_.data() + slots_,
                                          copies_.data() + 2 * slots_, copies_.data() + 3 * slots_};
    const unsigned bits = mantissa_bits_;
    std::size_t i = 0;
    for (; i + kCopies <= distances.size(); i += kCopies)
        for (unsigned c = 0; c < kCopies; c++) copy[c][slot_of(distances[i + c], bits)]++;
    for (; i < distances.size(); i++) copy[0][slot_of(distances[i], bits)]++;
}

template <class Distance>
void DistanceTable::add_dense(std::span<const Distance> distances) {
    Distance most = 0;
    for (Distance distance : distances) most = std::max(most, distance);
    if (most >= dense_size_) {
        const std::uint64_t wanted = std::min<std::uint64_t>(dense_limit_, std::uint64_t{most} + 1);
        dense_.require(wanted);
        dense_size_ = std::max(dense_size_, wanted);
    }
    std::uint32_t* const counters = dense_.data();
    if (most < dense_size_) {
        for (Distance distance : distances) counters[distance]++;
        return;
    }
    for (Distance distance : distances) {
        if (distance < dense_size_)
            counters[distance]++;
        else
            rest_[binning_.low_edge(distance)]++;
    }
}

// No counter passes 2^31 between two looks, so none overflows before it is emptied.
void DistanceTable::make_room(std::uint64_t adding) {
    added_ += adding;
    if (added_ < kEmptyEvery) return;
    added_ = adding;
    if (slotted_) {
        for (std::size_t i = 0; i < copies_.size(); i++)
            totals_[i % slots_] += std::exchange(copies_[i], 0);
        return;
    }
    for (std::uint64_t distance = 0; distance < dense_size_; distance++)
        if (dense_[distance] >= kEmptyEvery)
            rest_[binning_.low_edge(distance)] += std::exchange(dense_[distance], 0);
}

std::uint64_t DistanceTable::slot_low(std::uint64_t slot) const {
    const std::uint64_t octaves = slot >> mantissa_bits_;
    if (octaves == 0) return slot;
    const std::uint64_t shift = octaves - 1;
    return (slot - (shift << mantissa_bits_)) << shift;
}

Histogram DistanceTable::histogram() const {
    Histogram out;
    auto put = [&](std::uint64_t edge, std::uint64_t count) {
        if (out.bins.empty() || out.bins.back().low != edge)
            out.bins.push_back({edge, binning_.high_edge(edge), 0, 0});
        out.bins.back().count += static_cast<double>(count);
    };
    // The time method asks for a histogram every phase.
    const bool slots_are_bins = slotted_ && binning_.parameter() == std::uint64_t{1} << mantissa_bits_;
    for (std::size_t slot = 0; slot < slots_; slot++) {
        std::uint64_t count = totals_[slot];
        for (unsigned c = 0; c < kCopies; c++) count += copies_[c * slots_ + slot];
        if (count == 0) continue;
        if (slots_are_bins)
            out.bins.push_back({slot_low(slot), slot_low(slot + 1), static_cast<double>(count), 0});
        else
            put(binning_.low_edge(slot_low(slot)), count);
    }
    if (slots_are_bins && !out.bins.empty())  // the last octave's end does not fit in 64 bits
        out.bins.back().high = binning_.high_edge(out.bins.back().low);
    for (std::uint64_t distance = 0; distance < dense_size_; distance++)
        if (dense_[distance] != 0) put(binning_.low_edge(distance), dense_[distance]);
    if (!rest_.empty()) {
        Histogram counted = std::exchange(out, {});
        const std::map<std::uint64_t, std::uint64_t> rest(rest_.begin(), rest_.end());
        for (auto [edge, count] : rest) put(edge, count);
        out.merge(counted);
    }
    out.cold = static_cast<double>(cold_);
    return out;
}

}  // namespace revisit
