#include "engines/hierarchy.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/try.h"

namespace revisit {
namespace {

constexpr std::uint64_t kMostLevelWays = 64;
constexpr std::uint64_t kMostLevelLines = std::uint64_t{1} << 26;

}  // namespace

Result<std::vector<CacheSpec>> HierarchySimulator::parse(std::string_view text) {
    std::vector<CacheSpec> levels;
    for (std::size_t at = 0; at <= text.size();) {
        const std::size_t plus = std::min(text.find('+', at), text.size());
        levels.push_back(TRY(CacheSpec::parse(text.substr(at, plus - at))));
        at = plus + 1;
    }
    return levels;
}

Result<HierarchySimulator> HierarchySimulator::create(std::vector<CacheSpec> levels) {
    if (levels.size() < 2) return fail("a hierarchy has two levels at least, the last one shared");
    for (const CacheSpec& level : levels) {
        if (level.line != levels[0].line)
            return fail(fmt::format("the levels of a hierarchy have lines of one size, found {} and {}",
                                    levels[0].line, level.line));
        if (level.associativity() > kMostLevelWays || level.blocks() > kMostLevelLines)
            return fail(
                fmt::format("the level \"{}\" is too large to simulate: at most {} ways and {} "
                            "lines",
                            level.name, kMostLevelWays, kMostLevelLines));
    }
    return HierarchySimulator(std::move(levels));
}

HierarchySimulator::Level::Level(const CacheSpec& spec)
    : sets_(spec.blocks() / spec.associativity()),
      ways_(spec.associativity()),
      lines_(spec.blocks(), kFree) {}

bool HierarchySimulator::Level::access(std::uint64_t line) {
    std::uint64_t* const set = lines_.data() + (line % sets_) * ways_;
    std::uint64_t way = 0;
    while (way < ways_ && set[way] != line) ++way;
    const bool hit = way < ways_;
    if (!hit) {  // the first free place, else the oldest line
        way = 0;
        while (way + 1 < ways_ && set[way] != kFree) ++way;
    }
    std::copy_backward(set, set + way, set + way + 1);
    set[0] = line;
    return hit;
}

void HierarchySimulator::Level::remove(std::uint64_t line) {
    std::uint64_t* const set = lines_.data() + (line % sets_) * ways_;
    for (std::uint64_t way = 0; way < ways_; ++way)
        if (set[way] == line) set[way] = kFree;
}

HierarchySimulator::HierarchySimulator(std::vector<CacheSpec> levels)
    : levels_(std::move(levels)), shared_(levels_.back()), misses_(levels_.size()) {}

std::vector<HierarchySimulator::Level>& HierarchySimulator::core(std::uint16_t number) {
    if (number >= cores_.size()) cores_.resize(number + std::size_t{1});
    std::vector<Level>& mine = cores_[number];
    if (mine.empty())
        for (std::size_t i = 0; i + 1 < levels_.size(); ++i) mine.emplace_back(levels_[i]);
    return mine;
}

void HierarchySimulator::access(const BlockBatch& batch) {
    accesses_ += batch.count();
    for (std::size_t i = 0; i < batch.count(); ++i) {
        const std::uint64_t line = batch.blocks[i];
        const std::uint16_t number = batch.threads.empty() ? std::uint16_t{0} : batch.threads[i];
        std::vector<Level>& mine = core(number);
        std::size_t level = 0;
        while (level < mine.size() && !mine[level].access(line)) ++misses_[level++];
        if (level == mine.size() && !shared_.access(line)) ++misses_[level];
        if (batch.flags.empty() || (batch.flags[i] & kWrite) == 0) continue;
        for (std::size_t other = 0; other < cores_.size(); ++other)
            if (other != number)
                for (Level& cache : cores_[other]) cache.remove(line);
    }
}

}  // namespace revisit
