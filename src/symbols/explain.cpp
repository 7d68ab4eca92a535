// From labels to places: see origins.h.
//
// Every histogram of the result is a sum of the labels' own, so the parts of a profile agree with each
// other by construction: sites, objects and the whole add up to the same counts.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <filesystem>
#include <map>
#include <ranges>
#include <tuple>
#include <utility>

#include "core/profile_sums.h"
#include "symbols/origins.h"
#include "symbols/symbolize.h"
#include "symbols/types.h"

namespace revisit {
namespace {

// More pairs than anybody reads make a profile slow to load; those that matter least are left out.
constexpr std::size_t kMostPairs = 20000;

struct Resolved {
    std::string module;
    std::uint64_t offset = 0;
    Frame frame;
    std::vector<Frame> inlined;
    Frame loop;
};

class Resolver {
 public:
    explicit Resolver(const Origins& origins) : a_(origins), known_(origins.places.size()) {}

    const Resolved& place(std::uint32_t index) {
        Resolved& to = known_[index].first;
        if (std::exchange(known_[index].second, true)) return to;
        const CodePlace& from = a_.places[index];
        if (from.literal != kNowhere && !a_.literals[from.literal].empty()) {
            const auto& frames = a_.literals[from.literal];
            to.frame = frames.front();
            to.inlined.assign(frames.begin() + 1, frames.end());
            if (!to.inlined.empty() && to.inlined.back().function == kLoopFrame) {
                to.loop = std::move(to.inlined.back());
                to.inlined.pop_back();
                to.loop.function = (to.inlined.empty() ? to.frame : to.inlined.back()).function;
            }
        }
        if (from.module == kNowhere) {
            to.offset = from.offset;
            return to;
        }
        const Module& module = a_.modules[from.module];
        to.module = module.path;
        CodeSymbol symbol = a_.symbols->file(module.path).code_at(from.offset);
        to.offset = symbol.address;
        if (from.literal == kNowhere) {
            to.frame = std::move(symbol.frame);
            to.inlined = std::move(symbol.inlined);
            to.loop = std::move(symbol.loop);
        }
        return to;
    }

    std::string object_name(const DataObject& object) {
        if (!object.name.empty()) return object.name;
        if (object.place == kNowhere) return object.kind;
        const Resolved& at = place(object.place);
        std::string function = at.frame.function;
        // The caller's own function is the outermost of what was inlined there.
        if (object.kind == "stack" && !at.inlined.empty()) function = at.inlined.back().function;
        if (function.empty())
            function = fmt::format("{}+{:#x}", std::filesystem::path(at.module).filename().string(),
                                   at.offset);
        if (object.kind == "stack" || at.frame.line == 0) return function;
        return fmt::format("{} ({}:{})", function,
                           std::filesystem::path(at.frame.file).filename().string(), at.frame.line);
    }

 private:
    const Origins& a_;
    std::vector<std::pair<Resolved, bool>> known_;
};

// The same path in two threads is one context: `node` is the first of its like, `thread` whose it is.
struct PlainContext {
    std::uint32_t node = 0, thread = 0;
};

std::vector<PlainContext> plain_contexts(const Origins& a) {
    std::vector<PlainContext> plain(a.contexts.size());
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> first;
    for (std::uint32_t i = 1; i < plain.size(); i++) {  // parents come before children
        const ContextNode& from = a.contexts[i];
        if (begins_thread(from.place))
            plain[i] = {0, from.place - kThreadBegins};
        else
            plain[i] = {first.try_emplace({plain[from.parent].node, from.place}, i).first->second,
                        plain[from.parent].thread};
    }
    return plain;
}

// Contexts that something refers to, and their callers, renumbered; parents before children. A call
// out of an inlined body is several frames, as a debugger shows them: the function it was inlined into
// first.
class UsedContexts {
 public:
    UsedContexts(const Origins& origins, const std::vector<PlainContext>& plain, Resolver& resolver)
        : a_(origins), plain_(plain), resolver_(resolver), number_(origins.contexts.size(), 0) {}

