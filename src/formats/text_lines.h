// Text formats, line by line, in bounded memory.
#pragma once

#include <fmt/format.h>

#include <charconv>
#include <cstring>
#include <string_view>

#include "formats/byte_stream.h"
#include "formats/columns.h"
#include "revisit/trace.h"

namespace revisit {

inline constexpr std::size_t kLongestLine = 1 << 16;

// What was found, for an error message: short, printable, quoted.
inline std::string quoted(std::string_view text) {
    std::string out = "\"";
    for (char c : text.substr(0, 40)) out += c >= ' ' && c <= '~' ? c : '?';
    return out + (text.size() > 40 ? "…\"" : "\"");
}

// A number in the given base that fills the whole text.
template <class Number>
bool parse_number(std::string_view text, Number& value, int base = 10) {
    auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value, base);
    return code == std::errc{} && end == text.data() + text.size() && !text.empty();
}

inline std::string_view trimmed(std::string_view text) {
    while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
    while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r'))
        text.remove_suffix(1);
    return text;
}

// Reads a text format: `Format` gives `ColumnSet columns()` and
// `std::string parse(line, Columns&)`, which appends what the line says and returns what is wrong or
// "".
template <class Format>
class LineReader : public TraceReader {
 public:
    LineReader(ByteStream stream, Format format)
        : stream_(std::move(stream)), format_(std::move(format)) {
        columns_.has = format_.columns();
    }

    Result<AccessBatch> next() override {
        columns_.clear();
        while (columns_.count() < kReadBatch) {
            auto bytes = stream_.peek(kLongestLine);
            if (!bytes) return std::unexpected(bytes.error());
            if (bytes->empty()) break;
            const char* begin = reinterpret_cast<const char*>(bytes->data());
            const char* at = begin;
            const char* end = begin + bytes->size();
            while (at < end && columns_.count() < kReadBatch) {
                const char* newline =
                    static_cast<const char*>(std::memchr(at, '\n', static_cast<std::size_t>(end - at)));
                if (newline == nullptr && bytes->size() >= kLongestLine && at != begin)
                    break;  // may go on
                const char* line_end = newline != nullptr ? newline : end;
                ++line_;
                if (static_cast<std::size_t>(line_end - at) >= kLongestLine)
                    return fail(stream_.name(), fmt::format("line {}", line_),
                                fmt::format("expected a line of under {} bytes", kLongestLine));
                std::string wrong =
                    format_.parse({at, static_cast<std::size_t>(line_end - at)}, columns_);
                if (!wrong.empty()) return fail(stream_.name(), fmt::format("line {}", line_), wrong);
                at = newline != nullptr ? newline + 1 : end;
            }
            stream_.consume(static_cast<std::size_t>(at - begin));
        }
        return columns_.batch();
    }
    std::uint64_t bytes_read() const override { return stream_.file_bytes_read(); }
    std::uint64_t bytes_total() const override { return stream_.file_bytes_total(); }

 private:
    ByteStream stream_;
    Format format_;
    Columns columns_;
    std::uint64_t line_ = 0;
};

// Whether a file that begins with `head` reads as `format`: its first lines, up to eight, all parse. A
// last line that the window may have cut is not held against it.
template <class Format>
bool recognizes_lines(std::span<const std::uint8_t> head, Format format, std::size_t window) {
    std::string_view text(reinterpret_cast<const char*>(head.data()), head.size());
    Columns ignored;
    int seen = 0;
    while (!text.empty() && seen < 8) {
        std::size_t newline = text.find('\n');
        if (newline == std::string_view::npos && head.size() >= window) break;
        std::string_view line = text.substr(0, newline);
        text.remove_prefix(newline == std::string_view::npos ? text.size() : newline + 1);
        if (!format.parse(line, ignored).empty()) return false;
        seen += !trimmed(line).empty();
    }
    return seen > 0;
}

// Writes a text format: `Line` turns an Access into its line(s).
template <class Line>
class LineWriter : public TraceWriter {
 public:
    LineWriter(std::unique_ptr<ByteSink> sink, Line line, std::string_view header = {})
        : sink_(std::move(sink)), line_(std::move(line)), text_(header) {}
    Result<void> write(const AccessBatch& batch) override {
        for (std::size_t i = 0; i < batch.count(); ++i) {
            line_(batch.at(i), text_);
            if (text_.size() >= kLongestLine) {
                if (auto done = flush(); !done) return done;
            }
        }
        return {};
    }
    Result<void> finish(const TraceInfo&) override {
        if (auto done = flush(); !done) return done;
        return sink_->finish();
    }

 private:
    Result<void> flush() {
        auto done = sink_->write(text_);
        text_.clear();
        return done;
    }
    std::unique_ptr<ByteSink> sink_;
    Line line_;
    std::string text_;
};

}  // namespace revisit
