// A profile as JSON, both ways.
//
// Reading trusts nothing: every number is checked to be finite and not negative, bins to rise without
// overlap, references to stay inside their tables. What a newer revisit added as extra keys is ignored;
// a newer schema version is refused.
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/files.h"
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
    bool estimated = histogram.cold_error > 0 || histogram.invalidated_error > 0;
    for (const Bin& bin : histogram.bins) {
        bins.push_back({bin.low, bin.high, number(bin.count)});
        estimated |= bin.error > 0;
    }
    out["bins"] = std::move(bins);
    if (estimated) {  // 95 % half-widths, bin by bin
        Json errors = Json::array();
        for (const Bin& bin : histogram.bins) errors.push_back(number(bin.error));
        out["error"] = {{"cold", number(histogram.cold_error)},
                        {"invalidated", number(histogram.invalidated_error)},
                        {"bins", std::move(errors)}};
    }
    return out;
}

void put_frame(Json& out, const Frame& frame) {
    if (!frame.function.empty()) out["function"] = frame.function;
    if (!frame.file.empty()) out["file"] = frame.file;
    if (frame.line != 0) out["line"] = frame.line;
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
    out["accesses"] = number(site.accesses);
    if (site.writes != 0) out["writes"] = number(site.writes);
    out["reuse"] = histogram_json(site.reuse);
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
    if (object.context != 0) out["context"] = object.context;
    out["accesses"] = number(object.accesses);
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

void put(std::string& out, std::string_view key, const Json& value) {
    out += fmt::format("{}\n  \"{}\": {}", out.size() == 1 ? "" : ",", key, dump(value, -1));
}

// Collects the first thing that is wrong, with the key it is at.
class Reader {
 public:
    explicit Reader(std::string file) : file_(std::move(file)) {}

    bool failed() const { return failed_; }
    Error error() const { return error_; }
    void complain(const std::string& where, const std::string& message) {
        if (failed_) return;
        failed_ = true;
        error_ = {file_, where, message};
    }

    double number(const Json& json, const std::string& where) {
        double value = json.is_number() ? json.get<double>() : -1;
        if (!std::isfinite(value) || value < 0) {
            complain(where, "expected a number that is not negative");
            return 0;
        }
        return value;
    }
    double number_at(const Json& json, const char* key, const std::string& where,
                     double otherwise = 0) {
        auto found = json.find(key);
        return found == json.end() ? otherwise : number(*found, where + "." + key);
    }
    std::uint64_t whole(const Json& json, const std::string& where) {
        if (json.is_number_unsigned()) return json.get<std::uint64_t>();
        double value = number(json, where);
        if (value != std::floor(value) || value >= 18446744073709551616.0) {
            complain(where, "expected a whole number");
            return 0;
        }
        return static_cast<std::uint64_t>(value);
    }
    std::uint64_t whole_at(const Json& json, const char* key, const std::string& where,
                           std::uint64_t otherwise = 0) {
        auto found = json.find(key);
        return found == json.end() ? otherwise : whole(*found, where + "." + key);
    }
    std::uint32_t index_at(const Json& json, const char* key, const std::string& where) {
        std::uint64_t value = whole_at(json, key, where);
        if (value > 0xffffffffu) complain(where + "." + key, "expected a number below 2^32");
        return static_cast<std::uint32_t>(value);
    }
    std::string text_at(const Json& json, const char* key, const std::string& where) {
        auto found = json.find(key);
        if (found == json.end()) return {};
        if (!found->is_string()) {
            complain(where + "." + key, "expected a string");
            return {};
        }
        return found->get<std::string>();
    }
    Frame frame(const Json& json, const std::string& where) {
        return {text_at(json, "function", where), text_at(json, "file", where),
                index_at(json, "line", where)};
    }

    Histogram histogram(const Json& json, const std::string& where) {
        Histogram out;
        if (!json.is_object()) {
            complain(where, "expected an object with cold, invalidated and bins");
            return out;
        }
        out.cold = number_at(json, "cold", where);
        out.invalidated = number_at(json, "invalidated", where);
        auto bins = json.find("bins");
        if (bins == json.end() || !bins->is_array()) {
            complain(where + ".bins", "expected an array of [low, high, count]");
            return out;
        }
        out.bins.reserve(bins->size());
        for (const Json& bin : *bins) {
            std::string at = fmt::format("{}.bins[{}]", where, out.bins.size());
            if (!bin.is_array() || bin.size() != 3) {
                complain(at, "expected [low, high, count]");
                return out;
            }
            Bin parsed{whole(bin[0], at), whole(bin[1], at), number(bin[2], at), 0};
            if (parsed.low >= parsed.high) complain(at, "expected low below high");
            if (!out.bins.empty() && parsed.low < out.bins.back().high)
                complain(at, "expected bins in rising order without overlap");
            if (failed_) return out;
            out.bins.push_back(parsed);
        }
        auto error = json.find("error");
        if (error != json.end() && error->is_object()) {
            out.cold_error = number_at(*error, "cold", where + ".error");
            out.invalidated_error = number_at(*error, "invalidated", where + ".error");
            auto errors = error->find("bins");
            if (errors != error->end() && errors->is_array() && errors->size() == out.bins.size())
                for (std::size_t i = 0; i < out.bins.size(); ++i)
                    out.bins[i].error = number((*errors)[i], where + ".error.bins");
        }
        return out;
    }
    Histogram histogram_at(const Json& json, const char* key, const std::string& where) {
        auto found = json.find(key);
        if (found == json.end()) return {};
        return histogram(*found, where + "." + key);
    }

    // Calls `take(entry, where)` for every object of the list `key`.
    template <class Take>
    void each(const Json& json, const char* key, Take take) {
        auto list = json.find(key);
        if (list == json.end() || failed_) return;
        if (!list->is_array()) return complain(key, "expected an array");
        for (std::size_t i = 0; i < list->size() && !failed_; ++i) {
            std::string where = fmt::format("{}[{}]", key, i);
            if (!(*list)[i].is_object()) return complain(where, "expected an object");
            take((*list)[i], where);
        }
    }
    std::vector<std::string> texts(const Json& json, const char* key) {
        std::vector<std::string> out;
        auto list = json.find(key);
        if (list == json.end()) return out;
        if (!list->is_array()) complain(key, "expected an array of strings");
        for (const Json& item : *list) {
            if (!item.is_string()) {
                complain(key, "expected an array of strings");
                break;
            }
            out.push_back(item.get<std::string>());
        }
        return out;
    }

 private:
    std::string file_;
    bool failed_ = false;
    Error error_;
};

Site read_site(Reader& reader, const Json& json, const std::string& where) {
    Site site;
    site.id = reader.index_at(json, "id", where);
    site.module = reader.text_at(json, "module", where);
    site.offset = reader.whole_at(json, "offset", where);
    site.frame = reader.frame(json, where);
    auto inlined = json.find("inlined");
    if (inlined != json.end() && inlined->is_array())
        for (const Json& frame : *inlined)
            if (frame.is_object()) site.inlined.push_back(reader.frame(frame, where + ".inlined"));
    site.accesses = reader.number_at(json, "accesses", where);
    site.writes = reader.number_at(json, "writes", where);
    site.reuse = reader.histogram_at(json, "reuse", where);
    return site;
}

void read_lists(Reader& reader, const Json& json, Profile& profile) {
    reader.each(json, "threads", [&](const Json& entry, const std::string& where) {
        profile.threads.push_back({reader.index_at(entry, "id", where),
                                   reader.number_at(entry, "accesses", where),
                                   reader.histogram_at(entry, "reuse", where)});
    });
    reader.each(json, "sites", [&](const Json& entry, const std::string& where) {
        profile.sites.push_back(read_site(reader, entry, where));
    });
    reader.each(json, "contexts", [&](const Json& entry, const std::string& where) {
        Context context{reader.index_at(entry, "parent", where), reader.text_at(entry, "module", where),
                        reader.whole_at(entry, "offset", where), reader.frame(entry, where)};
        // A parent comes before its children, so a walk to the root always ends.
        if (!profile.contexts.empty() && context.parent >= profile.contexts.size())
            reader.complain(where + ".parent", "expected an earlier context");
        profile.contexts.push_back(std::move(context));
    });
    auto context_at = [&](const Json& entry, const char* key, const std::string& where) {
        std::uint32_t index = reader.index_at(entry, key, where);
        if (index != 0 && index >= profile.contexts.size())
            reader.complain(where + "." + key, "expected the index of a context");
        return index;
    };
    reader.each(json, "pairs", [&](const Json& entry, const std::string& where) {
        profile.pairs.push_back(
            {reader.index_at(entry, "use", where), reader.index_at(entry, "reuse", where),
             context_at(entry, "use_context", where), context_at(entry, "reuse_context", where),
             reader.number_at(entry, "count", where), reader.histogram_at(entry, "distances", where)});
    });
    reader.each(json, "objects", [&](const Json& entry, const std::string& where) {
        profile.objects.push_back(
            {reader.text_at(entry, "kind", where), reader.text_at(entry, "name", where),
             reader.whole_at(entry, "bytes", where), context_at(entry, "context", where),
             reader.number_at(entry, "accesses", where), reader.histogram_at(entry, "reuse", where)});
    });
    reader.each(json, "phases", [&](const Json& entry, const std::string& where) {
        profile.phases.push_back(
            {reader.number_at(entry, "begin", where), reader.number_at(entry, "end", where),
             reader.number_at(entry, "distinct", where), reader.histogram_at(entry, "reuse", where)});
    });
}

}  // namespace

