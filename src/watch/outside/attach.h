// Attaching to a process: whether that is permitted, and what ends it.
#pragma once

#include <sys/types.h>

#include <set>
#include <string>

namespace revisit::watch::outside {

// Why PTRACE_SEIZE failed with that error, and what helps.
std::string why_not_seized(pid_t process, int error);

// Whether an executable may trace others, as debuggers do: it imports ptrace.
bool imports_ptrace(const std::string& path);

// These threads go on untraced from where they stand; one that does not stop soon does when we end.
void let_go(std::set<pid_t> threads);

// From now on Ctrl-C and SIGTERM end the profile, not this process.
void catch_interrupts();
bool interrupts_taken();

}  // namespace revisit::watch::outside
