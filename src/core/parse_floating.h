// std::from_chars of a floating-point number, also with libc++ 19, which has it for whole numbers only.
#pragma once

#include <locale.h>
#include <stdlib.h>

#include <cerrno>
#include <charconv>
#include <cmath>
#include <string>
#include <string_view>

namespace revisit {

// The same by strtod, which also takes spaces, a plus and hexadecimal digits, needs a zero at the end,
// and goes by the locale.
inline std::from_chars_result parse_by_strtod(const char* begin, const char* end, double& value) {
    static const locale_t plain = newlocale(LC_ALL_MASK, "C", nullptr);
    constexpr std::string_view kOf = "0123456789.+-eEinfatyINFATY";  // 1e+5, inf, nan
    const std::string_view all(begin, end);
    const std::string text(all.substr(0, all.find_first_not_of(kOf)));
    if (text.starts_with('+')) return {begin, std::errc::invalid_argument};
    char* after = nullptr;
    errno = 0;
    const double number = strtod_l(text.c_str(), &after, plain);
    if (after == text.c_str()) return {begin, std::errc::invalid_argument};
    const char* const next = begin + (after - text.c_str());
    if (errno == ERANGE && (number == 0 || std::isinf(number)))
        return {next, std::errc::result_out_of_range};
    value = number;
    return {next, std::errc{}};
}

inline std::from_chars_result parse_floating(const char* begin, const char* end, double& value) {
#ifdef __cpp_lib_to_chars
    return std::from_chars(begin, end, value);
#else
    return parse_by_strtod(begin, end, value);
#endif
}

}  // namespace revisit
