#include "symbols/jit_code.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <fstream>

namespace revisit {
namespace {

// Enough for a large server; a file that claims more is somebody's mistake.
constexpr std::size_t kMostBytes = std::size_t{1} << 30;

bool take_hexadecimal(std::string_view& text, std::uint64_t& value) {
    while (text.starts_with(' ')) text.remove_prefix(1);
    if (text.starts_with("0x")) text.remove_prefix(2);
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
    if (error != std::errc{}) return false;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    return text.starts_with(' ');
}

std::string contents(const std::string& path) {
    std::ifstream file(path, std::ios::binary | std::ios::ate);
    if (!file || file.tellg() <= 0 || static_cast<std::uint64_t>(file.tellg()) > kMostBytes) return {};
    std::string bytes(static_cast<std::size_t>(file.tellg()), '\0');
    file.seekg(0);
    file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    bytes.resize(static_cast<std::size_t>(std::max<std::streamsize>(file.gcount(), 0)));
    return bytes;
}

// Names as the writers of perf maps put them: node has "JS:*mix /srv/app.js:12:5" (a mark for how far
// it is optimized, place of the function), python "py::mix:/srv/app.py".
Frame frame_of(std::string_view name) {
    Frame frame{std::string(name), {}, 0};
    if (name.starts_with("py::")) {
        const std::size_t colon = name.rfind(':');
        if (colon > 4)
            frame = {std::string(name.substr(4, colon - 4)), std::string(name.substr(colon + 1)), 0};
        return frame;
    }
    const std::size_t space = name.rfind(' ');
    if (!name.starts_with("JS:") || space == std::string_view::npos) return frame;
    std::string_view function = name.substr(3, space - 3), place = name.substr(space + 1);
    while (!function.empty() && std::string_view("*~^+'").find(function[0]) != std::string_view::npos)
        function.remove_prefix(1);
    const std::size_t column = place.rfind(':');
    const std::size_t line = column == std::string_view::npos ? column : place.rfind(':', column - 1);
    if (line == std::string_view::npos || line == 0) return frame;
    std::from_chars(place.data() + line + 1, place.data() + column, frame.line);
    frame.file = place.substr(0, line);
    frame.function = function.empty() ? "(anonymous)" : std::string(function);
    return frame;
}

// Takes values off the front of a record; zeros once it is at its end.
class Record {
 public:
    explicit Record(std::string_view bytes) : rest_(bytes) {}
    template <class T>
    T take() {
        T value{};
        ok_ = ok_ && rest_.size() >= sizeof value;
        if (!ok_) return value;
        std::memcpy(&value, rest_.data(), sizeof value);
        rest_.remove_prefix(sizeof value);
        return value;
    }
    std::string text() {
        const std::size_t end = rest_.find('\0');
        ok_ = ok_ && end != std::string_view::npos;
        if (!ok_) return {};
        std::string out(rest_.substr(0, end));
        rest_.remove_prefix(end + 1);
        return out;
    }
    bool ok() const { return ok_; }

 private:
    std::string_view rest_;
    bool ok_ = true;
};

}  // namespace

void JitCode::add(std::uint64_t address, std::uint64_t bytes, std::string name,
                  std::vector<Line> lines) {
    const std::uint64_t end = address + bytes;
    if (bytes == 0 || end < address || name.empty()) return;
    auto from = functions_.upper_bound(address);
    if (from != functions_.begin() && std::prev(from)->second.end > address) --from;
    while (from != functions_.end() && from->first < end) from = functions_.erase(from);
    functions_.emplace(address, Function{end, std::move(name), std::move(lines)});
}

void JitCode::read_perf_map(std::string_view text) {
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        std::string_view line = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        std::uint64_t address, bytes;
        if (!take_hexadecimal(line, address) || !take_hexadecimal(line, bytes)) continue;
        line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
        const Frame frame = frame_of(line);
        std::vector<Line> lines;
        if (!frame.file.empty()) lines.push_back({address, frame.line, frame.file});
        add(address, bytes, frame.function, std::move(lines));
    }
}

