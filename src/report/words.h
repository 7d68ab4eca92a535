// Figures and places as people read them, the same in every view.
#pragma once

#include <cstdint>
#include <string>

#include "revisit/profile.h"

namespace revisit {

std::string percent(double share);  // "12.34 %"

// Distances as the memory they span, which is what a cache's size is compared with.
std::string span_of(double blocks, std::uint64_t granularity);
std::string bin_label(const Bin& bin, std::uint64_t granularity);

std::string place_of(const Site& site);  // "matmul.c:12 multiply"
std::string last_part(const std::string& path);

}  // namespace revisit
