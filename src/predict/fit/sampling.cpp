// From a target to a model.
//
// Sizes that are macros are compiled in; a few compilations give the program at all other sizes
// (family.cpp). Numbers that stand in the source and are too large for the samples are varied with the
// sizes (fixed_numbers.cpp). Sizes are tried from the most telling to the cheapest until all samples
// together have few enough accesses; then every sample is interpreted, labelled (rows.cpp) and fitted
// (cells.cpp).
#include "predict/fit/sampling.h"

#include <algorithm>
#include <atomic>
#include <numeric>

#include "core/errors.h"
#include "core/parallel.h"
#include "core/try.h"
#include "predict/fit/alignment.h"
#include "predict/fit/components.h"

namespace revisit::predict {
namespace {

constexpr std::uint64_t kMostRows = 4'000'000;
constexpr std::int64_t kMostWork = 4'000'000'000;  // rows looked at while fitting: minutes
constexpr unsigned kMostThreads = 4;               // beyond, other parts take the time
constexpr std::size_t kMostNumbers = 3;            // axes that fixed numbers may add

// Moduli by parameter: what lies in blocks at places that a size does not move needs none.
Result<std::map<std::string, std::int64_t>> moduli_for(const Session& session, Model& model,
                                                       const Programs& programs, std::int64_t period,
                                                       const Deadline& deadline) {
    std::map<std::string, std::int64_t> moduli;
    DesignOptions options;
    options.modulus = model.modulus;
    options.untied = session.request.untied;
    options.fixed = model.pinned.names;
    options.rounds = 1;
    model.design = plan_samples(programs.sizes(), options);
    if (model.design.axes.size() < 2 || (period <= 1 && model.pinned.tiles.empty())) return moduli;
    auto others =
        std::vector(model.design.axes.size(),
                    model.pinned.tiles.empty() ? model.modulus / period : model.pinned.others);
    if (model.pinned.tiles.empty() && programs.interpolated())
        others = TRY(programs.periods(model.design, session.request.granularity, model.modulus));
    const auto layout_at = [&](const std::vector<std::int64_t>& size) -> Result<Layout> {
        auto program = TRY(programs.at(model.design.at(size)));
        return layout_of(program, model.design.at(size), session.request.granularity,
                         deadline.part(0.1));
    };
    auto base = TRY(layout_at(model.design.samples.front()));
    for (std::size_t a = 0; a < model.design.axes.size(); ++a) {
        auto size = model.design.samples.front();
        size[a] += model.modulus;
        auto moved = TRY(layout_at(size));
        const auto along = period > 1 ? period_along(base, moved, period) : 1;
        const auto m = std::lcm(std::lcm(along, others[a]), step_along(base, moved));
        for (const auto& [name, offset] : model.design.axes[a].names) moduli[name] = m;
    }
    return moduli;
}

// Which sizes are made of tiles: those that make a loop of tiles longer. Tiles that differ are
// multiples of the smallest. Nothing where that is not so, or a tile is no number of the program.
Result<std::vector<Parted>> parts_for(const Session& session, const Model& model,
                                      const Programs& programs, const Deadline& deadline) {
    constexpr std::int64_t kSmall = 5, kNear = 4;
    const auto& tiles = model.pinned.tiles;
    const auto smallest = *tiles.begin(), largest = *tiles.rbegin();
    const Parameters& sizes = programs.sizes();
    std::vector<Parted> parted;
    if (!programs.whole()) return parted;
    // Looked at in small: tiles of five, two of them.
    Parameters base = sizes;
    const auto in_small = [&](std::int64_t value, std::int64_t tile, std::int64_t times) {
        const auto rest = value % tile;
        return times * (tile / smallest * kSmall) + (rest <= kNear / 2 ? rest
                                                     : tile - rest <= kNear
                                                         ? tile / smallest * kSmall - (tile - rest)
                                                         : 2);
    };
    std::int64_t before = 0;
    for (const auto tile : tiles) {
        if (!sizes.contains(name_of_number(tile)) || tile % smallest != 0 ||
            (before && tile % before != 0))
            return std::vector<Parted>{};
        if (before) parted.push_back({name_of_number(tile), name_of_number(before)});
        for (auto& [name, value] : base)
            if (const auto off = sizes.at(name) - tile; is_number(name) && std::abs(off) <= kNear)
                value = tile / smallest * kSmall + off;
        before = tile;
    }
    std::vector<std::string> large;
    for (const auto& [name, value] : sizes)
        if (value >= 2 * largest && !model.pinned.names.contains(name)) large.push_back(name);
    for (const auto& name : large) base[name] = in_small(sizes.at(name), largest, 2);
    const auto layout_at = [&](const Parameters& at) -> Result<Layout> {
        auto program = TRY(programs.at(at));
        return layout_of(program, at, session.request.granularity, deadline.part(0.1));
    };
    auto plain = TRY(layout_at(base));
    std::set<std::string> made;
    for (const auto& name : large) {
        auto moved = base;
        for (const auto& near : large)
            if (std::abs(sizes.at(near) - sizes.at(name)) <= kNear)
                moved[near] = in_small(sizes.at(near), largest, 3);
        auto layout = TRY(layout_at(moved));
        if (step_along(plain, layout) == 1) continue;
        for (const auto& near : large)
            if (std::abs(sizes.at(near) - sizes.at(name)) <= kNear && made.insert(near).second)
                parted.push_back({near, name_of_number(largest)});
    }
    return made.empty() ? std::vector<Parted>{} : parted;
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
    if (!options.parted.empty()) {
        add(7, 1, 5);
        add(5, 1, 4);
        return all;
    }
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
        std::set<std::int64_t> moduli;
        for (const auto& [name, modulus] : options.moduli) moduli.insert(modulus);
        options.close = moduli.size() > 1;
        for (const std::int64_t spread : {6, 5})
            if (options.close) add(6, 2, spread);
    }
    return all;
}

}  // namespace

