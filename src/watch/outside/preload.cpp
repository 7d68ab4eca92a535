#include "watch/outside/preload.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/fsuid.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <vector>

#include "core/elf_file.h"
#include "record/process_status.h"
#include "watch/outside/remote_memory.h"

namespace revisit::watch::outside {
namespace {

#if defined(__aarch64__)
constexpr int kMachine = EM_AARCH64;
#else
constexpr int kMachine = EM_X86_64;
#endif

// Whether it is loaded by glibc's loader, for this processor. A static program loads nothing.
bool has_our_loader(pid_t process) {
    ElfFile file(fmt::format("/proc/{}/exe", process));
    if (file.header().e_ident[EI_CLASS] != ELFCLASS64 || file.header().e_machine != kMachine)
        return false;
    for (const Elf64_Phdr& part : file.segments())
        if (part.p_type == PT_INTERP)
            return file.text(part.p_offset, std::min<std::uint64_t>(part.p_filesz, 256))
                       .find("ld-musl") == std::string::npos;
    return true;
}

// As whom it opens files: the last of the four numbers.
unsigned file_owner(pid_t process, const char* field) {
    std::ifstream file(fmt::format("/proc/{}/status", process));
    for (std::string line; std::getline(file, line);) {
        if (!line.starts_with(field)) continue;
        std::istringstream numbers(line.substr(std::strlen(field)));
        unsigned one = 0, last = 0;
        while (numbers >> one) last = one;
        return last;
    }
    return geteuid();
}

// … by the rights that the process has, in the file system that it sees.
bool can_read(pid_t process, const std::string& library) {
    int group = setfsgid(file_owner(process, "Gid:"));
    int user = setfsuid(file_owner(process, "Uid:"));
    int file = open(fmt::format("/proc/{}/root{}", process, library).c_str(), O_RDONLY | O_CLOEXEC);
    setfsuid(static_cast<uid_t>(user));
    setfsgid(static_cast<gid_t>(group));
    if (file >= 0) close(file);
    return file >= 0;
}

// Where its environment lies.
std::pair<std::uint64_t, std::uint64_t> environment_of(pid_t process) {
    constexpr unsigned kFrom = 50, kTo = 51;
    record::StatFields fields(process);
    return {fields.number(kFrom), fields.number(kTo)};
}

}  // namespace

void withdraw_unloadable(pid_t process, const std::string& library) {
    constexpr std::uint64_t kMost = 8u << 20;
    if (has_our_loader(process) && can_read(process, library)) return;
    auto [from, to] = environment_of(process);
    if (from == 0 || to <= from || to - from > kMost) return;
    std::vector<char> all(to - from);
    if (!RemoteMemory::read(process, from, all.data(), all.size())) return;
    const std::string name = "LD_PRELOAD=" + library;
    for (auto at = all.begin(); at != all.end();) {
        auto end = std::find(at, all.end(), '\0');
        if (static_cast<std::size_t>(end - at) >= name.size() &&
            std::equal(name.begin(), name.end(), at)) {
            std::string colons(library.size(), ':');
            auto where =
                from + static_cast<std::uint64_t>(at - all.begin()) + name.size() - library.size();
            iovec ours{colons.data(), colons.size()},
                theirs{reinterpret_cast<void*>(where), colons.size()};
            (void)!process_vm_writev(process, &ours, 1, &theirs, 1, 0);
        }
        at = end == all.end() ? end : end + 1;
    }
}

}  // namespace revisit::watch::outside
