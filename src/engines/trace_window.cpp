#include "engines/trace_window.h"

#include <numeric>
#include <unordered_set>

#include "core/parallel.h"
#include "engines/touch_stretches.h"

namespace revisit {

// Few blocks are kept, so that a cache line's worth of accesses is passed over at once. What cannot be
// read is not counted here: whoever counts will say so.
FirstTouches estimate_first_touches(const TraceWindow& window, unsigned threads) {
    constexpr unsigned kBits = 10;
    constexpr std::size_t kAtOnce = 64, kPiece = std::size_t{1} << 19;
    if (window.count() == 0) return {};
    auto hash = [](std::uint64_t block) {
        return static_cast<std::uint32_t>(block ^ block >> 32 ^ block >> 15) * 0x9e3779b1u;
    };
    std::vector<std::unordered_set<std::uint64_t>> seen(window.count() / kPiece + 1);
    std::vector<std::size_t> runs(seen.size());
    parallel_for(threads, seen.size(), [&](std::size_t piece) {
        const std::size_t from = std::min(piece * kPiece, window.count());
        auto look = [&](const BlockBatch& batch) -> Result<void> {
            for (auto rest = batch.blocks; rest.size() >= kAtOnce; rest = rest.subspan(kAtOnce)) {
                std::uint32_t least = ~0u;
                runs[piece] += consecutive<kAtOnce>(rest.data());
                for (std::size_t j = 0; j < kAtOnce; ++j) least = std::min(least, hash(rest[j]));
                if (least >> (32 - kBits) != 0) continue;
                for (std::uint64_t block : rest.first(kAtOnce))
                    if (hash(block) >> (32 - kBits) == 0) seen[piece].insert(block);
            }
            return {};
        };
        (void)window.part(from, std::min(kPiece, window.count() - from)).each(look);
    });
    for (std::size_t piece = 1; piece < seen.size(); ++piece) seen[0].merge(seen[piece]);
    const auto accesses = static_cast<double>(window.count());
    const double share = static_cast<double>(seen[0].size() << kBits) / accesses;
    const auto in_runs = static_cast<double>(kAtOnce * std::reduce(runs.begin(), runs.end()));
    return {share, std::min(share, in_runs / accesses), false};
}

bool only_repeats(const TraceWindow& window) {
    constexpr std::size_t kPlaces = 64, kEach = 17;
    if (window.count() < 2 * kPlaces * kEach) return false;
    std::size_t repeats = 0, pairs = 0;
    for (std::size_t i = 0; i < kPlaces; ++i) {
        const auto looked_at = window.part(window.count() / kPlaces * i, kEach)
                                   .each([&](const BlockBatch& batch) -> Result<void> {
                                       for (std::size_t j = 1; j < batch.count(); ++j)
                                           repeats += batch.blocks[j] == batch.blocks[j - 1];
                                       pairs += batch.count() - 1;
                                       return {};
                                   });
        if (!looked_at) return false;
    }
    return repeats * 16 > pairs * 15;
}

}  // namespace revisit
