// Accesses that missed a cache, in their order, with the lines that left it for them.
#pragma once

#include <cstdint>
#include <vector>

namespace revisit {

class MissedLines {
 public:
    struct Miss {
        std::uint64_t line;
        std::uint64_t victim;  // the line itself where none left
        std::uint32_t access;  // index in the batch
        bool in_last_ways;     // of the cache, beyond those that it shares with the next: no miss of it
        bool has_victim() const { return victim != line; }
    };

    void clear(std::size_t at_most) {
        if (misses_.size() < at_most) misses_.resize(at_most);
        end_ = misses_.data();
    }
    void add(const Miss& miss) { *end_++ = miss; }
    std::size_t size() const { return static_cast<std::size_t>(end_ - misses_.data()); }
    const Miss* begin() const { return misses_.data(); }
    const Miss* end() const { return end_; }

 private:
    std::vector<Miss> misses_;
    Miss* end_ = nullptr;
};

}  // namespace revisit
