// Iterations that are not interpreted: what they count, and what they leave behind.
//
// Problem. The rows of a product repeat, moved by a row each (repeat.cpp), and a few rows give the
// distances of all. But where a product follows another, its rows were touched before, at a distance
// that differs from row to row, and the stack must be what the loop before left. Idea. Of a period that
// stands for those after it, take down which blocks it touches, in the order of first and of last
// touches. A reuse within the loop has the distance it has in that period: it counts as often as the
// period comes. Each period left out is then replayed, its blocks moved: first in the order of first
// touches. What is first touched by the loop there has its own distance, which is right: above it on
// the stack lies all that the loop touched so far, in whatever order, and what was touched before the
// loop lies as it did. That counts once; what was touched in the loop before counts nothing here. Then
// in the order of last touches, counting nothing, which leaves the order of the stack; what does not
// move is touched by every period, and has to be put in order in the last only.
// Example. for (i < 3) A[i] = 1, then for (i < 3) { A[i]; B }. By elements, from the second iteration
// of the second loop on: A[1] moves, B does not. Shown are A[0] B A[1] B; B's reuse, distance 1, counts
// for all iterations but the first. Replayed is A[2]: above it lie A[0], A[1], B: distance 3.
// Cost. Two touches of each moving block per period: for a matrix product its footprint, not its
// accesses.
#include "predict/run/replay.h"

#include <algorithm>

#include "core/try.h"

