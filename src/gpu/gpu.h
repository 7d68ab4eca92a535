// What the other rooms know of the GPU.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engines/on_device.h"
#include "revisit/engine.h"

namespace revisit {

struct GpuReport {
    bool works = false;
    std::string detail;  // the devices, or why there is none
};
GpuReport describe_gpu();

// A part of a trace, counted from an empty stack: what a rank of a cluster does.
struct PartCount {
    Histogram reuse;                           // nothing is cold
    std::vector<std::uint64_t> first_touches;  // blocks, in order
    std::vector<std::uint64_t> stack;          // the same blocks, the one touched longest ago first
};
class PartCounter {
 public:
    virtual ~PartCounter() = default;
    virtual Result<void> add(std::span<const std::uint64_t> blocks) = 0;
    virtual Result<PartCount> finish() = 0;
};
// On device `index` of those that are used, and round again where there are fewer.
Result<std::unique_ptr<PartCounter>> make_gpu_part_counter(const EngineOptions& options,
                                                           unsigned index);

}  // namespace revisit
