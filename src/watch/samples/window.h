// The accesses that one look-ahead meets, each with its reuse.
//
// Problem. A look-ahead costs some ten microseconds. To learn the reuse of one access from it wastes
// what it knows of the others. Idea. Every access of its first part is a *use*. Most come back inside
// the window: their time and reuse distances are exact, and all of them are counted. What has not come
// back is *open*: one of these, drawn at random, stands for all and is watched for. So the short
// distances have hundreds of observations a sample and only the tail depends on watchpoints. No use is
// left out, so nothing is biased: a use near the end that is open by accident is watched like any
// other. How. A hash of blocks to their last access, and a bitmap over accesses with a bit for those
// that are their block's last so far: bits between an access and its reuse are the distinct blocks
// there, bits left among the uses at the end are the open ones. Cost. About 6 ns per access. RDX has
// one use a sample; on matrix multiply this has 1024.
#pragma once

#include <string.h>

#include <cstdint>

namespace revisit::watch {

class Window {
 public:
    static constexpr unsigned kMost = 6144;  // accesses

    // At most `length` accesses; 1 to `uses` are uses. All that is used is cleared in one go: the
    // program has driven it out of the cache, and clearing brings it back at a tenth of the cost of
    // missing.
    void start(unsigned uses, unsigned length) {
        uses_ = uses;
        length_ = 0;
        bits_ = 8;
        while (bits_ < kBits && (1u << bits_) < 2 * length) bits_++;
        memset(entries_, 0, sizeof(Entry) << bits_);
        memset(last_, 0, (length / 64 + 1) * sizeof *last_);
        time_.clear(length);
        reuse_.clear(length);
    }

    struct Reuse {
        unsigned time = 0;  // 0 = the block was not met before
        unsigned distinct = 0;
    };

    // The next access.
    Reuse meet(std::uint64_t block) {
        unsigned now = ++length_;
        std::uint64_t hash = block * 0x9e3779b97f4a7c15;
        auto tag = static_cast<std::uint32_t>(hash >> 19);  // with the slot, all but a few bits of it
        unsigned at = static_cast<unsigned>(hash >> (64 - bits_)), mask = (1u << bits_) - 1;
        while (entries_[at].access != 0 && entries_[at].tag != tag) at = (at + 1) & mask;
        Reuse reuse;
        if (unsigned before = entries_[at].access; before != 0) {
            reuse = {now - before, marks_between(before, now)};
            last_[before / 64] &= ~(std::uint64_t{1} << before % 64);
            if (before <= uses_) {
                time_.count(reuse.time);
                reuse_.count(reuse.distinct);
            }
        }
        entries_[at] = {tag, now};
        last_[now / 64] |= std::uint64_t{1} << now % 64;
        return reuse;
    }

    unsigned length() const { return length_; }
    unsigned uses() const { return uses_ < length_ ? uses_ : length_; }
    unsigned open() const { return marks_between(0, uses() + 1); }
    // The k-th open use, from 0.
    unsigned open_use(unsigned k) const {
        for (unsigned i = 0;; i++) {
            auto marks = static_cast<unsigned>(__builtin_popcountll(last_[i]));
            if (k >= marks) {
                k -= marks;
                continue;
            }
            std::uint64_t word = last_[i];
            while (k-- > 0) word &= word - 1;
            return i * 64 + static_cast<unsigned>(__builtin_ctzll(word));
        }
    }

    // How often each distance occurred among the uses that came back.
    class Values {
     public:
        void clear(unsigned length) {
            most_ = 0;
            memset(counts_, 0, (length + 1) * sizeof *counts_);
        }
        void count(unsigned value) {
            counts_[value]++;
            if (value > most_) most_ = value;
        }
        template <class Take>
        void for_each(Take take) const {
            for (unsigned i = 0; i <= most_; i++)
                if (counts_[i] > 0) take(i, counts_[i]);
        }

     private:
        unsigned most_ = 0;
        std::uint16_t counts_[kMost + 1] = {};
    };
    const Values& time() const { return time_; }
    const Values& reuse() const { return reuse_; }

 private:
    static constexpr unsigned kBits = 13;
    static_assert(kMost < (1u << kBits) * 4 / 5);

    struct Entry {
        std::uint32_t tag, access;  // 0 = none
    };

    unsigned marks_between(unsigned low, unsigned high) const {  // both left out
        unsigned from = low + 1, first = from / 64, last = high / 64;
        std::uint64_t begin = ~std::uint64_t{0} << from % 64, end = (std::uint64_t{1} << high % 64) - 1;
        if (first == last)
            return static_cast<unsigned>(__builtin_popcountll(last_[first] & begin & end));
        if (first > last) return 0;
        int count = __builtin_popcountll(last_[first] & begin);
        for (unsigned i = first + 1; i < last; i++) count += __builtin_popcountll(last_[i]);
        return static_cast<unsigned>(count + __builtin_popcountll(last_[last] & end));
    }

    unsigned length_ = 0, uses_ = 0, bits_ = 8;
    std::uint64_t last_[kMost / 64 + 2] = {};
    Values time_, reuse_;
    Entry entries_[1u << kBits] = {};
};

}  // namespace revisit::watch
