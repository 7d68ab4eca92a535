// One profile from many: threads, processes, ranks, runs, machines.
//
// Sites, objects and contexts of different runs are matched by what they are (module, place, name), not
// by their numbers, so the merge of a merge is the merge.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <tuple>

#include "revisit/profile.h"

namespace revisit {
namespace {

auto place_of(const auto& item) {
    return std::tuple(item.module, item.offset, item.frame.function, item.frame.file, item.frame.line);
}

// Sites: id of `other` → id in `into`.
std::map<std::uint32_t, std::uint32_t> merge_sites(Profile& into, const Profile& other) {
    std::map<decltype(std::tuple_cat(place_of(Site{}), std::tuple<std::uint32_t>())), std::size_t>
        known;
    // Opaque sites, without any place, are the same only when their ids are.
    auto key = [](const Site& site) {
        bool opaque = site.module.empty() && site.frame == Frame{};
        return std::tuple_cat(place_of(site), std::tuple(opaque ? site.id : 0));
    };
    std::uint32_t next_id = 0;
    for (std::size_t i = 0; i < into.sites.size(); ++i) {
        known.emplace(key(into.sites[i]), i);
        next_id = std::max(next_id, into.sites[i].id + 1);
    }
    // Shares of time are of either run's own; runs count by their accesses.
    double others = into.accesses > 0 ? other.accesses / into.accesses : 0;
    for (Site& site : into.sites)
        if (site.time_share) *site.time_share *= 1 - others;
    std::map<std::uint32_t, std::uint32_t> renumbered;
    for (const Site& site : other.sites) {
        auto [found, is_new] = known.emplace(key(site), into.sites.size());
        if (is_new) {
            into.sites.push_back(site);
            if (site.time_share) *into.sites.back().time_share *= others;
            bool opaque = site.module.empty() && site.frame == Frame{};
            if (!opaque) into.sites.back().id = next_id;
            next_id = std::max(next_id, into.sites.back().id) + 1;
        } else {
            Site& mine = into.sites[found->second];
            if (site.time_share)
                mine.time_share = mine.time_share.value_or(0) + others * *site.time_share;
            if (double all = mine.accesses + site.accesses; mine.regular && site.regular && all > 0)
                mine.regular = (*mine.regular * mine.accesses + *site.regular * site.accesses) / all;
            else if (site.regular)
                mine.regular = site.regular;
            mine.accesses += site.accesses;
            mine.writes += site.writes;
            mine.reuse.merge(site.reuse);
        }
        renumbered[site.id] = into.sites[found->second].id;
    }
    return renumbered;
}

std::vector<std::uint32_t> merge_contexts(Profile& into, const Profile& other) {
    if (into.contexts.empty() && !other.contexts.empty()) into.contexts.push_back({});
    std::map<std::pair<std::uint32_t, decltype(place_of(Context{}))>, std::uint32_t> known;
    for (std::uint32_t i = 1; i < into.contexts.size(); ++i)
        known.emplace(std::pair(into.contexts[i].parent, place_of(into.contexts[i])), i);
    std::vector<std::uint32_t> renumbered(other.contexts.size(), 0);
    for (std::uint32_t i = 1; i < other.contexts.size(); ++i) {
        Context context = other.contexts[i];
        context.parent = renumbered[context.parent];
        auto [found, is_new] = known.emplace(std::pair(context.parent, place_of(context)),
                                             static_cast<std::uint32_t>(into.contexts.size()));
        if (is_new) into.contexts.push_back(context);
        renumbered[i] = found->second;
    }
    return renumbered;
}

void merge_pairs(Profile& into, const Profile& other,
                 const std::map<std::uint32_t, std::uint32_t>& site,
                 const std::vector<std::uint32_t>& context) {
    auto key = [](const Pair& pair) {
        return std::tuple(pair.use, pair.reuse, pair.use_context, pair.reuse_context);
    };
    std::map<decltype(key(Pair{})), std::size_t> known;
    for (std::size_t i = 0; i < into.pairs.size(); ++i) known.emplace(key(into.pairs[i]), i);
    auto renumber_site = [&](std::uint32_t id) {
        auto found = site.find(id);
        return found == site.end() ? id : found->second;
    };
    auto renumber_context = [&](std::uint32_t index) {
        return index < context.size() ? context[index] : 0;
    };
    for (Pair pair : other.pairs) {
        pair.use = renumber_site(pair.use);
        pair.reuse = renumber_site(pair.reuse);
        pair.use_context = renumber_context(pair.use_context);
        pair.reuse_context = renumber_context(pair.reuse_context);
        auto [found, is_new] = known.emplace(key(pair), into.pairs.size());
        if (is_new) {
            into.pairs.push_back(pair);
        } else {
            into.pairs[found->second].count += pair.count;
            into.pairs[found->second].distances.merge(pair.distances);
        }
    }
}

void merge_objects(Profile& into, const Profile& other, const std::vector<std::uint32_t>& context) {
    auto key = [](const Object& object) {
        return std::tuple(object.kind, object.name, object.context);
    };
    std::map<decltype(key(Object{})), std::size_t> known;
    for (std::size_t i = 0; i < into.objects.size(); ++i) known.emplace(key(into.objects[i]), i);
    for (Object object : other.objects) {
        object.context = object.context < context.size() ? context[object.context] : 0;
        auto [found, is_new] = known.emplace(key(object), into.objects.size());
        if (is_new) {
            into.objects.push_back(object);
        } else {
            Object& mine = into.objects[found->second];
            mine.bytes = std::max(mine.bytes, object.bytes);
            mine.accesses += object.accesses;
            mine.reuse.merge(object.reuse);
        }
    }
}

void merge_sharing(Profile& into, const Profile& other,
                   const std::map<std::uint32_t, std::uint32_t>& site,
                   const std::vector<std::uint32_t>& context, std::uint32_t first_thread) {
    if (other.sharing_totals) {
        SharingTotals sum = into.sharing_totals.value_or(SharingTotals{});
        sum.invalidated += other.sharing_totals->invalidated;
        sum.false_sharing += other.sharing_totals->false_sharing;
        sum.unlisted += other.sharing_totals->unlisted;
        into.sharing_totals = sum;
    }
    for (Sharing one : other.sharing) {
        for (SharingSide* side : {&one.writer, &one.victim}) {
            auto found = site.find(side->site);
            if (found != site.end()) side->site = found->second;
            side->context = side->context < context.size() ? context[side->context] : 0;
            side->thread += first_thread;
        }
        into.sharing.push_back(std::move(one));
    }
    std::ranges::stable_sort(into.sharing, std::greater(), &Sharing::count);
}

void merge_granularities(Profile& into, const Profile& other) {
    bool same = into.granularities.size() == other.granularities.size();
    for (std::size_t i = 0; same && i < into.granularities.size(); ++i)
        same = into.granularities[i].granularity == other.granularities[i].granularity;
    if (!same) into.granularities.clear();
    for (std::size_t i = 0; i < into.granularities.size(); ++i) {
        into.granularities[i].distinct += other.granularities[i].distinct;
        into.granularities[i].reuse.merge(other.granularities[i].reuse);
    }
}

}  // namespace

Result<void> merge_profile(Profile& into, const Profile& other) {
    if (into.granularity != other.granularity)
        return fail(fmt::format("cannot merge profiles of granularity {} and {}", into.granularity,
                                other.granularity));
    if (into.model != other.model)
        return fail(fmt::format("cannot merge profiles of model {} and {}", into.model, other.model));
    if (into.method != other.method) into.method = "mixed";
    into.accesses += other.accesses;
    into.distinct += other.distinct;
    into.reuse.merge(other.reuse);
    // Time distances are only whole when every part has them.
    if (into.time && other.time)
        into.time->merge(*other.time);
    else
        into.time.reset();
    if (into.shared && other.shared)
        into.shared->merge(*other.shared);
    else
        into.shared.reset();
    if (other.sampled) {
        Sampling sum = into.sampled.value_or(Sampling{});
        double samples = sum.samples + other.sampled->samples;
        if (samples > 0) {
            sum.pruned =
                (sum.pruned * sum.samples + other.sampled->pruned * other.sampled->samples) / samples;
            sum.period = into.accesses / samples;
        }
        sum.samples = samples;
        into.sampled = sum;
    }
    // Thread numbers of different runs name different threads.
    std::uint32_t next_thread = 0;
    for (const ThreadProfile& thread : into.threads) next_thread = std::max(next_thread, thread.id + 1);
    for (ThreadProfile thread : other.threads) {
        thread.id += next_thread;
        into.threads.push_back(std::move(thread));
    }
    auto site = merge_sites(into, other);
    auto context = merge_contexts(into, other);
    merge_pairs(into, other, site, context);
    merge_objects(into, other, context);
    merge_sharing(into, other, site, context, next_thread);
    merge_granularities(into, other);
    into.phases.clear();  // windows of different runs do not line up
    into.processes.insert(into.processes.end(), other.processes.begin(), other.processes.end());
    if (into.command != other.command) into.command.clear();
    if (into.machine != other.machine) into.machine.clear();
    for (const std::string& note : other.notes)
        if (std::find(into.notes.begin(), into.notes.end(), note) == into.notes.end())
            into.notes.push_back(note);
    return {};
}

}  // namespace revisit
