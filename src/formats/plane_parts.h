// Parts of a chunk of revisit's own format: bytes as they are, packed by zstd, one byte that they all
// are, or those that are not zero. Unpacking takes zstd up to 2 ns per byte, as long as decoding four
// accesses takes otherwise, so its form has to take half as much as the quickest other one. A checksum
// over the whole chunk stands for those of zstd's frames.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "formats/byte_planes.h"

namespace revisit {

// A frame of zstd. False where it is broken or of another size.
bool unpack(std::span<const std::uint8_t> packed, std::span<std::uint8_t> plain);

// Appends a part to a column.
void put_part(std::string_view plain, std::string& out);

// The parts of a column back, each of a size that is known. Many bytes that lie there as they are stay
// there, others are unpacked into `room`.
class PartReader {
 public:
    PartReader(std::span<const std::uint8_t> stored, std::span<std::uint8_t>& room)
        : stored_(stored), room_(room) {}
    // Nothing where it is broken.
    std::optional<PlainPart> next(std::size_t size);
    bool ended() const { return stored_.empty(); }

 private:
    std::span<const std::uint8_t> stored_;
    std::span<std::uint8_t>& room_;
};

// Finds any one word that changed, and words that changed places. Half of the memory's speed.
std::uint64_t checksum(std::span<const std::uint8_t> bytes, std::uint64_t seed);

}  // namespace revisit