bool data_decides(const std::set<Doubt>& doubts) {
    return std::any_of(doubts.begin(), doubts.end(),
                       [](const Doubt& d) { return d.kind == Doubt::Kind::data; });
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
            "loops are nested too deep for formulas (recursion around a loop?)",
            ErrorCode::no_formulas};
}

Result<Programs> Programs::prepare(const Session& session, std::int64_t modulus, const Pinned& pinned) {
    Programs p(session);
    DesignOptions options;
    options.modulus = modulus;
    options.untied = session.request.untied;
    options.fixed = pinned.names;
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
        SizesAndPrograms kept;
        for (const bool near : {false, true}) {
            if (p.family_) break;
            TRY(p.compile_family(near, kept));
        }
        // The smallest: the largest sample may be the target's size, where every number is the same.
        if (!kept.second.empty()) other = std::move(kept.second.front());
        if (!p.family_) p.left_.push_back("the program's numbers are no polynomials of the sizes");
    }
    p.numbers_ = VariedNumbers(session.target, other, pinned);
    p.left_.insert(p.left_.end(), p.numbers_.left().begin(), p.numbers_.left().end());
    p.sizes_ = session.sizes;
    auto numbers = p.numbers_.numbers();
    if (p.family_) {
        numbers.insert(p.family_->numbers().begin(), p.family_->numbers().end());
        p.left_.insert(p.left_.end(), p.family_->left().begin(), p.family_->left().end());
    }
    std::erase_if(numbers, [&](const auto& n) { return pinned.keeps(n.second); });
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

