// The engine on a GPU, as the table of engines asks for it: declared here and defined by the room gpu,
// which is built upon the engines.
#pragma once

#include <memory>
#include <string_view>

#include "revisit/engine.h"

namespace revisit {

Result<std::unique_ptr<Engine>> make_gpu_engine(std::string_view method, const EngineOptions& options);

}  // namespace revisit
