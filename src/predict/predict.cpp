// Static prediction.
//
// The method. Run the slice at a few small sizes; cut each reference's iterations into cells; fit exact
// polynomials (sampling.cpp, cells.cpp); check them at other sizes and at the target (certify.cpp);
// evaluate them there. Nothing of the program is run, and the cost does not grow with the target.
// Without a certificate the answer says what failed and is interpreted whole where that is short
// enough, or estimated (estimate.cpp), and then states how good such an estimate is.
#include "predict/predict.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <numeric>
#include <set>

#include "core/try.h"
#include "predict/certify/certify.h"
#include "predict/certify/layouts.h"
#include "predict/certify/verify.h"
#include "predict/estimate/estimate.h"
#include "predict/fit/fixed_numbers.h"
#include "predict/fit/sampling.h"
#include "predict/run/address_space.h"
#include "predict/run/simulate.h"
#include "revisit/accuracy.h"

namespace revisit::predict {
namespace {

constexpr std::uint64_t kInterpretAtMost = 4'000'000'000;
constexpr std::int64_t kLargestTile = 128;
constexpr double kCountedShare = 6;  // counting had a tenth of the time

class Predictor {
 public:
    explicit Predictor(const Request& request)
        : request_(request), session_{request, Deadline(request.budget), request.macros, {}} {
        session_.sizes.insert(request.parameters.begin(), request.parameters.end());
    }

    Result<Prediction> run() {
        auto programs = session_.compiled({request_.macros});
        if (!programs) return unexpected(programs.error());
        session_.target = std::move(programs->front());
        if (!request_.argv.empty()) TRY(take_command_line());
        TRY(known_parameters());
        for (const DataSource& source : request_.data)
            session_.target.data.push_back(TRY(read_table(source, session_.target)));
        if (const auto open = open_parameters(session_.target, session_.sizes); !open.empty()) {
            std::string names;
            for (const auto& n : open)
                names += n.starts_with("argv[") ? " --argv" : " --param " + n + "=…";
            return fail(request_.source.path, "", "sizes are missing: give" + names);
        }
        layout_ = depends_on_layout(session_.target, session_.sizes, request_);
        if (!request_.data.empty()) return with_data();
        if (request_.method == Method::simulate) return interpreted(kInterpretAtMost, Deadline());
        if (request_.method == Method::fit || request_.method == Method::estimate) {
            auto prediction = fitted();
            if (!prediction) return prediction;
            if (request_.method == Method::estimate ||
                (!prediction->failures.empty() && request_.estimate))
                TRY(estimated(*prediction, *learnt_));
            finish(*prediction);
            return prediction;
        }
        // How long is the run? Counting alone goes by whole inner loops.
        RunOptions count;
        count.keep = false;
        count.max_accesses = request_.simulate_at_most + 1;
        count.deadline = session_.deadline.part(0.1);
        const auto counted = interpret(session_.target, session_.sizes, count);
        if (!counted) return fail(request_.source.path, counted.error().place, counted.error().message);
        if (counted->complete && counted->count <= request_.simulate_up_to)
            return interpreted(kInterpretAtMost, Deadline());
        short_enough_ = counted->complete;
        // By blocks repetition is found sooner than formulas, and more often.
        if (!short_enough_ && request_.granularity > 1)
            if (auto p = repeated(); p) return std::move(*p);
        auto prediction = fitted();
        const bool fits = prediction && prediction->failures.empty() && !too_few(*prediction, *counted);
        if (fits && prediction->unproven.empty()) {
            finish(*prediction);
            return prediction;
        }
        // A run that goes to its end is a proof.
        if (short_enough_) return interpreted(kInterpretAtMost, Deadline());
        // Counting may have taken too long; the formulas then show whether the run is short.
        if (fits && prediction->profile.accesses <= static_cast<double>(request_.simulate_at_most))
            if (auto whole = interpreted(request_.simulate_at_most, Deadline(request_.budget)); whole)
                return whole;
        if (request_.granularity <= 1)
            if (auto p = repeated(); p) return std::move(*p);
        if (fits) {
            finish(*prediction);
            return prediction;
        }
        if (prediction && request_.estimate && ends_soon(*prediction, *counted))
            if (auto whole = interpreted(request_.simulate_at_most, Deadline(request_.budget)); whole)
                return whole;
        if (prediction && request_.estimate) TRY(estimated(*prediction, *learnt_));
        if (prediction && (request_.estimate || prediction->failures.empty()) &&
            too_few(*prediction, *counted))
            return fail(request_.source.path, "",
                        "has not ended after " + std::to_string(counted->count) +
                            " accesses, though smaller sizes would have it end sooner: a loop without "
                            "end?");
        if (prediction) finish(*prediction);
        return prediction;
    }

