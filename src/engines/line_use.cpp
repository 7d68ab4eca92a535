#include "engines/line_use.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "core/try.h"
#include "engines/cpu.h"
#include "engines/sharing.h"
#include "engines/simd.h"
#include "revisit/units.h"

namespace revisit {
namespace {

constexpr std::uint64_t kMostWays = 64;
constexpr std::uint64_t kMostLines = std::uint64_t{1} << 26;
constexpr std::uint64_t kKnownSteps = 2;  // fetches before a stride can be compared

REVISIT_INLINE std::uint32_t short_of(std::uint64_t line) {
    return static_cast<std::uint32_t>(line ^ line >> 32);
}

}  // namespace

Result<void> LineUseParts::check(const CacheSpec& spec) {
    if (spec.associativity() > kMostWays)
        return fail(fmt::format("line use: expected a cache of at most {} ways, found {}", kMostWays,
                                spec.associativity()));
    if (spec.blocks() > kMostLines)
        return fail(fmt::format("line use: a cache of {} has too many lines to simulate",
                                format_bytes(static_cast<double>(spec.bytes))));
    if (spec.line < 2) return fail("line use: expected lines of at least 2 bytes");
    return {};
}

LineUseParts::LineUseParts(const CacheSpec& spec, unsigned parts, std::uint32_t last_time)
    : spec_(spec),
      sets_(spec.blocks() / spec.associativity() / parts),
      ways_(spec.associativity()),
      mask_(std::has_single_bit(sets_) ? sets_ - 1 : 0),
      row_((ways_ + kLanes - 1) / kLanes * kLanes),
      last_time_(last_time),
      parts_(parts),
      order_(std::make_unique<Order>()) {
    for (Part& part : parts_) {
        part.entries.resize(sets_ * row_);
        part.tags.resize(sets_ * row_);
        part.times.resize(sets_ * row_, kNever);
        part.last.resize(sets_);
        for (std::size_t set = 0; set < sets_; ++set)
            std::fill_n(&part.times[set * row_], ways_, kFree);
    }
}

REVISIT_INLINE void LineUseParts::Part::leave(const Entry& entry) {
    if (entry.bytes == 0) return;
    Use& use = uses[entry.site];
    use.fetches++;
    use.bytes += static_cast<unsigned>(std::popcount(entry.bytes));
    use.which |= entry.bytes;
}

// As it is, and for machines with AVX2.
template <bool kAlone>
void LineUseParts::look_up(Part& part, const DealtLines::Part& ours,
                           std::span<const std::uint32_t> sites) {
    look_up_in<kAlone>(part, ours, sites);
}
template <bool kAlone>
REVISIT_AVX2 void LineUseParts::look_up_avx2(Part& part, const DealtLines::Part& ours,
                                             std::span<const std::uint32_t> sites) {
    look_up_in<kAlone>(part, ours, sites);
}

template <bool kAlone>
REVISIT_INLINE void LineUseParts::look_up_in(Part& part, const DealtLines::Part& ours,
                                             std::span<const std::uint32_t> sites) {
    for (std::size_t i = 0; i < ours.lines.size(); ++i) {
        const std::uint64_t line = ours.lines[i];
        const std::uint64_t bytes = kAlone ? part_mask(ours.parts[i]) : ours.bytes[i];
        const std::uint64_t set = mask_ != 0 ? line & mask_ : line % sets_;
        Entry* const entries = part.entries.data() + set * row_;
        Entry& last = entries[part.last[set]];
        if (last.line == line && last.bytes != 0) {
            last.bytes |= bytes;
            continue;
        }
        if (part.now >= last_time_) [[unlikely]]
            renumber(part);
        std::uint32_t* const tags = part.tags.data() + set * row_;
        std::uint32_t* const times = part.times.data() + set * row_;
        std::uint64_t equal = 0;
        for (std::size_t at = 0; at < row_; at += kLanes)
            equal |= std::uint64_t{simd::equal_bits(tags + at, short_of(line))} << at;
        std::size_t way = 0;
        for (; equal != 0; equal &= equal - 1) {
            way = static_cast<std::size_t>(std::countr_zero(equal));
            if (entries[way].line == line && entries[way].bytes != 0) break;
        }
        if (equal == 0) way = simd::least_at(times, row_);
        times[way] = ++part.now;
        part.last[set] = static_cast<std::uint8_t>(way);
        if (equal != 0) {
            entries[way].bytes |= bytes;
            continue;
        }
        const std::size_t at = kAlone ? i : ours.at[i];
        const std::uint32_t site = sites.empty() ? 0 : sites[at];
        if constexpr (kAlone)
            count_stride(line, site);
        else
            part.fetched[at / 64] |= std::uint64_t{1} << at % 64;
        part.leave(entries[way]);
        entries[way] = {line, bytes, site};
        tags[way] = short_of(line);
    }
}

// Ranks within each set take the place of times.
void LineUseParts::renumber(Part& part) const {
    std::vector<std::uint32_t> order;
    for (std::size_t first = 0; first < part.times.size(); first += row_) {
        std::uint32_t* const times = &part.times[first];
        order.assign(times, times + ways_);
        std::ranges::sort(order);
        for (std::size_t way = 0; way < ways_; ++way)
            if (times[way] != kFree)
                times[way] = 1 + static_cast<std::uint32_t>(
                                     std::ranges::lower_bound(order, times[way]) - order.begin());
    }
    part.now = static_cast<std::uint32_t>(ways_);
}

void LineUseParts::add(std::size_t number, const DealtLines& batch) {
    Part& part = parts_[number];
    const bool avx2 = kMayHaveAvx2 && has_avx2();
    if (parts_.size() == 1)
        return avx2 ? look_up_avx2<true>(part, batch.part(0), batch.sites())
                    : look_up<true>(part, batch.part(0), batch.sites());
    part.fetched.assign((batch.blocks().size() + 63) / 64, 0);
    avx2 ? look_up_avx2<false>(part, batch.part(number), batch.sites())
         : look_up<false>(part, batch.part(number), batch.sites());
    hand_on(part, batch);
}

void LineUseParts::hand_on(Part& part, const DealtLines& batch) {
    Order& order = *order_;
    std::lock_guard lock(order.guard);
    const std::uint64_t at = part.batches++ - order.first;
    if (at == order.seen.size()) {
        Seen& seen = order.seen.emplace_back(Seen{parts_.size(), {}});
        if (!order.spare.empty()) {
            seen.fetched = std::move(order.spare.back());
            order.spare.pop_back();
        }
        seen.fetched.assign(part.fetched.size(), 0);
    }
    Seen& seen = order.seen[at];
    for (std::size_t i = 0; i < part.fetched.size(); ++i) seen.fetched[i] |= part.fetched[i];
    if (--seen.left != 0) return;
    // Each part goes in order, so this is the first of them, and the batch is still there.
    count_strides(seen.fetched, batch);
    order.spare.push_back(std::move(seen.fetched));
    order.seen.pop_front();
    order.first++;
}

void LineUseParts::count_strides(const std::vector<std::uint64_t>& fetched, const DealtLines& batch) {
    for (std::size_t word = 0; word < fetched.size(); ++word)
        for (std::uint64_t left = fetched[word]; left != 0; left &= left - 1) {
            const std::size_t at = word * 64 + static_cast<unsigned>(std::countr_zero(left));
            count_stride(batch.blocks()[at], batch.sites().empty() ? 0 : batch.sites()[at]);
        }
}

void LineUseParts::count_stride(std::uint64_t line, std::uint32_t site) {
    Strides& of = order_->strides[site];
    const std::uint64_t step = line - of.last;
    of.regular += of.fetched >= kKnownSteps && (step == of.steps[0] || step == of.steps[1]);
    of.steps[1] = of.steps[0];
    of.steps[0] = step;
    of.last = line;
    of.fetched++;
}

void LineUseParts::fill(Profile& profile) {
    const auto part_bytes = static_cast<double>(std::max<std::uint64_t>(1, (spec_.line + 63) / 64));
    SumsOfSites<Use> uses;
    for (Part& part : parts_) {
        for (Entry& entry : part.entries) {
            part.leave(entry);
            entry = {};
        }
        part.uses.each([&](std::uint32_t site, const Use& use) {
            Use& sum = uses[site];
            sum.fetches += use.fetches;
            sum.bytes += use.bytes;
            sum.which |= use.which;
        });
    }
    LineUseTotals totals{spec_.name, spec_.line, {}};
    auto use_of = [&](const Use& use) {
        return LineUse{static_cast<double>(use.fetches), static_cast<double>(use.bytes) * part_bytes,
                       use.which};
    };
    uses.each([&](std::uint32_t, const Use& use) {
        totals.use.fetches += static_cast<double>(use.fetches);
        totals.use.bytes += use_of(use).bytes;
        totals.use.parts |= use.which;
    });
    profile.line_use = totals;
    for (Site& site : profile.sites) {
        if (const Use* use = uses.find(site.id)) site.line_use = use_of(*use);
        const Strides* strides = order_->strides.find(site.id);
        if (strides != nullptr && strides->fetched > kKnownSteps)
            site.regular = static_cast<double>(strides->regular) /
                           static_cast<double>(strides->fetched - kKnownSteps);
    }
}

Result<LineUseTally> LineUseTally::create(const CacheSpec& spec) {
    TRY(LineUseParts::check(spec));
    return LineUseTally(spec);
}

LineUseTally::LineUseTally(const CacheSpec& spec)
    : use_(spec, 1),
      dealer_({1, std::uint64_t{1} << std::countr_zero(spec.blocks() / spec.associativity()), true}) {}

void LineUseTally::add(const BlockBatch& batch) {
    dealer_.deal(batch, dealt_);
    use_.add(0, dealt_);
}

}  // namespace revisit
