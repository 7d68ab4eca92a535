#include "formats/plane_parts.h"

#include <zstd.h>
#if defined(__aarch64__)
#include <arm_neon.h>
#endif

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <memory>
#include <new>

namespace revisit {
namespace {

// Before each part: how many bytes are stored, and how.
enum Kind : std::uint32_t { kAsTheyAre, kPacked, kAlike, kSparse };
constexpr unsigned kKindBits = 2;

struct FreeUnpacker {
    void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};

constexpr std::size_t kRun = 64, kEight = 8;
// Widths are looked at twice: they are copied, so that somebody who writes to a mapped file meanwhile
// changes numbers and not where they are looked for.
constexpr std::size_t kCopied = std::size_t{4} << 10;

// Which bytes are not zero, a bit each, then those bytes, then some that decoding may look at.
std::size_t sparse_size(std::string_view plain) {
    const auto zeros = static_cast<std::size_t>(std::ranges::count(plain, '\0'));
    return (plain.size() + kRun - 1) / kRun * sizeof(std::uint64_t) + plain.size() - zeros + kEight;
}
void put_sparse(std::string_view plain, std::string& out) {
    const std::size_t at = out.size();
    out.resize(at + sparse_size(plain), '\0');
    char* masks = out.data() + at;
    char* byte = masks + (plain.size() + kRun - 1) / kRun * sizeof(std::uint64_t);
    for (; !plain.empty(); plain.remove_prefix(std::min(kRun, plain.size()))) {
        std::uint64_t mask = 0;
        for (std::size_t i = 0; i < std::min(kRun, plain.size()); ++i) {
            mask |= std::uint64_t{plain[i] != 0} << i;
            *byte = plain[i];  // there is one more than are needed
            byte += plain[i] != 0;
        }
        std::memcpy(masks, &mask, sizeof mask);
        masks += sizeof mask;
    }
}

// Where each of eight bytes comes from, by the eight bits of their mask; kEight: it is zero.
using Sources = std::array<std::uint8_t, kEight>;
constexpr std::array<Sources, 256> kSources = [] {
    std::array<Sources, 256> out{};
    for (std::size_t mask = 0; mask < out.size(); ++mask) {
        std::uint8_t from = 0;
        for (std::size_t i = 0; i < kEight; ++i)
            out[mask][i] = (mask >> i & 1) != 0 ? from++ : std::uint8_t{kEight};
    }
    return out;
}();

void spread_eight(const std::uint8_t* from, const Sources& sources, std::uint8_t* to) {
#if defined(__aarch64__)
    vst1_u8(to, vtbl1_u8(vld1_u8(from), vld1_u8(sources.data())));
#else
    std::uint8_t bytes[2 * kEight] = {};
    std::memcpy(bytes, from, kEight);
    for (std::size_t i = 0; i < kEight; ++i) to[i] = bytes[sources[i]];
#endif
}

// False where the bytes are not as many as the masks say.
bool spread(std::span<const std::uint8_t> part, std::span<std::uint8_t> plain) {
    const std::size_t runs = (plain.size() + kRun - 1) / kRun, masks = runs * sizeof(std::uint64_t);
    if (part.size() < masks + kEight) return false;
    const std::uint8_t *byte = part.data() + masks, *const end = part.data() + part.size() - kEight;
    for (std::size_t run = 0; run < runs; ++run) {
        std::uint64_t mask;
        std::memcpy(&mask, part.data() + run * sizeof mask, sizeof mask);
        if (std::popcount(mask) > end - byte) return false;
        // Bits in each byte of the mask, then in all bytes before it.
        std::uint64_t before = mask - (mask >> 1 & 0x5555555555555555);
        before = (before & 0x3333333333333333) + (before >> 2 & 0x3333333333333333);
        before = ((before + (before >> 4)) & 0x0f0f0f0f0f0f0f0f) * 0x0101010101010101 << 8;
        std::uint8_t spread_run[kRun];
        const std::size_t size = std::min(kRun, plain.size() - run * kRun);
        std::uint8_t* const to = size == kRun ? plain.data() + run * kRun : spread_run;
        for (unsigned at = 0; at < kRun; at += kEight)
            spread_eight(byte + (before >> at & 0xff), kSources[mask >> at & 0xff], to + at);
        if (size < kRun) {
            if (mask >> size != 0) return false;
            std::copy_n(spread_run, size, plain.data() + run * kRun);
        }
        byte += std::popcount(mask);
    }
    return byte == end;
}

}  // namespace

bool unpack(std::span<const std::uint8_t> packed, std::span<std::uint8_t> plain) {
    // Making one takes as long as unpacking a small chunk.
    thread_local const std::unique_ptr<ZSTD_DCtx, FreeUnpacker> context(ZSTD_createDCtx());
    return ZSTD_decompressDCtx(context.get(), plain.data(), plain.size(), packed.data(),
                               packed.size()) == plain.size();
}

void put_part(std::string_view plain, std::string& out) {
    const std::size_t at = out.size();
    std::uint32_t head = 0;
    out.resize(at + sizeof head);
    Kind kind = kAsTheyAre;
    if (!plain.empty() && plain.find_first_not_of(plain[0]) == plain.npos) {
        kind = kAlike;
        out += plain[0];
    } else {
        std::string packed(ZSTD_compressBound(plain.size()), '\0');
        const std::size_t size =
            ZSTD_compress(packed.data(), packed.size(), plain.data(), plain.size(), 3);
        if (ZSTD_isError(size)) throw std::bad_alloc();  // there is room for the result
        packed.resize(size);
        const std::size_t few = sparse_size(plain);
        const std::size_t quick = few < plain.size() / 4 * 3 ? few : plain.size();
        if (packed.size() < quick / 2) {
            kind = kPacked;
            out += packed;
        } else if (quick < plain.size()) {
            kind = kSparse;
            put_sparse(plain, out);
        } else {
            out += plain;
        }
    }
    head = static_cast<std::uint32_t>(out.size() - at - sizeof head) << kKindBits | kind;
    std::memcpy(out.data() + at, &head, sizeof head);
}

std::optional<PlainPart> PartReader::next(std::size_t size) {
    std::uint32_t head;
    if (stored_.size() < sizeof head) return std::nullopt;
    std::memcpy(&head, stored_.data(), sizeof head);
    stored_ = stored_.subspan(sizeof head);
    const std::size_t bytes = head >> kKindBits;
    if (bytes > stored_.size()) return std::nullopt;
    const auto part = stored_.first(bytes);
    stored_ = stored_.subspan(bytes);
    const std::uint32_t kind = head & ((1u << kKindBits) - 1);
    if (kind == kAsTheyAre && bytes != size) return std::nullopt;
    if (kind == kAsTheyAre && size > kCopied) return PlainPart{part.data(), false};
    if (size > room_.size()) return std::nullopt;
    const auto plain = room_.first(size);
    room_ = room_.subspan(size);
    if (kind == kAsTheyAre) {
        std::ranges::copy(part, plain.begin());
        return PlainPart{plain.data(), false};
    }
    if (kind == kAlike) {
        if (bytes != 1) return std::nullopt;
        std::fill(plain.begin(), plain.end(), part[0]);
        return PlainPart{plain.data(), true};
    }
    if (!(kind == kPacked ? unpack(part, plain) : spread(part, plain))) return std::nullopt;
    return PlainPart{plain.data(), false};
}

// Sums of words and sums of these sums, in lanes that vectors take at once.
std::uint64_t checksum(std::span<const std::uint8_t> bytes, std::uint64_t seed) {
    constexpr std::size_t kLanes = 8, kStep = kLanes * sizeof(std::uint64_t);
    std::uint64_t sums[kLanes] = {}, sums_of_sums[kLanes] = {};
    auto add = [&](const std::uint8_t* at) {
        std::uint64_t words[kLanes];
        std::memcpy(words, at, kStep);
        for (std::size_t i = 0; i < kLanes; ++i) sums[i] += words[i];
        for (std::size_t i = 0; i < kLanes; ++i) sums_of_sums[i] += sums[i];
    };
    std::uint64_t all = seed + bytes.size();
    for (; bytes.size() >= kStep; bytes = bytes.subspan(kStep)) add(bytes.data());
    std::uint8_t last[kStep] = {};
    std::copy(bytes.begin(), bytes.end(), last);
    add(last);
    for (std::size_t i = 0; i < kLanes; ++i)
        for (const std::uint64_t sum : {sums[i], sums_of_sums[i]}) {
            all = (all ^ sum) * 0x9e3779b97f4a7c15u;
            all ^= all >> 29;
        }
    return all;
}

}  // namespace revisit
