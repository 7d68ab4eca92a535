// The tree of calling contexts as a recorder builds it, node by node.
#pragma once

#include <unordered_map>

#include "symbols/origins.h"

namespace revisit {

// Calls are known by where they return to, which is the instruction after: one of 4 bytes on aarch64;
// any byte of it will do on x86_64.
#if defined(__aarch64__)
inline constexpr std::uint64_t kCallBytes = 4;
#else
inline constexpr std::uint64_t kCallBytes = 1;
#endif

class ContextTree {
 public:
    explicit ContextTree(Origins& origins) : origins_(origins) {}

    // The node of a call at `place` made from `context`. A call from a place that is already this near
    // on the path is recursion: it returns to that node, so that a path says which calls lead here and
    // not how deep they nest.
    std::uint32_t child(std::uint32_t context, std::uint32_t place) {
        constexpr int kRecursionReach = 32;
        auto [found, is_new] = children_.try_emplace(std::uint64_t{context} << 32 | place, 0);
        if (!is_new) return found->second;
        std::uint32_t node = context;
        for (int i = 0; i < kRecursionReach && node != 0; i++, node = origins_.contexts[node].parent)
            if (origins_.contexts[node].place == place) break;
        if (node == 0 || origins_.contexts[node].place != place) {
            node = static_cast<std::uint32_t>(origins_.contexts.size());
            origins_.contexts.push_back({context, place});
        }
        return found->second = node;
    }

 private:
    Origins& origins_;
    std::unordered_map<std::uint64_t, std::uint32_t> children_;
};

}  // namespace revisit
