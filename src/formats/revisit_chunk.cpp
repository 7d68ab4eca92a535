// Packing accesses.
//
// Problem. Eight bytes of address an access is what a trace of matrix multiply takes raw; zstd alone
// hardly helps, because three interleaved walks never repeat a byte pattern.
// Idea. Predict each address (address_predictor.h) and store the difference. Each chunk tries its
// candidates on its first accesses and keeps the best. Right predictions leave zeros, which zstd packs
// to almost nothing. Zero bits that all differences end with are left out. Columns are planes of bytes
// (byte_planes.h), a zstd frame each, so that columns that nobody wants are not unpacked. Every chunk
// stands alone, so chunks unpack in parallel.
// Cost. Matrix multiply takes under 0.1 byte an access (formats_test.cpp holds the limit of 2).
// Decoding happens in steps that stay in the first-level cache, from planes to blocks of the wanted
// size.
#include "formats/revisit_chunk.h"

#include <zstd.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>
#include <new>

#include "core/try.h"
#include "formats/address_predictor.h"
#include "formats/byte_planes.h"

namespace revisit {
namespace {

constexpr std::size_t kTrial = 4096;
constexpr std::size_t kLargestText = std::size_t{1} << 30;
// As varints: address, site, size and thread, one byte of flags. Planes take less.
constexpr std::size_t kLargestAccess = 10 + 5 + 5 + 3 + 1;
// What zstd's own bound leaves out: frames beyond the first and blocks that end with a plane.
constexpr std::size_t kFramesRoom = 512;
constexpr std::size_t kStepGroups = 64;

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
    for (std::size_t lag = batch.sites.empty() ? 1 : 0; lag <= kLargestLag; ++lag)
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

struct FreePacker {
    void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
};

// One frame. What lies between two ends is packed as blocks of its own.
void pack(std::string_view plain, std::span<const std::size_t> ends, std::string& out) {
    const std::unique_ptr<ZSTD_CCtx, FreePacker> context(ZSTD_createCCtx());
    ZSTD_CCtx_setParameter(context.get(), ZSTD_c_compressionLevel, 3);
    ZSTD_CCtx_setParameter(context.get(), ZSTD_c_checksumFlag, 1);
    ZSTD_CCtx_setPledgedSrcSize(context.get(), plain.size());
    const std::size_t at = out.size();
    out.resize(at + ZSTD_compressBound(plain.size()) + kFramesRoom);
    ZSTD_outBuffer to{out.data() + at, out.size() - at, 0};
    ZSTD_inBuffer from{plain.data(), 0, 0};
    auto pack_up_to = [&](std::size_t end, ZSTD_EndDirective how) {
        from.size = end;
        for (std::size_t left = 1; left != 0;) {
            left = ZSTD_compressStream2(context.get(), &to, &from, how);
            if (ZSTD_isError(left)) throw std::bad_alloc();  // there is room for the result
        }
    };
    for (std::size_t end : ends) pack_up_to(end, ZSTD_e_flush);
    pack_up_to(plain.size(), ZSTD_e_end);
    out.resize(at + to.pos);
}

void put_header(ChunkHeader header, std::size_t at, std::string& out) {
    header.packed_bytes = static_cast<std::uint32_t>(out.size() - at - sizeof header);
    std::memcpy(out.data() + at, &header, sizeof header);
}

struct FreeUnpacker {
    void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};

bool unpack(std::span<const std::uint8_t> packed, std::span<std::uint8_t> plain) {
    // Making one takes as long as unpacking a small chunk.
    thread_local const std::unique_ptr<ZSTD_DCtx, FreeUnpacker> context(ZSTD_createDCtx());
    return ZSTD_decompressDCtx(context.get(), plain.data(), plain.size(), packed.data(),
                               packed.size()) == plain.size();
}

using ByteView = std::span<const std::uint8_t>;

// The frames of a chunk, one after the other, into the room that its header asked for.
class Frames {
 public:
    Frames(ByteView packed, std::span<std::uint8_t> room) : packed_(packed), room_(room) {}

    // Nothing where the frame is broken. Of one that is not wanted only the size is right.
    std::optional<ByteView> next(bool wanted) {
        const unsigned long long size = ZSTD_getFrameContentSize(packed_.data(), packed_.size());
        const std::size_t packed = ZSTD_findFrameCompressedSize(packed_.data(), packed_.size());
        if (size > room_.size() || ZSTD_isError(packed)) return std::nullopt;
        const auto plain = room_.first(static_cast<std::size_t>(size));
        if (wanted && !unpack(packed_.first(packed), plain)) return std::nullopt;
        packed_ = packed_.subspan(packed);
        room_ = room_.subspan(plain.size());
        return plain;
    }
    bool ended() const { return packed_.empty() && room_.empty(); }