 private:
    // What main makes numbers of.
    Result<void> take_command_line() {
        for (const Argument& a : session_.target.functions.front().arguments) {
            if (a.name == "argc" && a.kind == Kind::integer)
                session_.sizes["argc"] = static_cast<std::int64_t>(request_.argv.size()) + 1;
            if (!a.inside || !a.name.starts_with("argv[")) continue;
            const auto number = static_cast<std::size_t>(std::atoll(a.name.c_str() + 5));
            if (number == 0 || number > request_.argv.size())
                return fail(request_.source.path, "",
                            "--argv: the program reads " + a.name + ", and " +
                                std::to_string(request_.argv.size()) + " are given");
            const auto& text = request_.argv[number - 1];
            std::int64_t value = 0;
            const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
            if (error != std::errc{} || end != text.data() + text.size())
                return fail("--argv " + text + ": " + a.name + " is read as a whole number");
            session_.sizes[a.name] = value;
        }
        return {};
    }

    // What is given must be there, and fit.
    Result<void> known_parameters() const {
        const Program& program = session_.target;
        for (const auto& [name, value] : request_.parameters) {
            const auto& arguments = program.functions.front().arguments;
            auto a = std::find_if(arguments.begin(), arguments.end(), [&](const Argument& x) {
                return x.name == name && x.kind == Kind::integer;
            });
            if (a == arguments.end())
                a = std::find_if(arguments.begin(), arguments.end(),
                                 [&](const Argument& x) { return x.name == name; });
            const auto given = "--param " + name + "=" + std::to_string(value);
            if (a == arguments.end()) {
                if (std::none_of(program.globals.begin(), program.globals.end(),
                                 [&](const Global& g) { return g.name == name; }))
                    return fail(request_.source.path, "",
                                given + ": no argument or global of that name decides anything here" +
                                    known_names());
            } else if (a->kind != Kind::integer) {
                return fail(request_.source.path, "", given + ": is no whole number there");
            } else if (a->is_signed && a->width < 64 && value >= std::int64_t{1} << (a->width - 1)) {
                return fail(request_.source.path, "",
                            given + ": more than a signed number of " + std::to_string(a->width) +
                                " bits holds");
            } else if (a->width < 64 && (value < -(std::int64_t{1} << (a->width - 1)) ||
                                         value >= std::int64_t{1} << a->width)) {
                return fail(request_.source.path, "",
                            given + ": more than its " + std::to_string(a->width) + " bits hold");
            }
        }
        return {};
    }

    std::string known_names() const {
        std::string names;
        for (const Argument& a : session_.target.functions.front().arguments)
            if (a.kind == Kind::integer) names += (names.empty() ? "" : ", ") + a.name;
        return names.empty() ? "" : "; arguments are " + names;
    }

    // The run itself was seen to be longer: what holds for smaller sizes does not hold for it.
    static bool too_few(const Prediction& p, const Trace& counted) {
        return p.profile.accesses < static_cast<double>(counted.count) * 0.9;
    }

    // Whether the run is so short that its end is near, though counting did not reach it.
    bool ends_soon(const Prediction& p, const Trace& counted) const {
        double all = 0;
        for (const auto& [reference, accesses] : totals_of(*p.model)) all += accesses;
        return counted.count <= request_.simulate_at_most &&
               all < kCountedShare * static_cast<double>(counted.count);
    }

    Result<Prediction> interpreted(std::uint64_t limit, const Deadline& deadline) {
        auto run = simulate(session_.target, session_.sizes, request_, request_.bins, deadline, limit);
        if (!run) return unexpected(run.error());
        if (!run->complete)
            return fail(request_.source.path, "",
                        "too long to interpret: more than " + std::to_string(limit) +
                            " accesses, or a loop without end");
        return measured(std::move(*run), "every access of the run was interpreted");
    }

