#include "report/words.h"

#include <fmt/format.h>

#include "revisit/units.h"

namespace revisit {

std::string percent(double share) {
    double value = 100 * share;
    if (value > 0 && value < 0.01) return "<0.01 %";
    return fmt::format("{:.2f} %", value);
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