Result<void> Programs::compile_family(bool near, SizesAndPrograms& kept) {
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
    auto programs = TRY(session_->compiled(macros));
    // Sizes where the compiler went another way (a power of two, two bounds that coincide) are left
    // out.
    SizesAndPrograms now;
    for (std::size_t k = 0; k < sizes.size(); ++k)
        if (same_shape(programs[k], session_->target)) {
            now.first.push_back(sizes[k]);
            now.second.push_back(std::move(programs[k]));
        }
    const auto interpolate = [&](const SizesAndPrograms& from) {
        if (!family_ && from.second.size() >= 3)
            family_ =
                ProgramFamily::interpolate(from.first, from.second, design_.target, session_->target);
    };
    interpolate(now);
    // Too few of the target's shape: those of both ranges together may do.
    const bool both = !kept.second.empty() && !now.second.empty();
    kept.first.insert(kept.first.begin(), now.first.begin(), now.first.end());
    kept.second.insert(kept.second.begin(), now.second.begin(), now.second.end());
    if (both) interpolate(kept);
    return {};
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
        program = std::move(TRY(session_->compiled({macros_at(sizes)})).front());
        if (!same_shape(program, session_->target)) return program;
    }
    numbers_.apply(program, sizes);
    return program;
}

Program Programs::marked(const Axis& axis, std::int64_t& denominator) const {
    std::set<std::string> names;
    for (const auto& [name, offset] : axis.names) names.insert(name);
    std::vector<bool> sizes;
    for (const Axis& a : design_.axes)
        sizes.push_back(std::any_of(a.names.begin(), a.names.end(),
                                    [&](const auto& n) { return names.contains(n.first); }));
    auto program = family_->marked(sizes, names);
    denominator = family_->denominator(sizes);
    auto others = sizes_;
    for (auto& [name, value] : others)
        if (names.contains(name)) ++value;
    numbers_.apply(program, others);
    return program;
}

Result<std::vector<std::int64_t>> Programs::periods(const Design& design, std::uint64_t granularity,
                                                    std::int64_t modulus) const {
    if (!family_) return std::vector<std::int64_t>(design.axes.size(), modulus);
    SizedPrograms programs{target_, {}, {}, {}};
    for (const auto& size : design.samples) {
        programs.samples.push_back(TRY(at(design.at(size))));
        if (!same_shape(programs.samples.back(), target_))
            return std::vector<std::int64_t>(design.axes.size(), modulus);
    }
    for (const Axis& a : design.axes)
        programs.marked.push_back(marked(a, programs.denominators.emplace_back()));
    return periods_by_axis(programs, design.axes, granularity, modulus);
}

