// The GPU's counters as engines. Everything that is not CUDA: options, sites, edges of bins, errors.
//
// All devices that there are count, or those that REVISIT_GPU_DEVICES names: "0,2", or "0,0" to let one
// device be two, which is how several were tried where there is one.
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <future>

#include "core/parallel.h"
#include "core/try.h"
#include "engines/hprda.h"
#include "engines/ranges.h"
#include "gpu/devices.h"
#include "gpu/gpu.h"
#include "gpu/hprda_counter.h"
#include "gpu/outcome.h"
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

unexpected<Error> device_error(const std::exception& failure) {
    if (dynamic_cast<const gpu::OutOfMemory*>(&failure) != nullptr)
        return fail(ErrorCode::device_memory, failure.what());
    return fail(ErrorCode::device, failure.what());
}

// An error of the host on its way through the device's code.
struct HostFailure : std::runtime_error {
    explicit HostFailure(Error what) : std::runtime_error(what.message), error(std::move(what)) {}
    Error error;
};

class GpuExactEngine : public Engine {
 public:
    // The device starts in the background, which takes some 0.4 s, while the trace is made ready.
    GpuExactEngine(const EngineOptions& options, int device)
        : options_(options),
          starting_(std::async(std::launch::async, [settings = settings_for(options, device)] {
              return gpu::make_exact_counter(settings);
          })) {}

    bool takes_ranges() const override { return !options_.sites; }
    Result<void> add_ranges(const AccessRanges& trace, const AccessProgress& progress) override {
        AccessColumns first;
        if (trace.count() == 0) return {};
        // Accesses of known size touch any number of blocks: those are cut on the host.
        if (options_.granularity > 1 && !TRY(trace.read(0, 1, first)).sizes.empty())
            return add_cut(trace, progress);
        try {
            gpu::AddressInput input;
            input.count = trace.count();
            input.granularity = options_.granularity;
            input.threads = thread_count(options_.threads);
            input.read = [&, file = trace.address_file()](std::uint64_t from, std::size_t count,
                                                          std::uint64_t* into) {
                if (!file || !read_file(*file, from, count, into))
                    read_addresses(trace, from, count, into);
            };
            if (progress) input.progress = [&](std::uint64_t done) { progress(done, input.count); };
            counter().add_addresses(input);
            return {};
        } catch (const HostFailure& failure) {
            return unexpected(failure.error);
        } catch (const std::exception& failure) {
            return device_error(failure);
        }
    }

    Result<void> add(const BlockBatch& batch) override {
        try {
            const std::uint32_t* sites = nullptr;
            if (options_.sites) {
                numbers_.number(batch, numbered_);
                if (const std::uint32_t expected = numbers_.news(); expected != 0)
                    counter().expect_sites(expected);
                sites = numbered_.data();
            }
            counter().add(batch.blocks.data(), batch.count(), gpu::Memory::pageable, sites);
            return {};
        } catch (const std::exception& failure) {
            return device_error(failure);
        }
    }

    Result<Profile> finish() override {
        try {
            const gpu::Outcome outcome = counter().finish();
            Profile profile;
            profile.method = "exact";
            profile.granularity = options_.granularity;
            profile.accesses = static_cast<double>(outcome.accesses);
            profile.distinct = static_cast<double>(outcome.distinct);
            profile.reuse = histogram_of(outcome.reuse, options_.bins, outcome.distinct);
            if (options_.time)
                profile.time = histogram_of(outcome.time, options_.bins, outcome.distinct);
            if (options_.sites) {
                Attribution sites;
                numbers_.add_counts(outcome, options_.bins, sites);
                numbers_.add_writes(sites);
                sites.fill(profile, options_.bins, true, false);
            }
            return profile;
        } catch (const std::exception& failure) {
            return device_error(failure);
        }
    }

 private:
    gpu::ExactCounter& counter() {
        if (!counter_) counter_ = starting_.get();
        return *counter_;
    }
    // Straight to where they are wanted. False where that fails: the trace knows what is wrong.
    static bool read_file(const AddressFile& file, std::uint64_t from, std::size_t count,
                          std::uint64_t* into) {
        char* to = reinterpret_cast<char*>(into);
        std::size_t left = count * sizeof *into;
        std::uint64_t at = file.offset + from * sizeof *into;
        while (left != 0) {
            const ssize_t got = pread(file.descriptor, to, left, static_cast<off_t>(at));
            if (got < 0 && errno == EINTR) continue;
            if (got <= 0) return false;
            to += got;
            at += static_cast<std::uint64_t>(got);
            left -= static_cast<std::size_t>(got);
        }
        return true;
    }
    static void read_addresses(const AccessRanges& trace, std::uint64_t from, std::size_t count,
                               std::uint64_t* into) {
        AccessColumns columns;
        for (std::size_t done = 0; done < count;) {
            const std::size_t take = std::min(kRangeAtOnce, count - done);
            const auto batch = trace.read(from + done, take, columns);
            if (!batch) throw HostFailure(batch.error());
            std::memcpy(into + done, batch->addresses.data(), take * sizeof(std::uint64_t));
            done += take;
        }
    }
    Result<void> add_cut(const AccessRanges& trace, const AccessProgress& progress) {
        BlockCutter cutter(options_.granularity);
        AccessColumns columns;
        std::uint64_t blocks = 0;
        return each_block_of(trace, cutter, columns, 0, trace.count(), [&](const BlockBatch& piece) {
            blocks += piece.count();
            if (progress) progress(std::min(blocks, trace.count()), trace.count());
            return add(piece);
        });
    }

    EngineOptions options_;
    std::future<std::unique_ptr<gpu::ExactCounter>> starting_;
    std::unique_ptr<gpu::ExactCounter> counter_;
    SiteNumbers numbers_;
    std::vector<std::uint32_t> numbered_;
};

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
        if (devices.size() == 1) return std::make_unique<GpuExactEngine>(options, devices.front());
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
