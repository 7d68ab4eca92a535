#include "watch/outside/attach.h"

#include <fmt/format.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>

#include "core/elf_file.h"
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

}  // namespace

std::string why_not_seized(pid_t process, int error) {
    struct stat owner;
    bool is_there = stat(fmt::format("/proc/{}", process).c_str(), &owner) == 0;
    if (error == ESRCH || !is_there) return fmt::format("no process has the number {}", process);
    if (pid_t tracer = record::status_field(process, "TracerPid:"); tracer != 0)
        return fmt::format("process {} is traced by process {}, a debugger perhaps; end that first",
                           process, tracer);
    if (record::StatFields(process).text(3) == "Z")
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
    ElfFile file(path);
    constexpr std::uint64_t kMost = 16u << 20;
    for (const Elf64_Shdr& section : file.sections())
        if (section.sh_type == SHT_STRTAB && section.sh_flags & SHF_ALLOC && section.sh_size <= kMost)
            return file.text(section.sh_offset, section.sh_size).find(std::string("\0ptrace\0", 8)) !=
                   std::string::npos;
    return false;
}

void let_go(std::set<pid_t> threads) {
    constexpr std::chrono::milliseconds kPatience{300};
    for (pid_t id : threads) ptrace(PTRACE_INTERRUPT, id, 0, 0);
    const auto until = std::chrono::steady_clock::now() + kPatience;
    while (!threads.empty() && std::chrono::steady_clock::now() < until) {
        int status = 0;
        pid_t id = waitpid(-1, &status, __WALL | WNOHANG);
        if (id <= 0) {
            if (id < 0 && errno == ECHILD) return;
            usleep(50);
            continue;
        }
        if (WIFSTOPPED(status)) ptrace(PTRACE_DETACH, id, 0, status >> 16 == 0 ? WSTOPSIG(status) : 0);
        threads.erase(id);
    }
}

void catch_interrupts() {
    interrupted = false;
    struct sigaction action{};
    action.sa_handler = [](int) { interrupted = true; };
    for (int number : {SIGINT, SIGTERM, SIGHUP}) sigaction(number, &action, nullptr);
}

bool interrupts_taken() {
    return interrupted;
}

}  // namespace revisit::watch::outside
