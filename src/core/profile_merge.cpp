// One profile from many: threads, processes, ranks, runs, machines.
//
// Sites, objects and contexts of different runs are matched by what they are (module, place, name), not
// by their numbers, so the merge of a merge is the merge. What is known so far is kept in indexes from
// one profile to the next: 10^5 small profiles cost what reading them costs.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <tuple>

#include "core/common_bins.h"
#include "core/profile_sums.h"
#include "core/try.h"
#include "revisit/profile.h"

namespace revisit {
namespace {

// What a merge may hold of what grows with the number of runs.
constexpr std::size_t kMostThreads = 1024;  // the others are summed into one
constexpr std::size_t kMostNotes = 64;
constexpr std::size_t kMostProcesses = 4096;
constexpr std::size_t kMostSharing = 4096;  // writer and victim, the most frequent

auto place_of(const auto& item) {
    return std::tuple(item.module, item.offset, item.frame.function, item.frame.file, item.frame.line);
}

// Opaque sites, without any place, are the same only when their ids are.
auto key_of(const Site& site) {
    bool opaque = site.module.empty() && site.frame == Frame{};
    return std::tuple_cat(place_of(site), std::tuple(opaque, opaque ? site.id : 0));
}

auto key_of(const Context& context) {
    return std::tuple_cat(std::tuple(context.parent), place_of(context));
}

auto key_of(const Pair& pair) {
    return std::tuple(pair.use, pair.reuse, pair.use_context, pair.reuse_context);
}

auto key_of(const Object& object) {
    return std::tuple(object.kind, object.name, object.context);
}

auto key_of(const FirstTouch& touch) {
    return std::tuple(touch.site, touch.context);
}

// Bytes used in different caches have no sum.
void merge_line_use(Profile& into, const Profile& other) {
    if (into.line_use && other.line_use && into.line_use->cache == other.line_use->cache) {
        sum_up(into.line_use->use, other.line_use->use);
        return;
    }
    into.line_use.reset();
    for (Site& site : into.sites) site.line_use = {};
    for (Object& object : into.objects) object.line_use = {};
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

bool add_depths(SetDepths& into, const SetDepths& other) {
    if (into.sets != other.sets || into.counts.size() != other.counts.size()) return false;
    for (std::size_t i = 0; i < into.counts.size(); ++i) into.counts[i] += other.counts[i];
    return true;
}

// Those that both have.
void merge_filters(Profile& into, const Profile& other) {
    std::erase_if(into.filters, [&](PrivateFilter& one) {
        auto same = std::ranges::find_if(other.filters, [&](const PrivateFilter& another) {
            return another.own.sets == one.own.sets && another.ways == one.ways;
        });
        if (same == other.filters.end() || same->shared.size() != one.shared.size() ||
            !add_depths(one.own, same->own))
            return true;
        for (std::size_t i = 0; i < one.shared.size(); ++i)
            if (!add_depths(one.shared[i], same->shared[i])) return true;
        return false;
    });
}

bool same_caches(const Profile& one, const Profile& other) {
    return std::ranges::equal(
        one.caches, other.caches,
        [](const SimulatedCache& a, const SimulatedCache& b) { return a.spec.same_geometry(b.spec); });
}

// Caches that all of them have.
void merge_caches(Profile& into, const Profile& other) {
    if (!same_caches(into, other)) {
        for (Site& site : into.sites) site.simulated.clear();
        for (Object& object : into.objects) object.simulated.clear();
    }
    std::erase_if(into.caches, [&](SimulatedCache& one) {
        auto same = std::ranges::find_if(other.caches, [&](const SimulatedCache& another) {
            return another.spec.same_geometry(one.spec);
        });
        if (same == other.caches.end()) return true;
        one.accesses += same->accesses;
        one.misses += same->misses;
        one.error = std::hypot(one.error, same->error);
        // Sets of one process say nothing about those of another.
        one.crowded.clear();
        one.crowded_misses = 0;
        return false;
    });
}

// Where the items of a list are, by what they are.
template <class Item>
class Index {
 public:
    // The index of an equal item, or of a new place at the end.
    std::pair<std::size_t, bool> find_or_add(const Item& item, std::size_t end) {
        auto [found, is_new] = places_.try_emplace(key_of(item), end);
        return {found->second, is_new};
    }

 private:
    std::map<decltype(key_of(Item{})), std::size_t> places_;
};

}  // namespace

struct ProfileMerger::Indexes {
    Index<Site> sites;
    Index<Context> contexts;
    Index<Pair> pairs;
    Index<Object> objects;
    Index<FirstTouch> touches;
    std::set<std::string> notes;
    std::uint32_t next_site = 0, next_thread = 0;
    std::size_t other_threads = 0;  // summed into the last one
    CommonBins reuse, time, shared;

