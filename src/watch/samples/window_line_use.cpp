#include "watch/samples/window_line_use.h"

#include <bit>

#include "watch/samples/conflicts.h"

namespace revisit::watch {

void WindowLineUse::Sums::merge(const Sums& other) {
    lines += other.lines;
    bytes += other.bytes;
    lines_squared += other.lines_squared;
    bytes_squared += other.bytes_squared;
    products += other.products;
    parts |= other.parts;
    windows += other.windows;
}

double WindowLineUse::Sums::error() const {
    if (windows < 2 || lines <= 0) return used();
    return ratio_error(windows, bytes, bytes_squared, products, lines, lines_squared);
}

void WindowLineUse::add(const AccessLog& log, unsigned shift) {
    struct Line {
        std::uint64_t pc = 0, parts = 0;
        bool counts = false;
    };
    std::unordered_map<std::uint64_t, Line> lines;
    const auto& accesses = log.accesses();
    for (std::size_t i = 0; i < accesses.size(); i++) {
        const LoggedAccess& access = accesses[i];
        for_blocks(access, shift, [&](std::uint64_t block) {
            auto [line, is_new] = lines.try_emplace(block);
            if (is_new) line->second = {access.pc, 0, i < accesses.size() / 2};
            line->second.parts |= parts_of(block, shift, access.address, access.bytes);
        });
    }
    const double part_bytes = shift > 6 ? static_cast<double>(std::uint64_t{1} << (shift - 6)) : 1;
    std::unordered_map<std::uint64_t, Sums> here;
    for (const auto& [block, line] : lines) {
        if (!line.counts) continue;
        Sums& sums = here[line.pc];
        sums.lines++;
        sums.bytes += part_bytes * std::popcount(line.parts);
        sums.parts |= line.parts;
    }
    for (auto& [pc, sums] : here) {
        sums.windows = 1;
        sums.lines_squared = sums.lines * sums.lines;
        sums.bytes_squared = sums.bytes * sums.bytes;
        sums.products = sums.lines * sums.bytes;
        sites_[pc].merge(sums);
    }
}

}  // namespace revisit::watch
