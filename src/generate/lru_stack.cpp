#include "generate/lru_stack.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <numeric>

namespace revisit {
namespace {

constexpr std::uint64_t kFan = 16;

// Four numbers at once. The compilers' own vectors: plain loops over these branches stay scalar.
using Lanes = std::uint32_t __attribute__((vector_size(16)));
constexpr std::uint32_t kLanes = 4;

Lanes lanes_at(std::uint32_t first) {  // first, first + 1, …
    return Lanes{0, 1, 2, 3} + first;
}
Lanes load(const std::uint32_t* from) {
    Lanes lanes;
    std::memcpy(&lanes, from, sizeof lanes);
    return lanes;
}
void store(std::uint32_t* to, Lanes lanes) {
    std::memcpy(to, &lanes, sizeof lanes);
}
constexpr std::uint64_t kFewestSlots = 4096;

// select_in_byte[r][b]: the place of the r-th one, from 0, in byte b.
constexpr auto kSelectInByte = [] {
    std::array<std::array<std::uint8_t, 256>, 8> table{};
    for (unsigned byte = 0; byte < 256; ++byte)
        for (unsigned place = 0, rank = 0; place < 8; ++place)
            if ((byte >> place & 1) != 0) table[rank++][byte] = static_cast<std::uint8_t>(place);
    return table;
}();

// The place of the rank-th one, from 0, in a word that has more than `rank`. All bytes at once: running
// sums of ones, then how many of them are at most `rank`.
unsigned select_in_word(std::uint64_t word, std::uint64_t rank) {
    constexpr std::uint64_t kOnes = 0x0101010101010101u, kTops = 0x8080808080808080u;
    std::uint64_t s = word - ((word >> 1) & 0x5555555555555555u);
    s = (s & 0x3333333333333333u) + ((s >> 2) & 0x3333333333333333u);
    s = ((s + (s >> 4)) & 0x0f0f0f0f0f0f0f0fu) * kOnes;
    auto place = static_cast<unsigned>(std::popcount(((rank * kOnes | kTops) - s) & kTops)) * 8;
    std::uint64_t before = ((s << 8) >> place) & 0xff;
    return place + kSelectInByte[rank - before][(word >> place) & 0xff];
}

// Translates the depths of a batch to depths before the batch. The stack is then what the batch moved,
// on top, and below it the old stack less what was taken out.
class BatchDepths {
 public:
    static constexpr std::size_t kMost = LruStack::kBatch;

    BatchDepths() { left_above_.fill(Lanes{} + (~std::uint32_t{0} - kMost)); }

    // Which of the blocks found, in the order of their finding, is at this depth; it goes on top.
    std::uint8_t access(std::uint32_t depth) {
        if (depth < count_) {  // moved before in this batch
            std::size_t at = count_ - 1 - depth;
            std::uint8_t which = order_[at];
            for (; at + 1 < count_; ++at) order_[at] = order_[at + 1];
            return order_[at] = which;
        }
        // Among the old blocks still there it is number `rank`. Of those taken out, the ones before it
        // are those with at most `rank` blocks left before them.
        const auto rank = static_cast<std::uint32_t>(depth - count_);
        // It goes in behind them; those after it move on by one and have one block less above them.
        Lanes tallies{}, previous{}, previous_before = ~Lanes{};
        for (Lanes& some : left_above_) {
            Lanes before = Lanes(some <= rank);
            Lanes moved = __builtin_shufflevector(previous, some, 3, 4, 5, 6) - 1;
            Lanes place = __builtin_shufflevector(previous_before, before, 3, 4, 5, 6) & ~before;
            tallies -= before;
            previous = some;
            previous_before = before;
            some = (some & before) | (place & rank) | (moved & ~(before | place));
        }
        const std::uint32_t taken = tallies[0] + tallies[1] + tallies[2] + tallies[3];
        before_[count_] = rank + taken;
        order_[count_] = static_cast<std::uint8_t>(count_);
        return static_cast<std::uint8_t>(count_++);
    }

    std::size_t count() const { return count_; }
    std::uint32_t before(std::size_t k) const { return before_[k]; }  // depth before the batch
    std::uint8_t from_bottom(std::size_t k) const { return order_[k]; }