 private:
    ByteView packed_;
    std::span<std::uint8_t> room_;
};

// From addresses to blocks. False where an access reaches into another block than it begins in.
bool cut(std::span<std::uint64_t> addresses, const std::uint32_t* sizes, unsigned shift) {
    const std::uint64_t inside = (std::uint64_t{1} << shift) - 1;
    std::uint64_t beyond = 0;
    for (std::size_t i = 0; i < addresses.size(); ++i) {
        beyond |= (addresses[i] & inside) + (sizes[i] - (sizes[i] != 0 ? 1u : 0u));
        addresses[i] >>= shift;
    }
    return beyond <= inside;
}

// A chunk's columns, unpacked.
class PlaneChunk {
 public:
    // False where it is broken. Columns that are neither wanted nor needed stay packed.
    bool open(std::size_t count, Frames frames, const Columns& columns) {
        count_ = count;
        const auto addresses = frames.next(true);
        if (!addresses || addresses->size() < kPlainHeader) return false;
        const std::uint8_t* const head = addresses->data();
        if (head[0] > 15 || head[1] > kLargestLag || head[2] > 1 || head[3] > 63) return false;
        stored_ = {(head[0] & 1) != 0, (head[0] & 2) != 0, (head[0] & 4) != 0, (head[0] & 8) != 0};
        lag_ = head[1];
        by_stride_ = head[2] != 0;
        shift_ = head[3];
        if (lag_ == 0 && !stored_.sites) return false;
        taken_ = stored_ & columns.wanted;
        if (lag_ == 0) taken_.sites = true;
        addresses_ = PlaneReader<std::uint64_t>::of(addresses->subspan(kPlainHeader), count);
        return addresses_ && read(frames, stored_.sites, taken_.sites, sites_) &&
               read(frames, stored_.sizes, taken_.sizes, sizes_) &&
               read(frames, stored_.threads, taken_.threads, threads_) &&
               read(frames, stored_.flags, taken_.flags, flags_) && frames.ended();
    }

    // False where accesses are to be cut and one of them crosses.
    bool decode(Columns& columns) const {
        const bool cuts = columns.cut_shift.has_value();
        columns.has = cuts ? ColumnSet{} : taken_;
        columns.resize(count_);
        AddressSum sum(lag_, by_stride_, shift_);
        Predictor by_site;
        by_site.lag = 0;
        by_site.by_stride = by_stride_;
        const std::size_t lag = std::max<std::size_t>(1, lag_);
        const std::size_t step = BytePlanes::kGroup * (kStepGroups / lag * lag);
        std::uint32_t sites[BytePlanes::kGroup * kStepGroups], sizes[BytePlanes::kGroup * kStepGroups];
        auto addresses_of = addresses_;
        auto sites_of = sites_;
        auto sizes_of = sizes_;
        for (std::size_t at = 0; at < count_; at += step) {
            const auto values = std::span(columns.addresses).subspan(at, std::min(step, count_ - at));
            addresses_of->take(values.size(), values.data());
            if (lag_ != 0)
                sum.add_up(values);
            else {
                sites_of->take(values.size(), sites);
                sum.add_up(values, sites, by_site);
                if (!cuts) std::copy_n(sites, values.size(), columns.sites.data() + at);
            }
            if (!cuts) continue;
            if (sizes_of) {
                sizes_of->take(values.size(), sizes);
                if (!cut(values, sizes, *columns.cut_shift)) return false;
            } else {
                for (std::uint64_t& value : values) value >>= *columns.cut_shift;
            }
        }
        columns.is_cut = cuts;
        if (cuts) return true;
        auto take = [&](auto reader, auto& column) {
            if (reader) reader->take(count_, column.data());
        };
        if (lag_ != 0) take(sites_, columns.sites);
        take(sizes_, columns.sizes);
        take(threads_, columns.threads);
        take(flags_, columns.flags);
        return true;
    }

 private:
    template <class T>
    bool read(Frames& frames, bool is_stored, bool wanted, std::optional<PlaneReader<T>>& column) {
        if (!is_stored) return true;
        const auto bytes = frames.next(wanted);
        if (!bytes) return false;
        if (wanted) column = PlaneReader<T>::of(*bytes, count_);
        return !wanted || column;
    }

