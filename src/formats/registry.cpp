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

// Packings that other tools know, by their first bytes and by their names' endings.
struct ForeignPacking {
    std::string_view name, first_bytes, ending;
};
constexpr ForeignPacking kForeignPackings[] = {
    {"bzip2", "BZh", ".bz2"},
    {"lz4", "\x04\x22\x4d\x18", ".lz4"},
    {"zip", {}, ".zip"},
    {"7-Zip", "7z\xbc\xaf\x27\x1c", ".7z"},
    {"compress", "\x1f\x9d", ".Z"},
    {"lzip", "LZIP", ".lz"},
    {"brotli", {}, ".br"},
    {"lzma", {}, ".lzma"},
    {"snappy", "\xff\x06", ".sz"},
};

std::string_view foreign_packing(std::span<const std::uint8_t> head) {
    const std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
    for (const ForeignPacking& packing : kForeignPackings)
        if (!packing.first_bytes.empty() && text.starts_with(packing.first_bytes)) return packing.name;
    return {};
}

bool is_foreign_packing(std::string_view ending) {
    for (const ForeignPacking& packing : kForeignPackings)
        if (packing.ending == ending) return true;
    return false;
}

// ".bz2" of "a/b.u64.bz2"
std::string_view ending_of(std::string_view path) {
    path = path.substr(path.rfind('/') == std::string_view::npos ? 0 : path.rfind('/') + 1);
    const std::size_t dot = path.rfind('.');
    return dot == std::string_view::npos || dot == 0 ? std::string_view{} : path.substr(dot);
}

// Reads no column beyond its end.
class CheckedWriter final : public TraceWriter {
 public:
    explicit CheckedWriter(std::unique_ptr<TraceWriter> writer) : writer_(std::move(writer)) {}
    Result<void> write(const AccessBatch& batch) override {
        TRY(check(batch));
        return writer_->write(batch);
    }
    Result<void> finish(const TraceInfo& info) override { return writer_->finish(info); }
    ColumnSet holds() const override { return writer_->holds(); }

 private:
    std::unique_ptr<TraceWriter> writer_;
};

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
    if (const std::string_view packing = foreign_packing(window); !packing.empty())
        return fail(
            stream.name(), {},
            fmt::format("is packed by {}; expected zstd, gzip, xz or an unpacked trace", packing));
    return fail(ErrorCode::unknown_format, stream.name(), {},
                fmt::format("cannot recognize the trace format by content ({})", names()));
}

Result<std::unique_ptr<TraceReader>> open_stream(ByteStream stream, std::string_view format,
                                                 std::string_view path) {
    const FormatEntry* entry = TRY(tell_format(stream, format, path));
    auto reader = TRY(entry->open(std::move(stream)));
    reader->set_format(entry->name);
    return reader;
}

Result<std::unique_ptr<TraceReader>> open_trace(const std::string& path, std::string_view format) {
    return open_trace(path, format, 0);
}

Result<std::unique_ptr<TraceReader>> open_trace(const std::string& path, std::string_view format,
                                                unsigned threads) {
    std::error_code error;
    if ((format.empty() || format == "drmemtrace") && std::filesystem::is_directory(path, error))
        return open_drmemtrace_directory(path);
    return open_stream(TRY(ByteStream::open(path, threads)), format, path);
}

Result<std::unique_ptr<TraceWriter>> create_trace(const std::string& path, std::string_view format) {
    const FormatEntry* entry = format.empty() ? by_suffix(path) : by_name(format);
    if (entry == nullptr && !format.empty())
        return fail(fmt::format("expected a format out of {}, found \"{}\"", names(), format));
    if (const std::string_view ending = ending_of(path); !ending.empty()) {
        const bool hides_format = by_suffix(path.substr(0, path.size() - ending.size())) != nullptr;
        if (is_foreign_packing(ending) || (hides_format && by_suffix(path) == nullptr))
            return fail(path, {},
                        fmt::format("cannot write {}: traces are packed as .zst, .gz or .xz", ending));
    }
    if (entry == nullptr) entry = by_name("revisit");
    if (entry->create == nullptr)
        return fail(path, {}, fmt::format("the {} format can only be read", entry->name));
    return std::make_unique<CheckedWriter>(TRY(entry->create(TRY(create_sink(path)))));
}

}  // namespace revisit
