// Text formats, line by line, in bounded memory.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <concepts>
#include <cstring>
#include <deque>
#include <future>
#include <string_view>
#include <thread>

#include "core/try.h"
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

// Hexadecimal digits from `at` on, at most sixteen; leaves `at` behind them.
inline bool take_hexadecimal(const char*& at, std::uint64_t& value) {
    const char* const begin = at;
    value = 0;
    for (;; ++at) {
        const unsigned c = static_cast<unsigned char>(*at);
        const unsigned digit = c - '0', letter = (c | 0x20) - 'a';
        if (digit <= 9)
            value = value << 4 | digit;
        else if (letter <= 5)
            value = value << 4 | (letter + 10);
        else
            break;
        if (at - begin == 16) return false;
    }
    return at != begin;
}

inline std::string_view trimmed(std::string_view text) {
    while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
    while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r'))
        text.remove_suffix(1);
    return text;
}

// A text format: `Format` gives `ColumnSet columns()`, `std::string parse(line, Columns&)`, which
// appends what the line says and returns what is wrong or "", and `bool ready()`: whether a line can be
// parsed without those before it, as after a header. It may give `const char* parse_usual(const char*
// at, const char* end, Columns&)` as well, which parses a line that begins at `at` and has kUsualLine
// readable bytes in the way that most lines are written, returns where the next one begins, or null and
// leaves the line to parse().
inline constexpr std::size_t kUsualLine = 64;

template <class Format>
concept ParsesUsualLines = requires(const Format format, const char* at, Columns& columns) {
    { format.parse_usual(at, at, columns) } -> std::same_as<const char*>;
};

inline std::string too_long() {
    return fmt::format("expected a line of under {} bytes", kLongestLine);
}

// Parses lines from `at` until `stop` is reached or `most` accesses are there; a line ends with a
// newline or at `end`. Leaves `at` where the next line begins, `lines` larger by those that were parsed
// and, where one is wrong, begun. Where a line may go on beyond `end`, it is left.
template <class Format>
std::string parse_lines(Format& format, const char*& at, const char* stop, const char* end, bool ended,
                        std::size_t most, std::uint64_t& lines, Columns& columns) {
    while (at < stop && columns.count() < most) {
        if constexpr (ParsesUsualLines<Format>) {
            if (static_cast<std::size_t>(end - at) >= kUsualLine)
                if (const char* next = format.parse_usual(at, end, columns)) {
                    at = next;
                    ++lines;
                    continue;
                }
        }
        const char* newline =
            static_cast<const char*>(std::memchr(at, '\n', static_cast<std::size_t>(end - at)));
        const auto length = static_cast<std::size_t>((newline != nullptr ? newline : end) - at);
        if (length >= kLongestLine) {
            ++lines;
            return too_long();
        }
        if (newline == nullptr && !ended) break;
        ++lines;
        if (std::string wrong = format.parse({at, length}, columns); !wrong.empty()) return wrong;
        at = newline != nullptr ? newline + 1 : end;
    }
    return {};
}

// The lines of a plain file: chunk k has those that begin in its k-th MiB.
template <class Format>
class LineChunks final : public AccessChunks {
 public:
    // Null where lines cannot be separated without reading from the start.
    static std::unique_ptr<LineChunks> of(const ByteStream& stream, const Format& format) {
        if (!stream.file() || stream.packed()) return nullptr;
        auto chunks = std::make_unique<LineChunks>(stream.file(), format);
        return chunks->read_header() ? std::move(chunks) : nullptr;
    }
    LineChunks(std::shared_ptr<const PlainFile> file, const Format& format)
        : file_(std::move(file)), fresh_(format), ready_(format), has_(format.columns()) {}

    std::size_t count() const override { return (file_->size() + kChunk - 1) / kChunk; }
    std::uint64_t accesses() const override { return file_->size() / kBytesPerLine; }
    Result<AccessBatch> decode(std::size_t chunk, Columns& into) const override {
        const std::uint64_t begin = std::uint64_t{chunk} * kChunk;
        const std::uint64_t end = std::min(begin + kChunk, file_->size());
        // The byte before shows whether a line begins here; the last line may end far behind.
        const std::uint64_t from = begin - (chunk != 0),
                            to = std::min(end + kLongestLine, file_->size());
        into.raw.resize(to - from);
        TRY(file_->read(from, into.raw.data(), into.raw.size()));
        Format format = chunk == 0 ? fresh_ : ready_;
        into.clear();
        into.has = chunk == 0 ? format.columns() : has_;
        const char* const bytes = reinterpret_cast<const char*>(into.raw.data());
        const char* at = bytes;
        const char* const stop = bytes + (end - from);
        if (chunk != 0) {
            at = static_cast<const char*>(
                std::memchr(bytes, '\n', static_cast<std::size_t>(end - from)));
            at = at == nullptr ? stop : at + 1;
        }
        std::uint64_t lines = 0;
        const char* const first = at;
        const std::string wrong = parse_lines(format, at, stop, bytes + into.raw.size(),
                                              to == file_->size(), ~std::size_t{0}, lines, into);
        if (!wrong.empty())
            return fail(
                file_->name(),
                fmt::format("line {}", lines + TRY(newlines_before(
                                                   from + static_cast<std::uint64_t>(first - bytes)))),
                wrong);
        return into.batch();
    }

 private:
    static constexpr std::uint64_t kChunk = std::uint64_t{1} << 20;
    static constexpr std::uint64_t kBytesPerLine = 16;  // about

