// Packs profiles into the HTML page.
//
// Problem. A profile of 10^5 sites and 10^6 pairs is 100 MB of JSON; a page people send each other must
// stay below 20 MB and open at once.
// Idea. Texts and bin edges are stored once and pointed at, rows are arrays without keys, and rows go
// in by falling weight until their share of the budget is spent. What is left is summed, so totals stay
// right, and the page says how much it was. Weight is misses in the marked caches, with a little for
// accesses so that places that always hit are ordered too.
// Safety. The data sits in a script element of a type that is not run. Every '<' in it is written as
// \u003c, so no name can end the element or open another one; the page makes text nodes of them.
#include "report/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <unordered_set>

#include "core/files.h"
#include "models/hit_table.h"
#include "report/diff.h"
#include "report/findings.h"
#include "report/page_listings.h"
#include "report/paths.h"
#include "report/sharing.h"
#include "report/words.h"

namespace revisit {
namespace {

// As all of this folder: its library is compiled for one kind of tree alone.
using Json = nlohmann::ordered_json;

constexpr std::string_view kDataMark = "/*data*/";
constexpr std::size_t kLargestSource = 400'000;  // bytes of one source file

using Buffer = fmt::memory_buffer;

void put(Buffer& out, std::string_view text) {
    out.append(text.data(), text.data() + text.size());
}

void put_number(Buffer& out, double value) {
    if (value == std::floor(value) && std::fabs(value) < 9.007199254740992e15)
        fmt::format_to(std::back_inserter(out), "{}", static_cast<std::int64_t>(value));
    else
        fmt::format_to(std::back_inserter(out), "{:.9g}", value);
}

// JSON inside a script element: no "</script" and no "<!--" may come out of a name.
std::string in_script(std::string_view json) {
    std::string out;
    for (char c : json)
        if (c == '<')
            out += "\\u003c";
        else
            out += c;
    return out;
}

std::string json_text(std::string_view text) {
    return in_script(Json(text).dump(-1, ' ', true, Json::error_handler_t::replace));
}

// Texts and edges, numbered in the order they are first seen.
class Pool {
 public:
    std::size_t text(const std::string& value) {
        auto [entry, is_new] = texts_.try_emplace(value, texts_.size());
        if (is_new) {
            put(text_list_, texts_.size() == 1 ? "" : ",");
            put(text_list_, json_text(value));
        }
        return entry->second;
    }
    std::size_t edges(const Bin& bin) {
        // Bins of a profile share their low edges nearly always; the key need not be perfect.
        auto [entry, is_new] = edges_.try_emplace({bin.low, bin.high}, edges_.size());
        if (is_new)
            fmt::format_to(std::back_inserter(edge_list_), "{}{},{}", edges_.size() == 1 ? "" : ",",
                           bin.low, bin.high);
        return entry->second;
    }
    std::string_view texts() const { return {text_list_.data(), text_list_.size()}; }
    std::string_view edge_numbers() const { return {edge_list_.data(), edge_list_.size()}; }
    std::size_t bytes() const { return text_list_.size() + edge_list_.size(); }

