#include "engines/trace_window.h"

#include <cmath>
#include <unordered_set>

#include "core/parallel.h"
#include "engines/touch_stretches.h"

namespace revisit {

// Few blocks are kept, so that a cache line's worth of accesses is passed over at once. What cannot be
// read is not counted here: whoever counts will say so.
FirstTouches estimate_first_touches(const TraceWindow& window, std::size_t accesses, unsigned threads) {
    constexpr std::size_t kAtOnce = 64, kPiece = std::size_t{1} << 19;
    if (window.count() == 0) return {};
    const unsigned bits = window.count() < std::size_t{1} << 22 ? 7 : 10;
    auto hash = [](std::uint64_t block) {
        return static_cast<std::uint32_t>(block ^ block >> 32 ^ block >> 15) * 0x9e3779b1u;
    };
    struct Piece {
        std::unordered_set<std::uint64_t> seen;
        std::size_t at_half = 0;  // of them
        std::size_t runs = 0;
    };
    // An even number, or one.
    std::vector<Piece> pieces(window.count() < 2 * kPiece ? 1 : window.count() / kPiece & ~1ull);
    parallel_for(threads, pieces.size(), [&](std::size_t k) {
        Piece& piece = pieces[k];
        const std::size_t low = window.count() * k / pieces.size(),
                          high = window.count() * (k + 1) / pieces.size();
        std::size_t passed = 0;
        auto look = [&](const BlockBatch& batch) -> Result<void> {
            for (auto rest = batch.blocks; rest.size() >= kAtOnce; rest = rest.subspan(kAtOnce)) {
                std::uint32_t least = ~0u;
                piece.runs += consecutive<kAtOnce>(rest.data());
                for (std::size_t j = 0; j < kAtOnce; ++j) least = std::min(least, hash(rest[j]));
                passed += kAtOnce;
                if (least >> (32 - bits) != 0) continue;
                for (std::uint64_t block : rest.first(kAtOnce))
                    if (hash(block) >> (32 - bits) == 0) piece.seen.insert(block);
                if (passed < (high - low) / 2) piece.at_half = piece.seen.size();
            }
            return {};
        };
        (void)window.part(low, high - low).each(look);
    });
    std::unordered_set<std::uint64_t>& all = pieces[0].seen;
    std::size_t at_half = pieces[0].at_half, runs = pieces[0].runs;
    for (std::size_t k = 1; k < pieces.size(); ++k) {
        if (k == pieces.size() / 2) at_half = all.size();
        all.merge(pieces[k].seen);
        runs += pieces[k].runs;
    }
    const auto looked_at = static_cast<double>(window.count());
    const auto stretch = std::max(static_cast<double>(accesses), looked_at);
    const double growth =
        at_half == 0
            ? 1
            : std::clamp(std::log2(static_cast<double>(all.size()) / static_cast<double>(at_half)), 0.0,
                         1.0);
    const double share =
        static_cast<double>(all.size() << bits) / looked_at * std::pow(stretch / looked_at, growth - 1);
    const auto in_runs = static_cast<double>(kAtOnce * runs);
    return {share, std::min(share, in_runs / looked_at), false};
}

bool only_repeats(const TraceWindow& window) {
    constexpr std::size_t kPlaces = 64, kEach = 17;
    if (window.count() < 2 * kPlaces * kEach || window.is_decoded()) return false;
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