    std::uint32_t use(std::uint32_t node) {
        node = plain_[node].node;
        if (node == 0 || number_[node] != 0) return number_[node];
        std::vector<std::uint32_t> path;
        for (; node != 0 && number_[node] == 0; node = parent(node)) path.push_back(node);
        for (std::uint32_t step : path | std::views::reverse) add(step);
        return number_[path.front()];
    }

    std::vector<Context> take() { return std::move(contexts_); }

 private:
    std::uint32_t parent(std::uint32_t node) const { return plain_[a_.contexts[node].parent].node; }

    void add(std::uint32_t node) {
        if (contexts_.empty()) contexts_.emplace_back();
        const Resolved& at = resolver_.place(a_.contexts[node].place);
        std::uint32_t above = number_[parent(node)];
        for (const Frame& outer : at.inlined | std::views::reverse) {
            auto [known, is_new] =
                inlined_.try_emplace({above, outer.function, outer.file, outer.line}, next());
            if (is_new) contexts_.push_back({above, at.module, 0, outer});
            above = known->second;
        }
        number_[node] = next();
        contexts_.push_back({above, at.module, at.offset, at.frame});
    }
    std::uint32_t next() const { return static_cast<std::uint32_t>(contexts_.size()); }

    const Origins& a_;
    const std::vector<PlainContext>& plain_;
    Resolver& resolver_;
    std::vector<std::uint32_t> number_;
    std::vector<Context> contexts_;
    std::map<std::tuple<std::uint32_t, std::string, std::string, std::uint32_t>, std::uint32_t>
        inlined_;
};

// Members of the data's types, where debug information tells them.
class MembersExplained {
 public:
    MembersExplained(const Origins& origins, Resolver& resolver)
        : a_(origins), resolver_(resolver), finder_(origins.symbols->types()) {}

    const DataType* type_of(std::uint32_t index) {
        auto [found, is_new] = types_.try_emplace(index, nullptr);
        if (is_new) found->second = find_type(a_.objects[index]);
        return found->second;
    }

    void add(std::uint32_t site, const Label& label, double accesses) {
        // What is accessed in a library's copy is the caller's business, and any member.
        if (label.offset == kNoOffset || resolver_.place(label.place).frame.line == 0) return;
        const DataType* type = type_of(label.object);
        if (type == nullptr) return;
        const TypeMember* member = type->at(label.offset);
        votes_[site][member ? Vote{type->name + "." + member->name, member->offset} : Vote{}] +=
            accesses;
    }

    // A site has a member if nearly all of its accesses are to it.
    void fill(std::vector<Site>& sites) const {
        constexpr double kNearlyAll = 0.9;
        for (const auto& [site, votes] : votes_) {
            double all = 0;
            for (const auto& [vote, accesses] : votes) all += accesses;
            for (const auto& [vote, accesses] : votes)
                if (accesses >= kNearlyAll * all && !vote.first.empty()) {
                    sites[site].member = vote.first;
                    sites[site].member_offset = vote.second;
                }
        }
    }

 private:
    using Vote = std::pair<std::string, std::uint64_t>;

    const DataType* find_type(const DataObject& object) {
        const DataType* type = nullptr;
        if (object.kind == "global") {
            // "counters (app)": the symbol, and the file that has it
            const std::size_t at = object.name.rfind(" (");
            const std::string name = object.name.substr(0, at);
            const std::string file =
                at == std::string::npos ? "" : object.name.substr(at + 2, object.name.size() - at - 3);
            for (const Module& module : a_.modules)
                if (type == nullptr && std::filesystem::path(module.path).filename() == file)
                    type = finder_.of_variable(module.path, name);
        } else if ((object.kind == "heap" || object.kind == "mapped") && object.place != kNowhere) {
            const Resolved& at = resolver_.place(object.place);
            std::vector<Frame> frames{at.frame};
            frames.insert(frames.end(), at.inlined.begin(), at.inlined.end());
            if (!at.module.empty()) return finder_.of_allocation(at.module, frames);
            // The compiler named the place: the program is the first of the modules.
            if (!a_.modules.empty()) type = finder_.of_allocation(a_.modules[0].path, frames);
        }
        return type;
    }

