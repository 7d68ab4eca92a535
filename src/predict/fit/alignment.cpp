// How references move through blocks, loop by loop.
//
// Formulas for blocks are periodic in the sizes, and samples have to follow the target's residues: by
// the line's eight doubles that makes them large. But a size that only says how often a loop runs, and
// moves no row, needs the residues of that loop's own stride: rows that are whole lines need none. So
// each size gets the modulus its loops ask for. It is a guess that saves time: the certificate does not
// rest on it.
#include "predict/fit/alignment.h"

#include <numeric>

#include "core/try.h"
#include "predict/fit/polynomial.h"

namespace revisit::predict {

Result<Layout> layout_of(const Program& program, const Parameters& parameters,
                         std::uint64_t granularity, const Deadline& deadline) {
    RunOptions options;
    options.deadline = deadline;
    options.max_accesses = 1'500'000;
    const auto trace = TRY(interpret(program, parameters, options));
    Layout layout;
    layout.period.assign(trace.loops.size(), 1);
    layout.trips.assign(trace.loops.size(), 0);
    layout.step.assign(trace.loops.size(), 1);
    layout.strides.resize(trace.references.size());
    for (const auto& run : trace.runs) {
        layout.trips[run.loop] = std::max<std::int64_t>(layout.trips[run.loop], run.iterations);
        if (std::abs(run.step) > 1) layout.step[run.loop] = std::abs(run.step);
    }
    // A few hundred accesses a reference, from all over the run, say how its address moves.
    std::vector<std::size_t> seen(trace.references.size(), 0), every(trace.references.size(), 0);
    for (const auto& a : trace.accesses) ++every[a.reference];
    std::vector<Points> points(trace.references.size());
    for (const auto& a : trace.accesses) {
        const auto& place = trace.references[a.reference];
        const auto n = seen[a.reference]++;
        if (place.loops.size() > kMaxVariables) continue;
        if (n > 100 && n % std::max<std::size_t>(1, every[a.reference] / 400) != 0) continue;
        auto& p = points[a.reference];
        p.variables = place.loops.size();
        std::vector<std::int32_t> at(place.loops.size());
        auto run = a.run;
        auto iteration = a.iteration;
        for (std::size_t l = place.loops.size(); l-- > 0;) {
            at[l] = static_cast<std::int32_t>(iteration);
            iteration = trace.runs[run].parent_iteration;
            run = trace.runs[run].parent;
        }
        p.x.insert(p.x.end(), at.begin(), at.end());
        p.y.push_back(static_cast<std::int64_t>(a.address));
    }
    const auto size = static_cast<std::int64_t>(granularity);
    for (std::size_t r = 0; r < points.size(); ++r) {
        const auto loops = trace.references[r].loops;
        std::vector<std::uint32_t> which(points[r].count());
        std::iota(which.begin(), which.end(), 0u);
        std::vector<std::uint8_t> variables(loops.size());
        std::iota(variables.begin(), variables.end(), std::uint8_t{0});
        Polynomial p;
        if (which.empty() || loops.size() > kMaxVariables ||
            fit(points[r], which, monomials(variables, 1), p) == Fit::inconsistent) {
            for (const auto l : loops) layout.period[l] = 0;
            continue;
        }
        auto& strides = layout.strides[r];
        strides.assign(loops.size(), 0);
        for (std::size_t t = 0; t < p.terms.size(); ++t)
            for (std::size_t l = 0; l < loops.size(); ++l)
                if (p.terms[t].power[l]) strides[l] = p.coefficients[t].integer();
        for (std::size_t l = 0; l < loops.size(); ++l)
            if (auto& period = layout.period[loops[l]]; period > 0)
                period = std::lcm(period, size / std::gcd(size, strides[l]));
    }
    for (const auto& place : trace.references) {
        auto& periods = layout.around[{place.function, place.reference, place.context}];
        for (const auto l : place.loops) periods.push_back(layout.period[l]);
    }
    return layout;
}

std::int64_t period_along(const Layout& base, const Layout& moved, std::int64_t most) {
    if (base.strides != moved.strides || base.trips.size() != moved.trips.size()) return most;
    std::int64_t period = 1;
    for (std::size_t l = 0; l < base.trips.size(); ++l) {
        if (base.trips[l] == moved.trips[l]) continue;
        if (base.period[l] == 0) return most;
        period = std::lcm(period, base.period[l]);
    }
    return std::min(period, most);
}

std::int64_t step_along(const Layout& base, const Layout& moved) {
    std::int64_t step = 1;
    for (std::size_t l = 0; l < base.trips.size() && l < moved.trips.size(); ++l)
        if (base.trips[l] != moved.trips[l])
            step = std::lcm(step, std::max(base.step[l], moved.step[l]));
    return step;
}

}  // namespace revisit::predict
