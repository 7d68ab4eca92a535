// What an answer must pass to be called exact.
//
// A fit that is silently wrong is the danger, so
//   - every row of every sample lies in a cell, each fit having more points than unknowns,
//   - the target lies in the space the samples span, and all values there are whole and in range,
//   - larger sizes, not used for fitting, come out right to the last access of every stream: one in the
//     target's own proportions, fixed numbers included, and one where all sizes are about alike,
//   - the first million accesses at the target itself are all explained by the cells,
//   - where the target's control flow can be walked to its end in half a second, it makes as many
//     accesses as the formulas say,
//   - the target compiles to the same program as the samples, the data decides nothing, no index leaves
//     its array, and no fixed number hides a case the samples are too small to meet.
#include "predict/certify/certify.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include "core/errors.h"
#include "core/try.h"
#include "predict/certify/proof.h"
#include "predict/fit/evaluate.h"

namespace revisit::predict {
namespace {

constexpr std::uint64_t kHeldOutAccesses = 800'000;
constexpr std::uint64_t kPrefixAccesses = 1'000'000;
constexpr std::size_t kComparedRows = 3000;  // of a stream at the target
constexpr std::size_t kRelations = 4;
constexpr double kCountSeconds = 0.5;
constexpr std::uint64_t kMostSteps = 300'000'000;  // of a program that counts and accesses little

std::string name_of(const Model& model, std::size_t stream) {
    const Stream& s = model.table.streams()[stream];
    const auto& r = model.table.references()[s.reference];
    const auto& text = model.target.functions[r.function].references[r.reference];
    return text.expression + " at line " + std::to_string(text.line);
}

double accesses_at(const Model& model, const std::vector<std::int64_t>& size) {
    double total = 0;
    for (const auto& s : model.streams)
        for (const auto& c : s.cells)
            total += static_cast<double>(
                evaluate(
                    c, size, [](std::uint64_t) { return 0; }, [](auto, auto) {}, 20'000'000)
                    .total);
    return total;
}

// Sizes that differ from a simple multiple or sum of others by as much as the target's do. Rows of 595
// that hold every second of 300 elements overlap by five: proportions do not keep that, differences do.
std::vector<std::vector<std::int64_t>> related_sizes(const Design& design,
                                                     const std::vector<std::int64_t>& base) {
    struct Relation {
        std::size_t to;
        std::int64_t times;  // times * size[to] = sum of factors * sizes + rest
        std::vector<std::pair<std::size_t, std::int64_t>> from;
        std::int64_t rest;
    };
    std::vector<Relation> relations;
    const auto consider = [&](Relation r) {
        std::int64_t least = INT64_MAX;
        r.rest = r.times * design.target[r.to];
        for (const auto& [axis, factor] : r.from) {
            r.rest -= factor * design.target[axis];
            least = std::min(least, design.target[axis]);
        }
        if (4 * std::abs(r.rest) <= least) relations.push_back(std::move(r));
    };
    const auto n = design.axes.size();
    for (std::size_t b = 0; b < n; ++b)
        for (std::size_t a = 0; a < b; ++a) {
            for (std::int64_t times = 1; times <= 4; ++times)
                for (std::int64_t factor = times; factor <= 12; ++factor)
                    if (std::gcd(times, factor) == 1) consider({b, times, {{a, factor}}, 0});
            for (std::size_t c = b + 1; c < n; ++c) consider({c, 1, {{a, 1}, {b, 1}}, 0});
        }
    std::stable_sort(relations.begin(), relations.end(), [](const Relation& x, const Relation& y) {
        return std::abs(x.rest) < std::abs(y.rest);
    });
    std::vector<std::vector<std::int64_t>> sizes;
    for (const Relation& r : relations) {
        auto size = base;
        auto& moved = size[r.from.front().first];
        const auto step = design.axes[r.from.front().first].modulus;
        for (int tries = 0; tries < 64; ++tries, moved += step) {
            std::int64_t sum = r.rest;
            for (const auto& [axis, factor] : r.from) sum += factor * size[axis];
            if (sum % r.times != 0) continue;
            size[r.to] = sum / r.times;
            const auto m = design.axes[r.to].modulus;
            if (size[r.to] >= 2 * kLargeNumber && (size[r.to] - design.target[r.to]) % m == 0) {
                sizes.push_back(size);
                break;
            }
        }
        if (sizes.size() == kRelations) break;
    }
    return sizes;
}

// Where tiles vary: more and larger ones than in any sample, and tiles as large as the target's own, or
// as large as can be. Where several sizes are made of tiles they keep their differences there.
std::vector<std::vector<std::int64_t>> tiles_to_check(const Model& model) {
    const Design& design = model.design;
    std::vector<std::vector<std::int64_t>> sizes{design.proportional(0)};
    std::int64_t fewest = INT64_MAX;
    for (const Axis& a : design.axes)
        if (a.kind == Axis::Kind::count) fewest = std::min(fewest, a.target);
    for (double scale = 1; scale > 0; scale -= 0.125) {
        std::vector<std::int64_t> size;
        for (std::size_t i = 0; i < design.axes.size(); ++i) {
            const Axis& a = design.axes[i];
            if (a.kind == Axis::Kind::count)
                size.push_back(a.target - fewest + std::min<std::int64_t>(fewest, 3));
            else if (a.kind == Axis::Kind::within)
                size.push_back(std::max(sizes.front()[i], static_cast<std::int64_t>(
                                                              static_cast<double>(a.target) * scale)));
            else
                size.push_back(sizes.front()[i]);
        }
        size = design.whole(size);
        if (accesses_at(model, size) > 6 * kHeldOutAccesses && scale > 0.125) continue;
        sizes.push_back(std::move(size));
        break;
    }
    return sizes;
}

// As large as can be interpreted quickly.
std::vector<std::vector<std::int64_t>> sizes_to_check(const Model& model) {
    if (model.parted) return tiles_to_check(model);
    std::vector<std::vector<std::int64_t>> sizes;
    const bool several = model.design.axes.size() > 1;
    const double most = static_cast<double>(kHeldOutAccesses) / (several ? 2 : 1);
    auto size = model.design.proportional(0);
    for (double scale = 1e-9; scale < 1; scale *= 1.25) {
        auto larger = model.design.proportional(scale);
        if (larger == size) continue;
        if (accesses_at(model, larger) > most) break;
        size = std::move(larger);
    }
    sizes.push_back(size);
    // Numbers that stay as they are have to be met by every size: each is larger, or the target's own.
    if (const auto pinned = model.pinned.largest(); pinned > 0) {
        for (std::size_t a = 0; a < size.size(); ++a)
            while (size[a] < 2 * pinned && size[a] < model.design.target[a])
                size[a] += model.design.axes[a].modulus;
        if (size != sizes.front()) sizes.push_back(size);
    }
    if (!several) return sizes;
    for (const double factor : {4.0, 3.0, 2.5, 2.0, 1.7, 1.4, 1.2, 1.05}) {
        size = model.design.held_out(factor);
        if (accesses_at(model, size) <= most) break;
    }
    sizes.push_back(size);
    for (auto& related : related_sizes(model.design, sizes.front()))
        if (accesses_at(model, related) <= 2 * most) sizes.push_back(std::move(related));
    return sizes;
}

// A larger size: stream by stream, distance by distance.
Result<void> check_held_out(const Session& session, const Model& model, const Learning& learning,
                            const std::vector<std::int64_t>& size, Reach& reach, Prediction& p) {
    const auto parameters = model.design.at(size);
    auto program = TRY(learning.programs.at(parameters));
    if (!same_shape(program, learning.programs.target())) {
        p.failures.push_back("the compiler makes another program of " + sizes_text(parameters) +
                             " than of the target");
        return {};
    }
    RunOptions run;
    run.max_accesses = 8 * kHeldOutAccesses;
    run.max_steps = kMostSteps;
    run.watch = watch_all(program);
    run.seed = session.request.seed;
    run.branch_probability = session.request.branch_probability;
    auto trace = interpret(program, parameters, run);
    if (!trace) return in_file(session.request.source.path, trace.error());
    if (!trace->complete) {
        p.failures.push_back("the check at " + sizes_text(parameters) + " was too long to finish");
        return {};
    }
    reach.add(size, program, *trace);
    RowTable truth(model.design.axes.size(), session.request.granularity);
    if (!truth.add(program, *trace, size)) return unexpected(too_deep(session));
    std::map<decltype(key_of({})), std::int32_t> index;
    for (std::size_t r = 0; r < model.table.references().size(); ++r)
        index[key_of(model.table.references()[r])] = static_cast<std::int32_t>(r);
    std::map<std::pair<std::int32_t, std::int32_t>, std::map<std::int64_t, std::int64_t>> expected;
    bool strange = false;
    for (const Stream& s : truth.streams()) {
        const auto reference = index.find(key_of(truth.references()[s.reference]));
        const auto source =
            s.source == kCold ? index.end() : index.find(key_of(truth.references()[s.source]));
        if (reference == index.end() || (s.source != kCold && source == index.end())) {
            strange = true;
            continue;
        }
        auto& h = expected[{reference->second, s.source == kCold ? kCold : source->second}];
        for (const auto d : s.points.y) ++h[d];
    }
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < model.streams.size(); ++i) {
        const Stream& s = model.table.streams()[i];
        std::map<std::int64_t, std::int64_t> got;
        bool fine = true;
        for (const auto& c : model.streams[i].cells) {
            const auto e = evaluate(
                c, size, {},
                [&](std::uint64_t d, std::uint64_t n) {
                    got[s.source == kCold ? -1 : static_cast<std::int64_t>(d)] +=
                        static_cast<std::int64_t>(n);
                },
                50'000'000);
            fine &= e.valid && e.complete && e.determined;
        }
        const auto key = std::pair{s.reference, s.source};
        const auto want = expected.find(key);
        fine &= want == expected.end() ? got.empty() : got == want->second;
        if (want != expected.end()) expected.erase(want);
        if (!fine && !model.streams[i].lost) {
            ++wrong;
            if (wrong <= 4)
                p.failures.push_back("at " + sizes_text(parameters) + " the formulas are wrong for " +
                                     name_of(model, i));
        }
    }
    if (strange || !expected.empty())
        p.failures.push_back("at " + sizes_text(parameters) + " there is reuse that no sample showed");
    if (wrong > 4) p.failures.push_back("and for " + std::to_string(wrong - 4) + " more streams");
    if (p.failures.empty())
        p.certificate.push_back("every access at " + sizes_text(parameters) +
                                ", a size not used for fitting, comes out right (" +
                                std::to_string(trace->count) + ")");
    return {};
}

bool explained(const StreamModel& m, const Stream& s, std::size_t row) {
    const auto* x = s.points.at(row);
    std::int64_t wide[kMaxVariables] = {};
    std::copy(x, x + s.points.variables, wide);
    for (const Cell& c : m.cells) {
        bool inside = true;
        for (std::size_t k = 0; k < c.free.size() && inside; ++k) {
            const auto low = c.ranges[k].low.integer(wide), high = c.ranges[k].high.integer(wide),
                       v = wide[c.free[k]];
            inside = v >= low && v <= high && (v - low) % c.ranges[k].stride == 0;
        }
        if (inside && (s.source == kCold || c.distance.integer(wide) == s.points.y[row])) return true;
    }
    return false;
}

// The beginning of the target's own run: each access must be what some cell says.
void check_prefix(const Session& session, const Model& model, const Learning& learning, Prediction& p) {
    RunOptions run;
    run.max_accesses = kPrefixAccesses;
    run.max_steps = kMostSteps;
    run.seed = session.request.seed;
    const auto trace = interpret(learning.programs.target(), session.sizes, run);
    if (!trace) {
        p.failures.push_back("at the target: " + trace.error().message);
        return;
    }
    // More rows than are compared need not be kept.
    RowTable rows(model.design.axes.size(), session.request.granularity, {kComparedRows, 17});
    if (!rows.add(learning.programs.target(), *trace, model.design.target)) {
        p.failures.push_back("at the target loops are nested too deep to check");
        return;
    }
    std::map<decltype(key_of({})), std::int32_t> index;
    for (std::size_t r = 0; r < model.table.references().size(); ++r)
        index[key_of(model.table.references()[r])] = static_cast<std::int32_t>(r);
    std::map<std::pair<std::int32_t, std::int32_t>, std::size_t> stream_of;
    for (std::size_t i = 0; i < model.streams.size(); ++i)
        stream_of[{model.table.streams()[i].reference, model.table.streams()[i].source}] = i;
    std::size_t checked = 0;
    for (const Stream& s : rows.streams()) {
        const auto reference = index.find(key_of(rows.references()[s.reference]));
        const auto source =
            s.source == kCold ? index.end() : index.find(key_of(rows.references()[s.source]));
        const bool known = reference != index.end() && (s.source == kCold || source != index.end());
        const auto at =
            known ? stream_of.find({reference->second, s.source == kCold ? kCold : source->second})
                  : stream_of.end();
        if (at == stream_of.end()) {
            p.failures.push_back("at the target there is reuse that no sample showed");
            return;
        }
        if (model.streams[at->second].lost) continue;
        const std::size_t step = std::max<std::size_t>(1, s.points.count() / kComparedRows);
        for (std::size_t row = 0; row < s.points.count(); row += step, ++checked)
            if (!explained(model.streams[at->second], s, row)) {
                p.failures.push_back("at the target itself the formulas are wrong for " +
                                     name_of(model, at->second));
                return;
            }
    }
    p.certificate.push_back(std::to_string(checked) + " of the first " + std::to_string(trace->count) +
                            " accesses at the target itself agree");
}

// All accesses at the target, counted: inner loops go as a whole, so that long runs end soon.
void check_count(const Session& session, const Learning& learning, Prediction& p) {
    RunOptions run;
    run.keep = false;
    run.max_accesses = std::uint64_t{1} << 52;
    run.max_steps = run.max_accesses;
    run.deadline = Deadline(kCountSeconds);
    const auto counted = interpret(learning.programs.target(), session.sizes, run);
    if (!counted || !counted->complete) return;  // nothing is known then, and nothing said
    if (static_cast<double>(counted->count) == p.profile.accesses)
        p.certificate.push_back("the run at the target, walked to its end, has as many accesses");
    else
        p.failures.push_back("the run at the target has " + std::to_string(counted->count) +
                             " accesses, other than the formulas say");
}

// Indices must stay inside their row, or rows would share elements.
void check_extents(const Session& session, const Model& model, Prediction& p) {
    const auto& table = model.table;
    for (const ReferenceInfo& r : table.references()) {
        const auto& text = session.target.functions[r.function].references[r.reference];
        for (std::size_t e = 0; e < text.extents.size(); ++e)
            for (const auto end : {&Extremes::low, &Extremes::high}) {
                Points points;
                points.variables = table.sizes();
                std::vector<std::uint32_t> which;
                std::vector<std::uint8_t> order;
                for (std::size_t v = 0; v < table.sizes(); ++v)
                    order.push_back(static_cast<std::uint8_t>(v));
                for (std::size_t k = 0; k < table.samples().size(); ++k) {
                    if (r.indices[k].size() <= e || r.indices[k][e].empty()) continue;
                    for (const auto n : table.samples()[k])
                        points.x.push_back(static_cast<std::int32_t>(n));
                    points.y.push_back(r.indices[k][e].*end);
                    which.push_back(static_cast<std::uint32_t>(which.size()));
                }
                if (which.empty()) continue;
                const auto extreme = fit_simplest(points, which, order, 2);
                if (!extreme) {
                    p.failures.emplace_back(
                        Doubt::Kind::general, text.line,
                        "how far an index of " + text.array + " goes is no polynomial of the sizes");
                    return;
                }
                const auto value = extreme->integer(model.design.target.data());
                if (value < 0 || value >= static_cast<std::int64_t>(text.extents[e].second)) {
                    p.failures.push_back(outside(text, e, value));
                    return;
                }
            }
    }
}

}  // namespace

