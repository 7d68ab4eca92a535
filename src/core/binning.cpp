// Bin edges.
//
// Within the octave [2^e, 2^(e+1)), bin j of K starts at 2^e + ceil(j * 2^e / K). For K > 2^e some of
// these coincide; such empty bins keep an unused number in `index`, and the edge functions never return
// one. All products fit in 128 bits, those of distances below 2^43 in 64.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>

#include "revisit/histogram.h"
#include "revisit/units.h"

namespace revisit {
namespace {

constexpr std::uint64_t kTop = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t kMostPerOctave = 1 << 20;

__extension__ using Wide = unsigned __int128;

// Which of the K bins of its octave a distance lies in: the largest j with ceil(j * 2^e / K) <= offset.
std::uint64_t sub_bin(std::uint64_t offset, int octave, std::uint64_t k) {
    return static_cast<std::uint64_t>((Wide{offset} * k) >> octave);
}

std::uint64_t sub_low(std::uint64_t j, int octave, std::uint64_t k) {
    if (octave <= 42) return ((j << octave) + k - 1) / k;  // j < k <= 2^20; a 128-bit division is slow
    Wide span = Wide{1} << octave;
    return static_cast<std::uint64_t>((j * span + k - 1) / k);
}

}  // namespace

Result<Binning> Binning::parse(std::string_view spec) {
    auto bad = [&] {
        return fail(fmt::format("expected bins log2, log2:K, linear:W or exact, found \"{}\"", spec));
    };
    if (spec == "log2") return log2();
    if (spec == "exact") return exact();
    auto colon = spec.find(':');
    if (colon == std::string_view::npos) return bad();
    auto parameter = parse_count(spec.substr(colon + 1));
    if (!parameter || *parameter == 0) return bad();
    if (spec.substr(0, colon) == "linear") return linear(*parameter);
    if (spec.substr(0, colon) != "log2") return bad();
    if (*parameter > kMostPerOctave)
        return fail(fmt::format("log2:{} asks for more than {} bins per power of two", *parameter,
                                kMostPerOctave));
    return log2(*parameter);
}

std::string Binning::spec() const {
    switch (kind_) {
        case Kind::exact:
            return "exact";
        case Kind::linear:
            return fmt::format("linear:{}", parameter_);
        case Kind::log2:
            break;
    }
    return parameter_ == 1 ? "log2" : fmt::format("log2:{}", parameter_);
}

std::uint64_t Binning::index(std::uint64_t distance) const {
    if (kind_ == Kind::exact) return distance;
    if (kind_ == Kind::linear) return distance / std::max<std::uint64_t>(1, parameter_);
    if (distance == 0) return 0;
    int octave = std::bit_width(distance) - 1;
    return 1 + octave * parameter_ +
           sub_bin(distance - (std::uint64_t{1} << octave), octave, parameter_);
}

std::uint64_t Binning::low_edge(std::uint64_t distance) const {
    if (kind_ == Kind::exact) return distance;
    if (kind_ == Kind::linear) return distance - distance % std::max<std::uint64_t>(1, parameter_);
    if (distance == 0) return 0;
    int octave = std::bit_width(distance) - 1;
    std::uint64_t start = std::uint64_t{1} << octave;
    return start + sub_low(sub_bin(distance - start, octave, parameter_), octave, parameter_);
}

std::uint64_t Binning::high_edge(std::uint64_t low) const {
    if (kind_ == Kind::exact) return low == kTop ? kTop : low + 1;
    if (kind_ == Kind::linear)
        return kTop - low < parameter_ ? kTop : low + std::max<std::uint64_t>(1, parameter_);
    if (low == 0) return 1;
    int octave = std::bit_width(low) - 1;
    std::uint64_t start = std::uint64_t{1} << octave;
    std::uint64_t j = sub_bin(low - start, octave, parameter_) + 1;
    if (j >= parameter_) return octave == 63 ? kTop : start << 1;
    return start + sub_low(j, octave, parameter_);
}

}  // namespace revisit
