#include "engines/line_use.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "core/try.h"
#include "engines/sharing.h"
#include "revisit/units.h"

namespace revisit {
namespace {

constexpr std::uint64_t kMostWays = 64;
constexpr std::uint64_t kMostLines = std::uint64_t{1} << 26;
constexpr std::uint64_t kKnownSteps = 2;  // fetches before a stride can be compared

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

LineUseParts::LineUseParts(const CacheSpec& spec, unsigned parts)
    : spec_(spec),
      sets_(spec.blocks() / spec.associativity() / parts),
      ways_(spec.associativity()),
      mask_(std::has_single_bit(sets_) ? sets_ - 1 : 0),
      parts_(parts),
      order_(std::make_unique<Order>()) {
    for (Part& part : parts_) part.entries.resize(sets_ * ways_);
}

void LineUseParts::Part::leave(const Entry& entry) {
    if (entry.bytes == 0) return;
    Use& use = uses[entry.site];
    use.fetches++;
    use.bytes += static_cast<unsigned>(std::popcount(entry.bytes));
    use.which |= entry.bytes;
}

template <bool kAlone>
void LineUseParts::look_up(Part& part, const DealtLines::Part& ours,
                           std::span<const std::uint32_t> sites) {
    for (std::size_t i = 0; i < ours.lines.size(); ++i) {
        const std::uint64_t line = ours.lines[i];
        const std::uint64_t bytes = kAlone ? part_mask(ours.parts[i]) : ours.bytes[i];
        Entry* const set = part.entries.data() + (mask_ != 0 ? line & mask_ : line % sets_) * ways_;
        if (set[0].line == line && set[0].bytes != 0) {
            set[0].bytes |= bytes;
            continue;
        }
        // The new one goes in front and the others move back by one, up to the place where it was, an
        // empty one or the end.
        const std::size_t at = kAlone ? i : ours.at[i];
        Entry moved{line, bytes, sites.empty() ? 0 : sites[at]};
        bool is_there = false;
        for (std::uint64_t way = 0; way < ways_; ++way) {
            std::swap(moved, set[way]);
            is_there = moved.line == line && moved.bytes != 0;
            if (is_there || moved.bytes == 0) break;
        }
        if (is_there) {
            set[0].bytes |= moved.bytes;
            set[0].site = moved.site;
            continue;
        }
        if constexpr (kAlone)
            count_stride(line, set[0].site);
        else
            part.fetched[at / 64] |= std::uint64_t{1} << at % 64;
        part.leave(moved);
    }
}

void LineUseParts::add(std::size_t number, const DealtLines& batch) {
    Part& part = parts_[number];
    if (parts_.size() == 1) return look_up<true>(part, batch.part(0), batch.sites());
    part.fetched.assign((batch.blocks().size() + 63) / 64, 0);
    look_up<false>(part, batch.part(number), batch.sites());
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
