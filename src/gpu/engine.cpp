// The GPU's counters as engines. Everything that is not CUDA: options, sites, edges of bins, errors.
//
// All devices that there are count, or those that REVISIT_GPU_DEVICES names: "0,2", or "0,0" to let one
// device be two: several are tested so where there is one.
#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <future>

#include "core/try.h"
#include "engines/hprda.h"
#include "gpu/devices.h"
#include "gpu/gpu.h"
#include "gpu/hprda_counter.h"
#include "gpu/outcome.h"
#include "gpu/single_device.h"
#include "revisit/units.h"

namespace revisit {

#ifdef REVISIT_HAVE_CUDA

namespace {

bool counted_on_device(const Binning& bins) {
    return bins.kind() == Binning::Kind::log2 && bins.parameter() <= gpu::kMostPerOctave;
}

Result<std::vector<int>> devices_to_use() {
    const gpu::Devices devices = gpu::find_devices();
    if (devices.list.empty()) return fail(ErrorCode::device, devices.why);
    std::vector<int> out;
    const char* const wanted = std::getenv("REVISIT_GPU_DEVICES");
    if (wanted == nullptr) {
        for (std::size_t i = 0; i < devices.list.size(); ++i) out.push_back(static_cast<int>(i));
        return out;
    }
    for (std::string_view rest = wanted;;) {
        const std::string_view one = rest.substr(0, rest.find(','));
        int device = -1;
        const auto [end, error] = std::from_chars(one.data(), one.data() + one.size(), device);
        if (error != std::errc() || end != one.data() + one.size() || device < 0 ||
            static_cast<std::size_t>(device) >= devices.list.size())
            return fail(fmt::format("REVISIT_GPU_DEVICES: expected numbers from 0 to {}, found \"{}\"",
                                    devices.list.size() - 1, wanted));
        out.push_back(device);
        if (one.size() == rest.size()) return out;
        rest.remove_prefix(one.size() + 1);
    }
}

gpu::Settings settings_for(const EngineOptions& options, int device) {
    gpu::Settings settings;
    settings.per_octave =
        counted_on_device(options.bins) ? static_cast<unsigned>(options.bins.parameter()) : 0;
    settings.time = options.time;
    settings.device = device;
    return settings;
}

class GpuPart final : public PartCounter {
 public:
    GpuPart(const EngineOptions& options, std::unique_ptr<gpu::ExactCounter> counter)
        : options_(options), counter_(std::move(counter)) {}

    Result<void> add(std::span<const std::uint64_t> blocks) override {
        try {
            counter_->add(blocks.data(), blocks.size(), gpu::Memory::pageable);
            return {};
        } catch (const std::exception& failure) {
            return device_error(failure);
        }
    }
    Result<PartCount> finish() override {
        try {
            gpu::Touches touches = counter_->take_touches();
            return PartCount{histogram_of(counter_->finish().reuse, options_.bins, 0),
                             std::move(touches.first), std::move(touches.last)};
        } catch (const std::exception& failure) {
            return device_error(failure);
        }
    }

 private:
    EngineOptions options_;
    std::unique_ptr<gpu::ExactCounter> counter_;
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
            return device_error(failure);
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
            return device_error(failure);
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
    TRY(check_hprda(options));
    try {
        gpu::HprdaSettings settings;
        settings.thread_trace = options.hprda.thread_trace;
        settings.block_threads = options.hprda.block_threads;
        settings.adjust = options.hprda.adjust;
        return std::make_unique<GpuHprdaEngine>(options, gpu::make_hprda_counter(settings));
    } catch (const std::exception& failure) {
        return device_error(failure);
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
        return fail(ErrorCode::unsupported, fmt::format("the {} method runs on the CPU", method));
    TRY(require_single_model("GPU's exact", options));
    if (options.pairs) return fail(ErrorCode::device, "the GPU counts no pairs of sites");
    const bool on_device = counted_on_device(options.bins);
    if (options.sites && !on_device)
        return fail(ErrorCode::device,
                    fmt::format("the GPU counts sites in bins log2 to log2:{}, found {}",
                                gpu::kMostPerOctave, options.bins.spec()));
    auto devices = TRY(devices_to_use());
    try {
        // The device starts in the background, which takes some 0.4 s, while the trace is made ready.
        if (devices.size() == 1)
            return make_single_device_engine(
                options,
                std::async(std::launch::async, [settings = settings_for(options, devices.front())] {
                    return gpu::make_exact_counter(settings);
                }));
        std::vector<std::unique_ptr<gpu::ExactCounter>> counters;
        for (int device : devices) {
            gpu::Settings settings = settings_for(options, device);
            settings.touches = true;
            counters.push_back(gpu::make_exact_counter(settings));
        }
        return make_devices_engine(options, std::move(counters));
    } catch (const std::exception& failure) {
        return device_error(failure);
    }
}

Result<std::unique_ptr<PartCounter>> make_gpu_part_counter(const EngineOptions& options,
                                                           unsigned index) {
    auto devices = TRY(devices_to_use());
    try {
        gpu::Settings settings = settings_for(options, devices[index % devices.size()]);
        settings.touches = true;
        return std::make_unique<GpuPart>(options, gpu::make_exact_counter(settings));
    } catch (const std::exception& failure) {
        return device_error(failure);
    }
}

#else

GpuReport describe_gpu() {
    return {false, "this build has no CUDA"};
}

Result<std::unique_ptr<Engine>> make_gpu_engine(std::string_view, const EngineOptions&) {
    return fail(ErrorCode::not_built, "this build has no CUDA; build with nvcc on the path");
}

Result<std::unique_ptr<PartCounter>> make_gpu_part_counter(const EngineOptions&, unsigned) {
    return fail(ErrorCode::not_built, "this build has no CUDA; build with nvcc on the path");
}

#endif

}  // namespace revisit
