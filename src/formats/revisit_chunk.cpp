// Packing accesses.
//
// Problem. Eight bytes of address an access is what a trace of matrix multiply takes raw; zstd alone
// hardly helps, because three interleaved walks never repeat a byte pattern.
// Idea. Predict each address and store the difference. Programs walk arrays, so the prediction is "as
// far from last time as last time was from the time before", where "last time" is the last access by
// the same instruction when sites are known, and otherwise the access a fixed number of places back
// (the length of the loop body). Each chunk tries its candidates on its first accesses and keeps the
// best. Right predictions leave zeros, which zstd packs to almost nothing. Cost. Matrix multiply takes
// under 0.1 byte an access (formats_test.cpp holds the limit of 2). Every chunk stands alone, so chunks
// unpack in parallel.
#include "formats/revisit_chunk.h"

#include <zstd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>

#include "core/try.h"

namespace revisit {
namespace {

constexpr int kLargestLag = 8;
constexpr std::size_t kSiteSlots = 4096;
constexpr std::size_t kTrial = 4096;
constexpr std::size_t kLargestText = std::size_t{1} << 30;
// Address, site, size and thread as varints, one byte of flags.
constexpr std::size_t kLargestAccess = 10 + 5 + 5 + 3 + 1;
constexpr std::size_t kPlainHeader = 4;

// What is remembered of the last access in a slot.
struct Walk {
    std::uint64_t last = 0;
    std::uint64_t stride = 0;
};

// Which earlier access predicts this one. Both sides of the codec drive it alike.
struct Predictor {
    std::uint8_t lag = 1;  // 0: by site
    bool by_stride = false;
    std::array<Walk, kSiteSlots> walks{};

