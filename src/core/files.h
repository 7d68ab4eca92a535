// Files: read whole, or written so that they appear whole or not at all.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "revisit/error.h"

namespace revisit {

// A result file. Written without a name, or beside its own where the file system has no such files, and
// named by commit(); dropped without one, also when the process is killed. Standard output ("-") and
// things that are not plain files (pipes, devices) are written straight.
class OutputFile {
 public:
    static Result<OutputFile> create(const std::string& path);
    OutputFile(OutputFile&& other) noexcept;
    OutputFile& operator=(OutputFile&&) = delete;
    ~OutputFile();

    Result<void> write(std::string_view bytes);
    Result<void> write(const void* data, std::size_t size) {
        return write(std::string_view(static_cast<const char*>(data), size));
    }
    Result<void> commit();

 private:
    OutputFile() = default;
    bool create_nameless();
    Result<void> give_name();
    unexpected<Error> system_error(const char* doing) const;

    std::string path_;
    std::string temporary_;  // empty: written straight
    int descriptor_ = -1;
    bool nameless_ = false;
};

// The whole of a file; "-" is standard input. Directories and unreadable files are errors.
Result<std::string> read_file(const std::string& path);
Result<void> write_file(const std::string& path, std::string_view content);

}  // namespace revisit
