// Static prediction.
//
// The method. Run the slice at a few small sizes; cut each reference's iterations into cells; fit exact
// polynomials (cells.cpp); evaluate them at the target. Nothing of the program is run, and the cost
// does not grow with the target.
//
// The certificate. A fit that is silently wrong is the danger, so an answer is called exact only when
//   - every row of every sample lies in a cell, each fit having more points than unknowns,
//   - the target lies in the space the samples span, and all values there are whole and in range,
//   - a larger size, not used for fitting, comes out right to the last access of every stream,
//   - the first million accesses at the target itself are all explained by the cells,
//   - the target compiles to the same program as the samples, the data decides nothing, no index leaves
//     its array, and no fixed number hides a case the samples are too small to meet.
// Otherwise the answer says what failed and is interpreted whole where that is short enough, or
// estimated (estimate.cpp), and then states how good such an estimate is.
#include "predict/predict.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "predict/alignment.h"
#include "predict/evaluate.h"
#include "predict/family.h"
#include "predict/verify.h"

namespace revisit::predict {
namespace {

constexpr std::uint64_t kMostRows = 4'000'000;
constexpr std::uint64_t kHeldOutAccesses = 2'000'000;
constexpr std::uint64_t kPrefixAccesses = 1'000'000;
constexpr std::uint64_t kInterpretAtMost = 4'000'000'000;
constexpr std::int64_t kMostWork = 4'000'000'000;  // rows looked at while fitting: minutes

std::string text_of(const Parameters& p) {
    std::string out;
    for (const auto& [name, value] : p)
        out += (out.empty() ? "" : ", ") + name + "=" + std::to_string(value);
    return out;
}

using StreamKey = std::tuple<std::uint32_t, std::uint32_t, std::uint64_t>;
StreamKey key_of(const ReferenceInfo& r) {
    return {r.function, r.reference, r.context};
}

class Predictor {
 public:
    explicit Predictor(const Request& request)
        : request_(request), deadline_(request.budget), target_sizes_(request.macros) {
        target_sizes_.insert(request.parameters.begin(), request.parameters.end());
    }

    Result<Prediction> run() {
        auto programs = compiled({request_.macros});
        if (!programs) return std::unexpected(programs.error());
        target_ = std::move(programs->front());
        if (const auto open = open_parameters(target_, target_sizes_); !open.empty()) {
            std::string names;
            for (const auto& n : open) names += " --param " + n + "=…";
            return fail(request_.source.path, "", "sizes are missing: give" + names);
        }
        if (request_.method == Method::simulate) return interpreted(kInterpretAtMost, Deadline());
        if (request_.method == Method::fit) return fitted();
        // How long is the run? Counting alone goes by whole inner loops.
        RunOptions count;
        count.keep = false;
        count.max_accesses = request_.simulate_at_most + 1;
        count.deadline = deadline_.part(0.1);
        const auto counted = interpret(target_, target_sizes_, count);
        if (!counted) return fail(request_.source.path, counted.error().place, counted.error().message);
        if (counted->complete && counted->count <= request_.simulate_up_to)
            return interpreted(kInterpretAtMost, Deadline());
        short_enough_ = counted->complete;
        auto prediction = fitted();
        if ((prediction && prediction->failures.empty()) || !short_enough_) return prediction;
        return interpreted(kInterpretAtMost, Deadline());
    }

 private:
    Result<std::vector<Program>> compiled(const std::vector<Parameters>& macros) const {
        return request_.compiler ? request_.compiler(macros) : compile(request_.source, macros);
    }

