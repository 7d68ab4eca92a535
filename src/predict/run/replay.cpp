// Iterations that are not interpreted: what they count, and what they leave behind.
//
// Problem. Time steps repeat, and the rows of a product, moved by a row each (repeat.cpp). A first one
// has other distances than those after it; where a product follows another, its rows were touched
// before, at a distance that differs from row to row; and what follows wants the stack that the loop
// left. Idea. Interpret one period, and take down which blocks it touches, in the order of first and of
// last touches. A reuse of what the same period used has the same distance in all of them: it counts as
// often as there are periods. Each further period is then replayed, its blocks moved: first in the
// order of first touches. That gives their distances: above a block on the stack lies all that was
// touched since its last use, whatever the order, and how often it was touched in this period does not
// matter. Then in the order of last touches, counting nothing, which leaves the stack as the period
// does. After some periods the distances of what was used in the loop before are settled and count for
// all that follow. From there on only what moves is replayed, and only what it finds that was last used
// before the loop counts; what does not move is put in order by the last period.
// Example. for (i < 3) A[i] = 1, then for (i < 3) { B; A[i]; B }, by elements. Interpreted: B A[0] B,
// of which the second use of B, distance 1, counts three times. Replayed, the second period: B,
// distance 0, settled, counts twice; A[1]: above it lie A[2], A[0], B, distance 3. The third: A[2],
// distance 3. Cost. Two touches of each block for each period until they settle, and of each that moves
// after that: for a matrix product its footprint, not its accesses.
#include "predict/run/replay.h"

#include <algorithm>
#include <iterator>

#include "core/try.h"
#include "predict/run/pair_distances.h"

namespace revisit::predict {
namespace {

constexpr std::size_t kBatchBlocks = 1 << 14;

void add(Histogram& to, const Histogram& from, double weight) {
    Histogram part = from;
    part.cold *= weight;
    for (Bin& bin : part.bins) bin.count *= weight;
    to.merge(part);
}

}  // namespace

Result<Replay::Show> Replay::arrive(std::uint32_t loop, std::uint32_t iteration, Analysis& analysis) {
    class_ = 0;
    const auto skip =
        std::find_if(skips_.begin(), skips_.end(), [&](const Skip& s) { return s.loop == loop; });
    if (loop == kNoLoop || skip == skips_.end() || iteration >= skip->total) {
        recording_ = false;
        return Show::accesses;
    }
    const auto number = static_cast<std::size_t>(skip - skips_.begin()) + 1;
    if (iteration < skip->shown + skip->period) {
        const bool counts = iteration >= skip->shown;
        enter(number, counts ? period : shown);
        if (counts && iteration == skip->shown) {
            recording_ = true;
            numbers_ = {};
            touched_.clear();
        }
        return Show::accesses;
    }
    if (recording_) {
        recording_ = false;
        TRY(replay(number, analysis));
    }
    over_ = !skip->after;
    return over_ ? Show::stop : Show::nothing;
}

void Replay::record(const BlockBatch& batch) {
    for (std::size_t k = 0; k < batch.count(); ++k) {
        const auto block = batch.blocks[k];
        const auto reference = reference_of(batch.sites[k]);
        auto number = numbers_.find(block);
        if (number == KeyTable::kNone) {
            number = static_cast<std::uint32_t>(touched_.size());
            numbers_.add(block, number);
            touched_.push_back({block, 0, reference, reference, 0});
        }
        touched_[number].last = reference;
        touched_[number].last_time = time_++;
    }
}

// Periods 1, 2, … after the one that was interpreted.
Result<void> Replay::replay(std::size_t loop, Analysis& analysis) {
    const Skip& skip = skips_[loop - 1];
    for (Touched& t : touched_) t.by = skip.moved.at(t.first);
    auto by_last = touched_;
    std::sort(by_last.begin(), by_last.end(),
              [](const Touched& a, const Touched& b) { return a.last_time < b.last_time; });
    const auto moving = [](const std::vector<Touched>& all) {
        std::vector<Touched> some;
        std::copy_if(all.begin(), all.end(), std::back_inserter(some),
                     [](const Touched& t) { return t.by != 0; });
        return some;
    };
    const auto moving_by_first = moving(touched_), moving_by_last = moving(by_last);
    const auto end = skip.to_the_end() ? skip.periods() : skip.settled + 1;
    const auto needed =
        2 * (static_cast<double>(skip.settled + 1) * static_cast<double>(touched_.size()) +
             static_cast<double>(end) * static_cast<double>(moving_by_first.size()));
    if (needed > static_cast<double>(left_))
        return fail("", "", "more blocks to replay than accesses are interpreted");
    left_ -= static_cast<std::uint64_t>(needed);
    std::vector<std::uint64_t> blocks;
    std::vector<std::uint32_t> sites;
    const auto give = [&]() -> Result<void> {
        TRY(analysis.add_blocks({blocks, sites, {}, {}}));
        blocks.clear();
        sites.clear();
        return {};
    };
    const auto touch = [&](const std::vector<Touched>& all, std::int64_t q, Class as) -> Result<void> {
        enter(loop, as);
        for (const Touched& t : all) {
            blocks.push_back(t.block + static_cast<std::uint64_t>(q * t.by));
            sites.push_back(site(as == order ? t.last : t.first));
            if (blocks.size() == kBatchBlocks) TRY(give());
        }
        return {};
    };
    for (std::int64_t q = 1; q < end; ++q) {
        const bool last = q + 1 == end;
        if (q <= skip.settled)
            TRY(touch(touched_, q, q == skip.settled ? settled : first));
        else
            TRY(touch(moving_by_first, q, late));
        if (last && !skip.after) break;
        TRY(touch(q <= skip.settled || last ? by_last : moving_by_last, q, order));
    }
    return blocks.empty() ? Result<void>{} : give();
}

// How often a reuse counts; nothing where it cannot be.
std::optional<double> Replay::weight(std::uint32_t use, std::uint32_t reuse) const {
    const auto as = class_of(reuse);
    if (loop_of(reuse) == 0 || as == shown || as == first) return 1;
    if (as == order) return 0;
    const Skip& skip = skips_[loop_of(reuse) - 1];
    const bool within = loop_of(use) == loop_of(reuse);
    if (as == period)
        return within && class_of(use) == period ? static_cast<double>(skip.periods()) : 1;
    if (as == late) return within ? 0 : 1;
    if (within) return static_cast<double>(skip.periods() - skip.settled);
    if (!skip.to_the_end()) return std::nullopt;
    return 1;
}

double Replay::cold_weight(std::uint32_t site) const {
    if (loop_of(site) == 0 || class_of(site) != settled) return 1;
    const Skip& skip = skips_[loop_of(site) - 1];
    return skip.to_the_end() ? 1 : static_cast<double>(skip.periods() - skip.settled);
}

Result<Profile> Replay::whole(const Profile& measured) const {
    const auto odd = [] { return fail("", "", "a reuse that the loops do not explain"); };
    std::map<std::uint32_t, Histogram> sites;
    PairDistances pairs;
    std::map<std::uint32_t, double> in_pairs;  // by site
    const auto reference = [&](std::uint32_t site) { return reference_of(site) + 1; };
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
    add_pairs(out, std::move(pairs));
    return out;
}

}  // namespace revisit::predict
