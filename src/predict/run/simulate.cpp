// Interprets the whole run and measures it with the exact engine: for targets that are small enough, as
// a fallback where no formulas were found, and as what predictions are compared with.
//
// Cost. Inner loops are taken whole (affine_path.cpp), so the engine is what is paid for: 15–40 million
// accesses a second with sites and pairs.
#include "predict/run/simulate.h"

#include <optional>

#include "core/errors.h"
#include "core/try.h"
#include "predict/run/assemble.h"
#include "predict/run/same_blocks.h"
#include "revisit/analyze.h"

namespace revisit::predict {

Result<Simulation> simulate(const Program& program, const Parameters& parameters,
                            const Request& request, const Binning& bins, const Deadline& deadline,
                            std::uint64_t max_accesses, const Plan* plan, Attributed attributed) {
    AnalyzeOptions measured_as;
    measured_as.engine.bins = bins;
    measured_as.engine.granularity = request.granularity;
    measured_as.engine.sites = measured_as.engine.pairs = attributed == Attributed::yes;
    auto analysis = TRY(Analysis::begin(measured_as));
    RunOptions options;
    options.keep = false;
    options.max_accesses = max_accesses;
    options.max_steps = max_accesses * 200 + 100'000'000;
    options.seed = request.seed;
    options.layout = request.layout;
    options.branch_probability = request.branch_probability;
    options.deadline = deadline;
    std::vector<std::uint32_t> sites;
    std::optional<Error> failed;
    std::optional<Replay> replay;
    if (plan) {
        replay.emplace(plan->skips, max_accesses, request.granularity);
        options.leaps = plan->leaps;
        options.outermost = [&](std::uint32_t loop, std::uint32_t iteration) {
            const auto show = replay->arrive(loop, iteration, analysis);
            if (!show) failed = show.error();
            return show.value_or(RunOptions::Show::stop);
        };
    }
    const auto site_of = [&](std::uint32_t reference) {
        return replay ? replay->site(reference) : reference + 1;
    };
    SameBlocks same(request.granularity, bins);
    if (request.granularity > 1) {
        options.block_bytes = request.granularity;
        options.again = [&](std::span<const Stretch> round, std::int64_t times) {
            same.add(round, times, site_of);
        };
    }
    options.sink = [&](std::span<const std::uint64_t> addresses,
                       std::span<const std::uint32_t> references,
                       std::span<const std::uint32_t> sizes) {
        sites.resize(references.size());
        for (std::size_t i = 0; i < sites.size(); ++i) sites[i] = site_of(references[i]);
        const AccessBatch batch{addresses, sites, sizes, {}, {}};
        auto added = replay ? replay->see(batch) : Result<void>();
        if (added) added = analysis.add(batch);
        if (!added) failed = added.error();
        return !failed;
    };
    auto trace = interpret(program, parameters, options);
    if (failed) return unexpected(*failed);
    if (!trace) return in_file(request.source.path, trace.error());
    Assembly assembly(program, request.granularity, bins);
    for (const auto& place : trace->references) assembly.add_reference(place.function, place.reference);
    auto measured = TRY(analysis.finish());
    same.add_to(measured);
    if (replay) measured = TRY(replay->whole(measured));
    return Simulation{assembly.finish(std::move(measured)), std::move(trace->references),
                      trace->doubts_at(request.granularity),
                      trace->complete || (replay && replay->over())};
}

}  // namespace revisit::predict
