// Iterations that are not interpreted: what they count, and what they leave behind.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "core/key_table.h"
#include "predict/run/interpret.h"
#include "revisit/analyze.h"
#include "revisit/blocks.h"

namespace revisit::predict {

// An outermost loop that repeats, `total` iterations of it. Interpreted are the first `shown` and the
// period that follows, which stands for all periods to the end of the loop.
struct Skip {
    std::uint32_t loop = kNoLoop;  // index into Trace::loops
    std::int64_t shown = 0, period = 1, total = 0;
    std::int64_t settled = 1;  // periods after which a reuse within the loop is as in the one before
    std::map<std::uint32_t, std::int64_t> moved;  // by reference: blocks per period
    bool moves = false;
    bool meets = false;  // what moves may have been touched before the loop
    bool after = false;  // accesses follow the loop

    std::int64_t periods() const { return (total - shown) / period; }
    // Whether what moves is replayed to the end of the loop.
    bool to_the_end() const { return moves && (meets || after); }
};

class Replay {
 public:
    using Show = RunOptions::Show;

    // Replays at most `most` blocks of the granularity.
    Replay(std::vector<Skip> skips, std::uint64_t most, std::uint64_t granularity)
        : skips_(std::move(skips)),
          classes_(kClasses * (skips_.size() + 1)),
          cutter_(granularity),
          left_(most) {}

    // Sites by reference and by what their accesses count.
    std::uint32_t site(std::uint32_t reference) const {
        return static_cast<std::uint32_t>((reference + 1) * classes_ + class_);
    }
    // At the header of an outermost loop, or after one.
    Result<Show> arrive(std::uint32_t loop, std::uint32_t iteration, Analysis& analysis);
    // What the analysis is given.
    Result<void> see(const AccessBatch& batch) {
        if (!recording_) return {};
        return cutter_.cut(batch, [this](const BlockBatch& blocks) -> Result<void> {
            record(blocks);
            return {};
        });
    }
    // The run was ended because nothing follows.
    bool over() const { return over_; }
    // From what was measured, that of the whole run.
    Result<Profile> whole(const Profile& measured) const;

 private:
    // What accesses count, by loop; `shown` of loop 0 is what belongs to none.
    enum Class : std::uint32_t {
        shown,    // once
        period,   // what was used in the same period as often as there are periods, else once
        first,    // replayed, a first touch of a period: once
        settled,  // the same, for all periods from there on; what was used before the loop once
        late,     // the same, after that: only what was used before the loop
        order,    // replayed to put the stack in order: nothing
        kClasses
    };
    // A block that the period touches.
    struct Touched {
        std::uint64_t block;
        std::int64_t by;            // blocks that it moves by per period
        std::uint32_t first, last;  // references
        std::uint64_t last_time;
    };

    Class class_of(std::uint32_t site) const { return static_cast<Class>(site % classes_ % kClasses); }
    std::size_t loop_of(std::uint32_t site) const { return site % classes_ / kClasses; }
    std::uint32_t reference_of(std::uint32_t site) const {
        return static_cast<std::uint32_t>(site / classes_ - 1);
    }
    void enter(std::size_t loop, Class as) { class_ = loop * kClasses + as; }
    void record(const BlockBatch& batch);
    Result<void> replay(std::size_t loop, Analysis& analysis);
    std::optional<double> weight(std::uint32_t use, std::uint32_t reuse) const;
    double cold_weight(std::uint32_t site) const;

    const std::vector<Skip> skips_;
    const std::uint64_t classes_;
    BlockCutter cutter_;
    std::uint64_t left_, class_ = 0;
    bool recording_ = false, over_ = false;
    std::uint64_t time_ = 0;
    KeyTable numbers_;              // of the blocks in `touched_`
    std::vector<Touched> touched_;  // in the order of first touches
};

}  // namespace revisit::predict
