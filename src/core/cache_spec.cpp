#include "revisit/cache_spec.h"

#include <fmt/format.h>

#include "revisit/units.h"

namespace revisit {

Result<CacheSpec> CacheSpec::parse(std::string_view spec) {
    std::string_view whole = spec, name = spec;
    if (std::size_t equals = spec.find('='); equals != std::string_view::npos && equals > 0) {
        name = spec.substr(0, equals);
        spec.remove_prefix(equals + 1);
    }
    auto bad = [&] {
        return fail(
            fmt::format("expected a cache as SIZE:WAYS:LINE, e.g. 32K:8:64, found \"{}\"", whole));
    };
    std::size_t first = spec.find(':');
    std::size_t second = first == std::string_view::npos ? first : spec.find(':', first + 1);
    if (second == std::string_view::npos) return bad();
    auto size = parse_bytes(spec.substr(0, first));
    auto line = parse_bytes(spec.substr(second + 1));
    std::string_view ways_text = spec.substr(first + 1, second - first - 1);
    CacheSpec out;
    if (ways_text != "full") {
        auto ways = parse_count(ways_text);
        if (!ways || *ways == 0) return bad();
        out.ways = *ways;
    }
    if (!size || !line || *line == 0 || *size == 0) return bad();
    out.bytes = *size;
    out.line = *line;
    out.name = name;
    if (out.bytes % out.line != 0)
        return fail(fmt::format("the cache \"{}\" is not a whole number of lines", spec));
    if (out.blocks() % out.associativity() != 0)
        return fail(fmt::format("the cache \"{}\" is not a whole number of sets", spec));
    return out;
}

}  // namespace revisit
