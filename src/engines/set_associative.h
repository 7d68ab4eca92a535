// A true set-associative LRU cache, run on the trace: what a prediction from the profile is held
// against.
#pragma once

#include <cstdint>
#include <list>
#include <unordered_map>
#include <vector>

#include "revisit/access.h"
#include "revisit/cache_spec.h"
#include "revisit/error.h"

namespace revisit {

class CacheSimulator {
 public:
    static Result<CacheSimulator> create(const CacheSpec& spec);

    // Blocks of the cache's own line size.
    void access(std::span<const std::uint64_t> lines);
    const CacheSpec& spec() const { return spec_; }
    std::uint64_t accesses() const { return accesses_; }
    std::uint64_t misses() const { return misses_; }

 private:
    explicit CacheSimulator(const CacheSpec& spec);
    bool hit_in_array(std::uint64_t line);
    bool hit_in_list(std::uint64_t line);

    CacheSpec spec_;
    std::uint64_t sets_;
    std::uint64_t ways_;
    std::uint64_t accesses_ = 0;
    std::uint64_t misses_ = 0;
    // Few ways: each set is an array of its `used_` lines, most recent first.
    std::vector<std::uint64_t> tags_;
    std::vector<std::uint8_t> used_;
    // Many ways: one list a set and where each line is in it.
    std::vector<std::list<std::uint64_t>> order_;
    std::unordered_map<std::uint64_t, std::list<std::uint64_t>::iterator> where_;
};

}  // namespace revisit
