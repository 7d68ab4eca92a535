// A sampled run, played from a trace: windows, watched words, the reservoir and a clock that is off, as
// the sampler has them, so that the estimator can be compared with the truth over many seeds.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <map>
#include <numbers>
#include <span>
#include <unordered_map>
#include <vector>

#include "revisit/cache.h"
#include "watch/estimate/estimate.h"
#include "watch/samples/window.h"
#include "watch/samples/word_choice.h"

namespace revisit::watch {

// Accesses cut into blocks, with the exact answer.
class SimulatedTrace {
 public:
    explicit SimulatedTrace(unsigned shift) : shift_(shift) {}

    void add(std::uint64_t address, std::uint32_t bytes, std::uint32_t site) {
        std::uint64_t last = (address + (bytes ? bytes - 1 : 0)) >> shift_;
        for (std::uint64_t block = address >> shift_; block <= last; block++) {
            auto [found, is_new] = ids_.try_emplace(block, static_cast<std::uint32_t>(ids_.size()));
            if (is_new) numbers.push_back(block);
            blocks.push_back(found->second);
            words.push_back(static_cast<std::uint16_t>(words_of(block, shift_, address, bytes)));
            sites.push_back(site);
        }
    }

    // Next accesses and reuse distances, by a Fenwick tree over time.
    void finish() {
        constexpr std::uint32_t kNone = ~0u;
        std::size_t n = blocks.size();
        next.assign(n, kNone);
        distance.assign(n, kNone);
        std::vector<std::uint32_t> last(ids_.size(), kNone), marks(n + 1);
        auto add = [&](std::size_t i, std::uint32_t by) {
            for (i++; i <= n; i += i & (~i + 1)) marks[i] += by;
        };
        auto sum = [&](std::size_t i) {
            std::uint32_t out = 0;
            for (i++; i > 0; i -= i & (~i + 1)) out += marks[i];
            return out;
        };
        std::uint32_t live = 0;
        for (std::size_t i = 0; i < n; i++) {
            std::uint32_t& before = last[blocks[i]];
            if (before != kNone) {
                next[before] = static_cast<std::uint32_t>(i);
                distance[i] = i - before == 1 ? 0 : live - sum(before);
                add(before, ~0u);
            } else {
                live++;
            }
            add(i, 1);
            before = static_cast<std::uint32_t>(i);
        }
    }

    double miss_rate(double cache_blocks) const {
        double misses = 0;
        for (std::uint32_t one : distance) misses += one >= cache_blocks;
        return misses / static_cast<double>(distance.size());
    }

    // Of a cache with sets, each of them played.
    double miss_rate(const CacheSpec& cache) const {
        std::vector<std::vector<std::uint32_t>> sets(cache.sets());  // the last line behind
        double misses = 0;
        for (std::uint32_t block : blocks) {
            auto& set = sets[numbers[block] % cache.sets()];
            auto found = std::ranges::find(set, block);
            if (found == set.end()) {
                misses++;
                if (set.size() == cache.associativity()) set.erase(set.begin());
            } else {
                set.erase(found);
            }
            set.push_back(block);
        }
        return misses / static_cast<double>(blocks.size());
    }

    unsigned shift() const { return shift_; }
    std::size_t distinct() const { return ids_.size(); }

    std::vector<std::uint32_t> blocks, sites, next, distance;
    std::vector<std::uint16_t> words;
    std::vector<std::uint64_t> numbers;  // of the blocks, in memory

 private:
    unsigned shift_;
    std::unordered_map<std::uint64_t, std::uint32_t> ids_;
};

struct SimulationOptions {
    std::size_t samples = 400;
    unsigned window = 1024;
    unsigned watchpoints = 4;
    double clock_error = 0.05;  // one standard deviation, of the whole
    bool reservoir = true;      // else every open use is waited for
    std::vector<CacheSpec> caches = {};
    // Windows that begin at this site are so long, as those in code that touches memory at random are.
    std::uint32_t short_site = 0;
    unsigned short_window = 0;
};

class Simulation {
 public:
    Simulation(const SimulatedTrace& trace, const SimulationOptions& options, std::uint64_t seed)
        : t_(trace), o_(options), random_(seed * 7919 + 3), noise_(seed) {}

