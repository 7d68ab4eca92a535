// A profile written as JSON, and the files it lies in. Reading is in profile_read.cpp.
#include "core/profile_json.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/files.h"
#include "core/try.h"
#include "revisit/profile.h"

namespace revisit {
namespace {

using Json = nlohmann::ordered_json;

// Whole counts are written as integers: 60, not 60.0.
Json number(double value) {
    if (value == std::floor(value) && std::fabs(value) < 9.007199254740992e15)
        return static_cast<std::int64_t>(value);
    return value;
}

Json histogram_json(const Histogram& histogram) {
    Json out = {{"cold", number(histogram.cold)}, {"invalidated", number(histogram.invalidated)}};
    Json bins = Json::array();
    bool estimated = histogram.cold_error > 0 || histogram.invalidated_error > 0, beyond = false;
    for (const Bin& bin : histogram.bins) {
        bins.push_back({bin.low, bin.high, number(bin.count)});
        estimated |= bin.error > 0;
        beyond |= bin.beyond_error > 0;
    }
    out["bins"] = std::move(bins);
    if (estimated) {  // 95 % half-widths, bin by bin
        Json errors = Json::array();
        for (const Bin& bin : histogram.bins) errors.push_back(number(bin.error));
        out["error"] = {{"cold", number(histogram.cold_error)},
                        {"invalidated", number(histogram.invalidated_error)},
                        {"bins", std::move(errors)}};
    }
    if (beyond)  // … of all from the bin on
        for (const Bin& bin : histogram.bins)
            out["error"]["beyond"].push_back(number(bin.beyond_error));
    return out;
}

void put_frame(Json& out, const Frame& frame) {
    if (!frame.function.empty()) out["function"] = frame.function;
    if (!frame.file.empty()) out["file"] = frame.file;
    if (frame.line != 0) out["line"] = frame.line;
}

// Runs of bits as ranges, the end not included.
Json ranges_json(std::uint64_t bits) {
    Json out = Json::array();
    for (unsigned at = 0; at < 64; ++at) {
        if ((bits >> at & 1) == 0) continue;
        unsigned end = at;
        while (end < 64 && (bits >> end & 1) != 0) ++end;
        out.push_back({at, end});
        at = end;
    }
    return out;
}

void put_simulated(Json& out, const std::vector<double>& misses) {
    if (misses.empty()) return;
    for (const double one : misses) out["simulated_misses"].push_back(number(one));
}

void put_line_use(Json& out, const LineUse& use) {
    if (use.fetches == 0) return;
    out["fetches"] = number(use.fetches);
    out["used_bytes"] = number(use.bytes);
    out["used_parts"] = ranges_json(use.parts);
    if (use.error > 0) out["used_error"] = number(use.error);
}

Json site_json(const Site& site) {
    Json out = {{"id", site.id}};
    if (!site.module.empty()) out["module"] = site.module;
    if (site.offset != 0) out["offset"] = site.offset;
    put_frame(out, site.frame);
    for (const Frame& frame : site.inlined) {
        Json inlined = Json::object();
        put_frame(inlined, frame);
        out["inlined"].push_back(std::move(inlined));
    }
    if (site.loop.line != 0) {
        out["loop"] = Json::object();
        put_frame(out["loop"], site.loop);
    }
    if (!site.data.empty()) out["data"] = site.data;
    if (!site.member.empty()) {
        out["member"] = site.member;
        out["member_offset"] = site.member_offset;
    }
    out["accesses"] = number(site.accesses);
    if (site.writes != 0) out["writes"] = number(site.writes);
    if (site.time_share) out["time_share"] = *site.time_share;
    if (site.regular) out["regular"] = *site.regular;
    put_line_use(out, site.line_use);
    put_simulated(out, site.simulated);
    out["reuse"] = histogram_json(site.reuse);
    return out;
}

Json touch_json(const FirstTouch& touch) {
    Json out = {{"site", touch.site}};
    if (touch.context != 0) out["context"] = touch.context;
    if (touch.cold != 0) out["cold"] = number(touch.cold);
    if (touch.invalidated != 0) out["invalidated"] = number(touch.invalidated);
    return out;
}

Json context_json(const Context& context) {
    Json out = {{"parent", context.parent}};
    if (!context.module.empty()) out["module"] = context.module;
    if (context.offset != 0) out["offset"] = context.offset;
    put_frame(out, context.frame);
    return out;
}

Json pair_json(const Pair& pair) {
    Json out = {{"use", pair.use}, {"reuse", pair.reuse}};
    if (pair.use_context != 0) out["use_context"] = pair.use_context;
    if (pair.reuse_context != 0) out["reuse_context"] = pair.reuse_context;
    out["count"] = number(pair.count);
    out["distances"] = histogram_json(pair.distances);
    return out;
}

Json object_json(const Object& object) {
    Json out = {{"kind", object.kind}, {"name", object.name}, {"bytes", object.bytes}};
    if (!object.type.empty()) {
        out["type"] = object.type;
        out["type_bytes"] = object.type_bytes;
    }
    if (object.context != 0) out["context"] = object.context;
    out["accesses"] = number(object.accesses);
    put_line_use(out, object.line_use);
    put_simulated(out, object.simulated);
    out["reuse"] = histogram_json(object.reuse);
    return out;
}

// Names from profiled programs need not be UTF-8; what is not becomes U+FFFD.
std::string dump(const Json& json, int indent) {
    return json.dump(indent, ' ', false, nlohmann::json::error_handler_t::replace);
}

// One entry a line: a profile stays readable and diffable without a line a number.
void put_list(std::string& out, std::string_view key, const auto& items, const auto& to_json_of) {
    if (items.empty()) return;
    out += fmt::format(",\n  \"{}\": [", key);
    const char* separator = "\n    ";
    for (const auto& item : items) {
        out += separator;
        out += dump(to_json_of(item), -1);
        separator = ",\n    ";
    }
    out += "\n  ]";
}

Json side_json(const SharingSide& side) {
    Json out = {{"site", side.site}};
    if (side.context != 0) out["context"] = side.context;
    out["thread"] = side.thread;
    out["write"] = side.write;
    out["bytes"] = ranges_json(side.bytes);
    if (!side.object.empty()) {
        out["object"] = side.object;
        out["offset"] = side.offset;
    }
    put_frame(out, side.frame);
    return out;
}

Json sharing_json(const Sharing& one) {
    Json out = {{"line", one.line}};
    if (!one.victim.object.empty()) {
        out["object"] = one.victim.object;
        out["offset"] = one.victim.offset;
    }
    out["writer"] = side_json(one.writer);
    out["victim"] = side_json(one.victim);
    out["count"] = number(one.count);
    out["false_sharing"] = one.false_sharing;
    if (one.error > 0) out["error"] = number(one.error);
    return out;
}

Json phase_json(const Phase& phase) {
    Json out = {{"begin", number(phase.begin)},
                {"end", number(phase.end)},
                {"distinct", number(phase.distinct)},
                {"reuse", histogram_json(phase.reuse)}};
    for (const PhaseSite& one : phase.sites)
        out["sites"].push_back({{"site", one.site},
                                {"accesses", number(one.accesses)},
                                {"reuse", histogram_json(one.reuse)}});
    return out;
}

void put(std::string& out, std::string_view key, const Json& value) {
    out += fmt::format("{}\n  \"{}\": {}", out.size() == 1 ? "" : ",", key, dump(value, -1));
}

}  // namespace

std::string to_json(const Profile& profile) {
    return profile_json(profile, Json::object());
}

std::string profile_json(const Profile& profile, const Json& more) {
    std::string out = "{";
    put(out, "schema", kProfileSchema);
    put(out, "method", profile.method);
    put(out, "model", profile.model);
    put(out, "granularity", profile.granularity);
    put(out, "accesses", number(profile.accesses));
    put(out, "distinct", number(profile.distinct));
    put(out, "reuse", histogram_json(profile.reuse));
    if (profile.time) put(out, "time", histogram_json(*profile.time));
    if (profile.shared) put(out, "shared", histogram_json(*profile.shared));
    if (profile.sampled) {
        Json sampled = {{"period", number(profile.sampled->period)},
                        {"samples", number(profile.sampled->samples)},
                        {"pruned", number(profile.sampled->pruned)}};
        if (profile.sampled->accesses_error > 0)
            sampled["accesses_error"] = number(profile.sampled->accesses_error);
        if (profile.sampled->distinct_high > 0) {
            sampled["distinct_low"] = number(profile.sampled->distinct_low);
            sampled["distinct_high"] = number(profile.sampled->distinct_high);
        }
        put(out, "sampled", sampled);
    }
    if (profile.certainty) {
        put(out, "certainty", name_of(*profile.certainty));
        put(out, "exact", *profile.exact());
    }
    if (!profile.assumes.empty()) put(out, "assumes", profile.assumes);
    if (!profile.machine.empty()) put(out, "machine", profile.machine);
    if (!profile.command.empty()) put(out, "command", profile.command);
    if (!profile.clock.empty()) put(out, "clock", profile.clock);
    if (!profile.notes.empty()) put(out, "notes", profile.notes);
    put_list(out, "threads", profile.threads, [](const ThreadProfile& thread) {
        return Json{{"id", thread.id},
                    {"accesses", number(thread.accesses)},
                    {"reuse", histogram_json(thread.reuse)}};
    });
    put_list(out, "sites", profile.sites, site_json);
    put_list(out, "contexts", profile.contexts, context_json);
    put_list(out, "pairs", profile.pairs, pair_json);
    put_list(out, "touches", profile.touches, touch_json);
    put_list(out, "objects", profile.objects, object_json);
    put_list(out, "phases", profile.phases, phase_json);
    put_list(out, "runs", profile.runs, [](const RunGroup& group) {
        return Json{{"runs", number(group.runs)},
                    {"accesses", number(group.accesses)},
                    {"distinct", number(group.distinct)},
                    {"reuse", histogram_json(group.reuse)}};
    });
    put_list(out, "processes", profile.processes, [](const ProcessSummary& process) {
        Json one{{"pid", process.pid}};
        if (process.parent != 0) one["parent"] = process.parent;
        one["command"] = process.command;
        one["accesses"] = number(process.accesses);
        one["samples"] = number(process.samples);
        one["seconds"] = process.seconds;
        return one;
    });
    put_list(out, "caches", profile.caches, [](const SimulatedCache& one) {
        Json entry{{"name", one.spec.name},
                   {"bytes", one.spec.bytes},
                   {"ways", one.spec.associativity()},
                   {"line", one.spec.line},
                   {"accesses", number(one.accesses)},
                   {"misses", number(one.misses)}};
        if (one.error > 0) entry["error"] = number(one.error);
        for (const auto& [first, last] : one.crowded) entry["crowded_sets"].push_back({first, last});
        if (!one.crowded.empty()) entry["crowded_misses"] = number(one.crowded_misses);
        return entry;
    });
    put_list(out, "filters", profile.filters, [](const PrivateFilter& one) {
        auto depths = [](const SetDepths& of) {
            Json counts = Json::array();
            for (double count : of.counts) counts.push_back(number(count));
            return counts;
        };
        Json entry{{"sets", one.own.sets}, {"ways", one.ways}, {"depths", depths(one.own)}};
        for (const SetDepths& of : one.shared)
            entry["shared"].push_back({{"sets", of.sets}, {"depths", depths(of)}});
        return entry;
    });
    put_list(out, "granularities", profile.granularities, [](const GranularityProfile& one) {
        return Json{{"granularity", one.granularity},
                    {"distinct", number(one.distinct)},
                    {"reuse", histogram_json(one.reuse)}};
    });
    if (profile.line_use) {
        Json totals = {{"cache", profile.line_use->cache}, {"line", profile.line_use->line}};
        put_line_use(totals, profile.line_use->use);
        put(out, "line_use", totals);
    }
    if (profile.sharing_totals) {
        Json totals = {{"invalidated", number(profile.sharing_totals->invalidated)},
                       {"false_sharing", number(profile.sharing_totals->false_sharing)},
                       {"unlisted", number(profile.sharing_totals->unlisted)}};
        if (profile.sharing_totals->error > 0) totals["error"] = number(profile.sharing_totals->error);
        put(out, "sharing_totals", totals);
    }
    put_list(out, "sharing", profile.sharing, sharing_json);
    for (const auto& [key, value] : more.items()) put(out, key, value);
    out += "\n}\n";
    return out;
}

Result<Profile> load_profile(const std::string& path) {
    auto text = TRY(read_file(path));
    return profile_from_json(text, path == "-" ? "standard input" : path);
}

Result<void> save_profile(const Profile& profile, const std::string& path) {
    return write_file(path, to_json(profile));
}

}  // namespace revisit
