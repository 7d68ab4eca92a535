#include "report/pages.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/words.h"
#include "revisit/units.h"

namespace revisit {
namespace {

constexpr std::uint64_t kSmallestPage = 4096, kHugePage = std::uint64_t{2} << 20;

std::vector<CacheSpec> tlbs_for(const std::vector<PageSize>& sizes,
                                const std::vector<CacheSpec>& caches, bool& typical) {
    auto is_for = [&](const CacheSpec& cache) {
        return std::ranges::any_of(sizes,
                                   [&](const PageSize& size) { return size.bytes == cache.line; });
    };
    auto matching = [&](const std::vector<CacheSpec>& from) {
        std::vector<CacheSpec> out;
        std::ranges::copy_if(from, std::back_inserter(out), is_for);
        return out;
    };
    std::vector<CacheSpec> out = matching(caches);
    if (out.empty()) out = matching(host_tlbs());
    typical = out.empty();
    return typical ? matching(typical_tlbs()) : out;
}

// A write elsewhere takes a line from a cache and nothing from a TLB: those reuses are left out.
CachePrediction predict_tlb(const GranularityProfile& pages, const CacheSpec& tlb) {
    Profile one;
    one.granularity = pages.granularity;
    one.reuse = pages.reuse;
    one.reuse.invalidated = one.reuse.invalidated_error = 0;
    return predict_cache(one, tlb);
}

}  // namespace

PageFindings page_findings(const Profile& profile, const std::vector<CacheSpec>& caches) {
    PageFindings out;
    for (const GranularityProfile& one : profile.granularities)
        if (one.granularity >= kSmallestPage && one.reuse.total() > 0)
            out.sizes.push_back({one.granularity, one.distinct, {}});
    std::ranges::sort(out.sizes, std::less(), &PageSize::bytes);
    if (out.sizes.empty()) return out;
    const std::vector<CacheSpec> tlbs = tlbs_for(out.sizes, caches, out.typical);
    for (PageSize& size : out.sizes) {
        auto pages =
            std::ranges::find(profile.granularities, size.bytes, &GranularityProfile::granularity);
        for (const CacheSpec& tlb : tlbs)
            if (tlb.line == size.bytes) size.tlbs.push_back(predict_tlb(*pages, tlb));
        std::ranges::stable_sort(size.tlbs, std::less(),
                                 [](const CachePrediction& one) { return one.cache.blocks(); });
    }
    const PageSize& small = out.sizes.front();
    auto huge = std::ranges::find(out.sizes, kHugePage, &PageSize::bytes);
    if (huge == out.sizes.end() || huge == out.sizes.begin()) return out;
    if (small.tlbs.empty() || huge->tlbs.empty()) return out;
    out.small_misses = small.tlbs.back().miss_rate;
    out.huge_misses = huge->tlbs.back().miss_rate;
    out.huge_pages = fmt::format(
        "Huge pages: {} of accesses miss the TLB of {} entries with {} pages ({} touched), {} one of "
        "{} "
        "entries with 2 MiB pages ({} touched).",
        percent(out.small_misses), small.tlbs.back().cache.blocks(),
        format_bytes(static_cast<double>(small.bytes)), format_count(small.touched),
        percent(out.huge_misses), huge->tlbs.back().cache.blocks(), format_count(huge->touched));
    return out;
}

}  // namespace revisit
