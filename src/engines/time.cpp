// Time distances: how many accesses lie between two to the same block. One lookup an access, nothing to
// count. A model turns their histogram, or one a phase of the run, into reuse distances at the end.
#include <new>

#include "core/try.h"
#include "engines/tally.h"
#include "engines/time_distances.h"
#include "engines/time_profile.h"

namespace revisit {
namespace {

class TimeEngine : public Engine {
 public:
    explicit TimeEngine(const EngineOptions& options)
        : options_(options), times_(model_time_bins(options.bins)) {
        if (options.bins.kind() != Binning::Kind::log2) times_.count_also(options.bins);
    }

    Result<void> add(const BlockBatch& batch) override {
        try {
            std::span<const std::uint64_t> blocks = batch.blocks;
            while (options_.time_model == TimeModel::phases && !blocks.empty()) {
                std::uint64_t left = windows_.window_end() - times_.accesses();
                if (blocks.size() < left) break;
                times_.add(blocks.first(left));
                blocks = blocks.subspan(left);
                windows_.end_window(times_.accesses(), times_.histogram());
            }
            times_.add(blocks);
        } catch (const std::bad_alloc&) {
            return fail("not enough memory for the blocks' last accesses");
        }
        return {};
    }
    Result<Profile> finish() override {
        TimeCounts counts;
        counts.fine = times_.histogram();
        windows_.end_window(times_.accesses(), counts.fine);
        counts.windows = windows_.windows();
        counts.wanted = times_.also_histogram().value_or(counts.fine.rebin(options_.bins));
        // One bin a distance is as fine as it gets.
        if (options_.bins.kind() == Binning::Kind::exact) counts.fine = counts.wanted;
        counts.accesses = times_.accesses();
        counts.distinct = times_.distinct();
        return time_profile(options_, std::move(counts));
    }

 private:
    EngineOptions options_;
    TimeDistances times_;
    // 64 to 128 phases, whatever the run's length: enough for the model.
    WindowRecorder windows_{128, std::uint64_t{1} << 14};
};

}  // namespace

Result<std::unique_ptr<Engine>> make_time(const EngineOptions& options) {
    TRY(require_single_model("time", options));
    if (options.sites || options.pairs) return fail("the time method has no sites or pairs; use exact");
    return std::make_unique<TimeEngine>(options);
}

}  // namespace revisit