    Profile run() {
        // Normal by Box and Muller: the libraries' own distributions differ.
        const double normal = std::sqrt(-2 * std::log(1 - noise_.unit())) *
                              std::cos(2 * std::numbers::pi * noise_.unit());
        double rate = std::exp(o_.clock_error * normal);  // nanoseconds per access
        auto n = static_cast<double>(t_.blocks.size());
        double step = (n - 2.0 * o_.window) / static_cast<double>(o_.samples);
        samples_.caches = o_.caches;
        AccessClock::ThreadClock clock;
        clock.last_rate = 1;
        clock.error = o_.clock_error;
        ThreadSamples& thread = samples_.threads[1];
        thread.samples.reserve(o_.samples);
        for (std::size_t i = 0; i < o_.samples; i++) {
            double at = step * (static_cast<double>(i) + random_.unit());
            sample(thread, static_cast<std::size_t>(at), rate);
            clock.time.push_back(static_cast<double>(thread.samples.back().time));
        }
        for (Waiting& one : waiting_) end(thread, one, t_.blocks.size(), rate);
        clock.accesses = clock.time;
        EstimateOptions estimated;
        estimated.granularity = std::uint64_t{1} << t_.shift();
        return estimate(samples_, origins(), estimated,
                        AccessClock({{std::uint16_t{1}, clock}}, "simulated"));
    }

 private:
    struct Waiting {
        std::size_t sample, use, trap;  // accesses; trap beyond the end = never
    };

    static const Origins& origins() {
        static const Origins none = [] {
            Origins out;
            out.labels.push_back({});
            out.places.push_back({});
            return out;
        }();
        return none;
    }

    void end(ThreadSamples& thread, const Waiting& one, std::size_t now, double rate) {
        Sample& sample = thread.samples[one.sample];
        bool trapped = one.trap < now;
        std::size_t at = std::min(one.trap, t_.blocks.size());
        if (o_.reservoir) sample.chance_kept = reservoir_.kept(0);
        sample.watched = trapped ? Sample::Watched::trapped : Sample::Watched::never;
        sample.trap_time = static_cast<std::uint64_t>(static_cast<double>(at) * rate);
        if (!trapped) return;
        sample.trapped_word =
            static_cast<std::uint8_t>(std::countr_zero(t_.words[at] & sample.watched_words));
        habits_.learn(sample.use_pc, sample.use_word, sample.watched_words, sample.trapped_word);
    }

    void sample(ThreadSamples& thread, std::size_t from, double rate) {
        std::erase_if(waiting_, [&](const Waiting& one) {
            if (one.trap >= from) return false;
            end(thread, one, from, rate);
            if (o_.reservoir) reservoir_.release(0);
            return true;
        });
        Sample sample;
        sample.time = static_cast<std::uint64_t>(static_cast<double>(from) * rate);
        sample.period = thread.samples.empty() ? sample.time : sample.time - thread.samples.back().time;
        sample.label = sample.far_label = sample.far_reuse_label = 0;
        sample.has_address = true;
        const bool is_short = o_.short_window != 0 && t_.sites[from] == o_.short_site;
        const unsigned length = is_short ? o_.short_window : o_.window, uses = length / 2;
        window_.start(uses, length);
        log_.start();
        for (unsigned i = 0; i < length; i++) {
            std::size_t at = from + i;
            window_.meet(t_.blocks[at]);
            unsigned first = static_cast<unsigned>(std::countr_zero(t_.words[at]));
            log_.add((std::uint64_t{t_.blocks[at]} << t_.shift()) + 8 * first,
                     8 * static_cast<std::uint32_t>(std::popcount(t_.words[at])), t_.sites[at], true);
        }
        samples_.visits.add(log_, t_.shift());
        sample.uses = static_cast<std::uint16_t>(uses);
        sample.open = static_cast<std::uint16_t>(window_.open());
        sample.first_entry = thread.entries.size();
        auto put = [&](const Window::Values& values) {
            std::uint32_t count = 0;
            values.for_each([&](unsigned value, unsigned times) {
                thread.entries.push_back(
                    {static_cast<std::uint16_t>(value), static_cast<std::uint16_t>(times)});
                count++;
            });
            return count;
        };
        sample.time_entries = put(window_.time());
        sample.reuse_entries = put(window_.reuse());
        unsigned open = 0;
        if (sample.open > 0) open = watch(thread, sample, from);
        std::vector<std::uint64_t> lines;
        for (unsigned i = 0; i < length; i++) lines.push_back(t_.numbers[t_.blocks[from + i]]);
        sample.sets = sets_of(lines, uses, 0, open, o_.caches);
        thread.samples.push_back(sample);
        for (auto [number, time] : std::exchange(lost_, {})) thread.samples[number].trap_time = time;
    }

