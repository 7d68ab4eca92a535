#include "watch/outside/maps.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>

#include "core/files.h"

namespace revisit::watch::outside {
namespace {

std::uint64_t hexadecimal(std::string_view& text) {
    std::uint64_t value = 0;
    auto end = std::from_chars(text.data(), text.data() + text.size(), value, 16).ptr;
    text.remove_prefix(std::min(text.size(), static_cast<std::size_t>(end - text.data()) + 1));
    return value;
}

}  // namespace

// "low-high rwxp offset device inode   path"
bool Maps::read(pid_t process) {
    Result<std::string> text = read_file(fmt::format("/proc/{}/maps", process));
    if (!text || text->empty()) return false;
    all_.clear();
    for (std::string_view rest = *text; !rest.empty();) {
        std::size_t end = std::min(rest.find('\n'), rest.size());
        std::string_view line = rest.substr(0, end);
        rest.remove_prefix(std::min(end + 1, rest.size()));
        Mapping one;
        one.low = hexadecimal(line);
        one.high = hexadecimal(line);
        if (line.size() < 5) continue;
        one.writable = line[1] == 'w';
        one.executable = line[2] == 'x';
        line.remove_prefix(5);
        one.offset = hexadecimal(line);
        if (std::size_t at = line.find_first_of("/["); at != std::string_view::npos)
            one.path = line.substr(at);
        all_.push_back(std::move(one));
    }
    return true;
}

const Mapping* Maps::at(std::uint64_t address) const {
    auto after = std::ranges::upper_bound(all_, address, {}, &Mapping::low);
    if (after == all_.begin() || !std::prev(after)->holds(address)) return nullptr;
    return &*std::prev(after);
}

bool Maps::is_in_heap(std::uint64_t address) const {
    constexpr std::uint64_t kMost = std::uint64_t{1} << 40;  // other mappings are further away
    auto after = std::ranges::upper_bound(all_, address, {}, &Mapping::low);
    return after != all_.begin() && std::prev(after)->path == "[heap]" &&
           address - std::prev(after)->low < kMost;
}

const Mapping* Maps::file_start(std::uint64_t address) const {
    const Mapping* here = at(address);
    if (here == nullptr || !here->is_file()) return nullptr;
    while (here > all_.data() && here->offset != 0 && (here - 1)->path == here->path) here--;
    return here->offset == 0 ? here : nullptr;
}

bool Maps::has_code(const Mapping& part) const {
    const Mapping *first = &part, *last = all_.data() + all_.size() - 1;
    while (first > all_.data() && (first - 1)->path == part.path) first--;
    for (const Mapping* one = first; one <= last && one->path == part.path; one++)
        if (one->executable) return true;
    return false;
}

}  // namespace revisit::watch::outside
