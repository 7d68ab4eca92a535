// A folder for the files of one test, removed with them.
#pragma once
#include <stdlib.h>

#include <filesystem>
#include <iterator>
#include <string>

namespace revisit::test {

class TemporaryFolder {
 public:
    TemporaryFolder() {
        char name[] = "/tmp/revisit-test-XXXXXX";
        path_ = mkdtemp(name);
    }
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;
    ~TemporaryFolder() { std::filesystem::remove_all(path_); }
    std::string operator/(const std::string& name) const { return path_ + "/" + name; }
    std::size_t files() const {
        return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(path_), {}));
    }

 private:
    std::string path_;
};

}  // namespace revisit::test
