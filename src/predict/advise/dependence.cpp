// Dependences of a nest, from its trace at small sizes.
//
// Problem. Loops may be interchanged if no two iterations that touch the same element, one writing,
// change places. Idea. The program itself is interpreted at small sizes, compiled so that every load
// and store of the source is there. For each element the last write and the reads since are kept with
// their iteration vectors; each pair that must stay in order gives the vector between them. Chains of
// such pairs give all others: a sum of vectors that stay positive is positive. Indices in the class of
// proof.cpp with numbers that are small beside the sizes have the same signs at every size; where
// numbers are large, or the data decides, nothing is claimed. Variables on the stack carry values
// forward only: each iteration may have its own copy.
//
// Example. A[i][j] = A[i-1][j+1] gives (1, -1): interchanged (-1, 1), which would read what is not yet
// written. C[i][j] += … in k gives (0, 0, 1), positive in any order. Tiles want every component at
// least 0.
//
// Cost. Two runs of some ten thousand accesses: milliseconds.
#include "predict/advise/dependence.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "core/try.h"
#include "predict/run/address_space.h"

namespace revisit::predict {
namespace {

constexpr std::int64_t kSmall = 9;        // the smallest size taken
constexpr std::int64_t kMostNumber = 24;  // in the source: twice that many iterations are run
constexpr std::size_t kMostAccesses = 3'000'000;

// Sizes in the order of the target's, each a little larger than the one before.
Parameters reduced(const Parameters& sizes, std::int64_t first) {
    std::map<std::int64_t, std::int64_t> to;
    for (const auto& [name, value] : sizes) to[value] = value;
    auto next = first;
    for (auto& [value, small] : to)
        if (value > first) small = next, next += 3;
    Parameters out;
    for (const auto& [name, value] : sizes) out[name] = to[value];
    return out;
}

// The largest number that indices or comparisons have beside sizes.
std::int64_t largest_number(const Program& program) {
    std::int64_t most = 0;
    for (const Function& f : program.functions) {
        std::map<std::int32_t, std::int64_t> numbers;
        for (const Constant& c : f.constants)
            if (c.global < 0 && c.known) numbers[c.reg] = std::abs(c.value);
        for (const Block& b : f.blocks)
            for (const Instruction& i : b.code)
                if (i.op == Op::add || i.op == Op::sub || is_comparison(i.op) || is_division(i.op))
                    for (const auto reg : {i.a, i.b})
                        if (const auto at = numbers.find(reg); at != numbers.end())
                            most = std::max(most, at->second);
    }
    return most;
}

struct Last {
    std::vector<std::int64_t> at;  // iteration vector
    std::uint64_t instance = 0;    // of the whole nest
};

Result<void> collect(const Program& program, const Parameters& sizes, const Nest& nest,
                     std::set<Distance>& out) {
    RunOptions options;
    options.max_accesses = kMostAccesses;
    const auto trace = TRY(interpret(program, sizes, options));
    if (!trace.complete) return fail("the nest does not end at small sizes");
    for (const Doubt& d : trace.doubts)
        if (d.kind == Doubt::Kind::data || d.kind == Doubt::Kind::recursion ||
            d.kind == Doubt::Kind::outside)
            return fail(d.sentence());
    // Which loop of the nest a place is, by its line and variable.
    std::vector<int> level(trace.loops.size(), -1);
    for (std::size_t k = 0; k < level.size(); ++k) {
        const Loop& l = program.functions[trace.loops[k].function].loops[trace.loops[k].loop];
        for (std::size_t n = 0; n < nest.loops.size(); ++n)
            if (l.line == nest.loops[n].line && l.variable == nest.loops[n].variable)
                level[k] = static_cast<int>(n);
    }
    std::set<std::string> variables;
    for (const LoopText& l : nest.loops) variables.insert(l.variable);
    std::unordered_map<std::uint64_t, Last> written;
    std::unordered_map<std::uint64_t, std::vector<Last>> read;
    const auto depends = [&](const Last& before, const Last& now) {
        if (before.instance != now.instance) return;
        Distance d;
        for (std::size_t k = 0; k < now.at.size(); ++k) d.push_back(now.at[k] - before.at[k]);
        if (std::any_of(d.begin(), d.end(), [](auto x) { return x != 0; })) out.insert(std::move(d));
    };
    bool met = false;
    for (const Access32& a : trace.accesses) {
        const auto& place = trace.references[a.reference];
        const Reference& r = program.functions[place.function].references[place.reference];
        const bool on_stack = a.address >= kStackBase && a.address < kArgumentBase;
        if (on_stack && variables.contains(r.array)) continue;
        Last now;
        now.at.assign(nest.loops.size(), -1);
        std::size_t inside = 0;
        auto run = a.run;
        auto iteration = static_cast<std::int64_t>(a.iteration);
        while (run >= 0) {
            const LoopRun& l = trace.runs[static_cast<std::size_t>(run)];
            const auto k = level[l.loop];
            if (k >= 0) {
                now.at[static_cast<std::size_t>(k)] = iteration;
                ++inside;
                if (k == 0) now.instance = static_cast<std::uint64_t>(run) + 1;
            }
            iteration = l.parent_iteration;
            run = l.parent;
        }
        if (inside < nest.loops.size()) {  // the conditions of the loops themselves, or elsewhere
            if (inside > 0 && !on_stack && r.write)
                return fail("something is written between the loops");
            continue;
        }
        met = true;
        const auto before = written.find(a.address);
        if (!r.write) {
            if (before != written.end()) depends(before->second, now);
            if (!on_stack) read[a.address].push_back(std::move(now));
            continue;
        }
        if (!on_stack) {
            if (before != written.end()) depends(before->second, now);
            auto& since = read[a.address];
            for (const Last& l : since) depends(l, now);
            since.clear();
        }
        written[a.address] = std::move(now);
    }
    if (!met) return fail("the compiled function has no such loops");
    return {};
}

}  // namespace

Result<std::set<Distance>> dependences(const Request& request, const Nest& nest) {
    Request whole = request;
    whole.source.optimise = 0;
    std::set<Distance> out;
    for (std::int64_t first : {kSmall, kSmall + 5}) {
        auto macros = reduced(request.macros, first);
        auto parameters = reduced(request.parameters, first);
        auto program = std::move(TRY(compile(whole.source, {macros})).front());
        const auto number = largest_number(program);
        if (number > kMostNumber && number > 4 * first)
            return fail("a number of " + std::to_string(number) +
                        " in the source: small sizes do not show what depends on what. Make it a "
                        "macro, given by "
                        "-D, or an argument");
        if (2 * number > first) {
            macros = reduced(request.macros, first + 2 * number);
            parameters = reduced(request.parameters, first + 2 * number);
            program = std::move(TRY(compile(whole.source, {macros})).front());
        }
        auto sizes = macros;
        sizes.insert(parameters.begin(), parameters.end());
        TRY(collect(program, sizes, nest, out));
    }
    return out;
}

bool is_legal(const std::set<Distance>& dependences, const Nest& nest, const Order& order) {
    // A loop stays inside those that its bounds need, and is not cut into tiles with them.
    std::vector<std::size_t> position(order.loops.size());
    for (std::size_t k = 0; k < order.loops.size(); ++k) position[order.loops[k]] = k;
    for (std::size_t l = 0; l < nest.loops.size(); ++l)
        for (const auto outer : nest.loops[l].needs)
            if (position[outer] > position[l] ||
                (order.tile > 0 && (order.tiled[l] || order.tiled[outer])))
                return false;
    for (const Distance& d : dependences) {
        std::vector<std::int64_t> moved;
        if (order.tile > 0)  // between tiles as between iterations, or both in one
            for (const auto k : order.loops)
                if (order.tiled[k] && d[k] < 0) return false;
        for (const auto k : order.loops) moved.push_back(d[k]);
        const auto first = std::find_if(moved.begin(), moved.end(), [](auto x) { return x != 0; });
        if (first != moved.end() && *first < 0) return false;
        // An untiled loop goes inside the loops over tiles.
        if (order.tile > 0 && std::any_of(moved.begin(), moved.end(), [](auto x) { return x < 0; }))
            return false;
    }
    return true;
}

}  // namespace revisit::predict
