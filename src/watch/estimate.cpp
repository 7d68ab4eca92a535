#include "watch/estimate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "engines/time_profile.h"
#include "models/time_phases.h"

namespace revisit::watch {
namespace {

using Outcome = Sample::Outcome;

// A histogram of weighted counts, with the 95 % half-width that weights imply.
class WeightedHistogram {
 public:
    explicit WeightedHistogram(const Binning& bins) : bins_(bins) {}

    void add(std::uint64_t distance, double weight) {
        Cell& cell = cells_[bins_.low_edge(distance)];
        cell.sum += weight;
        cell.squares += weight * weight;
    }
    void add_cold(double weight) {
        cold_.sum += weight;
        cold_.squares += weight * weight;
    }
    Histogram histogram() const {
        Histogram out;
        out.cold = cold_.sum;
        out.cold_error = 1.96 * std::sqrt(cold_.squares);
        for (const auto& [low, cell] : cells_)
            out.bins.push_back({low, bins_.high_edge(low), cell.sum, 1.96 * std::sqrt(cell.squares)});
        return out;
    }

 private:
    struct Cell {
        double sum = 0, squares = 0;
    };
    Binning bins_;
    std::map<std::uint64_t, Cell> cells_;
    Cell cold_;
};

// A pair that was seen, or an access that never came back.
struct Seen {
    const Sample* sample;
    double weight = 0;
    double moment = 0;  // of the reuse, in accesses of its thread
    double time = 0;    // distance
    double reuse = 0;
};

bool is_open(Outcome outcome) {
    return outcome != Outcome::unsearched && outcome != Outcome::ahead;
}

// Weights of the samples as the thread made them: the accesses each stands for.
std::vector<double> stands_for(const AccessClock::ThreadClock& clock) {
    std::vector<double> weights(clock.accesses.size());
    for (std::size_t i = 0; i < weights.size(); i++)
        weights[i] = clock.accesses[i] - (i == 0 ? 0 : clock.accesses[i - 1]);
    return weights;
}

void weigh_inverse(const ThreadSamples& thread, const std::vector<double>& plain,
                   std::vector<double>& weights) {
    double open = 0, estimate = 0;
    for (std::size_t i = 0; i < plain.size(); i++) {
        const Sample& sample = thread.samples[i];
        if (sample.outcome == Outcome::ahead) weights[i] = plain[i];
        if (!is_open(sample.outcome)) continue;
        open += plain[i];
        if (sample.outcome == Outcome::passed_over) continue;
        weights[i] = plain[i] / std::max(1e-9, sample.chance_watched * sample.chance_kept);
        estimate += weights[i];
    }
    // What all open samples stand for is known; only how it divides is estimated.
    if (estimate > 0)
        for (std::size_t i = 0; i < plain.size(); i++)
            if (is_open(thread.samples[i].outcome)) weights[i] *= open / estimate;
}

void weigh_proportional(const ThreadSamples& thread, const std::vector<double>& plain,
                        const Origins& origins, std::vector<double>& weights) {
    struct Moment {
        std::uint64_t time;
        std::size_t sample;
        bool is_reuse;
    };
    std::vector<Moment> moments;
    for (std::size_t i = 0; i < plain.size(); i++) {
        const Sample& sample = thread.samples[i];
        if (sample.outcome == Outcome::unsearched) continue;
        moments.push_back({sample.time, i, false});
        if (sample.outcome == Outcome::ahead) moments.push_back({sample.time, i, true});
        if (sample.outcome == Outcome::trapped || sample.outcome == Outcome::never)
            moments.push_back({sample.trap_time, i, true});
    }
    std::ranges::stable_sort(moments, {}, &Moment::time);
    std::map<std::pair<std::uint32_t, std::uint32_t>, double> waiting;  // by place and context of use
    for (const Moment& moment : moments) {
        const Label& use = origins.labels[thread.samples[moment.sample].label];
        double& sum = waiting[{use.place, use.context}];
        if (!moment.is_reuse)
            sum += plain[moment.sample];
        else
            weights[moment.sample] = std::exchange(sum, 0);
    }
}

// The run cut into phases of equal length, for the model.
PhaseModel model_of(const std::vector<Seen>& seen, double length, const Binning& bins) {
    std::size_t count = std::clamp<std::size_t>(seen.size() / 50, 1, 64);
    std::vector<WeightedHistogram> time(count, WeightedHistogram(bins));
    for (const Seen& one : seen) {
        if (one.sample->outcome == Outcome::never) continue;
        auto phase = static_cast<std::size_t>(one.moment / length * static_cast<double>(count));
        time[std::min(phase, count - 1)].add(static_cast<std::uint64_t>(std::max(1.0, one.time)),
                                             one.weight);
    }
    std::vector<TimePhase> phases;
    for (std::size_t i = 0; i < count; i++) {
        double share = length / static_cast<double>(count);
        phases.push_back(
            {share * static_cast<double>(i), share * static_cast<double>(i + 1), time[i].histogram()});
    }
    return PhaseModel(phases);
}

std::vector<Seen> see(const ThreadSamples& thread, const AccessClock::ThreadClock& clock,
                      const Origins& origins, const EstimateOptions& options) {
    std::vector<double> plain = stands_for(clock), weights(plain.size());
    if (options.weights == Weights::inverse)
        weigh_inverse(thread, plain, weights);
    else if (options.weights == Weights::proportional)
        weigh_proportional(thread, plain, origins, weights);
    else
        for (std::size_t i = 0; i < plain.size(); i++) weights[i] = plain[i];

    std::vector<Seen> seen;
    double sum = 0;
    for (std::size_t i = 0; i < plain.size(); i++) {
        const Sample& sample = thread.samples[i];
        if (sample.outcome == Outcome::unsearched || sample.outcome == Outcome::passed_over) continue;
        Seen one{&sample, weights[i], clock.accesses[i], 0, 0};
        if (sample.outcome == Outcome::ahead) {
            one.time = static_cast<double>(sample.distance);
            one.reuse = static_cast<double>(sample.distinct);
        } else if (sample.outcome == Outcome::trapped) {
            one.moment = clock.at(static_cast<double>(sample.trap_time));
            one.time =
                std::max(1.0, std::round(one.moment - clock.accesses[i] - sample.accesses_to_use));
        }
        sum += one.weight;
        seen.push_back(one);
    }
    double length = clock.accesses.empty() ? 0 : clock.accesses.back();
    if (sum <= 0 || length <= 0) return {};
    for (Seen& one : seen) one.weight *= length / sum;  // for samples without an answer

    PhaseModel model = model_of(seen, length, model_time_bins(options.bins));
    for (Seen& one : seen)
        if (one.sample->outcome == Outcome::trapped)
            one.reuse = std::round(std::min(one.time - 1, model.distance(one.moment, one.time)));
    return seen;
}

class Parts {  // sites and pairs by label
 public:
    explicit Parts(const Binning& bins) : bins_(bins) {}

