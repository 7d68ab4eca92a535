// Figures and places as people read them, the same in every view.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "revisit/profile.h"

namespace revisit {

std::string percent(double share);        // "12.34 %"
std::string percent_whole(double share);  // "12 %", "<1 %", ">99 %"
// No more digits than a 95 % half-width allows: "74 % ± 3 %", "0.3 % ± 0.1 %"; exact figures have two.
std::string percent(double share, double error);
std::string percent_with_error(double share, double error);

// Fewer samples than this carry no percentage at all: the summary leads with their number.
inline constexpr double kFewestSamples = 100;
// Rates known no better are not shown as figures.
inline constexpr double kMostStated = 0.25;
std::string not_known_text();
// "± 60 %" of the number of accesses where that is an estimate, else nothing.
std::string accesses_error_text(const Profile& profile);
// "between 7.07 MiB and 37.6 MiB": the memory touched, where that is an estimate, else nothing.
std::string distinct_range_text(const Profile& profile);
// How misses of Profile::caches were counted.
std::string_view sets_known_by(const Profile& profile);
// A count is shown grey, and advice ignores it, when its 95 % half-width is over half of it.
constexpr bool too_few_samples(double count, double error) {
    return error > count / 2;
}
// The same for a part of a sampled profile that carries no error of its own: by the number of samples
// it stands for, 1.96 √n > n / 2.
bool too_few_samples(const Profile& profile, double count);

// Distances as the memory they span, which is what a cache's size is compared with.
std::string span_of(double blocks, std::uint64_t granularity);
std::string bin_label(const Bin& bin, std::uint64_t granularity);

std::string place_of(const Site& site);  // "matmul.c:12 multiply"
std::string last_part(const std::string& path);

}  // namespace revisit
