// Static prediction.
//
// The method. Run the slice at a few small sizes; cut each reference's iterations into cells; fit exact
// polynomials (sampling.cpp, cells.cpp); check them at other sizes and at the target (certify.cpp);
// evaluate them there. Nothing of the program is run, and the cost does not grow with the target.
// Without a certificate the answer says what failed and is interpreted whole where that is short
// enough, or estimated (estimate.cpp), and then states how good such an estimate is.
#include "predict/predict.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/errors.h"
#include "core/files.h"
#include "core/try.h"
#include "predict/certify/assumptions.h"
#include "predict/certify/certify.h"
#include "predict/certify/layouts.h"
#include "predict/estimate/estimate.h"
#include "predict/fit/attempts.h"
#include "predict/fit/sampling.h"
#include "predict/input/record_data.h"
#include "predict/parameters.h"
#include "predict/run/parallel.h"
#include "predict/run/simulate.h"
#include "revisit/accuracy.h"

namespace revisit::predict {
namespace {

constexpr std::uint64_t kInterpretAtMost = 4'000'000'000;
constexpr std::uint64_t kWhereAsked = 100'000'000'000;  // --method simulate: some ten minutes
constexpr double kCountedShare = 6;                     // counting had a tenth of the time

class Predictor {
 public:
    explicit Predictor(const Request& request)
        : request_(request), session_{request, Deadline(request.budget), request.macros, {}} {
        session_.sizes.insert(request.parameters.begin(), request.parameters.end());
    }

