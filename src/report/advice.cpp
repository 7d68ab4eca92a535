#include "report/advice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <unordered_map>

#include "models/hit_table.h"
#include "report/advice_rules.h"
#include "report/knees.h"
#include "report/paths.h"
#include "report/words.h"
#include "revisit/units.h"

namespace revisit {
namespace {

constexpr double kWorth = 0.01;          // of all misses
constexpr double kFewMisses = 0.005;     // of all accesses: nothing to gain
constexpr double kNoSpatialReuse = 0.5;  // miss rate of a walk across lines
constexpr double kAlmostFits = 4;        // times the cache
constexpr double kNoStride = 0.1;        // share of misses on a constant stride, at most

// A pair's two ends as one changes them: the user's place of each, and which of the two are one.
struct Ends {
    PathFrame use, reuse;
    bool same_function = false, same_line = false, same_loop = false;
};

Ends ends_of(const Profile& profile, const Pair& pair, const Site& use, const Site& reuse) {
    Ends out{own_place(profile, use, pair.use_context), own_place(profile, reuse, pair.reuse_context)};
    out.same_function = !out.use.frame.function.empty() &&
                        out.use.frame.function == out.reuse.frame.function &&
                        out.use.frame.file == out.reuse.frame.file;
    out.same_line =
        use.id == reuse.id || (out.same_function && out.use.frame.line == out.reuse.frame.line);
    // One function inlined at one place is one step of the loop there.
    const bool is_one_call = !use.inlined.empty() && use.inlined == reuse.inlined;
    const bool is_one_loop =
        use.loop.line != 0 && use.loop.line == reuse.loop.line && use.loop.file == reuse.loop.file;
    out.same_loop = out.same_line || (out.same_function && (is_one_call || is_one_loop));
    return out;
}

std::string loop_of(const Site& site) {
    return site.loop.line == 0
               ? ""
               : fmt::format(", loop at {}:{}", last_part(site.loop.file), site.loop.line);
}

std::string piece_size(const CacheSpec& cache, std::uint64_t granularity) {
    const double piece = 2.0 / 3 * static_cast<double>(cache.bytes);
    if (granularity == 1) return fmt::format("{} blocks", format_count(piece));
    const double edge = 8 * std::floor(std::sqrt(piece / (3 * 8)) / 8);
    std::string text = format_bytes(std::floor(piece / 1024) * 1024);
    if (edge >= 8) text += fmt::format(" (three tiles of {:.0f} × {:.0f} 8-byte elements)", edge, edge);
    return text;
}

struct Group {
    double misses = 0, worst = -1;
    const Pair* pair = nullptr;
};

// Wide vectors, elements of a line each: every access may miss, and the walk be along memory.
bool uses_its_lines(const Profile& profile, const Site& site) {
    if (!profile.line_use || site.line_use.fetches <= 0) return false;
    return site.line_use.bytes / site.line_use.fetches >
           kLittleUsed * static_cast<double>(profile.line_use->line);
}

Advice advice_on(const Profile& profile, const Group& group, const Site& use, const Site& reuse,
                 HitTable& table) {
    const Pair& pair = *group.pair;
    const CacheSpec& cache = table.cache();
    const Ends ends = ends_of(profile, pair, use, reuse);
    Advice advice;
    advice.misses = advice.gain = group.misses;
    advice.use = use.id;
    advice.reuse = reuse.id;
    const double blocks = std::round(table.missed(pair.distances).percentile(0.5));
    const double times =
        blocks * static_cast<double>(profile.granularity) / static_cast<double>(cache.bytes);
    const std::string data = reuse.data.empty() ? "its data" : reuse.data;
    std::string after = fmt::format("{} later", span_of(blocks, profile.granularity));
    if (profile.granularity > 1 && times > 1) after += fmt::format(", {:.3g} times the cache", times);
    std::string here = place_text(ends.reuse);
    if (ends.reuse.frame != reuse.frame && !reuse.frame.function.empty())
        here += fmt::format(" (in {})", reuse.frame.function);

    if (ends.same_loop && reuse.regular && *reuse.regular <= kNoStride) {
        const std::string part = profile.granularity == 1
                                     ? piece_size(cache, 1)
                                     : format_bytes(2.0 / 3 * static_cast<double>(cache.bytes));
        advice.rule = "partition";
        advice.what = fmt::format("{} reuses {} after eviction, at addresses without a stride: {}",
                                  here, data, after);
        advice.help = {
            fmt::format("partition or sort what looks it up, so that accesses to one part of it "
                        "(at most {}) come together",
                        part),
            "or number or place its elements in the order in which they are used"};
    } else if (ends.same_line) {
        const double rate = table.misses(reuse.reuse) / std::max(1.0, reuse.reuse.total());
        const std::string tile =
            fmt::format("tile the loops: process a tile of at most {} before the next",
                        piece_size(cache, profile.granularity));
        const std::string interchange =
            "interchange the loops or transpose the data, so that the innermost loop walks along "
            "memory";
        advice.rule =
            rate > kNoSpatialReuse && !uses_its_lines(profile, reuse) ? "interchange" : "tile";
        advice.what = fmt::format("{} reuses {} after eviction: {}", here, data, after);
        advice.help = {tile, interchange};
        if (advice.rule == "interchange") std::swap(advice.help[0], advice.help[1]);
    } else if (ends.same_function) {
        advice.rule = "fuse";
        advice.what = fmt::format("{} reuses {}, last used at line {}, after eviction: {}", here, data,
                                  ends.use.frame.line, after);
        advice.help = {"fuse the two loops, so that the second use follows the first before eviction",
                       fmt::format("or run both on one tile of at most {} at a time",
                                   piece_size(cache, profile.granularity))};
    } else {
        advice.rule = "reorder";
        advice.what = fmt::format("{} reuses {}, last used by {}, after eviction: {}", here, data,
                                  place_text(ends.use), after);
        advice.help = {
            fmt::format(
                "process tile by tile (at most {}): let the second step follow the first for each tile",
                piece_size(cache, profile.granularity)),
            "if the data is only passed on, compute it where it is used"};
    }
    if (ends.same_function || ends.same_line) {
        if (!ends.reuse.frame.function.empty())
            advice.where = fmt::format("in {}{}", ends.reuse.frame.function, loop_of(reuse));
    } else if (auto meet = meeting_of(profile, pair, &use, &reuse).at) {
        advice.where = "the two meet in " + frame_place(*meet);
    }
    return advice;
}

// Pairs of the same two places say the same; the worst of them speaks for all. Places are numbered per
// line of the user's code; only a site in a library needs its call path for that.
std::vector<Group> groups_of(const Profile& profile, const SiteIndex& sites, HitTable& table) {
    std::unordered_map<std::string, std::uint32_t> places;
    struct Known {
        std::uint32_t place = 0;
        bool own = false;
    };
    std::unordered_map<std::uint32_t, Known> known;
    auto number = [&](const PathFrame& at, std::uint32_t id) {
        std::string key = at.frame.line == 0 ? fmt::format("#{}", id)
                                             : fmt::format("{}:{}:{}", at.frame.function, at.frame.file,
                                                           at.frame.line);
        return places.try_emplace(std::move(key), places.size()).first->second;
    };
    auto place_at = [&](const Site& site, std::uint32_t context) {
        auto [found, is_new] = known.try_emplace(site.id);
        if (is_new) {
            PathFrame at = own_place(profile, site, 0);
            found->second = {number(at, site.id), is_own_code(at)};
        }
        if (found->second.own || context == 0) return found->second.place;
        return number(own_place(profile, site, context), site.id);
    };
    std::unordered_map<std::uint64_t, Group> groups;
    for (const Pair& pair : profile.pairs) {
        const double misses = table.misses(pair.distances);
        if (misses <= 0) continue;
        const Site *use = sites.find(pair.use), *reuse = sites.find(pair.reuse);
        if (!use || !reuse) continue;
        std::uint64_t key = std::uint64_t{place_at(*use, pair.use_context)} << 32 |
                            place_at(*reuse, pair.reuse_context);
        Group& group = groups[key];
        group.misses += misses;
        if (misses > group.worst) {
            group.worst = misses;
            group.pair = &pair;
        }
    }
    std::vector<Group> out;
    for (const auto& [key, group] : groups) out.push_back(group);
    return out;
}

// First touches by the user's place that made them: a buffer cleared in memset belongs to its caller.
void add_first_touches(const Profile& profile, const SiteIndex& sites, std::vector<Advice>& out) {
    struct Toucher {
        double cold = 0;
        const Site* site = nullptr;
    };
    std::map<std::string, Toucher> places;
    auto take = [&](const Site& site, std::uint32_t context, double cold) {
        const PathFrame at = own_place(profile, site, context);
        if (!is_own_code(at)) return;
        Toucher& one = places[place_text(at)];
        one.cold += cold;
        one.site = &site;
    };
    for (const FirstTouch& touch : profile.touches)
        if (const Site* site = sites.find(touch.site)) take(*site, touch.context, touch.cold);
    if (profile.touches.empty())
        for (const Site& site : profile.sites) take(site, 0, site.reuse.cold);
    auto most =
        std::ranges::max_element(places, std::less(), [](const auto& one) { return one.second.cold; });
    Advice advice;
    advice.rule = "touch less";
    advice.misses = profile.reuse.cold;
    advice.what = fmt::format("{} of accesses touch memory for the first time; no cache helps there",
                              percent(profile.reuse.cold / profile.reuse.total()));
    if (most != places.end() && most->second.cold > 0) {
        advice.where = "most at " + most->first;
        advice.reuse = most->second.site->id;
        // A buffer that is used again there, instead of new memory, has no first touches.
        advice.gain = std::min(most->second.cold, profile.reuse.cold);
    }
    advice.help = {"reuse buffers instead of allocating new ones, and read only what is needed",
                   "access memory in order, so that the prefetcher runs ahead"};
    constexpr double kManyPages = 64.0 * 1024 * 1024;
    if (profile.granularities.size() < 2 &&
        profile.distinct * static_cast<double>(profile.granularity) > kManyPages)
        advice.help.push_back(
            "use huge pages: fewer page faults and TLB misses; profile with --granularity 64,4K,2M to "
            "see how many");
    out.push_back(std::move(advice));
}

// What padding cannot mend: threads that write what others read.
void add_true_sharing(const Profile& profile, double invalidated, std::vector<Advice>& out) {
    Advice advice;
    advice.rule = "unshare";
    advice.misses = advice.gain = invalidated;
    advice.what = fmt::format("{} reuses found their block invalidated by another thread's write",
                              format_count(invalidated));
    advice.help = {"let each thread accumulate privately and combine at the end",
                   "write shared data less often, or keep what is read apart from what is written"};
    const Site* most = nullptr;
    for (const Site& site : profile.sites)
        if (!most || site.reuse.invalidated > most->reuse.invalidated) most = &site;
    if (most && most->reuse.invalidated > 0) {
        advice.where = "most at " + place_text(own_place(profile, *most, 0));
        advice.reuse = most->id;
    }
    out.push_back(std::move(advice));
}

void add_working_sets(const Profile& profile, const CacheSpec& cache, std::vector<Advice>& out) {
    for (const Knee& knee : working_set_knees(profile.reuse)) {
        const double bytes = knee.blocks * static_cast<double>(cache.line),
                     room = static_cast<double>(cache.bytes);
        if (bytes <= room || bytes > kAlmostFits * room) continue;
        // A pair that explains most of it says more: where, and what to change.
        const double drop = (knee.miss_before - knee.miss_after) * profile.reuse.total();
        if (std::ranges::any_of(out,
                                [&](const Advice& one) { return one.use && one.misses > drop / 2; }))
            continue;
        Advice advice;
        advice.rule = "shrink";
        advice.misses = advice.gain = drop;
        advice.what = fmt::format(
            "a working set of {} does not fit: a cache that holds it brings misses from {} "
            "to {} of accesses",
            span_of(knee.blocks, profile.granularity), percent(knee.miss_before),
            percent(knee.miss_after));
        advice.help = {
            "smaller types, indices instead of pointers, fields used together next to each other",
            fmt::format("process tiles of at most {}", piece_size(cache, profile.granularity))};
        out.push_back(std::move(advice));
    }
}

// `few`: all misses rest on too few samples, so that nothing could stand out.
Advice nothing(const CacheSpec& cache, double miss_rate, bool few = false) {
    Advice advice;
    advice.rule = "nothing";
    if (miss_rate < kFewMisses)
        advice.what = fmt::format("nothing to gain here: {} serves all but {} of accesses", cache.name,
                                  percent(miss_rate));
    else if (few)
        advice.what = fmt::format(
            "too few samples missed {} to advise: a longer run has more, an exact profile every access",
            cache.name);
    else
        advice.what = fmt::format(
            "nothing stands out: no pair, working set or first touches explain a "
            "hundredth of the misses in {}",
            cache.name);
    return advice;
}

// Misses × the time spent where they happen; where time was not sampled, misses alone. What has no
// place counts as the average place.
void rank(const Profile& profile, const SiteIndex& sites, std::vector<Advice>& list) {
    double timed = 0, accesses = 0;
    bool any = false;
    for (const Site& site : profile.sites) {
        any |= site.time_share.has_value();
        timed += site.time_share.value_or(0) * site.accesses;
        accesses += site.accesses;
    }
    const double unseen = profile.sampled ? 0.5 / std::max(1.0, profile.sampled->samples) : 0;
    const double average = accesses > 0 ? timed / accesses : 0;
    for (Advice& advice : list) {
        const Site* site = advice.reuse ? sites.find(*advice.reuse) : nullptr;
        const double time = site && site->time_share ? *site->time_share : average;
        advice.rank = any ? advice.misses * (time + unseen) : advice.misses;
    }
    std::ranges::stable_sort(list, std::greater(), &Advice::rank);
}

}  // namespace

std::vector<Advice> advise(const Profile& profile, const CacheSpec& cache, std::size_t most,
                           const std::vector<CacheSpec>& caches) {
    std::vector<Advice> out;
    HitTable table(cache);
    const double total = profile.reuse.total(), all = table.misses(profile.reuse);
    if (total <= 0) return out;
    const double worth = kWorth * all;
    auto matters = [&](double misses) { return misses > worth && !too_few_samples(profile, misses); };
    const RuleInput in{profile, caches, table, all, matters};

    const SiteIndex sites(profile);
    advise_padding(in, out);
    double padded = 0;
    for (const Advice& advice : out) padded += advice.misses;
    advise_against_conflicts(in, out);
    // What the model counts and the simulated cache does not have is not to be gained.
    const CachePrediction rates = predict_cache(profile, cache);
    if (all < kFewMisses * total || (rates.simulated && rates.miss_rate < kFewMisses)) {
        advise_huge_pages(in, out);
        if (out.empty())
            return {nothing(cache, rates.simulated ? rates.miss_rate : std::max(0.0, all / total))};
    } else {
        if (double left = profile.reuse.invalidated - padded; left > padded / 10 && matters(left))
            add_true_sharing(profile, left, out);
        advise_splitting(in, out);
        const std::size_t split = out.size();
        std::vector<Group> groups = groups_of(profile, sites, table);
        std::erase_if(groups, [&](const Group& group) { return !matters(group.misses); });
        std::ranges::sort(groups, [](const Group& a, const Group& b) {
            return a.misses != b.misses ? a.misses > b.misses : a.pair < b.pair;
        });
        if (groups.size() > most) groups.resize(most);
        for (const Group& group : groups) {
            const Site &use = *sites.find(group.pair->use), &reuse = *sites.find(group.pair->reuse);
            // Neither end is in code that one changes: what starts programs, a library's own tables.
            if (!is_own_code(own_place(profile, use, group.pair->use_context)) &&
                !is_own_code(own_place(profile, reuse, group.pair->reuse_context)))
                continue;
            Advice advice = advice_on(profile, group, use, reuse, table);
            // Fields that are used out of every line: interchanging loops would not change that.
            const bool known = std::any_of(
                out.begin(), out.begin() + static_cast<std::ptrdiff_t>(split),
                [&](const Advice& one) { return one.rule == "split" && one.reuse == advice.reuse; });
            if (known && advice.rule == "interchange") advice.rule = "tile";
            if (known && advice.rule == "tile" && advice.help.size() > 1)
                advice.help = {advice.help[0].starts_with("tile") ? advice.help[0] : advice.help[1]};
            out.push_back(std::move(advice));
        }
        if (matters(profile.reuse.cold)) add_first_touches(profile, sites, out);
        advise_huge_pages(in, out);
        advise_prefetching(in, out);
        advise_smaller_types(in, out);
        add_working_sets(profile, cache, out);
    }
    for (Advice& advice : out)
        if (advice.gain_says.empty() || advice.rule == "prefetch")
            advice.share = std::min(1.0, advice.misses / all);
    rank(profile, sites, out);
    if (out.size() > most) out.resize(most);
    if (out.empty()) out.push_back(nothing(cache, all / total, too_few_samples(profile, all)));
    return out;
}

std::string gain_text(const Advice& advice, const Profile& profile, const CacheSpec& cache) {
    if (!advice.gain_says.empty()) return advice.gain_says;
    if (advice.gain <= 0) return {};
    HitTable table(cache);
    const double total = std::max(1.0, profile.reuse.total()), all = table.misses(profile.reuse);
    const double left = std::max(0.0, all - advice.gain);
    return fmt::format("at best {} fewer misses: {} → {} of accesses",
                       percent_whole(std::min(1.0, advice.gain / all)), percent(all / total),
                       percent(left / total));
}

}  // namespace revisit
