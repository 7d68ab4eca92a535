#include "watch/estimate/unwatched.h"

#include <algorithm>
#include <bit>
#include <vector>

namespace revisit::watch {
namespace {

template <class Take>
void for_words(std::uint32_t words, unsigned use_word, Take take) {
    for (; words != 0; words &= words - 1)
        take(offset_index(static_cast<unsigned>(std::countr_zero(words)), use_word));
}

}  // namespace

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
    all_ = fit(traps, even, kOfAll);
    for (const auto& [pc, own] : by_site) sites_[pc] = fit(own, all_, kOfSite);
}

double UnwatchedWords::scale(const Sample& sample) const {
    constexpr double kLeast = 0.1;
    std::uint32_t every = static_cast<std::uint32_t>((std::uint64_t{1} << words_) - 1);
    if (sample.watched_words == 0 || (sample.watched_words & every) == every) return 1;
    auto found = sites_.find(sample.use_pc);
    const Chances& chances = found == sites_.end() ? all_ : found->second;
    double seen = 0, all = 0;
    for_words(sample.watched_words & every, sample.use_word, [&](unsigned k) { seen += chances[k]; });
    for_words(every, sample.use_word, [&](unsigned k) { all += chances[k]; });
    double by_traps = all > 0 ? seen / all : 1;
    double by_visits = samples_.visits.share_seen(sample.use_pc, sample.watched_words);
    return std::clamp(std::max(by_traps, by_visits), kLeast, 1.0);
}

}  // namespace revisit::watch
