// din: dinero's text: a label (0 read, 1 write, 2 instruction fetch) and a hexadecimal address a line;
// anything after them is passed over. Only data accesses are taken.
#include "formats/format.h"
#include "formats/text_lines.h"

namespace revisit {
namespace {

struct Din {
    ColumnSet columns() const { return {false, false, false, true}; }
    bool ready() const { return true; }

    // "0 7ffe1234\n"
    const char* parse_usual(const char* at, const char*, Columns& columns) const {
        const char label = at[0];
        if (label < '0' || label > '2' || at[1] != ' ') return nullptr;
        at += 2;
        Access access;
        if (!take_hexadecimal(at, access.address) || *at != '\n') return nullptr;
        access.flags = label == '1' ? kWrite : 0;
        if (label != '2') columns.push(access);
        return at + 1;
    }

    std::string parse(std::string_view line, Columns& columns) const {
        std::string_view text = trimmed(line);
        if (text.empty()) return {};
        std::size_t space = text.find_first_of(" \t");
        std::string_view label = text.substr(0, space);
        if (label != "0" && label != "1" && label != "2")
            return fmt::format("expected a label 0, 1 or 2, found {}", quoted(label));
        std::string_view rest =
            space == std::string_view::npos ? std::string_view{} : trimmed(text.substr(space));
        std::string_view address = rest.substr(0, rest.find_first_of(" \t"));
        if (address.starts_with("0x") || address.starts_with("0X")) address.remove_prefix(2);
        Access access;
        if (!parse_number(address, access.address, 16))
            return fmt::format("expected a hexadecimal address, found {}", quoted(rest));
        access.flags = label == "1" ? kWrite : 0;
        if (label != "2") columns.push(access);
        return {};
    }
};

void write_din_line(const Access& access, std::string& out) {
    fmt::format_to(std::back_inserter(out), "{} {:x}\n", (access.flags & kWrite) != 0 ? 1 : 0,
                   access.address);
}

}  // namespace

bool recognize_din(std::span<const std::uint8_t> head) {
    return recognizes_lines(head, Din{}, kSniffWindow);
}

Result<std::unique_ptr<TraceReader>> open_din(ByteStream stream) {
    return std::make_unique<LineReader<Din>>(std::move(stream), Din{});
}
Result<std::unique_ptr<TraceWriter>> create_din(std::unique_ptr<ByteSink> sink) {
    return std::make_unique<LineWriter<decltype(&write_din_line)>>(std::move(sink), &write_din_line,
                                                                   Din{}.columns());
}

}  // namespace revisit
