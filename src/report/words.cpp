#include "report/words.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "revisit/units.h"

namespace revisit {

std::string percent(double share) {
    double value = 100 * share;
    if (value > 0 && value < 0.01) return "<0.01 %";
    if (std::fabs(value) < 0.005) value = 0;  // never "-0.00 %"
    return fmt::format("{:.2f} %", value);
}

std::string percent_whole(double share) {
    double value = 100 * share;
    if (value > 0 && value < 0.5) return "<1 %";
    if (value > 99.5 && value < 100) return ">99 %";
    return fmt::format("{:.0f} %", std::fabs(value) < 0.5 ? 0 : value);
}

namespace {

std::string percent_to(double share, int decimals) {
    double value = 100 * share;
    if (std::fabs(value) < 0.5 * std::pow(10.0, -decimals)) value = 0;
    return fmt::format("{:.{}f} %", value, decimals);
}

// The place of the error's first digit.
int decimals_of(double error) {
    return static_cast<int>(std::clamp(-std::floor(std::log10(100 * error)), 0.0, 2.0));
}

}  // namespace

std::string percent(double share, double error) {
    return error > 0 ? percent_to(share, decimals_of(error)) : percent(share);
}

std::string not_known_text() {
    return fmt::format("not known within ± {:.0f} points: more samples needed", 100 * kMostStated);
}

std::string accesses_error_text(const Profile& profile) {
    const double error = profile.sampled ? profile.sampled->accesses_error : 0;
    return error > 0 ? "± " + percent_whole(error / std::max(1.0, profile.accesses)) : "";
}

std::string distinct_range_text(const Profile& profile) {
    if (!profile.sampled || profile.sampled->distinct_high <= 0) return "";
    return fmt::format("between {} and {}", span_of(profile.sampled->distinct_low, profile.granularity),
                       span_of(profile.sampled->distinct_high, profile.granularity));
}

std::string percent_with_error(double share, double error) {
    if (error <= 0) return percent(share);
    const int decimals = decimals_of(error);
    const double smallest = std::pow(10.0, -decimals - 2);
    return fmt::format("{} ± {}", percent_to(share, decimals),
                       percent_to(std::max(error, smallest), decimals));
}

std::string_view sets_known_by(const Profile& profile) {
    return profile.sampled ? "sets sampled" : "simulated";
}

bool too_few_samples(const Profile& profile, double count) {
    if (!profile.sampled || profile.sampled->period <= 0) return false;
    const double samples = count / profile.sampled->period;
    return too_few_samples(samples, 1.96 * std::sqrt(samples));
}

std::string span_of(double blocks, std::uint64_t granularity) {
    return granularity == 1 ? format_count(blocks)
                            : format_bytes(blocks * static_cast<double>(granularity));
}

std::string bin_label(const Bin& bin, std::uint64_t granularity) {
    if (bin.low == 0 && bin.high == 1) return "0";
    return fmt::format("{} – {}", span_of(static_cast<double>(bin.low), granularity),
                       span_of(static_cast<double>(bin.high), granularity));
}

std::string last_part(const std::string& path) {
    return path.substr(path.find_last_of('/') + 1);
}

std::string place_of(const Site& site) {
    if (!site.frame.file.empty())
        return fmt::format("{}:{} {}", last_part(site.frame.file), site.frame.line,
                           site.frame.function);
    if (!site.frame.function.empty()) return site.frame.function;
    if (!site.module.empty()) return fmt::format("{}+{:#x}", site.module, site.offset);
    return fmt::format("site {}", site.id);
}

}  // namespace revisit