    Result<std::uint64_t> newlines_before(std::uint64_t end) const {
        std::vector<char> bytes(kChunk);
        std::uint64_t count = 0;
        for (std::uint64_t at = 0; at < end; at += kChunk) {
            const std::size_t size = std::min(kChunk, end - at);
            TRY(file_->read(at, bytes.data(), size));
            count += static_cast<std::uint64_t>(
                std::count(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size), '\n'));
        }
        return count;
    }

    Result<void> read_header() {
        if (ready_.ready()) return {};
        std::string head(std::min<std::uint64_t>(kLongestLine, file_->size()), '\0');
        TRY(file_->read(0, head.data(), head.size()));
        Columns columns;
        columns.has = has_;
        for (std::size_t at = 0; !ready_.ready();) {
            const std::size_t newline = head.find('\n', at);
            if (newline == std::string::npos) return fail("no header");
            if (!ready_.parse(std::string_view(head).substr(at, newline - at), columns).empty())
                return fail("not a header");
            at = newline + 1;
        }
        has_ = columns.has;
        return {};
    }

    std::shared_ptr<const PlainFile> file_;
    Format fresh_, ready_;  // before the header, and after it
    ColumnSet has_;
};

// The same as a stream. Packed files, which are unpacked on other threads, are parsed on others as
// well: the next pieces of whole lines while this one is used.
template <class Format>
class LineReader : public TraceReader {
 public:
    LineReader(ByteStream stream, Format format)
        : stream_(std::move(stream)),
          chunks_(LineChunks<Format>::of(stream_, format)),
          most_in_flight_(stream_.packed() ? stream_.threads() : 1),
          format_(std::move(format)) {
        columns_.has = format_.columns();
    }

    Result<AccessBatch> next() override {
        while (most_in_flight_ > 1 && format_.ready()) {
            TRY(parse_ahead());
            if (in_flight_.empty()) break;
            Piece piece = in_flight_.front().get();
            in_flight_.pop_front();
            line_ += piece.lines;
            if (!piece.wrong.empty()) return wrong_line(piece.wrong);
            columns_ = std::move(piece.columns);
            if (columns_.count() != 0) return columns_.batch();
        }
        columns_.clear();
        while (columns_.count() < kReadBatch) {
            const auto bytes = TRY(stream_.peek(kLongestLine));
            if (bytes.empty()) break;
            const char* const begin = reinterpret_cast<const char*>(bytes.data());
            const char* const end = begin + bytes.size();
            const char* at = begin;
            const std::string wrong = parse_lines(format_, at, end, end, bytes.size() < kLongestLine,
                                                  kReadBatch, line_, columns_);
            if (!wrong.empty()) return wrong_line(wrong);
            stream_.consume(static_cast<std::size_t>(at - begin));
        }
        return columns_.batch();
    }
    const AccessChunks* chunks() const override { return chunks_.get(); }
    std::uint64_t bytes_read() const override { return stream_.file_bytes_read(); }
    std::uint64_t bytes_total() const override { return stream_.file_bytes_total(); }

 private:
    static constexpr std::size_t kPiece = std::size_t{1} << 20;

    struct Piece {
        Columns columns;
        std::uint64_t lines = 0;
        std::string wrong;
    };

    // Ends with no piece in flight at the end, and where a line is longer than a piece.
    Result<void> parse_ahead() {
        while (in_flight_.size() < most_in_flight_) {
            const auto bytes = TRY(stream_.peek(kPiece));
            std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
            const bool ended = text.size() < kPiece;
            text = text.substr(0, kPiece);
            if (!ended) text = text.substr(0, text.rfind('\n') + 1);
            if (text.empty()) break;
            auto parse = [format = format_, has = columns_.has, lines = std::string(text)]() mutable {
                Piece piece;
                piece.columns.has = has;
                const char* at = lines.data();
                const char* const end = at + lines.size();
                piece.wrong = parse_lines(format, at, end, end, true, ~std::size_t{0}, piece.lines,
                                          piece.columns);
                return piece;
            };
            in_flight_.push_back(std::async(std::launch::async, std::move(parse)));
            stream_.consume(text.size());
        }
        return {};
    }
    unexpected<Error> wrong_line(const std::string& wrong) const {
        return fail(stream_.name(), fmt::format("line {}", line_), wrong);
    }

    ByteStream stream_;
    std::unique_ptr<LineChunks<Format>> chunks_;
    std::size_t most_in_flight_;  // pieces
    std::deque<std::future<Piece>> in_flight_;
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
    LineWriter(std::unique_ptr<ByteSink> sink, Line line, ColumnSet holds, std::string_view header = {})
        : sink_(std::move(sink)), line_(std::move(line)), holds_(holds), text_(header) {}
    Result<void> write(const AccessBatch& batch) override {
        for (std::size_t i = 0; i < batch.count(); ++i) {
            line_(batch.at(i), text_);
            if (text_.size() >= kLongestLine) TRY(flush());
        }
        return {};
    }
    Result<void> finish(const TraceInfo&) override {
        TRY(flush());
        return sink_->finish();
    }
    ColumnSet holds() const override { return holds_; }

 private:
    Result<void> flush() {
        auto done = sink_->write(text_);
        text_.clear();
        return done;
    }
    std::unique_ptr<ByteSink> sink_;
    Line line_;
    ColumnSet holds_;
    std::string text_;
};

}  // namespace revisit
