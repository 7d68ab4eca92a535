#include "watch/outside/attach.h"

#include <elf.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <vector>

#include "record/process_status.h"

namespace revisit::watch::outside {
namespace {

std::atomic<bool> interrupted{false};

int number_in(const char* path) {
    std::ifstream file(path);
    int number = 0;
    file >> number;
    return number;
}

bool first_thread_has_ended(pid_t process) {
    std::ifstream file(fmt::format("/proc/{}/status", process));
    for (std::string line; std::getline(file, line);)
        if (line.starts_with("State:")) return line.find('Z') != std::string::npos;
    return false;
}

}  // namespace

std::string why_not_seized(pid_t process, int error) {
    struct stat owner;
    bool is_there = stat(fmt::format("/proc/{}", process).c_str(), &owner) == 0;
    if (error == ESRCH || !is_there) return fmt::format("no process has the number {}", process);
    if (pid_t tracer = record::status_field(process, "TracerPid:"); tracer != 0)
        return fmt::format("process {} is traced by process {}, a debugger perhaps; end that first",
                           process, tracer);
    if (first_thread_has_ended(process))
        return fmt::format(
            "the first thread of process {} has ended, and it cannot be attached to any more; start "
            "the "
            "program with revisit profile",
            process);
    std::string again = fmt::format("sudo revisit profile --pid {}", process);
    if (geteuid() != 0 && owner.st_uid != geteuid())
        return fmt::format("process {} belongs to another user: {}", process, again);
    int scope = number_in("/proc/sys/kernel/yama/ptrace_scope");
    if (scope >= 3) return "attaching is switched off on this machine (kernel.yama.ptrace_scope is 3)";
    if (scope >= 1 && geteuid() != 0)
        return fmt::format(
            "attaching is not permitted (kernel.yama.ptrace_scope is {}): {}, or "
            "sudo sysctl kernel.yama.ptrace_scope=0",
            scope, again);
    return fmt::format(
        "ptrace is not permitted here ({}): a container needs --cap-add SYS_PTRACE, and a process that "
        "is not dumpable needs root",
        std::strerror(error));
}

// By its table of dynamic symbols; a static debugger goes unnoticed.
bool imports_ptrace(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    Elf64_Ehdr header{};
    file.read(reinterpret_cast<char*>(&header), sizeof header);
    if (!file || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
        header.e_shentsize != sizeof(Elf64_Shdr))
        return false;
    constexpr std::uint64_t kMost = 16u << 20;
    for (unsigned i = 0; i < header.e_shnum; i++) {
        Elf64_Shdr section{};
        file.seekg(static_cast<std::streamoff>(header.e_shoff + i * sizeof section));
        file.read(reinterpret_cast<char*>(&section), sizeof section);
        if (!file || section.sh_type != SHT_STRTAB || !(section.sh_flags & SHF_ALLOC) ||
            section.sh_size > kMost)
            continue;
        std::string names(section.sh_size, '\0');
        file.seekg(static_cast<std::streamoff>(section.sh_offset));
        file.read(names.data(), static_cast<std::streamsize>(names.size()));
        return names.find(std::string("\0ptrace\0", 8)) != std::string::npos;
    }
    return false;
}

void catch_interrupts() {
    interrupted = false;
    struct sigaction action {};
    action.sa_handler = [](int) { interrupted = true; };
    for (int number : {SIGINT, SIGTERM, SIGHUP}) sigaction(number, &action, nullptr);
}

bool interrupts_taken() {
    return interrupted;
}

}  // namespace revisit::watch::outside
