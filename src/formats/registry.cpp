// The table of trace formats. A new format is one file and one line here.
#include <fmt/format.h>

#include <filesystem>

#include "core/try.h"
#include "formats/format.h"

namespace revisit {

#define REVISIT_DECLARE_FORMAT(name)                                     \
    bool recognize_##name(std::span<const std::uint8_t> head);           \
    Result<std::unique_ptr<TraceReader>> open_##name(ByteStream stream); \
    Result<std::unique_ptr<TraceWriter>> create_##name(std::unique_ptr<ByteSink> sink);
REVISIT_DECLARE_FORMAT(revisit)
REVISIT_DECLARE_FORMAT(lackey)
REVISIT_DECLARE_FORMAT(din)
REVISIT_DECLARE_FORMAT(csv)
REVISIT_DECLARE_FORMAT(champsim)
REVISIT_DECLARE_FORMAT(perf)
REVISIT_DECLARE_FORMAT(drmemtrace)
REVISIT_DECLARE_FORMAT(gem5)
REVISIT_DECLARE_FORMAT(oracle)
REVISIT_DECLARE_FORMAT(records)
REVISIT_DECLARE_FORMAT(u64)
#undef REVISIT_DECLARE_FORMAT
Result<std::unique_ptr<TraceReader>> open_drmemtrace_directory(const std::string& path);

namespace {

// Sniffed in this order: magic number, text, then binary layouts from the strictest to the loosest.
constexpr FormatEntry kFormats[] = {
    {"revisit", "revisit's own: chunked, packed, with sites and modules", ".rvt .revisit",
     recognize_revisit, open_revisit, create_revisit},
    {"lackey", "valgrind --tool=lackey --trace-mem=yes", ".lackey", recognize_lackey, open_lackey,
     create_lackey},
    {"din", "dinero: label and hexadecimal address per line", ".din", recognize_din, open_din,
     create_din},
    {"csv", "columns address, thread, write, site, size", ".csv", recognize_csv, open_csv, create_csv},
    {"perf", "perf script's samples with data addresses", ".perf", recognize_perf, open_perf, nullptr},
    {"drmemtrace", "DynamoRIO's drmemtrace: a file or a directory of them", "", recognize_drmemtrace,
     open_drmemtrace, nullptr},
    {"gem5", "gem5's packet traces", ".gem5", recognize_gem5, open_gem5, nullptr},
    {"champsim", "ChampSim's 64-byte instruction records", ".champsim .champsimtrace",
     recognize_champsim, open_champsim, create_champsim, 64},
    {"oracle", "libCacheSim's oracleGeneral", ".oracleGeneral .oracle", recognize_oracle, open_oracle,
     nullptr, 24},
    {"records", "16-byte records: address, site, thread, size, flags", ".records .rec",
     recognize_records, open_records, create_records, 16},
    {"u64", "little-endian 8-byte addresses", ".u64", nullptr, open_u64, create_u64, 8},
};

std::string names() {
    std::string out;
    for (const FormatEntry& entry : kFormats)
        out += fmt::format("{}{}", out.empty() ? "" : ", ", entry.name);
    return out;
}

const FormatEntry* by_name(std::string_view name) {
    for (const FormatEntry& entry : kFormats)
        if (entry.name == name) return &entry;
    return nullptr;
}

const FormatEntry* by_suffix(std::string_view path) {
    path = without_packing_suffix(path);
    for (const FormatEntry& entry : kFormats) {
        std::string_view list = entry.suffixes;
        while (!list.empty()) {
            std::string_view suffix = list.substr(0, list.find(' '));
            if (path.size() > suffix.size() && path.ends_with(suffix)) return &entry;
            list.remove_prefix(std::min(list.size(), suffix.size() + 1));
        }
    }
    return nullptr;
}

}  // namespace

std::span<const FormatEntry> formats() {
    return kFormats;
}

Result<const FormatEntry*> tell_format(ByteStream& stream, std::string_view format,
                                       std::string_view path) {
    if (!format.empty()) {
        const FormatEntry* entry = by_name(format);
        if (entry == nullptr)
            return fail(fmt::format("expected a format out of {}, found \"{}\"", names(), format));
        return entry;
    }
    const auto head = TRY(stream.peek(kSniffWindow));
    const auto window = head.first(std::min(head.size(), kSniffWindow));
    if (window.empty()) return by_name("u64");  // an empty trace, in any format
    // A name that says a binary format outweighs a guess; text and magic numbers outweigh the name.
    const FormatEntry* named = by_suffix(path);
    for (const FormatEntry& entry : kFormats) {
        if (entry.recognizes == nullptr || !entry.recognizes(window)) continue;
        bool sure = entry.name == "revisit" || entry.name == "lackey" || entry.name == "din" ||
                    entry.name == "csv" || entry.name == "perf" || entry.name == "drmemtrace" ||
                    entry.name == "gem5";
        return named != nullptr && !sure ? named : &entry;
    }
    if (named != nullptr) return named;
    return fail(ErrorCode::unknown_format, stream.name(), {},
                fmt::format("cannot recognize the trace format by content ({})", names()));
}

Result<std::unique_ptr<TraceReader>> open_stream(ByteStream stream, std::string_view format,
                                                 std::string_view path) {
    const FormatEntry* entry = TRY(tell_format(stream, format, path));
    return entry->open(std::move(stream));
}

Result<std::unique_ptr<TraceReader>> open_trace(const std::string& path, std::string_view format) {
    std::error_code error;
    if ((format.empty() || format == "drmemtrace") && std::filesystem::is_directory(path, error))
        return open_drmemtrace_directory(path);
    return open_stream(TRY(ByteStream::open(path)), format, path);
}

Result<std::unique_ptr<TraceWriter>> create_trace(const std::string& path, std::string_view format) {
    const FormatEntry* entry = format.empty() ? by_suffix(path) : by_name(format);
    if (entry == nullptr && !format.empty())
        return fail(fmt::format("expected a format out of {}, found \"{}\"", names(), format));
    if (entry == nullptr) entry = by_name("revisit");
    if (entry->create == nullptr)
        return fail(path, {}, fmt::format("the {} format can only be read", entry->name));
    return entry->create(TRY(create_sink(path)));
}

}  // namespace revisit
