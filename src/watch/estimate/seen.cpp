#include "watch/estimate/seen.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "engines/time_profile.h"
#include "models/footprint_model.h"
#include "watch/estimate/memoryless.h"

namespace revisit::watch {
namespace {

using Watched = Sample::Watched;

constexpr unsigned kParts = 8;  // of a distance that is not known exactly

std::vector<SeenThread::Mass> masses_of(const ThreadSamples& thread,
                                        const AccessClock::ThreadClock& clock) {
    std::vector<SeenThread::Mass> masses;
    for (std::size_t i = 0; i < thread.samples.size(); i++) {
        const Sample& sample = thread.samples[i];
        double all = i < clock.made.size() ? clock.made[i]
                                           : clock.accesses[i] - (i == 0 ? 0 : clock.accesses[i - 1]);
        double open = sample.uses ? all * sample.open / sample.uses : 0;
        masses.push_back({sample.uses ? all - open : 0, open});
    }
    return masses;
}

// Numbers between 0 and 1 that fill it evenly, however many.
double spread_evenly(unsigned number) {
    constexpr double kGolden = 0.6180339887498949;
    return std::fmod(0.5 + kGolden * number, 1.0);
}

double sum_of(const std::vector<Seen>& pairs, bool far) {
    double sum = 0;
    for (const Seen& one : pairs)
        if (one.far == far) sum += one.weight;
    return sum;
}

// Efron: a weight that is lost goes to all that waited longer, in proportion to theirs. Those that
// waited longer than any that came back keep theirs: they do not come back.
void redistribute(std::vector<Waited>& waited) {
    std::ranges::sort(waited, [](const Waited& a, const Waited& b) {
        return a.age != b.age ? a.age < b.age : a.lost < b.lost;
    });
    double longer = 0, factor = 1, longest = 0;
    for (const Waited& one : waited) {
        longer += one.weight;
        if (!one.lost) longest = one.age;
    }
    for (Waited& one : waited) {
        longer = std::max(0.0, longer - one.weight);
        double own = one.weight;
        one.weight *= factor;
        if (!one.lost || one.age > longest || longer <= 1e-9 * own) continue;
        factor *= 1 + own / longer;
        one.weight = 0;
    }
}

// Takes those of memoryless sites out of `waited`, with weights and times as their law has them.
void spread_memoryless(std::vector<Waited>& waited, std::vector<Seen>& pairs) {
    std::map<std::uint64_t, std::vector<Waited>> by_site;
    for (const Waited& one : waited)
        if (one.site != 0) by_site[one.site].push_back(one);
    for (auto& [site, all] : by_site) {
        std::optional<double> rate = memoryless_rate(all);
        if (!rate) continue;
        double whole = 0, came = 0, below = 0;
        for (const Waited& one : all) {
            pairs[one.pair].weight = 0;
            whole += one.weight;
            if (!one.lost) came += one.weight;
        }
        std::ranges::sort(all, {}, &Waited::time);
        double active = 0, turns = 0, between = 0;
        for (const Waited& one : all) {
            active += one.time;
            turns += one.times;
            between += one.times * one.between;
        }
        unsigned number = 0;
        for (const Waited& one : all) {
            if (one.lost) continue;
            Seen& pair = pairs[one.pair];
            double window = pair.corrected - one.time, share = one.weight / came;
            pair.weight = whole * share;
            pair.time = times_between(*rate, below, below + share, kParts);
            pair.between.clear();
            for (double& time : pair.time) {
                const double others =
                    turns > 0
                        ? between / turns * std::floor(turns / active * time + spread_evenly(number++))
                        : 0;
                pair.between.push_back(others);
                time = std::max(1.0, std::round(time + window + others));
            }
            below += share;
        }
        std::erase_if(waited, [site](const Waited& one) { return one.site == site; });
    }
}

// Pairs that lost their watchpoints are among them, and have no weight afterwards.
void weigh_inverse(const SeenThread& seen, const ThreadSamples& thread, double runs,
                   std::vector<Seen>& pairs) {
    double all_back = 0, counted = 0, waiting = 0;
    for (std::size_t i = 0; i < seen.masses.size(); i++) {
        all_back += seen.masses[i].back;
        (thread.samples[i].watched == Watched::foreseen ? counted : waiting) += seen.masses[i].open;
    }
    double near = 0, lasting = 0, far_counted = 0;
    std::vector<Waited> waited;
    for (std::size_t k = 0; k < pairs.size(); k++) {
        Seen& one = pairs[k];
        const auto& mass = seen.masses[static_cast<std::size_t>(one.sample - thread.samples.data())];
        if (!one.far) {
            near += one.weight = mass.back + mass.open;
        } else if (one.sample->watched == Watched::foreseen) {
            far_counted += one.weight = mass.open;
        } else {
            // Where it is known what was lost when, the end of the run is one more way to lose it.
            bool lost = seen.knows_losses && one.never;
            double kept = seen.knows_losses ? 1 : one.sample->chance_kept;
            double age = one.never && !lost ? std::numeric_limits<double>::infinity() : one.uncorrected;
            double weight = mass.open / std::max(1e-9, one.sample->chance_watched * kept);
            waited.push_back({age, weight, lost, k, seen.knows_losses ? one.sample->use_pc : 0,
                              std::max(1.0, one.corrected - one.sample->uses),
                              one.turns ? one.turns->between : 0, one.turns ? one.turns->times : 0});
        }
    }
    spread_memoryless(waited, pairs);
    redistribute(waited);
    for (const Waited& one : waited) pairs[one.pair].weight = one.weight;
    for (const Seen& one : pairs)
        if (one.far && one.sample->watched != Watched::foreseen) lasting += one.weight;
    for (Seen& one : pairs) {
        bool was_counted = one.sample->watched == Watched::foreseen;
        if (!one.far)
            one.weight *= all_back / std::max(1e-9, near);
        else if (was_counted)
            one.weight *= counted / std::max(1e-9, far_counted);
        else
            one.weight *= waiting / std::max(1e-9, lasting);
    }
    std::erase_if(pairs, [](const Seen& one) { return one.weight <= 0; });
    if (!seen.knows_losses) return;
    // Of reuses that take a tenth of the run, those begun in its last tenth are not in it.
    for (std::size_t k = 0, count = pairs.size(); k < count; k++) {
        Seen& one = pairs[k];
        if (!one.far || one.never || one.sample->watched == Watched::foreseen) continue;
        double cut = std::min(1.0, runs * one.time[one.time.size() / 2] / std::max(1.0, seen.length));
        Seen cold;
        cold.sample = one.sample;
        cold.far = cold.never = true;
        cold.exact = false;
        cold.weight = one.weight * cut;
        one.weight *= 1 - cut;
        pairs.push_back(std::move(cold));
    }
}

// As many as there were samples of the use's context since a reuse was last seen from there.
void weigh_proportional(const SeenThread& seen, const ThreadSamples& thread, const Origins& origins,
                        std::vector<Seen>& pairs) {
    struct Moment {
        std::uint64_t time;
        std::uint32_t label;
        double samples;
        Seen* reuse;
    };
    std::vector<Moment> moments;
    for (std::size_t i = 0; i < thread.samples.size(); i++)
        if (const Sample& sample = thread.samples[i]; sample.uses)
            moments.push_back(
                {sample.time, sample.label, seen.masses[i].back + seen.masses[i].open, nullptr});
    for (Seen& one : pairs)
        moments.push_back(
            {one.far ? one.sample->trap_time : one.sample->time, one.use_label(), 0, &one});
    std::ranges::stable_sort(moments, {}, &Moment::time);
    std::map<std::pair<std::uint32_t, std::uint32_t>, double> waiting;  // by place and context of use
    for (const Moment& moment : moments) {
        const Label& use = origins.labels[moment.label];
        double& sum = waiting[{use.place, use.context}];
        sum += moment.samples;
        if (moment.reuse) moment.reuse->weight = std::exchange(sum, 0);
    }
}

// What a distance may be that the clock gave: it is off by as much as the clock is, and where all long
// reuses are of one length, they would all be counted over the edge of a bin, or none. The middles of
// eight parts of a log-normal distribution.
std::vector<double> may_be(double time, double uncertainty) {
    constexpr double kMiddle[kParts] = {-1.534, -0.887, -0.489, -0.157, 0.157, 0.489, 0.887, 1.534};
    constexpr double kMost = 0.5;
    std::vector<double> out;
    for (double middle : kMiddle)
        out.push_back(
            std::max(1.0, std::round(time * std::exp(middle * std::min(kMost, uncertainty)))));
    return out;
}

constexpr double kOfCounts = 0.05;  // registers move nearly evenly (machine/progress.h)

Seen see_far(const Sample& sample, std::size_t number, const AccessClock::ThreadClock& clock,
             double scale) {
    const double began = clock.accesses[number];
    Seen one;
    one.sample = &sample;
    one.far = true;
    one.exact = sample.watched == Watched::foreseen;
    one.never = sample.watched == Watched::never || sample.watched == Watched::replaced;
    if (one.exact) {
        one.time = {static_cast<double>(sample.far_distance)};
        one.moment = began + one.time[0];
        one.uncorrected = one.time[0];
        return one;
    }
    const auto to_use = static_cast<double>(sample.far_accesses);
    const auto trapped = static_cast<double>(sample.trap_time);
    const auto counted = static_cast<double>(sample.far_counted);
    const bool is_counted = counted > to_use;
    const auto turns = is_counted ? std::nullopt : clock.by_turns(number, trapped, to_use);
    double time = std::max(1.0, std::round(is_counted ? counted - to_use
                                           : turns    ? turns->all()
                                                      : clock.since_use(number, trapped, to_use)));
    one.moment = began + to_use + time;
    double nanoseconds = static_cast<double>(sample.trap_time) - static_cast<double>(sample.time);
    one.uncorrected = time;
    // An open use does not come back within its window, whatever the other words say.
    const auto window = static_cast<double>(sample.uses);
    const double in_loop = turns ? turns->in_loop : time;
    double corrected = std::max(std::min(in_loop, window), in_loop * scale);
    one.corrected = corrected;
    one.time = may_be(corrected, is_counted ? kOfCounts : clock.uncertainty(nanoseconds));
    // Of the visits that came before the one that was seen some were in the same turn.
    if (turns) {
        one.turns = turns;
        one.turns->times *= scale;
        for (unsigned i = 0; i < one.time.size(); i++) {
            one.between.push_back(turns->between * std::floor(one.turns->times + spread_evenly(i)));
            one.time[i] += std::round(one.between.back());
        }
        corrected += one.turns->times * turns->between;
    }
    one.moment -= time - corrected;
    return one;
}

// All time distances, and how open windows are, for the model.
FootprintModel model_of(const SeenThread& seen, const ThreadSamples& thread,
                        const AccessClock::ThreadClock& clock, const Binning& bins) {
    std::map<std::uint64_t, double> counts;
    Histogram time;
    for (const SeenWindow& window : seen.windows)
        for (auto [value, count] : window.time) counts[bins.low_edge(value)] += window.weight * count;
    for (const Seen& one : seen.pairs) {
        if (one.cold())
            time.cold += one.weight;
        else if (one.far || seen.windows.empty())
            for (double value : one.time)
                counts[bins.low_edge(static_cast<std::uint64_t>(value))] +=
                    one.weight / static_cast<double>(one.time.size());
    }
    for (auto [low, count] : counts) time.bins.push_back({low, bins.high_edge(low), count});
    std::uint16_t uses = 0;
    for (const Sample& sample : thread.samples) uses = std::max(uses, sample.uses);
    // Of windows that were not cut short. Those of code that touches memory at random are half as long,
    // for the pages that are read: without them lookups in a hash table of 16 MiB, two thirds of a run,
    // had the share of the phase before, and distances of half the length.
    constexpr unsigned kShortest = 8;
    std::vector<OpenShare> shares;
    for (std::size_t i = 0; i < thread.samples.size(); i++)
        if (const Sample& sample = thread.samples[i]; uses > 1 && kShortest * sample.uses >= uses)
            shares.push_back({clock.accesses[i], sample.open_share()});
    return {time, shares, 2.0 * uses, seen.length};
}

}  // namespace

SeenThread see(const Samples& samples, const ThreadSamples& thread,
               const AccessClock::ThreadClock& clock, const UnwatchedWords& unwatched,
               const Origins& origins, const EstimateOptions& options) {
    SeenThread seen;
    seen.masses = masses_of(thread, clock);
    seen.length = clock.accesses.empty() ? 0 : clock.accesses.back();
    seen.clock_error = clock.error;
    seen.first = thread.samples.data();
    seen.knows_losses =
        options.weights == Weights::inverse &&
        std::ranges::all_of(thread.samples, [](const Sample& sample) {
            return sample.watched != Watched::replaced || sample.trap_time >= sample.time;
        });
    double window_mass = 0, all_back = 0;
    for (std::size_t i = 0; i < thread.samples.size(); i++) {
        const Sample& sample = thread.samples[i];
        const SeenThread::Mass& mass = seen.masses[i];
        all_back += mass.back;
        if (sample.ahead) {
            Seen one;
            one.sample = &sample;
            one.moment = clock.accesses[i];
            one.time = {static_cast<double>(sample.distance)};
            one.reuse = {static_cast<double>(sample.distinct)};
            one.weight = mass.back + mass.open;
            seen.pairs.push_back(std::move(one));
        }
        if (sample.is_told() || (seen.knows_losses && sample.watched == Watched::replaced)) {
            seen.pairs.push_back(see_far(sample, i, clock, unwatched.scale(sample)));
            seen.pairs.back().weight = mass.back + mass.open;
        }
        if (options.weights != Weights::inverse || sample.time_entries == 0) continue;
        auto entries = std::span(thread.entries).subspan(sample.first_entry);
        seen.windows.push_back({i, entries.first(sample.time_entries),
                                entries.subspan(sample.time_entries, sample.reuse_entries),
                                (mass.back + mass.open) / sample.uses});
        window_mass += mass.back;
    }
    if (options.weights == Weights::inverse)
        weigh_inverse(seen, thread, options.runs, seen.pairs);
    else if (options.weights == Weights::proportional)
        weigh_proportional(seen, thread, origins, seen.pairs);
    // For windows that were not kept, and samples without an answer.
    for (SeenWindow& window : seen.windows) window.weight *= all_back / std::max(1e-9, window_mass);
    double near = seen.windows.empty() ? sum_of(seen.pairs, false) : all_back;
    double sum = near + sum_of(seen.pairs, true);
    if (sum <= 0 || seen.length <= 0) return {};
    for (SeenWindow& window : seen.windows) window.weight *= seen.length / sum;
    for (Seen& one : seen.pairs) one.weight *= seen.length / sum;
    seen.back = near * seen.length / sum;

    FootprintModel model = model_of(seen, thread, clock, model_time_bins(options.bins));
    const double touchable = samples.touchable.blocks(options.granularity);
    const double most = touchable > 0 ? touchable : seen.length;
    auto distance = [&](double moment, double time) {
        return std::round(std::min({time - 1, most, model.distance(moment, time)}));
    };
    double all = 0, open = 0;
    for (const SeenThread::Mass& mass : seen.masses) {
        all += mass.back + mass.open;
        open += mass.open;
    }
    // A reuse within its loop's turn saw what that loop opens.
    auto distance_by_turns = [&](const Seen& one, std::size_t i) {
        const double time = one.time[i], others = std::min(time, one.between[i]);
        const double opened =
            ((time - others) * one.turns->open + others * one.turns->open_between) / time;
        return std::round(
            std::min({time - 1, most, model.distance_where(opened * all / std::max(1.0, open), time)}));
    };
    for (Seen& one : seen.pairs) {
        if (!one.far) continue;
        if (one.cold()) {
            one.uncorrected = distance(one.moment, one.uncorrected);
            continue;
        }
        for (std::size_t i = 0; i < one.time.size(); i++)
            one.reuse.push_back(one.turns ? distance_by_turns(one, i)
                                          : distance(one.moment, one.time[i]));
        double later = one.uncorrected - one.time[one.time.size() / 2];
        one.uncorrected = distance(one.moment + std::max(0.0, later), one.uncorrected);
    }
    return seen;
}

}  // namespace revisit::watch
