// A zip archive read as the bytes of its members, one after the other.
#pragma once

#include <memory>
#include <string>

#include "formats/byte_stream.h"

namespace revisit {

// `packed` begins with a local header ("PK\3\4").
std::unique_ptr<ByteSource> unzipped(std::unique_ptr<ByteSource> packed, std::string name);

}  // namespace revisit