    void know(const Profile& profile) {
        for (std::size_t i = 0; i < profile.sites.size(); ++i) {
            sites.find_or_add(profile.sites[i], i);
            next_site = std::max(next_site, profile.sites[i].id + 1);
        }
        for (std::size_t i = 1; i < profile.contexts.size(); ++i)
            contexts.find_or_add(profile.contexts[i], i);
        for (std::size_t i = 0; i < profile.pairs.size(); ++i) pairs.find_or_add(profile.pairs[i], i);
        for (std::size_t i = 0; i < profile.objects.size(); ++i)
            objects.find_or_add(profile.objects[i], i);
        for (std::size_t i = 0; i < profile.touches.size(); ++i)
            touches.find_or_add(profile.touches[i], i);
        for (const ThreadProfile& thread : profile.threads)
            next_thread = std::max(next_thread, thread.id + 1);
        notes.insert(profile.notes.begin(), profile.notes.end());
        reuse.add(profile.reuse);
        if (profile.time) time.add(*profile.time);
        if (profile.shared) shared.add(*profile.shared);
    }

    // Sites: id of `other` → id in `into`.
    std::map<std::uint32_t, std::uint32_t> merge_sites(Profile& into, const Profile& other) {
        // Shares of time are of either run's own; runs count by their accesses.
        double others = into.accesses > 0 ? other.accesses / into.accesses : 0;
        for (Site& site : into.sites)
            if (site.time_share) *site.time_share *= 1 - others;
        std::map<std::uint32_t, std::uint32_t> renumbered;
        for (const Site& site : other.sites) {
            auto [at, is_new] = sites.find_or_add(site, into.sites.size());
            if (is_new) {
                into.sites.push_back(site);
                if (site.time_share) *into.sites.back().time_share *= others;
                bool opaque = site.module.empty() && site.frame == Frame{};
                if (!opaque) into.sites.back().id = next_site;
                next_site = std::max(next_site, into.sites.back().id) + 1;
            } else {
                Site& mine = into.sites[at];
                if (site.time_share)
                    mine.time_share = mine.time_share.value_or(0) + others * *site.time_share;
                double all = mine.accesses + site.accesses;
                if (mine.regular && site.regular && all > 0)
                    mine.regular =
                        (*mine.regular * mine.accesses + *site.regular * site.accesses) / all;
                else if (site.regular)
                    mine.regular = site.regular;
                mine.accesses += site.accesses;
                mine.writes += site.writes;
                if (mine.member.empty()) {
                    mine.member = site.member;
                    mine.member_offset = site.member_offset;
                }
                sum_up(mine.line_use, site.line_use);
                sum_up(mine.simulated, site.simulated);
                mine.reuse.merge(site.reuse);
            }
            renumbered[site.id] = into.sites[at].id;
        }
        return renumbered;
    }

    std::vector<std::uint32_t> merge_contexts(Profile& into, const Profile& other) {
        if (into.contexts.empty() && !other.contexts.empty()) into.contexts.push_back({});
        std::vector<std::uint32_t> renumbered(other.contexts.size(), 0);
        for (std::uint32_t i = 1; i < other.contexts.size(); ++i) {
            Context context = other.contexts[i];
            context.parent = renumbered[context.parent];
            auto [at, is_new] = contexts.find_or_add(context, into.contexts.size());
            if (is_new) into.contexts.push_back(context);
            renumbered[i] = static_cast<std::uint32_t>(at);
        }
        return renumbered;
    }

