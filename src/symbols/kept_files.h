// Files of a running program, kept open until their symbols are read.
//
// Symbols are read when all has ended. By then a program that was built for this run may be deleted (go
// run), and the paths of one in a container lead to other files here, or to none. While the process
// lives, its own root leads to what it has mapped.
#pragma once

#include <cstdint>
#include <string>

namespace revisit {

// Keeps the file open that this process has mapped, from `low` to `high`, under that path.
void keep_file(std::int32_t process, const std::string& path, std::uint64_t low, std::uint64_t high);

bool is_kept(const std::string& path);
// A descriptor of the file kept under that path, which is the caller's; -1 = none is.
int open_kept(const std::string& path);

}  // namespace revisit
