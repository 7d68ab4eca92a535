#include "watch/estimate/unwatched.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

namespace revisit::watch {
namespace {

template <class Take>
void for_words(std::uint32_t words, unsigned use_word, Take take) {
    for (; words != 0; words &= words - 1)
        take(offset_index(static_cast<unsigned>(std::countr_zero(words)), use_word));
}

// What one word has of the chances of all in a set.
template <class Chance>
double share_of(unsigned word, std::uint32_t words, Chance chance) {
    constexpr double kLeast = 1e-3;
    double all = 0;
    for (; words != 0; words &= words - 1)
        all += std::max(kLeast, chance(static_cast<unsigned>(std::countr_zero(words))));
    return std::max(kLeast, chance(word)) / all;
}

}  // namespace

// Words to watch are chosen where traps sprang before, and a fit to few traps finds something in any:
// both make the watched words seem likelier than they are (0.45 to 0.55 of a random gather whose three
// watched words have 0.375). But where each word comes once per round, they are likelier (0.5). So
// traps are believed by three quarters, and wholly where they are far less likely by visits: by a third
// each, and one more.
bool UnwatchedWords::contradict_visits(std::uint64_t pc, std::span<const Trap> traps,
                                       const Chances& chances) const {
    constexpr double kEach = 0.4, kMore = 1;
    double gain = 0;
    for (const Trap& trap : traps) {
        const double by_traps = share_of(trap.trapped_word, trap.watched, [&](unsigned word) {
            return chances[offset_index(word, trap.use_word)];
        });
        const double by_visits = share_of(trap.trapped_word, trap.watched, [&](unsigned word) {
            return samples_.visits.share_seen(pc, 1u << word);
        });
        gain += std::log(by_traps / by_visits);
    }
    return gain > kEach * static_cast<double>(traps.size()) + kMore;
}

UnwatchedWords::Chances UnwatchedWords::fit(std::span<const Trap> traps, const Chances& usual,
                                            double strength) {
    constexpr int kRounds = 60;
    Chances chances = usual;
    for (int round = 0; round < kRounds; round++) {
        Chances sprang{}, exposed{};
        for (const Trap& trap : traps) {
            double sum = 0;
            for_words(trap.watched, trap.use_word, [&](unsigned k) { sum += chances[k]; });
            sprang[offset_index(trap.trapped_word, trap.use_word)] += 1;
            for_words(trap.watched, trap.use_word,
                      [&](unsigned k) { exposed[k] += 1 / std::max(1e-12, sum); });
        }
        for (unsigned k = 0; k < kOffsets; k++)
            chances[k] = (sprang[k] + strength * usual[k]) / (exposed[k] + strength);
    }
    return chances;
}

UnwatchedWords::UnwatchedWords(const Samples& samples, unsigned shift)
    : samples_(samples), words_(1u << (shift - kWordShift)) {
    if (words_ <= 1) return;
    constexpr double kOfAll = 2, kOfSite = 8;  // traps that what is usual counts as
    constexpr double kOfTraps = 0.75;
    std::map<std::uint64_t, std::vector<Trap>> by_site;
    std::vector<Trap> traps;
    for (const auto& [number, thread] : samples.threads)
        for (const Sample& sample : thread.samples) {
            if (sample.watched != Sample::Watched::trapped || sample.watched_words == 0) continue;
            Trap trap{sample.watched_words, sample.use_word, sample.trapped_word};
            if (!(trap.watched >> trap.trapped_word & 1) || trap.use_word >= words_) continue;
            by_site[sample.use_pc].push_back(trap);
            traps.push_back(trap);
        }
    Chances even;
    even.fill(1.0 / words_);
    all_ = {fit(traps, even, kOfAll), kOfTraps};
    for (const auto& [pc, own] : by_site) {
        const Chances chances = fit(own, all_.chances, kOfSite);
        sites_[pc] = {chances, contradict_visits(pc, own, chances) ? 1 : kOfTraps};
    }
}

double UnwatchedWords::scale(const Sample& sample) const {
    constexpr double kLeast = 0.1;
    std::uint32_t every = static_cast<std::uint32_t>((std::uint64_t{1} << words_) - 1);
    if (sample.watched_words == 0 || (sample.watched_words & every) == every) return 1;
    auto found = sites_.find(sample.use_pc);
    const Site& site = found == sites_.end() ? all_ : found->second;
    double seen = 0, all = 0;
    for_words(sample.watched_words & every, sample.use_word,
              [&](unsigned k) { seen += site.chances[k]; });
    for_words(every, sample.use_word, [&](unsigned k) { all += site.chances[k]; });
    double by_traps = all > 0 ? seen / all : 1;
    double by_visits = samples_.visits.share_seen(sample.use_pc, sample.watched_words);
    double more = site.trust * std::max(0.0, by_traps - by_visits);
    return std::clamp(by_visits + more, kLeast, 1.0);
}

}  // namespace revisit::watch
