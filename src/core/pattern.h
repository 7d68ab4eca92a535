// Regular expressions of the C library (extended, with \b, \s and \w): including <regex> adds five
// seconds to the compilation of a file.
#pragma once

#include <regex.h>

#include <array>
#include <optional>
#include <string>

namespace revisit {

class Pattern {
 public:
    explicit Pattern(const std::string& text) {
        is_valid_ = regcomp(&compiled_, text.c_str(), REG_EXTENDED) == 0;
    }
    Pattern(const Pattern&) = delete;
    Pattern& operator=(const Pattern&) = delete;
    ~Pattern() {
        if (is_valid_) regfree(&compiled_);
    }

    struct Found {
        const std::string& text;
        std::array<regmatch_t, 8> groups;
        // Empty where the group took no part.
        std::string group(unsigned number) const {
            const auto [begin, end] = groups[number];
            return begin < 0 ? std::string() : text.substr(begin, end - begin);
        }
    };
    // Its first place in the text.
    std::optional<Found> find(const std::string& text) const {
        Found found{text, {}};
        if (!is_valid_ ||
            regexec(&compiled_, text.c_str(), found.groups.size(), found.groups.data(), 0) != 0)
            return std::nullopt;
        return found;
    }

 private:
    regex_t compiled_;
    bool is_valid_ = false;
};

}  // namespace revisit
