// A long run from a part of it, exactly.
//
// Problem. By lines most large kernels have no complete formulas, and a run of ten thousand million
// accesses is too long to interpret. But the time steps of a stencil and the rows of a product repeat:
// iteration t + p of the outermost loop does what iteration t did, every reference moved by a fixed
// number of whole blocks. Idea. One pass over the control flow alone (inner loops go as arithmetic
// progressions) takes a signature of every iteration: which references, where from the first address of
// each, in which order. Say from iteration t0 on signatures repeat with period p, each reference moving
// by its own constant; references that move differently touch different blocks; what moves was not
// touched before the loop, and what moves out of reach of a reference is not seen again. Then the
// blocks of iteration t + p are those of t renamed one to one, and so is everything since their last
// use: the distances are the same. So it is enough to interpret R + p iterations and to count the last
// p as often as they come. After the loop nothing may follow, unless nothing moves: then the state it
// leaves is the same as well. Nothing is extrapolated that was not seen to repeat: the signatures are
// those of the target itself, all iterations of it (equal signatures are equal sequences but for a
// chance of 2^-64). Where the text of the loop shows that all iterations are the same (time_steps.cpp),
// two of them are walked. Cost. The pass: half a microsecond an inner loop. Then R + p iterations, R
// being 1 for time steps and some p for rows.
#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "core/try.h"
#include "predict/run/simulate.h"
#include "predict/run/time_steps.h"

