// The partition engine with its sizes open, for tests of every boundary.
#pragma once

#include <memory>

#include "engines/partition_count.h"
#include "revisit/engine.h"

namespace revisit {

std::unique_ptr<Engine> make_partition_in_chunks(const EngineOptions& options, std::size_t chunk,
                                                 const PartitionShape& shape);

}  // namespace revisit