    // Data has no sizes that could vary: the run is interpreted, and where the data is random, several.
    Result<Prediction> with_data() {
        if (request_.method == Method::fit)
            return fail(request_.source.path, "", "--data: one input has no formulas");
        auto& tables = session_.target.data;
        const bool random =
            std::any_of(tables.begin(), tables.end(), [](const Table& t) { return t.random; });
        auto first = TRY(interpreted(kInterpretAtMost, Deadline()));
        if (!random) return first;
        // How much the chance matters: other inputs of the same kind.
        double off = 0;
        for (const std::uint64_t seed : {2, 3}) {
            for (Table& t : tables) t.seed = seed;
            const auto other = TRY(interpreted(kInterpretAtMost, Deadline()));
            off = std::max(off, 1 - accuracy(first.profile.reuse.rebin(Binning::log2()),
                                             other.profile.reuse.rebin(Binning::log2())));
        }
        char stated[64];
        std::snprintf(stated, sizeof stated, "%.4f", std::clamp(1 - 3 * off - 1e-4, 0.0, 0.9999));
        first.failures.push_back(std::string("--data uniform: one input by chance; with accuracy ") +
                                 stated + " or better, by two others");
        first.profile.certainty = first.certainty();
        first.profile.notes.push_back("not exact: " + first.failures.back().sentence());
        return first;
    }

    // From a part of the run, where the rest does the same.
    std::optional<Prediction> repeated() {
        auto found = simulate_repeating(
            session_.target, session_.sizes, request_,
            Deadline(request_.granularity > 1 ? std::max(1.0, session_.deadline.left()) : 4),
            request_.simulate_at_most / 4 * 5);
        if (!found || !*found) return std::nullopt;
        Repetition& r = **found;
        const auto every =
            r.period == 1 ? "every iteration" : "every " + std::to_string(r.period) + " iterations";
        return measured(std::move(r.run),
                        "the loop at line " + std::to_string(r.line) + " does the same again after " +
                            every + ", moved by whole blocks, in all " + std::to_string(r.iterations) +
                            "; " + std::to_string(r.shown + r.period) + " were interpreted");
    }

    Prediction measured(Simulation run, const std::string& how) {
        Prediction p;
        p.profile = std::move(run.profile);
        p.failures = std::move(run.doubts);
        // Calls in calls have no formulas; a run that went to its end needs none.
        std::erase_if(p.failures, [](const Doubt& d) { return d.kind == Doubt::Kind::recursion; });
        for (const ReferencePlace& place : run.references) {
            const Reference& r = session_.target.functions[place.function].references[place.reference];
            for (std::size_t e = 0; e < r.extents.size(); ++e)
                for (const auto index : {place.indices[e].low, place.indices[e].high})
                    if (!place.indices[e].empty() &&
                        (index < 0 || index >= static_cast<std::int64_t>(r.extents[e].second)))
                        p.failures.push_back(outside(r, e, index));
        }
        p.certificate.push_back(how);
        finish(p);
        return p;
    }

    void finish(Prediction& p) {
        if (layout_) p.failures.push_back(*layout_);
        if (request_.granularity > kLine)
            p.failures.push_back("arrays start on 64-byte boundaries: where within a block of " +
                                 std::to_string(request_.granularity) + " bytes is not known");
        if (loosely_allocated(session_.target, request_.granularity))
            p.failures.push_back(
                "the allocator aligns to 16 bytes: where memory it gives lies within a block is not "
                "known");
        if (request_.granularity > 1 && finds_pointers(session_.target))
            p.failures.push_back(
                "pointers are read from memory: where in a block the arrays start that they point to "
                "is "
                "not known");
        if (request_.granularity > 1 && has_local_arrays(session_.target))
            p.failures.push_back(
                "local variables lie where the stack happens to be: their place within a block is not "
                "known" +
                by_stack(p));
        if (request_.granularity > 1 && has_small_globals(session_.target))
            p.failures.push_back(
                "global variables of less than 64 bytes share blocks with whatever the linker puts "
                "beside them");
        p.profile.certainty = p.certainty();
        p.target = std::make_shared<const Program>(session_.target);
        assume(p.profile);
        for (const auto& line : p.certificate) p.profile.notes.push_back("checked: " + line);
        for (const auto& lack : p.unproven)
            if (p.failures.empty()) p.profile.notes.push_back("not proven: " + lack.sentence());
        for (const auto& line : p.failures) p.profile.notes.push_back("not exact: " + line.sentence());
    }

