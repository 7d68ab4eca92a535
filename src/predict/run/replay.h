// Iterations that are not interpreted: what they count, and what they leave behind.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "core/key_table.h"
#include "predict/run/interpret.h"
#include "revisit/engine.h"

namespace revisit::predict {

// An outermost loop that repeats, of which only a part is interpreted: `shown` iterations and the
// period that follows. That period stands for all from it to the end of the loop, `total` iterations.
struct Skip {
    std::uint32_t loop = kNoLoop;  // index into Trace::loops
    std::int64_t shown = 0, period = 1, total = 0;
    std::map<std::uint32_t, std::int64_t> moved;  // by reference: blocks per period
    // What moves was touched before the loop, or something is after it: the iterations left out are
    // replayed, block by block.
    bool replayed = false;
    bool after = false;  // accesses follow the loop

    double times() const { return static_cast<double>((total - shown) / period); }
};

class Replay {
 public:
    using Show = RunOptions::Show;

    // Replays at most so many blocks.
    Replay(std::vector<Skip> skips, std::uint64_t most)
        : skips_(std::move(skips)), classes_(3 * (skips_.size() + 1)), left_(most) {}

    // Sites by reference and by what their accesses count.
    std::uint32_t site(std::uint32_t reference) const {
        return static_cast<std::uint32_t>((reference + 1) * classes_ + class_);
    }
    // At the header of an outermost loop, or after one.
    Result<Show> arrive(std::uint32_t loop, std::uint32_t iteration, Engine& engine);
    // What the engine is given.
    void see(const BlockBatch& batch) {
        if (recording_) record(batch);
    }
    // The run was ended because nothing follows.
    bool over() const { return over_; }
    // From what was measured, that of the whole run.
    Result<Profile> whole(const Profile& measured) const;

 private:
    // A block that the period touches, in the order of first touches.
    struct Touched {
        std::uint64_t block;
        std::uint32_t first_site, last_site;
        std::uint64_t last_time;
    };

    void record(const BlockBatch& batch);
    Result<void> leave_out(const Skip& skip, Engine& engine);
    std::optional<double> weight(std::uint32_t use, std::uint32_t reuse) const;
    double cold_weight(std::uint32_t site) const;

    const std::vector<Skip> skips_;
    const std::uint64_t classes_;
    std::uint64_t left_, class_ = 0;
    bool recording_ = false, over_ = false;
    std::uint64_t time_ = 0;
    KeyTable numbers_;  // of the blocks in `touched_`
    std::vector<Touched> touched_;
};

}  // namespace revisit::predict