    Result<Prediction> interpreted(std::uint64_t limit, const Deadline& deadline) {
        auto run = simulate(target_, target_sizes_, request_, request_.bins, deadline, limit);
        if (!run) return std::unexpected(run.error());
        if (!run->complete)
            return fail(request_.source.path, "",
                        "too long to interpret: more than " + std::to_string(limit) +
                            " accesses, or a loop without end");
        Prediction p;
        p.profile = std::move(run->profile);
        p.failures = std::move(run->doubts);
        for (const ReferencePlace& place : run->references) {
            const Reference& r = target_.functions[place.function].references[place.reference];
            for (std::size_t e = 0; e < r.extents.size(); ++e)
                if (place.largest_index[e] >= static_cast<std::int64_t>(r.extents[e].second))
                    p.failures.push_back(outside(r, e, place.largest_index[e]));
        }
        p.certificate.push_back("every access of the run was interpreted");
        finish(p);
        return p;
    }

    void finish(Prediction& p) {
        if (request_.granularity > 1 && has_local_arrays(target_))
            p.failures.push_back(
                "local variables lie where the stack happens to be: their place within a block is not "
                "known");
        p.profile.exact = p.failures.empty();
        p.target = std::make_shared<const Program>(target_);
        assume(p.profile);
        for (const auto& line : p.certificate) p.profile.notes.push_back("checked: " + line);
        for (const auto& line : p.failures) p.profile.notes.push_back("not exact: " + line);
    }

    static std::string outside(const Reference& r, std::size_t extent, std::int64_t index) {
        return "line " + std::to_string(r.line) + ": index " + std::to_string(index) + " of " +
               r.array + " is outside its extent " + std::to_string(r.extents[extent].second);
    }

    // What no look at the source can tell: exact means exact under these.
    void assume(Profile& profile) const {
        std::string plain;
        std::size_t pointers = 0;
        for (const Argument& a : target_.functions.front().arguments) {
            if (a.kind != Kind::pointer) continue;
            ++pointers;
            if (!a.alone) plain += (plain.empty() ? "" : ", ") + a.name;
        }
        std::set<std::string> named;
        for (const Function& f : target_.functions)
            for (const Reference& r : f.references) named.insert(r.array);
        bool globals = false;
        for (const Global& g : target_.globals) globals |= named.contains(g.name);
        if (!plain.empty() && (pointers > 1 || globals))
            profile.assumes.push_back("the arguments " + plain +
                                      " point to arrays of their own (restrict would promise it)");
        if (request_.granularity > 1)
            profile.assumes.push_back(
                "arrays of 64 bytes or more, local ones too, start on a 64-byte boundary");
    }

    Result<Prediction> fitted() {
        const auto moduli = mark_fixed_numbers(target_, target_).moduli;
        target_marks_clear();
        std::int64_t base = 1;
        for (const auto m : moduli)
            if (m <= 64 && std::lcm(base, m) <= 64) base = std::lcm(base, m);
        const std::int64_t period = request_.granularity > 1 ? block_period() : 1;
        std::vector<std::int64_t> attempts;
        if (request_.granularity > 1) {
            attempts = {std::lcm(period, base)};
        } else {
            attempts = {base};
            if (base == 1) attempts.push_back(2);
        }
        std::optional<Prediction> best;
        std::size_t best_lost = 0;
        for (const auto modulus : attempts) {
            if (best && deadline_.passed()) break;
            auto model = std::make_shared<Model>();
            model->modulus = modulus;
            auto learnt =
                learn_model(*model, period, deadline_.part(attempts.size() > 1 && !best ? 0.5 : 0.8));
            if (!learnt) return std::unexpected(learnt.error());
            if (model->design.axes.empty())
                return fail(request_.source.path, "",
                            "nothing to vary, and more accesses than can be interpreted: give sizes by "
                            "-D or --param, or use --method simulate");
            std::size_t lost = 0;
            for (const auto& s : model->streams) lost += s.lost;
            if (best && lost >= best_lost) continue;
            auto p = certify(model, *learnt);
            if (!p) return std::unexpected(p.error());
            best = std::move(*p);
            best_lost = lost;
            if (best->failures.empty()) break;
        }
        if (!best->failures.empty() && !short_enough_)
            if (auto done = estimated(*best); !done) return std::unexpected(done.error());
        finish(*best);
        return std::move(*best);
    }

