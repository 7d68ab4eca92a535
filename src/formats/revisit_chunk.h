// One chunk of revisit's own trace format: accesses packed column by column.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "formats/columns.h"
#include "revisit/error.h"

namespace revisit {

inline constexpr std::size_t kChunkAccesses = std::size_t{1} << 17;

// Fixed part before each chunk's packed bytes, little-endian.
struct ChunkHeader {
    std::uint32_t magic = 0;
    std::uint32_t accesses = 0;
    std::uint32_t plain_bytes = 0;
    std::uint32_t packed_bytes = 0;

    bool holds_accesses() const;
    // Whether the lengths are ones a writer can have produced: nothing is allocated before this holds.
    bool plausible() const;
};
static_assert(sizeof(ChunkHeader) == 16);

inline constexpr std::uint32_t kAccessChunk = 0x51415652;  // "RVAQ"
inline constexpr std::uint32_t kVarintChunk =
    0x43415652;                                          // "RVAC": accesses as they were written before
inline constexpr std::uint32_t kInfoChunk = 0x4e495652;  // "RVIN"
inline constexpr std::uint32_t kIndexChunk = 0x58495652;  // "RVIX"

inline bool ChunkHeader::holds_accesses() const {
    return magic == kAccessChunk || magic == kVarintChunk;
}

// What a chunk's content begins with: columns, lag, by stride or not, zero bits left out.
inline constexpr std::size_t kPlainHeader = 4;

// Appends header and packed bytes to `out`. At most kChunkAccesses accesses.
void encode_accesses(const AccessBatch& batch, std::string& out);
void encode_text(std::uint32_t magic, std::string_view text, std::string& out);

// The packed bytes of a chunk back, cut to blocks where the columns ask for that and no access crosses;
// the Error has no file or place, the caller knows them.
Result<void> decode_accesses(const ChunkHeader& header, std::span<const std::uint8_t> packed,
                             Columns& columns);
Result<void> decode_varints(std::size_t count, std::span<const std::uint8_t> plain, Columns& columns);
Result<std::string> decode_text(const ChunkHeader& header, std::span<const std::uint8_t> packed);

}  // namespace revisit
