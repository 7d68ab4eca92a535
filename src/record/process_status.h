// What /proc says about a process.
#pragma once

#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/types.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

namespace revisit::record {

// A number of /proc/PID/status, "PPid:" for instance; 0 = not there.
inline pid_t status_field(pid_t process, std::string_view name) {
    std::ifstream file(fmt::format("/proc/{}/status", process));
    for (std::string line; std::getline(file, line);)
        if (line.starts_with(name)) return std::atoi(line.c_str() + name.size());
    return 0;
}

// /proc/PID/stat, by the numbers that its manual gives the fields, from 3 on: the name before them may
// hold anything.
class StatFields {
 public:
    explicit StatFields(pid_t process) {
        std::ifstream file(fmt::format("/proc/{}/stat", process));
        std::getline(file, line_);
        at_ = line_.rfind(')');
    }

    // Empty where there is no such field.
    std::string_view text(unsigned field) const {
        std::size_t begin = at_;
        for (unsigned i = 2; i < field && begin != std::string::npos; i++)
            begin = line_.find(' ', begin + 1);
        if (begin == std::string::npos) return {};
        return std::string_view(line_).substr(begin + 1, line_.find(' ', begin + 1) - begin - 1);
    }
    std::uint64_t number(unsigned field) const {
        const std::string_view digits = text(field);
        return digits.empty() ? 0 : std::strtoull(digits.data(), nullptr, 10);
    }

 private:
    std::string line_;
    std::size_t at_;
};

// Which PID namespace a process is in: a number of 32 bits, 0 = not to be seen.
inline std::uint64_t pid_namespace(const std::string& process) {
    struct stat status;
    if (stat(fmt::format("/proc/{}/ns/pid", process).c_str(), &status) != 0) return 0;
    return static_cast<std::uint32_t>(status.st_ino);
}

// The process that has this number in another PID namespace, by its number here; 0 = it is gone.
inline pid_t process_in_namespace(pid_t number, std::uint64_t space) {
    std::error_code failed;
    for (const auto& entry : std::filesystem::directory_iterator("/proc", failed)) {
        const std::string name = entry.path().filename();
        if (name.find_first_not_of("0123456789") != std::string::npos) continue;
        std::ifstream file(entry.path() / "status");
        for (std::string line; std::getline(file, line);)
            // Its numbers from this namespace to the innermost.
            if (line.starts_with("NSpid:")) {
                if (std::atoi(line.c_str() + line.rfind('\t') + 1) == number &&
                    pid_namespace(name) == space)
                    return std::atoi(name.c_str());
                break;
            }
    }
    return 0;
}

}  // namespace revisit::record