// Header: u32 magic, version, its size …; then records: u32 kind, u32 size, u64 time, contents.
void JitCode::read_jitdump(std::string_view bytes) {
    constexpr std::uint32_t kMagic = 0x4a695444, kLoad = 0, kMove = 1, kLines = 2;
    constexpr std::size_t kRecordHeader = 16;
    Record header(bytes);
    if (header.take<std::uint32_t>() != kMagic) return;
    header.take<std::uint32_t>();
    const auto header_bytes = header.take<std::uint32_t>();
    if (!header.ok() || header_bytes < 16 || header_bytes > bytes.size()) return;
    bytes.remove_prefix(header_bytes);
    std::map<std::uint64_t, std::vector<Line>> pending;  // lines come before the code that they are of
    while (bytes.size() >= kRecordHeader) {
        Record head(bytes);
        const auto kind = head.take<std::uint32_t>();
        const auto size = head.take<std::uint32_t>();
        if (size < kRecordHeader || size > bytes.size()) return;
        Record record(bytes.substr(kRecordHeader, size - kRecordHeader));
        bytes.remove_prefix(size);
        if (kind == kLoad) {
            record.take<std::uint64_t>();  // process and thread
            record.take<std::uint64_t>();
            const auto address = record.take<std::uint64_t>(), length = record.take<std::uint64_t>();
            record.take<std::uint64_t>();
            std::string name = record.text();
            if (record.ok()) add(address, length, std::move(name), std::move(pending[address]));
            pending.erase(address);
        } else if (kind == kMove) {
            record.take<std::uint64_t>();
            record.take<std::uint64_t>();
            const auto from = record.take<std::uint64_t>(), to = record.take<std::uint64_t>();
            const auto length = record.take<std::uint64_t>();
            auto found = functions_.find(from);
            if (!record.ok() || found == functions_.end()) continue;
            Function moved = std::move(found->second);
            functions_.erase(found);
            for (Line& line : moved.lines) line.address += to - from;
            add(to, length, std::move(moved.name), std::move(moved.lines));
        } else if (kind == kLines) {
            const auto address = record.take<std::uint64_t>(), count = record.take<std::uint64_t>();
            std::vector<Line> lines;
            for (std::uint64_t i = 0; i < count && record.ok(); ++i) {
                Line line{record.take<std::uint64_t>(), record.take<std::uint32_t>(), {}};
                record.take<std::uint32_t>();  // discriminator
                line.file = record.text();
                if (line.file == "\xff" && !lines.empty()) line.file = lines.back().file;
                if (record.ok()) lines.push_back(std::move(line));
            }
            std::ranges::stable_sort(lines, {}, &Line::address);
            pending[address] = std::move(lines);
        }
    }
}

JitCode JitCode::of_process(std::uint32_t pid, const std::string& jitdump) {
    JitCode code;
    // Seen as the process sees it, in a container too, while it lives.
    std::string map = contents(fmt::format("/proc/{}/root/tmp/perf-{}.map", pid, pid));
    if (map.empty()) map = contents(fmt::format("/tmp/perf-{}.map", pid));
    code.read_perf_map(map);
    if (!jitdump.empty()) {
        std::string dump = contents(fmt::format("/proc/{}/root{}", pid, jitdump));
        code.read_jitdump(dump.empty() ? contents(jitdump) : dump);
    }
    return code;
}

Frame JitCode::at(std::uint64_t address) const {
    auto after = functions_.upper_bound(address);
    if (after == functions_.begin() || address >= std::prev(after)->second.end) return {};
    const Function& function = std::prev(after)->second;
    Frame frame{function.name, {}, 0};
    auto line = std::ranges::upper_bound(function.lines, address, {}, &Line::address);
    if (line != function.lines.begin()) {
        frame.file = std::prev(line)->file;
        frame.line = std::prev(line)->number;
    }
    return frame;
}

}  // namespace revisit