namespace {

// Fits every stream, several at a time. Each may take part of the time left and of the work, as if they
// had come one after the other.
void fit_streams(Model& model, const CellOptions& cells, const Layout& layout,
                 const Deadline& deadline) {
    const auto& streams = model.table.streams();
    const unsigned threads = std::min(thread_count(0), kMostThreads);
    const auto fitted = [&](std::size_t k, std::int64_t work) {
        CellOptions own = cells;
        const auto left = static_cast<double>(streams.size() - k);
        own.work = work;
        // The deadline counts processor time, which threads spend together.
        own.deadline = deadline.part(std::min(1.0, threads * std::max(0.2, 3.0 / left)));
        const ReferenceInfo& r = model.table.references()[streams[k].reference];
        const auto known = layout.around.find({r.function, r.reference, r.context});
        if (known != layout.around.end()) own.periods = known->second;
        return learn(streams[k], model.table, own);
    };
    std::vector<StreamModel> all(streams.size());
    std::atomic<bool> in_vain = false;
    parallel_for(threads, streams.size(), [&](std::size_t k) {
        if (in_vain) return;  // an earlier one has no formulas: streams begin in order
        all[k] = fitted(k, kMostWork / 4);
        if (cells.hurry && all[k].lost > 0) in_vain = true;
    });
    std::int64_t work_left = kMostWork;
    for (std::size_t k = 0; k < streams.size(); ++k) {
        if (all[k].work > work_left) all[k] = fitted(k, work_left);
        work_left = std::max(kMostWork / 100, work_left - all[k].work);
        model.streams.push_back(std::move(all[k]));
        if (cells.hurry && model.streams.back().lost > 0) break;
    }
}

// Interprets the samples of the model's design and fits their rows. In a hurry it ends with the first
// stream that has no formulas.
Result<void> take_samples(const Session& session, Model& model, std::int64_t period,
                          const Deadline& deadline, bool hurry, Learning& learning) {
    const Request& request = session.request;
    const Programs& programs = learning.programs;
    const Program& target = programs.target();
    model.table = RowTable(model.design.axes.size(), request.granularity);
    const auto largest = model.design.at(model.design.samples.back());
    if (learning.rough && !same_shape(TRY(programs.at(largest)), target)) {
        // Smaller ones would be compiled one by one, and say no more.
        learning.doubts.insert("the compiler makes another program of " + sizes_text(largest) +
                               " than of the target");
        learning.doubts.insert(programs.left().begin(), programs.left().end());
        model.target = target;
        return {};
    }
    for (std::size_t k = 0; k < model.design.samples.size(); ++k) {
        const auto& size = model.design.samples[k];
        auto program = TRY(programs.at(model.design.at(size)));
        const bool same = same_shape(program, target);
        if (!same) {
            learning.doubts.insert("the compiler makes another program of " +
                                   sizes_text(model.design.at(size)) + " than of the target");
            continue;  // its references are not the target's
        }
        const bool last = k + 1 == model.design.samples.size();
        const auto periods = last ? fixed_periods(program, target) : FixedPeriods{};
        RunOptions run;
        run.watch = watch_all(program);
        run.max_accesses = 8 * kMostRows;
        run.seed = request.seed;
        run.branch_probability = request.branch_probability;
        run.deadline = deadline;
        auto trace = interpret(program, model.design.at(size), run);
        if (!trace) return in_file(request.source.path, trace.error());
        if (!trace->complete) {
            learning.doubts.insert("the budget of time ended while sampling");
            break;
        }
        const auto doubts = trace->doubts_at(request.granularity);
        learning.doubts.insert(doubts.begin(), doubts.end());
        learning.reach.add(size, program, *trace);
        learning.doubts.insert(periods.left.begin(), periods.left.end());
        for (const auto m : periods.moduli)
            if (model.modulus % m != 0)
                learning.doubts.insert("divides or masks by " + std::to_string(m) +
                                       ", whose residues the samples do not follow");
        if (!model.table.add(program, *trace, size)) return unexpected(too_deep(session));
    }
    learning.doubts.insert(programs.left().begin(), programs.left().end());
    model.target = target;
    CellOptions cells;
    cells.anchors = model.design.anchors;
    cells.period = period;
    cells.modulus = model.modulus;
    cells.shift = model.shift;
    cells.boxes = model.parted;
    cells.hurry = hurry;
    Layout layout;
    if (period > 1) {
        const auto& size = model.design.samples.front();
        auto program = TRY(programs.at(model.design.at(size)));
        layout =
            TRY(layout_of(program, model.design.at(size), request.granularity, deadline.part(0.1)));
    }
    // Coin tosses fit nothing: where the data decides, only the estimate is wanted.
    if (learning.rough || data_decides(learning.doubts)) {
        for (const Stream& s : model.table.streams()) {
            StreamModel none;
            none.rows = none.lost = s.points.count();
            model.streams.push_back(std::move(none));
        }
        return {};
    }
    fit_streams(model, cells, layout, deadline);
    return {};
}

// How many rows all samples have: the largest alone says little where several sizes vary.
Result<std::uint64_t> all_rows(const Programs& programs, const Design& design,
                               const Deadline& deadline) {
    std::uint64_t rows = 0;
    for (const auto& size : design.samples) {
        const auto program = TRY(programs.at(design.at(size)));
        RunOptions run;
        run.keep = false;
        run.max_accesses = kMostRows;
        run.deadline = deadline;
        rows += TRY(interpret(program, design.at(size), run)).count;
        if (rows > kMostRows) break;
    }
    return rows;
}

}  // namespace

