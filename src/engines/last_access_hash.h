// Block → value of its last access, for ids that lie anywhere in 64 bits: a hash that grows in place.
//
// Idea. A bucket is one cache line of five 12-byte entries (four of 16 with 64-bit values), so a lookup
// is one prefetched line. The home bucket is hash × buckets / 2^64: any number of buckets will do, and
// growing by a quarter moves every entry a little further up. So the table grows in place, from its end
// downwards, reading and writing in order, and is never less than 0.7 full: 12.8 / 0.7 = 18 bytes a
// block at most, during growth as well. An entry that finds its bucket full lives in the next with
// room. Such entries are few (a tenth at 0.85) but their second line was not prefetched, so a batch
// looks at all home buckets first and visits the others, prefetched by then, in a second round. A value
// of 0 means empty; entries fill a bucket from the front and are never removed.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "engines/growing_array.h"
#include "engines/simd.h"

namespace revisit {

template <class Value>
class LastAccessHash {
 public:
    struct Slot {};  // nothing is remembered between locating and exchanging: growth moves entries

    LastAccessHash() { resize(64); }

    REVISIT_INLINE void locate(const std::uint64_t* blocks, unsigned count, Slot*) {
        for (unsigned j = 0; j < count; j++) __builtin_prefetch(&buckets_[home(blocks[j])], 1, 2);
    }

    template <class Next>
    REVISIT_INLINE void exchange(const std::uint64_t* blocks, const Slot*, unsigned count,
                                 Value* previous, Next next) {
        reserve(count);
        unsigned displaced[64];
        unsigned displaced_count = 0;
        Bucket* const buckets = buckets_.data();
        for (unsigned j = 0; j < count; j++) {
            Bucket& bucket = buckets[home(blocks[j])];
            const unsigned slot = bucket.find(blocks[j]);
            if (slot < kSlots) [[likely]] {
                previous[j] = bucket.value[slot];
                bucket.value[slot] = next(j);
                count_ += previous[j] == 0;  // block 0 "is found" in an empty entry
            } else if (bucket.value[kSlots - 1] == 0) {
                previous[j] = 0;
                bucket.append(blocks[j], next(j));
                count_++;
            } else {
                displaced[displaced_count++] = j;
                __builtin_prefetch(&bucket + 1, 1, 3);
            }
        }
        for (unsigned i = 0; i < displaced_count; i++) {
            const unsigned j = displaced[i];
            previous[j] = exchange_displaced(blocks[j], next(j));
        }
    }

    void insert(std::uint64_t block, Value value) {
        reserve(1);
        count_++;
        if (!place(block, value, home(block))) place(block, value, 0);
    }

    template <class Prepare, class Replace>
    void transform(Prepare prepare, Replace replace) {
        constexpr std::size_t kAtOnce = 64;
        for (std::size_t low = 0; low < bucket_count_; low += kAtOnce) {
            const std::size_t high = std::min(low + kAtOnce, bucket_count_);
            for (std::size_t b = low; b < high; b++)
                for (Value value : buckets_[b].value) prepare(value);
            for (std::size_t b = low; b < high; b++)
                for (Value& value : buckets_[b].value) {
                    if (value == 0) break;
                    value = replace(value);
                }
        }
    }

    template <class Take>
    void drain(Take take) {
        constexpr std::size_t kBucketsAtOnce = (std::size_t{2} << 20) / sizeof(Bucket);
        for (std::size_t b = 0; b < bucket_count_; b++) {
            for (unsigned s = 0; s < kSlots && buckets_[b].value[s] != 0; s++)
                take(buckets_[b].key[s], buckets_[b].value[s]);
            if ((b + 1) % kBucketsAtOnce == 0) buckets_.release(b + 1 - kBucketsAtOnce, b + 1);
        }
        *this = LastAccessHash();
    }

    std::size_t count() const { return count_; }
    std::size_t bytes() const { return bucket_count_ * sizeof(Bucket); }
    bool crowded() const { return false; }

