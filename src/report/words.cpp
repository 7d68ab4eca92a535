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

std::string place_of(const Site& site) {
    if (!site.frame.file.empty()) {
        std::string_view file = site.frame.file;
        file.remove_prefix(
            file.find_last_of('/') == std::string_view::npos ? 0 : file.find_last_of('/') + 1);
        return fmt::format("{}:{} {}", file, site.frame.line, site.frame.function);
    }
    if (!site.frame.function.empty()) return site.frame.function;
    if (!site.module.empty()) return fmt::format("{}+{:#x}", site.module, site.offset);
    return fmt::format("site {}", site.id);
}

}  // namespace revisit
