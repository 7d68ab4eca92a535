// Block → value of its last access, for ids that lie anywhere in 64 bits: a hash that grows in place.
//
// Idea. A bucket is one cache line, so a lookup is one prefetched line. The home bucket is
// hash × buckets / 2^64: any number of buckets will do, and growing by a quarter moves every entry a
// little further up. So the table grows in place, from its end downwards, reading and writing in order,
// and needs no second table while it does.
//
// Entries are 10 bytes, six a bucket: the hash is one to one, its high bits follow from the bucket, and
// only the lower 48 are stored beside the 32-bit value. That takes more than 2^16 buckets; smaller
// tables store all 64 bits, five entries a bucket (Tag below). 14.8 bytes a block when full; how many
// after growing is the caller's choice, a lookup being a little dearer in a full table.
//
// An entry that finds its bucket full lives in one of the next 15, and the bucket notes how far from
// home each entry is. Such entries are few (3 to 7 %) but their line was not prefetched: a batch looks
// at all home buckets first and visits the others, prefetched by then, in a second round. One that is
// met again changes places with the oldest entry at home, so what is used often is found at once. An
// entry that finds no place at all goes to a map: ids would have to be chosen against the hash for that
// to happen.
//
// Entries are never removed. A value is never 0.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engines/growing_array.h"
#include "engines/simd.h"

namespace revisit {

// Tag: the type that holds the stored bits of the hash above the lowest 32.
template <class Value, class Tag>
class LastAccessHash {
 public:
    static constexpr bool kWholeHash = sizeof(Tag) == 4;
    static constexpr std::size_t kLeastBuckets = kWholeHash ? 64 : 0x11000;
    struct Slot {};  // nothing is remembered between locating and exchanging: growth moves entries

    // At most so many bytes a block after growth, when there are many.
    explicit LastAccessHash(double bytes_per_block = 18.4) : bytes_per_block_(bytes_per_block) {
        resize(kLeastBuckets);
    }

    REVISIT_INLINE void locate(const std::uint64_t* blocks, unsigned count, Slot*) {
        for (unsigned j = 0; j < count; j++) __builtin_prefetch(&buckets_[home(hash(blocks[j]))], 1, 2);
    }

    // previous[j] = what was stored for block j, 0 when nothing was; next(j) takes its place. Blocks
    // that are not at home wait for finish(), which must come before the next exchange().
    template <class Next>
    REVISIT_INLINE void exchange(const std::uint64_t* blocks, const Slot*, unsigned count,
                                 Value* previous, Next next) {
        reserve(count);
        Bucket* const buckets = buckets_.data();
        unsigned away_count = 0, fresh = 0;
        for (unsigned j = 0; j < count; j++) {
            const std::uint64_t h = hash(blocks[j]);
            Bucket& bucket = buckets[home(h)];
            const unsigned s = bucket.find(h);
            if (s < kSlots && bucket.is(s, h, 0)) [[likely]] {
                previous[j] = std::exchange(bucket.value[s], next(j));
            } else if (bucket.used() < kSlots && s == kSlots) {
                bucket.append(h, next(j), 0);
                previous[j] = 0;
                fresh++;
            } else {
                previous[j] = 0;  // until finish()
                away_[away_count++] = static_cast<std::uint8_t>(j);
                __builtin_prefetch(&bucket + 1, 1, 3);
            }
        }
        away_count_ = away_count;
        count_ += fresh;
    }
    template <class Next>
    REVISIT_INLINE void finish(const std::uint64_t* blocks, Value* previous, Next next) {
        for (unsigned i = 0; i < away_count_; i++) {
            const unsigned j = away_[i];
            previous[j] = exchange_away(hash(blocks[j]), next(j));
        }
        away_count_ = 0;
    }

    // A block that is not in the table yet.
    void insert(std::uint64_t block, Value value) {
        reserve(1);
        count_++;
        place(hash(block), value);
    }

    // Replaces every stored value v by replace(v); prepare(v) is called for some hundred values before
    // the first of them is replaced, so that it can prefetch.
    template <class Prepare, class Replace>
    void transform(Prepare prepare, Replace replace) {
        constexpr std::size_t kAtOnce = 64;
        for (std::size_t low = 0; low < total(); low += kAtOnce) {
            const std::size_t high = std::min(low + kAtOnce, total());
            for (std::size_t b = low; b < high; b++)
                for (Value value : buckets_[b].value) prepare(value);
            for (std::size_t b = low; b < high; b++)
                for (unsigned s = 0; s < buckets_[b].used(); s++)
                    buckets_[b].value[s] = replace(buckets_[b].value[s]);
        }
        for (auto& [h, value] : strays_) value = replace(value);
    }