 private:
    struct PairHash {
        std::size_t operator()(const std::pair<std::uint64_t, std::uint64_t>& pair) const {
            return (pair.first * 0x9e3779b97f4a7c15u) ^ (pair.second + (pair.first >> 9));
        }
    };
    std::unordered_map<std::string, std::size_t> texts_;
    std::unordered_map<std::pair<std::uint64_t, std::uint64_t>, std::size_t, PairHash> edges_;
    Buffer text_list_;
    Buffer edge_list_;
};

void put_histogram(Buffer& out, Pool& pool, const Histogram& histogram) {
    put(out, "[");
    put_number(out, histogram.cold);
    put(out, ",");
    put_number(out, histogram.invalidated);
    for (const Bin& bin : histogram.bins) {
        fmt::format_to(std::back_inserter(out), ",{},", pool.edges(bin));
        put_number(out, bin.count);
    }
    put(out, "]");
}

void put_errors(Buffer& out, std::string_view key, const Histogram& histogram) {
    bool any = histogram.cold_error > 0 || histogram.invalidated_error > 0;
    for (const Bin& bin : histogram.bins) any |= bin.error > 0;
    if (!any) return;
    fmt::format_to(std::back_inserter(out), ",\"{}\":[", key);
    put_number(out, histogram.cold_error);
    put(out, ",");
    put_number(out, histogram.invalidated_error);
    for (const Bin& bin : histogram.bins) {
        put(out, ",");
        put_number(out, bin.error);
    }
    put(out, "]");
    if (std::ranges::none_of(histogram.bins, [](const Bin& bin) { return bin.beyond_error > 0; }))
        return;
    fmt::format_to(std::back_inserter(out), ",\"{}Beyond\":[", key);
    for (const Bin& bin : histogram.bins) {
        if (&bin != &histogram.bins.front()) put(out, ",");
        put_number(out, bin.beyond_error);
    }
    put(out, "]");
}

// How much rows matter, heaviest first.
class Ranking {
 public:
    explicit Ranking(const std::vector<CacheSpec>& caches) {
        for (const CacheSpec& cache : caches) tables_.emplace_back(cache);
    }
    template <class Items, class Reuse>
    std::vector<std::uint32_t> order(const Items& items, Reuse reuse) {
        std::vector<std::pair<double, std::uint32_t>> weights;
        weights.reserve(items.size());
        for (std::uint32_t i = 0; i < items.size(); ++i) {
            const Histogram& histogram = reuse(items[i]);
            double total = histogram.total(), weight = 0.01 * total;
            for (HitTable& table : tables_) weight += total - table.hits(histogram);
            weights.emplace_back(-weight, i);
        }
        std::sort(weights.begin(), weights.end());
        std::vector<std::uint32_t> out;
        out.reserve(weights.size());
        for (auto [weight, index] : weights) out.push_back(index);
        return out;
    }

 private:
    std::vector<HitTable> tables_;
};

// Sums what did not fit: few edges, many rows, so counts go into a table by edge.
class Remainder {
 public:
    void add(const Histogram& histogram, double weight) {
        ++number_;
        weight_ += weight;
        cold_ += histogram.cold;
        invalidated_ += histogram.invalidated;
        for (const Bin& bin : histogram.bins) counts_[{bin.low, bin.high}] += bin.count;
    }
    void put_as(Buffer& out, Pool& pool, std::string_view key) const {
        if (number_ == 0) return;
        fmt::format_to(std::back_inserter(out), ",\"{}\":[{},", key, number_);
        put_number(out, weight_);
        put(out, ",[");
        put_number(out, cold_);
        put(out, ",");
        put_number(out, invalidated_);
        for (const auto& [edges, count] : counts_) {
            fmt::format_to(std::back_inserter(out), ",{},",
                           pool.edges({edges.first, edges.second, 0, 0}));
            put_number(out, count);
        }
        put(out, "]]");
    }

 private:
    std::size_t number_ = 0;
    double weight_ = 0, cold_ = 0, invalidated_ = 0;
    std::map<std::pair<std::uint64_t, std::uint64_t>, double> counts_;
};

// Contexts of the rows that are in, and their callers, under new numbers.
class ContextList {
 public:
    explicit ContextList(const Profile& profile) : profile_(profile) {
        if (!profile.contexts.empty()) kept_.push_back(0);
    }
    const Profile& profile() const { return profile_; }
    std::size_t number(std::uint32_t context) {
        if (context == 0 || context >= profile_.contexts.size()) return 0;
        // Callers first; a path may be long, so no recursion.
        std::vector<std::uint32_t> path;
        for (std::uint32_t at = context; at != 0 && !numbers_.contains(at);
             at = profile_.contexts[at].parent)
            path.push_back(at);
        for (auto at = path.rbegin(); at != path.rend(); ++at) {
            numbers_[*at] = kept_.size();
            kept_.push_back(*at);
        }
        return numbers_[context];
    }
    void put_as_list(Buffer& out, Pool& pool) {
        put(out, ",\"contexts\":[");
        for (std::size_t i = 0; i < kept_.size(); ++i) {
            const Context& context = profile_.contexts[kept_[i]];
            fmt::format_to(std::back_inserter(out), "{}[{},{},{},{},{},{}]", i == 0 ? "" : ",",
                           number(context.parent), pool.text(context.frame.function),
                           pool.text(context.frame.file), context.frame.line, pool.text(context.module),
                           context.offset);
        }
        put(out, "]");
    }