    std::size_t slot(std::size_t i, std::uint32_t site) const {
        return lag == 0 ? (site * 0x9e3779b1u) >> 20 : i % lag;
    }
    std::uint64_t predict(std::size_t slot) const {
        return walks[slot].last + (by_stride ? walks[slot].stride : 0);
    }
    void learn(std::size_t slot, std::uint64_t address) {
        walks[slot] = {address, address - walks[slot].last};
    }
};
static_assert(kSiteSlots == std::size_t{1} << 12, "slot() keeps the top 12 bits of 32");

std::uint64_t zigzag(std::uint64_t difference) {
    return (difference << 1) ^ (0 - (difference >> 63));
}
std::uint64_t unzigzag(std::uint64_t value) {
    return (value >> 1) ^ (0 - (value & 1));
}

void put_varint(std::string& out, std::uint64_t value) {
    while (value >= 0x80) {
        out += static_cast<char>(value | 0x80);
        value >>= 7;
    }
    out += static_cast<char>(value);
}

// False at the end of the bytes or when the number does not fit.
bool take_varint(const std::uint8_t*& at, const std::uint8_t* end, std::uint64_t most,
                 std::uint64_t& value) {
    value = 0;
    for (int shift = 0; at < end && shift < 64; shift += 7) {
        std::uint64_t byte = *at++;
        if (shift == 63 && byte > 1) return false;
        value |= (byte & 0x7f) << shift;
        if (byte < 0x80) return value <= most;
    }
    return false;
}

std::size_t cost_of(Predictor& predictor, const AccessBatch& batch) {
    std::size_t cost = 0;
    for (std::size_t i = 0; i < std::min(batch.count(), kTrial); ++i) {
        std::size_t slot = predictor.slot(i, batch.sites.empty() ? 0 : batch.sites[i]);
        std::uint64_t left = zigzag(batch.addresses[i] - predictor.predict(slot));
        cost += static_cast<std::size_t>(std::bit_width(left));
        predictor.learn(slot, batch.addresses[i]);
    }
    return cost;
}

Predictor best_predictor(const AccessBatch& batch) {
    Predictor best;
    std::size_t best_cost = ~std::size_t{0};
    for (int lag = batch.sites.empty() ? 1 : 0; lag <= kLargestLag; ++lag)
        for (bool by_stride : {false, true}) {
            Predictor candidate;
            candidate.lag = static_cast<std::uint8_t>(lag);
            candidate.by_stride = by_stride;
            std::size_t cost = cost_of(candidate, batch);
            if (cost >= best_cost) continue;
            best_cost = cost;
            best.lag = candidate.lag;
            best.by_stride = by_stride;
        }
    return best;
}

void pack(std::uint32_t magic, std::uint32_t accesses, std::string_view plain, std::string& out) {
    std::size_t at = out.size();
    out.resize(at + sizeof(ChunkHeader) + ZSTD_compressBound(plain.size()));
    ZSTD_CCtx* context = ZSTD_createCCtx();
    ZSTD_CCtx_setParameter(context, ZSTD_c_compressionLevel, 3);
    ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
    std::size_t packed =
        ZSTD_compress2(context, out.data() + at + sizeof(ChunkHeader),
                       out.size() - at - sizeof(ChunkHeader), plain.data(), plain.size());
    ZSTD_freeCCtx(context);
    ChunkHeader header{magic, accesses, static_cast<std::uint32_t>(plain.size()),
                       static_cast<std::uint32_t>(packed)};
    std::memcpy(out.data() + at, &header, sizeof header);
    out.resize(at + sizeof header + packed);
}

Result<std::string> unpack(const ChunkHeader& header, std::span<const std::uint8_t> packed) {
    std::string plain(header.plain_bytes, '\0');
    std::size_t size = ZSTD_decompress(plain.data(), plain.size(), packed.data(), packed.size());
    if (ZSTD_isError(size) || size != plain.size()) return fail("the chunk is broken");
    return plain;
}

template <class T>
bool take_column(const std::uint8_t*& at, const std::uint8_t* end, std::size_t count, bool has,
                 std::vector<T>& column) {
    if (!has) return true;
    column.resize(count);
    for (T& value : column) {
        std::uint64_t wide;
        if (!take_varint(at, end, std::numeric_limits<T>::max(), wide)) return false;
        value = static_cast<T>(wide);
    }
    return true;
}

}  // namespace

bool ChunkHeader::plausible() const {
    if (packed_bytes > ZSTD_compressBound(plain_bytes)) return false;
    if (magic == kAccessChunk)
        return accesses > 0 && accesses <= kChunkAccesses &&
               plain_bytes <= kPlainHeader + accesses * kLargestAccess;
    // Text chunks may be large, but not larger than their packed bytes can be the image of in practice.
    return plain_bytes <= kLargestText && plain_bytes / 4096 <= packed_bytes;
}

void encode_accesses(const AccessBatch& batch, std::string& out) {
    Predictor predictor = best_predictor(batch);
    ColumnSet has = columns_of(batch);
    std::string plain;
    plain.reserve(kPlainHeader + batch.count() * 4);
    plain += static_cast<char>(has.sites | has.sizes << 1 | has.threads << 2 | has.flags << 3);
    plain += static_cast<char>(predictor.lag);
    plain += static_cast<char>(predictor.by_stride);
    plain += '\0';
    for (std::size_t i = 0; i < batch.count(); ++i) {
        std::size_t slot = predictor.slot(i, has.sites ? batch.sites[i] : 0);
        put_varint(plain, zigzag(batch.addresses[i] - predictor.predict(slot)));
        predictor.learn(slot, batch.addresses[i]);
    }
    for (std::uint32_t site : batch.sites) put_varint(plain, site);
    for (std::uint32_t size : batch.sizes) put_varint(plain, size);
    for (std::uint16_t thread : batch.threads) put_varint(plain, thread);
    for (std::uint8_t flags : batch.flags) put_varint(plain, flags);
    pack(kAccessChunk, static_cast<std::uint32_t>(batch.count()), plain, out);
}

void encode_text(std::uint32_t magic, std::string_view text, std::string& out) {
    pack(magic, 0, text, out);
}

Result<void> decode_accesses(const ChunkHeader& header, std::span<const std::uint8_t> packed,
                             Columns& columns) {
    const std::string plain = TRY(unpack(header, packed));
    const auto* at = reinterpret_cast<const std::uint8_t*>(plain.data());
    const auto* end = at + plain.size();
    auto broken = [] { return fail("the chunk's columns are broken"); };
    if (plain.size() < kPlainHeader || at[0] > 15 || at[1] > kLargestLag || at[2] > 1) return broken();
    columns.clear();
    columns.has = {(at[0] & 1) != 0, (at[0] & 2) != 0, (at[0] & 4) != 0, (at[0] & 8) != 0};
    Predictor predictor;
    predictor.lag = at[1];
    predictor.by_stride = at[2] != 0;
    if (predictor.lag == 0 && !columns.has.sites) return broken();
    at += kPlainHeader;

    // Differences come first in the file but need the sites, which come after: read them, then add up.
    if (!take_column(at, end, header.accesses, true, columns.addresses) ||
        !take_column(at, end, header.accesses, columns.has.sites, columns.sites) ||
        !take_column(at, end, header.accesses, columns.has.sizes, columns.sizes) ||
        !take_column(at, end, header.accesses, columns.has.threads, columns.threads) ||
        !take_column(at, end, header.accesses, columns.has.flags, columns.flags) || at != end)
        return broken();
    for (std::size_t i = 0; i < columns.addresses.size(); ++i) {
        std::size_t slot = predictor.slot(i, columns.has.sites ? columns.sites[i] : 0);
        columns.addresses[i] = predictor.predict(slot) + unzigzag(columns.addresses[i]);
        predictor.learn(slot, columns.addresses[i]);
    }
    return {};
}

Result<std::string> decode_text(const ChunkHeader& header, std::span<const std::uint8_t> packed) {
    return unpack(header, packed);
}

}  // namespace revisit
