#include "core/json_reader.h"

#include <charconv>
#include <cmath>
#include <cstdlib>

#include "core/parse_floating.h"

namespace revisit {
namespace {

bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

// The length of the UTF-8 character at `at`, 0 when there is none. Overlong forms, surrogates and what
// is beyond U+10FFFF are none.
std::size_t utf8_length(std::string_view text, std::size_t at) {
    auto byte = [&](std::size_t i) {
        return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0u;
    };
    auto follows = [&](std::size_t i, unsigned low = 0x80, unsigned high = 0xbf) {
        return byte(i) >= low && byte(i) <= high;
    };
    unsigned first = byte(0);
    if (first >= 0xc2 && first <= 0xdf) return follows(1) ? 2 : 0;
    if (first >= 0xe0 && first <= 0xef)
        return follows(1, first == 0xe0 ? 0xa0 : 0x80, first == 0xed ? 0x9f : 0xbf) && follows(2) ? 3
                                                                                                  : 0;
    if (first >= 0xf0 && first <= 0xf4)
        return follows(1, first == 0xf0 ? 0x90 : 0x80, first == 0xf4 ? 0x8f : 0xbf) && follows(2) &&
                       follows(3)
                   ? 4
                   : 0;
    return 0;
}

void append_utf8(std::string& out, unsigned code) {
    auto put = [&](unsigned byte) { out += static_cast<char>(byte); };
    if (code < 0x80) {
        put(code);
    } else if (code < 0x800) {
        put(0xc0 | code >> 6);
        put(0x80 | (code & 0x3f));
    } else if (code < 0x10000) {
        put(0xe0 | code >> 12);
        put(0x80 | (code >> 6 & 0x3f));
        put(0x80 | (code & 0x3f));
    } else {
        put(0xf0 | code >> 18);
        put(0x80 | (code >> 12 & 0x3f));
        put(0x80 | (code >> 6 & 0x3f));
        put(0x80 | (code & 0x3f));
    }
}

}  // namespace

void JsonReader::skip_spaces() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\r' || text_[at_] == '\t'))
        ++at_;
}

void JsonReader::complain(std::string_view message, std::string_view place) {
    if (failed_) return;
    failed_ = true;
    message_ = message;
    for (const Step& step : path_) {
        if (step.index != kNoIndex) {
            where_ += "[" + std::to_string(step.index) + "]";
        } else {
            if (!where_.empty()) where_ += ".";
            where_ += step.key;
        }
    }
    where_ += place;
}

void JsonReader::break_off() {
    if (failed_) return;
    complain("");
    broken_ = true;
}

bool JsonReader::enter(char bracket, std::string_view expected) {
    if (failed_) return false;
    skip_spaces();
    if (at_ >= text_.size())
        break_off();
    else if (text_[at_] != bracket)
        complain(expected);
    else if (++depth_ > kDeepest)
        break_off();
    else
        ++at_;
    return !failed_;
}

// Moves to the next member; false after the last one.
bool JsonReader::next(char closing, bool first) {
    if (failed_) return false;
    skip_spaces();
    if (at_ < text_.size() && text_[at_] == closing) {
        ++at_;
        return false;
    }
    if (!first) {
        if (at_ >= text_.size() || text_[at_] != ',') {
            break_off();
            return false;
        }
        ++at_;
        skip_spaces();
    }
    if (at_ >= text_.size()) break_off();
    return !failed_;
}

// Keys are compared as written; one with escapes matches none that we know.
std::string_view JsonReader::raw_key() {
    if (at_ >= text_.size() || text_[at_] != '"') {
        break_off();
        return {};
    }
    std::size_t start = at_ + 1;
    if (!scan_string(nullptr)) return {};
    std::string_view key = text_.substr(start, at_ - 1 - start);
    skip_spaces();
    if (at_ >= text_.size() || text_[at_] != ':')
        break_off();
    else
        ++at_;
    return key;
}

bool JsonReader::scan_string(std::string* out) {
    ++at_;
    for (;;) {
        std::size_t start = at_;
        while (at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\\' &&
               static_cast<unsigned char>(text_[at_]) >= 0x20 &&
               static_cast<unsigned char>(text_[at_]) < 0x80)
            ++at_;
        if (out != nullptr) out->append(text_.substr(start, at_ - start));
        if (at_ >= text_.size()) break;
        if (text_[at_] == '"') {
            ++at_;
            return true;
        }
        if (text_[at_] == '\\') {
            if (!unescape(out)) break;
        } else {
            std::size_t length = utf8_length(text_, at_);
            if (length == 0) break;
            if (out != nullptr) out->append(text_.substr(at_, length));
            at_ += length;
        }
    }
    break_off();
    return false;
}

bool JsonReader::four_hex(unsigned& value) {
    if (at_ + 4 > text_.size()) return false;
    auto [end, code] = std::from_chars(text_.data() + at_, text_.data() + at_ + 4, value, 16);
    if (code != std::errc{} || end != text_.data() + at_ + 4) return false;
    at_ += 4;
    return true;
}