 private:
    const Profile& profile_;
    std::vector<std::uint32_t> kept_;
    std::unordered_map<std::uint32_t, std::size_t> numbers_;
};

struct Budget {
    std::size_t sites, pairs, objects, phases;
};

// Three numbers; none where nothing follows and nothing was fetched.
void put_line_use(Buffer& out, const LineUse& use, bool something_follows) {
    if (use.fetches <= 0 && !something_follows) return;
    for (double value : {use.fetches, use.bytes, use.error}) {
        put(out, ",");
        put_number(out, value);
    }
}

void put_site(Buffer& out, Pool& pool, const Site& site) {
    fmt::format_to(std::back_inserter(out), "[{},{},{},{},{},{},", site.id, pool.text(site.module),
                   site.offset, pool.text(site.frame.function), pool.text(site.frame.file),
                   site.frame.line);
    put_number(out, site.accesses);
    put(out, ",");
    put_number(out, site.writes);
    put(out, ",");
    put_histogram(out, pool, site.reuse);
    const bool measured =
        site.time_share || site.regular || site.line_use.fetches > 0 || !site.member.empty();
    if (measured || !site.inlined.empty() || site.loop.line != 0 || !site.data.empty()) {
        put(out, ",[");
        for (std::size_t i = 0; i < site.inlined.size(); ++i)
            fmt::format_to(std::back_inserter(out), "{}[{},{},{}]", i == 0 ? "" : ",",
                           pool.text(site.inlined[i].function), pool.text(site.inlined[i].file),
                           site.inlined[i].line);
        put(out, "]");
    }
    if (site.loop.line != 0)
        fmt::format_to(std::back_inserter(out), ",[{},{},{}]", pool.text(site.loop.function),
                       pool.text(site.loop.file), site.loop.line);
    else if (measured || !site.data.empty())
        put(out, ",0");
    if (measured || !site.data.empty())
        fmt::format_to(std::back_inserter(out), ",{}", pool.text(site.data));
    if (measured)
        fmt::format_to(std::back_inserter(out), ",{:.4g},{:.4g}", site.time_share.value_or(-1),
                       site.regular.value_or(-1));
    put_line_use(out, site.line_use, !site.member.empty());
    if (!site.member.empty())
        fmt::format_to(std::back_inserter(out), ",{},{}", pool.text(site.member), site.member_offset);
    put(out, "]");
}

// Shared lines, with what the terminal says of them too, and the records of who invalidates whom: both
// are few.
void put_sharing(Buffer& out, const Profile& profile) {
    Json lines = Json::array(), list = Json::array();
    auto side = [](const SharingSide& from) {
        Json bytes = Json::array();
        for (unsigned at = 0; at < 64; ++at) {
            if ((from.bytes >> at & 1) == 0) continue;
            unsigned end = at;
            while (end < 64 && (from.bytes >> end & 1) != 0) ++end;
            bytes.push_back({at, end});
            at = end;
        }
        Json out{{"site", from.site}, {"thread", from.thread}, {"write", from.write}, {"bytes", bytes}};
        // A leaf of the compiler's library has the line of its caller, which its site has not.
        if (from.frame.line != 0)
            out["place"] = fmt::format(
                "{}:{}", std::filesystem::path(from.frame.file).filename().string(), from.frame.line);
        return out;
    };
    auto name = [](std::uint64_t line) { return fmt::format("{:#x}", line); };
    for (const SharedLine& line : shared_lines(profile)) {
        const SharingVerdict verdict = sharing_verdict(line, profile);
        lines.push_back({{"line", name(line.line)},
                         {"object", line.object},
                         {"offset", line.offset},
                         {"count", line.invalidated},
                         {"false_count", line.false_sharing},
                         {"verdict", verdict.text},
                         {"gain", verdict.is_gain},
                         {"advice", sharing_advice(line, profile)}});
    }
    for (const Sharing& one : profile.sharing)
        list.push_back({{"line", name(one.line)},
                        {"writer", side(one.writer)},
                        {"victim", side(one.victim)},
                        {"count", one.count},
                        {"false_sharing", one.false_sharing}});
    auto put_json = [&](std::string_view key, const Json& value) {
        fmt::format_to(std::back_inserter(out), ",\"{}\":{}", key,
                       in_script(value.dump(-1, ' ', true, Json::error_handler_t::replace)));
    };
    put_json("sharedLines", lines);
    put_json("sharing", list);
}

// With call paths a pair also has where they meet: how many calls they share, and the user's function.
void put_pair(Buffer& out, Pool& pool, ContextList& contexts, const SiteIndex& sites,
              const Pair& pair) {
    fmt::format_to(std::back_inserter(out), "[{},{},{},{},", pair.use, pair.reuse,
                   contexts.number(pair.use_context), contexts.number(pair.reuse_context));
    put_number(out, pair.count);
    put(out, ",");
    put_histogram(out, pool, pair.distances);
    if (!contexts.profile().contexts.empty()) {
        Meeting meeting =
            meeting_of(contexts.profile(), pair, sites.find(pair.use), sites.find(pair.reuse));
        fmt::format_to(std::back_inserter(out), ",{}", meeting.shared);
        if (meeting.at)
            fmt::format_to(std::back_inserter(out), ",{}", pool.text(frame_place(*meeting.at)));
    }
    put(out, "]");
}

void put_object(Buffer& out, Pool& pool, ContextList& contexts, const Object& object) {
    fmt::format_to(std::back_inserter(out), "[{},{},{},{},", pool.text(object.kind),
                   pool.text(object.name), object.bytes, contexts.number(object.context));
    put_number(out, object.accesses);
    put(out, ",");
    put_histogram(out, pool, object.reuse);
    put_line_use(out, object.line_use, !object.type.empty());
    if (!object.type.empty())
        fmt::format_to(std::back_inserter(out), ",{},{}", pool.text(object.type), object.type_bytes);
    put(out, "]");
}

// Rows heaviest first until `most` bytes, texts they brought along included; the rest into a sum.
template <class Items, class Reuse, class Weight, class Put>
void put_rows(Buffer& out, Pool& pool, Ranking& ranking, std::string_view key,
              std::string_view rest_key, const Items& items, std::size_t most, Reuse reuse,
              Weight weight, Put put_row) {
    fmt::format_to(std::back_inserter(out), ",\"{}\":[", key);
    Remainder rest;
    std::size_t start = out.size() + pool.bytes();
    bool first = true, full = false;
    for (std::uint32_t index : ranking.order(items, reuse)) {
        const auto& item = items[index];
        full = full || out.size() + pool.bytes() - start > most;
        if (full) {
            rest.add(reuse(item), weight(item));
            continue;
        }
        put(out, first ? "" : ",");
        first = false;
        put_row(item);
    }
    put(out, "]");
    rest.put_as(out, pool, rest_key);
}

void put_profile(Buffer& out, Pool& pool, const PageProfile& entry, const Profile& first,
                 const PageOptions& options, const Budget& budget) {
    const Profile& profile = entry.profile;
    auto text = [&](std::string_view key, const std::string& value) {
        fmt::format_to(std::back_inserter(out), ",\"{}\":{}", key, json_text(value));
    };
    auto texts = [&](std::string_view key, const std::vector<std::string>& values) {
        fmt::format_to(std::back_inserter(out), ",\"{}\":[", key);
        for (std::size_t i = 0; i < values.size(); ++i)
            put(out, (i == 0 ? "" : ",") + json_text(values[i]));
        put(out, "]");
    };
    put(out, "{\"label\":");
    put(out, json_text(entry.label));
    text("method", profile.method);
    text("model", profile.model);
    text("machine", profile.machine);
    text("clock", profile.clock);
    texts("command", profile.command);
    texts("notes", profile.notes);
    if (profile.line_use)
        fmt::format_to(std::back_inserter(out), ",\"lineUse\":{{\"cache\":{},\"line\":{}}}",
                       json_text(profile.line_use->cache), profile.line_use->line);
    fmt::format_to(std::back_inserter(out), ",\"granularity\":{},\"accesses\":", profile.granularity);
    put_number(out, profile.accesses);
    put(out, ",\"distinct\":");
    put_number(out, profile.distinct);
    if (profile.sampled)
        fmt::format_to(std::back_inserter(out),
                       ",\"sampled\":{{\"period\":{},\"samples\":{},\"pruned\":{}}}",
                       profile.sampled->period, profile.sampled->samples, profile.sampled->pruned);
    text("accessesError", accesses_error_text(profile));
    text("distinctRange", distinct_range_text(profile));
    put(out, ",\"report\":");
    put(out, in_script(findings_json(findings_of(profile, options.caches), profile)));
    if (&profile != &first && profile.granularity == first.granularity)
        fmt::format_to(std::back_inserter(out), ",\"similarity\":{:.9g}",
                       similarity(first.reuse, profile.reuse));
    if (!profile.sharing.empty()) put_sharing(out, profile);
    put(out, ",\"reuse\":");
    put_histogram(out, pool, profile.reuse);
    put_errors(out, "reuseError", profile.reuse);
    if (profile.time) {
        put(out, ",\"time\":");
        put_histogram(out, pool, *profile.time);
        put_errors(out, "timeError", *profile.time);
    }
    if (profile.shared) {
        put(out, ",\"shared\":");
        put_histogram(out, pool, *profile.shared);
    }

    Ranking ranking(options.caches);
    ContextList contexts(profile);
    SiteIndex sites(profile);
    put_rows(
        out, pool, ranking, "sites", "restSites", profile.sites, budget.sites,
        [](const Site& site) -> const Histogram& { return site.reuse; },
        [](const Site& site) { return site.accesses; },
        [&](const Site& site) { put_site(out, pool, site); });
    put_rows(
        out, pool, ranking, "pairs", "restPairs", profile.pairs, budget.pairs,
        [](const Pair& pair) -> const Histogram& { return pair.distances; },
        [](const Pair& pair) { return pair.count; },
        [&](const Pair& pair) { put_pair(out, pool, contexts, sites, pair); });
    put_rows(
        out, pool, ranking, "objects", "restObjects", profile.objects, budget.objects,
        [](const Object& object) -> const Histogram& { return object.reuse; },
        [](const Object& object) { return object.accesses; },
        [&](const Object& object) { put_object(out, pool, contexts, object); });
    // First touches and invalidated reuses: what pairs have no call path for.
    put(out, ",\"touches\":[");
    for (std::size_t i = 0, begin = out.size(); i < profile.touches.size(); ++i) {
        if (out.size() - begin > budget.objects) break;
        const FirstTouch& touch = profile.touches[i];
        fmt::format_to(std::back_inserter(out), "{}[{},{},", i == 0 ? "" : ",", touch.site,
                       contexts.number(touch.context));
        put_number(out, touch.cold);
        put(out, ",");
        put_number(out, touch.invalidated);
        put(out, "]");
    }
    put(out, "]");
    contexts.put_as_list(out, pool);
    put(out, ",\"threads\":[");
    for (std::size_t i = 0; i < profile.threads.size(); ++i) {
        fmt::format_to(std::back_inserter(out), "{}[{},", i == 0 ? "" : ",", profile.threads[i].id);
        put_number(out, profile.threads[i].accesses);
        put(out, ",");
        put_histogram(out, pool, profile.threads[i].reuse);
        put(out, "]");
    }
    put(out, "],\"phases\":[");
    const std::size_t phases_end = out.size() + budget.phases;
    for (std::size_t i = 0; i < profile.phases.size(); ++i) {
        const Phase& phase = profile.phases[i];
        put(out, i == 0 ? "[" : ",[");
        for (double value : {phase.begin, phase.end, phase.distinct}) {
            put_number(out, value);
            put(out, ",");
        }
        put_histogram(out, pool, phase.reuse);
        for (std::size_t k = 0; k < phase.sites.size() && out.size() < phases_end; ++k) {
            fmt::format_to(std::back_inserter(out), "{}[{},", k == 0 ? ",[" : ",", phase.sites[k].site);
            put_histogram(out, pool, phase.sites[k].reuse);
            put(out, "]");
            if (k + 1 == phase.sites.size() || out.size() >= phases_end) put(out, "]");
        }
        put(out, "]");
    }
    put(out, "]}");
}

// A profile can name any file. Only what looks like a program's source is read into a page.
bool is_source_name(std::string_view file) {
    static constexpr std::string_view kEndings[] = {
        ".c",   ".cc",  ".cpp", ".cxx", ".c++", ".C",   ".h",     ".hh",  ".hpp",
        ".hxx", ".inl", ".ipp", ".cu",  ".cuh", ".f",   ".f90",   ".f95", ".F",
        ".F90", ".for", ".rs",  ".go",  ".d",   ".zig", ".swift", ".m",   ".mm",
        ".S",   ".s",   ".asm", ".adb", ".pas", ".nim", ".jl",    ".ll"};
    return std::any_of(std::begin(kEndings), std::end(kEndings),
                       [&](std::string_view ending) { return file.ends_with(ending); });
}

// Source files that sites name and that can be read, in the order of the sites, up to `most` bytes.
std::string sources_list(const std::vector<PageProfile>& profiles, Pool& pool, std::size_t most) {
    std::string out;
    std::unordered_set<std::string> seen;
    for (const PageProfile& entry : profiles)
        for (const Site& site : entry.profile.sites) {
            const std::string& file = site.frame.file;
            if (!is_source_name(file) || !seen.insert(file).second) continue;
            auto content = read_file(file);
            if (!content || content->size() > kLargestSource) continue;
            std::string row = fmt::format("[{},{}]", pool.text(file), json_text(*content));
            if (out.size() + row.size() > most) continue;
            out += (out.empty() ? "" : ",") + row;
        }
    return out;
}

}  // namespace

Result<std::string> html_page(const std::vector<PageProfile>& profiles, const PageOptions& options) {
    std::string_view page = page_template();
    std::size_t mark = page.find(kDataMark);
    if (page.empty() || mark == std::string_view::npos)
        return fail("the HTML page is not in this build; install esbuild (or nodejs) and build again");

    std::size_t each = options.most_bytes / std::max<std::size_t>(1, profiles.size());
    Budget budget{each * 30 / 100, each * 35 / 100, each * 10 / 100, each * 10 / 100};
    Pool pool;
    Buffer list;
    for (std::size_t i = 0; i < profiles.size(); ++i) {
        put(list, i == 0 ? "" : ",\n");
        put_profile(list, pool, profiles[i], profiles.front().profile, options, budget);
    }
    std::string sources =
        options.sources ? sources_list(profiles, pool, options.most_bytes / 10) : std::string();
    const std::string listings =
        options.disassembly
            ? in_script(listings_list(profiles, options.caches, options.most_bytes / 10))
            : std::string();
    std::string caches;
    for (const CacheSpec& cache : options.caches)
        caches += fmt::format("{}{{\"name\":{},\"bytes\":{},\"ways\":{},\"line\":{}}}",
                              caches.empty() ? "" : ",", json_text(cache.name), cache.bytes,
                              cache.associativity() == cache.blocks() ? 0 : cache.ways, cache.line);
    return fmt::format(
        "{}{{\"schema\":\"revisit/page@1\",\"caches\":[{}],\"cachesAreHosts\":{},\n\"strings\":[{}],\n"
        "\"edges\":[{}],\n\"profiles\":[{}],\n\"sources\":[{}],\n\"listings\":[{}]}}{}",
        page.substr(0, mark), caches, options.caches_are_hosts, pool.texts(), pool.edge_numbers(),
        std::string_view(list.data(), list.size()), sources, listings,
        page.substr(mark + kDataMark.size()));
}

}  // namespace revisit