    // Hands every (block, value) to `take`, in the order of their hashes, and gives the memory back on
    // the way.
    template <class Take>
    void drain(Take take) {
        constexpr std::size_t kAtOnce = (std::size_t{2} << 20) / sizeof(Bucket);
        for (std::size_t b = 0; b < total(); b++) {
            for (unsigned s = 0; s < buckets_[b].used(); s++)
                take(block(hash_of(buckets_[b], s, b, bucket_count_)), buckets_[b].value[s]);
            if ((b + 1) % kAtOnce == 0) buckets_.release(b + 1 - kAtOnce, b + 1);
        }
        for (const auto& [h, value] : strays_) take(block(h), value);
        *this = LastAccessHash(bytes_per_block_);
    }

    // Takes the room that so many blocks need, when it is more than there is.
    void expect(std::size_t blocks) {
        if (blocks > limit_) grow(std::max(buckets_for(blocks), grown(bucket_count_)));
    }
    static bool can_hold(std::size_t blocks) {
        return !kWholeHash || buckets_for(blocks) < kMostWholeBuckets / 2;
    }

    std::size_t count() const { return count_; }
    std::size_t bytes() const { return total() * sizeof(Bucket); }
    bool crowded() const { return kWholeHash && bucket_count_ >= kMostWholeBuckets; }

 private:
    static constexpr unsigned kSlots = 60 / (4 + sizeof(Tag) + sizeof(Value));
    static constexpr unsigned kMostAway = 15;
    static constexpr double kFullest = kSlots == 6 ? 0.72 : kSlots == 5 ? 0.8 : 0.9;
    static constexpr std::size_t kHugePage = GrowingBytes::kHugePage / 64;  // buckets
    static constexpr std::size_t kDoubleBelow = std::size_t{1} << 14;
    static constexpr std::size_t kMostWholeBuckets = 0x11000;
    static constexpr std::uint64_t kFactor = 0x9e3779b97f4a7c15u;
    static constexpr std::uint64_t kFactorInverse = 0xf1de83e19937733du;
    static_assert(kFactor * kFactorInverse == 1);

    struct alignas(64) Bucket {
        std::uint32_t low[kSlots];
        Value value[kSlots];
        Tag tag[kSlots];
        std::uint32_t state;  // entries in use, then four bits an entry: how far it is from home

        unsigned used() const { return state & 15; }
        unsigned away(unsigned s) const { return state >> (4 + 4 * s) & 15; }

        // The first entry, used or not, whose lower 32 bits agree; kSlots when none does.
        REVISIT_INLINE unsigned find(std::uint64_t h) const {
            return simd::first_equal<kSlots>(low, static_cast<std::uint32_t>(h));
        }
        REVISIT_INLINE bool is(unsigned s, std::uint64_t h, unsigned how_far) const {
            return (tag[s] == static_cast<Tag>(h >> 32)) & (away(s) == how_far) & (value[s] != 0);
        }
        // As find() and is() together, sure where find() is misled by an equal half.
        unsigned find_surely(std::uint64_t h, unsigned how_far) const {
            for (unsigned s = 0; s < used(); s++)
                if (low[s] == static_cast<std::uint32_t>(h) && is(s, h, how_far)) return s;
            return kSlots;
        }
        REVISIT_INLINE void put(unsigned s, std::uint64_t h, Value v, unsigned how_far) {
            low[s] = static_cast<std::uint32_t>(h);
            tag[s] = static_cast<Tag>(h >> 32);
            value[s] = v;
            state = (state & ~(15u << (4 + 4 * s))) | how_far << (4 + 4 * s);
        }
        REVISIT_INLINE void append(std::uint64_t h, Value v, unsigned how_far) {
            put(used(), h, v, how_far);
            state++;
        }
    };
    static_assert(sizeof(Bucket) == 64);

    // One to one; the high bits, which choose the bucket, depend on all bits of the block.
    REVISIT_INLINE static std::uint64_t hash(std::uint64_t block) {
        return (block ^ block >> 32) * kFactor;
    }
    static std::uint64_t block(std::uint64_t hash) {
        const std::uint64_t mixed = hash * kFactorInverse;
        return mixed ^ mixed >> 32;
    }
    REVISIT_INLINE std::size_t home(std::uint64_t h) const {
        return static_cast<std::size_t>(static_cast<unsigned __int128>(h) * bucket_count_ >> 64);
    }
    // The buckets after the last one take its overflow.
    std::size_t total() const { return bucket_count_ + kMostAway; }

    // The hash of an entry. Where only 48 bits of it are stored, it is the number with these low bits
    // that is nearest to the middle of its home bucket's range: ranges are less than 2^48 wide.
    static std::uint64_t hash_of(const Bucket& bucket, unsigned s, std::size_t b, std::size_t buckets) {
        const std::uint64_t stored = std::uint64_t{bucket.tag[s]} << 32 | bucket.low[s];
        if constexpr (kWholeHash) return stored;
        const std::uint64_t width = ~std::uint64_t{0} / buckets;
        const std::uint64_t middle = (b - bucket.away(s)) * width + width / 2;
        return middle +
               static_cast<std::uint64_t>(static_cast<std::int64_t>((stored - middle) << 16) >> 16);
    }

