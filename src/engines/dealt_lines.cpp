#include "engines/dealt_lines.h"

#include <algorithm>
#include <bit>

#include "engines/sharing.h"

namespace revisit {
namespace {

constexpr std::uint64_t kMostSets = 256;  // they are forgotten with every batch

}  // namespace

DealtLines::Part DealtLines::part(std::size_t number) const {
    if (is_whole_) return {blocks_, {}, {}, parts_};
    const std::size_t from = number == 0 ? 0 : ends_[number - 1], count = ends_[number] - from;
    auto of = [&](const auto& column, bool has) {
        return std::span(column.data() + (has ? from : 0), has ? count : 0);
    };
    return {of(lines_, true), of(at_, has_at_), of(bytes_, has_bytes_), {}};
}

LineDealer::LineDealer(const LinePlan& plan) : plan_(plan) {
    last_.resize(std::min(plan.sets, kMostSets));
}

// Gives how many were kept.
template <bool kBytes>
std::size_t LineDealer::keep(const BlockBatch& batch) {
    const std::uint64_t mask = last_.size() - 1;
    // A line of another set, or one that is not the first to come, is found by none.
    for (std::size_t set = 0; set < last_.size(); ++set)
        last_[set] = {mask != 0 ? set ^ 1 : ~batch.blocks[0], 0};
    std::uint64_t* const lines = lines_.data();
    std::uint64_t* const bytes = bytes_.data();
    std::uint32_t* const at = at_.data();
    Last* const last = last_.data();
    std::uint32_t kept = 0;
    for (std::size_t i = 0; i < batch.count(); ++i) {
        const std::uint64_t line = batch.blocks[i];
        const std::uint64_t used = kBytes ? part_mask(batch.parts[i]) : 0;
        Last& before = last[line & mask];
        if (before.line == line) {
            if constexpr (kBytes) bytes[before.number] |= used;
            continue;
        }
        before = {line, kept};
        lines[kept] = line;
        if constexpr (kBytes) bytes[kept] = used;
        at[kept++] = static_cast<std::uint32_t>(i);
    }
    return kept;
}

void LineDealer::deal(const BlockBatch& batch, DealtLines& out) {
    out.blocks_ = batch.blocks;
    out.sites_ = batch.sites;
    out.parts_ = batch.parts;
    out.is_whole_ = plan_.parts == 1;
    if (out.is_whole_) return;
    out.has_bytes_ = plan_.bytes;
    out.has_at_ = plan_.bytes || !batch.sites.empty();
    std::ranges::fill(out.ends_, 0u);
    if (batch.count() == 0) return;
    auto make_room = [](auto& column, std::size_t count) {
        if (column.size() < count) column.resize(count);
    };
    make_room(lines_, batch.count());
    make_room(at_, batch.count());
    if (plan_.bytes) make_room(bytes_, batch.count());
    const std::size_t kept = plan_.bytes ? keep<true>(batch) : keep<false>(batch);
    make_room(out.lines_, kept);
    if (out.has_at_) make_room(out.at_, kept);
    if (plan_.bytes) make_room(out.bytes_, kept);

    const std::uint64_t last = plan_.parts - 1;
    const int shift = std::countr_zero(plan_.parts);
    std::uint32_t counts[LinePlan::kMostParts] = {}, next[LinePlan::kMostParts] = {};
    for (std::size_t i = 0; i < kept; ++i) ++counts[lines_[i] & last];
    for (std::uint32_t part = 0, end = 0; part < LinePlan::kMostParts; ++part) {
        next[part] = end;
        out.ends_[part] = end += counts[part];
    }
    auto put = [&]<bool kAt, bool kBytes>() {
        const std::uint64_t *const lines = lines_.data(), *const bytes = bytes_.data();
        const std::uint32_t* const at = at_.data();
        std::uint64_t *const to_lines = out.lines_.data(), *const to_bytes = out.bytes_.data();
        std::uint32_t* const to_at = out.at_.data();
        for (std::size_t i = 0; i < kept; ++i) {
            const std::uint64_t line = lines[i];
            const std::uint32_t to = next[line & last]++;
            to_lines[to] = line >> shift;
            if constexpr (kAt) to_at[to] = at[i];
            if constexpr (kBytes) to_bytes[to] = bytes[i];
        }
    };
    if (plan_.bytes)
        put.template operator()<true, true>();
    else if (out.has_at_)
        put.template operator()<true, false>();
    else
        put.template operator()<false, false>();
}

}  // namespace revisit