    // How often each reference is accessed at the target: a polynomial, blocks or not.
    static Reduction::Totals totals_of(const Model& model) {
        Reduction::Totals totals;
        const auto& table = model.table;
        std::vector<std::uint8_t> order(table.sizes());
        std::iota(order.begin(), order.end(), std::uint8_t{0});
        for (const ReferenceInfo& r : table.references()) {
            Points points;
            points.variables = table.sizes();
            std::vector<std::uint32_t> which;
            for (std::size_t k = 0; k < table.samples().size(); ++k) {
                for (const auto n : table.samples()[k])
                    points.x.push_back(static_cast<std::int32_t>(n));
                points.y.push_back(static_cast<std::int64_t>(r.totals[k]));
                which.push_back(static_cast<std::uint32_t>(k));
            }
            const auto p = fit_simplest(points, which, order, static_cast<int>(r.loops.size()));
            if (!p || !p->determined_at(model.design.target.data())) continue;
            const auto value = p->integer(model.design.target.data());
            if (value >= 0 && value < (std::int64_t{1} << 59))
                totals[key_of(r)] = static_cast<double>(value);
        }
        return totals;
    }

    // No certificate: the whole answer is an estimate then, and says how good such estimates are here.
    Result<void> estimated(Prediction& p) {
        const Model& model = *p.model;
        Learning learning;
        if (auto ready = prepare_family(model, learning); !ready) return ready;
        const Reduction how{
            model.design, target_,
            [&](const std::vector<std::int64_t>& size) { return program_at(model, learning, size); },
            totals_of(model)};
        auto e = estimate(how, request_, Deadline(std::max(10.0, request_.budget)));
        if (!e) return std::unexpected(e.error());
        p.profile = std::move(e->profile);
        char text[64];
        std::snprintf(text, sizeof text, "%.4f", e->accuracy);
        p.failures.push_back(
            "estimated from reduced copies of the run; the copy at " + text_of(e->parameters) +
            ", estimated in the same way from smaller ones, comes out with accuracy " + text);
        return {};
    }

    void target_marks_clear() {
        for (auto& f : target_.functions)
            for (auto& b : f.blocks)
                for (auto& i : b.code)
                    if (i.op >= Op::eq && i.op <= Op::umax) i.imm = 0;
    }

    // Iterations after which the position in a block repeats, for the smallest elements accessed in
    // loops.
    std::int64_t block_period() const {
        std::int64_t element = 64;
        for (const auto& f : target_.functions)
            for (const auto& b : f.blocks)
                for (const auto& i : b.code)
                    if ((i.op == Op::load || i.op == Op::store) && b.loop >= 0 && i.b < 0)
                        element = std::min<std::int64_t>(
                            element, std::max<std::uint32_t>(
                                         1, f.references[static_cast<std::size_t>(i.imm)].size));
        return std::max<std::int64_t>(1, static_cast<std::int64_t>(request_.granularity) / element);
    }

    struct Learning {
        std::set<std::string> doubts;
        std::optional<ProgramFamily> family;
        std::vector<FixedNumbers::Watched> one_sided;
    };

    // Programs for sizes: one for all when sizes are arguments; interpolated, or compiled one by one.
    Result<Program> program_at(const Model& model, Learning& learning,
                               const std::vector<std::int64_t>& size) {
        if (learning.family) return learning.family->at(size);
        auto p = compiled({macros_at(model.design, size)});
        if (!p) return std::unexpected(p.error());
        return std::move(p->front());
    }

    Parameters macros_at(const Design& design, const std::vector<std::int64_t>& size) const {
        Parameters all = design.at(size), macros;
        for (const auto& [name, value] : request_.macros) macros[name] = all[name];
        return macros;
    }

