// csv: a header line that names any of address, thread, write, site, size, in any order; other columns
// are passed over. Numbers are decimal or 0x…; write is 0/1, r/w, load/store, true/false. Fields are
// separated by commas, semicolons or tabs, as in the header; every row has all of them.
#include <vector>

#include "formats/format.h"
#include "formats/text_lines.h"

namespace revisit {
namespace {

std::string lowered(std::string_view text) {
    std::string out(text);
    for (char& c : out)
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c | 0x20);
    return out;
}

std::string_view unquoted(std::string_view field) {
    field = trimmed(field);
    if (field.size() >= 2 && field.front() == '"' && field.back() == '"')
        return field.substr(1, field.size() - 2);
    return field;
}

// Takes the next field off `rest`; separators inside quotes belong to the field.
std::string_view take_field(std::string_view& rest, char separator, bool& more) {
    bool inside = false;
    for (std::size_t i = 0; i < rest.size(); ++i) {
        if (rest[i] == '"') inside = !inside;
        if (rest[i] != separator || inside) continue;
        std::string_view field = rest.substr(0, i);
        rest.remove_prefix(i + 1);
        return unquoted(field);
    }
    more = false;
    std::string_view field = rest;
    rest = {};
    return unquoted(field);
}

template <class Number>
bool parse_either(std::string_view text, Number& value) {
    if (text.starts_with("0x") || text.starts_with("0X"))
        return parse_number(text.substr(2), value, 16);
    return parse_number(text, value, 10);
}

bool parse_write(std::string_view text, std::uint8_t& flags) {
    std::string word = lowered(text);
    flags = word == "1" || word == "w" || word == "write" || word == "store" || word == "s" ||
                    word == "true"
                ? kWrite
                : 0;
    return flags != 0 || word == "0" || word == "r" || word == "read" || word == "load" ||
           word == "l" || word == "false";
}

enum class Field : std::uint8_t { address, thread, write, site, size, other };

Field field_named(std::string_view name) {
    std::string word = lowered(name);
    if (word == "address" || word == "addr") return Field::address;
    if (word == "thread") return Field::thread;
    if (word == "write") return Field::write;
    if (word == "site") return Field::site;
    if (word == "size") return Field::size;
    return Field::other;
}

struct Csv {
    std::vector<Field> fields;
    char separator = ',';
    ColumnSet columns() const { return {true, true, true, true}; }
    bool ready() const { return !fields.empty(); }

