// Unpacking beside whoever reads: frames side by side, or one long one on a thread of its own.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "formats/byte_stream.h"

namespace revisit {

// An unpacker of bytes that begin at byte `begin` of the file.
using MakeUnpacker =
    std::function<std::unique_ptr<ByteSource>(std::unique_ptr<ByteSource> packed, std::uint64_t begin)>;

// How many of the bytes are whole frames, at least one; 0 = the first one goes on beyond them, nothing
// = where it ends cannot be told without unpacking it.
using FindFrames = std::optional<std::size_t> (*)(std::span<const std::uint8_t> packed);

std::optional<std::size_t> find_zstd_frames(std::span<const std::uint8_t> packed);
std::optional<std::size_t> find_bgzip_blocks(std::span<const std::uint8_t> packed);

// For sources that never wait for somebody else: regular files. What is not made of short frames is
// unpacked on one thread, ahead of the reader.
std::unique_ptr<ByteSource> unpack_frames(std::unique_ptr<ByteSource> packed, MakeUnpacker unpacker,
                                          FindFrames find, unsigned threads);
std::unique_ptr<ByteSource> read_ahead(std::unique_ptr<ByteSource> source);

}  // namespace revisit
