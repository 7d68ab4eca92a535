#include "engines/set_associative.h"

#include <fmt/format.h>

#include <algorithm>

#include "revisit/units.h"

namespace revisit {
namespace {

constexpr std::uint64_t kMostArrayWays = 64;
constexpr std::uint64_t kMostArrayLines = std::uint64_t{1} << 30;

}  // namespace

Result<CacheSimulator> CacheSimulator::create(const CacheSpec& spec) {
    if (spec.associativity() <= kMostArrayWays && spec.blocks() > kMostArrayLines)
        return fail(fmt::format("a cache of {} has too many lines to simulate",
                                format_bytes(static_cast<double>(spec.bytes))));
    return CacheSimulator(spec);
}

CacheSimulator::CacheSimulator(const CacheSpec& spec)
    : spec_(spec), sets_(spec.blocks() / spec.associativity()), ways_(spec.associativity()) {
    if (ways_ <= kMostArrayWays)
        tags_.resize(sets_ * ways_), used_.resize(sets_);
    else
        order_.resize(sets_);
}

void CacheSimulator::access(std::span<const std::uint64_t> lines) {
    accesses_ += lines.size();
    if (ways_ <= kMostArrayWays)
        for (std::uint64_t line : lines) misses_ += !hit_in_array(line);
    else
        for (std::uint64_t line : lines) misses_ += !hit_in_list(line);
}

bool CacheSimulator::hit_in_array(std::uint64_t line) {
    std::uint64_t* set = tags_.data() + (line % sets_) * ways_;
    std::uint8_t& used = used_[line % sets_];
    std::uint64_t way = 0;
    while (way < used && set[way] != line) ++way;
    bool hit = way < used;
    if (!hit && used < ways_) ++used;
    std::uint64_t freed = hit ? way : used - 1u;
    std::copy_backward(set, set + freed, set + freed + 1);
    set[0] = line;
    return hit;
}

bool CacheSimulator::hit_in_list(std::uint64_t line) {
    std::list<std::uint64_t>& order = order_[line % sets_];
    auto found = where_.find(line);
    if (found != where_.end()) {
        order.splice(order.begin(), order, found->second);
        return true;
    }
    if (order.size() == ways_) {
        where_.erase(order.back());
        order.pop_back();
    }
    order.push_front(line);
    where_[line] = order.begin();
    return false;
}

}  // namespace revisit
