// What /proc says about a process.
#pragma once

#include <fmt/format.h>
#include <sys/types.h>

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

}  // namespace revisit::record
