#include "report/places.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "report/findings.h"
#include "report/paths.h"
#include "report/sharing.h"
#include "report/words.h"
#include "revisit/units.h"

namespace revisit {
namespace {

struct Row {
    std::string name;
    Histogram reuse;
    double misses = 0;
};

std::string place_name(const std::string& module, std::uint64_t offset, const Frame& frame) {
    if (!frame.file.empty())
        return fmt::format("{}:{} {}", last_part(frame.file), frame.line, frame.function);
    if (!frame.function.empty()) return fmt::format("{} ({})", frame.function, last_part(module));
    return fmt::format("{}+{:#x}", module.empty() ? "?" : last_part(module), offset);
}

std::string function_name(const Site& site) {
    return site.frame.function.empty() ? last_part(site.module) : site.frame.function;
}

std::vector<Row> rows_by(const Profile& profile, std::string_view by) {
    std::map<std::string, Histogram> named;
    std::vector<Row> rows;
    if (by == "pair") {
        std::map<std::uint32_t, const Site*> sites;
        for (const Site& site : profile.sites) sites[site.id] = &site;
        auto site = [&](std::uint32_t id) { return sites.contains(id) ? *sites[id] : Site{}; };
        auto place = [&](std::uint32_t id) {
            return sites.contains(id) ? place_name(site(id).module, site(id).offset, site(id).frame)
                                      : fmt::format("site {}", id);
        };
        for (const Pair& pair : profile.pairs) {
            std::string from = path_of(profile, pair.use_context, site(pair.use).frame.function),
                        to = path_of(profile, pair.reuse_context, site(pair.reuse).frame.function);
            std::string name = place(pair.use);
            if (!from.empty() && from != to) name += fmt::format(" (from {})", from);
            name += pair.use == pair.reuse ? "  →  itself" : "  →  " + place(pair.reuse);
            if (!to.empty()) name += fmt::format(" (from {})", to);
            if (const std::string& data = site(pair.reuse).data; !data.empty()) name += ", " + data;
            rows.push_back({name, pair.distances, 0});
        }
    }
    if (by == "object")
        for (const Object& object : profile.objects)
            named[fmt::format("{} {}{}", object.kind, object.name,
                              object.bytes
                                  ? fmt::format(", {}", format_bytes(static_cast<double>(object.bytes)))
                                  : "")]
                .merge(object.reuse);
    if (by == "thread" && profile.threads.empty()) named["all (one thread)"] = profile.reuse;
    if (by == "thread")
        for (const ThreadProfile& thread : profile.threads)
            named[fmt::format("thread {}", thread.id)].merge(thread.reuse);
    if (by == "site")  // two instructions of one line are two
        for (const Site& site : profile.sites)
            rows.push_back({place_name(site.module, site.offset, site.frame) +
                                (site.data.empty() ? "" : ", " + site.data),
                            site.reuse, 0});
    if (by == "function" || by == "file")
        for (const Site& site : profile.sites)
            named[by == "function"          ? function_name(site)
                  : site.frame.file.empty() ? last_part(site.module)
                                            : site.frame.file]
                .merge(site.reuse);
    if (by == "loop")
        for (const Site& site : profile.sites)
            named[site.loop.line == 0 ? "outside loops in " + function_name(site)
                                      : fmt::format("loop at {}:{} in {}", last_part(site.loop.file),
                                                    site.loop.line, site.loop.function)]
                .merge(site.reuse);
    for (auto& [name, reuse] : named) rows.push_back({name, std::move(reuse), 0});
    return rows;
}

}  // namespace

std::string path_of(const Profile& profile, std::uint32_t context, const std::string& itself) {
    constexpr int kNearest = 3;
    std::string path;
    int steps = 0;
    for (; context != 0 && context < profile.contexts.size();
         context = profile.contexts[context].parent) {
        const Context& at = profile.contexts[context];
        std::string name = frame_name({at.module, at.offset, at.frame});
        if (starts_program_or_thread(name) || (path.empty() && name == itself)) continue;
        if (++steps > kNearest) return "… › " + path;
        path = path.empty() ? name : name + " › " + path;
    }
    return path;
}

Result<std::string> place_table(const Profile& profile, std::string_view by, const CacheSpec& cache,
                                std::size_t most) {
    std::vector<Row> rows = rows_by(profile, by);
    if (rows.empty()) return fail(fmt::format("the profile has no accesses by {}", by));
    double all = 0;
    for (Row& row : rows) {
        Profile part;
        part.granularity = profile.granularity;
        part.reuse = row.reuse;
        row.misses = predict_cache(part, cache).miss_rate * row.reuse.total();
        all += row.misses;
    }
    std::ranges::stable_sort(rows, std::greater(), &Row::misses);
    std::string text =
        fmt::format("Misses in {} ({}) by {}\n     share   miss rate   accesses     median  {}\n",
                    cache.name, span_of(static_cast<double>(cache.blocks()), cache.line), by, by);
    for (std::size_t i = 0; i < rows.size() && i < most; i++) {
        const Row& row = rows[i];
        double total = row.reuse.total();
        std::string median = row.reuse.bins.empty()
                                 ? "never"
                                 : format_bytes(std::round(row.reuse.percentile(0.5)) *
                                                static_cast<double>(profile.granularity));
        text += fmt::format(
            "  {:>6.2f} %   {:>7.2f} %  {:>9} {:>10}  {}\n", all > 0 ? 100 * row.misses / all : 0.0,
            total > 0 ? 100 * row.misses / total : 0.0, format_count(total), median, row.name);
    }
    if (rows.size() > most) text += fmt::format("  and {} more\n", rows.size() - most);
    return text;
}

Result<std::string> places_of(const Profile& profile, std::string_view by,
                              const std::vector<CacheSpec>& caches) {
    if (by == "line") return shared_line_table(profile, 10);
    std::optional<CacheSpec> cache = focus_cache(profile, caches);
    if (!cache) return fail(ErrorCode::no_cache, "the caches of this machine are not known");
    return place_table(profile, by, *cache, 20);
}

}  // namespace revisit
