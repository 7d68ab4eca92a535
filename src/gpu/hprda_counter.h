// HP-RDA on the GPU as the rest of the program sees it: plain C++20, no CUDA. Failures are thrown as
// std::runtime_error with a sentence.
#pragma once

#include <memory>

#include "gpu/exact_counter.h"

namespace revisit::gpu {

struct HprdaSettings {
    std::uint32_t thread_trace = 2048;  // accesses a thread (ST)
    std::uint32_t block_threads = 64;   // threads a block (NB)
    bool adjust = true;
    std::size_t fragment = std::size_t{1} << 26;  // accesses handed to the device at a time (N)
};

struct HprdaOutcome {
    std::uint64_t accesses = 0;
    std::uint64_t distinct = 0;
    std::uint64_t sum = 0;               // blocks of all thread blocks, added up
    std::vector<std::uint64_t> counted;  // by distance: within thread blocks
    std::vector<std::uint64_t> raw;      // by bin of log2:256: across thread blocks, not adjusted yet
};

class HprdaCounter {
 public:
    virtual ~HprdaCounter() = default;
    virtual void add(const std::uint64_t* blocks, std::size_t count, Memory where) = 0;
    virtual HprdaOutcome finish() = 0;
};
std::unique_ptr<HprdaCounter> make_hprda_counter(const HprdaSettings& settings);

}  // namespace revisit::gpu