    // What the place of the stack changes, where the run was interpreted.
    std::string by_stack(const Prediction& p) const {
        if (p.model || !p.failures.empty()) return "";
        const auto least = accuracy_by_stack(session_.target, session_.sizes, request_, p.profile);
        if (!least) return "";
        char text[80];
        std::snprintf(text, sizeof text, "; with accuracy %.4f or better, by three other places",
                      *least);
        return text;
    }

    // Blocks of the heap that need not start where a block of the granularity does.
    static bool loosely_allocated(const Program& program, std::uint64_t granularity) {
        for (const Function& f : program.functions)
            for (const Block& b : f.blocks)
                for (const Instruction& i : b.code)
                    if (i.op == Op::allocate && static_cast<std::uint64_t>(i.imm) < granularity)
                        return true;
        return false;
    }

    static bool finds_pointers(const Program& program) {
        for (const Function& f : program.functions)
            for (const Reference& r : f.references)
                if (r.pointer) return true;
        return false;
    }

    // Globals smaller than a line, beside others or not: one alone is on its own line wherever it lies.
    static bool has_small_globals(const Program& program) {
        std::set<std::string> named;
        for (const Function& f : program.functions)
            for (const Reference& r : f.references) named.insert(r.array);
        std::size_t small = 0, all = 0;
        for (const Global& g : program.globals)
            if (named.contains(g.name)) {
                ++all;
                small += g.size < 64;
            }
        return small > 0 && all > 1;
    }

    // What the source does not show: exact means exact under these.
    void assume(Profile& profile) const {
        std::string plain;
        std::size_t pointers = 0;
        for (const Argument& a : session_.target.functions.front().arguments) {
            if (a.kind != Kind::pointer) continue;
            ++pointers;
            if (!a.alone) plain += (plain.empty() ? "" : ", ") + a.name;
        }
        std::set<std::string> named;
        for (const Function& f : session_.target.functions)
            for (const Reference& r : f.references) named.insert(r.array);
        bool globals = false;
        for (const Global& g : session_.target.globals) globals |= named.contains(g.name);
        if (!plain.empty() && (pointers > 1 || globals))
            profile.assumes.push_back("the arguments " + plain +
                                      " point to arrays of their own (restrict would promise it)");
        if (finds_pointers(session_.target))
            profile.assumes.push_back(
                "pointers that are read from memory, and were not written here, point to arrays of "
                "their "
                "own");
        if (session_.target.memory_needed)
            for (const Global& g : session_.target.globals)
                if (!g.constant && !g.values.empty() && !session_.sizes.contains(g.name))
                    profile.assumes.push_back(
                        "the global " + g.name +
                        (g.values.size() == 1 ? " is " + std::to_string(g.values.front())
                                              : std::string(" has its initial values")) +
                        " at the start" + (g.values.size() == 1 ? ", as it is initialised" : ""));
        for (const Argument& a : session_.target.functions.front().arguments)
            if (const auto at = request_.parameters.find(a.name);
                a.kind == Kind::integer && a.width < 64 && at != request_.parameters.end() &&
                at->second >= std::int64_t{1} << (a.width - 1))
                profile.assumes.push_back(a.name + " is unsigned: as a signed number of " +
                                          std::to_string(a.width) + " bits it would be negative");
        for (const DataSource& d : request_.data)
            profile.assumes.push_back(
                d.name + " holds " +
                (d.from.starts_with("uniform:") ? "values " + d.from : "what " + d.from + " has"));
        const auto bulk = [](const Instruction& i) { return i.op == Op::fill || i.op == Op::move; };
        for (const Function& f : session_.target.functions)
            if (request_.granularity <= 1 &&
                std::any_of(f.blocks.begin(), f.blocks.end(), [&](const Block& b) {
                    return std::any_of(b.code.begin(), b.code.end(), bulk);
                })) {
                profile.assumes.push_back(
                    "memory filled or copied at once is one access to its start, or a read and a "
                    "write");
                break;
            }
        const auto& path = request_.source.path;
        if (!request_.compiler && !path.ends_with(".ll") && !path.ends_with(".bc"))
            profile.assumes.push_back(
                "clang at -O" + request_.source.level() +
                (request_.source.optimise == 1
                     ? ", loops as they are written: not unrolled, no vectors, none turned into memset"
                     : "") +
                (request_.source.in_program ? "; with its callers in sight, as a function of its own"
                                            : "; called from elsewhere, not inlined into its program"));
        std::string inside;
        for (const Argument& a : session_.target.functions.front().arguments)
            if (a.inside && !a.name.starts_with("argv["))
                inside += (inside.empty() ? "" : ", ") + a.name;
        if (!inside.empty()) profile.assumes.push_back("nothing changes while it runs: " + inside);
        if (request_.granularity > 1)
            profile.assumes.push_back(
                "arrays of 64 bytes or more, local ones too, start on a 64-byte boundary");
    }

