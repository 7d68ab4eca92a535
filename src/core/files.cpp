#include "core/files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "core/try.h"

namespace revisit {
namespace {

constexpr std::size_t kLongestKept = 200;  // of a file's name, which has at most 255 bytes

std::string folder_of(const std::string& path) {
    const std::size_t slash = path.rfind('/');
    return slash == std::string::npos ? "./" : path.substr(0, slash + 1);
}

std::string temporary_name(const std::string& path) {
    const std::size_t slash = path.rfind('/');
    const std::size_t name = slash == std::string::npos ? 0 : slash + 1;
    return fmt::format("{}.partial-{}", path.substr(0, name + kLongestKept), getpid());
}

std::string handle_of(int descriptor) {
    return fmt::format("/proc/self/fd/{}", descriptor);
}

}  // namespace

Result<OutputFile> OutputFile::create(const std::string& path) {
    OutputFile file;
    file.path_ = path;
    if (path == "-") {
        file.descriptor_ = dup(STDOUT_FILENO);
        if (file.descriptor_ < 0) return file.system_error("cannot write to standard output");
        return file;
    }
    struct stat status{};
    const bool exists = stat(path.c_str(), &status) == 0;
    if (!exists && errno != ENOENT) return file.system_error("cannot create");
    if (exists && !S_ISREG(status.st_mode)) {
        file.descriptor_ = open(path.c_str(), O_WRONLY | O_CLOEXEC);
    } else if (!file.create_nameless()) {
        file.temporary_ = temporary_name(path);
        file.descriptor_ =
            open(file.temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    }
    if (file.descriptor_ < 0) {
        file.temporary_.clear();
        return file.system_error("cannot create");
    }
    return file;
}

// Where it can be named afterwards.
bool OutputFile::create_nameless() {
#ifdef O_TMPFILE
    descriptor_ = open(folder_of(path_).c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
    nameless_ = descriptor_ >= 0 && access(handle_of(descriptor_).c_str(), F_OK) == 0;
    if (descriptor_ >= 0 && !nameless_) close(std::exchange(descriptor_, -1));
#endif
    return nameless_;
}

Result<void> OutputFile::give_name() {
    temporary_ = temporary_name(path_);
    unlink(temporary_.c_str());
    if (linkat(AT_FDCWD, handle_of(descriptor_).c_str(), AT_FDCWD, temporary_.c_str(),
               AT_SYMLINK_FOLLOW) == 0)
        return {};
    temporary_.clear();
    return system_error("cannot create");
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::exchange(other.temporary_, {})),
      descriptor_(std::exchange(other.descriptor_, -1)),
      nameless_(std::exchange(other.nameless_, false)) {}

OutputFile::~OutputFile() {
    if (descriptor_ >= 0) close(descriptor_);
    if (!temporary_.empty()) unlink(temporary_.c_str());
}

Result<void> OutputFile::write(std::string_view bytes) {
    while (!bytes.empty()) {
        ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) return system_error("cannot write");
        bytes.remove_prefix(static_cast<std::size_t>(written));
    }
    return {};
}

Result<void> OutputFile::commit() {
    if (nameless_) TRY(give_name());
    // A full disk or a quota may only show at close.
    if (close(std::exchange(descriptor_, -1)) != 0) return system_error("cannot write");
    if (temporary_.empty()) return {};
    if (rename(temporary_.c_str(), path_.c_str()) != 0) return system_error("cannot create");
    temporary_.clear();
    return {};
}

unexpected<Error> OutputFile::system_error(const char* doing) const {
    return fail(path_ == "-" ? "standard output" : path_, {},
                fmt::format("{}: {}", doing, std::strerror(errno)));
}

Result<std::string> read_file(const std::string& path) {
    std::string name = path == "-" ? "standard input" : path;
    int descriptor = path == "-" ? dup(STDIN_FILENO) : open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) return fail(name, {}, fmt::format("cannot open: {}", std::strerror(errno)));
    std::string content;
    char buffer[1 << 16];
    for (;;) {
        ssize_t count = read(descriptor, buffer, sizeof buffer);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) {
            int code = errno;
            close(descriptor);
            return fail(name, {}, fmt::format("cannot read: {}", std::strerror(code)));
        }
        if (count == 0) break;
        content.append(buffer, static_cast<std::size_t>(count));
    }
    close(descriptor);
    return content;
}

Result<void> write_file(const std::string& path, std::string_view content) {
    auto file = TRY(OutputFile::create(path));
    TRY(file.write(content));
    return file.commit();
}

}  // namespace revisit
