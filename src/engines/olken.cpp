// The textbook: a hash from block to the time of its last access, and a balanced tree of those times
// that knows the rank of a key. O(log M) an access. It is the yardstick every speed claim is measured
// against, so it stays honest and simple: the standard library's hash map and libstdc++'s
// order-statistic tree.
//
// Source. Olken 1981; Bennett and Kruskal 1975.
#include <unordered_map>

#include "core/try.h"
#include "engines/rank_tree.h"
#include "engines/tally.h"

namespace revisit {
namespace {

struct LastTouch {
    std::uint64_t time;
    std::uint32_t site;
};

class OlkenEngine : public Engine {
 public:
    explicit OlkenEngine(const EngineOptions& options) : tally_(options) {}

    Result<void> add(const BlockBatch& batch) override {
        for (std::size_t i = 0; i < batch.count(); ++i, ++now_) {
            std::uint32_t site = batch.sites.empty() ? 0 : batch.sites[i];
            bool write = !batch.flags.empty() && (batch.flags[i] & kWrite) != 0;
            auto [found, is_new] = last_.try_emplace(batch.blocks[i], LastTouch{now_, site});
            if (is_new) {
                tally_.add_cold(site, write);
            } else {
                LastTouch& before = found->second;
                std::uint64_t distance = times_.size() - 1 - times_.order_of_key(before.time);
                tally_.add_reuse(distance, now_ - before.time, before.site, site, write);
                times_.erase(before.time);
                before = {now_, site};
            }
            times_.insert(now_);
        }
        return {};
    }
    Result<Profile> finish() override { return tally_.profile("olken", last_.size()); }
    Result<Histogram> reuse_so_far() override { return tally_.reuse(); }

 private:
    Tally tally_;
    std::unordered_map<std::uint64_t, LastTouch> last_;
    RankTree times_;
    std::uint64_t now_ = 0;
};

}  // namespace

Result<std::unique_ptr<Engine>> make_olken(const EngineOptions& options) {
    TRY(require_single_model("olken", options));
    return std::make_unique<OlkenEngine>(options);
}

}  // namespace revisit
