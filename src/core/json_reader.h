// Reads JSON front to back without building a tree.
//
// Problem. A profile of 10^6 pairs is 200 MB of JSON, nearly all of it small numbers; a tree of it
// takes gigabytes and most of a minute. Idea. The caller knows what comes: it asks for an object's keys
// or an array's elements in turn and takes each value as what it should be. Nothing is allocated but
// the strings that are kept. Where a value is not what was asked for, or the text is not JSON, the
// reader says so once and stays failed; it knows the path to where it is, and writes it down only then.
// Cost. About 4 ns a byte of numbers on the machines at hand, a tenth of what the tree takes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace revisit {

class JsonReader {
 public:
    explicit JsonReader(std::string_view text) : text_(text) {}

    bool failed() const { return failed_; }
    bool is_broken() const { return broken_; }           // not JSON, rather than not what was asked for
    std::size_t byte() const { return at_ + 1; }         // 1-based, as editors count
    const std::string& where() const { return where_; }  // "pairs[3].distances.bins[0]"
    const std::string& message() const { return message_; }  // what was expected there

    // Calls `take(key)` for each key; it must take the value, or skip() it.
    template <class Take>
    void object(std::string_view expected, Take take) {
        if (!enter('{', expected)) return;
        for (bool first = true; next('}', first); first = false) {
            std::string_view key = raw_key();
            path_.push_back({key, kNoIndex});
            if (!failed_) take(key);
            path_.pop_back();
        }
        leave();
    }

    // Calls `take(index)` for each element.
    template <class Take>
    void array(std::string_view expected, Take take) {
        if (!enter('[', expected)) return;
        std::size_t index = 0;
        for (; next(']', index == 0); ++index) {
            path_.push_back({{}, index});
            take(index);
            path_.pop_back();
        }
        leave();
    }

    double number();        // finite and not negative
    std::uint64_t whole();  // a whole number below 2^64
    std::uint32_t whole32();
    std::string text();
    std::optional<bool> boolean();  // none when it is something else, which is skipped
    void skip();

    bool at_object();
    bool at_array();
    bool at_text();
    void finish();  // nothing may follow

    // Something is wrong with what was read, here or at `place` below here.
    void complain(std::string_view message, std::string_view place = {});

 private:
    static constexpr std::size_t kNoIndex = ~std::size_t{0};
    static constexpr int kDeepest = 200;

    struct Step {
        std::string_view key;
        std::size_t index;
    };

    void skip_spaces();
    bool enter(char bracket, std::string_view expected);
    bool next(char closing, bool first);
    void leave() { --depth_; }
    std::string_view raw_key();
    bool scan_number(std::string_view& token, bool& integer);
    bool scan_string(std::string* out);
    bool unescape(std::string* out);
    bool four_hex(unsigned& value);
    void break_off();

    std::string_view text_;
    std::size_t at_ = 0;
    int depth_ = 0;
    bool failed_ = false;
    bool broken_ = false;
    std::vector<Step> path_;
    std::string where_;
    std::string message_;
};

}  // namespace revisit
