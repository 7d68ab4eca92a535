// One trace format: how it is recognized, opened and written. Each lives in a file of its own and has
// one line in registry.cpp.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "formats/byte_stream.h"
#include "formats/compress.h"
#include "revisit/trace.h"

namespace revisit {

// How much of a file is looked at to recognize its format.
inline constexpr std::size_t kSniffWindow = std::size_t{1} << 16;

struct FormatEntry {
    std::string_view name;
    std::string_view summary;
    std::string_view suffixes;  // file endings, separated by spaces
    // Whether a file that begins so is surely of this format; nullptr where content does not show it.
    bool (*recognizes)(std::span<const std::uint8_t> head);
    Result<std::unique_ptr<TraceReader>> (*open)(ByteStream stream);
    Result<std::unique_ptr<TraceWriter>> (*create)(
        std::unique_ptr<ByteSink> sink);  // nullptr: read only
    std::size_t record_bytes = 0;         // where the file is nothing but records of one size
};

std::span<const FormatEntry> formats();

// The format by name, or by the stream's first bytes and the file's name.
Result<const FormatEntry*> tell_format(ByteStream& stream, std::string_view format,
                                       std::string_view path);

// As open_trace, for bytes that are already a stream (tests, fuzzers).
Result<std::unique_ptr<TraceReader>> open_stream(ByteStream stream, std::string_view format,
                                                 std::string_view path = {});

}  // namespace revisit