    Result<void> prepare_family(const Model& model, Learning& learning) {
        bool varies = false;
        for (const Axis& a : model.design.axes)
            for (const auto& [name, offset] : a.names) varies |= request_.macros.contains(name);
        if (!varies) {
            learning.family.emplace(target_);
            return {};
        }
        const auto& samples = model.design.samples;
        std::vector<std::vector<std::int64_t>> sizes;
        const std::size_t wanted = std::min(samples.size(), 4 + 4 * model.design.axes.size());
        for (std::size_t k = 0; k < wanted; ++k) sizes.push_back(samples[k * samples.size() / wanted]);
        std::vector<Parameters> macros;
        for (const auto& s : sizes) macros.push_back(macros_at(model.design, s));
        auto programs = compiled(macros);
        if (!programs) return std::unexpected(programs.error());
        // Sizes where the compiler went another way (a power of two, two bounds that coincide) are left
        // out.
        std::vector<std::vector<std::int64_t>> kept_sizes;
        std::vector<Program> kept;
        for (std::size_t k = 0; k < sizes.size(); ++k)
            if (same_shape((*programs)[k], target_)) {
                kept_sizes.push_back(sizes[k]);
                kept.push_back(std::move((*programs)[k]));
            }
        if (kept.size() >= 3)
            learning.family =
                ProgramFamily::interpolate(kept_sizes, kept, model.design.target, target_);
        return {};
    }

    // Moduli by parameter: what lies in blocks at places that a size does not move needs none.
    Result<std::map<std::string, std::int64_t>> moduli_for(Model& model, std::int64_t period) {
        std::map<std::string, std::int64_t> moduli;
        DesignOptions options;
        options.modulus = model.modulus;
        options.untied = request_.untied;
        options.rounds = 1;
        model.design = plan_samples(target_sizes_, options);
        if (model.design.axes.size() < 2 || period <= 1) return moduli;
        Learning learning;
        if (auto ready = prepare_family(model, learning); !ready) return std::unexpected(ready.error());
        const auto layout_at = [&](const std::vector<std::int64_t>& size) -> Result<Layout> {
            auto program = program_at(model, learning, size);
            if (!program) return std::unexpected(program.error());
            return layout_of(*program, model.design.at(size), request_.granularity);
        };
        auto base = layout_at(model.design.samples.front());
        if (!base) return std::unexpected(base.error());
        for (std::size_t a = 0; a < model.design.axes.size(); ++a) {
            auto size = model.design.samples.front();
            size[a] += model.modulus;
            auto moved = layout_at(size);
            if (!moved) return std::unexpected(moved.error());
            const auto m = std::lcm(period_along(*base, *moved, period), model.modulus / period);
            for (const auto& [name, offset] : model.design.axes[a].names) moduli[name] = m;
        }
        return moduli;
    }

    // Sizes to try, the best first, until their rows are few enough.
    static std::vector<DesignOptions> designs(DesignOptions options, std::size_t axes, bool large) {
        std::vector<DesignOptions> all;
        const auto add = [&](std::int64_t smallest, std::int64_t rounds, std::int64_t spread) {
            options.smallest = smallest;
            options.rounds = rounds;
            options.spread = spread;
            all.push_back(options);
        };
        if (!large) {
            for (const std::int64_t smallest : {9, 7, 5}) add(smallest, 3, 0);
            if (axes == 1)
                add(5, 3, 9);
            else
                for (const std::int64_t spread : {7, 6, 5}) add(5, 3, spread);
        } else if (axes == 1) {
            for (const std::int64_t spread : {10, 9, 8, 7}) add(9, 3, spread);
            for (const std::int64_t spread : {9, 8, 7}) add(9, 2, spread);
            for (const std::int64_t spread : {8, 7}) add(9, 1, spread);
        } else {
            for (const std::int64_t spread : {7, 6}) add(9, 3, spread);
            for (const std::int64_t spread : {7, 6, 5}) add(7, 2, spread);
            for (const std::int64_t spread : {6, 5}) add(6, 1, spread);
        }
        return all;
    }

