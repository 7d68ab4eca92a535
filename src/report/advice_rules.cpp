#include "report/advice_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <tuple>

#include "report/pages.h"
#include "report/set_conflicts.h"
#include "report/sharing.h"
#include "report/words.h"
#include "revisit/units.h"

namespace revisit {
namespace {

constexpr double kTlbMissesWorth = 0.005;  // of all accesses: a page walk takes as long as a miss
constexpr double kIrregular = 0.5;         // share of misses on a constant stride, below which
constexpr double kMemoryLatency = 100e-9;  // seconds
constexpr double kHalfHelps = 0.25;        // of all misses, saved by data of half the size

// What a place in the user's code fetched and missed, all its instructions together.
struct Place {
    PathFrame at;
    const Site* worst = nullptr;
    double misses = 0, most = -1;
    LineUse use;
};

std::vector<Place> places_of_sites(const RuleInput& in,
                                   const std::function<bool(const Site&)>& wanted) {
    std::map<std::tuple<std::string, std::string, std::uint32_t, std::string>, Place> places;
    for (const Site& site : in.profile.sites) {
        if (!wanted(site)) continue;
        PathFrame at = own_place(in.profile, site, 0);
        if (!is_own_code(at)) continue;
        const double misses = in.table.misses(site.reuse);
        const std::string apart = at.frame.line == 0 ? fmt::format("{}", site.id) : site.data;
        Place& place = places[{at.frame.file, at.frame.function, at.frame.line, apart}];
        place.misses += misses;
        place.use.fetches += site.line_use.fetches;
        place.use.bytes += site.line_use.bytes;
        place.use.parts |= site.line_use.parts;
        if (misses <= place.most) continue;
        place.most = misses;
        place.worst = &site;
        place.at = std::move(at);
    }
    std::vector<Place> out;
    for (auto& [key, place] : places)
        if (in.matters(place.misses)) out.push_back(std::move(place));
    return out;
}

std::string data_of(const Site& site) {
    return site.data.empty() ? "its data" : site.data;
}

// A steady loop runs at what is measured: seconds at the line, for each access there.
double seconds_per_access(const Profile& profile, const Site& site) {
    double seconds = 0;
    for (const ProcessSummary& process : profile.processes) seconds += process.seconds;
    if (!site.time_share || seconds <= 0 || site.accesses <= 0) return 0;
    return *site.time_share * seconds / site.accesses;
}

// Members of the data that are used at a place, and those that others use, most accesses first.
std::string split_text(const Profile& profile, const PathFrame& at, const Site& worst) {
    std::map<std::string, double> here, elsewhere;
    for (const Site& site : profile.sites)
        if (!site.member.empty() && site.data == worst.data)
            (own_place(profile, site, 0).frame == at.frame ? here : elsewhere)[site.member] +=
                site.accesses;
    for (const auto& [name, accesses] : here) elsewhere.erase(name);
    auto names = [](const std::map<std::string, double>& members) {
        std::vector<std::pair<double, std::string>> order;
        for (const auto& [name, accesses] : members) order.emplace_back(-accesses, name);
        std::ranges::sort(order);
        constexpr std::size_t kNamed = 6;
        std::string text;
        for (std::size_t i = 0; i < std::min(kNamed, order.size()); ++i)
            text += (i == 0 ? "" : ", ") + order[i].second;
        return text;
    };
    if (here.empty())
        return "split the struct: the fields that are used here into an array of their own, the others "
               "into a second one";
    return fmt::format("split the struct: {} into an array of their own, {} into a second one",
                       names(here),
                       elsewhere.empty() ? "the others" : names(elsewhere) + " and the rest");
}

}  // namespace

std::string ranges_text(std::uint64_t mask) {
    std::string text;
    for (unsigned at = 0; at < 64; ++at) {
        if ((mask >> at & 1) == 0) continue;
        unsigned end = at;
        while (end < 64 && (mask >> end & 1) != 0) ++end;
        text += fmt::format("{}{}–{}", text.empty() ? "" : ", ", at, end - 1);
        at = end;
    }
    return text;
}

std::string line_use_text(const LineUse& use, const Profile& profile) {
    if (use.fetches <= 0 || !profile.line_use) return {};
    const std::string error =
        use.error > 0 ? fmt::format(" ± {:.{}f}", use.error, use.error < 1 ? 1 : 0) : "";
    return fmt::format("{:.2g}{} of {} bytes", use.bytes / use.fetches, error, profile.line_use->line);
}

void advise_padding(const RuleInput& in, std::vector<Advice>& out) {
    for (const SharedLine& line : shared_lines(in.profile)) {
        const std::string text = sharing_advice(line, in.profile);
        if (text.empty()) continue;
        Advice advice;
        advice.rule = "pad";
        advice.misses = advice.gain = line.false_sharing;
        advice.what = text;
        for (const std::size_t index : line.records) {
            const Sharing& one = in.profile.sharing[index];
            if (!one.false_sharing) continue;
            advice.use = one.writer.site;
            advice.reuse = one.victim.site;
            break;
        }
        advice.where = fmt::format("false sharing of line {:#x}{}", line.line,
                                   line.object.empty() ? "" : " in " + line.object);
        advice.help = {"alignas(64) on what each thread writes, or padding of a line between",
                       "let each thread accumulate in a local variable and write once at the end"};
        out.push_back(std::move(advice));
    }
}

void advise_huge_pages(const RuleInput& in, std::vector<Advice>& out) {
    const PageFindings pages = page_findings(in.profile, in.caches);
    if (pages.huge_pages.empty() || pages.small_misses < kTlbMissesWorth ||
        pages.huge_misses > pages.small_misses / 2)
        return;
    Advice advice;
    advice.rule = "huge pages";
    advice.misses = pages.small_misses * in.profile.accesses;
    if (!in.matters(advice.misses)) return;
    advice.what =
        fmt::format("{} of accesses miss the TLB and walk the page table", percent(pages.small_misses));
    advice.gain_says = fmt::format("TLB misses {} → {} of accesses with 2 MiB pages",
                                   percent(pages.small_misses), percent(pages.huge_misses));
    advice.help = {"madvise(…, MADV_HUGEPAGE) on the large allocations, aligned to 2 MiB",
                   "or for all of it: GLIBC_TUNABLES=glibc.malloc.hugetlb=1, with "
                   "/sys/kernel/mm/transparent_hugepage/enabled at madvise or always"};
    out.push_back(std::move(advice));
}

void advise_prefetching(const RuleInput& in, std::vector<Advice>& out) {
    auto irregular = [](const Site& site) {
        return site.regular && *site.regular < kIrregular && site.writes < site.accesses;
    };
    for (const Place& place : places_of_sites(in, irregular)) {
        const Site& site = *place.worst;
        if (site.reuse.invalidated > place.misses / 2) continue;
        const double each = seconds_per_access(in.profile, site);
        const double ahead = each > 0 ? std::clamp(std::ceil(kMemoryLatency / each), 1.0, 64.0) : 16.0;
        Advice advice;
        advice.rule = "prefetch";
        advice.misses = place.misses;
        advice.what =
            fmt::format("{} accesses {} at addresses without a stride ({} of its misses on one)",
                        place_text(place.at), data_of(site), percent_whole(*site.regular));
        if (!place.at.frame.function.empty())
            advice.where = fmt::format("in {}", place.at.frame.function);
        advice.gain_says = fmt::format("no fewer misses, but up to {} of the misses' latency overlaps",
                                       percent_whole(place.misses / in.misses));
        advice.help = {
            fmt::format(
                "__builtin_prefetch of the element {:.0f} iterations ahead{}, where its address "
                "is known that early",
                ahead,
                each > 0 ? fmt::format(" (100 ns of latency at {:.2g} ns per access)", 1e9 * each)
                         : ""),
            "where each address comes out of the element before: several independent chains at a time, "
            "or nodes in the order of traversal"};
        advice.use = advice.reuse = site.id;
        out.push_back(std::move(advice));
    }
}

void advise_splitting(const RuleInput& in, std::vector<Advice>& out) {
    if (!in.profile.line_use) return;
    const auto line = static_cast<double>(in.profile.line_use->line);
    auto fetches = [](const Site& site) { return site.line_use.fetches > 0; };
    for (const Place& place : places_of_sites(in, fetches)) {
        const double share = place.use.bytes / place.use.fetches / line;
        if (share > kLittleUsed) continue;
        const Site& site = *place.worst;
        // The same bytes of every line: fields of a struct. Others in turn: a walk across lines.
        const bool fields = std::popcount(place.use.parts) <= 32;
        Advice advice;
        advice.rule = fields ? "split" : "pack";
        advice.misses = place.misses;
        advice.gain = place.misses * (1 - share);
        advice.what = fmt::format("{} uses {} of each line it fetches from {}{}", place_text(place.at),
                                  line_use_text(place.use, in.profile), data_of(site),
                                  fields && in.profile.line_use->line == 64
                                      ? fmt::format(", always bytes {}", ranges_text(place.use.parts))
                                      : "");
        advice.where = fmt::format("counted in a cache of {}", in.profile.line_use->cache);
        if (fields)
            advice.help = {split_text(in.profile, place.at, site), "or a struct of arrays"};
        else
            advice.help = {"walk along memory, so that a line is used up before it leaves the cache",
                           "put what is used together side by side"};
        advice.use = advice.reuse = site.id;
        out.push_back(std::move(advice));
    }
}

void advise_against_conflicts(const RuleInput& in, std::vector<Advice>& out) {
    const CachePrediction rates = predict_cache(in.profile, in.table.cache());
    const std::string text = conflicts_text(in.profile, rates);
    if (text.empty() || rates.miss_rate < rates.model_miss_rate) return;
    const CacheSpec& cache = rates.cache;
    Advice advice;
    advice.rule = "pad rows";
    advice.misses = (rates.miss_rate - rates.model_miss_rate) * in.profile.accesses;
    advice.share = 1 - rates.model_miss_rate / rates.miss_rate;
    advice.what = fmt::format("{} has {}", cache.name, text);
    advice.gain_says = fmt::format("misses {} → {} of accesses, as in random sets",
                                   percent(rates.miss_rate), percent(rates.model_miss_rate));
    advice.help = {
        fmt::format("let rows or arrays that are walked together not lie a multiple of {} apart: add a "
                    "line ({} B) to each row",
                    format_bytes(static_cast<double>(cache.sets() * cache.line)), cache.line),
        "copy a tile into memory of its own before it is used often"};
    for (std::size_t i = 0; i < in.profile.caches.size(); ++i) {
        if (!in.profile.caches[i].spec.same_geometry(cache)) continue;
        const Site* worst = nullptr;
        for (const Site& site : in.profile.sites)
            if (i < site.simulated.size() && (!worst || site.simulated[i] > worst->simulated[i]))
                worst = &site;
        if (!worst) break;
        advice.where = "most misses at " + place_text(own_place(in.profile, *worst, 0));
        advice.use = advice.reuse = worst->id;
    }
    out.push_back(std::move(advice));
}

void advise_smaller_types(const RuleInput& in, std::vector<Advice>& out) {
    CacheSpec doubled = in.table.cache();
    doubled.bytes *= 2;
    HitTable larger(doubled);
    const Object* best = nullptr;
    double saved = 0;
    for (const Object& object : in.profile.objects) {
        if (object.kind == "stack" || object.kind == "other") continue;
        const double by_half = in.table.misses(object.reuse) - larger.misses(object.reuse);
        if (by_half <= saved) continue;
        saved = by_half;
        best = &object;
    }
    if (!best || saved < kHalfHelps * in.misses || !in.matters(saved)) return;
    Advice advice;
    advice.rule = "smaller types";
    advice.misses = advice.gain = saved;
    advice.what = fmt::format("{} {} would fit at half the size", best->kind, best->name);
    advice.help = {
        "float for double, 32-bit indices for pointers, bit fields, where the range allows it"};
    const Site* worst = nullptr;
    for (const Site& site : in.profile.sites)
        if (site.data == best->kind + " " + best->name &&
            (!worst || in.table.misses(site.reuse) > in.table.misses(worst->reuse)))
            worst = &site;
    if (worst) {
        advice.where = "most misses at " + place_text(own_place(in.profile, *worst, 0));
        advice.reuse = worst->id;
    }
    out.push_back(std::move(advice));
}

}  // namespace revisit