    const Origins& a_;
    Resolver& resolver_;
    TypeFinder& finder_;
    std::map<std::uint32_t, const DataType*> types_;
    std::map<std::uint32_t, std::map<Vote, double>> votes_;  // by site
};

// Sharing by label: looks its sides up and sums what is the same then.
class SharingExplained {
 public:
    SharingExplained(const Origins& origins, Resolver& resolver, std::uint64_t granularity)
        : a_(origins), resolver_(resolver), part_bytes_((granularity + 63) / 64) {}

    template <class SiteOf, class ContextOf>
    void add(const Sharing& from, SiteOf site_of, ContextOf context_of) {
        Sharing one = from;
        for (SharingSide* side : {&one.writer, &one.victim}) {
            if (side->site >= a_.labels.size()) continue;
            const Label& label = a_.labels[side->site];
            side->context = context_of(label.context);
            side->frame = frame_of(label);
            place_object(*side, one.line, label.object);
            side->site = site_of(label.place);
        }
        auto& sum = sums_[{one.line, one.writer.site, one.writer.thread, one.writer.context,
                           one.victim.site, one.victim.thread, one.victim.context, one.false_sharing}];
        const double count = sum.count + one.count;
        one.error = std::hypot(one.error, sum.error);
        one.writer.bytes |= sum.writer.bytes;
        one.victim.bytes |= sum.victim.bytes;
        one.victim.write |= sum.count > 0 && sum.victim.write;
        sum = std::move(one);
        sum.count = count;
    }

    std::vector<Sharing> take() {
        std::vector<Sharing> list;
        for (auto& [key, sum] : sums_) list.push_back(std::move(sum));
        std::ranges::stable_sort(list, std::greater(), &Sharing::count);
        return list;
    }

 private:
    // Where it is in the source. What the compiler's library does for an atomic operation has no line:
    // then the call.
    Frame frame_of(const Label& label) {
        const Frame& own = resolver_.place(label.place).frame;
        const std::uint32_t call = a_.contexts[label.context].place;
        if (own.line != 0 || label.context == 0 || begins_thread(call)) return own;
        const Frame& caller = resolver_.place(call).frame;
        return caller.line != 0 ? caller : own;
    }

    // The object that the bytes lie in, and where in it.
    void place_object(SharingSide& side, std::uint64_t line, std::uint32_t object) {
        const std::uint64_t at =
            line + (side.bytes == 0 ? 0 : std::countr_zero(side.bytes) * part_bytes_);
        auto after = std::ranges::upper_bound(a_.extents, at, {}, &Extent::low);
        if (after != a_.extents.begin() && at < std::prev(after)->high) {
            const Extent& extent = *std::prev(after);
            side.offset = at - extent.low;
            object = extent.object;
        }
        if (object == kNowhere) return;
        side.object = a_.objects[object].kind + " " + resolver_.object_name(a_.objects[object]);
    }

