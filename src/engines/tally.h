// What the engines count: the histograms of a run, whole, by site and by pair of sites.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <unordered_map>
#include <vector>

#include "engines/site_octaves.h"
#include "revisit/engine.h"

namespace revisit {

// A histogram of one site or pair among thousands: only the bins that occur take memory.
class SmallCounter {
 public:
    void add(const Binning& binning, std::uint64_t distance, std::uint64_t count = 1);
    // The same for one distance whose bin number is known, for binnings that keep slots.
    static bool keeps_slots(const Binning& binning);
    void add_to_bin(std::uint64_t index) {
        if (index >= slots_.size()) [[unlikely]]
            slots_.resize(index + 1);
        slots_[index]++;
    }
    // Counters by bin number, at least so many, for whoever adds to them often. They stay where they
    // are until there are more, or another counter is merged into this one.
    std::span<std::uint64_t> bins(std::size_t at_least) {
        if (at_least > slots_.size()) slots_.resize(at_least);
        return slots_;
    }
    std::uint64_t total() const;
    void merge(const SmallCounter& other);
    Histogram histogram(const Binning& binning) const;
    void add_to(OctaveCounts& out, const Binning& binning) const;

    std::uint64_t cold = 0;
    std::uint64_t invalidated = 0;

 private:
    // By bin index, log2 binnings of few bins; by low edge otherwise.
    std::vector<std::uint64_t> slots_;
    std::unordered_map<std::uint64_t, std::uint64_t> sparse_;
};

struct SiteTally {
    std::uint64_t accesses = 0;
    std::uint64_t writes = 0;
    SmallCounter reuse;
};

// Sites and pairs of a run. Pairs are keyed use << 32 | reuse.
struct Attribution {
    std::unordered_map<std::uint32_t, SiteTally> sites;
    std::unordered_map<std::uint64_t, SmallCounter> pairs;

    static std::uint64_t pair_key(std::uint32_t use, std::uint32_t reuse) {
        return std::uint64_t{use} << 32 | reuse;
    }
    void merge(const Attribution& other);
    // Into Profile::sites by id and Profile::pairs by falling count.
    void fill(Profile& profile, const Binning& binning, bool with_sites, bool with_pairs) const;
};

// Counts a run access by access, for engines whose own work dwarfs the counting.
class Tally {
 public:
    explicit Tally(const EngineOptions& options)
        : options_(options), reuse_(options.bins), time_(options.bins) {}

    // Threads are distinguished in the private model only.
    void add_cold(std::uint32_t site, bool write, std::uint16_t thread = 0);
    void add_invalidated(std::uint32_t site, bool write, std::uint16_t thread);
    void add_reuse(std::uint64_t distance, std::uint64_t time_distance, std::uint32_t use_site,
                   std::uint32_t site, bool write, std::uint16_t thread = 0);
    Histogram reuse() const { return reuse_.histogram(); }
    Profile profile(std::string_view method, std::uint64_t distinct) const;

 private:
    // Calls use(counter) on the site's and the thread's own histograms, where they are wanted.
    template <class Use>
    void attribute(std::uint32_t site, bool write, std::uint16_t thread, Use use);

    EngineOptions options_;
    DistanceCounter reuse_;
    DistanceCounter time_;
    Attribution attribution_;
    std::map<std::uint16_t, SiteTally> threads_;
    std::uint64_t accesses_ = 0;
};

// Engines say so, rather than ignore it, when asked for what they cannot do.
Result<void> require_single_model(std::string_view method, const EngineOptions& options);

}  // namespace revisit
