#include "engines/chunk_resolver.h"

#include <algorithm>

#include "engines/time_distances.h"

namespace revisit {

ChunkResolver::ChunkResolver(const EngineOptions& options, unsigned threads, unsigned parts)
    : options_(options), crew_(threads), stack_(crew_, parts, options.pairs, options.time) {
    if (attributes()) sites_.emplace(options);
}

ChunkResolver::Share ChunkResolver::make_share() const {
    Share share;
    if (attributes()) share.sites = SiteAttribution::piece(options_, 0);
    if (options_.time) share.times.emplace(options_.bins, TimeDistances::kDenseTimes);
    return share;
}

void ChunkResolver::count_found(Share& share, const FoundTouches& found, const CountedChunk& chunk,
                                const BlockBatch& window, std::uint64_t begin) const {
    const std::uint32_t* const at = chunk.first_at.data() + found.first;
    constexpr std::size_t kAtOnce = 256;
    std::uint64_t spans[kAtOnce];
    for (std::size_t low = 0; low < found.places.size(); low += kAtOnce) {
        const std::size_t high = std::min(low + kAtOnce, found.places.size());
        std::size_t reuses = 0;
        for (std::size_t i = low; i < high; ++i) {
            const std::uint64_t place = found.places[i], time = chunk.begin + at[i];
            if (share.times && place != 0) spans[reuses++] = time - stack_.last_time(place);
            if (!share.sites) continue;
            const std::uint32_t site = !chunk.first_sites.empty() ? chunk.first_sites[found.first + i]
                                       : window.sites.empty()     ? 0
                                                                  : window.sites[time - begin];
            const std::uint32_t use = options_.pairs && place != 0 ? stack_.last_site(place) : 0;
            share.sites->add_found(
                {time, site, use, place == 0 ? SiteAttribution::kCold : found.distances[i]});
        }
        if (share.times) share.times->add(std::span<const std::uint64_t>(spans, reuses));
    }
}

Result<void> ChunkResolver::resolve(std::optional<ChunkTouches> before, std::span<CountedChunk> chunks,
                                    const BlockBatch& window, std::uint64_t begin) {
    std::size_t first_touches = before ? before->count() : 0;
    std::vector<ChunkTouches> touches;
    if (before) touches.push_back(std::move(*before));
    const std::size_t first = touches.size();
    std::vector<DistanceTable> tables;
    for (CountedChunk& chunk : chunks) {
        first_touches += chunk.touches.count();
        touches.push_back(std::move(chunk.touches));
        tables.push_back(std::move(chunk.distances));
    }
    if (stack_.live() + first_touches > StackParts::kMostPlaces)
        return fail(ErrorCode::no_threads, "more blocks than several threads can count");

    std::mutex guard;
    std::vector<Share> shares;  // those that nobody uses
    auto use = [&](const FoundTouches& found) {
        if (found.chunk < first) return;
        Share share;
        {
            std::lock_guard lock(guard);
            if (!shares.empty()) {
                share = std::move(shares.back());
                shares.pop_back();
            } else {
                share = make_share();
            }
        }
        count_found(share, found, chunks[found.chunk - first], window, begin);
        std::lock_guard lock(guard);
        shares.push_back(std::move(share));
    };
    if (wants_times_of_touches())
        stack_.resolve(touches, tables, use);
    else
        stack_.resolve(touches, tables);

    for (std::size_t k = 0; k < chunks.size(); ++k) add_counts(tables[k], chunks[k].times);
    std::vector<SiteAttribution> pieces;
    for (CountedChunk& chunk : chunks)
        if (chunk.sites) pieces.push_back(std::move(*chunk.sites));
    const std::size_t of_chunks = pieces.size();
    for (Share& share : shares) {
        if (share.times) time_.merge(share.times->histogram());
        if (share.sites) pieces.push_back(std::move(*share.sites));
    }
    if (sites_) sites_->add_pieces(pieces, of_chunks);
    return {};
}

void ChunkResolver::add_counts(const DistanceTable& distances,
                               const std::optional<DistanceTable>& times) {
    Histogram histogram = distances.histogram();
    histogram.cold = 0;  // first touches of a chunk; what is cold is counted at the end
    reuse_.merge(histogram);
    if (times) time_.merge(times->histogram());
}

}  // namespace revisit
