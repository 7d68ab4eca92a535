#include "watch/estimate/estimate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <span>

#include "engines/time_profile.h"
#include "models/time_phases.h"

namespace revisit::watch {
namespace {

using Watched = Sample::Watched;

// A histogram of weighted counts, with the 95 % half-width that weights imply.
class WeightedHistogram {
 public:
    explicit WeightedHistogram(const Binning& bins) : bins_(bins) {}

    void add(std::uint64_t distance, double weight) {
        Cell& cell = cells_[bins_.low_edge(distance)];
        cell.sum += weight;
        cell.squares += weight * weight;
    }
    // One observation whose distance is not known exactly: any of these, alike.
    void add(std::span<const double> distances, double weight) {
        std::map<std::uint64_t, double> sums;
        for (double one : distances)
            sums[bins_.low_edge(static_cast<std::uint64_t>(one))] +=
                weight / static_cast<double>(distances.size());
        for (auto [low, sum] : sums) add(low, sum);
    }
    // What one sample tells: errors within it go together.
    void add(std::span<const ThreadSamples::Entry> entries, double weight) {
        std::map<std::uint64_t, double> sums;
        for (auto [value, count] : entries) sums[bins_.low_edge(value)] += weight * count;
        for (auto [low, sum] : sums) add(low, sum);
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
    bool far = false;  // by a watchpoint
    double weight = 0;
    double moment = 0;          // of the reuse, in accesses of its thread
    std::vector<double> time;   // distance: one, or several that it may be
    std::vector<double> reuse;  // … as many

    bool cold() const { return far && sample->watched == Watched::never; }
    std::uint32_t use_label() const { return far ? sample->far_label : sample->label; }
    std::uint32_t reuse_label() const { return far ? sample->far_reuse_label : sample->reuse_label; }
};

// All uses of a sample's window that came back.
struct SeenWindow {
    std::span<const ThreadSamples::Entry> time, reuse;
    double weight = 0;  // of one use
    double moment = 0;
};

struct SeenThread {
    std::vector<Seen> pairs;
    std::vector<SeenWindow> windows;  // empty where the pairs stand for all
};

struct Masses {  // accesses that a sample stands for, by what became of them
    std::vector<double> back, open;
    double all_back = 0, all_open = 0;
};

Masses masses_of(const ThreadSamples& thread, const AccessClock::ThreadClock& clock) {
    Masses masses;
    for (std::size_t i = 0; i < thread.samples.size(); i++) {
        const Sample& sample = thread.samples[i];
        double all = clock.accesses[i] - (i == 0 ? 0 : clock.accesses[i - 1]);
        double open = sample.uses ? all * sample.open / sample.uses : 0;
        masses.open.push_back(open);
        masses.back.push_back(sample.uses ? all - open : 0);
        masses.all_open += masses.open.back();
        masses.all_back += masses.back.back();
    }
    return masses;
}

double sum_of(const std::vector<Seen>& pairs, bool far) {
    double sum = 0;
    for (const Seen& one : pairs)
        if (one.far == far) sum += one.weight;
    return sum;
}

// One over the chance of being seen. What all short and all open uses stand for is known from the
// windows; only how it divides is estimated.
void weigh_inverse(const Masses& masses, const ThreadSamples& thread, std::vector<Seen>& pairs) {
    for (Seen& one : pairs) {
        auto i = static_cast<std::size_t>(one.sample - thread.samples.data());
        one.weight = one.far ? masses.open[i] /
                                   std::max(1e-9, one.sample->chance_watched * one.sample->chance_kept)
                             : masses.back[i] + masses.open[i];
    }
    double near = sum_of(pairs, false), far = sum_of(pairs, true);
    for (Seen& one : pairs)
        one.weight *=
            one.far ? masses.all_open / std::max(1e-9, far) : masses.all_back / std::max(1e-9, near);
}

// As many as there were samples of the use's context since a reuse was last seen from there.
void weigh_proportional(const Masses& masses, const ThreadSamples& thread, const Origins& origins,
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
            moments.push_back({sample.time, sample.label, masses.back[i] + masses.open[i], nullptr});
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

// The run cut into phases of equal length, for the model.
PhaseModel model_of(const SeenThread& seen, double length, const Binning& bins) {
    std::size_t told = seen.windows.empty() ? seen.pairs.size() : seen.windows.size();
    std::size_t count = std::clamp<std::size_t>(told / 50, 1, 64);
    std::vector<WeightedHistogram> time(count, WeightedHistogram(bins));
    auto at = [&](double moment) -> WeightedHistogram& {
        auto phase = static_cast<std::size_t>(moment / length * static_cast<double>(count));
        return time[std::min(phase, count - 1)];
    };
    for (const SeenWindow& window : seen.windows) at(window.moment).add(window.time, window.weight);
    for (const Seen& one : seen.pairs)
        if (!one.cold() && (one.far || seen.windows.empty())) at(one.moment).add(one.time, one.weight);
    std::vector<TimePhase> phases;
    for (std::size_t i = 0; i < count; i++) {
        double share = length / static_cast<double>(count);
        phases.push_back(
            {share * static_cast<double>(i), share * static_cast<double>(i + 1), time[i].histogram()});
    }
    return PhaseModel(phases);
}

// What a distance may be that the clock told: it is off by as much as the clock is, and where all long
// reuses are of one length, they would all be counted over the edge of a bin, or none. The middles of
// eight parts of a log-normal distribution.
std::vector<double> may_be(double time, double uncertainty) {
    constexpr double kMiddle[] = {-1.534, -0.887, -0.489, -0.157, 0.157, 0.489, 0.887, 1.534};
    constexpr double kMost = 0.5;
    std::vector<double> out;
    for (double middle : kMiddle)
        out.push_back(
            std::max(1.0, std::round(time * std::exp(middle * std::min(kMost, uncertainty)))));
    return out;
}

SeenThread see(const ThreadSamples& thread, const AccessClock::ThreadClock& clock,
               const Origins& origins, const EstimateOptions& options) {
    SeenThread seen;
    Masses masses = masses_of(thread, clock);
    double window_mass = 0;
    for (std::size_t i = 0; i < thread.samples.size(); i++) {
        const Sample& sample = thread.samples[i];
        if (sample.ahead)
            seen.pairs.push_back({&sample,
                                  false,
                                  masses.back[i] + masses.open[i],
                                  clock.accesses[i],
                                  {static_cast<double>(sample.distance)},
                                  {static_cast<double>(sample.distinct)}});
        if (sample.is_told()) {
            double moment = clock.at(static_cast<double>(sample.trap_time));
            double time = std::max(
                1.0, std::round(moment - clock.accesses[i] - static_cast<double>(sample.far_accesses)));
            bool exact = sample.watched == Watched::foreseen;
            if (exact) {
                time = static_cast<double>(sample.far_distance);
                moment = clock.accesses[i] + time;
            }
            double nanoseconds =
                static_cast<double>(sample.trap_time) - static_cast<double>(sample.time);
            seen.pairs.push_back(
                {&sample,
                 true,
                 masses.back[i] + masses.open[i],
                 moment,
                 exact ? std::vector{time} : may_be(time, clock.uncertainty(nanoseconds)),
                 {}});
        }
        if (options.weights != Weights::inverse || sample.time_entries == 0) continue;
        auto entries = std::span(thread.entries).subspan(sample.first_entry);
        seen.windows.push_back({entries.first(sample.time_entries),
                                entries.subspan(sample.time_entries, sample.reuse_entries),
                                (masses.back[i] + masses.open[i]) / sample.uses, clock.accesses[i]});
        window_mass += masses.back[i];
    }
    if (options.weights == Weights::inverse)
        weigh_inverse(masses, thread, seen.pairs);
    else if (options.weights == Weights::proportional)
        weigh_proportional(masses, thread, origins, seen.pairs);
    // For windows that were not kept, and samples without an answer.
    for (SeenWindow& window : seen.windows) window.weight *= masses.all_back / window_mass;
    double near = seen.windows.empty() ? sum_of(seen.pairs, false) : masses.all_back;
    double sum = near + sum_of(seen.pairs, true);
    double length = clock.accesses.empty() ? 0 : clock.accesses.back();
    if (sum <= 0 || length <= 0) return {};
    for (SeenWindow& window : seen.windows) window.weight *= length / sum;
    for (Seen& one : seen.pairs) one.weight *= length / sum;

    PhaseModel model = model_of(seen, length, model_time_bins(options.bins));
    for (Seen& one : seen.pairs)
        if (one.far && !one.cold())
            for (double time : one.time)
                one.reuse.push_back(std::round(std::min(time - 1, model.distance(one.moment, time))));
    return seen;
}

class Parts {  // sites and pairs by label
 public:
    explicit Parts(const Binning& bins) : bins_(bins) {}

    void add(const Seen& one, const EstimateOptions& options) {
        bool cold = one.cold();
        if (one.sample->write) writes_[one.sample->label] = true;
        if (options.sites) {
            auto [site, is_new] = sites_.try_emplace(cold ? one.use_label() : one.reuse_label(), bins_);
            if (cold)
                site->second.add_cold(one.weight);
            else
                site->second.add(one.reuse, one.weight);
        }
        if (!options.pairs || cold) return;
        auto [pair, is_new] = pairs_.try_emplace({one.use_label(), one.reuse_label()}, bins_);
        pair->second.add(one.reuse, one.weight);
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
    std::size_t all = 0, addressed = 0, trapped = 0, foreseen = 0, never = 0;
    double uses = 0, open = 0;
    std::uint64_t checked = 0, missed = 0, recording = 0, running = 0;
    for (const auto& [number, thread] : samples.threads) {
        SeenThread seen = see(thread, clock.thread(number), origins, options);
        WeightedHistogram own(options.bins);
        for (const SeenWindow& window : seen.windows) {
            time.add(window.time, window.weight);
            reuse.add(window.reuse, window.weight);
            own.add(window.reuse, window.weight);
        }
        for (const Seen& one : seen.pairs) {
            parts.add(one, options);
            if (one.cold()) {
                for (WeightedHistogram* to : {&reuse, &time, &own}) to->add_cold(one.weight);
            } else if (one.far || seen.windows.empty()) {
                reuse.add(one.reuse, one.weight);
                own.add(one.reuse, one.weight);
                time.add(one.time, one.weight);
            }
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
            uses += sample.uses;
            open += sample.open;
            trapped += sample.watched == Watched::trapped;
            foreseen += sample.watched == Watched::foreseen;
            never += sample.watched == Watched::never;
        }
        all += thread.samples.size();
        checked += thread.checked;
        missed += thread.missed;
        recording += thread.recording;
        running += thread.end;
    }
    std::ranges::sort(profile.threads, {}, &ThreadProfile::id);
    profile.reuse = reuse.histogram();
    profile.time = time.histogram();
    profile.accesses = profile.reuse.total();
    // As many as were used once, and no fewer than came between two uses of one.
    profile.distinct = std::round(profile.reuse.cold);
    for (const Bin& bin : profile.reuse.bins)
        if (bin.count > 0)
            profile.distinct = std::max(profile.distinct, static_cast<double>(bin.low) + 1);
    profile.sampled = Sampling{all > 0 ? profile.accesses / static_cast<double>(all) : 0,
                               static_cast<double>(all), 0};
    profile.clock = clock.description();
    parts.put_into(profile, origins);
    profile.notes.push_back(
        fmt::format("watch: {} samples, {} with an address; reuse of {:.0f} uses ahead of {:.0f}, {} "
                    "further ahead, {} by watchpoint, {} never",
                    all, addressed, uses - open, uses, foreseen, trapped, never));
    if (checked > 0)
        profile.notes.push_back(fmt::format(
            "watch: {} of {} accesses foreseen came at their instruction", checked - missed, checked));
    if (running > 0)
        profile.notes.push_back(
            fmt::format("watch: sampling took {:.1f} % of the program's time",
                        100.0 * static_cast<double>(recording) / static_cast<double>(running)));
    if (all < 100)
        profile.notes.push_back("watch: fewer than 100 samples: use --method exact, or a longer run");
    if (samples.threads.size() > 1)
        profile.notes.push_back(
            "watch: distances count the accesses of the thread itself, and reuses by the same thread");
    return profile;
}

}  // namespace revisit::watch
