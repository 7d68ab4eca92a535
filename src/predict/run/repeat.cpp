// A long run from a part of it, exactly.
//
// Problem. By lines most large kernels have no complete formulas, and a run of ten thousand million
// accesses is too long to interpret. But the time steps of a stencil and the rows of a product repeat:
// iteration t + p of an outermost loop does what iteration t did, every reference moved by a fixed
// number of whole blocks. Idea. One pass over the control flow alone (inner loops go as arithmetic
// progressions) takes a signature of every iteration: which references, where from the first address of
// each, in which order. Say from iteration t0 on signatures repeat with period p, each reference moving
// by its own constant; references that move differently touch different blocks; and what moves out of
// reach of a reference is not seen again by the loop. Then the blocks of iteration t + p are those of t
// renamed one to one, and so is everything since their last use in the loop: the distances are the
// same. So it is enough to interpret the iterations up to t0 and p more, and to count these as often as
// they come. What a period meets that was used before it, and the stack that the loop leaves to what
// follows, are replayed block by block (replay.cpp). Nothing is extrapolated that was not seen to
// repeat: the signatures are those of the target itself, all iterations of it (equal signatures are
// equal sequences but for a chance of 2^-64). Where the text of the loop shows that all iterations are
// the same (steady_loops.cpp), three of them are walked, and what lies between is left out. Loops that
// do not repeat are interpreted whole. Cost. The pass: half a microsecond an inner loop. Then t0 + p
// iterations per loop. 3mm at 800 x 900 x 1000 x 1100 x 1200 by lines (5.4e9 accesses): 0.7 s.
#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <span>

#include "core/try.h"
#include "predict/run/simulate.h"
#include "predict/run/steady_loops.h"

namespace revisit::predict {
namespace {

using Show = RunOptions::Show;

constexpr std::int64_t kLongestPeriod = 64;
constexpr std::size_t kMostIterations = 200'000;
constexpr std::size_t kFewestIterations = 8;  // that show a repetition
constexpr std::int64_t kMostSteady = 20'000;
constexpr std::int64_t kFewestSteady = 16;
constexpr std::uint64_t kMuchLess = 8;
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

using Ranges = std::map<std::uint32_t, std::pair<std::uint64_t, std::uint64_t>>;  // by reference

// An outermost loop, or what lies between two of them.
struct Segment {
    std::uint32_t loop = kNoLoop;  // index into Trace::loops
    std::uint64_t accesses = 0;
    Ranges touched;
    // Of a loop.
    std::vector<Iteration> iterations;  // empty where they do not repeat, or were too many
    bool recorded = true;
    std::map<std::uint32_t, Around> around;
    std::int64_t left_out = 0;  // iterations after the second
    bool trails = false;        // an access after the last iteration
};

struct Survey {
    std::vector<Segment> segments;
    std::vector<LoopPlace> loops;
};

std::uint64_t mixed(std::uint64_t h, std::uint64_t value) {
    h = (h ^ value) * 0xff51afd7ed558ccdull;
    return h ^ (h >> 29);
}

void note(Segment& s, const Stretch& a) {
    const auto last = a.address + static_cast<std::uint64_t>(a.step * (a.rounds - 1));
    const auto low = std::min(a.address, last),
               high = std::max(a.address, last) + std::max<std::uint32_t>(a.size, 1) - 1;
    auto& range = s.touched.try_emplace(a.reference, low, high).first->second;
    range = {std::min(range.first, low), std::max(range.second, high)};
    s.accesses += static_cast<std::uint64_t>(a.rounds);
    if (s.iterations.empty()) return;
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

std::int64_t granularity_of(const Request& request) {
    return static_cast<std::int64_t>(std::max<std::uint64_t>(1, request.granularity));
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

struct Cycle {
    std::size_t from = 0;     // the first iteration it holds for
    std::int64_t period = 0;  // in iterations
    std::int64_t reach = 0;   // iterations after which nothing that moves is met again
    bool moves = false;
    bool meets = false;                           // what moves may have been touched before the loop
    std::map<std::uint32_t, std::int64_t> moved;  // by reference: bytes per period
};

// How the iterations repeat, if they do. `overlaps`: they do, but references that move differently
// touch the same blocks.
std::optional<Cycle> cycle_of(const Segment& s, std::span<const Segment> earlier,
                              std::int64_t granularity, bool* overlaps = nullptr) {
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
                // The last iterations may be without this reference.
                same = by % granularity == 0 && moved.try_emplace(reference, by).first->second == by;
            }
            if (!same) break;
            --from;
        }
        if (2 * from > all.size()) continue;
        Cycle c{from, p, p, false, false, {}};
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
            for (const Segment& before : earlier)
                for (const auto& [b, range_before] : before.touched)
                    c.meets |=
                        ra.high >= static_cast<std::int64_t>(range_before.first) / granularity &&
                        static_cast<std::int64_t>(range_before.second) / granularity >= ra.low - 1;
        }
        // References met only before the loop settles would have to be distinguished from all others.
        for (const auto& [a, ra] : range) apart &= moved.contains(a);
        if (!apart) {
            if (overlaps) *overlaps = true;
            return std::nullopt;
        }
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
        c.moved = std::move(moved);
        return c;
    }
    return std::nullopt;
}

