#include "engines/line_use.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "engines/sharing.h"
#include "revisit/units.h"

namespace revisit {
namespace {

constexpr std::uint64_t kMostWays = 64;
constexpr std::uint64_t kMostLines = std::uint64_t{1} << 26;
constexpr std::uint64_t kKnownSteps = 2;  // fetches before a stride can be compared
constexpr std::uint32_t kSitesWithoutHash = std::uint32_t{1} << 20;

}  // namespace

Result<LineUseTally> LineUseTally::create(const CacheSpec& spec) {
    if (spec.associativity() > kMostWays)
        return fail(fmt::format("line use: expected a cache of at most {} ways, found {}", kMostWays,
                                spec.associativity()));
    if (spec.blocks() > kMostLines)
        return fail(fmt::format("line use: a cache of {} has too many lines to simulate",
                                format_bytes(static_cast<double>(spec.bytes))));
    if (spec.line < 2) return fail("line use: expected lines of at least 2 bytes");
    return LineUseTally(spec);
}

LineUseTally::LineUseTally(const CacheSpec& spec)
    : spec_(spec),
      sets_(spec.blocks() / spec.associativity()),
      ways_(spec.associativity()),
      mask_(std::has_single_bit(sets_) ? sets_ - 1 : 0),
      entries_(sets_ * ways_) {}

void LineUseTally::add(const BlockBatch& batch) {
    for (std::size_t i = 0; i < batch.count(); ++i) {
        const std::uint64_t line = batch.blocks[i];
        const std::uint64_t parts = part_mask(batch.parts[i]);
        Entry* const set = entries_.data() + (mask_ != 0 ? line & mask_ : line % sets_) * ways_;
        if (set[0].line == line && set[0].parts != 0) {
            set[0].parts |= parts;
            continue;
        }
        // The new one goes in front and the others move back by one, up to the place where it was, an
        // empty one or the end.
        Entry moved{line, parts, batch.sites.empty() ? 0 : batch.sites[i]};
        bool is_there = false;
        for (std::uint64_t way = 0; way < ways_; ++way) {
            std::swap(moved, set[way]);
            is_there = moved.line == line && moved.parts != 0;
            if (is_there || moved.parts == 0) break;
        }
        if (is_there) {
            set[0].parts |= moved.parts;
            set[0].site = moved.site;
        } else {
            fetch(set[0]);
            leave(moved);
        }
    }
}

LineUseTally::Sum& LineUseTally::sum_of(std::uint32_t site) {
    if (site < kSitesWithoutHash && site >= sums_.size())
        sums_.resize(std::bit_ceil(std::size_t{site} + 64));
    return site < kSitesWithoutHash ? sums_[site] : more_sums_[site];
}

void LineUseTally::fetch(const Entry& entry) {
    Sum& sum = sum_of(entry.site);
    const std::uint64_t step = entry.line - sum.last;
    sum.regular += sum.fetched >= kKnownSteps && (step == sum.steps[0] || step == sum.steps[1]);
    sum.steps[1] = sum.steps[0];
    sum.steps[0] = step;
    sum.last = entry.line;
    sum.fetched++;
}

void LineUseTally::leave(const Entry& entry) {
    if (entry.parts == 0) return;
    Sum& sum = sum_of(entry.site);
    sum.fetches++;
    sum.parts += static_cast<unsigned>(std::popcount(entry.parts));
    sum.which |= entry.parts;
}

void LineUseTally::fill(Profile& profile) {
    for (Entry& entry : entries_) {
        leave(entry);
        entry = {};
    }
    const auto part_bytes = static_cast<double>(std::max<std::uint64_t>(1, (spec_.line + 63) / 64));
    auto use_of = [&](const Sum& sum) {
        return LineUse{static_cast<double>(sum.fetches), static_cast<double>(sum.parts) * part_bytes,
                       sum.which};
    };
    LineUseTotals totals{spec_.name, spec_.line, {}};
    auto add = [&](const Sum& sum) {
        totals.use.fetches += static_cast<double>(sum.fetches);
        totals.use.bytes += use_of(sum).bytes;
        totals.use.parts |= sum.which;
    };
    for (const Sum& sum : sums_) add(sum);
    for (const auto& [site, sum] : more_sums_) add(sum);
    profile.line_use = totals;
    for (Site& site : profile.sites) {
        const auto found = more_sums_.find(site.id);
        const Sum* sum = site.id < sums_.size()      ? &sums_[site.id]
                         : found != more_sums_.end() ? &found->second
                                                     : nullptr;
        if (!sum) continue;
        site.line_use = use_of(*sum);
        if (sum->fetched > kKnownSteps)
            site.regular =
                static_cast<double>(sum->regular) / static_cast<double>(sum->fetched - kKnownSteps);
    }
}

}  // namespace revisit
