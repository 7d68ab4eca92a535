#include "watch/samples/window_sets.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>
#include <vector>

namespace revisit::watch {
namespace {

constexpr double kClearly = 4;     // times as many lines as in a random set
constexpr double kByChance = 1.5;  // … which some of thousands have more than the mean one
constexpr double kEnoughPairs = 8;

// By how many pairs of lines share a set: as many as in random sets, or as few as there can be.
SetFilling filling_of(std::span<const std::uint16_t> filled, std::size_t lines, std::uint64_t sets,
                      SetFilling of_fewer_sets) {
    double pairs = 0;
    std::uint64_t most = 0;
    for (std::uint64_t one : filled) {
        pairs += static_cast<double>(one * (one - std::min<std::uint64_t>(one, 1))) / 2;
        most = std::max(most, one);
    }
    const auto n = static_cast<double>(lines), s = static_cast<double>(sets);
    if (static_cast<double>(most) >= kClearly * (n / s + kByChance)) return SetFilling::crowded;
    const double each = std::floor(n / s), more = n - each * s;
    const double fewest = s * each * (each - 1) / 2 + more * each, random = n * (n - 1) / 2 / s;
    if (random - fewest < kEnoughPairs)
        return of_fewer_sets == SetFilling::even ? SetFilling::even : SetFilling::random;
    return pairs - fewest < (random - fewest) / kClearly ? SetFilling::even : SetFilling::random;
}

// Numbers keys in the order in which they come first.
class Numbers {
 public:
    explicit Numbers(std::size_t most)
        : bits_(static_cast<unsigned>(std::bit_width(2 * most))), slots_(std::size_t{1} << bits_) {}

    std::uint16_t of(std::uint64_t key) {
        std::size_t at = key * 0x9e3779b97f4a7c15u >> (64 - bits_), mask = slots_.size() - 1;
        while (slots_[at].number != 0 && slots_[at].key != key) at = (at + 1) & mask;
        if (slots_[at].number == 0) {
            keys_.push_back(key);
            slots_[at] = {key, static_cast<std::uint16_t>(keys_.size())};
        }
        return static_cast<std::uint16_t>(slots_[at].number - 1);
    }
    const std::vector<std::uint64_t>& keys() const { return keys_; }

 private:
    struct Slot {
        std::uint64_t key = 0;
        std::uint16_t number = 0;  // from 1; 0 = empty
    };
    unsigned bits_;
    std::vector<Slot> slots_;
    std::vector<std::uint64_t> keys_;
};

struct Lines {
    std::vector<std::uint16_t> accessed;  // numbers of lines, by access
    std::vector<std::uint64_t> lines;
};

// Plays the sets that have more lines than ways, each as a stack with the last line on top.
void count_misses(const Lines& in, std::span<const std::uint16_t> set_of,
                  std::span<const std::uint16_t> filled, std::size_t ways, unsigned uses,
                  unsigned drawn, WindowSets::InCache& out) {
    std::vector<std::vector<std::uint16_t>> stacks(filled.size());
    std::vector<unsigned> last(in.lines.size());
    for (unsigned now = 1; now <= in.accessed.size(); now++) {
        const std::uint16_t line = in.accessed[now - 1], set = set_of[line];
        if (filled[set] <= ways) continue;
        auto& stack = stacks[set];
        const unsigned before = std::exchange(last[line], now);
        if (before != 0) {
            auto found = std::find(stack.rbegin(), stack.rend(), line);
            const auto depth = static_cast<std::size_t>(found - stack.rbegin());
            if (depth >= ways && before <= uses) {
                out.missed++;
                out.drawn_missed |= before == drawn;
            }
            stack.erase(std::next(found).base());
        }
        stack.push_back(line);
    }
}

}  // namespace

WindowSets sets_of(std::span<const std::uint64_t> lines, unsigned uses, unsigned drawn, unsigned open,
                   std::span<const CacheSpec> caches) {
    WindowSets out;
    if (lines.empty()) return out;
    Numbers numbers(lines.size());
    Lines in;
    in.accessed.reserve(lines.size());
    for (std::uint64_t line : lines) in.accessed.push_back(numbers.of(line));
    in.lines = numbers.keys();
    std::vector<bool> follows(in.lines.size());
    if (open != 0) {
        for (std::size_t i = open; i < in.accessed.size(); i++) follows[in.accessed[i]] = true;
        follows[in.accessed[open - 1]] = false;
        out.lines_after = static_cast<std::uint16_t>(std::ranges::count(follows, true));
    }
    std::vector<std::uint16_t> set_of(in.lines.size()), filled;
    for (std::size_t c = 0; c < std::min(caches.size(), WindowSets::kMostCaches); c++) {
        const std::uint64_t sets = caches[c].sets();
        if (sets <= 1) continue;
        Numbers used(in.lines.size());
        filled.assign(in.lines.size(), 0);
        for (std::size_t i = 0; i < in.lines.size(); i++)
            filled[set_of[i] = used.of(in.lines[i] % sets)]++;
        if (open != 0)
            for (std::size_t i = 0; i < in.lines.size(); i++)
                out.caches[c].after += follows[i] && set_of[i] == set_of[in.accessed[open - 1]];
        const auto ways = static_cast<std::size_t>(caches[c].associativity());
        out.caches[c].filling = filling_of(filled, in.lines.size(), sets,
                                           c > 0 ? out.caches[c - 1].filling : SetFilling::random);
        if (*std::ranges::max_element(filled) > ways)
            count_misses(in, set_of, filled, ways, uses, drawn, out.caches[c]);
    }
    return out;
}

}  // namespace revisit::watch