    const Origins& a_;
    Resolver& resolver_;
    std::uint64_t part_bytes_;
    std::map<std::tuple<std::uint64_t, std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t,
                        std::uint32_t, std::uint32_t, bool>,
             Sharing>
        sums_;
};

}  // namespace

void explain(Profile& profile, const Origins& a) {
    Resolver resolver(a);
    const std::vector<PlainContext> plain = plain_contexts(a);
    UsedContexts contexts(a, plain, resolver);
    auto label_of = [&](std::uint32_t id) { return id < a.labels.size() ? a.labels[id] : Label{}; };

    // The same instruction is one site, however often its file was mapped.
    std::map<std::tuple<std::string, std::uint64_t, std::uint32_t>, std::uint32_t> ids;
    std::vector<Site> sites;
    auto site_of = [&](std::uint32_t place) {
        const Resolved& at = resolver.place(place);
        auto [found, is_new] =
            ids.emplace(std::tuple(at.module, at.offset, a.places[place].literal), ids.size());
        if (is_new)
            sites.push_back(
                {found->second, at.module, at.offset, at.frame, at.inlined, at.loop, "", 0, 0, {}});
        return found->second;
    };

    std::map<std::uint32_t, Object> objects;
    Object unattributed;
    unattributed.kind = "other";
    unattributed.name = "not attributed";
    std::map<std::uint32_t, ThreadProfile> threads;
    std::map<std::pair<std::uint32_t, std::uint32_t>, FirstTouch> touches;  // site, context
    std::map<std::pair<std::uint32_t, std::uint32_t>, double> objects_of_sites;
    MembersExplained members(a, resolver);
    for (const Site& from : profile.sites) {
        if (from.id >= a.labels.size()) continue;
        Label label = label_of(from.id);
        Site& to = sites[site_of(label.place)];
        to.accesses += from.accesses;
        to.writes += from.writes;
        to.reuse.merge(from.reuse);
        if (from.regular) {  // of its fetches
            const double before = to.regular ? to.line_use.fetches : 0, more = from.line_use.fetches;
            to.regular =
                (to.regular.value_or(0) * before + *from.regular * more) / std::max(1.0, before + more);
        }
        sum_up(to.line_use, from.line_use);
        sum_up(to.simulated, from.simulated);
        if (from.reuse.cold > 0 || from.reuse.invalidated > 0) {
            const std::uint32_t context = plain[label.context].node;
            FirstTouch& touch = touches[{to.id, context}];
            touch.site = to.id;
            touch.context = context;
            touch.cold += from.reuse.cold;
            touch.invalidated += from.reuse.invalidated;
        }
        ThreadProfile& thread = threads[plain[label.context].thread];
        thread.accesses += from.accesses;
        thread.reuse.merge(from.reuse);
        if (label.object == kNowhere) {
            unattributed.accesses += from.accesses;
            unattributed.reuse.merge(from.reuse);
            sum_up(unattributed.line_use, from.line_use);
            sum_up(unattributed.simulated, from.simulated);
            continue;
        }
        objects_of_sites[{to.id, label.object}] += from.accesses;
        members.add(to.id, label, from.accesses);
        Object& object = objects[label.object];
        object.accesses += from.accesses;
        object.reuse.merge(from.reuse);
        sum_up(object.line_use, from.line_use);
        sum_up(object.simulated, from.simulated);
    }

    std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t>, Pair> pairs;
    for (const Pair& from : profile.pairs) {
        if (from.use >= a.labels.size() || from.reuse >= a.labels.size()) continue;
        Label use = label_of(from.use), reuse = label_of(from.reuse);
        std::uint32_t use_site = site_of(use.place), reuse_site = site_of(reuse.place);
        std::uint32_t use_context = plain[use.context].node, reuse_context = plain[reuse.context].node;
        Pair& to = pairs[{use_site, reuse_site, use_context, reuse_context}];
        to.use = use_site;
        to.reuse = reuse_site;
        to.use_context = use_context;
        to.reuse_context = reuse_context;
        to.count += from.count;
        to.distances.merge(from.distances);
    }

    for (Phase& phase : profile.phases) {
        std::map<std::uint32_t, PhaseSite> sums;
        for (const PhaseSite& from : phase.sites) {
            if (from.site >= a.labels.size()) continue;
            PhaseSite& to = sums[site_of(a.labels[from.site].place)];
            to.accesses += from.accesses;
            to.reuse.merge(from.reuse);
        }
        phase.sites.clear();
        for (auto& [site, sum] : sums) {
            sum.site = site;
            phase.sites.push_back(std::move(sum));
        }
        std::ranges::stable_sort(phase.sites, std::greater(), &PhaseSite::accesses);
    }

    SharingExplained sharing(a, resolver, profile.granularity);
    for (const Sharing& one : profile.sharing)
        sharing.add(one, site_of, [&](std::uint32_t context) { return plain[context].node; });
    profile.sharing = sharing.take();

    if (threads.size() > 1 && profile.threads.empty())
        for (auto& [number, thread] : threads) {
            thread.id = number;
            profile.threads.push_back(std::move(thread));
        }
    std::map<std::uint32_t, double> most;
    for (const auto& [of, accesses] : objects_of_sites)
        if (double& best = most[of.first]; accesses > best) {
            best = accesses;
            const DataObject& object = a.objects[of.second];
            sites[of.first].data = object.kind + " " + resolver.object_name(object);
        }

    members.fill(sites);

    // Objects of one name stay apart only where a context distinguishes them.
    std::map<std::tuple<std::string, std::string, std::uint32_t>, Object> named;
    for (auto& [index, object] : objects) {
        const DataObject& from = a.objects[index];
        std::string name = resolver.object_name(from);
        std::uint32_t context = contexts.use(from.context);
        Object& to = named[{from.kind, name, context}];
        to.kind = from.kind;
        to.name = name;
        to.bytes += from.bytes;
        to.context = context;
        if (const DataType* type = members.type_of(index)) {
            to.type = type->name;
            to.type_bytes = type->bytes;
        }
        to.accesses += object.accesses;
        to.reuse.merge(object.reuse);
        sum_up(to.line_use, object.line_use);
        sum_up(to.simulated, object.simulated);
    }
    profile.objects.clear();
    for (auto& [key, object] : named) profile.objects.push_back(std::move(object));
    if (!named.empty() && unattributed.accesses > 0) profile.objects.push_back(std::move(unattributed));
    std::ranges::stable_sort(profile.objects, std::greater(), &Object::accesses);

    profile.pairs.clear();
    for (auto& [key, pair] : pairs) profile.pairs.push_back(std::move(pair));
    std::ranges::stable_sort(profile.pairs, std::greater(), &Pair::count);
    if (profile.pairs.size() > kMostPairs) {
        double kept = 0, all = 0;
        for (std::size_t i = 0; i < profile.pairs.size(); i++)
            (i < kMostPairs ? kept : all) += profile.pairs[i].count;
        all += kept;
        profile.notes.push_back(
            fmt::format("pairs: the {} most frequent of {} are kept, {:.2f} % of all reuses",
                        kMostPairs, profile.pairs.size(), all > 0 ? 100 * kept / all : 100.0));
        profile.pairs.resize(kMostPairs);
    }
    for (Pair& pair : profile.pairs) {
        pair.use_context = contexts.use(pair.use_context);
        pair.reuse_context = contexts.use(pair.reuse_context);
    }
    for (Sharing& one : profile.sharing)
        for (SharingSide* side : {&one.writer, &one.victim})
            side->context = contexts.use(side->context);
    profile.touches.clear();
    for (auto& [key, touch] : touches) profile.touches.push_back(touch);
    std::ranges::stable_sort(profile.touches, std::greater(),
                             [](const FirstTouch& one) { return one.cold + one.invalidated; });
    if (profile.touches.size() > kMostPairs) profile.touches.resize(kMostPairs);
    for (FirstTouch& touch : profile.touches) touch.context = contexts.use(touch.context);
    profile.contexts = contexts.take();
    profile.sites = std::move(sites);
    std::ranges::stable_sort(profile.sites, std::greater(), &Site::accesses);
    if (profile.command.empty()) profile.command = a.command;
}

}  // namespace revisit
