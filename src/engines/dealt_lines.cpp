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

// A line of another set, or one that is not the first to come, is found by none.
void LineDealer::forget(const BlockBatch& batch) {
    const std::uint64_t mask = last_.size() - 1;
    for (std::size_t set = 0; set < last_.size(); ++set)
        last_[set] = {mask != 0 ? set ^ 1 : ~batch.blocks[0], 0};
}

// What is kept of a part goes to next[part] and on.
template <bool kAt, bool kBytes>
void LineDealer::put(const BlockBatch& batch, DealtLines& out, std::uint32_t* next) {
    const std::uint64_t mask = last_.size() - 1, last_part = plan_.parts - 1;
    const int shift = std::countr_zero(plan_.parts);
    const std::uint64_t* const blocks = batch.blocks.data();
    Last* const last = last_.data();
    std::uint64_t *const lines = out.lines_.data(), *const bytes = out.bytes_.data();
    std::uint32_t* const at = out.at_.data();
    for (std::size_t i = 0; i < batch.count(); ++i) {
        const std::uint64_t line = blocks[i];
        const std::uint64_t used = kBytes ? part_mask(batch.parts[i]) : 0;
        Last& before = last[line & mask];
        if (before.line == line) {
            if constexpr (kBytes) bytes[before.at] |= used;
            continue;
        }
        const std::uint32_t to = next[line & last_part]++;
        before = {line, to};
        lines[to] = line >> shift;
        if constexpr (kAt) at[to] = static_cast<std::uint32_t>(i);
        if constexpr (kBytes) bytes[to] = used;
    }
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
    forget(batch);
    const std::uint64_t mask = last_.size() - 1, last_part = plan_.parts - 1;
    std::uint32_t counts[LinePlan::kMostParts] = {}, next[LinePlan::kMostParts] = {};
    for (const std::uint64_t line : batch.blocks) {
        std::uint64_t& before = last_[line & mask].line;
        if (before == line) continue;
        before = line;
        ++counts[line & last_part];
    }
    std::uint32_t kept = 0;
    for (std::uint32_t part = 0; part < LinePlan::kMostParts; ++part) {
        next[part] = kept;
        out.ends_[part] = kept += counts[part];
    }
    auto make_room = [kept](auto& column) {
        if (column.size() < kept) column.resize(kept);
    };
    make_room(out.lines_);
    if (out.has_at_) make_room(out.at_);
    if (plan_.bytes) make_room(out.bytes_);
    forget(batch);
    if (plan_.bytes)
        put<true, true>(batch, out, next);
    else if (out.has_at_)
        put<true, false>(batch, out, next);
    else
        put<false, false>(batch, out, next);
}

}  // namespace revisit