    Result<Learning> learn_model(Model& model, std::int64_t period, const Deadline& deadline) {
        Learning learning;
        DesignOptions first;
        first.modulus = model.modulus;
        first.untied = request_.untied;
        first.seed = request_.seed;
        if (auto found = moduli_for(model, period); found)
            first.moduli = std::move(*found);
        else
            return std::unexpected(found.error());
        const auto candidates = designs(first, model.design.axes.size(), model.modulus > 3);
        bool sampled = false;
        for (const DesignOptions& options : candidates) {
            model.design = plan_samples(target_sizes_, options);
            if (model.design.axes.empty()) return learning;
            if (model.design.axes.size() + 6 > kMaxVariables)
                return fail(request_.source.path, "",
                            "more than " + std::to_string(kMaxVariables - 6) + " sizes vary");
            learning = {};
            if (auto ready = prepare_family(model, learning); !ready)
                return std::unexpected(ready.error());
            const auto& largest = model.design.samples.back();
            auto program = program_at(model, learning, largest);
            if (!program) return std::unexpected(program.error());
            RunOptions run;
            run.keep = false;
            run.max_accesses = kMostRows;
            run.max_steps = 400'000'000;
            run.deadline = deadline;
            auto trace = interpret(*program, model.design.at(largest), run);
            if (!trace) return fail(request_.source.path, trace.error().place, trace.error().message);
            const auto rows = trace->count * model.design.samples.size() / 2;
            sampled = trace->complete && rows <= 3 * kMostRows;
            if (trace->complete && rows <= kMostRows) break;
        }
        if (!sampled) {
            const auto where = text_of(model.design.at(model.design.samples.back()));
            if (model.modulus <= 3)
                return fail(
                    request_.source.path, "",
                    "does not end within " + std::to_string(kMostRows) + " accesses even at " + where);
            // Blocks ask for samples too large to take; without their residues there is an estimate.
            const auto modulus = std::exchange(model.modulus, 1);
            auto rough = learn_model(model, 1, deadline);
            if (rough)
                rough->doubts.insert("sizes like the target's modulo " + std::to_string(modulus) +
                                     " are too large to sample (" + where + ")");
            return rough;
        }
        model.table = RowTable(model.design.axes.size(), request_.granularity);
        for (std::size_t k = 0; k < model.design.samples.size(); ++k) {
            const auto& size = model.design.samples[k];
            auto program = program_at(model, learning, size);
            if (!program) return std::unexpected(program.error());
            if (!same_shape(*program, target_)) {
                learning.doubts.insert("the compiler makes another program of " +
                                       text_of(model.design.at(size)) + " than of the target");
                if (program->functions.size() != target_.functions.size()) continue;
            }
            FixedNumbers fixed;
            const bool last = k + 1 == model.design.samples.size();
            if (last) fixed = mark_fixed_numbers(*program, target_);
            RunOptions run;
            run.max_accesses = 8 * kMostRows;
            run.seed = request_.seed;
            run.branch_probability = request_.branch_probability;
            run.deadline = deadline;
            auto trace = interpret(*program, model.design.at(size), run);
            if (!trace) return fail(request_.source.path, trace.error().place, trace.error().message);
            if (!trace->complete) {
                learning.doubts.insert("the time allowed (--budget) ended while sampling");
                break;
            }
            learning.doubts.insert(trace->doubts.begin(), trace->doubts.end());
            trace->outcomes.resize(fixed.watched.size(), 0);
            for (std::size_t w = 0; w < fixed.watched.size(); ++w)
                if (trace->outcomes[w] == 1 || trace->outcomes[w] == 2)
                    learning.one_sided.push_back(fixed.watched[w]);
            for (const auto m : fixed.moduli)
                if (model.modulus % m != 0)
                    learning.doubts.insert("divides or masks by " + std::to_string(m) +
                                           ", whose residues the samples do not follow");
            if (!model.table.add(*program, *trace, size)) return too_deep();
        }
        model.target = target_;
        CellOptions cells;
        cells.anchors = model.design.anchors;
        cells.period = period;
        cells.modulus = model.modulus;
        std::int64_t work_left = kMostWork;
        std::size_t streams_left = model.table.streams().size();
        for (const Stream& s : model.table.streams()) {
            cells.deadline =
                deadline.part(std::min(1.0, std::max(0.2, 3.0 / static_cast<double>(streams_left--))));
            // Coin tosses fit nothing: where the data decides, only the estimate is wanted.
            if (!learning.doubts.empty() && data_decides(learning.doubts)) {
                StreamModel none;
                none.rows = none.lost = s.points.count();
                model.streams.push_back(std::move(none));
            } else {
                cells.work = std::min<std::int64_t>(kMostWork / 4, work_left);
                model.streams.push_back(learn(s, model.table, cells));
                work_left = std::max(kMostWork / 100, work_left - model.streams.back().work);
            }
        }
        return learning;
    }

