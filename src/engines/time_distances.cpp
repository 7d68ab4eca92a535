#include "engines/time_distances.h"

#include <algorithm>
#include <utility>

namespace revisit {
namespace {

constexpr double kHashBytesPerBlock = 29.6;  // nothing else here takes memory
constexpr unsigned kTimesBatch = 64;
constexpr unsigned kTimeBatchesAtOnce = 8;

}  // namespace

TimeDistances::TimeDistances(const Binning& binning, std::uint64_t narrow_times, LastAccessForm form)
    : form_(form),
      narrow_times_(narrow_times),
      last_(std::in_place_type<LastAccess<std::uint32_t>>, form, kHashBytesPerBlock),
      distances_(binning, kDenseTimes) {}

void TimeDistances::count_also(const Binning& binning) {
    also_.emplace(binning, kDenseTimes);
}

std::optional<Histogram> TimeDistances::also_histogram() const {
    if (!also_) return std::nullopt;
    Histogram out = also_->histogram();
    out.cold = static_cast<double>(distances_.cold());
    return out;
}

template <class Value>
void TimeDistances::count(std::span<const Value> distances) {
    distances_.add(distances);
    if (also_) also_->add(distances);
}

void TimeDistances::add(std::span<const std::uint64_t> blocks) {
    if (auto* narrow = std::get_if<0>(&last_)) {
        const std::size_t fit = std::min<std::uint64_t>(blocks.size(), narrow_times_ - now_);
        add_to(*narrow, blocks.first(fit));
        blocks = blocks.subspan(fit);
        if (blocks.empty()) return;
        widen();
    }
    add_to(std::get<1>(last_), blocks);
}

void TimeDistances::widen() {
    LastAccess<std::uint64_t> wide(form_, kHashBytesPerBlock);
    std::size_t count = 0;
    std::get<0>(last_).drain(
        [&](std::uint64_t block, std::uint32_t time) { wide.insert(block, time, count++); });
    last_ = std::move(wide);
}

BigVector<std::uint64_t> TimeDistances::take_last_times() {
    BigVector<std::uint64_t> out;
    out.reserve(distances_.cold());
    std::visit([&](auto& last) { last.drain([&](auto, auto time) { out.push_back(time - 1); }); },
               last_);
    std::ranges::sort(out);
    return out;
}

template <class Value>
void TimeDistances::add_to(LastAccess<Value>& last, std::span<const std::uint64_t> blocks) {
    while (!blocks.empty()) {
        last.adapt(distances_.cold());
        const std::size_t done = last.visit([&](auto& table) {
            Lookahead look(table, blocks);
            Value previous[2][kTimesBatch];
            Value distances[kTimeBatchesAtOnce * kTimesBatch];
            unsigned found = 0;
            auto take = [&](std::size_t batch) {
                const unsigned size = look.size(batch), before = found;
                const Value first = static_cast<Value>(now_ + 1);
                const Value* const last_times = previous[batch % 2];
                for (unsigned j = 0; j < size; j++) {
                    distances[found] = static_cast<Value>(first + j - last_times[j]);
                    found += last_times[j] != 0;
                }
                distances_.add_cold(size - (found - before));
                now_ += size;
                if (found > (kTimeBatchesAtOnce - 1) * kTimesBatch) {
                    count(std::span<const Value>(distances, found));
                    found = 0;
                }
            };
            // A batch is taken while the next one's blocks that are not at home come near.
            std::size_t batch = 0;
            Value next = static_cast<Value>(now_ + 1);
            for (; batch < look.batches() && !look.crowded(); batch++) {
                auto time = [next](unsigned j) { return static_cast<Value>(next + j); };
                look.exchange(batch, previous[batch % 2], time);
                if (batch > 0) take(batch - 1);
                look.finish(batch, previous[batch % 2], time);
                next = static_cast<Value>(next + look.size(batch));
            }
            if (batch > 0) take(batch - 1);
            count(std::span<const Value>(distances, found));
            return std::min(blocks.size(), batch * kTimesBatch);
        });
        blocks = blocks.subspan(done);
    }
}

}  // namespace revisit
