// From a target to a model.
//
// Sizes that are macros are compiled in; a few compilations give the program at all other sizes
// (family.cpp). Numbers that stand in the source and are too large for the samples are varied with the
// sizes (fixed_numbers.cpp). Sizes are tried from the most telling to the cheapest until all samples
// together have few enough accesses; then every sample is interpreted, labelled (rows.cpp) and fitted
// (cells.cpp).
#include "predict/sampling.h"

#include <algorithm>
#include <numeric>

#include "predict/alignment.h"

namespace revisit::predict {
namespace {

constexpr std::uint64_t kMostRows = 4'000'000;
constexpr std::int64_t kMostWork = 4'000'000'000;  // rows looked at while fitting: minutes
constexpr std::size_t kMostNumbers = 3;            // axes that fixed numbers may add

// Moduli by parameter: what lies in blocks at places that a size does not move needs none.
Result<std::map<std::string, std::int64_t>> moduli_for(const Session& session, Model& model,
                                                       const Programs& programs, std::int64_t period,
                                                       const Deadline& deadline) {
    std::map<std::string, std::int64_t> moduli;
    DesignOptions options;
    options.modulus = model.modulus;
    options.untied = session.request.untied;
    options.rounds = 1;
    model.design = plan_samples(programs.sizes(), options);
    if (model.design.axes.size() < 2 || period <= 1) return moduli;
    const auto layout_at = [&](const std::vector<std::int64_t>& size) -> Result<Layout> {
        auto program = programs.at(model.design.at(size));
        if (!program) return std::unexpected(program.error());
        return layout_of(*program, model.design.at(size), session.request.granularity,
                         deadline.part(0.1));
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

// Sizes to try, the best first, until their rows are few enough. `room`: more than the smallest needs
// otherwise, for numbers in the program that are not much smaller.
std::vector<DesignOptions> designs(DesignOptions options, std::size_t axes, bool large,
                                   std::int64_t room) {
    std::vector<DesignOptions> all;
    const auto add = [&](std::int64_t smallest, std::int64_t rounds, std::int64_t spread) {
        options.smallest = smallest;
        options.rounds = rounds;
        options.spread = spread;
        all.push_back(options);
    };
    if (!large) {
        for (const std::int64_t smallest : {9, 7, 5}) add(room + smallest, 3, 0);
        if (axes == 1)
            add(room + 5, 3, 9);
        else
            for (const std::int64_t spread : {7, 6, 5}) add(room + 5, 3, spread);
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

}  // namespace

bool data_decides(const std::set<std::string>& doubts) {
    return std::any_of(doubts.begin(), doubts.end(), [](const std::string& d) {
        return d.find("the data decides") != std::string::npos;
    });
}

Result<std::vector<Program>> Session::compiled(const std::vector<Parameters>& macros) const {
    auto programs = request.compiler ? request.compiler(macros) : compile(request.source, macros);
    // Small arguments are not varied: they are constants, and loops may step or divide by them.
    for (std::size_t k = 0; programs && k < programs->size(); ++k)
        for (const Argument& a : (*programs)[k].functions.front().arguments)
            if (const auto at = sizes.find(a.name); a.kind == Kind::integer && a.reg >= 0 &&
                                                    at != sizes.end() &&
                                                    std::abs(at->second) < kLargeNumber)
                (*programs)[k].functions.front().constants.push_back({a.reg, -1, at->second, true});
    return programs;
}

Error too_deep(const Session& session) {
    return {session.request.source.path, "",
            "loops are nested too deep for formulas (recursion around a loop?): try --method simulate"};
}

Result<Programs> Programs::prepare(const Session& session, std::int64_t modulus) {
    Programs p(session);
    DesignOptions options;
    options.modulus = modulus;
    options.untied = session.request.untied;
    options.seed = session.request.seed;
    p.design_ = plan_samples(session.sizes, options);
    const auto plain_axes = p.design_.axes.size();
    bool varies = false;
    for (const Axis& a : p.design_.axes)
        for (const auto& [name, offset] : a.names) varies |= session.request.macros.contains(name);
    Program other = session.target;
    if (!varies) {
        p.family_.emplace(session.target);
    } else {
        // Small sizes, or where the compiler makes another program of those (a loop to N - 100 is gone
        // from them), sizes not far below the target's.
        for (const bool near : {false, true}) {
            if (p.family_) break;
            auto kept = p.compile_family(near);
            if (!kept) return std::unexpected(kept.error());
            if (!kept->empty()) other = std::move(kept->back());
        }
        if (!p.family_) p.left_.push_back("the program's numbers are no polynomials of the sizes");
    }
    p.numbers_ = VariedNumbers(session.target, other);
    p.left_.insert(p.left_.end(), p.numbers_.left().begin(), p.numbers_.left().end());
    p.sizes_ = session.sizes;
    auto numbers = p.numbers_.numbers();
    if (p.family_) {
        numbers.insert(p.family_->numbers().begin(), p.family_->numbers().end());
        p.left_.insert(p.left_.end(), p.family_->left().begin(), p.family_->left().end());
    }
    p.sizes_.insert(numbers.begin(), numbers.end());
    if (plan_samples(p.sizes_, options).axes.size() > plain_axes + kMostNumbers) {
        p.sizes_ = session.sizes;
        p.numbers_ = {};
        p.left_.push_back("more fixed numbers of " + std::to_string(kLargeNumber) +
                          " or more than can be varied with the sizes");
    }
    p.target_ = session.target;
    p.numbers_.apply(p.target_, p.sizes_);
    return p;
}

Result<std::vector<Program>> Programs::compile_family(bool near) {
    const auto& samples = design_.samples;
    const std::size_t wanted = std::min(samples.size(), 4 + 4 * design_.axes.size());
    std::vector<std::vector<std::int64_t>> sizes;
    std::vector<Parameters> macros;
    for (std::size_t k = 0; k < wanted; ++k) {
        auto size = samples[k * samples.size() / wanted];
        for (std::size_t a = 0; a < size.size() && near; ++a) {
            const Axis& axis = design_.axes[a];
            const auto step = axis.modulus * std::max<std::int64_t>(1, axis.target / axis.modulus / 40);
            const auto below =
                axis.target - step * (1 + static_cast<std::int64_t>((k * (2 * a + 3)) % 11));
            if (below > 0) size[a] = below;
        }
        macros.push_back(macros_at(design_.at(size)));
        sizes.push_back(std::move(size));
    }
    auto programs = session_->compiled(macros);
    if (!programs) return std::unexpected(programs.error());
    // Sizes where the compiler went another way (a power of two, two bounds that coincide) are left
    // out.
    std::vector<std::vector<std::int64_t>> kept_sizes;
    std::vector<Program> kept;
    for (std::size_t k = 0; k < sizes.size(); ++k)
        if (same_shape((*programs)[k], session_->target)) {
            kept_sizes.push_back(sizes[k]);
            kept.push_back(std::move((*programs)[k]));
        }
    if (kept.size() >= 3)
        family_ = ProgramFamily::interpolate(kept_sizes, kept, design_.target, session_->target);
    return kept;
}

Parameters Programs::macros_at(const Parameters& sizes) const {
    Parameters macros;
    for (const auto& [name, value] : session_->request.macros) {
        const auto now = sizes.find(name);
        macros[name] = now == sizes.end() ? value : now->second;
    }
    return macros;
}

std::vector<std::int64_t> Programs::family_size(const Parameters& sizes) const {
    std::vector<std::int64_t> size;
    for (const Axis& a : design_.axes)
        size.push_back(sizes.at(a.names.front().first) - a.names.front().second);
    return size;
}

Result<Program> Programs::at(const Parameters& sizes) const {
    Program program;
    if (family_) {
        program = family_->at(family_size(sizes), sizes);
    } else {
        auto compiled = session_->compiled({macros_at(sizes)});
        if (!compiled) return std::unexpected(compiled.error());
        program = std::move(compiled->front());
        if (!same_shape(program, session_->target)) return program;
    }
    numbers_.apply(program, sizes);
    return program;
}

Result<Learning> learn_model(const Session& session, Model& model, std::int64_t period,
                             bool proportional, const Deadline& deadline) {
    const Request& request = session.request;
    auto prepared = Programs::prepare(session, model.modulus);
    if (!prepared) return std::unexpected(prepared.error());
    Learning learning{std::move(*prepared), {}, {}};
    const Programs& programs = learning.programs;
    const Program& target = programs.target();
    DesignOptions first;
    first.proportional = proportional;
    first.modulus = model.modulus;
    first.untied = request.untied;
    first.seed = request.seed;
    if (auto found = moduli_for(session, model, programs, period, deadline); found)
        first.moduli = std::move(*found);
    else
        return std::unexpected(found.error());
    const auto candidates =
        designs(first, model.design.axes.size(), model.modulus > 3, 2 * model.shift);
    bool sampled = false;
    for (const DesignOptions& options : candidates) {
        model.design = plan_samples(programs.sizes(), options);
        if (model.design.axes.empty()) return learning;
        if (model.design.axes.size() + 6 > kMaxVariables)
            return fail(request.source.path, "",
                        "more than " + std::to_string(kMaxVariables - 6) + " sizes vary");
        const auto& largest = model.design.samples.back();
        auto program = programs.at(model.design.at(largest));
        if (!program) return std::unexpected(program.error());
        RunOptions run;
        run.keep = false;
        run.max_accesses = kMostRows;
        run.max_steps = 400'000'000;
        run.deadline = deadline;
        auto trace = interpret(*program, model.design.at(largest), run);
        if (!trace) return fail(request.source.path, trace.error().place, trace.error().message);
        const auto rows = trace->count * model.design.samples.size() / 2;
        sampled = trace->complete && rows <= 3 * kMostRows;
        if (trace->complete && rows <= kMostRows) break;
    }
    if (!sampled) {
        const auto where = sizes_text(model.design.at(model.design.samples.back()));
        if (model.modulus <= 3)
            return fail(
                request.source.path, "",
                "does not end within " + std::to_string(kMostRows) + " accesses even at " + where);
        // Blocks ask for samples too large to take; without their residues there is an estimate.
        const auto modulus = std::exchange(model.modulus, 1);
        auto rough = learn_model(session, model, 1, proportional, deadline);
        if (rough)
            rough->doubts.insert("sizes like the target's modulo " + std::to_string(modulus) +
                                 " are too large to sample (" + where + ")");
        return rough;
    }
    model.table = RowTable(model.design.axes.size(), request.granularity);
    for (std::size_t k = 0; k < model.design.samples.size(); ++k) {
        const auto& size = model.design.samples[k];
        auto program = programs.at(model.design.at(size));
        if (!program) return std::unexpected(program.error());
        const bool same = same_shape(*program, target);
        if (!same) {
            learning.doubts.insert("the compiler makes another program of " +
                                   sizes_text(model.design.at(size)) + " than of the target");
            if (program->functions.size() != target.functions.size()) continue;
        }
        const bool last = k + 1 == model.design.samples.size();
        const auto periods = last ? fixed_periods(*program, target) : FixedPeriods{};
        RunOptions run;
        run.watch = watch_all(*program);
        run.max_accesses = 8 * kMostRows;
        run.seed = request.seed;
        run.branch_probability = request.branch_probability;
        run.deadline = deadline;
        auto trace = interpret(*program, model.design.at(size), run);
        if (!trace) return fail(request.source.path, trace.error().place, trace.error().message);
        if (!trace->complete) {
            learning.doubts.insert("the time allowed (--budget) ended while sampling");
            break;
        }
        const auto doubts = trace->doubts_at(request.granularity);
        learning.doubts.insert(doubts.begin(), doubts.end());
        if (same) learning.reach.add(size, *program, *trace);
        learning.doubts.insert(periods.left.begin(), periods.left.end());
        for (const auto m : periods.moduli)
            if (model.modulus % m != 0)
                learning.doubts.insert("divides or masks by " + std::to_string(m) +
                                       ", whose residues the samples do not follow");
        if (!model.table.add(*program, *trace, size)) return std::unexpected(too_deep(session));
    }
    learning.doubts.insert(programs.left().begin(), programs.left().end());
    model.target = target;
    CellOptions cells;
    cells.anchors = model.design.anchors;
    cells.period = period;
    cells.modulus = model.modulus;
    cells.shift = model.shift;
    Layout layout;
    if (period > 1) {
        const auto& size = model.design.samples.front();
        auto program = programs.at(model.design.at(size));
        if (!program) return std::unexpected(program.error());
        auto found =
            layout_of(*program, model.design.at(size), request.granularity, deadline.part(0.1));
        if (!found) return std::unexpected(found.error());
        layout = std::move(*found);
    }
    std::int64_t work_left = kMostWork;
    std::size_t streams_left = model.table.streams().size();
    for (const Stream& s : model.table.streams()) {
        cells.deadline =
            deadline.part(std::min(1.0, std::max(0.2, 3.0 / static_cast<double>(streams_left--))));
        const ReferenceInfo& r = model.table.references()[s.reference];
        const auto known = layout.around.find({r.function, r.reference, r.context});
        cells.periods = known == layout.around.end() ? std::vector<std::int64_t>{} : known->second;
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

}  // namespace revisit::predict
