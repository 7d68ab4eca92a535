// What the other rooms know of the GPU.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "revisit/engine.h"

namespace revisit {

struct GpuReport {
    bool works = false;
    std::string detail;  // the devices, or why there is none
};
GpuReport describe_gpu();

Result<std::unique_ptr<Engine>> make_gpu_engine(std::string_view method, const EngineOptions& options);

}  // namespace revisit
