// The five traces every speed claim is made on. Seeded: the same on every machine.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

namespace revisit::bench {

struct TraceKind {
    std::string_view name;
    std::string_view description;
    std::vector<std::uint64_t> (*make)(std::size_t accesses);
};

// Block ids, dense: what a program's addresses are after cutting to a granularity.
std::vector<TraceKind> trace_kinds();

std::vector<std::uint64_t> uniform_trace(std::size_t accesses, std::uint64_t blocks);

// The same trace with its ids spread over all 64 bits, one to one.
std::vector<std::uint64_t> scrambled(std::vector<std::uint64_t> blocks);

}  // namespace revisit::bench