    void add(const Seen& one, const EstimateOptions& options) {
        const Sample& sample = *one.sample;
        bool cold = sample.outcome == Outcome::never;
        auto distance = static_cast<std::uint64_t>(one.reuse);
        if (sample.write) writes_[sample.label] = true;
        if (options.sites) {
            auto [site, is_new] = sites_.try_emplace(cold ? sample.label : sample.reuse_label, bins_);
            if (cold)
                site->second.add_cold(one.weight);
            else
                site->second.add(distance, one.weight);
        }
        if (!options.pairs || cold) return;
        auto [pair, is_new] = pairs_.try_emplace({sample.label, sample.reuse_label}, bins_);
        pair->second.add(distance, one.weight);
    }

    void put_into(Profile& profile, const Origins& origins) const {
        std::map<std::uint32_t, bool> writing_places;
        for (const auto& [label, writes] : writes_)
            writing_places[origins.labels[label].place] = writes;
        for (const auto& [label, histogram] : sites_) {
            Site site;
            site.id = label;
            site.reuse = histogram.histogram();
            site.accesses = site.reuse.total();
            if (writing_places.contains(origins.labels[label].place)) site.writes = site.accesses;
            profile.sites.push_back(std::move(site));
        }
        for (const auto& [labels, histogram] : pairs_) {
            Pair pair;
            pair.use = labels.first;
            pair.reuse = labels.second;
            pair.distances = histogram.histogram();
            pair.count = pair.distances.total();
            profile.pairs.push_back(std::move(pair));
        }
    }

