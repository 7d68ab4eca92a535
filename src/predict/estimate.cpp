// A model at a size, and what is said where there is none.
//
// The estimate. The program is interpreted at reduced copies of the target: all sizes shrunk by the
// same factor, residues kept (by blocks and with several sizes also without), the largest of at most
// 20 million accesses, each next one 0.6 of the one before. In a stream (use → reuse) the number
// of accesses and, quantile by quantile, the distance grow with the scale x like a x^k + b x^(k-1) with
// a whole k, or like some power: what the two larger of three copies give is judged by the third, and
// the best is continued to the target. By blocks whole exponents are not always better than the plain
// power: what tests better is taken.
//
// How far that can be trusted is measured: the largest copy itself is estimated from the three smaller
// ones and compared with what it is, in bins by powers of two. The target is further away from its
// copies than that. An exponent that is off by e makes a distance wrong by the factor f^e at f times
// the scale, so the error in bins grows with log f, and the error of the test is taken
// log f / log(test's f) times. It is luck whether a distance that is a little off crosses an edge: so
// the edges are moved, and what a twentieth of the places fall short of does not count as reached.
// By blocks the copy tested lies in them as the target does. Where the data decides, the copy is also
// interpreted with such branches always and never taken, and the difference is taken off.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "predict/assemble.h"
#include "predict/evaluate.h"
#include "predict/predict.h"
#include "predict/sampling.h"
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

constexpr double kStep = 0.6;  // from copy to copy
constexpr int kPieces = 512;   // of a stream: no share is known better than that
const Binning kFine = Binning::log2(512);

struct Copy {
    double scale = 1;  // of the target
    Parameters parameters;
    Simulation run;
    Streams reuse, cold;
};

StreamId id_of(const ReferencePlace& p) {
    return {p.function, p.reference, p.context};
}

// Sizes of about `factor` times the target's, as nearly in its proportions as residues allow.
std::pair<std::vector<std::int64_t>, double> shrunk(const Design& design, double factor) {
    std::pair<std::vector<std::int64_t>, double> best;
    double least = INFINITY;
    for (int k = 0; k < 48 && least > 1e-9; ++k) {
        auto size = design.reduced(factor * (1 - 0.004 * k));
        double logarithms = 0, off = 0;
        std::vector<double> scales;
        for (std::size_t i = 0; i < size.size(); ++i)
            scales.push_back(
                std::log(static_cast<double>(size[i]) / static_cast<double>(design.target[i])));
        for (const double l : scales) logarithms += l / static_cast<double>(scales.size());
        for (const double l : scales) off = std::max(off, std::abs(l - logarithms));
        if (off < least) {
            least = off;
            best = {std::move(size), std::exp(logarithms)};
        }
    }
    return best;
}

