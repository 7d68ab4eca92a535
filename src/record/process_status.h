// What /proc says about a process.
#pragma once

#include <fmt/format.h>
#include <sys/types.h>

#include <cstdint>
#include <cstdlib>
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

}  // namespace revisit::record
