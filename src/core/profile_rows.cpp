// The tables of a profile, read from JSON: see profile_rows.h.
#include "core/profile_rows.h"

#include <fmt/format.h>

#include <algorithm>

namespace revisit {

namespace {

constexpr std::string_view kObject = "expected an object";
constexpr std::string_view kArray = "expected an array";

void read_bins(JsonReader& in, std::vector<Bin>& bins) {
    in.array("expected an array of [low, high, count]", [&](std::size_t) {
        Bin bin;
        std::size_t numbers = 0;
        in.array("expected [low, high, count]", [&](std::size_t index) {
            numbers = index + 1;
            if (index == 0)
                bin.low = in.whole();
            else if (index == 1)
                bin.high = in.whole();
            else if (index == 2)
                bin.count = in.number();
            else
                in.skip();
        });
        if (numbers != 3) in.complain("expected [low, high, count]");
        if (bin.low >= bin.high) in.complain("expected low below high");
        if (!bins.empty() && bin.low < bins.back().high)
            in.complain("expected bins in rising order without overlap");
        bins.push_back(bin);
    });
}

}  // namespace

Histogram read_histogram(JsonReader& in) {
    Histogram out;
    bool has_bins = false;
    std::vector<double> errors, beyond;
    in.object("expected an object with cold, invalidated and bins", [&](std::string_view key) {
        if (key == "cold") {
            out.cold = in.number();
        } else if (key == "invalidated") {
            out.invalidated = in.number();
        } else if (key == "bins") {
            has_bins = true;
            out.bins.clear();
            read_bins(in, out.bins);
        } else if (key == "error" && in.at_object()) {
            in.object(kObject, [&](std::string_view part) {
                if (part == "cold") {
                    out.cold_error = in.number();
                } else if (part == "invalidated") {
                    out.invalidated_error = in.number();
                } else if (part == "bins" && in.at_array()) {
                    in.array(kArray, [&](std::size_t) { errors.push_back(in.number()); });
                } else if (part == "beyond" && in.at_array()) {
                    in.array(kArray, [&](std::size_t) { beyond.push_back(in.number()); });
                } else {
                    in.skip();
                }
            });
        } else {
            in.skip();
        }
    });
    if (!has_bins) in.complain("expected an array of [low, high, count]", ".bins");
    if (errors.size() == out.bins.size())
        for (std::size_t i = 0; i < errors.size(); ++i) out.bins[i].error = errors[i];
    if (beyond.size() == out.bins.size())
        for (std::size_t i = 0; i < beyond.size(); ++i) out.bins[i].beyond_error = beyond[i];
    return out;
}

namespace {

bool read_frame_key(JsonReader& in, std::string_view key, Frame& frame) {
    if (key == "function")
        frame.function = in.text();
    else if (key == "file")
        frame.file = in.text();
    else if (key == "line")
        frame.line = in.whole32();
    else
        return false;
    return true;
}

Frame read_frame(JsonReader& in) {
    Frame frame;
    in.object(kObject, [&](std::string_view key) {
        if (!read_frame_key(in, key, frame)) in.skip();
    });
    return frame;
}

std::pair<std::uint64_t, std::uint64_t> read_range(JsonReader& in, std::uint64_t most) {
    std::uint64_t range[2] = {0, 0};
    in.array(kArray, [&](std::size_t i) {
        const std::uint64_t value = in.whole();
        if (i < 2) range[i] = value;
    });
    if (range[0] > range[1] || range[1] > most)
        in.complain(fmt::format("expected a range within 0 … {}", most));
    return {range[0], range[1]};
}

// Bits as ranges, the end not included.
std::uint64_t read_ranges(JsonReader& in) {
    std::uint64_t bits = 0;
    in.array(kArray, [&](std::size_t) {
        const auto [first, end] = read_range(in, 64);
        for (std::uint64_t at = first; at < std::min<std::uint64_t>(end, 64); ++at)
            bits |= std::uint64_t{1} << at;
    });
    return bits;
}

bool read_line_use_key(JsonReader& in, std::string_view key, LineUse& use) {
    if (key == "fetches")
        use.fetches = in.number();
    else if (key == "used_bytes")
        use.bytes = in.number();
    else if (key == "used_parts")
        use.parts = read_ranges(in);
    else if (key == "used_error")
        use.error = in.number();
    else
        return false;
    return true;
}

}  // namespace

Site read_site(JsonReader& in) {
    Site site;
    in.object(kObject, [&](std::string_view key) {
        if (read_frame_key(in, key, site.frame)) return;
        if (key == "id")
            site.id = in.whole32();
        else if (key == "module")
            site.module = in.text();
        else if (key == "offset")
            site.offset = in.whole();
        else if (key == "data")
            site.data = in.text();
        else if (key == "member")
            site.member = in.text();
        else if (key == "member_offset")
            site.member_offset = in.whole();
        else if (key == "accesses")
            site.accesses = in.number();
        else if (key == "writes")
            site.writes = in.number();
        else if (key == "time_share")
            site.time_share = in.number();
        else if (key == "regular")
            site.regular = in.number();
        else if (key == "reuse")
            site.reuse = read_histogram(in);
        else if (key == "inlined")
            in.array(kArray, [&](std::size_t) { site.inlined.push_back(read_frame(in)); });
        else if (key == "loop")
            site.loop = read_frame(in);
        else if (key == "simulated_misses")
            in.array(kArray, [&](std::size_t) { site.simulated.push_back(in.number()); });
        else if (!read_line_use_key(in, key, site.line_use))
            in.skip();
    });
    return site;
}

Context read_context(JsonReader& in, std::size_t index) {
    Context context;
    in.object(kObject, [&](std::string_view key) {
        if (read_frame_key(in, key, context.frame)) return;
        if (key == "parent")
            context.parent = in.whole32();
        else if (key == "module")
            context.module = in.text();
        else if (key == "offset")
            context.offset = in.whole();
        else
            in.skip();
    });
    // A parent comes before its children, so a walk to the root always ends.
    if (index > 0 && context.parent >= index) in.complain("expected an earlier context", ".parent");
    return context;
}

FirstTouch read_touch(JsonReader& in) {
    FirstTouch touch;
    in.object(kObject, [&](std::string_view key) {
        if (key == "site")
            touch.site = in.whole32();
        else if (key == "context")
            touch.context = in.whole32();
        else if (key == "cold")
            touch.cold = in.number();
        else if (key == "invalidated")
            touch.invalidated = in.number();
        else
            in.skip();
    });
    return touch;
}

Pair read_pair(JsonReader& in) {
    Pair pair;
    in.object(kObject, [&](std::string_view key) {
        if (key == "use")
            pair.use = in.whole32();
        else if (key == "reuse")
            pair.reuse = in.whole32();
        else if (key == "use_context")
            pair.use_context = in.whole32();
        else if (key == "reuse_context")
            pair.reuse_context = in.whole32();
        else if (key == "count")
            pair.count = in.number();
        else if (key == "distances")
            pair.distances = read_histogram(in);
        else
            in.skip();
    });
    return pair;
}

Object read_object(JsonReader& in) {
    Object object;
    in.object(kObject, [&](std::string_view key) {
        if (key == "kind")
            object.kind = in.text();
        else if (key == "name")
            object.name = in.text();
        else if (key == "type")
            object.type = in.text();
        else if (key == "type_bytes")
            object.type_bytes = in.whole();
        else if (key == "bytes")
            object.bytes = in.whole();
        else if (key == "context")
            object.context = in.whole32();
        else if (key == "accesses")
            object.accesses = in.number();
        else if (key == "reuse")
            object.reuse = read_histogram(in);
        else if (key == "simulated_misses")
            in.array(kArray, [&](std::size_t) { object.simulated.push_back(in.number()); });
        else if (!read_line_use_key(in, key, object.line_use))
            in.skip();
    });
    return object;
}

ThreadProfile read_thread(JsonReader& in) {
    ThreadProfile thread;
    in.object(kObject, [&](std::string_view key) {
        if (key == "id")
            thread.id = in.whole32();
        else if (key == "accesses")
            thread.accesses = in.number();
        else if (key == "reuse")
            thread.reuse = read_histogram(in);
        else
            in.skip();
    });
    return thread;
}

RunGroup read_run_group(JsonReader& in) {
    RunGroup group;
    in.object(kObject, [&](std::string_view key) {
        if (key == "runs")
            group.runs = in.number();
        else if (key == "accesses")
            group.accesses = in.number();
        else if (key == "distinct")
            group.distinct = in.number();
        else if (key == "reuse")
            group.reuse = read_histogram(in);
        else
            in.skip();
    });
    return group;
}

namespace {

PhaseSite read_phase_site(JsonReader& in) {
    PhaseSite site;
    in.object(kObject, [&](std::string_view key) {
        if (key == "site")
            site.site = in.whole32();
        else if (key == "accesses")
            site.accesses = in.number();
        else if (key == "reuse")
            site.reuse = read_histogram(in);
        else
            in.skip();
    });
    return site;
}

}  // namespace

Phase read_phase(JsonReader& in) {
    Phase phase;
    in.object(kObject, [&](std::string_view key) {
        if (key == "begin")
            phase.begin = in.number();
        else if (key == "end")
            phase.end = in.number();
        else if (key == "distinct")
            phase.distinct = in.number();
        else if (key == "reuse")
            phase.reuse = read_histogram(in);
        else if (key == "sites")
            in.array(kArray, [&](std::size_t) { phase.sites.push_back(read_phase_site(in)); });
        else
            in.skip();
    });
    return phase;
}

ProcessSummary read_process(JsonReader& in) {
    ProcessSummary process;
    in.object(kObject, [&](std::string_view key) {
        if (key == "pid")
            process.pid = in.whole32();
        else if (key == "parent")
            process.parent = in.whole32();
        else if (key == "command")
            in.array("expected an array of strings",
                     [&](std::size_t) { process.command.push_back(in.text()); });
        else if (key == "accesses")
            process.accesses = in.number();
        else if (key == "samples")
            process.samples = in.number();
        else if (key == "seconds")
            process.seconds = in.number();
        else
            in.skip();
    });
    return process;
}

namespace {

SharingSide read_side(JsonReader& in) {
    SharingSide side;
    in.object(kObject, [&](std::string_view key) {
        if (read_frame_key(in, key, side.frame)) return;
        if (key == "site")
            side.site = in.whole32();
        else if (key == "context")
            side.context = in.whole32();
        else if (key == "thread")
            side.thread = in.whole32();
        else if (key == "write")
            side.write = in.boolean().value_or(true);
        else if (key == "object")
            side.object = in.text();
        else if (key == "offset")
            side.offset = in.whole();
        else if (key == "bytes")
            side.bytes = read_ranges(in);
        else
            in.skip();
    });
    return side;
}

}  // namespace

Sharing read_sharing(JsonReader& in) {
    Sharing one;
    in.object(kObject, [&](std::string_view key) {
        if (key == "line")
            one.line = in.whole();
        else if (key == "writer")
            one.writer = read_side(in);
        else if (key == "victim")
            one.victim = read_side(in);
        else if (key == "count")
            one.count = in.number();
        else if (key == "false_sharing")
            one.false_sharing = in.boolean().value_or(false);
        else if (key == "error")
            one.error = in.number();
        else
            in.skip();
    });
    return one;
}

SharingTotals read_sharing_totals(JsonReader& in) {
    SharingTotals totals;
    in.object(kObject, [&](std::string_view key) {
        if (key == "invalidated")
            totals.invalidated = in.number();
        else if (key == "false_sharing")
            totals.false_sharing = in.number();
        else if (key == "unlisted")
            totals.unlisted = in.number();
        else if (key == "error")
            totals.error = in.number();
        else
            in.skip();
    });
    return totals;
}

GranularityProfile read_granularity(JsonReader& in) {
    GranularityProfile one;
    in.object(kObject, [&](std::string_view key) {
        if (key == "granularity")
            one.granularity = in.whole();
        else if (key == "distinct")
            one.distinct = in.number();
        else if (key == "reuse")
            one.reuse = read_histogram(in);
        else
            in.skip();
    });
    return one;
}

SimulatedCache read_cache(JsonReader& in) {
    SimulatedCache one;
    in.object(kObject, [&](std::string_view key) {
        if (key == "name")
            one.spec.name = in.text();
        else if (key == "bytes")
            one.spec.bytes = in.whole();
        else if (key == "ways")
            one.spec.ways = in.whole();
        else if (key == "line")
            one.spec.line = in.whole();
        else if (key == "accesses")
            one.accesses = in.number();
        else if (key == "misses")
            one.misses = in.number();
        else if (key == "error")
            one.error = in.number();
        else if (key == "crowded_sets")
            in.array(kArray,
                     [&](std::size_t) { one.crowded.push_back(read_range(in, ~std::uint64_t{0})); });
        else if (key == "crowded_misses")
            one.crowded_misses = in.number();
        else
            in.skip();
    });
    if (one.spec.line == 0 || one.spec.ways == 0 || one.spec.bytes == 0 || one.misses > one.accesses)
        in.complain("expected a cache with bytes, ways, line, and at most as many misses as accesses");
    return one;
}

PrivateFilter read_filter(JsonReader& in) {
    PrivateFilter one;
    auto depths = [&](SetDepths& of) {
        in.array(kArray, [&](std::size_t) { of.counts.push_back(in.number()); });
    };
    auto checked = [&](const SetDepths& of) {
        if (of.sets == 0 || of.counts.empty()) in.complain("expected at least 1 set and its depths");
    };
    in.object(kObject, [&](std::string_view key) {
        if (key == "sets")
            one.own.sets = in.whole();
        else if (key == "ways")
            one.ways = in.whole();
        else if (key == "depths")
            depths(one.own);
        else if (key == "shared")
            in.array(kArray, [&](std::size_t) {
                SetDepths of;
                in.object(kObject, [&](std::string_view inner) {
                    if (inner == "sets")
                        of.sets = in.whole();
                    else if (inner == "depths")
                        depths(of);
                    else
                        in.skip();
                });
                checked(of);
                one.shared.push_back(std::move(of));
            });
        else
            in.skip();
    });
    checked(one.own);
    if (one.ways == 0 || one.ways >= one.own.counts.size())
        in.complain("expected at least 1 way, and a depth for each");
    return one;
}

LineUseTotals read_line_use(JsonReader& in) {
    LineUseTotals totals;
    in.object(kObject, [&](std::string_view key) {
        if (key == "cache")
            totals.cache = in.text();
        else if (key == "line")
            totals.line = in.whole();
        else if (!read_line_use_key(in, key, totals.use))
            in.skip();
    });
    if (totals.line == 0) in.complain("expected a line of at least 1 byte");
    return totals;
}

Sampling read_sampling(JsonReader& in) {
    Sampling sampling;
    in.object(kObject, [&](std::string_view key) {
        if (key == "period")
            sampling.period = in.number();
        else if (key == "samples")
            sampling.samples = in.number();
        else if (key == "pruned")
            sampling.pruned = in.number();
        else if (key == "accesses_error")
            sampling.accesses_error = in.number();
        else if (key == "distinct_low")
            sampling.distinct_low = in.number();
        else if (key == "distinct_high")
            sampling.distinct_high = in.number();
        else
            in.skip();
    });
    return sampling;
}

}  // namespace revisit