Result<Copy> copy_at(const Reduction& how, const Design& design, const Request& request, double factor,
                     const Deadline& deadline) {
    Copy copy;
    auto [size, scale] = shrunk(design, factor);
    copy.scale = scale;
    copy.parameters = how.design.at(size);
    auto program = how.program_at(size);
    if (!program) return std::unexpected(program.error());
    auto run = simulate(*program, copy.parameters, request, kFine, deadline, 400'000'000);
    if (!run) return std::unexpected(run.error());
    if (!run->complete)
        return fail(request.source.path, "",
                    "reduced copies of the run do not end in the time allowed");
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

// What grew from y[0] over y[1] to y[2] at the scales x, at a scale `at`.
double continued(const std::array<double, 3>& x, const std::array<double, 3>& y, double at,
                 bool whole) {
    if (y[2] <= 0 || y[1] <= 0 || y[2] == y[1] || x[2] < x[1] * 1.01) return y[2];
    const double exponent = std::clamp(std::log(y[2] / y[1]) / std::log(x[2] / x[1]), 0.0, 8.0);
    double best = y[2] * std::pow(at / x[2], exponent);
    if (y[0] <= 0 || !whole) return best;
    double least = std::abs(std::log(y[2] * std::pow(x[0] / x[2], exponent) / y[0]));
    for (int k = 0; k <= 6; ++k) {
        const double u = y[1] / std::pow(x[1], k - 1), v = y[2] / std::pow(x[2], k - 1);
        const double a = (v - u) / (x[2] - x[1]), b = v - a * x[2];
        const auto value = [&](double z) { return std::pow(z, k - 1) * (a * z + b); };
        if (value(x[0]) <= 0 || value(at) < 0.5 * y[2]) continue;
        const double off = std::abs(std::log(value(x[0]) / y[0]));
        if (off < least) {
            least = off;
            best = value(at);
        }
    }
    return best;
}

// Three copies of a run, and what they say of another scale.
struct Three {
    std::array<const Copy*, 3> copies;  // the smallest first
    double scale = 1;
    bool whole = true;  // exponents

    double at(const std::array<double, 3>& y) const {
        return continued({copies[0]->scale, copies[1]->scale, copies[2]->scale}, y, scale, whole);
    }
};

using Histograms = std::array<const Histogram*, 3>;

double count_of(const Three& three, const Histograms& h) {
    return three.at({h[0]->finite(), h[1]->finite(), h[2]->finite()}) +
           three.at({h[0]->cold, h[1]->cold, h[2]->cold});
}

void carry_on(const Three& three, const Histograms& h, double weight, DistanceCounter& out) {
    const double cold = weight * three.at({h[0]->cold, h[1]->cold, h[2]->cold});
    out.add_cold(static_cast<std::uint64_t>(std::llround(cold)));
    const double count = weight * three.at({h[0]->finite(), h[1]->finite(), h[2]->finite()});
    if (count <= 0) return;
    double given = 0;
    for (int q = 0; q < kPieces; ++q) {
        const double share = (q + 0.5) / kPieces;
        std::array<double, 3> d{};
        for (int k = 0; k < 3; ++k) d[k] = h[k]->bins.empty() ? 0 : h[k]->percentile(share);
        const double far = three.at(d);
        const double upto = count * (q + 1) / kPieces;
        const auto n = std::llround(upto) - std::llround(given);
        given = upto;
        if (n > 0)
            out.add(static_cast<std::uint64_t>(std::min(far, 4e18)), static_cast<std::uint64_t>(n));
    }
}

// What three copies say of a run; references and program are the largest copy's. Where the number of
// accesses of a reference is known, its streams are made to add up to it.
Profile carried(const Program& program, const Three& three, const Reduction::Totals& totals,
                std::uint64_t granularity, const Binning& bins) {
    Assembly assembly(program, granularity, bins);
    std::map<StreamId, std::int32_t> number;
    const Copy& large = *three.copies[2];
    for (const auto& p : large.run.references) {
        number.emplace(id_of(p), static_cast<std::int32_t>(number.size()));
        assembly.add_reference(p.function, p.reference);
    }
    const Histogram none;
    const auto for_each = [&](auto&& take) {
        for (auto kind : {&Copy::reuse, &Copy::cold})
            for (const auto& [key, now] : large.*kind) {
                Histograms h{&none, &none, &now};
                for (int k = 0; k < 2; ++k)
                    if (const auto at = (three.copies[k]->*kind).find(key);
                        at != (three.copies[k]->*kind).end())
                        h[k] = &at->second;
                take(kind == &Copy::cold, key, h);
            }
    };
    std::map<StreamId, double> sums;
    for_each(
        [&](bool, const auto& key, const Histograms& h) { sums[key.second] += count_of(three, h); });
    for_each([&](bool cold, const auto& key, const Histograms& h) {
        const auto total = totals.find(key.second);
        const double sum = sums[key.second];
        const double weight = total == totals.end() || sum <= 0 ? 1 : total->second / sum;
        DistanceCounter counter(bins);
        carry_on(three, h, weight, counter);
        assembly.add_stream(number[key.second], cold ? kCold : number[key.first], counter);
    });
    return assembly.finish();
}

Histogram scaled(Histogram h, double by) {
    for (Bin& b : h.bins) {
        const auto low = static_cast<std::uint64_t>(static_cast<double>(b.low) * by);
        const auto high = static_cast<std::uint64_t>(static_cast<double>(b.high) * by);
        b.low = low;
        b.high = std::max(low + 1, high);
    }
    return h;
}

// S in bins by powers of two that all but a twentieth of the places for their edges reach; fewer where
// distances will be `further` times as wrong as these.
double safe_accuracy(const Histogram& truth, const Histogram& estimate, double further) {
    constexpr int kPlaces = 64;
    std::vector<double> all;
    for (int k = 0; k < kPlaces; ++k) {
        const double by = 16 * std::exp2(static_cast<double>(k) / kPlaces);
        all.push_back(accuracy(scaled(truth, by).rebin(Binning::log2()),
                               scaled(estimate, by).rebin(Binning::log2())));
    }
    std::sort(all.begin(), all.end());
    return all[static_cast<std::size_t>(kPlaces * 0.05 / further)];
}

}  // namespace

