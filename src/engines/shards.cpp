// Estimates for huge traces: spatially hashed sampling (SHARDS).
//
// Problem. Exact analysis of a trace of 10^12 accesses takes hours; a miss-ratio curve to a percent is
// often enough.
// Idea. Follow only the blocks whose hash lies below a threshold, a share R of all blocks, with every
// access to them. Among d blocks between a use and a reuse, about d R are followed: the distance within
// the sample, divided by R, is the distance. Cost: a hash and a comparison an access, and the exact
// engine for a share R of them. Fixed size. Where the number of blocks is not known, the threshold
// falls as blocks come: of more than S followed blocks, the one with the largest hash is let go and its
// hash becomes the threshold. Each reuse counts 1/R of its own moment. Memory is bounded whatever the
// trace. Error. Stated per bin, 95 %, from how much groups of blocks differ (GroupedHistogram).
// Distances below 1/R cannot be distinguished, and a cliff in the curve (a cyclic scan) is blurred by
// about 1/sqrt(d R). Source. Waldspurger et al., Efficient MRC Construction with SHARDS, FAST 2015,
// with its -adj correction.
#include "engines/shards.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <unordered_map>

#include "core/try.h"
#include "engines/rank_tree.h"
#include "engines/tally.h"

namespace revisit {
namespace {

constexpr double kHashes = 4294967296.0;  // the threshold is compared with 32 bits

class BlockHash {
 public:
    explicit BlockHash(std::uint64_t seed) : start_(seed * 0x9e3779b97f4a7c15u) {}
    std::uint64_t operator()(std::uint64_t block) const {
        std::uint64_t x = block + start_;
        x = (x ^ x >> 32) * 0xd6e8feb86659fd93u;
        x = (x ^ x >> 29) * 0x94d049bb133111ebu;
        return x ^ x >> 32;
    }
    static std::uint64_t rank(std::uint64_t hash) { return hash >> 32; }
    static unsigned group(std::uint64_t hash) { return hash % GroupedHistogram::kGroups; }

 private:
    std::uint64_t start_;
};

Profile estimated(const EngineOptions& options, const GroupedHistogram& counts, double accesses,
                  double distinct, double samples, double rate) {
    Profile profile;
    profile.method = "shards";
    profile.granularity = options.granularity;
    profile.accesses = accesses;
    profile.distinct = distinct;
    profile.reuse = counts.histogram(options.bins, accesses);
    profile.sampled = Sampling{1 / rate, samples, 0};
    profile.notes.push_back(
        fmt::format("an estimate from the blocks whose hash lies in a share {:.4g}: distances below "
                    "{:.0f} are not resolved; errors are 95 %, from {} groups of blocks",
                    rate, std::ceil(1 / rate), GroupedHistogram::kGroups));
    return profile;
}

class FixedRate : public Engine {
 public:
    FixedRate(const EngineOptions& options, std::unique_ptr<Engine> exact)
        : options_(options),
          hash_(options.seed),
          threshold_(static_cast<std::uint64_t>(std::ceil(options.shards.rate * kHashes))),
          exact_(std::move(exact)),
          blocks_(kPiece),
          groups_(kPiece) {}

    Result<void> add(const BlockBatch& batch) override {
        accesses_ += batch.count();
        for (std::size_t at = 0; at < batch.count(); at += kPiece) {
            std::size_t kept = 0;
            for (std::uint64_t block : batch.blocks.subspan(at, std::min(kPiece, batch.count() - at))) {
                const std::uint64_t hash = hash_(block);
                blocks_[kept] = block;
                groups_[kept] = BlockHash::group(hash);
                kept += BlockHash::rank(hash) < threshold_;
            }
            samples_ += kept;
            TRY(exact_->add({{blocks_.data(), kept}, {groups_.data(), kept}, {}, {}}));
        }
        return {};
    }

    // The exact engine counted by site, and a site was a group.
    Result<Profile> finish() override {
        auto sample = exact_->finish();
        if (!sample) return sample;
        const double rate = static_cast<double>(threshold_) / kHashes;
        GroupedHistogram counts;
        for (const Site& group : sample->sites) {
            counts.add_cold(group.id, group.reuse.cold / rate);
            for (const Bin& bin : group.reuse.bins) {
                const auto distance =
                    static_cast<std::uint64_t>(static_cast<double>(bin.low) / rate + 0.5);
                counts.add(options_.bins.low_edge(distance), group.id, bin.count / rate);
            }
        }
        return estimated(options_, counts, static_cast<double>(accesses_), sample->distinct / rate,
                         static_cast<double>(samples_), rate);
    }