    struct Attempt {
        std::int64_t modulus = 1;   // sizes keep the target's residues
        bool proportional = false;  // and its ratios
        std::int64_t shift = 0;     // and are larger than indices are apart
        Pinned pinned = {};         // tiles stay as they are
        bool parted = false;        // or are varied
    };

    // Loops that step by large numbers: sizes of which they are a part keep their residues.
    std::optional<Attempt> tiled(const FixedPeriods& fixed, std::int64_t base) const {
        Attempt a{base};
        for (const auto step : fixed.steps) {
            if (step < kLargeNumber || step > kLargestTile) continue;
            bool sized = false, parted = false;
            for (const auto& [name, value] : session_.sizes) {
                if (value == step) sized = a.pinned.names.insert(name).second;
                parted |= value >= 2 * step;
            }
            if (sized && !parted) return std::nullopt;
            a.modulus = std::lcm(a.modulus, step);
            a.pinned.tiles.insert(step);
        }
        if (a.pinned.tiles.empty() || a.modulus > kLargestTile) return std::nullopt;
        a.modulus = std::lcm(a.modulus, request_.granularity > 1 ? block_period() : 1);
        a.pinned.others = base;
        return a;
    }

    std::vector<Attempt> attempts() const {
        const auto fixed = fixed_periods(session_.target, session_.target);
        std::int64_t base = 1;
        for (const auto m : fixed.moduli)
            if (m <= 64 && std::lcm(base, m) <= 64) base = std::lcm(base, m);
        if (auto tiles = tiled(fixed, base)) {
            std::vector<Attempt> all{*tiles};
            tiles->parted = true;
            if (request_.granularity <= 1 && base == 1) all.push_back(*tiles);
            return all;
        }
        for (const auto m : fixed.steps)
            if (m <= 16 && std::lcm(base, m) <= 64) base = std::lcm(base, m);
        if (request_.granularity > 1) return {{std::lcm(block_period(), base), false}};
        std::vector<Attempt> all{{base, false}, {base, true}};
        if (base == 1) all.insert(all.end(), {{2, false}, {2, true}});
        if (const auto shift = longest_small_shift(session_.target); shift > 3)
            all.push_back({base, false, shift});
        return all;
    }

