// Engines turn accesses into a profile. One small interface, many algorithms, chosen by name.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "revisit/access.h"
#include "revisit/cache_spec.h"
#include "revisit/error.h"
#include "revisit/profile.h"
#include "revisit/source.h"
#include "revisit/time_model.h"

namespace revisit {

enum class StackModel : std::uint8_t {
    single,    // one stack, whatever thread
    private_,  // one stack per thread, writes elsewhere invalidate
};

enum class Device : std::uint8_t { cpu, gpu };

struct SampleOptions {
    double rate = 0.01;               // share of accesses that are chosen
    double target_error = 0;          // half-width of every bin's share; picks the rate
    double prune_share = 0.99;        // give up what is deeper than this share; 1 = never
    std::uint64_t prune_after = 100;  // … of at least so many
};

struct ShardsOptions {
    double rate = 0.01;             // share of blocks that are followed
    std::uint64_t most_blocks = 0;  // follow at most so many; 0 = by rate alone
};

struct HprdaOptions {
    unsigned thread_trace = 2048;  // accesses per thread
    unsigned block_threads = 64;   // threads per block
    bool adjust = true;            // by the effective factor
};

struct EngineOptions {
    Binning bins = Binning::log2(8);
    std::uint64_t granularity = 64;  // of the profile; blocks that are added are cut already
    StackModel model = StackModel::single;
    Device device = Device::cpu;
    bool shared = false;    // private model: the shared stack's histogram as well
    bool sharing = false;   // private model: who took which block from whom
    unsigned threads = 1;   // 0 = all cores
    bool streamed = false;  // comes from a running program: little is held back for several threads
    bool time = false;      // the time-distance histogram as well
    bool sites = false;     // histograms by site
    bool pairs = false;     // use → reuse site pairs
    unsigned phases = 0;    // windows of the run with histograms of their own
    std::vector<CacheSpec> filters = {};  // with `shared`: private caches to know the shared one behind
    std::uint64_t seed = 1;               // of all randomness
    // Of the methods of these names.
    TimeModel time_model = TimeModel::phases;  // how `time` gets reuse distances
    SampleOptions sample = {};
    ShardsOptions shards = {};
    HprdaOptions hprda = {};
};

// Called with accesses so far, and out of how many; 0 = unknown.
using AccessProgress = std::function<void(std::uint64_t done, std::uint64_t total)>;

// Fed batch by batch, then finished once. `add` takes blocks in trace order and does not keep the
// spans.
class REVISIT_API Engine {
 public:
    virtual ~Engine() = default;
    virtual Result<void> add(const BlockBatch& batch) = 0;
    // Engines that read a trace where it lies, on several threads or from a device, take it whole:
    // after what was added, before what will be. They cut it to their granularity themselves.
    virtual bool takes_ranges() const { return false; }
    virtual Result<void> add_ranges(const AccessRanges&, const AccessProgress&) {
        return fail(ErrorCode::unsupported, "this engine takes blocks");
    }
    // The same of chunks: they decode them on threads of their own.
    virtual bool takes_chunks() const { return false; }
    virtual Result<void> add_chunks(const AccessChunks&, const AccessProgress&) {
        return fail(ErrorCode::unsupported, "this engine takes blocks");
    }
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

REVISIT_API std::span<const EngineEntry> engines();
REVISIT_API Result<std::unique_ptr<Engine>> make_engine(std::string_view name,
                                                        const EngineOptions& options);

}  // namespace revisit
