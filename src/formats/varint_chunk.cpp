// Chunks of accesses as revisit wrote them until version 1.0: differences and columns as varints, all
// in one zstd frame. Numbers are taken from words of eight bytes, eight at once where each has one
// byte, and columns that nobody wants are stepped over.
#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "formats/address_predictor.h"
#include "formats/revisit_chunk.h"

namespace revisit {
namespace {

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

}  // namespace

Result<void> decode_varints(std::size_t count, std::span<const std::uint8_t> plain, Columns& columns) {
    const std::uint8_t* at = plain.data();
    const std::uint8_t* const end = at + plain.size();
    auto broken = [] { return fail("the chunk's columns are broken"); };
    if (plain.size() < kPlainHeader || at[0] > 15 || at[1] > kLargestLag || at[2] > 1) return broken();
    const ColumnSet stored{(at[0] & 1) != 0, (at[0] & 2) != 0, (at[0] & 4) != 0, (at[0] & 8) != 0};
    const std::uint8_t lag = at[1];
    const bool by_stride = at[2] != 0;
    if (lag == 0 && !stored.sites) return broken();
    at += kPlainHeader;
    columns.clear();
    columns.has = stored & columns.wanted;
    if (lag == 0) columns.has.sites = true;

    // Differences come first in the file but need the sites, which come after: read them, then add up.
    auto take = [&](bool is_stored, bool wanted, auto& column) {
        if (!is_stored) return true;
        return wanted ? take_column(at, end, count, column) : skip_column(at, end, count);
    };
    if (!take(true, true, columns.addresses) || !take(stored.sites, columns.has.sites, columns.sites) ||
        !take(stored.sizes, columns.has.sizes, columns.sizes) ||
        !take(stored.threads, columns.has.threads, columns.threads) ||
        !take(stored.flags, columns.has.flags, columns.flags) || at != end)
        return broken();
    AddressSum sum(lag, by_stride, 0);
    if (lag != 0) {
        sum.add_up(columns.addresses);
        return {};
    }
    Predictor by_site;
    by_site.lag = 0;
    by_site.by_stride = by_stride;
    sum.add_up(columns.addresses, columns.sites.data(), by_site);
    return {};
}

}  // namespace revisit
