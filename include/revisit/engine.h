// Engines turn accesses into a profile. One small interface, many algorithms, chosen by name.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "revisit/access.h"
#include "revisit/error.h"
#include "revisit/profile.h"
#include "revisit/time_model.h"

namespace revisit {

enum class StackModel : std::uint8_t {
    single,    // one stack, whatever thread
    private_,  // a stack a thread, writes elsewhere invalidate
};

enum class Device : std::uint8_t { cpu, gpu };

struct EngineOptions {
    Binning bins = Binning::log2(8);
    std::uint64_t granularity = 64;  // recorded in the profile; blocks arrive already cut
    StackModel model = StackModel::single;
    Device device = Device::cpu;
    bool shared = false;                       // private model: the shared stack's histogram as well
    bool sharing = false;                      // private model: who took which block from whom
    unsigned threads = 1;                      // 0 = all cores
    bool time = false;                         // the time-distance histogram as well
    bool sites = false;                        // histograms by site
    bool pairs = false;                        // use → reuse site pairs
    unsigned phases = 0;                       // windows of the run with histograms of their own
    TimeModel time_model = TimeModel::phases;  // how the time method gets reuse distances
    double rate = 0.01;                        // sampling engines: share of accesses or blocks
    double target_error = 0;          // sample: half-width of every bin's share; picks the rate
    double prune_share = 0.99;        // sample: give up what is deeper than this share; 1 = never
    std::uint64_t prune_after = 100;  // sample: … of at least so many
    std::uint64_t sample_blocks = 0;  // shards: follow at most so many blocks; 0 = by rate alone
    unsigned thread_trace = 2048;     // hprda: accesses a thread
    unsigned block_threads = 64;      // hprda: threads a block
    bool adjust = true;               // hprda: by the effective factor
    std::uint64_t seed = 1;
};

// Fed batch by batch, then finished once. `add` takes blocks in trace order and does not keep the
// spans.
class Engine {
 public:
    virtual ~Engine() = default;
    virtual Result<void> add(const BlockBatch& batch) = 0;
    virtual Result<Profile> finish() = 0;
    // The histogram of what was added, for the windows of a run; not every engine knows it.
    virtual Result<Histogram> reuse_so_far() {
        return fail("this method and model cannot cut a run into phases; use exact with one stack");
    }
};

struct EngineEntry {
    std::string_view name;
    std::string_view summary;
    Result<std::unique_ptr<Engine>> (*make)(const EngineOptions&);
};

std::span<const EngineEntry> engines();
Result<std::unique_ptr<Engine>> make_engine(std::string_view name, const EngineOptions& options);

// The whole way in one call, for addresses in memory.
Result<Profile> analyze(std::span<const std::uint64_t> addresses, std::string_view method = "exact",
                        const EngineOptions& options = {});

}  // namespace revisit