    std::unexpected<Error> too_deep() const {
        return fail(
            request_.source.path, "",
            "loops are nested too deep for formulas (recursion around a loop?): try --method simulate");
    }

    static bool data_decides(const std::set<std::string>& doubts) {
        return std::any_of(doubts.begin(), doubts.end(), [](const std::string& d) {
            return d.find("the data decides") != std::string::npos;
        });
    }

    Result<Prediction> certify(std::shared_ptr<Model> model, Learning& learning) {
        Prediction p;
        p.model = model;
        for (const auto& d : learning.doubts) p.failures.push_back(d);
        for (const auto& w : learning.one_sided)
            p.failures.push_back("line " + std::to_string(w.line) + ": compared with " +
                                 std::to_string(w.number) +
                                 ", which the samples are too small to pass");
        // Formulas reach up, not down: cells that are apart in every sample meet in smaller sizes.
        for (std::size_t a = 0; a < model->design.axes.size(); ++a) {
            std::int64_t least = INT64_MAX;
            for (const auto& sample : model->design.samples) least = std::min(least, sample[a]);
            if (model->design.target[a] < least)
                p.failures.push_back(model->design.axes[a].names.front().first + "=" +
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
            p.failures.push_back("no formula for " + std::to_string(lost_streams - 8) +
                                 " more streams");
        p.certificate.push_back(std::to_string(model->table.rows()) + " accesses of " +
                                std::to_string(model->design.samples.size()) + " small runs lie in " +
                                std::to_string(cells) + " cells, each with more points than unknowns");
        if (auto done = check_held_out(*model, learning, p); !done)
            return std::unexpected(done.error());
        check_prefix(*model, p);
        check_extents(*model, p);
        if (p.failures.empty())
            p.profile = evaluate_model(*model, model->design.target, request_.bins, p.failures,
                                       Deadline(std::max(2.0, deadline_.left())));
        return p;
    }

    static std::string name_of(const Model& model, std::size_t stream) {
        const Stream& s = model.table.streams()[stream];
        const auto& r = model.table.references()[s.reference];
        const auto& text = model.target.functions[r.function].references[r.reference];
        return text.expression + " at line " + std::to_string(text.line);
    }

    // A larger size: stream by stream, distance by distance.
    Result<void> check_held_out(const Model& model, Learning& learning, Prediction& p) {
        std::vector<std::int64_t> size;
        for (const double factor : {4.0, 3.0, 2.5, 2.0, 1.7, 1.4, 1.2, 1.05}) {
            size = model.design.held_out(factor);
            double total = 0;
            for (const auto& s : model.streams)
                for (const auto& c : s.cells)
                    total += static_cast<double>(
                        evaluate(
                            c, size, [](std::uint64_t) { return 0; }, [](auto, auto) {}, 20'000'000)
                            .total);
            if (total <= static_cast<double>(kHeldOutAccesses)) break;
        }
        const auto parameters = model.design.at(size);
        auto program = program_at(model, learning, size);
        if (!program) return std::unexpected(program.error());
        RunOptions run;
        run.max_accesses = 8 * kHeldOutAccesses;
        run.seed = request_.seed;
        run.branch_probability = request_.branch_probability;
        auto trace = interpret(*program, parameters, run);
        if (!trace) return fail(request_.source.path, trace.error().place, trace.error().message);
        if (!trace->complete) {
            p.failures.push_back("the check at " + text_of(parameters) + " was too long to finish");
            return {};
        }
        RowTable truth(model.design.axes.size(), request_.granularity);
        if (!truth.add(*program, *trace, size)) return too_deep();
        std::map<StreamKey, std::int32_t> index;
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
                    p.failures.push_back("at " + text_of(parameters) + " the formulas are wrong for " +
                                         name_of(model, i));
            }
        }
        if (strange || !expected.empty())
            p.failures.push_back("at " + text_of(parameters) + " there is reuse that no sample showed");
        if (wrong > 4) p.failures.push_back("and for " + std::to_string(wrong - 4) + " more streams");
        if (p.failures.empty())
            p.certificate.push_back("every access at " + text_of(parameters) +
                                    ", a size not used for fitting, comes out right (" +
                                    std::to_string(trace->count) + ")");
        return {};
    }

