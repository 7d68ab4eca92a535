// A model at a size, and what is said where there is none.
//
// The estimate. The program is interpreted at three reduced copies of the target: all sizes shrunk by
// the same factor, residues kept, the largest copy of some 40 million accesses. Between the two largest
// every stream (use → reuse) has a number of accesses and, quantile by quantile, a distance that grow
// like some power of the scale; they are continued to the target. How far that can be trusted is
// measured: the largest copy itself is estimated from the two smaller ones and compared with what it
// is.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "predict/assemble.h"
#include "predict/evaluate.h"
#include "predict/predict.h"
#include "revisit/accuracy.h"

namespace revisit::predict {
Profile evaluate_model(const Model& model, const std::vector<std::int64_t>& size, const Binning& bins,
                       std::vector<std::string>& failures, const Deadline& deadline) {
    Assembly assembly(model.target, model.table.granularity(), bins);
    for (const auto& r : model.table.references()) assembly.add_reference(r.function, r.reference);
    const BinOf bin = bins.kind() == Binning::Kind::exact ? BinOf{} : [&bins](std::uint64_t d) {
        return bins.low_edge(d);
    };
    std::set<std::string> reasons;
    for (std::size_t i = 0; i < model.streams.size(); ++i) {
        const Stream& s = model.table.streams()[i];
        DistanceCounter counter(bins);
        bool fine = model.streams[i].lost == 0;
        for (const Cell& c : model.streams[i].cells) {
            if (!fine) break;
            const auto e = evaluate(
                c, size, bin,
                [&](std::uint64_t d, std::uint64_t n) {
                    s.source == kCold ? counter.add_cold(n) : counter.add(d, n);
                },
                400'000'000, deadline);
            if (!e.valid || !e.determined || !e.complete) {
                reasons.insert(
                    e.complete
                        ? e.why
                        : "too many distances to list in the time allowed: --bins log2 has fewer, "
                          "--budget allows more");
                fine = false;
            }
        }
        if (!fine) continue;
        assembly.add_stream(s.reference, s.source, counter);
    }
    failures.insert(failures.end(), reasons.begin(), reasons.end());
    return assembly.finish();
}

namespace {

using StreamId = std::tuple<std::uint32_t, std::uint32_t, std::uint64_t>;  // of a reference, see key_of
using Streams = std::map<std::pair<StreamId, StreamId>, Histogram>;  // use, reuse; cold: use = reuse's

struct Copy {
    double scale = 1;  // of the target
    Parameters parameters;
    Simulation run;
    Streams reuse, cold;
};

StreamId id_of(const ReferencePlace& p) {
    return {p.function, p.reference, p.context};
}

Result<Copy> copy_at(const Reduction& how, const Request& request, double factor,
                     const Deadline& deadline) {
    Copy copy;
    const auto size = how.design.reduced(factor);
    double logarithms = 0;
    for (std::size_t i = 0; i < size.size(); ++i)
        logarithms +=
            std::log(static_cast<double>(size[i]) / static_cast<double>(how.design.target[i]));
    copy.scale = std::exp(logarithms / static_cast<double>(std::max<std::size_t>(1, size.size())));
    copy.parameters = how.design.at(size);
    auto program = how.program_at(size);
    if (!program) return std::unexpected(program.error());
    auto run = simulate(*program, copy.parameters, request, Binning::log2(64), deadline, 400'000'000);
    if (!run) return std::unexpected(run.error());
    copy.run = std::move(*run);
    const auto& places = copy.run.references;
    for (const Pair& p : copy.run.profile.pairs)
        copy.reuse[{id_of(places[p.use - 1]), id_of(places[p.reuse - 1])}].merge(p.distances);
    for (std::size_t i = 0; i < places.size(); ++i) {
        Histogram& h = copy.cold[{id_of(places[i]), id_of(places[i])}];
        h.cold += copy.run.profile.sites[i].reuse.cold;
    }
    return copy;
}

double power(double small, double large, double ratio, double further) {
    if (small <= 0 || large <= small || ratio <= 1.01) return 1;
    return std::pow(further, std::min(8.0, std::log(large / small) / std::log(ratio)));
}

// A stream at a scale `further` times the large copy's, that being `ratio` times the small one's.
void carry_on(const Histogram& small, const Histogram& large, double ratio, double further,
              double weight, DistanceCounter& out) {
    const double cold = weight * large.cold * power(small.cold, large.cold, ratio, further);
    out.add_cold(static_cast<std::uint64_t>(std::llround(cold)));
    const double count =
        weight * large.finite() * power(small.finite(), large.finite(), ratio, further);
    if (count <= 0) return;
    constexpr int kPieces = 512;
    double given = 0;
    for (int q = 0; q < kPieces; ++q) {
        const double share = (q + 0.5) / kPieces;
        const double d = large.percentile(share);
        const double far =
            d * (small.bins.empty() ? 1 : power(small.percentile(share), d, ratio, further));
        const double upto = count * (q + 1) / kPieces;
        const auto n = std::llround(upto) - std::llround(given);
        given = upto;
        if (n > 0)
            out.add(static_cast<std::uint64_t>(std::min(far, 4e18)), static_cast<std::uint64_t>(n));
    }
}

// What the two copies say of a run at `scale`; references and program are the large copy's. Where the
// number of accesses of a reference is known, its streams are made to add up to it.
Profile carried(const Program& program, const Copy& small, const Copy& large, double scale,
                const Reduction::Totals& totals, std::uint64_t granularity, const Binning& bins) {
    Assembly assembly(program, granularity, bins);
    std::map<StreamId, std::int32_t> number;
    for (const auto& p : large.run.references) {
        number.emplace(id_of(p), static_cast<std::int32_t>(number.size()));
        assembly.add_reference(p.function, p.reference);
    }
    const double ratio = large.scale / small.scale, further = scale / large.scale;
    const Histogram none;
    const auto for_each = [&](auto&& take) {
        for (auto kind : {&Copy::reuse, &Copy::cold})
            for (const auto& [key, h] : large.*kind) {
                const auto before = (small.*kind).find(key);
                take(kind == &Copy::cold, key, before == (small.*kind).end() ? none : before->second,
                     h);
            }
    };
    std::map<StreamId, double> sums;
    for_each([&](bool, const auto& key, const Histogram& before, const Histogram& now) {
        sums[key.second] += now.cold * power(before.cold, now.cold, ratio, further) +
                            now.finite() * power(before.finite(), now.finite(), ratio, further);
    });
    for_each([&](bool cold, const auto& key, const Histogram& before, const Histogram& now) {
        const auto total = totals.find(key.second);
        const double sum = sums[key.second];
        const double weight = total == totals.end() || sum <= 0 ? 1 : total->second / sum;
        DistanceCounter counter(bins);
        carry_on(before, now, ratio, further, weight, counter);
        assembly.add_stream(number[key.second], cold ? kCold : number[key.first], counter);
    });
    return assembly.finish();
}

}  // namespace

Result<Estimate> estimate(const Reduction& how, const Request& request, const Deadline& deadline) {
    // As much as the time allows: some ten million accesses a second, three copies, some time to count.
    const auto most = static_cast<std::uint64_t>(std::clamp(deadline.left() * 3e6, 1e6, 40e6));
    double factor = 1;
    for (int tries = 1;; ++tries) {
        const auto size = how.design.reduced(factor);
        auto program = how.program_at(size);
        if (!program) return std::unexpected(program.error());
        RunOptions options;
        options.keep = false;
        options.max_accesses = most;
        options.deadline = deadline.part(0.1);
        options.max_steps = 200'000'000;
        options.seed = request.seed;
        const auto counted = interpret(*program, how.design.at(size), options);
        if (!counted) return std::unexpected(counted.error());
        if (counted->complete || factor < 1e-6) break;
        factor *= tries < 8 ? 0.7 : 0.3;
    }
    auto large = copy_at(how, request, factor, deadline);
    if (!large) return std::unexpected(large.error());
    auto middle = copy_at(how, request, factor * 0.6, deadline);
    if (!middle) return std::unexpected(middle.error());
    auto small = copy_at(how, request, factor * 0.36, deadline);
    if (!small) return std::unexpected(small.error());
    if (!large->run.complete || !middle->run.complete || !small->run.complete)
        return fail(request.source.path, "",
                    "reduced copies of the run do not end in the time allowed");
    Estimate e;
    e.profile = carried(how.target, *middle, *large, 1, how.totals, request.granularity, request.bins);
    const auto again =
        carried(how.target, *small, *middle, large->scale, {}, request.granularity, Binning::log2());
    e.accuracy = accuracy(large->run.profile.reuse.rebin(Binning::log2()), again.reuse);
    e.parameters = large->parameters;
    e.accesses = large->run.profile.accesses;
    return e;
}

}  // namespace revisit::predict
