// The mangling is that of Rust's RFC 2603: a prefix code in which one letter says what follows, with
// references back to what was there before (B and a position). A symbol may name itself through these,
// so depth and length are bounded.
#include "symbols/rust_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <utility>

namespace revisit {
namespace {

constexpr int kDeepestName = 200;
constexpr std::size_t kLongest = 8192;

std::string_view basic_type(char code) {
    constexpr std::string_view kNames[] = {
        "i8",   "bool", "char", "f64", "str", "f32", "",    "u8", "isize", "usize", "",    "i32", "u32",
        "i128", "u128", "_",    "",    "",    "i16", "u16", "()", "...",   "",      "i64", "u64", "!"};
    return code >= 'a' && code <= 'z' ? kNames[code - 'a'] : std::string_view();
}

class RustSymbol {
 public:
    explicit RustSymbol(std::string_view text) : text_(text) {}

    std::string name() {
        if (next_is_digit()) return {};  // a version that is not known
        path(true);
        if (at_ < text_.size()) {  // the crate that needed it
            ++silent_;
            path(false);
        }
        if (failed_ || at_ != text_.size()) return {};
        return std::move(out_);
    }

 private:
    bool next_is_digit() const { return at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; }
    char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
    char take() {
        if (at_ >= text_.size()) failed_ = true;
        return failed_ ? '\0' : text_[at_++];
    }
    bool take_if(char wanted) {
        if (failed_ || peek() != wanted) return false;
        ++at_;
        return true;
    }
    void say(std::string_view text) {
        if (silent_ == 0) out_ += text;
        if (out_.size() > kLongest) failed_ = true;
    }

    std::uint64_t base_62() {
        if (take_if('_')) return 0;
        std::uint64_t value = 0;
        for (char c = take(); c != '_' && !failed_; c = take()) {
            if (c >= '0' && c <= '9')
                value = value * 62 + static_cast<std::uint64_t>(c - '0');
            else if (c >= 'a' && c <= 'z')
                value = value * 62 + static_cast<std::uint64_t>(c - 'a' + 10);
            else if (c >= 'A' && c <= 'Z')
                value = value * 62 + static_cast<std::uint64_t>(c - 'A' + 36);
            else
                failed_ = true;
        }
        return value + 1;
    }
    std::uint64_t optional_base_62(char mark) { return take_if(mark) ? base_62() + 1 : 0; }

    std::string_view identifier() {
        take_if('u');  // in Punycode, which is left as it is
        std::size_t length = 0;
        if (!next_is_digit()) failed_ = true;
        if (!take_if('0'))
            while (next_is_digit() && length <= text_.size())
                length = length * 10 + static_cast<std::size_t>(take() - '0');
        take_if('_');
        if (failed_ || length > text_.size() - at_) {
            failed_ = true;
            return {};
        }
        at_ += length;
        return text_.substr(at_ - length, length);
    }

    // What was there before, said again.
    template <class Read>
    void back(Read read) {
        const std::size_t mark = at_ - 1;
        const std::uint64_t position = base_62();
        if (failed_ || position >= mark) {
            failed_ = true;
            return;
        }
        if (silent_ != 0) return;
        const std::size_t here = std::exchange(at_, static_cast<std::size_t>(position));
        read();
        at_ = here;
    }

    struct Deeper {
        explicit Deeper(RustSymbol& symbol) : symbol_(symbol) {
            if (++symbol_.depth_ > kDeepestName) symbol_.failed_ = true;
        }
        ~Deeper() { --symbol_.depth_; }
        RustSymbol& symbol_;
    };