namespace revisit::predict {
namespace {

using Show = RunOptions::Show;

constexpr std::int64_t kLongestPeriod = 64;
constexpr std::size_t kMostIterations = 200'000;
constexpr std::size_t kFewestIterations = 8;  // that show a repetition
constexpr std::int64_t kMostTimeSteps = 20'000;
constexpr std::size_t kLookedAtFirst = 3 * kLongestPeriod;  // iterations, some of which must be alike
constexpr double kChoosing = 0.5;                           // seconds to find the loop to look at

struct Iteration {
    std::uint64_t signature = 0x9E3779B97F4A7C15ull;
    std::uint64_t accesses = 0;
    std::map<std::uint32_t, std::uint64_t> first;  // by reference: its first address
};

// Addresses a reference touches, from the first of each iteration.
struct Around {
    std::int64_t low = 0, high = 0;
};

struct Survey {
    std::vector<Iteration> iterations;  // of the loop
    std::map<std::uint32_t, Around> around;
    std::map<std::uint32_t, std::pair<std::uint64_t, std::uint64_t>> before;  // ranges touched
    bool after = false;  // accesses follow the loop
    std::uint32_t loop = kNoLoop;
};

std::uint64_t mixed(std::uint64_t h, std::uint64_t value) {
    h = (h ^ value) * 0xff51afd7ed558ccdull;
    return h ^ (h >> 29);
}

void note(Survey& s, const Stretch& a, bool inside) {
    const auto last = a.address + static_cast<std::uint64_t>(a.step * (a.rounds - 1));
    const auto low = std::min(a.address, last),
               high = std::max(a.address, last) + std::max<std::uint32_t>(a.size, 1) - 1;
    if (!inside) {
        auto& range = s.before.try_emplace(a.reference, low, high).first->second;
        range = {std::min(range.first, low), std::max(range.second, high)};
        return;
    }
    Iteration& now = s.iterations.back();
    const auto base = now.first.try_emplace(a.reference, a.address).first->second;
    now.accesses += static_cast<std::uint64_t>(a.rounds);
    // Two references in turn are another order than one after the other, and memset has no length of
    // its own.
    for (const auto part :
         {std::uint64_t{a.reference}, a.address - base, static_cast<std::uint64_t>(a.step),
          static_cast<std::uint64_t>(a.rounds), std::uint64_t{a.size}, std::uint64_t{a.together}})
        now.signature = mixed(now.signature, part);
    auto& around = s.around[a.reference];
    around.low = std::min(around.low, static_cast<std::int64_t>(low - base));
    around.high = std::max(around.high, static_cast<std::int64_t>(high - base));
}

// Whether one of the last iterations is like one shortly before it. Rows of a triangle never are, and
// the rest of them need not be walked.
bool any_alike(const std::vector<Iteration>& all) {
    constexpr auto longest = static_cast<std::size_t>(kLongestPeriod);
    for (std::size_t t = all.size() - longest; t < all.size(); ++t)
        for (std::size_t p = 1; p <= longest; ++p)
            if (all[t].signature == all[t - p].signature) return true;
    return false;
}

RunOptions whole_run(const Request& request, const Deadline& deadline) {
    RunOptions options;
    options.keep = false;
    options.max_accesses = std::uint64_t{1} << 62;
    options.max_steps = std::uint64_t{1} << 62;
    options.seed = request.seed;
    options.deadline = deadline;
    return options;
}

// Walks the whole run; keeps the signatures of the outermost loop `wanted`.
Result<std::optional<Survey>> survey(const Program& program, const Parameters& parameters,
                                     const Request& request, const Deadline& deadline,
                                     std::uint32_t wanted) {
    Survey s;
    s.loop = wanted;
    bool inside = false, passed = false, given_up = false;
    auto options = whole_run(request, deadline);
    options.outermost = [&](std::uint32_t loop, std::uint32_t) {
        if (inside && loop != wanted) passed = true;
        if (loop == wanted && passed) given_up = true;  // entered twice
        inside = loop == wanted;
        if (inside) {
            given_up |= s.iterations.size() == kLookedAtFirst && !any_alike(s.iterations);
            s.iterations.emplace_back();
        }
        given_up |= s.iterations.size() > kMostIterations;
        return given_up ? Show::stop : Show::accesses;
    };
    options.progression = [&](const Stretch& a) {
        if (passed)
            s.after = true;
        else
            note(s, a, inside);
    };
    auto trace = TRY(interpret(program, parameters, options));
    if (!trace.complete || given_up || !trace.doubts.empty() || s.iterations.empty())
        return std::nullopt;
    // A last arrival at the header that only finds the loop over belongs to what follows.
    if (s.iterations.size() > 1 && s.iterations.back().accesses * 2 < s.iterations.front().accesses) {
        s.after |= s.iterations.back().accesses > 0;
        s.iterations.pop_back();
    }
    return s;
}

// The same from two iterations, where the text shows that all are alike.
Result<std::optional<Survey>> survey(const Program& program, const Parameters& parameters,
                                     const Request& request, const Deadline& deadline,
                                     const TimeSteps& steps) {
    Survey s;
    std::uint32_t arrived_at = kNoLoop;
    bool walked = false;
    auto options = whole_run(request, deadline);
    const std::set<std::pair<std::uint32_t, std::int32_t>> reported{{0, steps.loop}};
    options.reported = &reported;
    options.report = [&](std::uint32_t, std::int32_t, std::uint32_t iteration) {
        if (iteration == 0) s.loop = arrived_at;
        if (iteration < 2) s.iterations.emplace_back();
    };
    options.outermost = [&](std::uint32_t loop, std::uint32_t iteration) {
        arrived_at = loop;
        walked = loop == s.loop && loop != kNoLoop && iteration == 2;
        return walked ? Show::stop : Show::accesses;
    };
    options.progression = [&](const Stretch& a) { note(s, a, !s.iterations.empty()); };
    const auto trace = TRY(interpret(program, parameters, options));
    if (!walked || !trace.doubts.empty() || s.iterations.size() != 2) return std::nullopt;
    const Iteration &one = s.iterations[0], &other = s.iterations[1];
    if (one.accesses == 0 || one.accesses != other.accesses || one.first != other.first)
        return std::nullopt;
    s.iterations.assign(static_cast<std::size_t>(steps.iterations), Iteration(one));
    return s;
}

struct Cycle {
    std::size_t from = 0;     // the first iteration it holds for
    std::int64_t period = 0;  // in iterations
    std::int64_t reach = 0;   // iterations after which nothing that moves is met again
    bool moves = false;
};

// How the iterations repeat, if they do.
std::optional<Cycle> cycle_of(const Survey& s, std::int64_t granularity) {
    const auto& all = s.iterations;
    for (std::int64_t p = 1; p <= kLongestPeriod; ++p) {
        const auto step = static_cast<std::size_t>(p);
        if (all.size() < 4 * step + kFewestIterations - 4) return std::nullopt;
        const Iteration &last = all[all.size() - 1], &before = all[all.size() - 1 - step];
        if (last.signature != before.signature) continue;
        std::map<std::uint32_t, std::int64_t> moved;
        bool whole = true;
        for (const auto& [reference, address] : last.first) {
            const auto by = static_cast<std::int64_t>(address - before.first.at(reference));
            moved[reference] = by;
            whole &= by % granularity == 0;
        }
        if (!whole) continue;
        // Back as far as it holds; references of all residues of the period have to agree.
        std::size_t from = all.size() - step;
        while (from > 0) {
            const Iteration &now = all[from - 1], &next = all[from - 1 + step];
            bool same = now.signature == next.signature;
            for (const auto& [reference, address] : now.first) {
                if (!same) break;
                const auto by = static_cast<std::int64_t>(next.first.at(reference) - address);
                same = moved.try_emplace(reference, by).first->second == by;
            }
            if (!same) break;
            --from;
        }
        if (2 * from > all.size()) continue;
        Cycle c{from, p, p, false};
        // What moves by different amounts must lie apart, for the whole loop.
        struct Range {
            std::int64_t low = INT64_MAX, high = INT64_MIN;
        };
        std::map<std::uint32_t, Range> range;
        std::map<std::uint32_t, Range> one_period;  // by reference: what a period touches
        for (std::size_t t = 0; t < all.size(); ++t)
            for (const auto& [reference, address] : all[t].first) {
                const auto& around = s.around.at(reference);
                const auto low = (static_cast<std::int64_t>(address) + around.low) / granularity,
                           high = (static_cast<std::int64_t>(address) + around.high) / granularity;
                auto& r = range[reference];
                r = {std::min(r.low, low), std::max(r.high, high)};
                if (t >= from && t < from + step) {
                    auto& q = one_period[reference];
                    q = {std::min(q.low, low), std::max(q.high, high)};
                }
            }
        bool apart = true;
        for (const auto& [a, ra] : range) {
            if (!moved.contains(a)) continue;
            c.moves |= moved.at(a) != 0;
            for (const auto& [b, rb] : range)
                apart &= !moved.contains(b) || moved.at(a) == moved.at(b) || ra.high < rb.low ||
                         rb.high < ra.low;
            if (moved.at(a) == 0) continue;
            for (const auto& [b, before_range] : s.before)
                apart &= ra.high < static_cast<std::int64_t>(before_range.first) / granularity ||
                         static_cast<std::int64_t>(before_range.second) / granularity < ra.low - 1;
        }
        // References met only before the loop settles would have to be distinguished from all others.
        for (const auto& [a, ra] : range) apart &= moved.contains(a);
        if (!apart || (c.moves && s.after)) return std::nullopt;
        // Two references meet the same block at most so many iterations apart.
        for (const auto& [a, ra] : one_period)
            for (const auto& [b, rb] : one_period) {
                const auto by = std::abs(moved.at(a)) / granularity;
                const Range &wa = range.at(a), &wb = range.at(b);
                if (by == 0 || wa.high < wb.low || wb.high < wa.low) continue;
                const auto wide = std::max(ra.high, rb.high) - std::min(ra.low, rb.low);
                c.reach = std::max(c.reach, p * (wide / by + 1));
            }
        // And what the first iterations touch, before they repeat, may lie far ahead.
        for (std::size_t t = 0; t < from; ++t)
            for (const auto& [a, address] : all[t].first)
                for (const auto& [b, rb] : one_period) {
                    const auto by = moved.at(b) / granularity;
                    const Range &wa = range.at(a), &wb = range.at(b);
                    if (by == 0 || wa.high < wb.low || wb.high < wa.low) continue;
                    const auto& around = s.around.at(a);
                    const auto low = (static_cast<std::int64_t>(address) + around.low) / granularity,
                               high = (static_cast<std::int64_t>(address) + around.high) / granularity;
                    const auto ahead = by > 0 ? (high - rb.low) / by : (rb.high - low) / -by;
                    c.reach = std::max(c.reach, p * (ahead + 1));
                }
        return c;
    }
    return std::nullopt;
}

// The outermost loop that takes up most of the beginning.
struct Longest {
    std::uint32_t loop = kNoLoop, line = 0;
};
std::optional<Longest> longest_loop(const Program& program, const Parameters& parameters,
                                    const Deadline& deadline, std::uint64_t max_accesses) {
    RunOptions options;
    options.keep = false;
    options.max_accesses = max_accesses;
    options.deadline = Deadline(std::min(kChoosing, 0.2 * deadline.left()));
    std::map<std::uint32_t, std::uint64_t> accesses;  // by loop
    std::uint32_t now = kNoLoop;
    options.outermost = [&](std::uint32_t loop, std::uint32_t) {
        now = loop;
        return Show::accesses;
    };
    options.progression = [&](const Stretch& a) {
        accesses[now] += static_cast<std::uint64_t>(a.rounds);
    };
    const auto trace = interpret(program, parameters, options);
    if (!trace) return std::nullopt;
    Longest longest;
    std::uint64_t most = 0;
    for (const auto& [loop, n] : accesses)
        if (loop != kNoLoop && n > most) most = n, longest.loop = loop;
    if (longest.loop == kNoLoop) return std::nullopt;
    const LoopPlace& place = trace->loops[longest.loop];
    longest.line = program.functions[place.function].loops[place.loop].line;
    return longest;
}

// Whether one iteration takes so little time that the fewest needed could be walked.
bool ends_an_iteration(const Program& program, const Parameters& parameters, const Deadline& deadline,
                       std::uint32_t wanted) {
    bool ended = false;
    RunOptions options;
    options.keep = false;
    options.max_accesses = options.max_steps = std::uint64_t{1} << 62;
    options.deadline = deadline.part(1.0 / kFewestIterations);
    options.progression = [](const Stretch&) {};
    options.outermost = [&](std::uint32_t loop, std::uint32_t iteration) {
        ended |= loop == wanted && iteration > 0;
        return ended ? Show::stop : Show::accesses;
    };
    const auto trace = interpret(program, parameters, options);
    return trace && ended;
}

}  // namespace

Result<std::optional<Repetition>> simulate_repeating(const Program& program,
                                                     const Parameters& parameters,
                                                     const Request& request, const Deadline& deadline,
                                                     std::uint64_t max_accesses) {
    if (program.memory_needed) return std::nullopt;
    std::optional<Survey> surveyed;
    std::uint32_t line = 0;
    if (const auto steps = time_steps(program, parameters, kMostTimeSteps)) {
        surveyed = TRY(survey(program, parameters, request, deadline, *steps));
        line = program.functions.front().loops[static_cast<std::size_t>(steps->loop)].line;
    }
    if (!surveyed) {
        const auto most = longest_loop(program, parameters, deadline, max_accesses);
        if (!most || !ends_an_iteration(program, parameters, deadline, most->loop)) return std::nullopt;
        surveyed = TRY(survey(program, parameters, request, deadline, most->loop));
        line = most->line;
    }
    if (!surveyed) return std::nullopt;
    const Survey& s = *surveyed;
    const auto last = s.loop;
    const auto cycle =
        cycle_of(s, static_cast<std::int64_t>(std::max<std::uint64_t>(1, request.granularity)));
    if (!cycle) return std::nullopt;
    const auto total = static_cast<std::int64_t>(s.iterations.size());
    // One period more than what a distance can reach back, and a whole number of periods to the end.
    auto shown = static_cast<std::int64_t>(cycle->from) + cycle->reach;
    shown += (total - shown) % cycle->period;
    if (shown + 2 * cycle->period >= total) return std::nullopt;
    std::uint64_t needed = 0;
    for (std::int64_t t = 0; t < shown + cycle->period; ++t)
        needed += s.iterations[static_cast<std::size_t>(t)].accesses;
    if (needed > max_accesses) return std::nullopt;
    Again again;
    again.times = static_cast<double>((total - shown) / cycle->period);
    auto run = TRY(simulate(
        program, parameters, request, request.bins, Deadline(), max_accesses,
        [&](std::uint32_t loop, std::uint32_t iteration) {
            const bool within = loop == last && iteration < total;
            again.counted = within && iteration >= shown;
            if (!within || iteration < shown + cycle->period) return Show::accesses;
            return s.after ? Show::nothing : Show::stop;
        },
        &again));
    run.complete = true;
    return Repetition{std::move(run), line, cycle->period, shown, total};
}

}  // namespace revisit::predict
