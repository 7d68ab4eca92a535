#include "watch/samples/conflicts.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

namespace revisit::watch {

std::vector<Conflict> conflicts_in(const AccessLog& victim, const AccessLog& other, unsigned shift,
                                   double others) {
    const auto &mine = victim.accesses(), &theirs = other.accesses();
    const std::size_t length = std::min(mine.size(), theirs.size());
    std::unordered_map<std::uint64_t, std::vector<std::size_t>> writes;
    for (std::size_t i = 0; i < length; i++)
        if (theirs[i].writes)
            for_blocks(theirs[i], shift, [&](std::uint64_t block) { writes[block].push_back(i); });
    // Touched in the first and in the last quarter.
    auto throughout = [length](std::size_t first, std::size_t last) {
        return first < (length + 3) / 4 && last + 1 + (length + 3) / 4 > length;
    };
    struct Line {
        std::size_t first = 0, last = 0;
        double reuses = 0, invalidated = 0;
    };
    std::unordered_map<std::uint64_t, Line> lines;
    std::vector<Conflict> found;
    for (std::size_t i = 0; i < length; i++)
        for_blocks(mine[i], shift, [&](std::uint64_t block) {
            auto written = writes.find(block);
            if (written == writes.end() || !throughout(written->second.front(), written->second.back()))
                return;
            auto [line, is_new] = lines.try_emplace(block);
            if (is_new) line->second.first = i;
            if (!is_new) {
                line->second.reuses++;
                const auto& at = written->second;
                auto taken = std::ranges::lower_bound(at, line->second.last);
                if (taken != at.end() && *taken < i) {
                    line->second.invalidated++;
                    found.push_back(
                        {block, *taken, i,
                         parts_of(block, shift, theirs[*taken].address, theirs[*taken].bytes),
                         parts_of(block, shift, mine[i].address, mine[i].bytes), 1});
                }
            }
            line->second.last = i;
        });
    std::erase_if(found, [&](const Conflict& one) {
        const Line& line = lines[one.line];
        return !throughout(line.first, line.last);
    });
    for (Conflict& one : found) {
        const Line& line = lines[one.line];
        const double share = line.invalidated / line.reuses;
        one.weight = (1 - std::pow(1 - share, std::max(1.0, others))) / share;
    }
    return found;
}

void ConflictTally::begin_pair(double accesses) {
    pairs_++;
    here_ = accesses;
    accesses_ += accesses;
    accesses_squared_ += accesses * accesses;
    all_here_ = 0;
}

void ConflictTally::add(const Entry& one, double weight) {
    all_here_ += weight;
    if (one.is_false) false_ += weight;
    const std::vector<std::uint64_t> key{
        one.line, std::uint64_t{one.writer.label} << 32 | one.victim.label,
        std::uint64_t{one.writer.thread} << 32 | one.victim.thread, one.is_false};
    auto found = known_.find(key);
    if (found == known_.end()) {
        if (entries_.size() >= kMost) {
            unlisted_ += weight;
            return;
        }
        found = known_.emplace(key, entries_.size()).first;
        entries_.push_back(one);
    }
    Entry& entry = entries_[found->second];
    entry.writer.parts |= one.writer.parts;
    entry.victim.parts |= one.victim.parts;
    entry.victim.write |= one.victim.write;
    entry.seen++;
    if (entry.here == 0) touched_.push_back(found->second);
    entry.here += weight;
}

void ConflictTally::end_pair() {
    for (std::size_t at : touched_) {
        Entry& entry = entries_[at];
        entry.sum += entry.here;
        entry.squares += entry.here * entry.here;
        entry.products += entry.here * here_;
        entry.here = 0;
    }
    touched_.clear();
    all_ += all_here_;
    all_squares_ += all_here_ * all_here_;
    all_products_ += all_here_ * here_;
}

double ratio_error(double count, double sum, double squares, double products, double whole,
                   double whole_squares) {
    const double ratio = sum / whole;
    const double spread = squares - 2 * ratio * products + ratio * ratio * whole_squares;
    return 1.96 * std::sqrt(std::max(0.0, spread) * count / (count - 1)) / whole;
}

// Of a number of reuses per access.
double ConflictTally::error(double sum, double squares, double products) const {
    if (pairs_ < 2 || accesses_ <= 0) return 0;
    return ratio_error(static_cast<double>(pairs_), sum, squares, products, accesses_,
                       accesses_squared_);
}

void ConflictTally::fill(Profile& profile) const {
    if (accesses_ <= 0) return;
    const double scale = profile.accesses / accesses_;
    profile.sharing_totals = SharingTotals{all_ * scale, false_ * scale, unlisted_ * scale,
                                           profile.accesses * error(all_, all_squares_, all_products_)};
    for (const Entry& entry : entries_) {
        Sharing one;
        one.line = entry.line * profile.granularity;
        auto side = [](const Side& from) {
            SharingSide to;
            to.site = from.label;
            to.thread = from.thread;
            to.write = from.write;
            to.bytes = from.parts;
            return to;
        };
        one.writer = side(entry.writer);
        one.victim = side(entry.victim);
        one.count = entry.sum * scale;
        one.error = profile.accesses * error(entry.sum, entry.squares, entry.products);
        one.false_sharing = entry.is_false;
        profile.sharing.push_back(std::move(one));
    }
    std::ranges::stable_sort(profile.sharing, std::greater(), &Sharing::count);
}

}  // namespace revisit::watch