    void merge_pairs(Profile& into, const Profile& other,
                     const std::map<std::uint32_t, std::uint32_t>& site,
                     const std::vector<std::uint32_t>& context) {
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
            auto [at, is_new] = pairs.find_or_add(pair, into.pairs.size());
            if (is_new) {
                into.pairs.push_back(pair);
            } else {
                into.pairs[at].count += pair.count;
                into.pairs[at].distances.merge(pair.distances);
            }
        }
    }

    void merge_touches(Profile& into, const Profile& other,
                       const std::map<std::uint32_t, std::uint32_t>& site,
                       const std::vector<std::uint32_t>& context) {
        for (FirstTouch touch : other.touches) {
            if (auto found = site.find(touch.site); found != site.end()) touch.site = found->second;
            touch.context = touch.context < context.size() ? context[touch.context] : 0;
            auto [at, is_new] = touches.find_or_add(touch, into.touches.size());
            if (is_new) {
                into.touches.push_back(touch);
            } else {
                into.touches[at].cold += touch.cold;
                into.touches[at].invalidated += touch.invalidated;
            }
        }
    }

    void merge_objects(Profile& into, const Profile& other, const std::vector<std::uint32_t>& context) {
        for (Object object : other.objects) {
            object.context = object.context < context.size() ? context[object.context] : 0;
            auto [at, is_new] = objects.find_or_add(object, into.objects.size());
            if (is_new) {
                into.objects.push_back(object);
            } else {
                Object& mine = into.objects[at];
                mine.bytes = std::max(mine.bytes, object.bytes);
                if (mine.type.empty()) {
                    mine.type = object.type;
                    mine.type_bytes = object.type_bytes;
                }
                mine.accesses += object.accesses;
                sum_up(mine.line_use, object.line_use);
                sum_up(mine.simulated, object.simulated);
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
            sum.error = std::hypot(sum.error, other.sharing_totals->error);
            into.sharing_totals = sum;
        }
        if (other.sharing.empty()) return;
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
        for (; into.sharing.size() > kMostSharing; into.sharing.pop_back())
            if (into.sharing_totals) into.sharing_totals->unlisted += into.sharing.back().count;
    }

    // Thread numbers of different runs name different threads; the first of the other run's.
    std::uint32_t merge_threads(Profile& into, const Profile& other) {
        std::uint32_t first = next_thread;
        for (ThreadProfile thread : other.threads) {
            thread.id += first;
            next_thread = std::max(next_thread, thread.id + 1);
            if (into.threads.size() < kMostThreads) {
                into.threads.push_back(std::move(thread));
                continue;
            }
            into.threads.back().accesses += thread.accesses;
            into.threads.back().reuse.merge(thread.reuse);
            if (other_threads++ == 0)
                add_note(into, fmt::format("merge: more than {} threads: the last one listed is the "
                                           "sum of all further ones",
                                           kMostThreads));
        }
        return first;
    }

    void add_note(Profile& into, const std::string& note) {
        if (notes.size() < kMostNotes && notes.insert(note).second) into.notes.push_back(note);
    }
};

ProfileMerger::ProfileMerger(Profile first, bool runs)
    : sum_(std::move(first)), runs_(runs), indexes_(std::make_unique<Indexes>()) {
    indexes_->know(sum_);
    if (runs_ && sum_.runs.empty()) sum_.runs.push_back({1, sum_.accesses, sum_.distinct, sum_.reuse});
}
ProfileMerger::~ProfileMerger() = default;

// A sum over bins that do not line up would be a bin as wide as all of them.
Result<void> ProfileMerger::check(const Profile& other) const {
    if (sum_.granularity != other.granularity)
        return fail(fmt::format("cannot merge profiles of granularity {} and {}", sum_.granularity,
                                other.granularity));
    if (sum_.model != other.model)
        return fail(fmt::format("cannot merge profiles of model {} and {}", sum_.model, other.model));
    auto line_up = [](CommonBins bins, const Histogram& histogram) -> Result<void> {
        bins.add(histogram);
        if (bins.nested()) return {};
        return fail(
            fmt::format("cannot merge profiles whose bins do not line up: {}; "
                        "profile both with the same bins",
                        bins.clash()));
    };
    TRY(line_up(indexes_->reuse, other.reuse));
    if (sum_.time && other.time) TRY(line_up(indexes_->time, *other.time));
    if (sum_.shared && other.shared) TRY(line_up(indexes_->shared, *other.shared));
    return {};
}

// Runs go to the groups in turn, the smallest first, so that groups stay alike in size.
void ProfileMerger::keep_runs(const Profile& other) {
    std::vector<RunGroup> more = other.runs;
    if (more.empty()) more.push_back({1, other.accesses, other.distinct, other.reuse});
    for (RunGroup& group : more) {
        if (sum_.runs.size() < kRunGroups) {
            sum_.runs.push_back(std::move(group));
            continue;
        }
        RunGroup& into = *std::ranges::min_element(sum_.runs, {}, &RunGroup::runs);
        into.runs += group.runs;
        into.accesses += group.accesses;
        into.distinct += group.distinct;
        into.reuse.merge(group.reuse);
    }
}

Result<void> ProfileMerger::add(const Profile& other) {
    TRY(check(other));
    if (runs_)
        keep_runs(other);
    else
        sum_.runs.clear();
    Profile& into = sum_;
    if (into.method != other.method) into.method = "mixed";
    into.accesses += other.accesses;
    into.distinct += other.distinct;
    into.reuse.merge(other.reuse);
    indexes_->reuse.add(other.reuse);
    // Time distances are only whole when every part has them.
    auto merge_whole = [](std::optional<Histogram>& mine, const std::optional<Histogram>& more,
                          CommonBins& bins) {
        if (mine && more) {
            mine->merge(*more);
            bins.add(*more);
        } else {
            mine.reset();
        }
    };
    merge_whole(into.time, other.time, indexes_->time);
    merge_whole(into.shared, other.shared, indexes_->shared);
    if (other.sampled) {
        Sampling sum = into.sampled.value_or(Sampling{});
        double samples = sum.samples + other.sampled->samples;
        if (samples > 0) {
            sum.pruned =
                (sum.pruned * sum.samples + other.sampled->pruned * other.sampled->samples) / samples;
            sum.period = into.accesses / samples;
        }
        sum.samples = samples;
        sum.accesses_error = std::hypot(sum.accesses_error, other.sampled->accesses_error);
        // What has no bounds has its number for both.
        auto add_bound = [&](double Sampling::* bound) {
            auto of = [&](const Sampling& one, double distinct) {
                return one.distinct_high > 0 ? one.*bound : distinct;
            };
            return of(sum, into.distinct - other.distinct) + of(*other.sampled, other.distinct);
        };
        if (sum.distinct_high > 0 || other.sampled->distinct_high > 0) {
            const double low = add_bound(&Sampling::distinct_low);
            sum.distinct_high = add_bound(&Sampling::distinct_high);
            sum.distinct_low = low;
        }
        into.sampled = sum;
    }
    std::uint32_t first_thread = indexes_->merge_threads(into, other);
    auto site = indexes_->merge_sites(into, other);
    auto context = indexes_->merge_contexts(into, other);
    indexes_->merge_pairs(into, other, site, context);
    indexes_->merge_touches(into, other, site, context);
    indexes_->merge_objects(into, other, context);
    indexes_->merge_sharing(into, other, site, context, first_thread);
    merge_granularities(into, other);
    merge_caches(into, other);
    merge_filters(into, other);
    merge_line_use(into, other);
    into.phases.clear();  // windows of different runs do not line up
    for (const ProcessSummary& process : other.processes)
        if (into.processes.size() < kMostProcesses) into.processes.push_back(process);
    if (into.command != other.command) into.command.clear();
    if (into.machine != other.machine) into.machine.clear();
    for (const std::string& note : other.notes) indexes_->add_note(into, note);
    return {};
}

Result<void> merge_profile(Profile& into, const Profile& other) {
    ProfileMerger merger(std::move(into));
    Result<void> merged = merger.add(other);
    into = merger.take();
    return merged;
}

}  // namespace revisit