 private:
    static constexpr unsigned kSlots = sizeof(Value) == 4 ? 5 : 4;
    static constexpr double kFullest = 0.88;
    static constexpr std::size_t kDoubleBelow = (std::size_t{4} << 20) / 64;  // buckets

    struct alignas(64) Bucket {
        std::uint64_t key[kSlots];
        Value value[kSlots];

        // The first entry that holds the block, kSlots when none does. No branch: which it is, is
        // random.
        REVISIT_INLINE unsigned find(std::uint64_t block) const {
            unsigned hits = 1u << kSlots;
            for (unsigned s = 0; s < kSlots; s++) hits |= unsigned{key[s] == block} << s;
            return static_cast<unsigned>(std::countr_zero(hits));
        }
        void append(std::uint64_t block, Value v) {
            unsigned slot = 0;
            while (value[slot] != 0) slot++;
            key[slot] = block;
            value[slot] = v;
        }
    };
    static_assert(sizeof(Bucket) == 64);

    REVISIT_INLINE std::size_t home(std::uint64_t block) const { return home(block, bucket_count_); }
    REVISIT_INLINE static std::size_t home(std::uint64_t block, std::size_t buckets) {
        const std::uint64_t hash = (block ^ block >> 32) * 0x9e3779b97f4a7c15u;
        return static_cast<std::size_t>(static_cast<unsigned __int128>(hash) * buckets >> 64);
    }
    std::size_t after(std::size_t bucket) const { return bucket + 1 == bucket_count_ ? 0 : bucket + 1; }

    void reserve(std::size_t more) {
        if (count_ + more > limit_) [[unlikely]]
            grow();
    }

    [[gnu::noinline]] Value exchange_displaced(std::uint64_t block, Value value) {
        for (std::size_t b = after(home(block));; b = after(b)) {
            Bucket& bucket = buckets_[b];
            const unsigned slot = bucket.find(block);
            if (slot < kSlots) {
                count_ += bucket.value[slot] == 0;
                return std::exchange(bucket.value[slot], value);
            }
            if (bucket.value[kSlots - 1] == 0) {
                bucket.append(block, value);
                count_++;
                return 0;
            }
        }
    }

    // Into the first bucket with room from `b` on; false when there is none up to the end.
    bool place(std::uint64_t block, Value value, std::size_t b) {
        while (buckets_[b].value[kSlots - 1] != 0)
            if (++b == bucket_count_) return false;
        buckets_[b].append(block, value);
        return true;
    }

    void resize(std::size_t buckets) {
        buckets_.require(buckets);
        bucket_count_ = buckets;
        limit_ = static_cast<std::size_t>(kFullest * kSlots * static_cast<double>(buckets));
    }

    // Entries move up, except a few: those that overflowed from below and those that went round the end
    // to the front. An entry waits until all buckets were cleared when its new place is not clear yet.
    [[gnu::noinline]] void grow() {
        const std::size_t old = bucket_count_;
        resize(old < kDoubleBelow ? old * 2 : old + old / 4);
        std::vector<std::pair<std::uint64_t, Value>> waiting;
        for (std::size_t b = old; b-- > 0;) {
            const Bucket bucket = std::exchange(buckets_[b], Bucket{});
            for (unsigned s = 0; s < kSlots && bucket.value[s] != 0; s++) {
                const std::size_t to = home(bucket.key[s]);
                if (to < b || !place(bucket.key[s], bucket.value[s], to))
                    waiting.emplace_back(bucket.key[s], bucket.value[s]);
            }
        }
        for (const auto& [block, value] : waiting)
            if (!place(block, value, home(block))) place(block, value, 0);
    }

    GrowingArray<Bucket> buckets_;
    std::size_t bucket_count_ = 0;
    std::size_t count_ = 0;
    std::size_t limit_ = 0;
};

}  // namespace revisit