Result<Learning> learn_model(const Session& session, Model& model, std::int64_t period,
                             bool proportional, const Deadline& deadline, bool rough) {
    const Request& request = session.request;
    auto prepared = TRY(Programs::prepare(
        session, model.modulus, model.parted ? Pinned{{}, model.pinned.names, 1} : model.pinned));
    Learning learning{std::move(prepared), {}, {}, true, rough};
    const Programs& programs = learning.programs;
    std::vector<Parted> parted;
    if (model.parted) {
        parted = TRY(parts_for(session, model, programs, deadline));
        if (parted.empty()) {
            learning.sampled = false;
            learning.doubts.insert("sizes are no whole numbers of tiles and a rest");
            return learning;
        }
    }
    DesignOptions first;
    first.proportional = proportional;
    first.modulus = model.modulus;
    first.untied = request.untied;
    first.fixed = model.pinned.names;
    first.seed = request.seed;
    first.parted = parted;
    if (model.parted)
        first.modulus = model.modulus = 1;
    else
        first.moduli = TRY(moduli_for(session, model, programs, period, deadline));
    const auto candidates =
        designs(first, model.design.axes.size(), model.modulus > 3, 2 * model.shift);
    bool sampled = false;
    std::vector<Design> larger;  // than what is taken first, the largest first
    for (const DesignOptions& options : candidates) {
        model.design = plan_samples(programs.sizes(), options);
        if (model.design.axes.empty()) return learning;
        if (model.design.axes.size() + 6 > kMaxVariables)
            return fail(request.source.path, "",
                        "more than " + std::to_string(kMaxVariables - 6) + " sizes vary");
        const auto& largest = model.design.samples.back();
        auto program = TRY(programs.at(model.design.at(largest)));
        RunOptions run;
        run.keep = false;
        run.max_accesses = kMostRows;
        run.max_steps = 400'000'000;
        run.deadline = deadline;
        auto trace = interpret(program, model.design.at(largest), run);
        if (!trace) return in_file(request.source.path, trace.error());
        auto rows = trace->count * model.design.samples.size() / 2;
        // Where tiles vary the largest is much larger than most.
        for (std::size_t k = 0; model.parted && trace->complete && k < model.design.samples.size();
             ++k) {
            const auto sizes = model.design.at(model.design.samples[k]);
            auto at = TRY(programs.at(sizes));
            auto small = interpret(at, sizes, run);
            if (!small) return in_file(request.source.path, small.error());
            rows = (k == 0 ? 0 : rows) + small->count;
        }
        sampled = trace->complete && rows <= 3 * kMostRows;
        if (trace->complete && rows <= kMostRows) break;
        if (sampled && model.modulus > 3 && !model.parted) larger.push_back(model.design);
    }
    if (!sampled && !larger.empty()) {  // the last ones need not be the smallest
        model.design = larger.back();
        sampled = true;
    }
    if (!sampled) {
        const auto where = sizes_text(model.design.at(model.design.samples.back()));
        if (model.modulus <= 3 && !model.parted) {
            learning.sampled = false;
            learning.doubts.insert("does not end within " + std::to_string(kMostRows) +
                                   " accesses even at " + where);
            return learning;
        }
        if (!model.pinned.tiles.empty()) {
            learning.sampled = false;
            learning.doubts.insert("runs of several tiles are too long to sample (" + where + ")");
            return learning;
        }
        // Blocks ask for samples too large to take; without their residues there is an estimate.
        const auto modulus = std::exchange(model.modulus, 1);
        auto without = learn_model(session, model, 1, proportional, deadline, true);
        if (without)
            without->doubts.insert("sizes like the target's modulo " + std::to_string(modulus) +
                                   " are too large to sample (" + where + ")");
        return without;
    }
    // Cheap samples first; where they do not determine all formulas, the largest that can be taken.
    const bool hurry = !larger.empty();
    TRY(take_samples(session, model, period, deadline, hurry, learning));
    const bool lost = std::any_of(model.streams.begin(), model.streams.end(),
                                  [](const StreamModel& m) { return m.lost > 0; });
    if (!hurry || !lost || data_decides(learning.doubts)) return learning;
    for (Design& design : larger)
        if (TRY(all_rows(programs, design, deadline)) <= kMostRows) {
            model.design = std::move(design);
            break;
        }
    model.streams.clear();
    learning.reach = {};  // doubts stay, whichever samples raised them
    TRY(take_samples(session, model, period, deadline, false, learning));
    return learning;
}

}  // namespace revisit::predict