    Result<Prediction> fitted() {
        const std::int64_t period = request_.granularity > 1 ? block_period() : 1;
        std::optional<Prediction> best;
        std::optional<Learning> best_learnt;
        std::size_t best_lost = 0;
        const auto tries = attempts();
        const bool tiled = !tries.front().pinned.tiles.empty();
        for (const auto& attempt : tries) {
            if (best && session_.deadline.passed()) break;
            if (best && attempt.proportional && best->model->design.axes.size() < 2) continue;
            auto model = std::make_shared<Model>();
            model->modulus = attempt.modulus;
            model->shift = attempt.shift;
            model->pinned = attempt.pinned;
            model->parted = attempt.parted;
            auto learnt = learn_model(session_, *model, period, attempt.proportional,
                                      session_.deadline.part(tries.size() > 1 && !best ? 0.5 : 0.8));
            if (!learnt) {
                if (best) {
                    best->failures.push_back(learnt.error().message);
                    continue;
                }
                return unexpected(learnt.error());
            }
            if (model->design.axes.empty() && learnt->sampled)
                return fail(
                    request_.source.path, "",
                    "nothing to vary, and more accesses than can be interpreted, or a loop without "
                    "end: give sizes by -D or --param, or use --method simulate");
            if (!learnt->sampled) {
                if (best) {
                    best->failures.insert(best->failures.end(), learnt->doubts.begin(),
                                          learnt->doubts.end());
                    continue;
                }
                best.emplace();
                best->model = model;
                best->failures.assign(learnt->doubts.begin(), learnt->doubts.end());
                best_learnt = std::move(*learnt);
                best_lost = SIZE_MAX;
                continue;
            }
            std::size_t lost = 0;
            for (const auto& s : model->streams) lost += s.lost;
            if (best && lost > 0 && lost >= best_lost) continue;
            auto p = certify(session_, model, *learnt);
            if (!p) return unexpected(p.error());
            const bool certain = p->failures.empty() && p->unproven.empty();
            // What estimates start from has tiles as they are.
            if (attempt.parted && !p->failures.empty()) {
                best->failures.insert(best->failures.end(), p->failures.begin(), p->failures.end());
                continue;
            }
            const bool fits = p->failures.empty() && (!best || !best->failures.empty());
            if (!best || certain || fits || (lost < best_lost && !tiled)) {
                best = std::move(*p);
                best_learnt = std::move(*learnt);
                best_lost = lost;
            }
            // Only residues are left to follow: the next attempt may.
            const bool residues = !best->unproven.empty() &&
                                  std::all_of(best->unproven.begin(), best->unproven.end(),
                                              [](auto& d) { return d.kind == Doubt::Kind::period; });
            if (certain || (best->failures.empty() && !residues)) break;
            if (data_decides(best_learnt->doubts)) break;
        }
        learnt_ = std::move(best_learnt);
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
    Result<void> estimated(Prediction& p, const Learning& learning) {
        const Model& model = *p.model;
        // Copies lie in blocks as the target does, also where samples could not.
        Design design = model.design;
        if (request_.granularity > 1)
            for (Axis& a : design.axes) a.modulus = std::lcm(a.modulus, block_period());
        const Reduction how{design, learning.programs.target(),
                            [&](const std::vector<std::int64_t>& size) {
                                return learning.programs.at(design.at(size));
                            },
                            totals_of(model)};
        // Calls in calls grow as no power of a size does.
        for (const auto& doubt : learning.doubts)
            if (doubt.kind == Doubt::Kind::recursion)
                return fail(request_.source.path, "",
                            doubt.sentence() +
                                ", more accesses than can be interpreted in the time allowed, and "
                                "nothing to estimate them by");
        for (const auto& failure : p.failures)
            if (failure.kind == Doubt::Kind::too_large)
                return fail(request_.source.path, "", failure.sentence());
        auto e = estimate(how, request_,
                          Deadline(std::max({1.0, request_.budget / 2, session_.deadline.left()})));
        if (!e)
            return fail(
                e.error().file, e.error().place,
                (p.failures.empty() ? "" : p.failures.front().sentence() + "; ") + e.error().message);
        if (e->profile.accesses >= 0x1p62)
            return fail(request_.source.path, "", "makes more accesses than 62 bits count");
        p.profile = std::move(e->profile);
        // Rounded down, and never to 1.
        const auto shown = [](double accuracy) {
            char text[64];
            std::snprintf(text, sizeof text, "%.4f", std::clamp(accuracy - 5e-5, 0.0, 0.9999));
            return std::string(text);
        };
        p.failures.push_back(
            "estimated from reduced copies of the run, with accuracy " + shown(e->accuracy) +
            " or better; the copy at " + sizes_text(e->parameters) +
            ", estimated in the same way from smaller ones, comes out with " + shown(e->tested));
        return {};
    }

    // Iterations after which the position in a block repeats, for the smallest elements accessed in
    // loops.
    std::int64_t block_period() const {
        std::int64_t element = 64;
        for (const auto& f : session_.target.functions)
            for (const auto& b : f.blocks)
                for (const auto& i : b.code)
                    if ((i.op == Op::load || i.op == Op::store) && b.loop >= 0 && i.b < 0)
                        element = std::min<std::int64_t>(
                            element, std::max<std::uint32_t>(
                                         1, f.references[static_cast<std::size_t>(i.imm)].size));
        return std::max<std::int64_t>(1, static_cast<std::int64_t>(request_.granularity) / element);
    }
    const Request& request_;
    Session session_;
    std::optional<Learning> learnt_;     // what the formulas came from
    std::optional<std::string> layout_;  // that it matters, where it does
    bool short_enough_ = false;          // to be interpreted whole, if need be
};

}  // namespace

Result<Prediction> predict(const Request& request) {
    return Predictor(request).run();
}

}  // namespace revisit::predict
