// Reuses that come in runs, counted a run at a time.
//
// Problem. A scan over ten million blocks is ten million first touches in every chunk of time
// (stack_parts.h), and each wants to know how many earlier ones found a later place.
// Idea. Blocks that lay side by side on the stack and are touched again in the same order have the same
// distance: nothing was between them then, and what was touched above them since is the same for all.
// So a run of them is one element with a weight. Programs that go through memory in order make runs of
// thousands, and also what is mixed with a few other accesses.
// Cost. O(runs log runs) on one thread, some 100 ns a run: for runs that are far fewer than reuses.
#pragma once

#include <cstdint>
#include <span>

namespace revisit {

// The keys of a run (partition_count.h) are key … key + length - 1, in this order, and all have the
// same span.
struct ReuseRun {
    std::uint32_t key;
    std::uint32_t length;
    std::uint32_t span;
};

// Subtracts from every span the number of earlier reuses with a larger key, which leaves the distance.
void count_run_distances(std::span<ReuseRun> runs);

}  // namespace revisit
