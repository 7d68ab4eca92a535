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
// Otherwise the answer says what failed, estimates the streams concerned, and states how far the same
// estimate is off at the larger size.
#include "predict/predict.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "predict/assemble.h"
#include "predict/evaluate.h"
#include "predict/family.h"
#include "revisit/accuracy.h"

namespace revisit::predict {
namespace {

constexpr std::uint64_t kMostRows = 4'000'000;
constexpr std::uint64_t kHeldOutAccesses = 2'000'000;
constexpr std::uint64_t kPrefixAccesses = 1'000'000;
constexpr std::int64_t kMostWork = 240'000'000;  // rows looked at while fitting: some ten seconds

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
    explicit Predictor(const Request& request) : request_(request), target_sizes_(request.macros) {
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
        if (request_.method != Method::fit) {
            const auto limit = request_.method == Method::simulate ? std::uint64_t{400'000'000}
                                                                   : request_.simulate_up_to;
            std::vector<std::string> doubts;
            bool complete = false;
            auto profile = simulate(target_, target_sizes_, request_, limit, doubts, complete);
            if (!profile) return std::unexpected(profile.error());
            if (complete) return interpreted(std::move(*profile), std::move(doubts));
            if (request_.method == Method::simulate)
                return fail(request_.source.path, "",
                            "more than " + std::to_string(limit) +
                                " accesses: too many to interpret (or a loop without end)");
        }
        return fitted();
    }

 private:
    Result<std::vector<Program>> compiled(const std::vector<Parameters>& macros) const {
        return request_.compiler ? request_.compiler(macros) : compile(request_.source, macros);
    }

    Prediction interpreted(Profile profile, std::vector<std::string> doubts) {
        Prediction p;
        p.profile = std::move(profile);
        p.certificate.push_back("every access of the run was interpreted");
        p.failures = std::move(doubts);
        finish(p);
        return p;
    }

    void finish(Prediction& p) {
        p.profile.exact = p.failures.empty();
        std::string pointers;
        int count = 0;
        for (const Argument& a : target_.functions.front().arguments)
            if (a.kind == Kind::pointer) {
                pointers += (pointers.empty() ? "" : ", ") + a.name;
                ++count;
            }
        if (count > 1)
            p.profile.notes.push_back("assumed: the arguments " + pointers +
                                      " point to separate arrays");
        for (const auto& line : p.certificate) p.profile.notes.push_back("checked: " + line);
        for (const auto& line : p.failures) p.profile.notes.push_back("not exact: " + line);
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
            auto model = std::make_shared<Model>();
            model->modulus = modulus;
            auto learnt = learn_model(*model, period);
            if (!learnt) return std::unexpected(learnt.error());
            if (model->design.axes.empty())
                return fail(request_.source.path, "",
                            "nothing to vary, and more accesses than can be interpreted: give sizes by "
                            "-D or --param, or raise --simulate-up-to");
            std::size_t lost = 0;
            for (const auto& s : model->streams) lost += s.lost;
            if (best && lost >= best_lost) continue;
            auto p = certify(model, *learnt);
            if (!p) return std::unexpected(p.error());
            best = std::move(*p);
            best_lost = lost;
            if (best->failures.empty()) break;
        }
        finish(*best);
        return std::move(*best);
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

