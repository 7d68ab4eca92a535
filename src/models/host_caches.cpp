// The caches of this machine, as the kernel describes them in sysfs.
#include <fmt/format.h>

#include <fstream>

#include "revisit/cache.h"
#include "revisit/units.h"

namespace revisit {
namespace {

std::string first_line(const std::string& path) {
    std::ifstream file(path);
    std::string line;
    std::getline(file, line);
    return line;
}

std::uint64_t number_in(const std::string& path) {
    return parse_bytes(first_line(path)).value_or(0);
}

}  // namespace

std::vector<CacheSpec> host_caches() {
    std::vector<CacheSpec> out;
    for (int index = 0;; ++index) {
        std::string folder = fmt::format("/sys/devices/system/cpu/cpu0/cache/index{}/", index);
        std::string type = first_line(folder + "type");
        if (type.empty()) return out;
        if (type == "Instruction") continue;
        CacheSpec cache;
        cache.bytes = number_in(folder + "size");
        cache.ways = number_in(folder + "ways_of_associativity");
        cache.line = number_in(folder + "coherency_line_size");
        cache.name = fmt::format("L{}{}", first_line(folder + "level"), type == "Data" ? "d" : "");
        bool usable = cache.bytes > 0 && cache.line > 0 && cache.bytes % cache.line == 0;
        if (usable && cache.ways != 0 && cache.blocks() % cache.ways != 0) cache.ways = 0;
        if (usable) out.push_back(cache);
    }
}

}  // namespace revisit
