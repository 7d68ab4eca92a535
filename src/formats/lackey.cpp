// lackey: what `valgrind --tool=lackey --trace-mem=yes` prints. "I  addr,size" fetches an instruction,
// " L addr,size" loads, " S" stores, " M" modifies (a load, then a store); addresses are hexadecimal.
// Only data accesses are taken. Lines of valgrind's own ("==123== …") and blank ones are passed over.
#include "formats/format.h"
#include "formats/text_lines.h"

namespace revisit {
namespace {

bool is_comment(std::string_view line) {
    return line.starts_with("==") || line.starts_with("--");
}

struct Lackey {
    ColumnSet columns() const { return {false, true, false, true}; }
    bool ready() const { return true; }

    // " L 1ffeffe7e8,8\n" or "I  04000a00,4\n"
    const char* parse_usual(const char* at, const char*, Columns& columns) const {
        const bool fetches = at[0] == 'I' && at[1] == ' ' && at[2] == ' ';
        const char kind = at[1];
        if (!fetches && (at[0] != ' ' || at[2] != ' ' || (kind != 'L' && kind != 'S' && kind != 'M')))
            return nullptr;
        at += 3;
        Access access;
        if (!take_hexadecimal(at, access.address) || *at != ',') return nullptr;
        for (++at; *at >= '0' && *at <= '9'; ++at) {
            access.size = access.size * 10 + static_cast<std::uint32_t>(*at - '0');
            if (access.size > 100'000'000) return nullptr;
        }
        if (*at != '\n' || access.size == 0) return nullptr;
        if (fetches) return at + 1;
        if (kind != 'S') columns.push(access);
        access.flags = kWrite;
        if (kind != 'L') columns.push(access);
        return at + 1;
    }

    std::string parse(std::string_view line, Columns& columns) const {
        std::string_view text = trimmed(line);
        if (text.empty() || is_comment(text)) return {};
        char kind = text[0];
        bool known = kind == 'I' || kind == 'L' || kind == 'S' || kind == 'M';
        if (!known || text.size() < 2 || text[1] != ' ')
            return fmt::format("expected I, L, S or M, an address and a size, found {}", quoted(line));
        std::string_view operands = trimmed(text.substr(1));
        std::size_t comma = operands.find(',');
        Access access;
        if (comma == std::string_view::npos ||
            !parse_number(operands.substr(0, comma), access.address, 16))
            return fmt::format("expected a hexadecimal address and a comma, found {}",
                               quoted(operands));
        if (!parse_number(operands.substr(comma + 1), access.size) || access.size == 0)
            return fmt::format("expected a size in bytes, found {}",
                               quoted(operands.substr(comma + 1)));
        if (kind == 'L' || kind == 'M') columns.push(access);
        access.flags = kWrite;
        if (kind == 'S' || kind == 'M') columns.push(access);
        return {};
    }
};

void write_lackey_line(const Access& access, std::string& out) {
    fmt::format_to(std::back_inserter(out), " {} {:08x},{}\n", (access.flags & kWrite) != 0 ? 'S' : 'L',
                   access.address, access.size == 0 ? 1 : access.size);
}

}  // namespace

bool recognize_lackey(std::span<const std::uint8_t> head) {
    return recognizes_lines(head, Lackey{}, kSniffWindow);
}

Result<std::unique_ptr<TraceReader>> open_lackey(ByteStream stream) {
    return std::make_unique<LineReader<Lackey>>(std::move(stream), Lackey{});
}
Result<std::unique_ptr<TraceWriter>> create_lackey(std::unique_ptr<ByteSink> sink) {
    return std::make_unique<LineWriter<decltype(&write_lackey_line)>>(
        std::move(sink), &write_lackey_line, Lackey{}.columns());
}

}  // namespace revisit