// Takes the iterations that were left out for what the text says: the first again, moved on, up to the
// last, which was walked. (Signatures depend on how many rounds of an inner loop were taken at once,
// and in the first iteration these are learnt.)
bool fill_in(Segment& s) {
    auto& all = s.iterations;
    if (all.size() == 4 && all.back().accesses == 0) all.pop_back();  // found the loop over
    if (all.size() != 3 || all[0].accesses == 0) return false;
    const Iteration first = all[0], second = all[1], last = all[2];
    const auto total = s.left_out + 3;
    for (const Iteration* other : {&second, &last})
        if (other->accesses != first.accesses || other->first.size() != first.first.size())
            return false;
    const auto moved_to = [&](std::uint32_t reference, std::int64_t t) {
        const auto from = first.first.at(reference);
        return from + static_cast<std::uint64_t>(t) * (second.first.at(reference) - from);
    };
    for (const auto& [reference, address] : last.first)
        if (address != moved_to(reference, total - 1)) return false;
    all.assign(static_cast<std::size_t>(total), first);
    for (std::int64_t t = 1; t < total; ++t)
        for (auto& [reference, address] : all[static_cast<std::size_t>(t)].first)
            address = moved_to(reference, t);
    s.accesses = first.accesses * static_cast<std::uint64_t>(total);
    return true;
}

// Walks the whole run but for the leaps, and keeps the signatures of outermost loops. Nothing where the
// iterations of the longest loop differ, or where more than `max_accesses` are in loops that do not
// repeat.
Result<std::optional<Survey>> survey(const Program& program, const Parameters& parameters,
                                     const Request& request, const Deadline& deadline,
                                     const std::map<std::int32_t, Leap>& leaps, std::uint32_t longest,
                                     std::uint64_t max_accesses) {
    Survey s;
    s.segments.emplace_back();
    bool given_up = false;
    std::set<std::uint32_t> entered;
    std::uint64_t whole = 0;  // accesses of what does not repeat
    auto options = whole_run(request, deadline);
    options.leaps = leaps;
    options.outermost = [&](std::uint32_t loop, std::uint32_t iteration) {
        if (s.segments.back().loop != loop || loop == kNoLoop) {
            given_up |= loop != kNoLoop && !entered.insert(loop).second;
            s.segments.emplace_back().loop = loop;
        }
        Segment& now = s.segments.back();
        if (loop != kNoLoop && now.recorded) {
            auto& all = now.iterations;
            if (iteration > all.size() && now.left_out == 0)
                now.left_out = static_cast<std::int64_t>(iteration - all.size());
            // What overlaps now overlaps in the end.
            bool overlaps = false;
            if (all.size() == kLookedAtFirst && loop == longest)
                cycle_of(now, {}, granularity_of(request), &overlaps);
            if (overlaps || all.size() > kMostIterations ||
                (all.size() == kLookedAtFirst && !any_alike(all))) {
                given_up |= loop == longest;
                now.recorded = false;
                all.clear();
                whole += now.accesses;
            } else {
                all.emplace_back();
            }
        }
        return given_up || whole > max_accesses ? Show::stop : Show::accesses;
    };
    options.progression = [&](const Stretch& a) {
        Segment& now = s.segments.back();
        note(now, a);
        if (now.loop == kNoLoop || !now.recorded) whole += static_cast<std::uint64_t>(a.rounds);
    };
    auto trace = TRY(interpret(program, parameters, options));
    if (!trace.complete || given_up || !trace.doubts.empty()) return std::nullopt;
    s.loops = std::move(trace.loops);
    for (Segment& one : s.segments) {
        auto& all = one.iterations;
        if (one.left_out > 0) {
            if (!fill_in(one)) return std::nullopt;
        } else if (all.size() > 1 && all.back().accesses * 2 < all.front().accesses) {
            // A last arrival at the header that only finds the loop over belongs to what follows.
            one.trails = all.back().accesses > 0;
            all.pop_back();
        }
    }
    return s;
}

