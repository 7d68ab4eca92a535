// Traces made to measure: accesses that have a given reuse-distance histogram.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "revisit/access.h"
#include "revisit/error.h"
#include "revisit/histogram.h"

namespace revisit {

// Shares of reuse distances out of a description: normal:MEAN,SD, exponential:RATE, zipf:S, uniform,
// or mix:SHARE*DESCRIPTION+SHARE*DESCRIPTION… Distances that need more than `distinct` blocks are an
// Error. The counts of the result sum to 1.
REVISIT_API Result<Histogram> parse_distribution(std::string_view description, std::uint64_t distinct);

struct GenerateOptions {
    std::uint64_t length = 0;    // accesses, the first touches among them
    std::uint64_t distinct = 0;  // blocks
    std::uint64_t granularity = 64;
    std::uint64_t seed = 1;
    unsigned threads = 1;
    double sharing = 0;  // share of the blocks that every thread uses; the others belong to one
    double writes = 0;   // share of the accesses
};

// The accesses, batch by batch: first every block once, then reuses at distances drawn from the bins.
class REVISIT_API TraceGenerator {
 public:
    // `reuse` is taken in shares of its finite counts; distances in a bin are equally likely.
    static Result<TraceGenerator> create(const Histogram& reuse, const GenerateOptions& options);
    TraceGenerator(TraceGenerator&&) noexcept;
    ~TraceGenerator();

    AccessBatch next();  // valid until the next call; empty at the end

 private:
    struct State;
    explicit TraceGenerator(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

}  // namespace revisit
