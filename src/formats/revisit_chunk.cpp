// Packing accesses.
//
// Problem. Eight bytes of address an access is what a trace of matrix multiply takes raw; zstd alone
// hardly helps, because three interleaved walks never repeat a byte pattern.
// Idea. Predict each address (address_predictor.h) and store the difference. Each chunk tries its
// candidates on its first accesses and keeps the best; where none predicts, as with random accesses,
// the difference is that from the chunk's least address, which takes a bit less and no sum to decode.
// Right predictions leave zeros, which pack to almost nothing. Zero bits that all differences end with
// are left out. Columns are planes of bytes (byte_planes.h), each stored in the form that suits it
// (plane_parts.h), and columns that nobody wants are not unpacked. Every chunk stands alone, so chunks
// unpack in parallel.
// Layout. Checksum of the rest (u64), four bytes (kPlainHeader), the least address (u64), then columns:
// bytes of its parts (u32), parts.
// Cost. Matrix multiply takes under 0.1 byte an access (formats_test.cpp holds the limit of 2).
// Decoding happens in steps that stay in the first-level cache, from planes to blocks of the wanted
// size.
#include "formats/revisit_chunk.h"

#include <zstd.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <memory>
#include <new>

#include "core/try.h"
#include "formats/address_predictor.h"
#include "formats/byte_planes.h"
#include "formats/plane_parts.h"

