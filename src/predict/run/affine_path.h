// One way round an innermost loop, taken many times at once.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "predict/run/observe.h"
#include "predict/slice/slice.h"

namespace revisit::predict {

// Blocks from a loop's header back to it, and how registers move from one round to the next.
struct LoopPath {
    std::vector<std::int32_t> blocks;
    std::vector<std::int32_t> written;  // registers the path sets
    std::vector<std::int32_t> carried;  // of those, what it reads before it sets it
    std::vector<std::int64_t> steps;    // beside carried: change in a round
    std::int64_t code = 0;              // instructions of a round
};

// Nothing when the path holds what cannot be continued by formula (calls, allocations, divisions).
std::optional<LoopPath> path_of(const Program& program, const Function& function,
                                std::vector<std::int32_t> blocks);

struct PathAccess {
    std::uint32_t reference = 0;
    std::uint64_t address = 0;  // in the first round
    std::int64_t step = 0;
    struct Index {
        std::int64_t first = 0, step = 0;
    };
    std::vector<Index> indices;  // by extent of the reference
};

class PathRunner {
 public:
    // Runs `path` from the registers at its header. Returns for how many rounds, at most `limit`, the
    // same path is taken with every register moving by constant steps; 0 leaves the registers as they
    // were. Otherwise they are as after all those rounds.
    std::int64_t run(const Program& program, const Function& function, const LoopPath& path,
                     std::int64_t limit, std::vector<std::int64_t>& values,
                     std::vector<std::uint8_t>& known);

    // Of the last run: one round's accesses in order.
    std::span<const PathAccess> accesses() const { return std::span(accesses_).first(used_); }
    // And what its watched instructions met in so many rounds.
    void observe_into(std::vector<Observed>& observed, std::int64_t rounds) const;

 private:
    using Wide = __int128;
    bool round(const Program& program, const Function& function, const LoopPath& path);
    bool step(const Program& program, const Function& function, const Instruction& i);
    bool stay(std::int64_t base, std::int64_t step, std::int64_t low, std::int64_t high);
    bool negative(Wide base, Wide step, bool& outcome);
    bool compare(const Instruction& i);
    void take(std::int32_t to, std::int32_t from);
    bool narrow(const Instruction& i, std::int64_t value, std::int64_t step);

    std::vector<std::int64_t>* v_ = nullptr;
    std::vector<std::uint8_t>* k_ = nullptr;
    std::vector<std::int64_t> d_;  // by register: change in a round; 0 between runs
    std::int64_t limit_ = 0;
    std::size_t used_ = 0;
    std::vector<PathAccess> accesses_;
    // Operands and result of a watched instruction, each moving by its step.
    struct Watched {
        const Instruction* instruction;
        std::int64_t a, a_step, b, b_step, result, result_step;
    };
    std::vector<Watched> watched_;
    struct Saved {
        std::int64_t value;
        std::uint8_t known;
    };
    std::vector<Saved> saved_;
    struct Moved {
        std::int64_t value, step;
        std::uint8_t known;
    };
    std::vector<Moved> moved_;
};

}  // namespace revisit::predict