 private:
    Binning bins_;
    std::map<std::uint32_t, WeightedHistogram> sites_;
    std::map<std::pair<std::uint32_t, std::uint32_t>, WeightedHistogram> pairs_;
    std::map<std::uint32_t, bool> writes_;
};

}  // namespace

Profile estimate(const Samples& samples, const Origins& origins, const EstimateOptions& options,
                 const FunctionCounts* counts) {
    AccessClock clock(samples, origins, counts);
    WeightedHistogram reuse(options.bins), time(options.bins);
    Parts parts(options.bins);
    Profile profile;
    profile.method = "watch";
    profile.granularity = options.granularity;
    std::size_t all = 0, used = 0, addressed = 0, ahead = 0, trapped = 0, never = 0;
    std::uint64_t checked = 0, missed = 0, recording = 0, running = 0;
    for (const auto& [number, thread] : samples.threads) {
        std::vector<Seen> seen = see(thread, clock.thread(number), origins, options);
        WeightedHistogram own(options.bins);
        for (const Seen& one : seen) {
            if (one.sample->outcome == Outcome::never) {
                for (WeightedHistogram* to : {&reuse, &time, &own}) to->add_cold(one.weight);
            } else {
                reuse.add(static_cast<std::uint64_t>(one.reuse), one.weight);
                own.add(static_cast<std::uint64_t>(one.reuse), one.weight);
                time.add(static_cast<std::uint64_t>(one.time), one.weight);
            }
            parts.add(one, options);
        }
        if (samples.threads.size() > 1) {
            ThreadProfile part;
            part.id = number;
            part.reuse = own.histogram();
            part.accesses = part.reuse.total();
            profile.threads.push_back(std::move(part));
        }
        for (const Sample& sample : thread.samples) {
            addressed += sample.has_address;
            ahead += sample.outcome == Outcome::ahead;
            trapped += sample.outcome == Outcome::trapped;
            never += sample.outcome == Outcome::never;
        }
        all += thread.samples.size();
        used += seen.size();
        checked += thread.checked;
        missed += thread.missed;
        recording += thread.recording;
        running += thread.end;
    }
    std::ranges::sort(profile.threads, {}, &ThreadProfile::id);
    profile.reuse = reuse.histogram();
    profile.time = time.histogram();
    profile.accesses = profile.reuse.total();
    profile.distinct = std::round(profile.reuse.cold);
    profile.sampled = Sampling{all > 0 ? profile.accesses / static_cast<double>(all) : 0,
                               static_cast<double>(all), 0};
    profile.clock = clock.description();
    parts.put_into(profile, origins);
    profile.notes.push_back(fmt::format(
        "watch: {} samples, {} with an address; reuse {} times ahead, {} times by watchpoint, {} never",
        all, addressed, ahead, trapped, never));
    if (checked > 0)
        profile.notes.push_back(fmt::format(
            "watch: {} of {} accesses foreseen came at their instruction", checked - missed, checked));
    if (running > 0)
        profile.notes.push_back(
            fmt::format("watch: sampling took {:.1f} % of the program's time",
                        100.0 * static_cast<double>(recording) / static_cast<double>(running)));
    if (used < 100)
        profile.notes.push_back("watch: fewer than 100 samples: use --method exact, or a longer run");
    if (samples.threads.size() > 1)
        profile.notes.push_back(
            "watch: distances count the accesses of the thread itself, and reuses by the same thread");
    return profile;
}

}  // namespace revisit::watch