std::string to_json(const Profile& profile) {
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
    if (profile.sampled)
        put(out, "sampled",
            {{"period", number(profile.sampled->period)},
             {"samples", number(profile.sampled->samples)},
             {"pruned", number(profile.sampled->pruned)}});
    if (profile.exact) put(out, "exact", *profile.exact);
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
    put_list(out, "objects", profile.objects, object_json);
    put_list(out, "phases", profile.phases, [](const Phase& phase) {
        return Json{{"begin", number(phase.begin)},
                    {"end", number(phase.end)},
                    {"distinct", number(phase.distinct)},
                    {"reuse", histogram_json(phase.reuse)}};
    });
    out += "\n}\n";
    return out;
}

Result<Profile> profile_from_json(std::string_view text, const std::string& file) {
    Json json;
    try {
        json = Json::parse(text);
    } catch (const nlohmann::json::parse_error& error) {
        return fail(file, fmt::format("byte {}", error.byte),
                    "expected a revisit profile, found broken JSON");
    } catch (const nlohmann::json::exception&) {
        return fail(file, {}, "expected a revisit profile, found JSON out of range");
    }
    auto schema = json.is_object() ? json.find("schema") : json.end();
    if (!json.is_object() || schema == json.end() || !schema->is_string())
        return fail(file, {}, "expected a revisit profile (an object with a \"schema\" key)");
    if (schema->get<std::string>() != kProfileSchema)
        return fail(
            file, "schema",
            fmt::format("expected \"{}\", found \"{}\"", kProfileSchema, schema->get<std::string>()));

    Reader reader(file);
    Profile profile;
    profile.method = reader.text_at(json, "method", "profile");
    profile.model = json.contains("model") ? reader.text_at(json, "model", "profile") : "single";
    profile.granularity = reader.whole_at(json, "granularity", "profile", 64);
    if (profile.granularity == 0) reader.complain("profile.granularity", "expected at least 1");
    profile.accesses = reader.number_at(json, "accesses", "profile");
    profile.distinct = reader.number_at(json, "distinct", "profile");
    if (!json.contains("reuse")) reader.complain("profile", "expected a \"reuse\" histogram");
    profile.reuse = reader.histogram_at(json, "reuse", "profile");
    if (json.contains("time")) profile.time = reader.histogram_at(json, "time", "profile");
    if (json.contains("shared")) profile.shared = reader.histogram_at(json, "shared", "profile");
    auto sampled = json.find("sampled");
    if (sampled != json.end() && sampled->is_object())
        profile.sampled = {reader.number_at(*sampled, "period", "sampled"),
                           reader.number_at(*sampled, "samples", "sampled"),
                           reader.number_at(*sampled, "pruned", "sampled")};
    if (auto exact = json.find("exact"); exact != json.end() && exact->is_boolean())
        profile.exact = exact->get<bool>();
    profile.machine = reader.text_at(json, "machine", "profile");
    profile.command = reader.texts(json, "command");
    profile.clock = reader.text_at(json, "clock", "profile");
    profile.notes = reader.texts(json, "notes");
    read_lists(reader, json, profile);
    if (reader.failed()) return std::unexpected(reader.error());
    return profile;
}

Result<Profile> load_profile(const std::string& path) {
    auto text = read_file(path);
    if (!text) return std::unexpected(text.error());
    return profile_from_json(*text, path == "-" ? "standard input" : path);
}

Result<void> save_profile(const Profile& profile, const std::string& path) {
    return write_file(path, to_json(profile));
}

}  // namespace revisit
