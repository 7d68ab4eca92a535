#include "report/advice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "models/hit_table.h"
#include "report/words.h"

namespace revisit {
namespace {

constexpr double kWorth = 0.01;

std::vector<std::uint32_t> path_to(const Profile& profile, std::uint32_t context) {
    std::vector<std::uint32_t> path;  // outermost first
    for (; context != 0 && context < profile.contexts.size() && path.size() <= profile.contexts.size();
         context = profile.contexts[context].parent)
        path.push_back(context);
    std::ranges::reverse(path);
    return path;
}

// The innermost call that both paths go through.
const Context* common_context(const Profile& profile, const Pair& pair) {
    std::vector<std::uint32_t> use = path_to(profile, pair.use_context),
                               reuse = path_to(profile, pair.reuse_context);
    std::size_t shared = 0;
    while (shared < use.size() && shared < reuse.size() && use[shared] == reuse[shared]) shared++;
    return shared == 0 ? nullptr : &profile.contexts[use[shared - 1]];
}

std::string loop_of(const Site& site) {
    return site.loop.line == 0
               ? ""
               : fmt::format(", loop at {}:{}", last_part(site.loop.file), site.loop.line);
}

Advice advice_on(const Profile& profile, const Pair& pair, const Site& use, const Site& reuse,
                 HitTable& table) {
    Advice advice;
    const CacheSpec& cache = table.cache();
    double blocks = std::round(table.missed(pair.distances).percentile(0.5));
    double times = blocks * static_cast<double>(profile.granularity) / static_cast<double>(cache.bytes);
    std::string data = reuse.data.empty() ? "the same data" : reuse.data;
    std::string after = fmt::format("after {}", span_of(blocks, profile.granularity));
    if (profile.granularity > 1 && times > 1) after += fmt::format(", {:.3g} times the cache", times);
    bool same_function = !use.frame.function.empty() && use.frame.function == reuse.frame.function &&
                         use.frame.file == reuse.frame.file;
    bool same_line = use.id == reuse.id || (same_function && use.frame.line == reuse.frame.line);
    if (same_line) {
        advice.what = fmt::format("{} comes back for {} {}", place_of(reuse), data, after);
        advice.help =
            "tile the loops, so that a part that fits is used up before the next; interchange them or "
            "transpose the data, so that the innermost walks along memory";
        if (times > 1 && times < 4) advice.help += "; smaller types may be enough";
    } else if (same_function) {
        advice.what = fmt::format("{} comes back for {}, last used at line {}, {}", place_of(reuse),
                                  data, use.frame.line, after);
        advice.help =
            "fuse the two loops, so that the second use follows the first while the data is still "
            "there; or run both over one piece that fits at a time";
    } else {
        advice.what = fmt::format("{} comes back for {}, last used by {}, {}", place_of(reuse), data,
                                  place_of(use), after);
        advice.help =
            "let the second step follow the first piece by piece instead of after all of it; if the "
            "data is only passed on, compute it where it is used";
    }
    if (same_function || same_line) {
        if (!reuse.frame.function.empty())
            advice.where = fmt::format("in {}{}", reuse.frame.function, loop_of(reuse));
    } else if (const Context* meet = common_context(profile, pair)) {
        advice.where = "the two meet in " +
                       (meet->frame.function.empty() ? last_part(meet->module) : meet->frame.function);
        if (!meet->frame.file.empty())
            advice.where += fmt::format(" ({}:{})", last_part(meet->frame.file), meet->frame.line);
    }
    return advice;
}

}  // namespace

std::vector<Advice> advise(const Profile& profile, const CacheSpec& cache, std::size_t most) {
    std::map<std::uint32_t, const Site*> sites;
    for (const Site& site : profile.sites) sites[site.id] = &site;
    // Pairs that differ only in their contexts say the same; the worst of them speaks for all.
    struct Group {
        double misses = 0, worst = -1;
        const Pair* pair = nullptr;
    };
    std::map<std::pair<std::uint32_t, std::uint32_t>, Group> groups;
    HitTable table(cache);
    for (const Pair& pair : profile.pairs) {
        if (!sites.contains(pair.use) || !sites.contains(pair.reuse)) continue;
        double misses = table.misses(pair.distances);
        Group& group = groups[{pair.use, pair.reuse}];
        group.misses += misses;
        if (misses > group.worst) {
            group.worst = misses;
            group.pair = &pair;
        }
    }
    std::vector<Group> ranked;
    double all = table.misses(profile.reuse);
    for (const auto& [ids, group] : groups)
        if (all > 0 && group.misses > kWorth * all) ranked.push_back(group);
    std::ranges::stable_sort(ranked, std::greater(), &Group::misses);
    if (ranked.size() > most) ranked.resize(most);
    std::vector<Advice> out;
    for (const Group& group : ranked) {
        out.push_back(
            advice_on(profile, *group.pair, *sites[group.pair->use], *sites[group.pair->reuse], table));
        out.back().share = std::min(1.0, group.misses / all);
    }
    return out;
}

}  // namespace revisit
