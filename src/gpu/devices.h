// Several devices on one trace; devices.cpp explains how.
#pragma once

#include <memory>
#include <vector>

#include "gpu/exact_counter.h"
#include "revisit/engine.h"

namespace revisit {

// The counters keep touches, and bins as the options want them. `chunk`: accesses a device at a time.
std::unique_ptr<Engine> make_devices_engine(const EngineOptions& options,
                                            std::vector<std::unique_ptr<gpu::ExactCounter>> devices,
                                            std::size_t chunk = std::size_t{1} << 25);

}  // namespace revisit
