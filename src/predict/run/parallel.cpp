// OpenMP's parallel loops: which thread does which iterations.
//
// Problem. `#pragma omp parallel for` hands iterations to threads, each with a cache of its own.
// Idea. Compiled without OpenMP the program is the same in sequence. With a static schedule the number
// of iterations alone says who does which: counted in a first run, iterations are given to threads in a
// second, and a private stack per thread measures them.
// Example. Ten iterations on four threads: 3, 3, 2 and 2 (what libomp does), or with
// schedule(static, 2) two at a time in turn.
// What it leaves out. The code that OpenMP adds (a thread's bounds, addresses of shared variables: some
// ten accesses a thread and loop), and how threads overlap: here they follow each other in a loop.
// Cost. Two runs.
#include "predict/run/parallel.h"

#include <cctype>
#include <charconv>
#include <map>
#include <optional>
#include <set>

#include "core/errors.h"
#include "core/try.h"
#include "predict/run/assemble.h"
#include "revisit/analyze.h"

namespace revisit::predict {
namespace {

bool is_word(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
}

// Where a word starts in a text, from a place on.
std::size_t find_word(const std::string& text, const std::string& word, std::size_t from = 0) {
    for (auto at = text.find(word, from); at != std::string::npos; at = text.find(word, at + 1))
        if ((at == 0 || !is_word(text[at - 1])) &&
            (at + word.size() == text.size() || !is_word(text[at + word.size()])))
            return at;
    return std::string::npos;
}

// schedule(static, 16) has "static, 16".
std::string clause(const std::string& pragma, const std::string& name) {
    const auto at = find_word(pragma, name);
    const auto open = at == std::string::npos ? at : pragma.find('(', at);
    const auto close = open == std::string::npos ? open : pragma.find(')', open);
    return close == std::string::npos ? std::string() : pragma.substr(open + 1, close - open - 1);
}

struct Pragma {
    std::string text;
    std::size_t line = 0;  // of the loop
};

std::vector<Pragma> pragmas_of(const std::string& text) {
    std::vector<std::string> lines{""};
    for (const char c : text)
        if (c == '\n')
            lines.emplace_back();
        else
            lines.back() += c;
    std::vector<Pragma> out;
    for (std::size_t k = 0; k < lines.size(); ++k) {
        const auto first = lines[k].find_first_not_of(" \t");
        if (first == std::string::npos || lines[k][first] != '#') continue;
        std::string pragma = lines[k];
        while (pragma.ends_with('\\') && k + 1 < lines.size()) {
            pragma.back() = ' ';
            pragma += lines[++k];
        }
        if (find_word(pragma, "pragma") == std::string::npos ||
            find_word(pragma, "omp") == std::string::npos ||
            find_word(pragma, "for") == std::string::npos)
            continue;
        for (std::size_t l = k + 1; l < lines.size(); ++l)
            if (find_word(lines[l], "for") != std::string::npos) {
                out.push_back({pragma, l + 1});
                break;
            }
    }
    return out;
}

bool tests_first(const Function& f, std::int32_t loop) {
    const auto header = f.loops[static_cast<std::size_t>(loop)].header;
    bool leaves = false, latch = false;
    for (const Edge& e : f.blocks[static_cast<std::size_t>(header)].edges) {
        latch |= e.block == header;
        std::int32_t l = f.blocks[static_cast<std::size_t>(e.block)].loop;
        while (l >= 0 && l != loop) l = f.loops[static_cast<std::size_t>(l)].parent;
        leaves |= l != loop;
    }
    return leaves && !latch;
}

}  // namespace

Result<std::vector<ParallelLoop>> parallel_loops(const Program& program, const std::string& path,
                                                 const std::string& text) {
    std::vector<ParallelLoop> out;
    for (const Pragma& p : pragmas_of(text)) {
        const auto refuse = [&](const std::string& why) {
            return fail(ErrorCode::no_threads, path, "line " + std::to_string(p.line), why);
        };
        ParallelLoop found;
        for (std::uint32_t f = 0; f < program.functions.size(); ++f)
            for (std::size_t l = 0; l < program.functions[f].loops.size(); ++l) {
                if (program.functions[f].loops[l].line != p.line) continue;
                const auto schedule = clause(p.text, "schedule");
                const auto comma = schedule.find(',');
                if (!schedule.empty() &&
                    find_word(schedule.substr(0, comma), "static") == std::string::npos)
                    return refuse("only a static schedule says who does what");
                for (const char* word : {"collapse", "num_threads", "ordered"})
                    if (find_word(p.text, word) != std::string::npos)
                        return refuse(std::string(word) + " is not followed");
                if (comma != std::string::npos) {
                    const auto at = schedule.find_first_not_of(" \t", comma + 1);
                    const auto* begin = schedule.data() + std::min(at, schedule.size());
                    const auto* end = schedule.data() + schedule.size();
                    if (std::from_chars(begin, end, found.chunk).ec != std::errc{} || found.chunk < 1)
                        return refuse("schedule(" + schedule + "): expected a number");
                }
                found.function = f;
                found.loop = static_cast<std::int32_t>(l);
                found.tested = tests_first(program.functions[f], found.loop);
                out.push_back(found);
            }
    }
    if (out.empty())
        return fail(ErrorCode::no_threads, path, "",
                    "no loop under #pragma omp … for in " + program.functions.front().name);
    return out;
}

unsigned thread_of(std::int64_t iteration, std::int64_t trips, std::int64_t chunk, unsigned threads) {
    if (chunk > 0) return static_cast<unsigned>(iteration / chunk % threads);
    const std::int64_t part = trips / threads, more = trips % threads;
    return static_cast<unsigned>(iteration < more * (part + 1) ? iteration / (part + 1)
                                 : part > 0 ? more + (iteration - more * (part + 1)) / part
                                            : 0);
}

Result<Simulation> simulate_threads(const Program& program, const Parameters& parameters,
                                    const Request& request, const std::vector<ParallelLoop>& loops,
                                    std::uint64_t max_accesses) {
    std::map<std::pair<std::uint32_t, std::int32_t>, const ParallelLoop*> by_place;
    std::set<std::pair<std::uint32_t, std::int32_t>> reported;
    for (const ParallelLoop& l : loops) {
        by_place[{l.function, l.loop}] = &l;
        reported.insert({l.function, l.loop});
    }
    RunOptions options;
    options.keep = false;
    options.max_accesses = max_accesses;
    options.max_steps = max_accesses * 200 + 100'000'000;
    options.seed = request.seed;
    options.branch_probability = request.branch_probability;
    options.reported = &reported;
    // How often the header of each execution is reached. A parallel loop in another is not parallel.
    std::vector<std::int64_t> arrivals;
    std::optional<std::pair<std::uint32_t, std::int32_t>> active;
    options.report = [&](std::uint32_t function, std::int32_t loop, std::uint32_t iteration) {
        const std::pair place{function, loop};
        if (!active && iteration != kNoLoop) {
            active = place;
            arrivals.push_back(0);
        }
        if (active != place) return;
        if (iteration == kNoLoop)
            active.reset();
        else
            ++arrivals.back();
    };
    auto counted = interpret(program, parameters, options);
    if (!counted) return in_file(request.source.path, counted.error());
    if (!counted->complete)
        return fail(ErrorCode::no_threads, request.source.path, "", "too long to interpret");
    active.reset();

    AnalyzeOptions measured_as;
    measured_as.engine.bins = request.bins;
    measured_as.engine.granularity = request.granularity;
    measured_as.engine.model = StackModel::private_;
    measured_as.engine.sites = true;
    auto analysis = TRY(Analysis::begin(measured_as));
    std::uint16_t thread = 0;
    std::size_t execution = 0;
    options.report = [&](std::uint32_t function, std::int32_t loop, std::uint32_t iteration) {
        const std::pair place{function, loop};
        if (!active && iteration != kNoLoop) active = place;
        if (active != place) return;
        if (iteration == kNoLoop) {
            active.reset();
            thread = 0;
            ++execution;
            return;
        }
        const ParallelLoop& l = *by_place.at(place);
        const auto trips = std::max<std::int64_t>(1, arrivals[execution] - (l.tested ? 1 : 0));
        thread = static_cast<std::uint16_t>(
            thread_of(std::min<std::int64_t>(iteration, trips - 1), trips, l.chunk, request.threads));
    };
    std::vector<std::uint32_t> sites;
    std::vector<std::uint16_t> threads;
    std::vector<std::uint8_t> flags;
    std::optional<Error> failed;
    options.sink = [&](std::span<const std::uint64_t> addresses,
                       std::span<const std::uint32_t> references,
                       std::span<const std::uint32_t> sizes) {
        sites.resize(references.size());
        flags.resize(references.size());
        threads.assign(references.size(), thread);
        for (std::size_t i = 0; i < sites.size(); ++i) {
            const ReferencePlace& place = counted->references[references[i]];
            sites[i] = references[i] + 1;
            flags[i] = program.functions[place.function].references[place.reference].write ? 1 : 0;
        }
        const auto added = analysis.add({addresses, sites, sizes, threads, flags});
        if (!added) failed = added.error();
        return !failed;
    };
    auto trace = interpret(program, parameters, options);
    if (failed) return unexpected(*failed);
    if (!trace) return in_file(request.source.path, trace.error());
    Assembly assembly(program, request.granularity, request.bins);
    for (const auto& place : trace->references) assembly.add_reference(place.function, place.reference);
    return Simulation{assembly.finish(TRY(analysis.finish())), std::move(trace->references),
                      trace->doubts_at(request.granularity), trace->complete};
}

}  // namespace revisit::predict
