// Which of very many keys occur often enough to be distinguished.
//
// Problem. A program has millions of (instruction, call path, data object) combinations and as many
// pairs of them, of which a few thousand make up nearly all accesses. Keeping a counter for each took
// 8 GB for `python3 -c 'import numpy'`. Idea. The first `free` keys are kept at once, so small programs
// lose nothing. From then on a key has to earn its place: a table of counters indexed by the key's hash
// counts what it was met with, and the key is admitted when that reaches a share of everything so far.
//
// Example. free = 2, share = 1/4: keys A and B are admitted when met; C, met at times 3, 6 and 7, needs
// 7/4 accesses by then and is admitted at its second occurrence; D, met once at time 8, never is.
//
// Bound. Each admission after the first ones consumes share × time of the counts, so at most
// 1/share × ln(end / start) keys are admitted, and never more than `most`. A key that makes up more
// than `share` of a run is always admitted. Keys that fall on the same counter are admitted sooner.
// Cost. One multiplication and one load from a table of 1 MiB. Source. A count-min sketch (Cormode and
// Muthukrishnan 2005) of one row, with the admission rule of lossy counting (Manku and Motwani 2002).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace revisit {

struct FrequentLimits {
    std::size_t free;         // keys admitted at once
    std::size_t most;         // keys admitted in all
    unsigned share_bits;      // later ones: at 2^-share_bits of all accesses so far
    std::uint32_t least = 4;  // and at least so many
};

class FrequentKeys {
 public:
    explicit FrequentKeys(const FrequentLimits& limits) : limits_(limits) {}

    // A key that is not admitted yet occurs in `weight` accesses; `time` accesses were made so far.
    bool admit(std::uint64_t key, std::uint64_t weight, std::uint64_t time) {
        if (admitted_ < limits_.free) return ++admitted_, true;
        if (admitted_ >= limits_.most) return false;
        if (counters_.empty()) counters_.resize(std::size_t{1} << kBits);
        std::uint64_t& counter = counters_[(key ^ key >> 29) * 0x9e3779b97f4a7c15u >> (64 - kBits)];
        counter += weight;
        if (counter < std::max<std::uint64_t>(limits_.least, time >> limits_.share_bits)) return false;
        counter = 0;
        return ++admitted_, true;
    }
    std::size_t admitted() const { return admitted_; }
    bool is_selective() const { return admitted_ >= limits_.free; }

 private:
    static constexpr unsigned kBits = 17;

    FrequentLimits limits_;
    std::size_t admitted_ = 0;
    std::vector<std::uint64_t> counters_;
};

}  // namespace revisit