    std::size_t count_ = 0;
    ColumnSet stored_, taken_;
    std::size_t lag_ = 1;
    bool by_stride_ = false;
    unsigned shift_ = 0;
    std::optional<PlaneReader<std::uint64_t>> addresses_;
    std::optional<PlaneReader<std::uint32_t>> sites_, sizes_;
    std::optional<PlaneReader<std::uint16_t>> threads_;
    std::optional<PlaneReader<std::uint8_t>> flags_;
};

}  // namespace

bool ChunkHeader::plausible() const {
    const std::size_t frames = magic == kAccessChunk ? kFramesRoom : 0;
    if (packed_bytes > ZSTD_compressBound(plain_bytes) + frames) return false;
    if (holds_accesses())
        return accesses > 0 && accesses <= kChunkAccesses &&
               plain_bytes <= kPlainHeader + accesses * kLargestAccess;
    // Text chunks may be large, but not larger than their packed bytes can be the image of in practice.
    return plain_bytes <= kLargestText && plain_bytes / 4096 <= packed_bytes;
}

void encode_accesses(const AccessBatch& batch, std::string& out) {
    Predictor predictor = best_predictor(batch);
    const ColumnSet has = columns_of(batch);
    std::vector<std::uint64_t> differences(batch.count());
    std::uint64_t all = 0;
    for (std::size_t i = 0; i < batch.count(); ++i) {
        const std::size_t slot = predictor.slot(i, has.sites ? batch.sites[i] : 0);
        differences[i] = batch.addresses[i] - predictor.predict(slot);
        all |= differences[i];
        predictor.learn(slot, batch.addresses[i]);
    }
    const int shift = all == 0 ? 0 : std::countr_zero(all);
    for (std::uint64_t& difference : differences)
        difference = zigzag(static_cast<std::uint64_t>(static_cast<std::int64_t>(difference) >> shift));

    const std::size_t at = out.size();
    out.resize(at + sizeof(ChunkHeader));
    ChunkHeader header{kAccessChunk, static_cast<std::uint32_t>(batch.count()), 0, 0};
    BytePlanes planes;
    auto put = [&](auto column) {
        if (column.empty()) return;
        planes.append(column);
        pack(planes.bytes, planes.ends, out);
        header.plain_bytes += static_cast<std::uint32_t>(planes.bytes.size());
        planes = {};
    };
    planes.bytes += static_cast<char>(has.sites | has.sizes << 1 | has.threads << 2 | has.flags << 3);
    planes.bytes += static_cast<char>(predictor.lag);
    planes.bytes += static_cast<char>(predictor.by_stride);
    planes.bytes += static_cast<char>(shift);
    put(std::span<const std::uint64_t>(differences));
    put(batch.sites);
    put(batch.sizes);
    put(batch.threads);
    put(batch.flags);
    put_header(header, at, out);
}

void encode_text(std::uint32_t magic, std::string_view text, std::string& out) {
    const std::size_t at = out.size();
    out.resize(at + sizeof(ChunkHeader));
    pack(text, {}, out);
    put_header({magic, 0, static_cast<std::uint32_t>(text.size()), 0}, at, out);
}

Result<void> decode_accesses(const ChunkHeader& header, std::span<const std::uint8_t> packed,
                             Columns& columns) {
    const auto memory = std::make_unique_for_overwrite<std::uint8_t[]>(header.plain_bytes);
    const std::span plain(memory.get(), header.plain_bytes);
    if (header.magic == kVarintChunk) {
        if (!unpack(packed, plain)) return fail("the chunk is broken");
        return decode_varints(header.accesses, plain, columns);
    }
    PlaneChunk chunk;
    if (!chunk.open(header.accesses, Frames(packed, plain), columns))
        return fail("the chunk is broken");
    if (chunk.decode(columns)) return {};
    // An access that crosses touches several blocks: whoever wants blocks makes them.
    const auto cut_shift = std::exchange(columns.cut_shift, std::nullopt);
    chunk.decode(columns);
    columns.cut_shift = cut_shift;
    return {};
}

Result<std::string> decode_text(const ChunkHeader& header, std::span<const std::uint8_t> packed) {
    std::string plain(header.plain_bytes, '\0');
    if (!unpack(packed, {reinterpret_cast<std::uint8_t*>(plain.data()), plain.size()}))
        return fail("the chunk is broken");
    return plain;
}

}  // namespace revisit
