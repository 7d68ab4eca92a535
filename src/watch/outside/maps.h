// What a process has mapped, from /proc/PID/maps.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace revisit::watch::outside {

struct Mapping {
    std::uint64_t low = 0, high = 0, offset = 0;
    bool executable = false, writable = false;
    std::string path;  // of a file; "[stack]" and the like; empty = anonymous
    bool is_file() const { return !path.empty() && path[0] == '/'; }
    bool holds(std::uint64_t address) const { return address - low < high - low; }
};

class Maps {
 public:
    bool read(pid_t process);  // false = it is gone; what was read before stays
    const Mapping* at(std::uint64_t address) const;
    const std::vector<Mapping>& all() const { return all_; }
    // Whether brk gives memory there, also if it has grown since.
    bool is_in_heap(std::uint64_t address) const;
    // The first mapping of the file that the address is mapped from: where its headers are.
    const Mapping* file_start(std::uint64_t address) const;
    // Whether it is of a program or library: another part of the file is code. Other files are data.
    bool has_code(const Mapping& part) const;

 private:
    std::vector<Mapping> all_;  // by address
};

}  // namespace revisit::watch::outside
