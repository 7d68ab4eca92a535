// The GPU's counters as engines. Everything that is not CUDA: options, sites, edges of bins, errors.
#include <fmt/format.h>

#include "engines/hprda.h"
#include "engines/tally.h"
#include "gpu/exact_counter.h"
#include "gpu/gpu.h"
#include "gpu/hprda_counter.h"
#include "revisit/units.h"

namespace revisit {

#ifdef REVISIT_HAVE_CUDA

namespace {

bool counted_on_device(const Binning& bins) {
    return bins.kind() == Binning::Kind::log2 && bins.parameter() <= gpu::kMostPerOctave;
}

// Calls add(distance, count) with one distance of every bin that is not empty.
template <class Add>
void each_bin(const std::vector<std::uint64_t>& by_bin, const Binning& bins, Add add) {
    constexpr std::uint64_t kTop = ~std::uint64_t{0};
    for (std::uint64_t low = 0; low < kTop; low = bins.high_edge(low)) {
        const std::uint64_t index = bins.index(low);
        if (index >= by_bin.size()) break;
        if (by_bin[index] != 0) add(low, by_bin[index]);
    }
}

Histogram histogram_of(const gpu::Counts& counts, const Binning& bins, std::uint64_t cold) {
    DistanceCounter counter(bins);
    counter.add_cold(cold);
    each_bin(counts.by_bin, bins, [&](auto distance, auto count) { counter.add(distance, count); });
    for (auto [distance, count] : counts.by_distance) counter.add(distance, count);
    return counter.histogram();
}

class GpuExactEngine : public Engine {
 public:
    GpuExactEngine(const EngineOptions& options, std::unique_ptr<gpu::ExactCounter> counter)
        : options_(options), counter_(std::move(counter)) {}

    Result<void> add(const BlockBatch& batch) override {
        try {
            const std::uint32_t* sites = nullptr;
            if (options_.sites) {
                number_sites(batch);
                sites = numbered_.data();
            }
            counter_->add(batch.blocks.data(), batch.count(), gpu::Memory::pageable, sites);
            return {};
        } catch (const std::exception& failure) {
            return fail(failure.what());
        }
    }

    Result<Profile> finish() override {
        try {
            const gpu::Outcome outcome = counter_->finish();
            Profile profile;
            profile.method = "exact";
            profile.granularity = options_.granularity;
            profile.accesses = static_cast<double>(outcome.accesses);
            profile.distinct = static_cast<double>(outcome.distinct);
            profile.reuse = histogram_of(outcome.reuse, options_.bins, outcome.distinct);
            if (options_.time)
                profile.time = histogram_of(outcome.time, options_.bins, outcome.distinct);
            if (options_.sites) site_profiles(outcome).fill(profile, options_.bins, true, false);
            return profile;
        } catch (const std::exception& failure) {
            return fail(failure.what());
        }
    }

 private:
    // Site ids are arbitrary; the device wants 0, 1, 2, …
    void number_sites(const BlockBatch& batch) {
        numbered_.resize(batch.count());
        for (std::size_t i = 0; i < batch.count(); ++i) {
            const std::uint32_t id = batch.sites.empty() ? 0 : batch.sites[i];
            const std::uint32_t number = number_of(id);
            numbered_[i] = number;
            writes_[number] += !batch.flags.empty() && (batch.flags[i] & kWrite) != 0;
        }
        if (ids_.size() <= expected_) return;
        expected_ = std::max<std::size_t>(1024, ids_.size() * 2);
        counter_->expect_sites(static_cast<std::uint32_t>(expected_));
    }

    // Recorders number sites from 0: those are found by index.
    std::uint32_t number_of(std::uint32_t id) {
        if (id < near_.size() && near_[id] != kNoNumber) return near_[id];
        auto [found, is_new] = number_of_.try_emplace(id, static_cast<std::uint32_t>(ids_.size()));
        if (is_new) {
            ids_.push_back(id);
            writes_.push_back(0);
            if (id < kNear) {
                if (id >= near_.size()) near_.resize(id + 1, kNoNumber);
                near_[id] = found->second;
            }
        }
        return found->second;
    }

    Attribution site_profiles(const gpu::Outcome& outcome) const {
        Attribution out;
        for (std::size_t i = 0; i < ids_.size(); ++i) {
            SiteTally& tally = out.sites[ids_[i]];
            const auto first =
                outcome.sites.begin() + static_cast<std::ptrdiff_t>(i * outcome.bins_a_site);
            std::vector<std::uint64_t> bins(first,
                                            first + static_cast<std::ptrdiff_t>(outcome.bins_a_site));
            tally.writes = writes_[i];
            tally.reuse.cold = tally.accesses = bins.back();
            bins.pop_back();
            each_bin(bins, options_.bins, [&](std::uint64_t distance, std::uint64_t count) {
                tally.reuse.add(options_.bins, distance, count);
                tally.accesses += count;
            });
        }
        return out;
    }

