// Estimates where there are no formulas.
//
// The program is interpreted at reduced copies of the target: all sizes shrunk by the
// same factor, residues kept (by blocks and with several sizes also without), the largest of at most
// 30 million accesses, each next one 0.6 of the one before. In a stream (use → reuse) the number
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
// Where the target's own distances lie so near an edge that an error like the copy's takes them over
// it, all of them count as wrong (deriche by lines at 4096 x 2160: a quarter of all, 8191 lines away).
// By blocks the copy tested lies in them as the target does. Where the data decides, the copy is also
// interpreted with such branches always and never taken, and the difference is taken off.
#include "predict/estimate/estimate.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "core/try.h"
#include "predict/fit/evaluate.h"
#include "predict/fit/sampling.h"
#include "predict/run/assemble.h"
#include "predict/run/simulate.h"
#include "revisit/accuracy.h"

namespace revisit::predict {
namespace {

using StreamId = std::tuple<std::uint32_t, std::uint32_t, std::uint64_t>;  // of a reference, see key_of
using Streams = std::map<std::pair<StreamId, StreamId>, Histogram>;  // use, reuse; cold: use = reuse's

constexpr double kStep = 0.6;                        // from copy to copy
constexpr double kShortCopy = 2e7, kLongCopy = 3e7;  // accesses of the largest copy
constexpr int kMostTries = 3;                        // to find copies that end in time
constexpr int kPieces = 512;                         // of a stream: no share is known better than that
// Distances below 2^15 as they are: a row of 4096 doubles is reused just below the edge of a bin, and
// what is known to half a thousandth falls on either side.
const Binning kFine = Binning::log2(1 << 15);

struct Copy {
    double scale = 1;            // of the target
    std::vector<double> scales;  // of each size: residues put them a little apart
    Parameters parameters;
    Program program;
    Simulation run;
    std::vector<StreamId> streams;  // by site
    Streams reuse, cold;
    std::map<StreamId, std::string> arrays;
};

// Splits the copies' profiles into streams: by reference, or, where the compiler makes another program
// of a smaller size (a loop unrolled, a vector less), by array.
void split(std::vector<Copy>& copies, bool by_reference) {
    std::map<std::string, std::uint32_t> numbers;
    for (Copy& copy : copies) {
        for (const ReferencePlace& p : copy.run.references) {
            const auto& array = copy.program.functions[p.function].references[p.reference].array;
            const auto fresh = static_cast<std::uint32_t>(numbers.size());
            const auto number = numbers.try_emplace(array, fresh).first->second;
            const StreamId id{0, number, 0};
            copy.streams.push_back(by_reference ? StreamId{p.function, p.reference, p.context} : id);
            copy.arrays.try_emplace(copy.streams.back(), array);
        }
        for (const Pair& p : copy.run.profile.pairs)
            copy.reuse[{copy.streams[p.use - 1], copy.streams[p.reuse - 1]}].merge(p.distances);
        for (std::size_t i = 0; i < copy.streams.size(); ++i)
            copy.cold[{copy.streams[i], copy.streams[i]}].cold += copy.run.profile.sites[i].reuse.cold;
    }
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
    for (std::size_t i = 0; i < size.size(); ++i)
        copy.scales.push_back(static_cast<double>(size[i]) / static_cast<double>(design.target[i]));
    copy.parameters = how.design.at(size);
    copy.program = TRY(how.program_at(size));
    copy.run = TRY(simulate(copy.program, copy.parameters, request, kFine, deadline, 400'000'000));
    if (!copy.run.complete)
        return fail(request.source.path, "",
                    "reduced copies of the run do not end in the time allowed");
    return copy;
}

struct Continued {
    double value = 0;
    double off = 0;  // how far what two copies say is from the third, as a logarithm
};

// What grew from y[0] over y[1] to y[2] at the scales x, at a scale `at`.
Continued continued(const std::array<double, 3>& x, const std::array<double, 3>& y, double at,
                    bool whole) {
    if (y[2] <= 0 || y[1] <= 0 || y[2] == y[1] || x[2] < x[1] * 1.01) return {y[2]};
    const double exponent = std::clamp(std::log(y[2] / y[1]) / std::log(x[2] / x[1]), 0.0, 8.0);
    Continued best{y[2] * std::pow(at / x[2], exponent)};
    if (y[0] <= 0 || !whole) return best;
    best.off = std::abs(std::log(y[2] * std::pow(x[0] / x[2], exponent) / y[0]));
    for (int k = 0; k <= 6; ++k) {
        const double u = y[1] / std::pow(x[1], k - 1), v = y[2] / std::pow(x[2], k - 1);
        const double a = (v - u) / (x[2] - x[1]), b = v - a * x[2];
        const auto value = [&](double z) { return std::pow(z, k - 1) * (a * z + b); };
        if (value(x[0]) <= 0 || value(at) < 0.5 * y[2]) continue;
        const double off = std::abs(std::log(value(x[0]) / y[0]));
        if (off < best.off) best = {value(at), off};
    }
    return best;
}

// Three copies of a run, and what they say of another scale.
struct Three {
    std::array<const Copy*, 3> copies;  // the smallest first
    const Copy* wanted = nullptr;       // another copy, or the target itself
    bool whole = true;                  // exponents