    // Where an expression stands, as in a call, arguments follow "::".
    void path(bool in_expression) {
        const Deeper deeper(*this);
        if (failed_) return;
        switch (take()) {
            case 'C':
                optional_base_62('s');
                say(identifier());
                return;
            case 'M':
                skip_impl_path();
                say("<");
                type();
                say(">");
                return;
            case 'X':
                skip_impl_path();
                [[fallthrough]];
            case 'Y':
                say("<");
                type();
                say(" as ");
                path(false);
                say(">");
                return;
            case 'N':
                nested(in_expression);
                return;
            case 'I':
                path(in_expression);
                say(in_expression ? "::<" : "<");
                list([&] { generic_argument(); });
                say(">");
                return;
            case 'B':
                back([&] { path(in_expression); });
                return;
            default:
                failed_ = true;
        }
    }

    void nested(bool in_expression) {
        const char kind = take();
        if ((kind | 0x20) < 'a' || (kind | 0x20) > 'z') failed_ = true;
        path(in_expression);
        const std::uint64_t which = optional_base_62('s');
        const std::string_view name = identifier();
        if (kind >= 'A' && kind <= 'Z') {
            const std::string_view special = kind == 'C' ? "closure" : kind == 'S' ? "shim" : "";
            say(fmt::format("::{{{}{}{}#{}}}", special.empty() ? std::string(1, kind) : special,
                            name.empty() ? "" : ":", name, which));
        } else if (!name.empty()) {
            say("::");
            say(name);
        }
    }

    void skip_impl_path() {
        optional_base_62('s');
        ++silent_;
        path(false);
        --silent_;
    }

    template <class Read>
    void list(Read read) {
        for (bool first = true; !failed_ && !take_if('E'); first = false) {
            if (!first) say(", ");
            read();
        }
    }

    void lifetime() {
        const std::uint64_t number = base_62();
        say(number == 0 ? "'_" : "'a");
    }
    void generic_argument() {
        if (take_if('L'))
            lifetime();
        else if (take_if('K'))
            constant();
        else
            type();
    }

    void type() {
        const Deeper deeper(*this);
        if (failed_) return;
        const char code = take();
        if (const std::string_view name = basic_type(code); !name.empty()) return say(name);
        switch (code) {
            case 'A':
                say("[");
                type();
                say("; ");
                constant();
                return say("]");
            case 'S':
                say("[");
                type();
                return say("]");
            case 'T': {
                say("(");
                const std::size_t start = at_;
                list([&] { type(); });
                // "(T,)" of one
                return say(is_one_type(start) ? ",)" : ")");
            }
            case 'R':
            case 'Q':
                if (take_if('L')) base_62();
                say(code == 'R' ? "&" : "&mut ");
                return type();
            case 'P':
                say("*const ");
                return type();
            case 'O':
                say("*mut ");
                return type();
            case 'F':
                return function_type();
            case 'D':
                return trait_object();
            case 'B':
                return back([&] { type(); });
            default:
                --at_;
                path(false);
        }
    }

    bool is_one_type(std::size_t start) {
        if (failed_) return false;
        const std::size_t end = std::exchange(at_, start);
        ++silent_;
        if (peek() != 'E') type();
        --silent_;
        const bool one = at_ != start && peek() == 'E' && at_ + 1 == end;
        at_ = end;
        return one;
    }

    void function_type() {
        optional_base_62('G');
        if (take_if('U')) say("unsafe ");
        if (take_if('K')) {
            say("extern \"");
            if (take_if('C'))
                say("C");
            else
                say(identifier());
            say("\" ");
        }
        say("fn(");
        list([&] { type(); });
        say(")");
        if (take_if('u')) return;
        say(" -> ");
        type();
    }

    void trait_object() {
        say("dyn ");
        optional_base_62('G');
        for (bool first = true; !failed_ && !take_if('E'); first = false) {
            if (!first) say(" + ");
            bool open = trait();
            while (take_if('p')) {
                say(open ? ", " : "<");
                open = true;
                say(identifier());
                say(" = ");
                type();
            }
            if (open) say(">");
        }
        if (!take_if('L')) failed_ = true;
        base_62();
    }
    // Whether its "<" is still open, for bounds to follow.
    bool trait() {
        const Deeper deeper(*this);
        if (failed_) return false;
        if (take_if('B')) {
            bool open = false;
            back([&] { open = trait(); });
            return open;
        }
        if (!take_if('I')) {
            path(false);
            return false;
        }
        path(false);
        say("<");
        list([&] { generic_argument(); });
        return true;
    }

