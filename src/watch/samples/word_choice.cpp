#include "watch/samples/word_choice.h"

#include <algorithm>
#include <bit>

namespace revisit::watch {

void WordHabits::learn(std::uint64_t use_pc, unsigned use_word, std::uint32_t watched,
                       unsigned trapped_word) {
    for (Counts* counts : {&sites_[use_pc], &all_}) {
        for (std::uint32_t left = watched; left != 0; left &= left - 1)
            counts->watched[offset_index(static_cast<unsigned>(std::countr_zero(left)), use_word)]++;
        counts->sprang[offset_index(trapped_word, use_word)]++;
    }
}

double WordHabits::rate(std::uint64_t use_pc, unsigned offset) const {
    // Nothing known: one of four. All sites together count as much as two traps of the site's own.
    constexpr double kUsual = 0.25, kUsualWeight = 4, kOthers = 2;
    double all = (all_.sprang[offset] + kUsual * kUsualWeight) / (all_.watched[offset] + kUsualWeight);
    auto found = sites_.find(use_pc);
    if (found == sites_.end()) return all;
    return (found->second.sprang[offset] + kOthers * all) / (found->second.watched[offset] + kOthers);
}

WatchedWords choose_words(const AccessLog& log, std::uint64_t use_address, std::uint64_t use_pc,
                          unsigned shift, const WordHabits& habits, const VisitStatistics& visits,
                          unsigned most, std::uint64_t most_touches, Random& random) {
    std::uint64_t block = use_address >> shift;
    unsigned words = 1u << (shift - kWordShift);
    std::array<std::uint64_t, kMostBlockWords> touches{};
    std::uint32_t last = 0, counted = 0;
    for (const auto* accesses : {&log.on_the_way(), &log.accesses()})
        for (const LoggedAccess& access : *accesses) {
            if (access.begins) counted = 0;
            std::uint32_t touched = words_of(block, shift, access.address, access.bytes);
            if (touched == 0) continue;
            last = touched;
            for (std::uint32_t left = touched & ~counted; left != 0; left &= left - 1)
                touches[static_cast<unsigned>(std::countr_zero(left))]++;
            counted |= touched;  // an instruction springs a watchpoint once, whatever it touches there
        }
    WatchedWords out;
    out.use_word = last != 0 ? static_cast<unsigned>(std::bit_width(last) - 1)
                             : static_cast<unsigned>((use_address >> kWordShift) & (words - 1));
    auto take = [&](unsigned word) {
        out.address[out.count] = (block << shift) + (std::uint64_t{word} << kWordShift);
        out.touches[out.count++] = touches[word];
        out.mask |= 1u << word;
    };
    most = std::min(most, kMostWatchpoints);
    constexpr double kNearlyAll = 0.98;
    constexpr std::uint64_t kKnown = 32;  // visits
    auto is_enough = [&] {
        return out.count > 0 && visits.known(use_pc) >= kKnown &&
               visits.share_seen(use_pc, out.mask) >= kNearlyAll;
    };
    for (bool all : {false, true}) {
        std::array<unsigned, kMostBlockWords> free{};
        unsigned left = 0;
        for (unsigned word = 0; word < words; word++)
            if (!(out.mask >> word & 1) && (all || touches[word] <= most_touches)) free[left++] = word;
        while (out.count < most && left > 0 && !is_enough()) {
            unsigned at = random.below(left);
            // By habit but for the last one or two, which are drawn by lot.
            if (out.count + 1 + random.below(2) < most) {
                double best = -1;
                for (unsigned i = 0, start = random.below(left); i < left; i++) {
                    unsigned k = (start + i) % left;
                    double rate = habits.rate(use_pc, offset_index(free[k], out.use_word));
                    if (rate <= best) continue;
                    best = rate;
                    at = k;
                }
            }
            take(free[at]);
            free[at] = free[--left];
        }
    }
    return out;
}

}  // namespace revisit::watch
