// Packing on the way out; unpacking on the way in is ByteStream's.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "core/files.h"
#include "revisit/error.h"

namespace revisit {

// Where a trace writer's bytes go. finish() makes the file appear.
class ByteSink {
 public:
    virtual ~ByteSink() = default;
    virtual Result<void> write(std::string_view bytes) = 0;
    virtual Result<void> finish() = 0;
};

// Packs by the name's ending: .zst, .gz, .xz; plain otherwise.
Result<std::unique_ptr<ByteSink>> create_sink(const std::string& path);

// "trace.csv.zst" → "trace.csv"
std::string_view without_packing_suffix(std::string_view path);

}  // namespace revisit
