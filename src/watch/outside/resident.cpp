#include "watch/outside/resident.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "watch/outside/maps.h"

namespace revisit::watch::outside {
namespace {

bool is_anonymous(const Mapping& one) {
    return one.writable && (one.path.empty() || one.path == "[heap]");
}
bool is_code(const Mapping& one) {
    return one.executable && one.is_file();
}

class PageTable {
 public:
    explicit PageTable(pid_t process)
        : file_(open(fmt::format("/proc/{}/pagemap", process).c_str(), O_RDONLY | O_CLOEXEC)) {}
    ~PageTable() {
        if (file_ >= 0) close(file_);
    }
    PageTable(const PageTable&) = delete;
    PageTable& operator=(const PageTable&) = delete;

    // Of these mappings, in bytes.
    template <class Of>
    std::uint64_t present(const Maps& maps, Of of) {
        constexpr std::uint64_t kMostPages = 131072;
        std::uint64_t pages = 0;
        for (const Mapping& one : maps.all())
            if (of(one)) pages += (one.high - one.low) / page_;
        // Every so many chunks, counted over all mappings.
        const std::uint64_t every = std::max<std::uint64_t>(1, (pages + kMostPages - 1) / kMostPages);
        std::uint64_t looked_at = 0, found = 0, chunk = 0;
        for (const Mapping& one : maps.all()) {
            if (!of(one)) continue;
            for (std::uint64_t at = one.low / page_; at < one.high / page_; at += kChunk) {
                if (chunk++ % every != 0) continue;
                std::uint64_t got = read(at, std::min(kChunk, one.high / page_ - at));
                looked_at += got;
                found += static_cast<std::uint64_t>(
                    std::count_if(entries_.begin(), entries_.begin() + static_cast<std::ptrdiff_t>(got),
                                  [](std::uint64_t entry) { return (entry & kPresent) != 0; }));
            }
        }
        if (looked_at == 0) return 0;
        return static_cast<std::uint64_t>(static_cast<double>(found) * static_cast<double>(pages) /
                                          static_cast<double>(looked_at)) *
               page_;
    }

 private:
    static constexpr std::uint64_t kChunk = 512, kPresent = std::uint64_t{1} << 63;

    std::uint64_t read(std::uint64_t first, std::uint64_t count) {
        ssize_t got = pread(file_, entries_.data(), count * sizeof entries_[0],
                            static_cast<off_t>(first * sizeof entries_[0]));
        return got > 0 ? static_cast<std::uint64_t>(got) / sizeof entries_[0] : 0;
    }

    int file_;
    std::uint64_t page_ = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
    std::vector<std::uint64_t> entries_ = std::vector<std::uint64_t>(kChunk);
};

}  // namespace

Resident resident(pid_t process) {
    Resident out;
    std::ifstream status(fmt::format("/proc/{}/status", process));
    auto bytes = [](const std::string& line) {
        return 1024 * std::strtoull(line.c_str() + line.find(':') + 1, nullptr, 10);
    };
    for (std::string line; std::getline(status, line);)
        if (line.starts_with("VmHWM:"))
            out.peak = bytes(line);
        else if (line.starts_with("RssAnon:"))
            out.anonymous = bytes(line);
    return out;
}

Present present(pid_t process) {
    Maps maps;
    PageTable table(process);
    if (!maps.read(process)) return {};
    return {table.present(maps, is_anonymous), table.present(maps, is_code)};
}

void note_touchable(pid_t process, bool with_page_table, Touchable& touchable) {
    const Resident now = resident(process);
    if (now.peak == 0) return;  // it has ended
    touchable.resident = std::max(touchable.resident, now.peak);
    if (!with_page_table) return;
    const Present found = present(process);
    if (found.anonymous > now.anonymous)
        touchable.only_read = std::max(touchable.only_read, found.anonymous - now.anonymous);
    if (found.code != 0) touchable.code = found.code;
}

}  // namespace revisit::watch::outside
