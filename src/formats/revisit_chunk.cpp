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
// unpack in parallel. Numbers are taken from words of eight
// bytes, eight at once where each has one byte, and columns that nobody wants are stepped over: of the
// CPU time of `analyze --threads 1`, decoding without zstd is 13 % on a matrix multiply, 10 % on random
// addresses (perf, Neoverse V1).
#include "formats/revisit_chunk.h"

#include <zstd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <memory>
#include <utility>

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

struct FreeContext {
    void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};

// Leaves `plain` with header.plain_bytes bytes.
Result<void> unpack(const ChunkHeader& header, std::span<const std::uint8_t> packed, char* plain) {
    // Making one takes as long as unpacking a small chunk.
    thread_local const std::unique_ptr<ZSTD_DCtx, FreeContext> context(ZSTD_createDCtx());
    const std::size_t size =
        ZSTD_decompressDCtx(context.get(), plain, header.plain_bytes, packed.data(), packed.size());
    if (ZSTD_isError(size) || size != header.plain_bytes) return fail("the chunk is broken");
    return {};
}

constexpr std::uint64_t kEnds = 0x8080808080808080;  // bits that the last byte of a number has not

// The bits of a number out of its bytes, at most eight.
std::uint64_t number_of(std::uint64_t bytes) {
    bytes &= ~kEnds;
    bytes = (bytes & 0x007f007f007f007f) | (bytes & 0x7f007f007f007f00) >> 1;
    bytes = (bytes & 0x00003fff00003fff) | (bytes & 0x3fff00003fff0000) >> 2;
    return (bytes & 0x000000000fffffff) | (bytes & 0x0fffffff00000000) >> 4;
}

std::uint64_t word_at(const std::uint8_t* at) {
    std::uint64_t word;
    std::memcpy(&word, at, sizeof word);
    return word;
}

// Numbers that are stepped over.
bool skip_column(const std::uint8_t*& at, const std::uint8_t* end, std::size_t count) {
    while (count != 0) {
        if (end - at >= 8) {
            const auto ends = static_cast<std::size_t>(std::popcount(~word_at(at) & kEnds));
            if (ends < count) {
                count -= ends;
                at += 8;
                continue;
            }
        }
        if (at == end) return false;
        count -= *at++ < 0x80;
    }
    return true;
}

template <class T>
bool take_column(const std::uint8_t*& from, const std::uint8_t* end, std::size_t count,
                 std::vector<T>& column) {
    column.resize(count);
    T* const out = column.data();
    const std::uint8_t* at = from;
    std::size_t i = 0;
    // A word holds at most eight numbers.
    while (count - i >= 8 && end - at >= 8) {
        std::uint64_t word = word_at(at), ends = ~word & kEnds;
        if (ends == kEnds) {
            for (std::size_t j = 0; j < 8; ++j) out[i + j] = at[j];
            at += 8;
            i += 8;
            continue;
        }
        if (ends == 0) {
            std::uint64_t wide;
            if (!take_varint(at, end, std::numeric_limits<T>::max(), wide)) return false;
            out[i++] = static_cast<T>(wide);
            continue;
        }
        at += 8 - static_cast<std::size_t>(std::countl_zero(ends)) / 8;
        do {
            const int last = std::countr_zero(ends);  // bit 7 of the number's last byte
            const std::uint64_t value = number_of(word & (~std::uint64_t{0} >> (63 - last)));
            if (value > std::numeric_limits<T>::max()) return false;
            out[i++] = static_cast<T>(value);
            word = word >> last >> 1;
            ends = ends >> last >> 1;
        } while (ends != 0);
    }
    for (; i < count; ++i) {
        std::uint64_t wide;
        if (!take_varint(at, end, std::numeric_limits<T>::max(), wide)) return false;
        out[i] = static_cast<T>(wide);
    }
    from = at;
    return true;
}

// From differences to addresses, predicted from the access kLag places back: what Predictor does, in
// registers.
template <std::size_t kLag, bool kByStride>
void add_up(std::vector<std::uint64_t>& addresses) {
    std::uint64_t last[kLag] = {}, stride[kLag] = {};
    auto add = [&](std::uint64_t& value, std::size_t slot) {
        value = unzigzag(value) + last[slot] + (kByStride ? stride[slot] : 0);
        stride[slot] = value - last[slot];
        last[slot] = value;
    };
    std::size_t i = 0;
    for (; i + kLag <= addresses.size(); i += kLag)
        for (std::size_t j = 0; j < kLag; ++j) add(addresses[i + j], j);
    for (std::size_t j = 0; i + j < addresses.size(); ++j) add(addresses[i + j], j);
}

template <std::size_t... kLags>
void add_up(std::vector<std::uint64_t>& addresses, std::size_t lag, bool by_stride,
            std::index_sequence<kLags...>) {
    (void)((lag == kLags + 1 &&
            (by_stride ? add_up<kLags + 1, true>(addresses) : add_up<kLags + 1, false>(addresses),
             true)) ||
           ...);
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
    const auto plain = std::make_unique_for_overwrite<char[]>(header.plain_bytes);
    TRY(unpack(header, packed, plain.get()));
    const auto* at = reinterpret_cast<const std::uint8_t*>(plain.get());
    const auto* end = at + header.plain_bytes;
    auto broken = [] { return fail("the chunk's columns are broken"); };
    if (header.plain_bytes < kPlainHeader || at[0] > 15 || at[1] > kLargestLag || at[2] > 1)
        return broken();
    const ColumnSet stored{(at[0] & 1) != 0, (at[0] & 2) != 0, (at[0] & 4) != 0, (at[0] & 8) != 0};
    const std::uint8_t lag = at[1];
    const bool by_stride = at[2] != 0;
    if (lag == 0 && !stored.sites) return broken();
    at += kPlainHeader;
    columns.clear();
    columns.has = stored & columns.wanted;
    if (lag == 0) columns.has.sites = true;

    // Differences come first in the file but need the sites, which come after: read them, then add up.
    const std::size_t count = header.accesses;
    auto take = [&](bool is_stored, bool wanted, auto& column) {
        if (!is_stored) return true;
        return wanted ? take_column(at, end, count, column) : skip_column(at, end, count);
    };
    if (!take(true, true, columns.addresses) || !take(stored.sites, columns.has.sites, columns.sites) ||
        !take(stored.sizes, columns.has.sizes, columns.sizes) ||
        !take(stored.threads, columns.has.threads, columns.threads) ||
        !take(stored.flags, columns.has.flags, columns.flags) || at != end)
        return broken();
    if (lag != 0) {
        add_up(columns.addresses, lag, by_stride, std::make_index_sequence<kLargestLag>{});
        return {};
    }
    Predictor predictor;
    predictor.lag = lag;
    predictor.by_stride = by_stride;
    for (std::size_t i = 0; i < columns.addresses.size(); ++i) {
        const std::size_t slot = predictor.slot(i, columns.sites[i]);
        columns.addresses[i] = predictor.predict(slot) + unzigzag(columns.addresses[i]);
        predictor.learn(slot, columns.addresses[i]);
    }
    return {};
}

Result<std::string> decode_text(const ChunkHeader& header, std::span<const std::uint8_t> packed) {
    std::string plain(header.plain_bytes, '\0');
    TRY(unpack(header, packed, plain.data()));
    return plain;
}

}  // namespace revisit