// The outermost loop that takes up most of the beginning.
std::uint32_t longest_loop(const Program& program, const Parameters& parameters,
                           const Deadline& deadline, const std::map<std::int32_t, Leap>& leaps,
                           std::uint64_t max_accesses) {
    RunOptions options;
    options.leaps = leaps;
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
    if (!trace) return kNoLoop;
    std::uint32_t longest = kNoLoop;
    std::uint64_t most = 0;
    for (const auto& [loop, n] : accesses)
        if (loop != kNoLoop && n > most) most = n, longest = loop;
    return longest;
}

// Whether one iteration takes so little time that the fewest needed could be walked.
bool ends_an_iteration(const Program& program, const Parameters& parameters, const Deadline& deadline,
                       const std::map<std::int32_t, Leap>& leaps, std::uint32_t wanted) {
    bool ended = false;
    RunOptions options;
    options.leaps = leaps;
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
                                                     std::uint64_t max_accesses,
                                                     std::optional<std::uint64_t> if_shown) {
    if (program.memory_needed) return std::nullopt;
    const auto steady = steady_loops(program, parameters, kMostSteady);
    std::map<std::int32_t, Leap> leaps;  // to the last iteration
    for (const SteadyLoop& l : steady)
        if (l.iterations >= kFewestSteady) leaps[l.loop] = {2, l.iterations - 3, l.registers};
    const auto& loops = program.functions.front().loops;
    const auto outermost = static_cast<std::size_t>(
        std::count_if(loops.begin(), loops.end(), [](const auto& l) { return l.parent < 0; }));
    auto longest = kNoLoop;
    if (if_shown && leaps.size() < outermost) return std::nullopt;
    if (leaps.size() < outermost) {
        longest = longest_loop(program, parameters, deadline, leaps, max_accesses);
        if (longest == kNoLoop || !ends_an_iteration(program, parameters, deadline, leaps, longest))
            return std::nullopt;
    }
    const auto surveyed =
        TRY(survey(program, parameters, request, deadline, leaps, longest, max_accesses));
    if (!surveyed) return std::nullopt;
    const auto& segments = surveyed->segments;
    const auto granularity = granularity_of(request);
    Plan plan;
    std::vector<Repetition::Loop> repeated;
    std::uint64_t needed = 0, all = 0;
    for (std::size_t k = 0; k < segments.size(); ++k) {
        const Segment& s = segments[k];
        all += s.accesses;
        const auto cycle = s.iterations.empty()
                               ? std::nullopt
                               : cycle_of(s, std::span(segments).first(k), granularity);
        const auto total = static_cast<std::int64_t>(s.iterations.size());
        // A whole number of periods to the end.
        auto shown = cycle ? static_cast<std::int64_t>(cycle->from) : 0;
        if (cycle) shown += (total - shown) % cycle->period;
        const auto settled = cycle ? cycle->reach / cycle->period : 0;
        if (!cycle || shown + (settled + 2) * cycle->period >= total) {
            needed += s.accesses;
            continue;
        }
        Skip skip{s.loop, shown,        cycle->period, total,   settled,
                  {},     cycle->moves, cycle->meets,  s.trails};
        for (std::size_t later = k + 1; later < segments.size(); ++later)
            skip.after |= segments[later].accesses > 0;
        for (const auto& [reference, by] : cycle->moved) skip.moved[reference] = by / granularity;
        for (std::int64_t t = 0; t < shown + cycle->period; ++t)
            needed += s.iterations[static_cast<std::size_t>(t)].accesses;
        const auto number = static_cast<std::int32_t>(surveyed->loops[s.loop].loop);
        if (const auto leap = leaps.find(number); leap != leaps.end()) {
            const auto from = shown + cycle->period;
            plan.leaps[number] = {static_cast<std::uint32_t>(from), total - 1 - from,
                                  leap->second.registers};
        }
        repeated.push_back({loops[static_cast<std::size_t>(number)].line, cycle->period, shown, total});
        plan.skips.push_back(std::move(skip));
    }
    if (plan.skips.empty() || needed > max_accesses) return std::nullopt;
    if (if_shown && (all <= *if_shown || needed > all / kMuchLess)) return std::nullopt;
    auto run = simulate(program, parameters, request, request.bins, Deadline(), max_accesses, &plan);
    if (!run || !run->complete) return std::nullopt;
    return Repetition{std::move(*run), std::move(repeated)};
}

}  // namespace revisit::predict