    void reserve(std::size_t more) {
        if (count_ + more > limit_) [[unlikely]]
            grow(grown(bucket_count_));
    }

    // For a block that exchange() did not find at home. It may be there all the same, under an entry
    // whose lower half is equal.
    [[gnu::noinline]] Value exchange_away(std::uint64_t h, Value value) {
        const std::size_t start = home(h);
        for (unsigned far = 0; far <= kMostAway; far++) {
            Bucket& bucket = buckets_[start + far];
            unsigned s = bucket.find(h);
            if (s < kSlots && !bucket.is(s, h, far)) s = bucket.find_surely(h, far);
            if (s < kSlots) {
                const Value before = std::exchange(bucket.value[s], value);
                if (far > 0) bring_home(buckets_[start], bucket, s, h, far);
                return before;
            }
            if (bucket.used() < kSlots) {
                bucket.append(h, value, far);
                count_++;
                return 0;
            }
        }
        Value& stray = strays_[h];
        count_ += stray == 0;
        return std::exchange(stray, value);
    }

    // Changes places with the oldest entry at home, where that may live as far away.
    void bring_home(Bucket& at_home, Bucket& bucket, unsigned s, std::uint64_t h, unsigned far) {
        const Value* const values = at_home.value;
        const auto oldest = static_cast<unsigned>(std::min_element(values, values + kSlots) - values);
        const unsigned its_far = at_home.away(oldest) + far;
        if (its_far > kMostAway) return;
        const std::uint64_t its_hash = std::uint64_t{at_home.tag[oldest]} << 32 | at_home.low[oldest];
        const Value value = bucket.value[s];
        bucket.put(s, its_hash, at_home.value[oldest], its_far);
        at_home.put(oldest, h, value, 0);
    }

    REVISIT_INLINE void place(std::uint64_t h, Value value) {
        const std::size_t start = home(h);
        for (unsigned far = 0; far <= kMostAway; far++)
            if (buckets_[start + far].used() < kSlots)
                return buckets_[start + far].append(h, value, far);
        strays_[h] = value;
    }

    void resize(std::size_t buckets) {
        buckets_.require(buckets + kMostAway);
        bucket_count_ = buckets;
        limit_ = static_cast<std::size_t>(kFullest * kSlots * static_cast<double>(buckets));
    }

    // From a full table to one that takes the bytes a block it may. Large tables end with a huge page:
    // a page that is only partly usable when first touched would stay a small one for ever.
    std::size_t grown(std::size_t buckets) const {
        if (buckets < kDoubleBelow) return buckets * 2;
        const double factor = std::clamp(bytes_per_block_ * kSlots / 64 * kFullest, 1.125, 2.0);
        const auto wanted = static_cast<std::size_t>(static_cast<double>(buckets) * factor);
        if (wanted < 4 * kHugePage) return wanted;
        const std::size_t pages = (wanted + kMostAway) / kHugePage;
        const std::size_t had = (buckets + kMostAway) / kHugePage;
        return std::max(pages, had + 1) * kHugePage - kMostAway;
    }

    static std::size_t buckets_for(std::size_t blocks) {
        return static_cast<std::size_t>(static_cast<double>(blocks) / (kFullest * kSlots)) + 1;
    }

    // Entries move up or stay where they are; those that overflowed from below may move down, to a
    // bucket that was not cleared yet, and wait.
    [[gnu::noinline]] void grow(std::size_t buckets) {
        const std::size_t old = bucket_count_, old_total = total();
        resize(buckets);
        std::vector<std::pair<std::uint64_t, Value>> waiting(strays_.begin(), strays_.end());
        strays_.clear();
        for (std::size_t b = old_total; b-- > 0;) {
            const Bucket bucket = std::exchange(buckets_[b], Bucket{});
            for (unsigned s = 0; s < bucket.used(); s++) {
                const std::uint64_t h = hash_of(bucket, s, b, old);
                if (home(h) >= b) [[likely]]
                    place(h, bucket.value[s]);
                else
                    waiting.emplace_back(h, bucket.value[s]);
            }
        }
        for (const auto& [h, value] : waiting) place(h, value);
    }

    double bytes_per_block_;
    GrowingArray<Bucket> buckets_;
    std::size_t bucket_count_ = 0;
    std::size_t count_ = 0;
    std::size_t limit_ = 0;
    std::unordered_map<std::uint64_t, Value> strays_;  // by hash
    unsigned away_count_ = 0;
    std::uint8_t away_[64];  // of the batch that was exchanged and not finished
};

}  // namespace revisit