Result<Estimate> estimate(const Reduction& how, const Request& request, const Deadline& deadline) {
    // Some ten million accesses a second, and a third of the time: the same answer whatever else was
    // tried before.
    const auto most = static_cast<std::uint64_t>(std::clamp(request.budget * 1.5e6, 4e6, 20e6));
    double factor = 1;
    for (int tries = 1;; ++tries) {
        const auto size = shrunk(how.design, factor).first;
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
        factor *= tries < 16 ? 0.8 : 0.3;
    }
    // By blocks, with several sizes, residues spoil the proportions of small copies, and proportions
    // spoil how rows lie in blocks: both are tried.
    std::vector<std::vector<Copy>> sets;
    sets.emplace_back();
    if (request.granularity > 1 && how.design.axes.size() > 1) sets.emplace_back();
    for (std::size_t i = 0; i < sets.size(); ++i) {
        Design design = how.design;
        for (Axis& a : design.axes)
            if (i > 0) a.modulus = 1;
        for (double k = 1; sets[i].size() < 4; k *= kStep) {
            auto copy = copy_at(how, design, request, factor * k, deadline);
            if (!copy) return std::unexpected(copy.error());
            sets[i].insert(sets[i].begin(), std::move(*copy));
        }
    }
    const auto error_at = [&](const std::vector<Copy>& from, const Copy& truth, double further,
                              bool whole) {
        const auto again = carried(how.target, {{&from[0], &from[1], &from[2]}, truth.scale, whole}, {},
                                   request.granularity, kFine);
        return 1 - safe_accuracy(truth.run.profile.reuse, again.reuse, further);
    };
    Estimate e;
    Three best;
    e.accuracy = -1;
    for (const auto& copies : sets)
        for (const bool whole : {true, false}) {
            const Copy& large = copies[3];
            const double further =
                std::max(1.0, std::log(1 / large.scale) / std::log(large.scale / copies[2].scale));
            const double own = error_at(copies, large, further, whole);
            // The copy that lies in blocks as the target does must come out as well.
            const double like =
                &copies == &sets[0] ? own : error_at(copies, sets[0][3], further, whole);
            const double error = std::max({1.0 / kPieces, own * further, like});
            if (std::max(0.0, 1 - error) <= e.accuracy) continue;
            e.accuracy = std::max(0.0, 1 - error);
            e.tested = 1 - std::max(own, like);
            e.parameters = large.parameters;
            e.accesses = large.run.profile.accesses;
            best = {{&copies[1], &copies[2], &copies[3]}, 1, whole};
        }
    e.profile = carried(how.target, best, how.totals, request.granularity, request.bins);
    // What the data decides may go the one way always, or the other: as wrong as that may be, too.
    const Copy& large = *best.copies[2];
    if (data_decides({large.run.doubts.begin(), large.run.doubts.end()})) {
        double error = 0;
        for (const double probability : {0.0, 1.0}) {
            Request certain = request;
            certain.branch_probability = probability;
            const auto other = copy_at(how, how.design, certain, large.scale, deadline);
            error =
                std::max(error, other ? 1 - accuracy(other->run.profile.reuse.rebin(Binning::log2()),
                                                     large.run.profile.reuse.rebin(Binning::log2()))
                                      : 1);
        }
        e.accuracy = std::max(0.0, e.accuracy - error);
    }
    return e;
}

}  // namespace revisit::predict