namespace revisit {
namespace {

constexpr std::size_t kTrial = 4096;
constexpr std::size_t kLargestText = std::size_t{1} << 30;
// As varints: address, site, size and thread, one byte of flags. Planes take less.
constexpr std::size_t kLargestAccess = 10 + 5 + 5 + 3 + 1;
// Beside the parts' bytes: what a chunk begins with, and what comes before columns and parts.
constexpr std::size_t kHeadsRoom = 256;
constexpr std::size_t kStepGroups = 64;
constexpr std::size_t kLeastAt = sizeof(std::uint64_t) + kPlainHeader,
                      kColumnsAt = kLeastAt + sizeof(std::uint64_t);

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

Predictor best_predictor(const AccessBatch& batch, std::uint64_t least) {
    Predictor best;
    best.lag = kFromLeast;
    std::size_t best_cost = 0;
    for (std::uint64_t address : batch.addresses.first(std::min(batch.count(), kTrial)))
        best_cost += static_cast<std::size_t>(std::bit_width(address - least));
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

struct FreeFramePacker {
    void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
};

void pack(std::string_view plain, std::string& out) {
    const std::unique_ptr<ZSTD_CCtx, FreeFramePacker> context(ZSTD_createCCtx());
    ZSTD_CCtx_setParameter(context.get(), ZSTD_c_compressionLevel, 3);
    ZSTD_CCtx_setParameter(context.get(), ZSTD_c_checksumFlag, 1);
    const std::size_t at = out.size(), room = ZSTD_compressBound(plain.size());
    out.resize(at + room);
    const std::size_t size =
        ZSTD_compress2(context.get(), out.data() + at, room, plain.data(), plain.size());
    if (ZSTD_isError(size)) throw std::bad_alloc();  // there is room for the result
    out.resize(at + size);
}

void put_header(ChunkHeader header, std::size_t at, std::string& out) {
    header.packed_bytes = static_cast<std::uint32_t>(out.size() - at - sizeof header);
    std::memcpy(out.data() + at, &header, sizeof header);
}

using ByteView = std::span<const std::uint8_t>;

// From addresses to blocks. False where an access reaches into another block than it begins in.
// `address_of` makes the address of what is there, `reach_of` gives the bytes beyond an access's first.
template <class AddressOf, class ReachOf>
bool cut(std::span<std::uint64_t> values, unsigned shift, AddressOf address_of, ReachOf reach_of) {
    const std::uint64_t inside = (std::uint64_t{1} << shift) - 1;
    std::uint64_t beyond = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
        const std::uint64_t address = address_of(values[i]);
        beyond |= (address & inside) + reach_of(i);
        values[i] = address >> shift;
    }
    return beyond <= inside;
}

std::uint32_t reach_of(std::uint32_t size) {
    return size - (size != 0 ? 1u : 0u);
}

// A chunk's columns, unpacked.
class PlaneChunk {
 public:
    // False where it is broken. Columns that are neither wanted nor needed stay packed.
    bool open(std::size_t count, ByteView stored, std::span<std::uint8_t> room,
              const Columns& columns) {
        count_ = count;
        if (stored.size() < kColumnsAt) return false;
        std::uint64_t sum;
        std::memcpy(&sum, stored.data(), sizeof sum);
        if (checksum(stored.subspan(sizeof sum), count) != sum) return false;
        const std::uint8_t* const head = stored.data() + sizeof sum;
        if (head[0] > 15 || head[1] > kFromLeast || head[2] > 1 || head[3] > 63) return false;
        stored_ = {(head[0] & 1) != 0, (head[0] & 2) != 0, (head[0] & 4) != 0, (head[0] & 8) != 0};
        lag_ = head[1];
        by_stride_ = head[2] != 0;
        shift_ = head[3];
        if (lag_ == 0 && !stored_.sites) return false;
        std::memcpy(&least_, stored.data() + kLeastAt, sizeof least_);
        taken_ = stored_ & columns.wanted;
        if (lag_ == 0) taken_.sites = true;
        stored = stored.subspan(kColumnsAt);
        return read(stored, room, true, true, addresses_) &&
               read(stored, room, stored_.sites, taken_.sites, sites_) &&
               read(stored, room, stored_.sizes, taken_.sizes, sizes_) &&
               read(stored, room, stored_.threads, taken_.threads, threads_) &&
               read(stored, room, stored_.flags, taken_.flags, flags_) && stored.empty();
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
        const std::size_t lag = lag_ == kFromLeast ? 1 : std::max<std::size_t>(1, lag_);
        const std::size_t step = kPlaneGroup * (kStepGroups / lag * lag);
        std::uint32_t sites[kPlaneGroup * kStepGroups];
        auto addresses_of = addresses_;
        auto sites_of = sites_;
        auto sizes_of = sizes_;
        for (std::size_t at = 0; at < count_; at += step) {
            const auto values = std::span(columns.addresses).subspan(at, std::min(step, count_ - at));
            addresses_of->take(values.size(), values.data());
            if (lag_ == kFromLeast) {
                auto from_least = [least = least_, shift = shift_](std::uint64_t difference) {
                    return (difference << shift) + least;
                };
                if (cuts) {
                    if (!cut_step(values, *columns.cut_shift, from_least, sizes_of)) return false;
                    continue;
                }
                for (std::uint64_t& value : values) value = from_least(value);
            } else if (lag_ != 0) {
                sum.add_up(values);
            } else {
                sites_of->take(values.size(), sites);
                sum.add_up(values, sites, by_site);
                if (!cuts) std::copy_n(sites, values.size(), columns.sites.data() + at);
            }
            if (cuts && !cut_step(values, *columns.cut_shift, std::identity{}, sizes_of)) return false;
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
    bool read(ByteView& stored, std::span<std::uint8_t>& room, bool is_stored, bool wanted,
              std::optional<PlaneReader<T>>& column) const {
        if (!is_stored) return true;
        std::uint32_t bytes;
        if (stored.size() < sizeof bytes) return false;
        std::memcpy(&bytes, stored.data(), sizeof bytes);
        stored = stored.subspan(sizeof bytes);
        if (bytes > stored.size()) return false;
        PartReader parts(stored.first(bytes), room);
        stored = stored.subspan(bytes);
        if (!wanted) return true;
        column = PlaneReader<T>::of(count_, [&](std::size_t size) { return parts.next(size); });
        return column && parts.ended();
    }

    template <class AddressOf>
    static bool cut_step(std::span<std::uint64_t> values, unsigned shift, AddressOf address_of,
                         std::optional<PlaneReader<std::uint32_t>>& sizes_of) {
        std::uint32_t sizes[kPlaneGroup * kStepGroups];
        if (!sizes_of) return cut(values, shift, address_of, [](std::size_t) { return 0u; });
        if (sizes_of->alike()) {
            auto first = *sizes_of;
            first.take(1, sizes);
            return cut(values, shift, address_of,
                       [reach = reach_of(sizes[0])](std::size_t) { return reach; });
        }
        sizes_of->take(values.size(), sizes);
        return cut(values, shift, address_of, [&](std::size_t i) { return reach_of(sizes[i]); });
    }

    std::size_t count_ = 0;
    ColumnSet stored_, taken_;
    std::size_t lag_ = 1;
    bool by_stride_ = false;
    unsigned shift_ = 0;
    std::uint64_t least_ = 0;
    std::optional<PlaneReader<std::uint64_t>> addresses_;
    std::optional<PlaneReader<std::uint32_t>> sites_, sizes_;
    std::optional<PlaneReader<std::uint16_t>> threads_;
    std::optional<PlaneReader<std::uint8_t>> flags_;
};

}  // namespace

bool ChunkHeader::plausible() const {
    const std::size_t whole_groups = (accesses + kPlaneGroup - 1) / kPlaneGroup * kPlaneGroup;
    if (magic == kAccessChunk && packed_bytes > plain_bytes + kHeadsRoom) return false;
    if (magic != kAccessChunk && packed_bytes > ZSTD_compressBound(plain_bytes)) return false;
    if (holds_accesses())
        return accesses > 0 && accesses <= kChunkAccesses &&
               plain_bytes <= kPlainHeader + whole_groups * kLargestAccess;
    // Text chunks may be large, but not larger than their packed bytes can be the image of in practice.
    return plain_bytes <= kLargestText && plain_bytes / 4096 <= packed_bytes;
}

void encode_accesses(const AccessBatch& batch, std::string& out) {
    const std::uint64_t least = *std::ranges::min_element(batch.addresses);
    Predictor predictor = best_predictor(batch, least);
    const bool predicts = predictor.lag != kFromLeast;
    const ColumnSet has = columns_of(batch);
    std::vector<std::uint64_t> differences(batch.count());
    std::uint64_t all = 0;
    for (std::size_t i = 0; i < batch.count(); ++i) {
        if (predicts) {
            const std::size_t slot = predictor.slot(i, has.sites ? batch.sites[i] : 0);
            differences[i] = batch.addresses[i] - predictor.predict(slot);
            predictor.learn(slot, batch.addresses[i]);
        } else {
            differences[i] = batch.addresses[i] - least;
        }
        all |= differences[i];
    }
    const int shift = all == 0 ? 0 : std::countr_zero(all);
    for (std::uint64_t& difference : differences)
        difference =
            predicts
                ? zigzag(static_cast<std::uint64_t>(static_cast<std::int64_t>(difference) >> shift))
                : difference >> shift;

    const std::size_t at = out.size(), content = at + sizeof(ChunkHeader);
    out.resize(content + sizeof(std::uint64_t));
    ChunkHeader header{kAccessChunk, static_cast<std::uint32_t>(batch.count()), 0, 0};
    out += static_cast<char>(has.sites | has.sizes << 1 | has.threads << 2 | has.flags << 3);
    out += static_cast<char>(predictor.lag);
    out += static_cast<char>(predictor.by_stride);
    out += static_cast<char>(shift);
    out.append(reinterpret_cast<const char*>(&least), sizeof least);
    auto put = [&](auto column) {
        if (column.empty()) return;
        const std::size_t begin = out.size();
        std::uint32_t bytes = 0;
        out.resize(begin + sizeof bytes);
        for (const std::string& part : planes_of(column)) {
            put_part(part, out);
            header.plain_bytes += static_cast<std::uint32_t>(part.size());
        }
        bytes = static_cast<std::uint32_t>(out.size() - begin - sizeof bytes);
        std::memcpy(out.data() + begin, &bytes, sizeof bytes);
    };
    put(std::span<const std::uint64_t>(differences));
    put(batch.sites);
    put(batch.sizes);
    put(batch.threads);
    put(batch.flags);
    const auto* const bytes = reinterpret_cast<const std::uint8_t*>(out.data()) + content;
    const std::uint64_t sum =
        checksum(ByteView(bytes, out.size() - content).subspan(sizeof(std::uint64_t)), header.accesses);
    std::memcpy(out.data() + content, &sum, sizeof sum);
    put_header(header, at, out);
}

void encode_text(std::uint32_t magic, std::string_view text, std::string& out) {
    const std::size_t at = out.size();
    out.resize(at + sizeof(ChunkHeader));
    pack(text, out);
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
    if (!chunk.open(header.accesses, packed, plain, columns)) return fail("the chunk is broken");
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
