// perf: what `perf script` prints of samples that have data addresses (perf mem record, or -F …,addr).
//
//     sort  4242/4243 [002]  71.250001:  1 cpu/mem-loads,ldlat=30/P:  7f12a0  5080144 |OP LOAD|… 401136
//     sort+0x16 (/bin/sort) comm  pid/tid   cpu    time        period event:                address
//     data source          instruction
//
// The fields before the address depend on -F; those of a sample end with the event's name and a colon.
// The address is the first word after it. The instruction, where it is printed, comes last and is
// followed by its symbol; its low half is the site. Call chains, on lines of their own, are passed
// over, as are samples without an address. With -F addr or -F addr,ip there is no event: the first word
// is the address, the second the instruction.
#include "formats/format.h"
#include "formats/text_lines.h"

namespace revisit {
namespace {

bool is_hexadecimal(std::string_view word) {
    std::uint64_t value;
    return parse_number(word, value, 16);
}

std::string_view take_word(std::string_view& text) {
    text = trimmed(text);
    const std::string_view word = text.substr(0, text.find_first_of(" \t"));
    text.remove_prefix(word.size());
    return word;
}

// "71.250001:"
bool is_time(std::string_view word) {
    if (!word.ends_with(':')) return false;
    word.remove_suffix(1);
    const std::size_t point = word.find('.');
    std::uint64_t seconds, fraction;
    return point != std::string_view::npos && parse_number(word.substr(0, point), seconds) &&
           parse_number(word.substr(point + 1), fraction);
}

struct Sample {
    bool has_event = false, has_time = false, store = false;
    std::uint16_t thread = 0;
    std::string_view rest;  // from the address on
};

Sample head_of(std::string_view line) {
    Sample sample{false, false, false, 0, line};
    bool named = false;
    for (std::string_view rest = line; !trimmed(rest).empty();) {
        const std::string_view word = take_word(rest);
        if (is_time(word)) {
            sample.has_time = true;
        } else if (word.size() > 1 && word.ends_with(':')) {
            sample.has_event = true;
            sample.store = word.find("store") != std::string_view::npos;
            sample.rest = rest;
            break;
        } else if (word.starts_with('|') || word.starts_with('(')) {
            break;
        } else if (named && !sample.has_time) {  // thread, or process/thread, after the command's name
            std::uint64_t number;
            if (parse_number(word.substr(word.find('/') + 1), number))
                sample.thread = static_cast<std::uint16_t>(number);
        }
        named = true;
    }
    return sample;
}

struct Perf {
    bool decided = false, with_events = false;
    ColumnSet columns() const { return {true, false, true, true}; }
    bool ready() const { return decided; }

    std::string parse(std::string_view line, Columns& columns) {
        const std::string_view text = trimmed(line);
        if (text.empty() || text.starts_with('#')) return {};
        Sample sample = head_of(text);
        if (!decided) {
            decided = true;
            with_events = sample.has_event;
        }
        if (with_events && !sample.has_event) {
            std::string_view rest = text;  // a line of a call chain begins with its address
            if (is_hexadecimal(take_word(rest))) return {};
            return fmt::format("expected a sample or a line of its call chain, found {}", quoted(text));
        }
        std::string_view rest = sample.rest;
        const std::string_view word = take_word(rest);
        Access access;
        if (!parse_number(word, access.address, 16))
            return fmt::format("expected a hexadecimal data address, found {}", quoted(word));
        if (access.address == 0) return {};
        if (with_events) access.thread = sample.thread;
        access.flags = sample.store || rest.find("|OP STORE") != std::string_view::npos ? kWrite : 0;
        access.site = site_in(rest);
        columns.push(access);
        return {};
    }

 private:
    // The instruction's address stands before its symbol, or last.
    std::uint32_t site_in(std::string_view rest) const {
        const std::size_t source = rest.rfind('|');
        const bool has_source = source != std::string_view::npos;
        if (has_source) rest.remove_prefix(source + 1);
        for (std::string_view word; !(word = take_word(rest)).empty();) {
            std::uint64_t value;
            if (!parse_number(word, value, 16)) {
                if (has_source) continue;  // what else it says of the access
                break;
            }
            const std::string_view after = trimmed(rest);
            std::uint64_t another;
            std::string_view next = after;
            if (!with_events || after.empty() || !parse_number(take_word(next), another, 16))
                return static_cast<std::uint32_t>(value);
        }
        return 0;
    }
};

}  // namespace

bool recognize_perf(std::span<const std::uint8_t> head) {
    std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
    for (std::string_view line; !text.empty();) {
        line = text.substr(0, text.find('\n'));
        text.remove_prefix(std::min(text.size(), line.size() + 1));
        line = trimmed(line);
        if (line.empty() || line.starts_with('#')) continue;
        Sample sample = head_of(line);
        return sample.has_event && sample.has_time && is_hexadecimal(take_word(sample.rest));
    }
    return false;
}

Result<std::unique_ptr<TraceReader>> open_perf(ByteStream stream) {
    return std::make_unique<LineReader<Perf>>(std::move(stream), Perf{});
}

}  // namespace revisit
