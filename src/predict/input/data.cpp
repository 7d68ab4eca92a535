// Contents of arrays, given by the user.
//
// A sparse product reads its column indices from memory: the source does not show them. Given as a
// file they are part of the program, and the run is interpreted as it would be with that input. How
// wide an entry is the program says: it is what its loads read. A file of decimal digits, signs and
// separators alone is text; one that starts as NumPy's .npy do has its own width; anything else is an
// array in memory order (little-endian).
#include "predict/input/data.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <optional>
#include <set>

#include "core/try.h"

namespace revisit::predict {
namespace {

constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 32;

// Bytes of an entry, as loads that matter read it.
std::optional<std::uint32_t> entry_size(const Program& program, const std::string& name) {
    std::set<std::uint32_t> named, any;
    bool met = false;
    for (const Function& f : program.functions)
        for (const Reference& r : f.references) met |= r.array == name;
    for (const Function& f : program.functions)
        for (const Block& b : f.blocks)
            for (const Instruction& i : b.code) {
                if (i.op != Op::load || i.dst < 0 || i.b >= 0) continue;
                const Reference& r = f.references[static_cast<std::size_t>(i.imm)];
                any.insert(r.size);
                if (r.array == name) named.insert(r.size);
            }
    // A function that is called may have another name for it.
    if (named.size() == 1) return *named.begin();
    if (!met && any.size() == 1) return *any.begin();
    return std::nullopt;
}

bool is_text(const std::string& bytes) {
    return std::all_of(bytes.begin(), bytes.end(), [](char c) {
        return (c >= '0' && c <= '9') || c == '-' || c == '+' || c == ',' || c == ';' || c == ' ' ||
               c == '\t' || c == '\n' || c == '\r';
    });
}

Result<std::vector<std::int64_t>> from_text(const std::string& path, const std::string& text) {
    std::vector<std::int64_t> out;
    std::size_t line = 1;
    for (std::size_t at = 0; at < text.size();) {
        line += text[at] == '\n';
        if (!(text[at] >= '0' && text[at] <= '9') && text[at] != '-' && text[at] != '+') {
            ++at;
            continue;
        }
        at += text[at] == '+';
        std::int64_t value = 0;
        const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), value);
        if (error != std::errc{})
            return fail(path, "line " + std::to_string(line),
                        "expected whole numbers of up to 64 bits");
        out.push_back(value);
        at = static_cast<std::size_t>(end - text.data());
    }
    return out;
}

std::vector<std::int64_t> from_memory(std::string_view bytes, std::uint32_t size) {
    std::vector<std::int64_t> out(bytes.size() / size);
    for (std::size_t k = 0; k < out.size(); ++k) {
        std::uint64_t value = 0;
        for (std::uint32_t b = 0; b < size; ++b)
            value |= std::uint64_t{static_cast<unsigned char>(bytes[k * size + b])} << (8 * b);
        const auto unused = 64 - 8 * size;
        out[k] = static_cast<std::int64_t>(value << unused) >> unused;
    }
    return out;
}

// NumPy's format: magic, version, length of the header, the header as a Python dictionary, the array.
Result<std::vector<std::int64_t>> from_numpy(const std::string& path, std::string_view bytes) {
    const auto broken = [&](const char* what) { return fail(path, "", what); };
    if (bytes.size() < 12) return broken("is no whole .npy file");
    const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(bytes[at]); };
    const bool first = byte(6) == 1;
    const std::size_t length =
        first ? byte(8) + 256u * byte(9)
              : byte(8) + 256u * byte(9) + 65536u * byte(10) + 16777216u * byte(11);
    const std::size_t start = (first ? 10 : 12);
    if (start + length > bytes.size()) return broken("is no whole .npy file");
    const auto header = bytes.substr(start, length);
    const auto at = header.find("'descr'");
    const auto quote = at == header.npos ? at : header.find('\'', at + 7);
    if (quote == header.npos || quote + 4 > header.size()) return broken("is no .npy file");
    const auto type = header.substr(quote + 1, 3);
    if ((type[0] != '<' && type[0] != '|') || (type[1] != 'i' && type[1] != 'u') ||
        !std::string_view("1248").contains(type[2]))
        return broken("has no little-endian integers");
    return from_memory(bytes.substr(start + length), static_cast<std::uint32_t>(type[2] - '0'));
}

std::string place_of(const DataSource& source) {
    return "data " + source.name + "=" + source.from;
}

Result<Table> uniform(const DataSource& source, Table table) {
    const auto range = std::string_view(source.from).substr(8);
    const auto dots = range.find("..");
    const auto expected = [&] {
        return fail(ErrorCode::option, "", place_of(source), "expected uniform:LOW..HIGH");
    };
    if (dots == range.npos) return expected();
    const auto number = [](std::string_view text, std::int64_t& to) {
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), to);
        return error == std::errc{} && end == text.data() + text.size() && !text.empty();
    };
    if (!number(range.substr(0, dots), table.low) || !number(range.substr(dots + 2), table.high) ||
        table.low > table.high)
        return expected();
    table.random = true;
    return table;
}

}  // namespace

Result<Table> read_table(const DataSource& source, const Program& program) {
    const auto refuse = [&](const char* why) {
        return fail(ErrorCode::option, "", place_of(source), why);
    };
    const auto& arguments = program.functions.front().arguments;
    const bool exists =
        std::any_of(arguments.begin(), arguments.end(),
                    [&](auto& a) { return a.kind == Kind::pointer && a.name == source.name; }) ||
        std::any_of(program.globals.begin(), program.globals.end(),
                    [&](auto& g) { return g.name == source.name; });
    if (!exists) return refuse("no array of that name decides anything here");
    unsigned size = program.memory_needed ? entry_size(program, source.name).value_or(0) : 0;
    for (const Argument& a : arguments)
        if (a.inside && a.kind == Kind::integer && a.name == source.name) size = a.width / 8u;
    if (size == 0 || size > 8) return refuse("nothing that is read from it decides anything");
    Table table;
    table.name = source.name;
    table.element = size;
    if (source.from.starts_with("uniform:")) return uniform(source, std::move(table));
    std::ifstream in(source.from, std::ios::binary | std::ios::ate);
    if (!in) return fail(source.from, "", "cannot be read");
    const auto length = in.tellg();
    if (length < 0) return fail(source.from, "", "is no file");
    if (static_cast<std::uint64_t>(length) > kMostBytes)
        return fail(source.from, "", "has more than 4 GiB");
    std::string bytes(static_cast<std::size_t>(length), '\0');
    in.seekg(0);
    if (!in.read(bytes.data(), length)) return fail(source.from, "", "cannot be read");
    if (bytes.starts_with("\x93NUMPY")) {
        table.values = TRY(from_numpy(source.from, bytes));
    } else if (is_text(bytes)) {
        table.values = TRY(from_text(source.from, bytes));
    } else {
        if (bytes.size() % table.element != 0)
            return fail(source.from, "",
                        "has " + std::to_string(bytes.size()) +
                            " bytes, no whole number of entries of " + std::to_string(table.element));
        table.values = from_memory(bytes, table.element);
    }
    if (table.values.empty()) return fail(source.from, "", "has no entries");
    return table;
}

}  // namespace revisit::predict