    // The beginning of the target's own run: each access must be what some cell says.
    void check_prefix(const Model& model, Prediction& p) {
        RunOptions run;
        run.max_accesses = kPrefixAccesses;
        run.seed = request_.seed;
        const auto trace = interpret(target_, target_sizes_, run);
        if (!trace) {
            p.failures.push_back("at the target: " + trace.error().message);
            return;
        }
        RowTable rows(model.design.axes.size(), request_.granularity);
        if (!rows.add(target_, *trace, model.design.target)) {
            p.failures.push_back("at the target loops are nested too deep to check");
            return;
        }
        std::map<StreamKey, std::int32_t> index;
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
            const std::size_t step = std::max<std::size_t>(1, s.points.count() / 3000);
            for (std::size_t row = 0; row < s.points.count(); row += step, ++checked)
                if (!explained(model.streams[at->second], s, row)) {
                    p.failures.push_back("at the target itself the formulas are wrong for " +
                                         name_of(model, at->second));
                    return;
                }
        }
        p.certificate.push_back(std::to_string(checked) + " of the first " +
                                std::to_string(trace->count) + " accesses at the target itself agree");
    }

    static bool explained(const StreamModel& m, const Stream& s, std::size_t row) {
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
            if (inside && (s.source == kCold || c.distance.integer(wide) == s.points.y[row]))
                return true;
        }
        return false;
    }

    // Indices must stay inside their row, or rows would share elements.
    void check_extents(const Model& model, Prediction& p) {
        const auto& table = model.table;
        for (const ReferenceInfo& r : table.references()) {
            const auto& text = target_.functions[r.function].references[r.reference];
            for (std::size_t e = 0; e < text.extents.size(); ++e) {
                Points points;
                points.variables = table.sizes();
                std::vector<std::uint32_t> which;
                std::vector<std::uint8_t> order;
                for (std::size_t v = 0; v < table.sizes(); ++v)
                    order.push_back(static_cast<std::uint8_t>(v));
                for (std::size_t k = 0; k < table.samples().size(); ++k) {
                    if (r.largest_index[k].size() <= e) continue;
                    for (const auto n : table.samples()[k])
                        points.x.push_back(static_cast<std::int32_t>(n));
                    points.y.push_back(r.largest_index[k][e]);
                    which.push_back(static_cast<std::uint32_t>(which.size()));
                }
                const auto largest = fit_simplest(points, which, order, 2);
                if (!largest) continue;
                const auto value = largest->integer(model.design.target.data());
                if (value >= static_cast<std::int64_t>(text.extents[e].second)) {
                    p.failures.push_back(outside(text, e, value));
                    return;
                }
            }
        }
    }

    const Request& request_;
    Deadline deadline_;
    bool short_enough_ = false;  // to be interpreted whole, if need be
    Parameters target_sizes_;
    Program target_;
};

}  // namespace

Result<Prediction> predict(const Request& request) {
    return Predictor(request).run();
}

}  // namespace revisit::predict