    void constant() {
        const Deeper deeper(*this);
        if (failed_) return;
        if (take_if('p')) return say("_");
        if (take_if('B')) return back([&] { constant(); });
        const char of = take();
        if (basic_type(of).empty()) {  // structures, strings: not written out
            failed_ = true;
            return;
        }
        if (take_if('n')) say("-");
        std::string digits;
        for (char c = take(); c != '_' && !failed_; c = take()) digits += c;
        std::uint64_t value = 0;
        for (const char c : digits) {
            const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
            if (digit < 0) failed_ = true;
            value = value << 4 | static_cast<std::uint64_t>(digit & 15);
        }
        if (of == 'b')
            say(value != 0 ? "true" : "false");
        else if (digits.size() > 16)
            say("0x" + digits);
        else if (of == 'c' && value >= ' ' && value < 127)
            say(fmt::format("'{}'", static_cast<char>(value)));
        else
            say(fmt::format("{}", value));
    }

    std::string_view text_;
    std::size_t at_ = 0;
    std::string out_;
    int depth_ = 0, silent_ = 0;
    bool failed_ = false;
};

struct Spelled {
    std::string_view code, sign;
};
constexpr Spelled kSpelled[] = {{"$SP$", "@"}, {"$BP$", "*"}, {"$RF$", "&"},
                                {"$LT$", "<"}, {"$GT$", ">"}, {"$LP$", "("},
                                {"$RP$", ")"}, {"$C$", ","},  {"..", "::"}};

// "$u7b$" is "{"; how many bytes that took, 0: it is none.
std::size_t take_code_point(std::string_view text, std::string& out) {
    const std::size_t end = text.find('$', 1);
    if (!text.starts_with("$u") || end == std::string_view::npos || end < 3 || end > 4) return 0;
    int value = 0;
    for (const char c : text.substr(2, end - 2)) {
        const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
        if (digit < 0) return 0;
        value = value * 16 + digit;
    }
    if (value < ' ' || value > '~') return 0;
    out += static_cast<char>(value);
    return end + 1;
}

}  // namespace

std::string rust_name(std::string_view symbol) {
    if (!symbol.starts_with("_R")) return {};
    symbol.remove_prefix(2);
    symbol = symbol.substr(0, symbol.find_first_of(".$"));  // what a vendor appends
    return RustSymbol(symbol).name();
}

std::string plain_rust_name(std::string_view symbol, std::string name) {
    constexpr std::size_t kHash = 16;  // digits
    const std::size_t end = symbol.rfind('E');
    const std::size_t hash = name.rfind("::h");
    if (end == std::string_view::npos || end < kHash + 3 ||
        symbol.substr(end - kHash - 3, 3) != "17h" || hash == std::string::npos)
        return name;
    const std::string_view digits = std::string_view(name).substr(hash + 3, kHash);
    if (digits.size() != kHash ||
        digits.find_first_not_of("0123456789abcdef") != std::string_view::npos)
        return name;
    std::string out;
    for (std::string_view rest = std::string_view(name).substr(0, hash); !rest.empty();) {
        const bool begins = out.empty() || out.ends_with("::");
        if (begins && rest.starts_with("_$")) rest.remove_prefix(1);
        const auto* spelled = std::ranges::find_if(
            kSpelled, [&](const Spelled& one) { return rest.starts_with(one.code); });
        std::size_t taken = 0;
        if (spelled != std::end(kSpelled)) {
            out += spelled->sign;
            taken = spelled->code.size();
        } else if (taken = take_code_point(rest, out); taken == 0) {
            out += rest.front();
            taken = 1;
        }
        rest.remove_prefix(taken);
    }
    return out;
}

}  // namespace revisit
