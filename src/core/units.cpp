#include "revisit/units.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "core/parse_floating.h"
#include "core/try.h"

namespace revisit {
namespace {

// "1.5" → 1.5 and the rest of the text. No sign, no inf, no nan.
Result<std::pair<double, std::string_view>> leading_number(std::string_view text,
                                                           std::string_view what) {
    double number = 0;
    bool starts_well = !text.empty() && ((text[0] >= '0' && text[0] <= '9') || text[0] == '.');
    auto [end, code] = parse_floating(text.data(), text.data() + text.size(), number);
    if (!starts_well || code != std::errc{})
        return fail(fmt::format("expected {}, found \"{}\"", what, text));
    return std::pair{number, text.substr(end - text.data())};
}

Result<std::uint64_t> scaled(double number, double factor, std::string_view text) {
    double value = number * factor;
    if (!(value < 18446744073709551616.0))
        return fail(fmt::format("\"{}\" does not fit in 64 bits", text));
    if (value != std::floor(value)) return fail(fmt::format("\"{}\" is not a whole number", text));
    return static_cast<std::uint64_t>(value);
}

// Whole numbers take this way, because a double keeps only 53 bits.
bool parse_whole(std::string_view text, std::uint64_t& value) {
    auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
    return code == std::errc{} && end == text.data() + text.size();
}

int power_of(std::string_view suffix) {
    if (suffix.empty()) return 0;
    switch (suffix[0] | 0x20) {
        case 'k':
            return 1;
        case 'm':
            return 2;
        case 'g':
            return 3;
        case 't':
            return 4;
        case 'p':
            return 5;
        default:
            return -1;
    }
}

bool is_letter(char c, char lower) {
    return (c | 0x20) == lower;
}

std::string with_unit(double value, double step, const char* const* units, int last) {
    int unit = 0;
    // 999.6 K is shown as 1 M, not as 1000 K.
    while (unit < last && std::fabs(value) >= (unit == 0 ? step : step - 0.5)) {
        value /= step;
        ++unit;
    }
    if (unit > 0 && std::fabs(value) < 1) value = std::copysign(1, value);
    if (value == std::floor(value)) return fmt::format("{:.0f}{}", value, units[unit]);
    int digits = std::fabs(value) < 10 ? 2 : std::fabs(value) < 100 ? 1 : 0;
    return fmt::format("{:.{}f}{}", value, digits, units[unit]);
}

}  // namespace

Result<std::uint64_t> parse_bytes(std::string_view text) {
    if (std::uint64_t whole; parse_whole(text, whole)) return whole;
    constexpr std::string_view what = "a size such as 64, 32K or 1MiB";
    auto number = TRY(leading_number(text, what));
    auto [value, suffix] = number;
    while (!suffix.empty() && suffix[0] == ' ') suffix.remove_prefix(1);
    if (suffix == "B" || suffix == "b") suffix = {};
    int power = power_of(suffix);
    bool rest_ok = suffix.size() <= 1 || (suffix.size() == 2 && is_letter(suffix[1], 'b')) ||
                   (suffix.size() == 2 && is_letter(suffix[1], 'i')) ||
                   (suffix.size() == 3 && is_letter(suffix[1], 'i') && is_letter(suffix[2], 'b'));
    if (power < 0 || !rest_ok) return fail(fmt::format("expected {}, found \"{}\"", what, text));
    return scaled(value, std::pow(1024.0, power), text);
}

Result<std::uint64_t> parse_count(std::string_view text) {
    if (std::uint64_t whole; parse_whole(text, whole)) return whole;
    constexpr std::string_view what = "a count such as 1000, 5M or 1e9";
    auto number = TRY(leading_number(text, what));
    auto [value, suffix] = number;
    int power = power_of(suffix);
    if (power < 0 || suffix.size() > 1)
        return fail(fmt::format("expected {}, found \"{}\"", what, text));
    return scaled(value, std::pow(1000.0, power), text);
}

Result<double> parse_share(std::string_view text) {
    auto bad = [&] {
        return fail(fmt::format("expected a share such as 0.25, 25% or 1/1000, found \"{}\"", text));
    };
    auto number = leading_number(text, "a share");
    if (!number) return bad();
    auto [share, rest] = *number;
    if (rest == "%") {
        share /= 100;
    } else if (rest.starts_with("/")) {
        auto under = leading_number(rest.substr(1), "a number");
        if (!under || !under->second.empty() || under->first <= 0) return bad();
        share /= under->first;
    } else if (!rest.empty()) {
        return bad();
    }
    if (!(share >= 0 && share <= 1)) return bad();
    return share;
}

std::string format_bytes(double bytes) {
    static constexpr const char* kUnits[] = {" B", " KiB", " MiB", " GiB", " TiB", " PiB", " EiB"};
    return with_unit(bytes, 1024, kUnits, 6);
}

std::string format_count(double count) {
    static constexpr const char* kUnits[] = {"", " K", " M", " G", " T", " P"};
    if (count > 0 && count < 0.5) return "<1";
    // Counts are whole; an estimate's fraction says nothing.
    return with_unit(std::fabs(count) < 1000 ? std::round(count) + 0.0 : count, 1000, kUnits, 5);
}

}  // namespace revisit
