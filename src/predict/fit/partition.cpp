#include "predict/fit/partition.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace revisit::predict {

void Partition::refine(const std::vector<std::int8_t>& column) {
    if (column.empty()) return;
    // Sixteen rows at a time, unlike std::minmax_element.
    std::int8_t least = column.front(), most = least;
    for (const std::int8_t value : column) least = std::min(least, value), most = std::max(most, value);
    const auto range = static_cast<std::uint64_t>(most - least + 1);
    if (range == 1) return;
    if (span_ > ~std::uint64_t{0} / range) span_ = finish();
    for (std::size_t row = 0; row < key_.size(); ++row)
        key_[row] = key_[row] * range + static_cast<std::uint64_t>(column[row] - least);
    span_ *= range;
}

std::size_t Partition::finish() {
    constexpr std::uint32_t kEmpty = ~std::uint32_t{0};
    struct Slot {
        std::uint64_t key;
        std::uint32_t group;
    };
    std::vector<Slot> slots(1024, Slot{0, kEmpty});
    std::uint32_t groups = 0;
    const auto slot_for = [&](std::uint64_t key) {
        auto at = (key * 0x9E3779B97F4A7C15ull) >> (64 - std::countr_zero(slots.size()));
        while (slots[at].group != kEmpty && slots[at].key != key) at = (at + 1) & (slots.size() - 1);
        return at;
    };
    std::uint64_t before = key_.empty() ? 0 : ~key_.front();
    std::uint32_t same = 0;
    for (auto& key : key_) {
        if (key != before) {  // rows in sequence are often of one group
            before = key;
            auto at = slot_for(key);
            if (slots[at].group == kEmpty) {
                slots[at] = {key, groups++};
                if (groups > slots.size() / 2) {
                    auto old =
                        std::exchange(slots, std::vector<Slot>(2 * slots.size(), Slot{0, kEmpty}));
                    for (const Slot& s : old)
                        if (s.group != kEmpty) slots[slot_for(s.key)] = s;
                    at = slot_for(key);
                }
            }
            same = slots[at].group;
        }
        key = same;
    }
    span_ = std::max<std::uint64_t>(groups, 1);
    return groups;
}

}  // namespace revisit::predict
