#include "symbols/go_table.h"

#include <algorithm>

namespace revisit {
namespace {

constexpr std::uint64_t kGo118 = 0xfffffff0, kGo120 = 0xfffffff1;
constexpr std::uint64_t kHeader = 8, kWord = 8;  // bytes
// In a function's description: where its name, its files, its lines and its unit are.
constexpr std::uint64_t kName = 4, kFiles = 20, kLines = 24, kUnit = 32;
constexpr std::uint64_t kEntryBytes = 8;  // of the list of functions: begin and description

}  // namespace

GoTable::GoTable(std::span<const std::uint8_t> section, std::uint64_t text) : section_(section) {
    const std::uint64_t magic = number(0, 4);
    smallest_ = number(6, 1);
    if ((magic != kGo118 && magic != kGo120) || smallest_ == 0 || number(7, 1) != kWord) return;
    auto word = [&](std::uint64_t index) { return number(kHeader + index * kWord, kWord); };
    text_ = word(2) != 0 ? word(2) : text;  // 0 where the loader puts it in
    names_ = word(3);
    units_ = word(4);
    files_ = word(5);
    deltas_ = word(6);
    functions_ = word(7);
    if (functions_ < section_.size())
        count_ = std::min(word(0), (section_.size() - functions_) / kEntryBytes);
}

std::uint64_t GoTable::number(std::uint64_t at, unsigned bytes) const {
    std::uint64_t value = 0;
    if (at > section_.size() || bytes > section_.size() - at) return 0;
    for (unsigned i = bytes; i > 0; i--) value = value << 8 | section_[at + i - 1];
    return value;
}

std::string_view GoTable::text(std::uint64_t at) const {
    if (at >= section_.size()) return {};
    auto from = section_.begin() + static_cast<std::ptrdiff_t>(at);
    auto end = std::find(from, section_.end(), 0);
    if (end == section_.end()) return {};
    return {reinterpret_cast<const char*>(&*from), static_cast<std::size_t>(end - from)};
}

// The one after the last has the end of the last.
std::uint64_t GoTable::entry(std::uint64_t index) const {
    return text_ + number(functions_ + index * kEntryBytes, 4);
}

std::vector<FunctionSymbol> GoTable::functions() const {
    std::vector<FunctionSymbol> found;
    for (std::uint64_t i = 0; i < count_; i++) {
        const std::uint64_t start = entry(i), end = entry(i + 1);
        const std::uint64_t about = functions_ + number(functions_ + i * kEntryBytes + 4, 4);
        const std::string_view name = text(names_ + number(about + kName, 4));
        if (!name.empty() && end > start) found.push_back({start, end - start, end, 2, name.data()});
    }
    return found;
}

// Pairs of numbers, 7 bits to a byte: how the value changes, its sign in the lowest bit, and for how
// many instructions it holds.
std::int64_t GoTable::value_at(std::uint64_t deltas, std::uint64_t from, std::uint64_t address) const {
    std::uint64_t at = deltas_ + deltas;
    auto next = [&] {
        std::uint64_t value = 0;
        for (unsigned shift = 0; shift < 35 && at < section_.size(); shift += 7) {
            const std::uint8_t byte = section_[at++];
            value |= std::uint64_t{byte & 0x7fu} << shift;
            if (byte < 0x80) break;
        }
        return value;
    };
    std::int64_t value = -1;
    for (std::uint64_t pc = from; at < section_.size();) {
        const std::uint64_t change = next();
        if (change == 0 && pc != from) break;
        const auto size = static_cast<std::int64_t>(change >> 1);
        value += change & 1 ? -size - 1 : size;
        pc += next() * smallest_;
        if (address < pc) return value;
    }
    return -1;
}

GoTable::Line GoTable::line_at(std::uint64_t address) const {
    std::uint64_t low = 0, high = count_;
    while (low < high) {
        const std::uint64_t middle = (low + high) / 2;
        if (entry(middle) <= address)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0 || address >= entry(low)) return {};
    const std::uint64_t start = entry(low - 1);
    const std::uint64_t about = functions_ + number(functions_ + (low - 1) * kEntryBytes + 4, 4);
    const std::int64_t file = value_at(number(about + kFiles, 4), start, address);
    const std::int64_t line = value_at(number(about + kLines, 4), start, address);
    if (file < 0 || line <= 0) return {};
    const std::uint64_t name =
        number(units_ + 4 * (number(about + kUnit, 4) + static_cast<std::uint64_t>(file)), 4);
    return {text(files_ + name), static_cast<std::uint32_t>(line)};
}

}  // namespace revisit
