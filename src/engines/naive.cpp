// The LRU stack as a list, walked from the top: the definition, written down.
//
// O(distance) an access. It exists so that every other engine can disagree with it.
#include <list>

#include "engines/tally.h"

namespace revisit {
namespace {

struct Entry {
    std::uint64_t block;
    std::uint64_t time;
    std::uint32_t site;
};

class NaiveEngine : public Engine {
 public:
    explicit NaiveEngine(const EngineOptions& options) : tally_(options) {}

    Result<void> add(const BlockBatch& batch) override {
        for (std::size_t i = 0; i < batch.count(); ++i, ++now_) {
            std::uint32_t site = batch.sites.empty() ? 0 : batch.sites[i];
            bool write = !batch.flags.empty() && (batch.flags[i] & kWrite) != 0;
            std::uint64_t depth = 0;
            auto found = stack_.begin();
            for (; found != stack_.end() && found->block != batch.blocks[i]; ++found) ++depth;
            if (found == stack_.end()) {
                tally_.add_cold(site, write);
            } else {
                tally_.add_reuse(depth, now_ - found->time, found->site, site, write);
                stack_.erase(found);
            }
            stack_.push_front({batch.blocks[i], now_, site});
        }
        return {};
    }
    Result<Profile> finish() override { return tally_.profile("naive", stack_.size()); }

 private:
    Tally tally_;
    std::list<Entry> stack_;
    std::uint64_t now_ = 0;
};

}  // namespace

Result<std::unique_ptr<Engine>> make_naive(const EngineOptions& options) {
    if (auto good = require_single_model("naive", options); !good) return std::unexpected(good.error());
    return std::make_unique<NaiveEngine>(options);
}

}  // namespace revisit
