// One device on a trace; single_device.cpp explains how it is fed.
#pragma once

#include <exception>
#include <future>
#include <memory>

#include "gpu/exact_counter.h"
#include "revisit/engine.h"

namespace revisit {

// The counter may still be starting.
std::unique_ptr<Engine> make_single_device_engine(
    const EngineOptions& options, std::future<std::unique_ptr<gpu::ExactCounter>> counter);

// What a counter threw: no memory left, or a device that does not work or no longer.
unexpected<Error> device_error(const std::exception& failure);

}  // namespace revisit