bool JsonReader::unescape(std::string* out) {
    static constexpr std::string_view kLetters = "\"\\/bfnrt", kMeanings = "\"\\/\b\f\n\r\t";
    if (at_ + 1 >= text_.size()) return false;
    char letter = text_[at_ + 1];
    if (std::size_t known = kLetters.find(letter); known != std::string_view::npos) {
        at_ += 2;
        if (out != nullptr) *out += kMeanings[known];
        return true;
    }
    unsigned code = 0, low = 0;
    if (letter != 'u') return false;
    at_ += 2;
    if (!four_hex(code)) return false;
    if (code >= 0xd800 && code < 0xdc00) {  // the first half of a pair
        if (text_.substr(at_, 2) != "\\u") return false;
        at_ += 2;
        if (!four_hex(low) || low < 0xdc00 || low > 0xdfff) return false;
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    } else if (code >= 0xdc00 && code <= 0xdfff) {
        return false;
    }
    if (out != nullptr) append_utf8(*out, code);
    return true;
}

// A number as JSON spells it. False leaves the reader failed.
bool JsonReader::scan_number(std::string_view& token, bool& integer) {
    std::size_t start = at_, end = at_;
    auto digits = [&] {
        std::size_t from = end;
        while (end < text_.size() && is_digit(text_[end])) ++end;
        return end > from;
    };
    auto at = [&](char c) { return end < text_.size() && text_[end] == c; };
    integer = true;
    if (at('-')) ++end;
    bool zero = at('0');
    std::size_t whole_start = end;
    bool good = digits() && !(zero && end - whole_start > 1);
    if (good && at('.')) {
        integer = false;
        ++end;
        good = digits();
    }
    if (good && (at('e') || at('E'))) {
        integer = false;
        ++end;
        if (at('+') || at('-')) ++end;
        good = digits();
    }
    at_ = end;
    token = text_.substr(start, end - start);
    if (!good) break_off();
    return good;
}

double JsonReader::number() {
    if (failed_) return 0;
    skip_spaces();
    // Most numbers are short and whole.
    std::size_t at = at_;
    std::uint64_t value = 0;
    while (at < text_.size() && at - at_ < 15 && is_digit(text_[at]))
        value = value * 10 + (text_[at++] - '0');
    if (at > at_ && at < text_.size() && (text_[at] == ',' || text_[at] == ']' || text_[at] == '}') &&
        (text_[at_] != '0' || at - at_ == 1)) {
        at_ = at;
        return static_cast<double>(value);
    }
    constexpr std::string_view kExpected = "expected a number that is not negative";
    if (at_ < text_.size() && text_[at_] != '-' && !is_digit(text_[at_])) {
        complain(kExpected);
        return 0;
    }
    std::string_view token;
    bool integer = false;
    if (!scan_number(token, integer)) return 0;
    double result = 0;
    auto [end, code] = parse_floating(token.data(), token.data() + token.size(), result);
    if (code != std::errc{})
        result = std::strtod(std::string(token).c_str(), nullptr);  // 0 or infinite
    if (!std::isfinite(result) || result < 0) complain(kExpected);
    return failed_ ? 0 : result;
}

std::uint64_t JsonReader::whole() {
    if (failed_) return 0;
    skip_spaces();
    std::size_t start = at_;
    double approximate = number();
    if (failed_) return 0;
    std::uint64_t value = 0;
    auto [end, code] = std::from_chars(text_.data() + start, text_.data() + at_, value);
    if (code == std::errc{} && end == text_.data() + at_) return value;
    if (approximate != std::floor(approximate) || approximate >= 18446744073709551616.0) {
        complain("expected a whole number");
        return 0;
    }
    return static_cast<std::uint64_t>(approximate);
}

std::uint32_t JsonReader::whole32() {
    std::uint64_t value = whole();
    if (value > 0xffffffffu) complain("expected a number below 2^32");
    return static_cast<std::uint32_t>(value);
}

std::string JsonReader::text() {
    std::string out;
    if (failed_) return out;
    if (!at_text())
        complain("expected a string");
    else
        scan_string(&out);
    return out;
}

std::optional<bool> JsonReader::boolean() {
    skip_spaces();
    std::string_view rest = text_.substr(at_);
    std::optional<bool> out;
    if (rest.starts_with("true")) out = true;
    if (rest.starts_with("false")) out = false;
    skip();
    return out;
}

bool JsonReader::at_object() {
    skip_spaces();
    return at_ < text_.size() && text_[at_] == '{';
}

bool JsonReader::at_array() {
    skip_spaces();
    return at_ < text_.size() && text_[at_] == '[';
}

bool JsonReader::at_text() {
    skip_spaces();
    return at_ < text_.size() && text_[at_] == '"';
}

void JsonReader::skip() {
    if (failed_) return;
    skip_spaces();
    if (at_object()) {
        object({}, [&](std::string_view) { skip(); });
    } else if (at_array()) {
        array({}, [&](std::size_t) { skip(); });
    } else if (at_text()) {
        scan_string(nullptr);
    } else {
        for (std::string_view word : {"true", "false", "null"})
            if (text_.substr(at_).starts_with(word)) {
                at_ += word.size();
                return;
            }
        std::string_view token;
        bool integer = false;
        scan_number(token, integer);
    }
}

void JsonReader::finish() {
    skip_spaces();
    if (at_ != text_.size()) break_off();
}

}  // namespace revisit