 private:
    static constexpr std::size_t kPiece = 4096;
    EngineOptions options_;
    BlockHash hash_;
    std::uint64_t threshold_;
    std::unique_ptr<Engine> exact_;
    std::vector<std::uint64_t> blocks_;
    std::vector<std::uint32_t> groups_;
    std::uint64_t accesses_ = 0;
    std::uint64_t samples_ = 0;
};

class FixedSize : public Engine {
 public:
    explicit FixedSize(const EngineOptions& options)
        : options_(options),
          hash_(options.seed),
          threshold_(static_cast<std::uint64_t>(std::ceil(options.shards.rate * kHashes))) {}

    Result<void> add(const BlockBatch& batch) override {
        for (std::uint64_t block : batch.blocks) {
            const std::uint64_t hash = hash_(block);
            if (BlockHash::rank(hash) < threshold_) follow(block, hash);
        }
        accesses_ += batch.count();
        return {};
    }

    Result<Profile> finish() override {
        const double rate = static_cast<double>(threshold_) / kHashes;
        return estimated(options_, counts_, static_cast<double>(accesses_),
                         static_cast<double>(last_.size()) / rate, static_cast<double>(now_), rate);
    }

 private:
    void follow(std::uint64_t block, std::uint64_t hash) {
        const double rate = static_cast<double>(threshold_) / kHashes;
        const unsigned group = BlockHash::group(hash);
        auto [found, is_new] = last_.try_emplace(block, now_);
        if (is_new) {
            counts_.add_cold(group, 1 / rate);
            by_hash_.emplace(BlockHash::rank(hash), block);
        } else {
            const std::uint64_t between = times_.size() - 1 - times_.order_of_key(found->second);
            const auto distance = static_cast<std::uint64_t>(static_cast<double>(between) / rate + 0.5);
            counts_.add(options_.bins.low_edge(distance), group, 1 / rate);
            times_.erase(found->second);
            found->second = now_;
        }
        times_.insert(now_++);
        if (last_.size() > options_.shards.most_blocks) let_go();
    }
    void let_go() {
        threshold_ = std::max<std::uint64_t>(1, by_hash_.rbegin()->first);
        while (!by_hash_.empty() && by_hash_.rbegin()->first >= threshold_) {
            const auto most = std::prev(by_hash_.end());
            const auto gone = last_.find(most->second);
            times_.erase(gone->second);
            last_.erase(gone);
            by_hash_.erase(most);
        }
    }

    EngineOptions options_;
    BlockHash hash_;
    std::uint64_t threshold_;
    std::unordered_map<std::uint64_t, std::uint64_t> last_;
    std::set<std::pair<std::uint64_t, std::uint64_t>> by_hash_;
    RankTree times_;
    GroupedHistogram counts_;
    std::uint64_t now_ = 0;
    std::uint64_t accesses_ = 0;
};

}  // namespace

Histogram GroupedHistogram::histogram(const Binning& binning, double total) const {
    // The variance of a sum of groups that are alike is that of the groups times their number.
    auto sum = [](const Shares& shares) {
        double out = 0;
        for (double share : shares) out += share;
        return out;
    };
    auto error = [&](const Shares& shares) {
        const double mean = sum(shares) / kGroups;
        double squares = 0;
        for (double share : shares) squares += (share - mean) * (share - mean);
        return 1.96 * std::sqrt(squares * kGroups / (kGroups - 1));
    };
    Histogram out;
    out.cold = sum(cold_);
    out.cold_error = error(cold_);
    for (const auto& [low, shares] : bins_)
        out.bins.push_back({low, binning.high_edge(low), sum(shares), error(shares)});
    double missing = total - out.total();
    if (missing > 0 && (out.bins.empty() || out.bins.front().low != 0) && out.total() > 0)
        out.bins.insert(out.bins.begin(), {0, binning.high_edge(0), 0, 0});
    for (Bin& bin : out.bins) {
        const double change = std::max(missing, -bin.count);
        bin.count += change;
        missing -= change;
        if (missing == 0) break;
    }
    std::erase_if(out.bins, [](const Bin& bin) { return bin.count <= 0; });
    return out;
}

Result<std::unique_ptr<Engine>> make_shards(const EngineOptions& options) {
    TRY(require_single_model("shards", options));
    if (options.time || options.sites || options.pairs)
        return fail("the shards method has no time distances, sites or pairs; use exact or sample");
    if (!(options.shards.rate > 0 && options.shards.rate <= 1))
        return fail(
            fmt::format("expected a rate above 0 and at most 1, found {}", options.shards.rate));
    if (options.shards.most_blocks != 0) return std::make_unique<FixedSize>(options);
    EngineOptions inner = options;
    inner.bins = Binning::exact();
    inner.sites = true;
    inner.threads = 1;
    auto exact = make_engine("exact", inner);
    if (!exact) return exact;
    return std::make_unique<FixedRate>(options, std::move(*exact));
}

}  // namespace revisit