    static constexpr std::uint32_t kNear = 1u << 20, kNoNumber = ~0u;

    EngineOptions options_;
    std::unique_ptr<gpu::ExactCounter> counter_;
    std::vector<std::uint32_t> near_;
    std::unordered_map<std::uint32_t, std::uint32_t> number_of_;
    std::vector<std::uint32_t> ids_, numbered_;
    std::vector<std::uint64_t> writes_;
    std::size_t expected_ = 0;
};

class GpuHprdaEngine : public Engine {
 public:
    GpuHprdaEngine(const EngineOptions& options, std::unique_ptr<gpu::HprdaCounter> counter)
        : options_(options), counter_(std::move(counter)) {}

    Result<void> add(const BlockBatch& batch) override {
        try {
            collected_.insert(collected_.end(), batch.blocks.begin(), batch.blocks.end());
            if (collected_.size() >= kAtOnce) hand_over();
            return {};
        } catch (const std::exception& failure) {
            return fail(failure.what());
        }
    }

    Result<Profile> finish() override {
        try {
            hand_over();
            const gpu::HprdaOutcome outcome = counter_->finish();
            HprdaTally tally(options_);
            for (std::size_t i = 0; i < outcome.counted.size(); ++i)
                if (outcome.counted[i] != 0) tally.add(i, outcome.counted[i]);
            each_bin(outcome.raw, Binning::log2(256), [&](std::uint64_t distance, std::uint64_t count) {
                tally.add_raw(distance, count);
            });
            return tally.profile(outcome.accesses, outcome.distinct, outcome.sum);
        } catch (const std::exception& failure) {
            return fail(failure.what());
        }
    }

 private:
    static constexpr std::size_t kAtOnce = std::size_t{1} << 24;
    void hand_over() {
        counter_->add(collected_.data(), collected_.size(), gpu::Memory::pageable);
        collected_.clear();
    }

    EngineOptions options_;
    std::unique_ptr<gpu::HprdaCounter> counter_;
    std::vector<std::uint64_t> collected_;
};

Result<std::unique_ptr<Engine>> make_gpu_hprda(const EngineOptions& options) {
    if (auto good = check_hprda(options); !good) return std::unexpected(good.error());
    try {
        gpu::HprdaSettings settings;
        settings.thread_trace = options.thread_trace;
        settings.block_threads = options.block_threads;
        settings.adjust = options.adjust;
        return std::make_unique<GpuHprdaEngine>(options, gpu::make_hprda_counter(settings));
    } catch (const std::exception& failure) {
        return fail(failure.what());
    }
}

}  // namespace

GpuReport describe_gpu() {
    try {
        const gpu::Devices devices = gpu::find_devices();
        if (devices.list.empty()) return {false, devices.why};
        std::string names;
        for (const gpu::Device& device : devices.list)
            names += fmt::format("{}{} ({})", names.empty() ? "" : ", ", device.name,
                                 format_bytes(static_cast<double>(device.memory)));
        return {true, names};
    } catch (const std::exception& failure) {
        return {false, failure.what()};
    }
}

Result<std::unique_ptr<Engine>> make_gpu_engine(std::string_view method, const EngineOptions& options) {
    if (method == "hprda") return make_gpu_hprda(options);
    if (method != "exact")
        return fail(fmt::format("--device gpu: the {} method runs on the CPU", method));
    if (auto good = require_single_model("GPU's exact", options); !good)
        return std::unexpected(good.error());
    if (options.pairs) return fail("--device gpu has no pairs; use --device cpu");
    const bool on_device = counted_on_device(options.bins);
    if (options.sites && !on_device)
        return fail(fmt::format("--device gpu counts sites in bins log2 to log2:{}, found {}",
                                gpu::kMostPerOctave, options.bins.spec()));
    try {
        gpu::Settings settings;
        settings.per_octave = on_device ? static_cast<unsigned>(options.bins.parameter()) : 0;
        settings.time = options.time;
        return std::make_unique<GpuExactEngine>(options, gpu::make_exact_counter(settings));
    } catch (const std::exception& failure) {
        return fail(failure.what());
    }
}

#else

GpuReport describe_gpu() {
    return {false, "this build has no CUDA"};
}

Result<std::unique_ptr<Engine>> make_gpu_engine(std::string_view, const EngineOptions&) {
    return fail("--device gpu: this build has no CUDA; build with nvcc on the path");
}

#endif

}  // namespace revisit
