// Time distances only: how many accesses lie between two to the same block. One lookup an access,
// nothing to count. A model may turn the histogram into reuse distances afterwards.
#include <new>

#include "engines/tally.h"
#include "engines/time_distances.h"

namespace revisit {
namespace {

class TimeEngine : public Engine {
 public:
    explicit TimeEngine(const EngineOptions& options) : options_(options), times_(options.bins) {}

    Result<void> add(const BlockBatch& batch) override {
        try {
            times_.add(batch.blocks);
        } catch (const std::bad_alloc&) {
            return fail("not enough memory for the blocks' last accesses");
        }
        return {};
    }
    Result<Profile> finish() override {
        Profile profile;
        profile.method = "time";
        profile.granularity = options_.granularity;
        profile.accesses = static_cast<double>(times_.accesses());
        profile.distinct = static_cast<double>(times_.distinct());
        profile.time = times_.histogram();
        profile.reuse.cold = profile.time->cold;
        return profile;
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
