// Loop nests as text.
//
// Problem. Advice is of use as source that can be pasted. Idea. The source is searched, not parsed:
// comments and strings are blanked out, then for statements of the plain form are followed inwards as
// long as one is all that the other does. Anything else (a step other than one, a jump out, an
// assignment to a variable or a bound) is no nest. Tiles: each tiled loop becomes one over tiles,
// outside, and one within.
#include "predict/advise/nest.h"

#include <algorithm>
#include <optional>
#include <set>

#include "core/pattern.h"

namespace revisit::predict {
namespace {

// The same text with comments, strings and directives as spaces.
std::string blanked(const std::string& source) {
    std::string out = source;
    const auto blank = [&](std::size_t from, std::size_t to) {
        for (auto at = from; at < std::min(to, out.size()); ++at)
            if (out[at] != '\n') out[at] = ' ';
    };
    const auto end_of = [&](const char* mark, std::size_t from) {
        const auto at = source.find(mark, from);
        return at == std::string::npos ? source.size() : at + std::string_view(mark).size();
    };
    bool line_start = true;
    for (std::size_t at = 0; at < source.size();) {
        const char c = source[at];
        std::size_t end = at + 1;
        if (source.compare(at, 2, "//") == 0 || (c == '#' && line_start)) {
            end = source.find('\n', at);
            while (c == '#' && end != std::string::npos && end > 0 && source[end - 1] == '\\')
                end = source.find('\n', end + 1);
            end = std::min(end, source.size());
            blank(at, end);
        } else if (source.compare(at, 2, "/*") == 0) {
            end = end_of("*/", at + 2);
            blank(at, end);
        } else if (c == '"' || c == '\'') {
            for (end = at + 1; end < source.size() && source[end] != c; ++end)
                if (source[end] == '\\') ++end;
            blank(at, ++end);
        }
        line_start = c == '\n' || (line_start && (c == ' ' || c == '\t'));
        at = end;
    }
    return out;
}

bool is_word(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
}

std::size_t past_space(const std::string& text, std::size_t at) {
    while (at < text.size() && std::isspace(static_cast<unsigned char>(text[at]))) ++at;
    return at;
}

bool keyword_at(const std::string& text, std::size_t at, std::string_view word) {
    return text.compare(at, word.size(), word) == 0 && (at == 0 || !is_word(text[at - 1])) &&
           (at + word.size() >= text.size() || !is_word(text[at + word.size()]));
}

// Past the bracket that closes the one at `at`.
std::optional<std::size_t> past_bracket(const std::string& text, std::size_t at) {
    int depth = 0;
    for (; at < text.size(); ++at) {
        depth += text[at] == '(' || text[at] == '{' || text[at] == '[';
        depth -= text[at] == ')' || text[at] == '}' || text[at] == ']';
        if (depth == 0) return at + 1;
    }
    return std::nullopt;
}

// Past the statement that starts at `at`.
std::optional<std::size_t> past_statement(const std::string& text, std::size_t at) {
    at = past_space(text, at);
    if (at >= text.size()) return std::nullopt;
    if (text[at] == '{') return past_bracket(text, at);
    for (const char* word : {"for", "while", "if", "switch"})
        if (keyword_at(text, at, word)) {
            const auto head = past_space(text, at + std::string_view(word).size());
            const auto closed = past_bracket(text, head);
            if (!closed) return std::nullopt;
            const auto end = past_statement(text, *closed);
            if (!end || std::string_view(word) != "if") return end;
            const auto next = past_space(text, *end);
            return keyword_at(text, next, "else") ? past_statement(text, next + 4) : end;
        }
    for (; at < text.size(); ++at) {
        if (text[at] == ';') return at + 1;
        if (text[at] == '(' || text[at] == '{' || text[at] == '[') {
            const auto closed = past_bracket(text, at);
            if (!closed) return std::nullopt;
            at = *closed - 1;
        }
    }
    return std::nullopt;
}

std::string trimmed(const std::string& text) {
    const auto from = text.find_first_not_of(" \t\n\r"), to = text.find_last_not_of(" \t\n\r");
    return from == std::string::npos ? "" : text.substr(from, to - from + 1);
}

std::set<std::string> words_of(const std::string& text) {
    std::set<std::string> out;
    for (std::size_t at = 0; at < text.size(); ++at)
        if (is_word(text[at]) && (at == 0 || !is_word(text[at - 1])))
            out.insert(
                text.substr(at, static_cast<std::size_t>(
                                    std::find_if_not(text.begin() + static_cast<std::ptrdiff_t>(at),
                                                     text.end(), is_word) -
                                    text.begin()) -
                                    at));
    return out;
}

// for ( … ) in the plain form.
std::optional<LoopText> header_of(const std::string& text) {
    static const Pattern init(
        R"(^\s*(([A-Za-z_][A-Za-z0-9_[:space:]]*)\s+)?([A-Za-z_]\w*)\s*=\s*([^=,;][^,;]*)$)"),
        condition(R"(^\s*([A-Za-z_]\w*)\s*(<=?)\s*([^=<>!&|;?,]+)$)"),
        step(R"(^\s*(\+\+\s*([A-Za-z_]\w*)|([A-Za-z_]\w*)\s*(\+\+|\+=\s*1))\s*$)");
    const auto first = text.find(';'), second = text.find(';', first + 1);
    if (first == std::string::npos || second == std::string::npos) return std::nullopt;
    const std::string parts[] = {text.substr(0, first), text.substr(first + 1, second - first - 1),
                                 text.substr(second + 1)};
    const auto a = init.find(parts[0]), b = condition.find(parts[1]), c = step.find(parts[2]);
    if (!a || !b || !c) return std::nullopt;
    LoopText loop;
    loop.variable = a->group(3);
    // ++i or i++: one of the two groups is empty.
    if (loop.variable != b->group(1) || loop.variable != c->group(2) + c->group(3)) return std::nullopt;
    loop.type = trimmed(a->group(2));
    loop.lower = trimmed(a->group(4));
    loop.upper = trimmed(b->group(3));
    loop.inclusive = b->group(2) == "<=";
    return loop;
}

bool assigned_in(const std::string& text, const std::string& name) {
    return Pattern("\\b" + name + R"(\s*(=[^=]|\+\+|--|[-+*/%&|^]=|<<=|>>=)|(\+\+|--)\s*)" + name +
                   "\\b")
        .find(text)
        .has_value();
}

// The statements that all loops enclose may not change what decides the loops.
bool sound(const Nest& nest, const std::string& body) {
    for (const char* word : {"break", "return", "goto", "continue", "switch"})
        if (words_of(body).contains(word)) return false;
    for (const LoopText& l : nest.loops)
        for (const auto& bound : {l.variable + " " + l.lower + " " + l.upper})
            for (const auto& word : words_of(bound))
                if (!std::isdigit(static_cast<unsigned char>(word[0])) && assigned_in(body, word))
                    return false;
    return true;
}

}  // namespace

std::vector<Nest> find_nests(const std::string& source) {
    const auto text = blanked(source);
    std::vector<Nest> found;
    for (std::size_t at = 0; at < text.size(); ++at) {
        if (!keyword_at(text, at, "for")) continue;
        Nest nest;
        nest.begin = at;
        std::size_t from = at;
        std::optional<std::size_t> end = past_statement(text, at);
        if (!end) continue;
        nest.end = *end;
        std::size_t body_from = 0, body_to = 0;
        for (;;) {
            const auto open = past_space(text, from + 3);
            const auto closed = past_bracket(text, open);
            if (!closed || text[open] != '(') break;
            auto loop = header_of(text.substr(open + 1, *closed - open - 2));
            const auto stop = past_statement(text, *closed);
            if (!loop || !stop) break;
            loop->line = 1 + static_cast<std::uint32_t>(std::count(
                                 text.begin(), text.begin() + static_cast<std::ptrdiff_t>(from), '\n'));
            for (std::size_t k = 0; k < nest.loops.size(); ++k)
                if (words_of(loop->lower + " " + loop->upper).contains(nest.loops[k].variable))
                    loop->needs.push_back(k);
            nest.loops.push_back(std::move(*loop));
            body_from = *closed, body_to = *stop;
            // All that the loop does may be another one.
            auto inner = past_space(text, *closed);
            auto last = *stop;
            while (inner < last && text[inner] == '{') {
                inner = past_space(text, inner + 1);
                --last;
                while (last > inner && std::isspace(static_cast<unsigned char>(text[last - 1]))) --last;
            }
            if (!keyword_at(text, inner, "for") || past_statement(text, inner) != last) break;
            from = inner;
        }
        if (nest.loops.size() < 2 || !sound(nest, text.substr(body_from, body_to - body_from)))
            continue;
        nest.body = trimmed(source.substr(body_from, body_to - body_from));
        const auto line_start = source.rfind('\n', at);
        const auto before = source.substr(line_start == std::string::npos ? 0 : line_start + 1,
                                          at - (line_start == std::string::npos ? 0 : line_start + 1));
        if (before.find_first_not_of(" \t") == std::string::npos) nest.indent = before;
        at = nest.end - 1;
        found.push_back(std::move(nest));
    }
    return found;
}

std::string rewritten(const Nest& nest, const Order& order) {
    std::string out, indent = nest.indent;
    const auto line = [&](const std::string& text) {
        out += (out.empty() ? "" : "\n" + indent) + text;
        indent += "    ";
    };
    const auto head = [](const std::string& variable, const std::string& type) {
        return "for (" + (type.empty() ? "" : type + " ") + variable + " = ";
    };
    for (const auto k : order.loops) {
        const LoopText& l = nest.loops[k];
        if (order.tile == 0 || !order.tiled[k]) continue;
        const auto outer = l.variable + "_tile";
        line(head(outer, l.type.empty() ? "long" : l.type) + l.lower + "; " + outer +
             (l.inclusive ? " <= " : " < ") + l.upper + "; " + outer +
             " += " + std::to_string(order.tile) + ")");
    }
    for (const auto k : order.loops) {
        const LoopText& l = nest.loops[k];
        const bool tiled = order.tile > 0 && order.tiled[k];
        const auto outer = l.variable + "_tile";
        const auto edge = outer + " + " + std::to_string(order.tile);
        const auto end = "(" + l.upper + ")" + (l.inclusive ? " + 1" : "");
        line(head(l.variable, l.type) + (tiled ? outer : l.lower) + "; " + l.variable +
             (tiled ? " < (" + edge + " < " + end + " ? " + edge + " : " + end + ")"
                    : (l.inclusive ? " <= " : " < ") + l.upper) +
             "; " + l.variable + "++)");
    }
    return out + "\n" + indent + nest.body;
}

}  // namespace revisit::predict
