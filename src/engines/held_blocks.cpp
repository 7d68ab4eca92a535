#include "engines/held_blocks.h"

#include <utility>

namespace revisit {
namespace {

constexpr std::uint64_t kHighBits = 15;

}  // namespace

std::byte* HeldSegments::take() {
    std::lock_guard lock(guard_);
    if (spare_.empty()) {
        const std::size_t bytes = kAccesses * (columns_ ? 8 : 6);
        std::byte* const slab = slabs_.emplace_back(kSlab).data();
        for (std::size_t at = kSlab / bytes; at-- > 0;) spare_.push_back(slab + at * bytes);
    }
    out_++;
    std::byte* const memory = spare_.back();
    spare_.pop_back();
    return memory;
}

void HeldSegments::keep(std::byte* memory) {
    std::lock_guard lock(guard_);
    spare_.push_back(memory);
}

void HeldSegments::give_back(std::byte* memory) {
    std::lock_guard lock(guard_);
    out_--;
    if (memory != nullptr) spare_.push_back(memory);
    given_back_.notify_one();
}

void HeldSegments::wait_below(std::size_t many, const std::atomic<bool>& somebody_counts) {
    std::unique_lock lock(guard_);
    given_back_.wait(lock, [&] { return out_ < many || !somebody_counts; });
}

void HeldSegments::wake() {
    std::lock_guard lock(guard_);
    given_back_.notify_one();
}

void HeldBlocks::append(const BlockBatch& whole) {
    for (BlockBatch batch = whole; batch.count() != 0;) {
        if (segments_.empty() || segments_.back()->filled == HeldSegments::kAccesses) {
            auto segment = std::make_unique<Segment>();
            segment->narrow = memory_->take();
            segments_.push_back(std::move(segment));
        }
        Segment& segment = *segments_.back();
        const std::size_t take = std::min(batch.count(), HeldSegments::kAccesses - segment.filled);
        const BlockBatch part = batch.part(0, take);
        if (segment.narrow != nullptr && !pack(segment, part)) widen(segment);
        if (Columns* const wide = segment.wide.get()) {
            std::ranges::copy(part.blocks, wide->blocks.begin() + segment.filled);
            if (memory_->columns()) {
                std::ranges::copy(part.sites, wide->sites.begin() + segment.filled);
                std::ranges::copy(part.flags, wide->flags.begin() + segment.filled);
            }
        }
        segment.filled += take;
        segment.left = segment.filled;
        size_ += take;
        batch = batch.part(take, batch.count() - take);
    }
}

// False where they need more bits; what was written is not counted as filled then.
bool HeldBlocks::pack(Segment& segment, const BlockBatch& batch) const {
    const std::size_t count = batch.count();
    const std::uint64_t* const blocks = batch.blocks.data();
    std::uint32_t* const low = segment.low() + segment.filled;
    std::uint16_t* const high = segment.high() + segment.filled;
    std::uint64_t all = 0;
    for (std::size_t i = 0; i < count; ++i) {
        all |= blocks[i];
        low[i] = static_cast<std::uint32_t>(blocks[i]);
        high[i] = static_cast<std::uint16_t>(blocks[i] >> 32);
    }
    if (all >> (32 + kHighBits) != 0) return false;
    if (!memory_->columns()) return true;
    for (std::size_t i = 0; i < batch.flags.size(); ++i)
        high[i] = static_cast<std::uint16_t>(high[i] | (batch.flags[i] & kWrite) << kHighBits);
    std::uint16_t* const sites = segment.sites() + segment.filled;
    if (batch.sites.empty()) {
        std::fill_n(sites, count, std::uint16_t{0});
        return true;
    }
    std::uint32_t all_sites = 0;
    for (std::size_t i = 0; i < count; ++i) {
        all_sites |= batch.sites[i];
        sites[i] = static_cast<std::uint16_t>(batch.sites[i]);
    }
    return all_sites >> 16 == 0;
}

void HeldBlocks::widen(Segment& segment) const {
    segment.wide = std::make_unique<Columns>(HeldSegments::kAccesses, memory_->columns());
    if (segment.filled != 0) (void)unpack(segment, 0, segment.filled, *segment.wide);
    memory_->keep(std::exchange(segment.narrow, nullptr));
}

BlockBatch HeldBlocks::unpack(const Segment& segment, std::size_t first, std::size_t count,
                              Columns& room) const {
    auto columns = [count](const Columns& from, std::size_t at) -> BlockBatch {
        auto of = [&](const auto& column) {
            return column.empty() ? std::span(column) : std::span(column).subspan(at, count);
        };
        return {of(from.blocks), of(from.sites), {}, of(from.flags)};
    };
    if (segment.narrow == nullptr) return columns(*segment.wide, first);
    const std::uint32_t* const low = segment.low() + first;
    const std::uint16_t* const high = segment.high() + first;
    constexpr std::uint64_t kHigh = (std::uint64_t{1} << kHighBits) - 1;
    for (std::size_t i = 0; i < count; ++i) room.blocks[i] = (high[i] & kHigh) << 32 | low[i];
    if (!memory_->columns()) return columns(room, 0);
    const std::uint16_t* const sites = segment.sites() + first;
    for (std::size_t i = 0; i < count; ++i) room.sites[i] = sites[i];
    for (std::size_t i = 0; i < count; ++i)
        room.flags[i] = static_cast<std::uint8_t>(high[i] >> kHighBits);
    return columns(room, 0);
}

void HeldBlocks::used(Segment& segment, std::size_t count) const {
    if ((segment.left -= count) != 0) return;
    segment.wide.reset();
    memory_->give_back(segment.narrow);
}

void HeldBlocks::clear() {
    for (const auto& segment : segments_)
        if (segment->left != 0) memory_->give_back(segment->narrow);
    segments_.clear();
    size_ = 0;
}

}  // namespace revisit