    // "0x7ffe1234,0,1,17,8\n": numbers without blanks or quotes, 0 or 1 for write.
    const char* parse_usual(const char* at, const char*, Columns& columns) const {
        const char* const last = at + kUsualLine - kLongestNumber;
        Access access;
        for (std::size_t i = 0; i < fields.size(); ++i) {
            if ((i != 0 && *at++ != separator) || at > last) return nullptr;
            std::uint64_t value = 0;
            if (fields[i] == Field::write)
                value = static_cast<std::uint64_t>(*at++ - '0');
            else if (fields[i] == Field::other || !take_number(at, value))
                return nullptr;
            switch (fields[i]) {
                case Field::address:
                    access.address = value;
                    break;
                case Field::thread:
                    if (value > 0xffff) return nullptr;
                    access.thread = static_cast<std::uint16_t>(value);
                    break;
                case Field::write:
                    if (value > 1) return nullptr;
                    access.flags = value != 0 ? kWrite : 0;
                    break;
                case Field::site:
                    if (value > 0xffff'ffff) return nullptr;
                    access.site = static_cast<std::uint32_t>(value);
                    break;
                case Field::size:
                    if (value > 0xffff'ffff) return nullptr;
                    access.size = static_cast<std::uint32_t>(value);
                    break;
                case Field::other:
                    break;
            }
        }
        if (*at != '\n' || fields.empty()) return nullptr;
        columns.push(access);
        return at + 1;
    }

    std::string parse(std::string_view line, Columns& columns) {
        if (trimmed(line).empty()) return {};
        if (fields.empty()) return parse_header(line, columns);
        Access access;
        bool more = true;
        for (std::size_t i = 0; i < fields.size(); ++i) {
            if (!more) return wrong_count(i);
            std::string_view text = take_field(line, separator, more);
            bool good = true;
            const char* expected = "";
            switch (fields[i]) {
                case Field::address:
                    good = parse_either(text, access.address);
                    expected = "an address";
                    break;
                case Field::thread:
                    good = parse_either(text, access.thread), expected = "a thread number below 65536";
                    break;
                case Field::write:
                    good = parse_write(text, access.flags), expected = "0 or 1 for write";
                    break;
                case Field::site:
                    good = parse_either(text, access.site), expected = "a site number below 2^32";
                    break;
                case Field::size:
                    good = parse_either(text, access.size), expected = "a size below 2^32";
                    break;
                case Field::other:
                    break;
            }
            if (!good) return fmt::format("expected {}, found {}", expected, quoted(text));
        }
        if (more && !trimmed(line).empty()) {
            std::size_t found = fields.size();
            for (; more; ++found) take_field(line, separator, more);
            return wrong_count(found);
        }
        columns.push(access);
        return {};
    }

 private:
    static constexpr std::size_t kLongestNumber = 20;  // and what ends it

    // Up to 19 digits, or 16 after 0x.
    static bool take_number(const char*& at, std::uint64_t& value) {
        if (at[0] == '0' && (at[1] | 0x20) == 'x') {
            at += 2;
            return take_hexadecimal(at, value);
        }
        const char* const begin = at;
        for (; *at >= '0' && *at <= '9'; ++at) {
            if (at - begin == 19) return false;
            value = value * 10 + static_cast<std::uint64_t>(*at - '0');
        }
        return at != begin;
    }

    std::string wrong_count(std::size_t found) const {
        return fmt::format("expected {} fields separated by {}, found {}", fields.size(),
                           separator == ','   ? "commas"
                           : separator == ';' ? "semicolons"
                                              : "tabs",
                           found);
    }

    std::string parse_header(std::string_view line, Columns& columns) {
        if (line.starts_with("\xef\xbb\xbf")) line.remove_prefix(3);  // a byte-order mark
        for (char other : {';', '\t'})
            if (line.find(',') == std::string_view::npos && line.find(other) != std::string_view::npos)
                separator = other;
        ColumnSet has;
        int addresses = 0;
        for (bool more = true; more;) {
            Field field = field_named(take_field(line, separator, more));
            addresses += field == Field::address;
            has.sites |= field == Field::site;
            has.sizes |= field == Field::size;
            has.threads |= field == Field::thread;
            has.flags |= field == Field::write;
            fields.push_back(field);
        }
        if (addresses != 1) return "expected a header that names an address column once";
        columns.has = has;
        return {};
    }
};

void write_csv_line(const Access& access, std::string& out) {
    fmt::format_to(std::back_inserter(out), "{:#x},{},{},{},{}\n", access.address, access.thread,
                   (access.flags & kWrite) != 0 ? 1 : 0, access.site, access.size);
}

}  // namespace

bool recognize_csv(std::span<const std::uint8_t> head) {
    std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
    std::string_view first = text.substr(0, text.find('\n'));
    if (first.size() > 4096) return false;
    Columns ignored;
    return Csv{}.parse(first, ignored).empty() && !trimmed(first).empty();
}

Result<std::unique_ptr<TraceReader>> open_csv(ByteStream stream) {
    return std::make_unique<LineReader<Csv>>(std::move(stream), Csv{});
}
Result<std::unique_ptr<TraceWriter>> create_csv(std::unique_ptr<ByteSink> sink) {
    return std::make_unique<LineWriter<decltype(&write_csv_line)>>(
        std::move(sink), &write_csv_line, Csv{}.columns(), "address,thread,write,site,size\n");
}

}  // namespace revisit