    Result<Prediction> run() {
        session_.target = std::move(TRY(session_.compiled({request_.macros})).front());
        if (!request_.argv.empty()) TRY(take_command_line(session_));
        TRY(check_parameters(session_));
        for (const DataSource& source : request_.data)
            session_.target.data.push_back(TRY(read_table(source, session_.target)));
        if (request_.record) TRY(take_recorded());
        if (const auto open = open_parameters(session_.target, session_.sizes); !open.empty()) {
            std::string names;
            for (const auto& n : open) names += (names.empty() ? "" : ", ") + n;
            const std::string missing = "sizes are missing: " + names;
            const bool arguments_alone =
                std::ranges::all_of(open, [](const std::string& n) { return n.starts_with("argv["); });
            if (arguments_alone) return fail(ErrorCode::option, request_.source.path, "argv", missing);
            return fail(ErrorCode::no_size, request_.source.path, "", missing);
        }
        layout_ = depends_on_layout(session_.target, session_.sizes, request_);
        if (request_.threads > 1) return in_parallel();
        if (!session_.target.data.empty()) return with_data();
        if (request_.method == Method::simulate) return interpreted(kWhereAsked, Deadline());
        if (request_.method == Method::repeat) {
            if (auto p = repeated(); p) return std::move(*p);
            return fail(request_.source.path, "",
                        "no outermost loop was found that repeats, moved by whole blocks");
        }
        if (request_.method == Method::fit || request_.method == Method::estimate) {
            auto prediction = fitted();
            if (!prediction) return prediction;
            if (request_.method == Method::estimate ||
                (!prediction->failures.empty() && request_.estimate))
                TRY(estimated(*prediction, *learnt_));
            finish(*prediction);
            return prediction;
        }
        if (request_.granularity > 1)
            if (auto p = repeated(request_.simulate_up_to); p) return std::move(*p);
        // How long is the run? Counting alone goes by whole inner loops.
        RunOptions count;
        count.keep = false;
        count.max_accesses = request_.simulate_at_most + 1;
        count.deadline = session_.deadline.part(0.1);
        const auto counted = interpret(session_.target, session_.sizes, count);
        if (!counted) return in_file(request_.source.path, counted.error());
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
        // Smaller sizes may do what cannot be interpreted, and the target not.
        if (!prediction)
            if (auto whole = interpreted(request_.simulate_at_most, Deadline(request_.budget)); whole)
                return whole;
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
    // The run itself was seen to be longer: what holds for smaller sizes does not hold for it.
    static bool too_few(const Prediction& p, const Trace& counted) {
        return p.profile.accesses < static_cast<double>(counted.count) * 0.9;
    }

    // Whether the run is so short that its end is near, though counting did not reach it.
    bool ends_soon(const Prediction& p, const Trace& counted) const {
        double all = 0;
        const auto totals = totals_of(*p.model);
        for (const ReferenceInfo& r : p.model->table.references()) {
            const auto known = totals.find(key_of(r));
            all += known == totals.end() ? grown(*p.model, r) : known->second;
        }
        return all > 0 && counted.count <= request_.simulate_at_most &&
               all < kCountedShare * static_cast<double>(counted.count);
    }

    // About how often a reference without a formula is accessed at the target: from the first sample
    // to the last it grows as some power of the sizes.
    static double grown(const Model& model, const ReferenceInfo& r) {
        const auto volume = [](const std::vector<std::int64_t>& size) {
            double product = 1;
            for (const auto n : size) product *= static_cast<double>(std::max<std::int64_t>(1, n));
            return product;
        };
        const auto& samples = model.table.samples();
        if (samples.empty() || r.totals.back() <= 0) return 0;
        const double last = volume(samples.back()), first = volume(samples.front());
        auto power = static_cast<double>(r.loops.size());
        if (r.totals.front() > 0 && last > first)
            power =
                std::min(power, std::log(r.totals.back() / r.totals.front()) / std::log(last / first));
        return r.totals.back() * std::pow(volume(model.design.target) / last, power);
    }

    Result<Prediction> interpreted(std::uint64_t limit, const Deadline& deadline) {
        auto run =
            TRY(simulate(session_.target, session_.sizes, request_, request_.bins, deadline, limit));
        if (!run.complete)
            return fail(request_.source.path, "",
                        "too long to interpret: more than " + std::to_string(limit) +
                            " accesses, or a loop without end");
        return measured(std::move(run), "every access of the run was interpreted");
    }

    // A stack for each thread of the parallel loops.
    Result<Prediction> in_parallel() {
        const auto& path = request_.source.path;
        const auto loops = TRY(parallel_loops(session_.target, path, TRY(read_file(path))));
        auto run =
            TRY(simulate_threads(session_.target, session_.sizes, request_, loops, kInterpretAtMost));
        if (!run.complete) return fail(ErrorCode::no_threads, path, "", "too long to interpret");
        run.doubts.emplace_back(
            "threads follow each other within a parallel loop here, and what OpenMP adds (bounds, "
            "addresses "
            "of shared variables) is not counted");
        return measured(std::move(run),
                        "every access of the run was interpreted, with a stack for each of " +
                            std::to_string(request_.threads) + " threads");
    }

    // What is given counts more than what a run had.
    Result<void> take_recorded() {
        auto recorded = TRY(record_data(request_, session_.target, *request_.record));
        session_.sizes.insert(recorded.numbers.begin(), recorded.numbers.end());
        for (Table& t : recorded.tables)
            if (std::none_of(session_.target.data.begin(), session_.target.data.end(),
                             [&](const Table& given) { return given.name == t.name; }))
                session_.target.data.push_back(std::move(t));
        return {};
    }

    // Data has no sizes that could vary: the run is interpreted, and where the data is random, several.
    Result<Prediction> with_data() {
        if (request_.method == Method::fit)
            return fail(ErrorCode::option, request_.source.path, "data", "one input has no formulas");
        if (request_.method == Method::repeat)
            return fail(ErrorCode::option, request_.source.path, "data",
                        "such runs are interpreted to the end");
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
        first.failures.push_back(std::string("uniform data: one input by chance; with accuracy ") +
                                 stated + " or better, by two others");
        first.profile.certainty = first.certainty();
        first.profile.notes.push_back("not exact: " + first.failures.back().sentence());
        return first;
    }

    // From a part of the run, where the rest does the same.
    std::optional<Prediction> repeated(std::optional<std::uint64_t> if_shown = {}) {
        auto found = simulate_repeating(
            session_.target, session_.sizes, request_,
            Deadline(request_.granularity > 1 ? std::max(1.0, session_.deadline.left()) : 4),
            request_.simulate_at_most / 4 * 5, if_shown);
        if (!found || !*found) return std::nullopt;
        Repetition& r = **found;
        std::string how;
        for (const auto& loop : r.loops) {
            const auto every = loop.period == 1
                                   ? "every iteration"
                                   : "every " + std::to_string(loop.period) + " iterations";
            how += (how.empty() ? "" : "; ") + ("the loop at line " + std::to_string(loop.line)) +
                   " does the same again after " + every + ", moved by whole blocks, in all " +
                   std::to_string(loop.iterations) + "; " + std::to_string(loop.shown + loop.period) +
                   " were interpreted";
        }
        return measured(std::move(r.run), how);
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
        const bool fails = !p.failures.empty();
        bool placed = false;
        for (auto& doubt : layout_doubts(session_)) {
            placed |= doubt.kind == Doubt::Kind::place;
            p.failures.push_back(std::move(doubt));
        }
        if (request_.granularity > 1 && has_local_arrays(session_.target)) {
            p.failures.push_back(
                "local variables lie where the stack happens to be: their place within a block is not "
                "known");
            placed = true;
        }
        if (placed && !fails) p.failures.back().text += by_place(p);
        p.profile.certainty = p.certainty();
        p.target = std::make_shared<const Program>(session_.target);
        p.profile.assumes = assumptions(session_);
        for (const auto& line : p.certificate) p.profile.notes.push_back("checked: " + line);
        for (const auto& lack : p.unproven)
            if (p.failures.empty()) p.profile.notes.push_back("not proven: " + lack.sentence());
        for (const auto& line : p.failures) p.profile.notes.push_back("not exact: " + line.sentence());
    }

    // What the place of the stack, the heap and of arrays that were found changes, where the run was
    // interpreted.
    std::string by_place(const Prediction& p) const {
        if (p.model) return "";
        const auto least = accuracy_by_place(session_.target, session_.sizes, request_, p.profile);
        if (!least) return "";
        char text[80];
        std::snprintf(text, sizeof text, "; with accuracy %.4f or better, by three other places",
                      *least);
        return text;
    }

    Result<Prediction> fitted() {
        const std::int64_t period = request_.granularity > 1 ? block_period(session_) : 1;
        std::optional<Prediction> best;
        std::optional<Learning> best_learnt;
        std::size_t best_lost = 0;
        const auto tries = attempts(session_);
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
                    ErrorCode::no_formulas, request_.source.path, "",
                    "nothing to vary, and more accesses than can be interpreted, or a loop without "
                    "end");
            if (!learnt->sampled || learnt->rough) {
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
            auto p = TRY(certify(session_, model, *learnt));
            const bool certain = p.failures.empty() && p.unproven.empty();
            // What estimates start from has tiles as they are.
            if (attempt.parted && !p.failures.empty()) {
                best->failures.insert(best->failures.end(), p.failures.begin(), p.failures.end());
                continue;
            }
            const bool fits = p.failures.empty() && (!best || !best->failures.empty());
            if (!best || certain || fits || (lost < best_lost && !tiled)) {
                best = std::move(p);
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

    // A run that is only counted; nothing if it does not end in time.
    static Reduction::Totals counted(const Program& program, const Parameters& sizes,
                                     const Deadline& deadline) {
        std::vector<double> accesses;  // by place
        RunOptions count;
        count.keep = false;
        count.deadline = deadline;
        count.max_accesses = std::uint64_t{1} << 59;
        count.progression = [&](const Stretch& s) {
            if (s.reference >= accesses.size()) accesses.resize(s.reference + 1);
            accesses[s.reference] += static_cast<double>(s.rounds);
        };
        const auto run = interpret(program, sizes, count);
        Reduction::Totals totals;
        for (std::size_t i = 0; run && run->complete && i < accesses.size(); ++i) {
            const auto& place = run->references[i];
            totals[{place.function, place.reference, place.context}] += accesses[i];
        }
        return totals;
    }

    // The totals where samples were too long to be measured, as several tiles are: polynomials through
    // those of smaller runs that are counted alone; of several sizes, the target's own.
    Reduction::Totals counted_totals(const Design& design, const Programs& programs) const {
        constexpr std::int64_t kRuns = 8;
        const Deadline deadline(request_.budget / 2);
        const Axis& axis = design.axes.front();
        if (design.axes.size() > 1 || axis.target / axis.modulus <= kRuns)
            return counted(session_.target, session_.sizes, deadline);
        Points points;
        points.variables = 1;
        std::vector<std::uint32_t> which;
        std::vector<Reduction::Totals> runs;
        for (std::int64_t k = 1; k <= kRuns; ++k) {
            const auto size = axis.target % axis.modulus + k * axis.modulus;
            const auto sizes = design.at({size});
            const auto program = programs.at(sizes);
            if (program) runs.push_back(counted(*program, sizes, deadline));
            if (!program || runs.back().empty()) return {};
            points.x.push_back(static_cast<std::int32_t>(size));
            which.push_back(static_cast<std::uint32_t>(which.size()));
        }
        Reduction::Totals totals;
        for (const auto& [reference, most] : runs.back()) {
            points.y.clear();
            for (const auto& run : runs) {
                const auto at = run.find(reference);
                points.y.push_back(at == run.end() ? 0 : static_cast<std::int64_t>(at->second));
            }
            const std::uint8_t order[] = {0};
            const auto p = fit_simplest(points, which, order, static_cast<int>(kRuns) / 2);
            if (!p || !p->determined_at(design.target.data())) return {};
            totals[reference] = static_cast<double>(p->integer(design.target.data()));
        }
        return totals;
    }

    // No certificate: the whole answer is an estimate then, and says how good such estimates are here.
    Result<void> estimated(Prediction& p, const Learning& learning) {
        const Model& model = *p.model;
        // Copies lie in blocks as the target does, also where samples could not.
        Design design = model.design;
        if (request_.granularity > 1)
            for (Axis& a : design.axes) a.modulus = std::lcm(a.modulus, block_period(session_));
        auto totals = totals_of(model);
        if (totals.empty()) totals = counted_totals(model.design, learning.programs);
        const Reduction how{design, learning.programs.target(),
                            [&](const std::vector<std::int64_t>& size) {
                                return learning.programs.at(design.at(size));
                            },
                            std::move(totals)};
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
        if (!e) {
            if (!p.failures.empty())
                e.error().message = p.failures.front().sentence() + "; " + e.error().message;
            return unexpected(e.error());
        }
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