namespace revisit::predict {
namespace {

// Classes of sites, three to a loop: the iterations shown, the period that counts more than once, and
// what is replayed. Loop 0 is what belongs to none.
enum Class : std::uint32_t { shown, counted, replayed };

constexpr std::size_t kBatchBlocks = 1 << 14;

void add(Histogram& to, const Histogram& from, double weight) {
    Histogram part = from;
    part.cold *= weight;
    for (Bin& bin : part.bins) bin.count *= weight;
    to.merge(part);
}

}  // namespace

Result<Replay::Show> Replay::arrive(std::uint32_t loop, std::uint32_t iteration, Engine& engine) {
    class_ = 0;
    const auto skip =
        std::find_if(skips_.begin(), skips_.end(), [&](const Skip& s) { return s.loop == loop; });
    if (loop == kNoLoop || skip == skips_.end() || iteration >= skip->total) {
        recording_ = false;
        return Show::accesses;
    }
    const auto first = 3 * static_cast<std::uint64_t>(skip - skips_.begin() + 1);
    if (iteration < skip->shown + skip->period) {
        const bool counts = iteration >= skip->shown;
        class_ = first + (counts ? Class::counted : Class::shown);
        if (counts && iteration == skip->shown) {
            recording_ = skip->replayed;
            numbers_ = {};
            touched_.clear();
        }
        return Show::accesses;
    }
    if (recording_) {
        recording_ = false;
        class_ = first + Class::replayed;
        TRY(leave_out(*skip, engine));
    }
    over_ = !skip->after;
    return over_ ? Show::stop : Show::nothing;
}

void Replay::record(const BlockBatch& batch) {
    for (std::size_t k = 0; k < batch.count(); ++k) {
        const auto block = batch.blocks[k];
        const auto site = batch.sites[k];
        auto number = numbers_.find(block);
        if (number == KeyTable::kNone) {
            number = static_cast<std::uint32_t>(touched_.size());
            numbers_.add(block, number);
            touched_.push_back({block, site, site, 0});
        }
        touched_[number].last_site = site;
        touched_[number].last_time = time_++;
    }
}

// Periods 1, 2, … after the recorded one, which is among those that count.
Result<void> Replay::leave_out(const Skip& skip, Engine& engine) {
    const auto moves = [&](std::uint32_t site) {
        return skip.moved.at(static_cast<std::uint32_t>(site / classes_ - 1));
    };
    const auto as_replayed = [&](std::uint32_t s) {
        return site(static_cast<std::uint32_t>(s / classes_ - 1));
    };
    std::vector<Touched> moving;
    for (const Touched& t : touched_)
        if (moves(t.first_site) != 0) moving.push_back(t);
    auto by_last = skip.after ? touched_ : std::vector<Touched>{};
    std::sort(by_last.begin(), by_last.end(),
              [](const Touched& a, const Touched& b) { return a.last_time < b.last_time; });
    const auto periods = (skip.total - skip.shown) / skip.period;
    const auto needed = static_cast<double>(periods) * static_cast<double>(moving.size()) * 2 +
                        static_cast<double>(touched_.size());
    if (needed > static_cast<double>(left_))
        return fail("", "", "more blocks to replay than accesses are interpreted");
    left_ -= static_cast<std::uint64_t>(needed);
    std::vector<std::uint64_t> blocks;
    std::vector<std::uint32_t> sites;
    const auto give = [&](bool all) -> Result<void> {
        if (blocks.empty() || (!all && blocks.size() < kBatchBlocks)) return {};
        TRY(engine.add({blocks, sites, {}, {}}));
        blocks.clear();
        sites.clear();
        return {};
    };
    for (std::int64_t q = 1; q < periods; ++q) {
        for (const Touched& t : moving) {
            blocks.push_back(t.block + static_cast<std::uint64_t>(q * moves(t.first_site)));
            sites.push_back(as_replayed(t.first_site));
            TRY(give(false));
        }
        for (const Touched& t : by_last) {
            const auto by = moves(t.last_site);
            if (by == 0 && q + 1 < periods) continue;
            blocks.push_back(t.block + static_cast<std::uint64_t>(q * by));
            sites.push_back(as_replayed(t.last_site));
            TRY(give(false));
        }
    }
    return give(true);
}

// How often a reuse counts; nothing where it cannot be.
std::optional<double> Replay::weight(std::uint32_t use, std::uint32_t reuse) const {
    const auto loop = reuse % classes_ / 3;
    if (loop == 0 || reuse % 3 == Class::shown) return 1;
    const bool within = use % classes_ / 3 == loop;
    if (reuse % 3 == Class::replayed) return within ? 0 : 1;
    const Skip& skip = skips_[loop - 1];
    if (within) return skip.times();
    if (!skip.replayed) return std::nullopt;
    return 1;
}

double Replay::cold_weight(std::uint32_t site) const {
    const auto loop = site % classes_ / 3;
    if (loop == 0 || site % 3 != Class::counted || skips_[loop - 1].replayed) return 1;
    return skips_[loop - 1].times();
}

Result<Profile> Replay::whole(const Profile& measured) const {
    const auto odd = [] { return fail("", "", "a reuse that the loops do not explain"); };
    std::map<std::uint32_t, Histogram> sites;
    std::map<std::pair<std::uint32_t, std::uint32_t>, Histogram> pairs;
    std::map<std::uint32_t, double> in_pairs;  // by site
    const auto reference = [&](std::uint32_t site) {
        return static_cast<std::uint32_t>(site / classes_);
    };
    for (const Pair& p : measured.pairs) {
        const auto often = weight(p.use, p.reuse);
        if (!often) return odd();
        in_pairs[p.reuse] += p.distances.total();
        if (*often == 0) continue;
        add(pairs[{reference(p.use), reference(p.reuse)}], p.distances, *often);
        add(sites[reference(p.reuse)], p.distances, *often);
    }
    for (const Site& s : measured.sites) {
        // Pairs beyond what an engine keeps apart are missing.
        if (in_pairs[s.id] + s.reuse.cold != s.reuse.total()) return odd();
        sites[reference(s.id)].cold += cold_weight(s.id) * s.reuse.cold;
    }
    Profile out;
    for (auto& [id, reuse] : sites) {
        Site s;
        s.id = id;
        s.reuse = std::move(reuse);
        out.reuse.merge(s.reuse);
        out.sites.push_back(std::move(s));
    }
    for (auto& [key, distances] : pairs) {
        Pair p;
        p.use = key.first;
        p.reuse = key.second;
        p.count = distances.total();
        p.distances = std::move(distances);
        out.pairs.push_back(std::move(p));
    }
    return out;
}

}  // namespace revisit::predict
