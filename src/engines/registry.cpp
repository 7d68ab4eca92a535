// The table of engines. A new engine is one file and one line here.
#include <fmt/format.h>

#include "core/try.h"
#include "engines/checked.h"
#include "engines/on_device.h"
#include "engines/phases.h"
#include "revisit/engine.h"

namespace revisit {

Result<std::unique_ptr<Engine>> make_exact(const EngineOptions& options);
Result<std::unique_ptr<Engine>> make_hprda(const EngineOptions& options);
Result<std::unique_ptr<Engine>> make_naive(const EngineOptions& options);
Result<std::unique_ptr<Engine>> make_olken(const EngineOptions& options);
Result<std::unique_ptr<Engine>> make_sample(const EngineOptions& options);
Result<std::unique_ptr<Engine>> make_partition(const EngineOptions& options);
Result<std::unique_ptr<Engine>> make_shards(const EngineOptions& options);
Result<std::unique_ptr<Engine>> make_time(const EngineOptions& options);

namespace {

constexpr EngineEntry kEngines[] = {
    {"exact", "every access; a bitmap over time counted by words", make_exact},
    {"olken", "every access; the textbook tree, the baseline of benchmarks", make_olken},
    {"partition", "every access; the GPU's algorithm on threads", make_partition},
    {"shards", "estimate from a hashed sample of the blocks, for huge traces", make_shards},
    {"hprda", "approximation of Cui et al. (IPDPS 2012)", make_hprda},
    {"time", "time distances, and reuse distances estimated from them", make_time},
    {"sample", "estimate from randomly sampled accesses", make_sample},
    {"naive", "every access; a list, for tests and tiny traces", make_naive},
};

}  // namespace

std::span<const EngineEntry> engines() {
    return kEngines;
}

Result<std::unique_ptr<Engine>> make_engine(std::string_view name, const EngineOptions& options) {
    if (options.device == Device::gpu) {
        if (options.phases != 0)
            return fail(ErrorCode::unsupported, "the GPU does not cut a run into phases");
        return make_checked(TRY(make_gpu_engine(name, options)));
    }
    if (options.granularity == 0) return fail("expected a granularity of at least 1 byte");
    if (options.bins.parameter() == 0) return fail("expected bins of a width of at least 1");
    std::string names;
    for (const EngineEntry& entry : kEngines) {
        if (entry.name == name) {
            // Windows look at sites as they go; chunks on several threads know them at their end.
            EngineOptions one_by_one = options;
            if (options.phases != 0 && (options.sites || options.pairs)) one_by_one.threads = 1;
            auto engine = TRY(entry.make(one_by_one));
            if (options.phases != 0) engine = TRY(make_phased(std::move(engine), options));
            return make_checked(std::move(engine));
        }
        names += fmt::format("{}{}", names.empty() ? "" : ", ", entry.name);
    }
    return fail(ErrorCode::unknown_method,
                fmt::format("expected a method out of {}, found \"{}\"", names, name));
}

}  // namespace revisit
