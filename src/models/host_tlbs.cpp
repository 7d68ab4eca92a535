// The TLBs of this machine, where it describes them: CPUID, on x86.
//
// Intel: leaf 0x18, one subleaf per TLB with its page sizes, ways and sets. AMD: leaf 0x80000005 for
// the first level and 0x80000006 for the second, entries and ways in bit fields. Arm has no such
// register.
#include <fmt/format.h>

#include <algorithm>

#include "models/tlbs.h"
#include "revisit/cache.h"
#include "revisit/units.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace revisit {
namespace {

constexpr std::uint64_t kPage = 4096, kHugePage = std::uint64_t{2} << 20;

void add(std::vector<CacheSpec>& out, unsigned level, std::uint64_t page, std::uint64_t entries,
         std::uint64_t ways) {
    if (entries == 0) return;
    if (ways == 0 || ways >= entries || entries % ways != 0) ways = 0;
    out.push_back({entries * page, ways, page,
                   fmt::format("L{} TLB, {} pages", level, format_bytes(static_cast<double>(page)))});
}

std::vector<CacheSpec> intel_tlbs(const CpuidLeaf& cpuid) {
    std::vector<CacheSpec> out;
    const std::uint32_t last = cpuid(0x18, 0).eax;
    for (std::uint32_t sub = 0; sub <= std::min(last, 63u); ++sub) {
        const CpuidWords words = cpuid(0x18, sub);
        const unsigned type = words.edx & 31u, level = words.edx >> 5 & 7u;
        constexpr unsigned kData = 1, kUnified = 3, kLoads = 4;
        if (type != kData && type != kUnified && type != kLoads) continue;
        const std::uint64_t ways = words.ebx >> 16, entries = ways * words.ecx;
        const bool full = (words.edx >> 8 & 1u) != 0;
        if ((words.ebx & 1u) != 0) add(out, level, kPage, entries, full ? 0 : ways);
        if ((words.ebx & 2u) != 0) add(out, level, kHugePage, entries, full ? 0 : ways);
    }
    return out;
}

// Ways of a second-level TLB are coded; 0 says that there is none.
std::uint64_t amd_ways(unsigned code) {
    constexpr std::uint64_t kWays[] = {0, 1, 2, 3, 4, 6, 8, 0, 16, 0, 32, 48, 64, 96, 128, 0};
    return kWays[code & 15u];
}

std::vector<CacheSpec> amd_tlbs(const CpuidLeaf& cpuid) {
    std::vector<CacheSpec> out;
    if (cpuid(0x80000000u, 0).eax < 0x80000006u) return out;
    const CpuidWords first = cpuid(0x80000005u, 0), second = cpuid(0x80000006u, 0);
    auto add_first = [&](std::uint32_t word, std::uint64_t page) {
        const std::uint64_t ways = word >> 24;
        add(out, 1, page, word >> 16 & 255u, ways == 255 ? 0 : ways);
    };
    auto add_second = [&](std::uint32_t word, std::uint64_t page) {
        if (word >> 28 != 0) add(out, 2, page, word >> 16 & 0xfffu, amd_ways(word >> 28));
    };
    add_first(first.ebx, kPage);
    add_first(first.eax, kHugePage);
    add_second(second.ebx, kPage);
    add_second(second.eax, kHugePage);
    return out;
}

}  // namespace

std::vector<CacheSpec> tlbs_of(const CpuidLeaf& cpuid) {
    const CpuidWords vendor = cpuid(0, 0);
    constexpr std::uint32_t kAuthenticAMD = 0x68747541, kHygonGenuine = 0x6f677948;
    std::vector<CacheSpec> out;
    if (vendor.ebx == kAuthenticAMD || vendor.ebx == kHygonGenuine)
        out = amd_tlbs(cpuid);
    else if (vendor.eax >= 0x18)
        out = intel_tlbs(cpuid);
    std::ranges::stable_sort(out, std::less(), &CacheSpec::line);
    return out;
}

std::vector<CacheSpec> host_tlbs() {
#if defined(__x86_64__)
    return tlbs_of([](std::uint32_t leaf, std::uint32_t sub) {
        CpuidWords words;
        __cpuid_count(leaf, sub, words.eax, words.ebx, words.ecx, words.edx);
        return words;
    });
#else
    return {};
#endif
}

std::vector<CacheSpec> typical_tlbs() {
    std::vector<CacheSpec> out;
    for (const std::uint64_t page : {kPage, kHugePage}) {
        const std::string pages = format_bytes(static_cast<double>(page)) + " pages";
        out.push_back({64 * page, 0, page, "64 entries, " + pages});
        out.push_back({1536 * page, 12, page, "1536 entries, " + pages});
    }
    return out;
}

}  // namespace revisit
