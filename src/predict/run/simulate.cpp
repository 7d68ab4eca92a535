// Interprets the whole run and measures it with the exact engine: for targets that are small enough, as
// a fallback where no formulas were found, and as what predictions are compared with.
//
// Cost. Inner loops are taken whole (affine_path.cpp), so the engine is what is paid for: 15–40 million
// accesses a second with sites and pairs.
#include "predict/run/simulate.h"

#include <map>
#include <optional>

#include "core/try.h"
#include "predict/fit/assemble.h"
#include "revisit/blocks.h"
#include "revisit/engine.h"

namespace revisit::predict {
namespace {

// Histograms of what counts once and of what counts `times` times.
struct Parts {
    Histogram once, again;

    Histogram sum(double times) const {
        Histogram out;
        out.cold = once.cold + times * again.cold;
        std::map<std::pair<double, double>, Bin> bins;
        for (const auto& [part, weight] : {std::pair{&once, 1.0}, std::pair{&again, times}})
            for (const Bin& bin : part->bins) {
                Bin& to =
                    bins.try_emplace({bin.low, bin.high}, Bin{bin.low, bin.high, 0}).first->second;
                to.count += weight * bin.count;
            }
        for (const auto& [edges, bin] : bins) out.bins.push_back(bin);
        return out;
    }
};

// Sites were numbered twice over, odd where what they do counts more than once.
Profile counted_again(const Profile& measured, double times) {
    std::map<std::uint32_t, Parts> sites;
    for (const Site& s : measured.sites)
        (s.id % 2 ? sites[s.id / 2].again : sites[s.id / 2].once) = s.reuse;
    std::map<std::pair<std::uint32_t, std::uint32_t>, Parts> pairs;
    for (const Pair& p : measured.pairs) {
        Parts& parts = pairs[{p.use / 2, p.reuse / 2}];
        (p.reuse % 2 ? parts.again : parts.once).merge(p.distances);
    }
    Profile out;
    for (const auto& [id, parts] : sites) {
        Site s;
        s.id = id;
        s.reuse = parts.sum(times);
        out.reuse.merge(s.reuse);
        out.sites.push_back(std::move(s));
    }
    for (const auto& [key, parts] : pairs) {
        Pair p;
        p.use = key.first;
        p.reuse = key.second;
        p.distances = parts.sum(times);
        p.count = p.distances.total();
        out.pairs.push_back(std::move(p));
    }
    return out;
}

}  // namespace

Result<Simulation> simulate(const Program& program, const Parameters& parameters,
                            const Request& request, const Binning& bins, const Deadline& deadline,
                            std::uint64_t max_accesses,
                            const decltype(RunOptions::outermost)& outermost, const Again* again) {
    EngineOptions engine_options;
    engine_options.bins = bins;
    engine_options.granularity = request.granularity;
    engine_options.sites = engine_options.pairs = true;
    auto engine = TRY(make_engine("exact", engine_options));
    RunOptions options;
    options.keep = false;
    options.max_accesses = max_accesses;
    options.max_steps = max_accesses * 200 + 100'000'000;
    options.seed = request.seed;
    options.layout = request.layout;
    options.branch_probability = request.branch_probability;
    options.deadline = deadline;
    options.outermost = outermost;
    BlockCutter cutter(request.granularity);
    std::vector<std::uint32_t> sites;
    std::optional<Error> failed;
    options.sink = [&](std::span<const std::uint64_t> addresses,
                       std::span<const std::uint32_t> references,
                       std::span<const std::uint32_t> sizes) {
        sites.resize(references.size());
        for (std::size_t i = 0; i < sites.size(); ++i)
            sites[i] = again ? 2 * (references[i] + 1) + again->counted : references[i] + 1;
        auto added = cutter.cut({addresses, sites, sizes, {}, {}},
                                [&](const BlockBatch& batch) { return engine->add(batch); });
        if (!added) failed = added.error();
        return !failed;
    };
    auto trace = interpret(program, parameters, options);
    if (failed) return unexpected(*failed);
    if (!trace) return fail(request.source.path, trace.error().place, trace.error().message);
    Assembly assembly(program, request.granularity, bins);
    for (const auto& place : trace->references) assembly.add_reference(place.function, place.reference);
    auto measured = TRY(engine->finish());
    if (again) measured = counted_again(measured, again->times);
    return Simulation{assembly.finish(std::move(measured)), std::move(trace->references),
                      trace->doubts_at(request.granularity), trace->complete};
}

}  // namespace revisit::predict
