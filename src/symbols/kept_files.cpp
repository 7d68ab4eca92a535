#include "symbols/kept_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <mutex>
#include <unordered_map>

namespace revisit {
namespace {

constexpr std::size_t kMost = 256;  // events of threads need descriptors too

std::mutex guard;
std::unordered_map<std::string, int> kept;

// To open a device may do something.
int open_regular(const std::string& path) {
    struct stat status {};
    if (stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return -1;
    return open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
}

}  // namespace

void keep_file(std::int32_t process, const std::string& path, std::uint64_t low, std::uint64_t high) {
    const std::scoped_lock lock(guard);
    if (kept.size() >= kMost || kept.contains(path)) return;
    int file = open_regular(fmt::format("/proc/{}/root{}", process, path));
    // It is deleted already; this takes root's rights.
    if (file < 0) file = open_regular(fmt::format("/proc/{}/map_files/{:x}-{:x}", process, low, high));
    if (file >= 0) kept[path] = file;
}

bool is_kept(const std::string& path) {
    const std::scoped_lock lock(guard);
    return kept.contains(path);
}

int open_kept(const std::string& path) {
    const std::scoped_lock lock(guard);
    auto found = kept.find(path);
    return found == kept.end() ? -1 : fcntl(found->second, F_DUPFD_CLOEXEC, 0);
}

}  // namespace revisit