    unsigned watch(const ThreadSamples& thread, Sample& sample, std::size_t from) {
        unsigned index = window_.open_use(random_.below(sample.open));
        std::size_t use = from + index - 1;
        if (o_.reservoir) {
            Reservoir::Choice choice = reservoir_.choose(random_);
            sample.chance_watched = choice.probability;
            if (choice.watchpoint < 0) return index;
            reservoir_.set(0);
            for (const Waiting& one : waiting_) {  // what was there is replaced
                lost_.push_back({one.sample, sample.time});
            }
            waiting_.clear();
        }
        std::uint64_t address = std::uint64_t{t_.blocks[use]} << t_.shift();
        WatchedWords words = choose_words(log_, address, t_.sites[use], t_.shift(), habits_,
                                          samples_.visits, o_.watchpoints, 1000, random_);
        sample.watched = Sample::Watched::replaced;
        sample.far_accesses = index;
        sample.watched_words = words.mask;
        sample.use_word = static_cast<std::uint8_t>(words.use_word);
        sample.use_pc = t_.sites[use];
        std::uint32_t trap = t_.next[use];
        while (trap != ~0u && !(t_.words[trap] & words.mask)) trap = t_.next[trap];
        waiting_.push_back({thread.samples.size(), use,
                            trap == ~0u ? t_.blocks.size() : static_cast<std::size_t>(trap)});
        return index;
    }

    const SimulatedTrace& t_;
    SimulationOptions o_;
    Random random_;
    Random noise_;
    Window window_;
    AccessLog log_;
    WordHabits habits_;
    Reservoir reservoir_{1};
    Samples samples_;
    std::vector<Waiting> waiting_;
    std::vector<std::pair<std::size_t, std::uint64_t>> lost_;  // samples, and when
};

// Shares of the paper's 20 bins: bytes, all below 4 KiB in one, doubling; reuses only.
inline std::array<double, 20> paper_bins(const Histogram& histogram, double granularity) {
    std::array<double, 20> out{};
    double sum = 0;
    for (const Bin& bin : histogram.bins) {
        double middle =
            (static_cast<double>(bin.low) + static_cast<double>(bin.high) - 1) / 2 * granularity;
        out[middle < 4096 ? 0 : std::min(19, static_cast<int>(std::log2(middle / 4096)) + 1)] +=
            bin.count;
        sum += bin.count;
    }
    for (double& one : out) one /= std::max(1.0, sum);
    return out;
}

inline constexpr double kSimulatedCaches[] = {32 << 10, 256 << 10, 1 << 20, 8 << 20};  // bytes

struct SimulationResult {
    double similarity = 0;                  // S of reuse distances on the paper's bins
    std::array<double, 4> off{}, stated{};  // of miss rates
};

inline SimulationResult compare(const SimulatedTrace& trace, const Profile& profile) {
    double granularity = static_cast<double>(profile.granularity);
    DistanceCounter counter(Binning::log2(8));
    for (std::uint32_t one : trace.distance)
        if (one != ~0u) counter.add(one);
    auto truth = paper_bins(counter.histogram(), granularity),
         found = paper_bins(profile.reuse, granularity);
    SimulationResult out;
    double apart = 0;
    for (std::size_t i = 0; i < truth.size(); i++) apart += std::abs(truth[i] - found[i]);
    out.similarity = 1 - apart / 2;
    for (std::size_t k = 0; k < out.off.size(); k++) {
        CacheSpec cache{static_cast<std::uint64_t>(kSimulatedCaches[k]), 0, profile.granularity, ""};
        CachePrediction predicted = predict_cache(profile, cache);
        out.off[k] = predicted.miss_rate - trace.miss_rate(static_cast<double>(cache.blocks()));
        out.stated[k] = predicted.error;
    }
    return out;
}

}  // namespace revisit::watch