    Result<Learning> learn_model(Model& model, std::int64_t period) {
        Learning learning;
        DesignOptions options;
        options.modulus = model.modulus;
        options.seed = request_.seed;
        options.smallest = model.modulus == 1 ? 9 : model.modulus <= 3 ? 8 : 3 * model.modulus;
        if (model.modulus > 3) options.spread = 7;
        for (;;) {
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
            auto trace = interpret(*program, model.design.at(largest), run);
            if (!trace) return fail(request_.source.path, trace.error().place, trace.error().message);
            const auto rows = trace->count * model.design.samples.size() / 2;
            if (trace->complete && rows <= kMostRows) break;
            const auto smallest = model.modulus <= 3 ? 5 : model.modulus;
            if (options.smallest <= smallest) {
                if (!trace->complete)
                    return fail(request_.source.path, "",
                                "does not end within " + std::to_string(kMostRows) +
                                    " accesses even at " + text_of(model.design.at(largest)));
                if (options.spread && options.spread <= 5) break;
                options.spread = options.spread ? options.spread - 1 : 7;
                if (model.design.axes.size() == 1 && options.spread < 7) break;
            } else {
                options.smallest = std::max<std::int64_t>(
                    smallest, options.smallest - (model.modulus > 3 ? model.modulus : 2));
            }
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
            auto trace = interpret(*program, model.design.at(size), run);
            if (!trace) return fail(request_.source.path, trace.error().place, trace.error().message);
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
        for (const Stream& s : model.table.streams()) {
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
        p.profile = evaluate_model(*model, model->design.target, request_.bins, p.failures);
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
            size = model.design.held_out(factor, model.modulus);
            double total = 0;
            for (const auto& s : model.streams)
                for (const auto& c : s.cells)
                    total += static_cast<double>(
                        evaluate(c, size, [](std::uint64_t) { return 0; }, [](auto, auto) {}).total);
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
        if (p.failures.empty()) {
            p.certificate.push_back("every access at " + text_of(parameters) +
                                    ", a size not used for fitting, comes out right (" +
                                    std::to_string(trace->count) + ")");
        } else {
            std::vector<std::string> ignored;
            const auto estimate = evaluate_model(model, size, Binning::log2(), ignored);
            DistanceCounter counter(Binning::log2());
            for (const Stream& s : truth.streams())
                for (const auto d : s.points.y)
                    d < 0 ? counter.add_cold() : counter.add(static_cast<std::uint64_t>(d));
            const auto s = accuracy(counter.histogram(), estimate.reuse);
            char digits[16];
            std::snprintf(digits, sizeof digits, "%.4f", s);
            p.failures.push_back(std::string("estimated in part; at ") + text_of(parameters) +
                                 " the same estimate has accuracy " + digits);
        }
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
                    p.failures.push_back("line " + std::to_string(text.line) + ": index " +
                                         std::to_string(value) + " of " + text.array +
                                         " is outside its extent " +
                                         std::to_string(text.extents[e].second));
                    return;
                }
            }
        }
    }

    const Request& request_;
    Parameters target_sizes_;
    Program target_;
};

