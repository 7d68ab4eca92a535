#include "engines/cache_bank.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <utility>

namespace revisit {
namespace {

constexpr std::size_t kMostBankWays = 64;
constexpr std::uint32_t kMostBankSites = std::uint32_t{1} << 20;
constexpr double kCrowded = 2;  // times the misses of the average set
constexpr std::size_t kMostRanges = 16;
constexpr std::uint64_t kMostBankLines = std::uint64_t{1} << 24;         // a cache of 1 GiB
constexpr unsigned kFewestParts = 4, kMostParts = LinePlan::kMostParts;  // powers of two
constexpr std::uint64_t kMostRecent = 4096;                              // lines
constexpr std::size_t kAtOnce = 4096;  // accesses that pass one level before the next
static_assert(kAtOnce <= RecentLines::kMostAtOnce);

std::uint64_t lowest_bit(std::uint64_t number) {
    return std::uint64_t{1} << std::countr_zero(number);
}

bool can_simulate(const CacheSpec& spec, std::uint64_t line) {
    return spec.line == line && spec.associativity() <= kMostBankWays && spec.sets() >= 2 &&
           spec.blocks() <= kMostBankLines;
}

}  // namespace

CacheBank::CacheBank(const std::vector<CacheSpec>& caches, std::uint64_t line) {
    for (const CacheSpec& spec : caches) {
        if (!can_simulate(spec, line)) continue;
        Cache cache;
        cache.spec = spec;
        cache.sets = spec.sets();
        cache.ways = static_cast<std::size_t>(spec.associativity());
        cache.set_misses.resize(static_cast<std::size_t>(cache.sets));
        caches_.push_back(std::move(cache));
    }
    std::ranges::stable_sort(caches_, {},
                             [](const Cache& one) { return std::pair(one.sets, one.ways); });
    std::vector<std::vector<std::size_t>> chains;
    for (std::size_t i = 0; i < caches_.size(); ++i) {
        auto chain = std::ranges::find_if(chains, [&](const std::vector<std::size_t>& one) {
            return caches_[i].sets % caches_[one.back()].sets == 0;
        });
        if (chain == chains.end()) chain = chains.emplace(chain);
        chain->push_back(i);
    }
    for (const std::vector<std::size_t>& chain : chains) add_chain(chain);
}

// The caches of a chain share the ways that the one with fewest of them and of those after it has. The
// first level is small, whatever the caches are.
void CacheBank::add_chain(std::span<const std::size_t> caches) {
    std::vector<std::size_t> shared(caches.size());
    for (std::size_t i = caches.size(), least = kMostBankWays; i-- > 0;)
        shared[i] = least = std::min(least, caches_[caches[i]].ways);

    const Cache& first = caches_[caches[0]];
    std::uint64_t sets = first.sets;
    while (sets * shared[0] > kMostRecent && sets % 2 == 0) sets /= 2;
    Chain chain{{sets, shared[0]}, {}, {}};
    for (std::size_t i = 0; i < caches.size(); ++i) {
        const Cache& cache = caches_[caches[i]];
        if (i == 0 && sets == cache.sets && shared[0] == cache.ways)
            chain.first_cache = caches[i];
        else
            chain.levels.push_back({{cache.sets, cache.ways, shared[i]}, caches[i]});
    }
    chains_.push_back(std::move(chain));
}

template <class Lines>
void CacheBank::count(const Lines& of, std::size_t index, const MissedLines& missed,
                      const Sites& sites) {
    Cache& cache = caches_[index];
    for (const MissedLines::Miss& miss : missed) {
        if (miss.in_last_ways) continue;
        ++cache.misses;
        ++cache.set_misses[static_cast<std::size_t>(of.set_of(miss.line))];
        if (sites.sites.empty()) continue;
        const std::uint32_t site = sites.sites[sites.at.empty() ? miss.access : sites.at[miss.access]];
        if (site >= kMostBankSites) continue;
        if (site >= cache.site_misses.size())
            cache.site_misses.resize(std::bit_ceil(std::size_t{site} + 64));
        ++cache.site_misses[site];
    }
}

void CacheBank::access_some(std::span<const std::uint64_t> lines, const Sites& sites) {
    for (Chain& chain : chains_) {
        chain.lines.access(lines, missed_);
        if (chain.first_cache) count(chain.lines, *chain.first_cache, missed_, sites);
        for (Level& level : chain.levels) {
            level.lines.access(missed_, missed_next_);
            std::swap(missed_, missed_next_);
            count(level.lines, level.cache, missed_, sites);
        }
    }
}

void CacheBank::access(std::span<const std::uint64_t> lines, std::span<const std::uint32_t> sites,
                       std::span<const std::uint32_t> at_site) {
    accesses_ += lines.size();
    for (std::size_t at = 0; at < lines.size(); at += kAtOnce) {
        const std::size_t many = std::min(kAtOnce, lines.size() - at);
        auto of = [&](auto column) { return column.empty() ? column : column.subspan(at, many); };
        access_some(lines.subspan(at, many), {at_site.empty() ? of(sites) : sites, of(at_site)});
    }
}

SimulatedCache CacheBank::result(const Cache& cache, std::uint64_t accesses) {
    SimulatedCache out{cache.spec, static_cast<double>(accesses), static_cast<double>(cache.misses)};
    const double average = out.misses / static_cast<double>(cache.sets);
    for (std::uint64_t set = 0; set < cache.sets; ++set) {
        const auto misses = static_cast<double>(cache.set_misses[static_cast<std::size_t>(set)]);
        if (misses <= kCrowded * average) continue;
        out.crowded_misses += misses;
        if (!out.crowded.empty() && out.crowded.back().second + 1 == set)
            out.crowded.back().second = set;
        else
            out.crowded.emplace_back(set, set);
    }
    // Sets all over the cache have no pattern to name.
    if (out.crowded.size() > kMostRanges) {
        out.crowded.clear();
        out.crowded_misses = 0;
    }
    return out;
}

std::vector<const CacheBank::Cache*> CacheBank::by_size() const {
    std::vector<const Cache*> out;
    for (const Cache& cache : caches_) out.push_back(&cache);
    std::ranges::stable_sort(out, {}, [](const Cache* one) { return one->spec.bytes; });
    return out;
}

std::vector<SimulatedCache> CacheBank::results() const {
    std::vector<SimulatedCache> out;
    for (const Cache* cache : by_size()) out.push_back(result(*cache, accesses_));
    return out;
}

std::vector<double> CacheBank::misses_of(std::uint32_t site) const {
    std::vector<double> out;
    for (const Cache* cache : by_size())
        out.push_back(site < cache->site_misses.size() ? static_cast<double>(cache->site_misses[site])
                                                       : 0);
    return out;
}

CacheBank CacheBank::joined(std::vector<CacheBank> parts, const std::vector<CacheSpec>& caches,
                            std::uint64_t line) {
    if (parts.size() == 1) return std::move(parts[0]);
    for (CacheBank& part : parts) part.chains_.clear();
    CacheBank whole(caches, line);
    whole.chains_.clear();
    for (std::size_t p = 0; p < parts.size(); ++p) {
        whole.accesses_ += parts[p].accesses_;
        for (std::size_t i = 0; i < whole.caches_.size(); ++i) {
            Cache& to = whole.caches_[i];
            const Cache& from = parts[p].caches_[i];
            to.misses += from.misses;
            for (std::size_t set = 0; set < from.set_misses.size(); ++set)
                to.set_misses[set * parts.size() + p] = from.set_misses[set];
            to.site_misses.resize(std::max(to.site_misses.size(), from.site_misses.size()));
            for (std::size_t site = 0; site < from.site_misses.size(); ++site)
                to.site_misses[site] += from.site_misses[site];
        }
    }
    return whole;
}

CacheParts::CacheParts(const std::vector<CacheSpec>& caches, std::uint64_t line, unsigned threads,
                       const std::optional<CacheSpec>& line_use)
    : caches_(caches), line_(line) {
    std::vector<CacheSpec> simulated;
    std::ranges::copy_if(caches, std::back_inserter(simulated),
                         [&](const CacheSpec& spec) { return can_simulate(spec, line); });
    std::uint64_t sets = std::uint64_t{1} << 63;
    for (const CacheSpec& spec : simulated) sets = std::min(sets, lowest_bit(spec.sets()));
    if (line_use) sets = std::min(sets, lowest_bit(line_use->blocks() / line_use->associativity()));
    plan_ = {1, sets, line_use.has_value()};
    for (unsigned many = kMostParts; many >= kFewestParts && plan_.parts == 1; many /= 2)
        if (threads >= many && sets >= 2 * many) plan_.parts = many;
    for (CacheSpec& spec : simulated) spec.bytes /= plan_.parts;
    for (unsigned part = 0; part < (simulated.empty() ? 1 : plan_.parts); ++part)
        parts_.emplace_back(simulated, line);
}

void CacheParts::access(std::size_t part, const DealtLines& batch) {
    if (empty()) return;
    const DealtLines::Part ours = batch.part(part);
    parts_[part].access(ours.lines, batch.sites(), ours.at);
    // Those that were dropped are of any part.
    if (part == 0) parts_[0].add_hits(batch.blocks().size() - batch.kept());
}

void CacheParts::fill(Profile& profile) {
    const CacheBank bank = CacheBank::joined(std::move(parts_), caches_, line_);
    profile.caches = bank.results();
    for (Site& site : profile.sites) site.simulated = bank.misses_of(site.id);
}

}  // namespace revisit
