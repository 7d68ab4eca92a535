// A profile read from JSON.
//
// Reading trusts nothing: every number is checked to be finite and not negative, bins to rise without
// overlap, references to stay inside their tables. What a newer revisit added as extra keys is ignored;
// a newer schema version is refused.
#include <fmt/format.h>

#include <algorithm>

#include "core/profile_rows.h"
#include "core/try.h"

namespace revisit {
namespace {

// A key of the profile itself; `take` appends one entry of a list.
class ProfileReader {
 public:
    ProfileReader(JsonReader& in, Profile& profile) : in_(in), profile_(profile) {}

    bool has_schema = false;
    bool has_reuse = false;
    std::string schema;

    void key(std::string_view key) {
        if (key == "schema" && in_.at_text()) {
            schema = in_.text();
            has_schema = true;
            // A minor number after the major one says that keys were added; they are passed over here.
            if (schema != kProfileSchema && !schema.starts_with(std::string(kProfileSchema) + "."))
                in_.complain(fmt::format("expected \"{}\", found \"{}\"", kProfileSchema, schema));
        } else if (key == "method") {
            profile_.method = in_.text();
        } else if (key == "model") {
            profile_.model = in_.text();
        } else if (key == "granularity") {
            profile_.granularity = in_.whole();
            if (profile_.granularity == 0) in_.complain("expected at least 1");
        } else if (key == "accesses") {
            profile_.accesses = in_.number();
        } else if (key == "distinct") {
            profile_.distinct = in_.number();
        } else if (key == "reuse") {
            profile_.reuse = read_histogram(in_);
            has_reuse = true;
        } else if (key == "time") {
            profile_.time = read_histogram(in_);
        } else if (key == "certainty") {
            const auto name = in_.text();
            const auto at = std::find(std::begin(kCertainties), std::end(kCertainties), name);
            if (at == std::end(kCertainties)) in_.complain("expected exact, fitted or estimated");
            profile_.certainty = static_cast<Certainty>(at - std::begin(kCertainties));
        } else if (key == "exact") {  // all that older profiles have
            const auto exact = in_.boolean();
            if (exact && !profile_.certainty)
                profile_.certainty = *exact ? Certainty::exact : Certainty::estimated;
        } else if (key == "shared") {
            profile_.shared = read_histogram(in_);
        } else if (key == "sampled" && in_.at_object()) {
            profile_.sampled = read_sampling(in_);
        } else if (key == "sharing_totals" && in_.at_object()) {
            profile_.sharing_totals = read_sharing_totals(in_);
        } else if (key == "line_use" && in_.at_object()) {
            profile_.line_use = read_line_use(in_);
        } else if (key == "machine") {
            profile_.machine = in_.text();
        } else if (key == "clock") {
            profile_.clock = in_.text();
        } else if (key == "command") {
            texts(profile_.command);
        } else if (key == "notes") {
            texts(profile_.notes);
        } else if (key == "assumes") {
            texts(profile_.assumes);
        } else {
            list(key);
        }
    }

 private:
    void texts(std::vector<std::string>& out) {
        out.clear();
        in_.array("expected an array of strings", [&](std::size_t) { out.push_back(in_.text()); });
    }

    void list(std::string_view key) {
        auto entries = [&](auto& out, auto read) {
            out.clear();
            in_.array("expected an array", [&](std::size_t) { out.push_back(read(in_)); });
        };
        if (key == "threads")
            entries(profile_.threads, read_thread);
        else if (key == "sites")
            entries(profile_.sites, read_site);
        else if (key == "contexts")
            entries(profile_.contexts,
                    [&](JsonReader& in) { return read_context(in, profile_.contexts.size()); });
        else if (key == "pairs")
            entries(profile_.pairs, read_pair);
        else if (key == "touches")
            entries(profile_.touches, read_touch);
        else if (key == "objects")
            entries(profile_.objects, read_object);
        else if (key == "phases")
            entries(profile_.phases, read_phase);
        else if (key == "runs")
            entries(profile_.runs, read_run_group);
        else if (key == "processes")
            entries(profile_.processes, read_process);
        else if (key == "sharing")
            entries(profile_.sharing, read_sharing);
        else if (key == "caches")
            entries(profile_.caches, read_cache);
        else if (key == "filters")
            entries(profile_.filters, read_filter);
        else if (key == "granularities")
            entries(profile_.granularities, read_granularity);
        else
            in_.skip();
    }

    JsonReader& in_;
    Profile& profile_;
};

// Keys come in any order, so references are looked at last.
Result<void> check_references(const Profile& profile, const std::string& file) {
    auto outside = [&](std::uint32_t context) {
        return context != 0 && context >= profile.contexts.size();
    };
    auto bad = [&](std::string_view list, std::size_t index, std::string_view key) {
        return fail(file, fmt::format("{}[{}].{}", list, index, key),
                    "expected the index of a context");
    };
    for (std::size_t i = 0; i < profile.pairs.size(); ++i) {
        if (outside(profile.pairs[i].use_context)) return bad("pairs", i, "use_context");
        if (outside(profile.pairs[i].reuse_context)) return bad("pairs", i, "reuse_context");
    }
    for (std::size_t i = 0; i < profile.touches.size(); ++i)
        if (outside(profile.touches[i].context)) return bad("touches", i, "context");
    for (std::size_t i = 0; i < profile.objects.size(); ++i)
        if (outside(profile.objects[i].context)) return bad("objects", i, "context");
    for (std::size_t i = 0; i < profile.sharing.size(); ++i) {
        if (outside(profile.sharing[i].writer.context)) return bad("sharing", i, "writer.context");
        if (outside(profile.sharing[i].victim.context)) return bad("sharing", i, "victim.context");
    }
    return {};
}

}  // namespace

Result<Profile> profile_from_json(std::string_view text, const std::string& file) {
    JsonReader in(text);
    Profile profile;
    profile.method.clear();
    ProfileReader reader(in, profile);
    auto no_profile = [&] {
        return fail(file, {}, "expected a revisit profile (an object with a \"schema\" key)");
    };
    if (text.empty()) return fail(file, {}, "expected a revisit profile, found nothing");
    if (in.at_array() || in.at_text()) return no_profile();
    if (!in.at_object())
        return fail(file, fmt::format("byte {}", in.byte()),
                    "expected a revisit profile, found broken JSON");
    in.object({}, [&](std::string_view key) { reader.key(key); });
    if (!in.failed()) in.finish();
    if (in.is_broken())
        return fail(file, fmt::format("byte {}", in.byte()),
                    "expected a revisit profile, found broken JSON");
    if (in.failed()) return fail(file, in.where(), in.message());
    if (!reader.has_schema) return no_profile();
    if (!reader.has_reuse) return fail(file, {}, "expected a \"reuse\" histogram");
    TRY(check_references(profile, file));
    return profile;
}

}  // namespace revisit