// A stream without formulas: its two largest samples, continued. The number of accesses grows as the
// polynomial through the samples, or as a power; each quantile of the distance grows as a power.
void estimate(const Model& model, std::size_t stream, const std::vector<std::int64_t>& size,
              DistanceCounter& out) {
    const Stream& s = model.table.streams()[stream];
    std::map<std::int32_t, std::vector<std::int64_t>> by_sample;
    for (std::size_t i = 0; i < s.points.count(); ++i) by_sample[s.sample[i]].push_back(s.points.y[i]);
    const auto scale = [&](const std::vector<std::int64_t>& n) {
        double log_sum = 0;
        for (const auto v : n) log_sum += std::log(static_cast<double>(std::max<std::int64_t>(1, v)));
        return std::exp(log_sum / static_cast<double>(std::max<std::size_t>(1, n.size())));
    };
    std::int32_t large = -1, small = -1;
    for (const auto& [sample, d] : by_sample) {
        if (large < 0 || scale(model.table.samples()[sample]) > scale(model.table.samples()[large]))
            large = sample;
        if (small < 0 || scale(model.table.samples()[sample]) < scale(model.table.samples()[small]))
            small = sample;
    }
    if (large < 0) return;
    auto& top = by_sample[large];
    auto& low = by_sample[small];
    std::sort(top.begin(), top.end());
    std::sort(low.begin(), low.end());
    const double from = scale(model.table.samples()[large]), base = scale(model.table.samples()[small]),
                 to = scale(size);
    const double grow = large == small ? 0 : std::log(to / from) / std::log(from / base);
    const double ratio = std::pow(static_cast<double>(top.size()) / static_cast<double>(low.size()),
                                  std::min(grow, 60.0));
    double total = static_cast<double>(top.size()) * ratio;
    Points points;
    points.variables = size.size();
    std::vector<std::uint32_t> which;
    std::vector<std::uint8_t> order;
    for (std::size_t v = 0; v < size.size(); ++v) order.push_back(static_cast<std::uint8_t>(v));
    for (const auto& [sample, d] : by_sample) {
        for (const auto n : model.table.samples()[sample])
            points.x.push_back(static_cast<std::int32_t>(n));
        points.y.push_back(static_cast<std::int64_t>(d.size()));
        which.push_back(static_cast<std::uint32_t>(which.size()));
    }
    if (const auto p = fit_simplest(points, which, order, static_cast<int>(s.loops))) {
        const auto value = p->integer(size.data());
        if (p->determined_at(size.data()) && value >= 0 && value < (std::int64_t{1} << 59))
            total = static_cast<double>(value);
    }
    if (s.source == kCold) {
        out.add_cold(static_cast<std::uint64_t>(total));
        return;
    }
    const std::size_t quantiles = std::min<std::size_t>(top.size(), 1000);
    double given = 0;
    for (std::size_t q = 0; q < quantiles; ++q) {
        const double share = (static_cast<double>(q) + 0.5) / static_cast<double>(quantiles);
        const double a =
            static_cast<double>(low[static_cast<std::size_t>(share * static_cast<double>(low.size()))]);
        const double b =
            static_cast<double>(top[static_cast<std::size_t>(share * static_cast<double>(top.size()))]);
        const double d = b <= 0 ? 0 : b * std::pow(std::max(1.0, b / std::max(1.0, a)), grow);
        const double upto = total * static_cast<double>(q + 1) / static_cast<double>(quantiles);
        const auto count = static_cast<std::uint64_t>(std::llround(upto)) -
                           static_cast<std::uint64_t>(std::llround(given));
        given = upto;
        if (count) out.add(static_cast<std::uint64_t>(std::min(d, 4e18)), count);
    }
}

}  // namespace

Profile evaluate_model(const Model& model, const std::vector<std::int64_t>& size, const Binning& bins,
                       std::vector<std::string>& failures) {
    Assembly assembly(model.target, model.table.granularity(), bins);
    for (const auto& r : model.table.references()) assembly.add_reference(r.function, r.reference);
    const BinOf bin = bins.kind() == Binning::Kind::exact ? BinOf{} : [&bins](std::uint64_t d) {
        return bins.low_edge(d);
    };
    std::set<std::string> reasons;
    for (std::size_t i = 0; i < model.streams.size(); ++i) {
        const Stream& s = model.table.streams()[i];
        DistanceCounter counter(bins);
        bool fine = model.streams[i].lost == 0;
        for (const Cell& c : model.streams[i].cells) {
            if (!fine) break;
            const auto e = evaluate(c, size, bin, [&](std::uint64_t d, std::uint64_t n) {
                s.source == kCold ? counter.add_cold(n) : counter.add(d, n);
            });
            if (!e.valid || !e.determined || !e.complete) {
                reasons.insert(
                    e.complete ? e.why
                               : "more distances than can be listed one by one; ask for --bins log2");
                fine = false;
            }
        }
        if (!fine) {
            counter = DistanceCounter(bins);
            estimate(model, i, size, counter);
        }
        assembly.add_stream(s.reference, s.source, counter);
    }
    failures.insert(failures.end(), reasons.begin(), reasons.end());
    return assembly.finish();
}

Result<Prediction> predict(const Request& request) {
    return Predictor(request).run();
}

}  // namespace revisit::predict
