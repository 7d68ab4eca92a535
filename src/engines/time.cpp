// Time distances: how many accesses lie between two to the same block. One lookup an access, nothing to
// count. A model turns their histogram into reuse distances at the end.
#include <new>

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
            times_.add(batch.blocks);
        } catch (const std::bad_alloc&) {
            return fail("not enough memory for the blocks' last accesses");
        }
        return {};
    }
    Result<Profile> finish() override {
        Histogram fine = times_.histogram();
        Histogram time = times_.also_histogram().value_or(fine.rebin(options_.bins));
        // One bin a distance is as fine as it gets.
        if (options_.bins.kind() == Binning::Kind::exact) fine = time;
        return time_profile(options_, std::move(time), fine, times_.accesses(), times_.distinct());
    }

 private:
    EngineOptions options_;
    TimeDistances times_;
};

}  // namespace

Result<std::unique_ptr<Engine>> make_time(const EngineOptions& options) {
    if (auto good = require_single_model("time", options); !good) return std::unexpected(good.error());
    if (options.sites || options.pairs) return fail("the time method has no sites or pairs; use exact");
    return std::make_unique<TimeEngine>(options);
}

}  // namespace revisit
