// Withdraws the heap library from programs that cannot load it.
//
// Problem. LD_PRELOAD goes to every program of the tree. One that sees other files (chroot, a
// container), that has the rights of another user, that is of 32 bits or has another C library would
// print an error, or not start at all. Idea. When the kernel has set a program up and before its first
// instruction (PTRACE_EVENT_EXEC), its environment lies on its stack. Where the library cannot be
// loaded, its name there is overwritten with colons, which every loader skips. Cost. 20 µs per exec.
#pragma once

#include <sys/types.h>

#include <string>

namespace revisit::watch::outside {

// `process` stands at its first instruction; `library` is what LD_PRELOAD begins with.
void withdraw_unloadable(pid_t process, const std::string& library);

}  // namespace revisit::watch::outside
