// Time distances only: how many accesses lie between two to the same block. One hash lookup an access,
// nothing to count. A model may turn the histogram into reuse distances afterwards.
#include <unordered_map>

#include "engines/tally.h"

namespace revisit {
namespace {

class TimeEngine : public Engine {
 public:
    explicit TimeEngine(const EngineOptions& options) : options_(options), counter_(options.bins) {}

    Result<void> add(const BlockBatch& batch) override {
        for (std::uint64_t block : batch.blocks) {
            ++now_;
            std::uint64_t& last = last_[block];
            if (last == 0)
                counter_.add_cold();
            else
                counter_.add(now_ - last);
            last = now_;
        }
        return {};
    }
    Result<Profile> finish() override {
        Profile profile;
        profile.method = "time";
        profile.granularity = options_.granularity;
        profile.accesses = static_cast<double>(now_);
        profile.distinct = static_cast<double>(last_.size());
        profile.time = counter_.histogram();
        profile.reuse.cold = profile.time->cold;
        return profile;
    }

 private:
    EngineOptions options_;
    DistanceCounter counter_;
    std::unordered_map<std::uint64_t, std::uint64_t> last_;
    std::uint64_t now_ = 0;
};

}  // namespace

Result<std::unique_ptr<Engine>> make_time(const EngineOptions& options) {
    if (auto good = require_single_model("time", options); !good) return std::unexpected(good.error());
    if (options.sites || options.pairs) return fail("the time method has no sites or pairs; use exact");
    return std::make_unique<TimeEngine>(options);
}

}  // namespace revisit