 private:
    std::size_t count_ = 0;
    std::array<std::uint32_t, kMost> before_;
    std::array<std::uint8_t, kMost> order_;  // of the blocks moved, the one on top last
    // Rising with the depth of those taken out: the blocks left above each. Unused: larger than any.
    std::array<Lanes, kMost / kLanes> left_above_;
};

}  // namespace

LruStack::LruStack(std::uint64_t blocks) : blocks_(blocks) {
    std::uint64_t slots = std::max(kFewestSlots, 2 * blocks);
    std::uint64_t words = (slots + 63) / 64;
    content_.resize(words * 64);
    std::iota(content_.begin(), content_.begin() + static_cast<std::ptrdiff_t>(blocks), 0u);
    do {
        words = (words + kFan - 1) / kFan * kFan;  // whole nodes
        sums_.emplace_back(words);
        if (sums_.size() == 1) marks_.resize(words);
        words /= kFan;
    } while (words > 1);
    fill();
}

void LruStack::fill() {
    std::uint64_t left = blocks_;
    std::vector<std::uint32_t> counts(marks_.size());
    for (std::size_t i = 0; i < marks_.size(); ++i) {
        std::uint64_t take = std::min<std::uint64_t>(left, 64);
        marks_[i] = take == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << take) - 1;
        counts[i] = static_cast<std::uint32_t>(take);
        left -= take;
    }
    for (auto& level : sums_) {
        std::vector<std::uint32_t> above(level.size() / kFan);
        for (std::size_t i = 0; i < level.size(); ++i) {
            level[i] = above[i / kFan];
            if (i < counts.size()) above[i / kFan] += counts[i];
        }
        counts = std::move(above);
    }
    end_ = blocks_;
}

void LruStack::find(std::span<const std::uint32_t> ranks, std::uint64_t* slots) const {
    // Level by level, not rank by rank: neighbouring steps are then independent of each other.
    std::array<std::uint32_t, kBatch> left, node{};
    std::copy(ranks.begin(), ranks.end(), left.begin());
    for (std::size_t level = sums_.size(); level-- > 0;) {
        const std::uint32_t* all = sums_[level].data();
        for (std::size_t k = 0; k < ranks.size(); ++k) {
            const std::uint32_t* sums = all + std::size_t{node[k]} * kFan;
            Lanes tallies{};
            for (std::uint64_t i = 0; i < kFan; i += kLanes)
                tallies -= Lanes(load(sums + i) <= left[k]);
            // The first sum is 0, so one is always counted.
            const std::uint32_t child = tallies[0] + tallies[1] + tallies[2] + tallies[3] - 1;
            left[k] -= sums[child];
            node[k] = node[k] * kFan + child;
        }
    }
    for (std::size_t k = 0; k < ranks.size(); ++k)
        slots[k] = node[k] * std::uint64_t{64} + select_in_word(marks_[node[k]], left[k]);
}

void LruStack::add_to_sums(std::uint64_t word, std::uint32_t by) {
    for (auto& level : sums_) {
        std::uint32_t* sums = &level[word & ~(kFan - 1)];
        auto child = static_cast<std::uint32_t>(word % kFan);
        for (std::uint32_t i = 0; i < kFan; i += kLanes)
            store(sums + i, load(sums + i) + (Lanes(lanes_at(i) > child) & by));
        word /= kFan;
    }
}

void LruStack::mark_next(std::uint64_t count) {
    while (count > 0) {
        std::uint64_t take = std::min(count, 64 - end_ % 64);  // at most kBatch, so never all 64
        marks_[end_ / 64] |= ((std::uint64_t{1} << take) - 1) << end_ % 64;
        add_to_sums(end_ / 64, static_cast<std::uint32_t>(take));
        end_ += take;
        count -= take;
    }
}

void LruStack::squeeze() {
    std::uint64_t to = 0;
    for (std::size_t i = 0; i < marks_.size(); ++i)
        for (std::uint64_t word = marks_[i]; word != 0; word &= word - 1)
            content_[to++] = content_[i * 64 + static_cast<unsigned>(std::countr_zero(word))];
    fill();
}

void LruStack::access(std::span<std::uint64_t> depths_to_blocks) {
    BatchDepths batch;
    std::array<std::uint8_t, kBatch> found_as;  // access → which of the blocks found
    for (std::size_t i = 0; i < depths_to_blocks.size(); ++i)
        found_as[i] = batch.access(static_cast<std::uint32_t>(depths_to_blocks[i]));

    std::array<std::uint64_t, kBatch> slots;
    std::array<std::uint32_t, kBatch> blocks;
    const std::size_t found = batch.count();
    if (end_ + found > content_.size()) squeeze();
    std::array<std::uint32_t, kBatch> ranks;
    for (std::size_t k = 0; k < found; ++k)
        ranks[k] = static_cast<std::uint32_t>(blocks_ - 1 - batch.before(k));
    find(std::span(ranks).first(found), slots.data());
    for (std::size_t k = 0; k < found; ++k) __builtin_prefetch(&content_[slots[k]]);
    for (std::size_t k = 0; k < found; ++k) {
        marks_[slots[k] / 64] &= ~(std::uint64_t{1} << slots[k] % 64);
        add_to_sums(slots[k] / 64, ~std::uint32_t{0});
    }
    for (std::size_t k = 0; k < found; ++k) blocks[k] = content_[slots[k]];
    for (std::size_t k = 0; k < found; ++k) content_[end_ + k] = blocks[batch.from_bottom(k)];
    mark_next(found);
    for (std::size_t i = 0; i < depths_to_blocks.size(); ++i) depths_to_blocks[i] = blocks[found_as[i]];
}

}  // namespace revisit