    double at(const std::array<double, 3>& y) const {
        const auto by = [&](auto&& scale) {
            return continued({scale(copies[0]), scale(copies[1]), scale(copies[2])}, y,
                             wanted ? scale(wanted) : 1, whole);
        };
        auto best = by([](const Copy* c) { return c->scale; });
        // What only one size moves is continued by that one.
        for (std::size_t i = 0; i < copies[0]->scales.size() && best.off > 0; ++i)
            if (const auto one = by([i](const Copy* c) { return c->scales[i]; });
                one.off < best.off / 2)
                best = one;
        return best.value;
    }
};

using Histograms = std::array<const Histogram*, 3>;

double count_of(const Three& three, const Histograms& h) {
    return three.at({h[0]->finite(), h[1]->finite(), h[2]->finite()}) +
           three.at({h[0]->cold, h[1]->cold, h[2]->cold});
}

// Distances at even shares of what is finite, in one pass.
std::vector<double> quantiles(const Histogram& h, int pieces) {
    std::vector<double> out;
    const double count = h.finite();
    double seen = 0;
    for (const Bin& bin : h.bins) {
        if (bin.count <= 0) continue;
        for (double wanted;
             static_cast<int>(out.size()) < pieces &&
             (wanted = (static_cast<double>(out.size()) + 0.5) / pieces * count) <= seen + bin.count;)
            out.push_back(static_cast<double>(bin.low) +
                          (wanted - seen) / bin.count * static_cast<double>(bin.high - 1 - bin.low));
        seen += bin.count;
    }
    out.resize(static_cast<std::size_t>(pieces),
               h.bins.empty() ? 0 : static_cast<double>(h.bins.back().high - 1));
    return out;
}

// What no run exceeds: the blocks of its arrays.
struct Footprint {
    std::map<std::string, double> blocks;  // by array, where its size is known
    double furthest = 4e18;                // distance
};

Footprint footprint_of(const Program& program, std::uint64_t granularity) {
    std::map<std::string, std::uint32_t> element;  // the shortest access
    for (const Function& f : program.functions)
        for (const Reference& r : f.references) {
            auto& shortest = element.try_emplace(r.array, r.size).first->second;
            shortest = std::max(1u, std::min(shortest, r.size));
        }
    Footprint all;
    for (const Global& g : program.globals)
        if (const auto at = element.find(g.name); at != element.end()) {
            const double block = granularity > 1 ? static_cast<double>(granularity) : at->second;
            all.blocks[g.name] = std::ceil(static_cast<double>(g.size) / block);
        }
    return all;
}

// The arrays of which each of these copies touches every block.
std::set<std::string> arrays_touched_whole(const std::array<const Copy*, 3>& copies,
                                           std::uint64_t granularity) {
    std::map<std::string, int> times;
    for (const Copy* copy : copies) {
        std::map<std::string, double> touched;
        for (const auto& [key, h] : copy->cold) touched[copy->arrays.at(key.second)] += h.cold;
        for (const auto& [array, blocks] : footprint_of(copy->program, granularity).blocks)
            times[array] += touched[array] >= blocks - 1;  // a block of two arrays is the other's
    }
    std::set<std::string> out;
    for (const auto& [array, n] : times)
        if (n == 3) out.insert(array);
    return out;
}

// `kept`: the array's blocks over the first touches carried on. Those beyond its blocks are reuses, and
// those that lack are taken from the reuses.
void carry_on(const Three& three, const Histograms& h, double weight, double kept, double reused,
              double furthest, DistanceCounter& out) {
    const double cold = weight * three.at({h[0]->cold, h[1]->cold, h[2]->cold});
    out.add_cold(static_cast<std::uint64_t>(std::llround(cold * kept)));
    const double count = weight * three.at({h[0]->finite(), h[1]->finite(), h[2]->finite()}) * reused;
    if (kept < 1)
        out.add(static_cast<std::uint64_t>(furthest),
                static_cast<std::uint64_t>(std::llround(cold) - std::llround(cold * kept)));
    if (count <= 0) return;
    double given = 0;
    std::array<std::vector<double>, 3> d;
    for (int k = 0; k < 3; ++k) d[k] = quantiles(*h[k], kPieces);
    for (int q = 0; q < kPieces; ++q) {
        const double far = std::round(three.at({d[0][q], d[1][q], d[2][q]}));
        const double upto = count * (q + 1) / kPieces;
        const auto n = std::llround(upto) - std::llround(given);
        given = upto;
        if (n > 0)
            out.add(static_cast<std::uint64_t>(std::min(far, furthest)), static_cast<std::uint64_t>(n));
    }
}

// What three copies say of a run; references and program are the largest copy's. Where the number of
// accesses of a reference is known, its streams are made to add up to it; where the size of an array
// is known, no more of it is touched, and all of it where the copies touch all of theirs.
Profile carried(const Three& three, const Reduction::Totals& totals, Footprint limits,
                std::uint64_t granularity, const Binning& bins) {
    const Copy& large = *three.copies[2];
    Assembly assembly(large.program, granularity, bins);
    std::map<StreamId, std::int32_t> number;
    for (std::size_t i = 0; i < large.streams.size(); ++i)
        if (number.emplace(large.streams[i], static_cast<std::int32_t>(number.size())).second)
            assembly.add_reference(large.run.references[i].function, large.run.references[i].reference);
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
    const auto weight_of = [&](const StreamId& reference) {
        const auto total = totals.find(reference);
        const double sum = sums[reference];
        return total == totals.end() || sum <= 0 ? 1 : total->second / sum;
    };
    const auto array_of = [&](const StreamId& id) -> const std::string& { return large.arrays.at(id); };
    std::map<std::string, double> touched;  // by array
    struct Split {
        double first = 0, reuses = 0;
    };
    std::map<StreamId, Split> splits;  // of a reference's accesses
    for_each([&](bool, const auto& key, const Histograms& h) {
        const double weight = weight_of(key.second);
        const double first = weight * three.at({h[0]->cold, h[1]->cold, h[2]->cold});
        touched[array_of(key.second)] += first;
        splits[key.second].first += first;
        splits[key.second].reuses +=
            weight * three.at({h[0]->finite(), h[1]->finite(), h[2]->finite()});
    });
    const auto all_touched = arrays_touched_whole(three.copies, granularity);
    const auto kept_of = [&](const std::string& array) {
        const auto most = limits.blocks.find(array);
        const double blocks = touched[array];
        if (most == limits.blocks.end() || blocks <= 0) return 1.0;
        return blocks > most->second || all_touched.contains(array) ? most->second / blocks : 1.0;
    };
    if (!limits.blocks.empty()) {
        limits.furthest = -1;
        for (const auto& [array, blocks] : touched) limits.furthest += blocks * kept_of(array);
        limits.furthest = std::max(0.0, std::ceil(limits.furthest));
    }
    for_each([&](bool cold, const auto& key, const Histograms& h) {
        const Split split = splits[key.second];
        double kept = kept_of(array_of(key.second)), reused = 1;
        if (kept > 1) {
            const double lacking = std::min(split.first * (kept - 1), split.reuses);
            if (split.first > 0) kept = 1 + lacking / split.first;
            if (split.reuses > 0) reused = 1 - lacking / split.reuses;
        }
        DistanceCounter counter(bins);
        carry_on(three, h, weight_of(key.second), kept, reused, limits.furthest, counter);
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
double safe_accuracy(Histogram truth, Histogram estimate, double further) {
    constexpr int kPlaces = 64;
    constexpr std::uint64_t kPerOctave = 512;
    std::vector<double> all;
    truth = truth.rebin(Binning::log2(kPerOctave));
    estimate = estimate.rebin(Binning::log2(kPerOctave));
    for (int k = 0; k < kPlaces; ++k) {
        const double by = 16 * std::exp2(static_cast<double>(k) / kPlaces);
        all.push_back(accuracy(scaled(truth, by).rebin(Binning::log2()),
                               scaled(estimate, by).rebin(Binning::log2())));
    }
    std::sort(all.begin(), all.end());
    return all[static_cast<std::size_t>(kPlaces * 0.05 / further)];
}

// The share of the target's reuses whose bin is in doubt, twice the error found for the same part of
// the same stream of the largest copy, `further` times, taking them over an edge; less the share for
// which that would be so on average, wherever the edges: that much is in the test.
double share_near_edges(const std::vector<Copy>& copies, bool whole, double further) {
    const Three test{{&copies[0], &copies[1], &copies[2]}, &copies[3], whole};
    const Three last{{&copies[1], &copies[2], &copies[3]}, nullptr, whole};
    const Histogram none;
    double near = 0, average = 0, all = 0;
    for (auto kind : {&Copy::reuse, &Copy::cold})
        for (const auto& [key, truth] : copies[3].*kind) {
            std::array<const Histogram*, 4> h{&none, &none, &none, &truth};
            std::array<std::vector<double>, 4> d;
            for (int k = 0; k < 4; ++k) {
                const auto at = (copies[k].*kind).find(key);
                if (at != (copies[k].*kind).end()) h[k] = &at->second;
                d[k] = quantiles(*h[k], kPieces);
            }
            all += count_of(last, {h[1], h[2], h[3]});
            const double count = last.at({h[1]->finite(), h[2]->finite(), h[3]->finite()});
            for (int q = 0; q < kPieces && count > 0; ++q) {
                const double now = last.at({d[1][q], d[2][q], d[3][q]});
                if (now <= 1 || now == d[3][q]) continue;  // does not grow
                const double found = test.at({d[0][q], d[1][q], d[2][q]});
                const double wrong = found > 0 ? std::abs(std::log(found / d[3][q])) : 1;
                const double off = now * std::expm1(std::min(0.6, 2 * wrong * further));
                const double low = now - off, high = now + off;
                if (std::ilogb(std::round(low)) != std::ilogb(std::round(high)))
                    near += count / kPieces;
                average += count / kPieces * std::min(1.0, std::log2(high / low));
            }
        }
    return all > 0 ? std::max(0.0, near - average) / all : 0;
}

}  // namespace

Result<Estimate> estimate(const Reduction& how, const Request& request, const Deadline& deadline) {
    // Some ten million accesses per second, and a third of the time: the same answer whatever else
    // was tried before. Less where this machine is slower than that, and where the target is not much
    // longer: an eighth of it tells as much.
    double all = 0;
    for (const auto& [reference, accesses] : how.totals) all += accesses;
    const double enough = all > 0 ? std::max(kShortCopy, all / 8) : kLongCopy;
    const auto most =
        static_cast<std::uint64_t>(std::clamp(request.budget * 2e6, 5e5, std::min(enough, kLongCopy)));
    const auto ends_at = [&](double factor) -> Result<bool> {
        const auto size = shrunk(how.design, factor).first;
        auto program = TRY(how.program_at(size));
        RunOptions options;
        options.keep = false;
        options.max_accesses = most;
        options.deadline = deadline.part(0.1);
        options.max_steps = 200'000'000;
        options.seed = request.seed;
        return TRY(interpret(program, how.design.at(size), options)).complete;
    };
    double factor = 1;
    while (factor > 1e-6 && !TRY(ends_at(factor))) factor /= 2;
    for (int k = 0; k < 2 && factor < 1 && TRY(ends_at(factor * 1.25)); ++k) factor *= 1.25;
    // By blocks, with several sizes, residues spoil the proportions of small copies, and proportions
    // spoil how rows lie in blocks: both are tried.
    std::vector<std::vector<Copy>> sets;
    sets.emplace_back();
    if (request.granularity > 1 && how.design.axes.size() > 1) sets.emplace_back();
    for (std::size_t i = 0; i < sets.size(); ++i) {
        Design design = how.design;
        for (Axis& a : design.axes)
            if (i > 0) a.modulus = 1;
        int smaller = 0;
        for (double k = 1; sets[i].size() < 4; k *= kStep) {
            const bool first = sets[i].empty();
            // The largest copy takes as long as the others together, and half as large a one must fit
            // in what is left.
            const double seconds = deadline.left() * 0.35 / static_cast<double>(sets.size() - i);
            auto copy = copy_at(how, design, request, factor * k,
                                first && smaller < kMostTries ? Deadline(seconds) : deadline);
            if (!copy && first && ++smaller <= kMostTries) {
                factor /= 2;
                k = 1 / kStep;
                continue;
            }
            sets[i].insert(sets[i].begin(), TRY(std::move(copy)));
        }
    }
    bool alike = true;
    for (const auto& copies : sets)
        for (const Copy& c : copies) alike &= same_shape(c.program, how.target);
    for (auto& copies : sets) split(copies, alike);
    const auto again_at = [&](const std::vector<Copy>& from, const Copy& truth, bool whole) {
        return carried({{&from[0], &from[1], &from[2]}, &truth, whole}, {}, {}, request.granularity,
                       kFine)
            .reuse;
    };
    Estimate e;
    Three best;
    e.accuracy = -1;
    for (const auto& copies : sets)
        for (const bool whole : {true, false}) {
            const Copy& large = copies[3];
            const double further =
                std::max(1.0, std::log(1 / large.scale) / std::log(large.scale / copies[2].scale));
            const auto& truth = large.run.profile.reuse;
            const auto again = again_at(copies, large, whole);
            const double own = 1 - safe_accuracy(truth, again, further);
            // The copy that lies in blocks as the target does must come out as well.
            const double like = &copies == &sets[0]
                                    ? own
                                    : 1 - safe_accuracy(sets[0][3].run.profile.reuse,
                                                        again_at(copies, sets[0][3], whole), further);
            const Three three{{&copies[1], &copies[2], &copies[3]}, nullptr, whole};
            const double near = share_near_edges(copies, whole, further);
            const double error = std::max({1.0 / kPieces, own * further, like}) + near;
            if (std::max(0.0, 1 - error) <= e.accuracy) continue;
            e.accuracy = std::max(0.0, 1 - error);
            e.tested = 1 - std::max(own, like);
            e.parameters = large.parameters;
            e.accesses = large.run.profile.accesses;
            best = three;
        }
    e.profile =
        carried(best, alike ? how.totals : Reduction::Totals{},
                footprint_of(how.target, request.granularity), request.granularity, request.bins);
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
