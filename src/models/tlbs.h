// What CPUID says about TLBs, apart from the instruction itself.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "revisit/cache.h"

namespace revisit {

struct CpuidWords {
    std::uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
};
using CpuidLeaf = std::function<CpuidWords(std::uint32_t leaf, std::uint32_t sub)>;

// Data and unified TLBs for pages of 4 KiB and 2 MiB, smaller pages first.
std::vector<CacheSpec> tlbs_of(const CpuidLeaf& cpuid);

}  // namespace revisit