Doubt outside(const Reference& r, std::size_t extent, std::int64_t index) {
    return {Doubt::Kind::general, r.line,
            "index " + std::to_string(index) + " of " + r.array + " is outside its extent " +
                std::to_string(r.extents[extent].second)};
}

Result<Prediction> certify(const Session& session, std::shared_ptr<Model> model,
                           const Learning& learning) {
    Prediction p;
    p.model = model;
    for (const auto& d : learning.doubts) p.failures.push_back(d);
    // Formulas reach up, not down: cells that are apart in every sample meet in smaller sizes.
    for (std::size_t a = 0; a < model->design.axes.size(); ++a) {
        std::int64_t least = INT64_MAX;
        for (const auto& sample : model->design.samples) least = std::min(least, sample[a]);
        if (model->design.target[a] < least)
            p.failures.push_back(shown(model->design.axes[a].names.front().first) + "=" +
                                 std::to_string(model->design.target[a]) +
                                 " is smaller than every sample (" + std::to_string(least) + ")");
    }
    std::size_t cells = 0, lost_streams = 0;
    for (std::size_t i = 0; i < model->streams.size(); ++i) {
        cells += model->streams[i].cells.size();
        if (!model->streams[i].lost) continue;
        ++lost_streams;
        if (lost_streams <= 8) p.failures.push_back("no formula for all of " + name_of(*model, i));
    }
    if (lost_streams > 8)
        p.failures.push_back("no formula for " + std::to_string(lost_streams - 8) + " more streams");
    p.certificate.push_back(std::to_string(model->table.rows()) + " accesses of " +
                            std::to_string(model->design.samples.size()) + " small runs lie in " +
                            std::to_string(cells) + " cells, each with more points than unknowns");
    if (model->parted) {
        // Small numbers must be small beside the tiles that were checked.
        const auto tiles = tiles_to_check(*model).back();
        for (std::size_t a = 0; a < tiles.size(); ++a)
            if (model->design.axes[a].kind == Axis::Kind::within &&
                tiles[a] != model->design.target[a] &&
                tiles[a] <= 2 * longest_small_shift(model->target))
                p.failures.push_back("no tile was checked that is large beside " +
                                     std::to_string(longest_small_shift(model->target)));
    }
    // Twice, where sizes differ: in the target's proportions, and all about alike.
    const auto sizes = sizes_to_check(*model);
    Reach reach = learning.reach;
    for (const auto& size : sizes) TRY(check_held_out(session, *model, learning, size, reach, p));
    Program watched = learning.programs.target();
    watch_all(watched);
    for (auto& doubt : reach.surprises(watched, model->design.target, sizes))
        p.failures.push_back(std::move(doubt));
    for (auto& doubt : reach.narrowed(watched)) p.unproven.push_back(std::move(doubt));
    // Constants that are sizes differ there.
    const auto other = TRY(learning.programs.at(model->design.at(model->design.samples.back())));
    for (auto& doubt : unproven(learning.programs.target(), other, model->modulus))
        p.unproven.push_back(std::move(doubt));
    if (session.request.granularity > 1 && model->pinned.tiles.empty()) {
        const auto needed =
            TRY(learning.programs.periods(model->design, session.request.granularity, model->modulus));
        for (std::size_t a = 0; a < needed.size(); ++a)
            if (const Axis& axis = model->design.axes[a]; axis.modulus % needed[a] != 0)
                p.unproven.emplace_back(Doubt::Kind::period, 0,
                                        shown(axis.names.front().first) + " may meet a period of " +
                                            std::to_string(needed[a]) +
                                            ", whose residues the samples do not follow");
    }
    if (model->parted)
        p.unproven.emplace_back(Doubt::Kind::unproven, 0,
                                "tiles and their number vary both: their product is no size");
    check_prefix(session, *model, learning, p);
    check_extents(session, *model, p);
    if (p.failures.empty())
        p.profile = evaluate_model(*model, model->design.target, session.request.bins, p.failures,
                                   Deadline(std::max(2.0, session.deadline.left())));
    if (p.failures.empty() && session.request.granularity <= 1) check_count(session, learning, p);
    return p;
}

}  // namespace revisit::predict
