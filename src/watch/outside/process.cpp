#include "watch/outside/process.h"

#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>

#include "symbols/contexts.h"
#include "watch/outside/attach.h"
#include "watch/outside/remote_memory.h"

namespace revisit::watch::outside {

Program* program_at(const std::string& path, std::vector<std::unique_ptr<Program>>& known) {
    for (const auto& one : known)
        if (one->path == path) return one.get();
    known.push_back(std::make_unique<Program>());
    known.back()->path = path;
    known.back()->traces_others = imports_ptrace(path);
    return known.back().get();
}

std::vector<std::string> command_of(pid_t process) {
    std::ifstream file(fmt::format("/proc/{}/cmdline", process), std::ios::binary);
    std::vector<std::string> words;
    for (std::string word; std::getline(file, word, '\0');) words.push_back(word);
    return words;
}

bool is_running(pid_t process, pid_t thread) {
    char text[16] = {};
    int file =
        open(fmt::format("/proc/{}/task/{}/syscall", process, thread).c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) return true;
    ssize_t got = read(file, text, sizeof text - 1);
    close(file);
    return got < 7 || std::memcmp(text, "running", 7) == 0;
}

std::unique_ptr<Process> Process::summary(Program* copy) const {
    auto out = std::make_unique<Process>();
    out->pid = pid;
    out->parent = parent;
    out->command = command;
    out->program = copy;
    out->threads = threads;
    out->time = time;
    return out;
}

std::unique_ptr<Process> Process::make_child(pid_t number) const {
    auto out = std::make_unique<Process>();
    out->pid = number;
    out->parent = pid;
    out->command = command;
    out->program = program;
    return out;
}

void Process::was_resident(std::uint64_t bytes) {
    std::uint64_t& known = program->samples.touchable.resident;
    if (known != 0 && !has_children) known = std::max(known, bytes);
}

void Process::stands(pid_t thread, std::uint64_t pc) {
    std::uint32_t code = 0;
    if (thread != shown_by() && !RemoteMemory::read(shown_by(), pc, &code, sizeof code))
        shown_by_ = thread;
}

bool Process::know_code(std::uint64_t pc) {
    auto is_known = [&] {
        const Mapping* here = maps_.at(pc);
        return here != nullptr && here->executable;
    };
    if (!maps_changed_) {
        if (is_known()) return false;
        if (code_wait_ > 0) {
            code_wait_--;
            return false;
        }
    }
    maps_changed_ = false;
    if (!maps_.read(shown_by())) return false;
    known_.clear();
    unwind_tables_.clear();
    if (kept) kept->modules_changed();
    heap_.find_table(maps_);
    for (const Mapping& one : maps_.all())
        if (one.path.find("/jit-") != std::string::npos && one.path.ends_with(".dump"))
            program->places.describes_its_code(static_cast<std::uint32_t>(pid), one.path);
    if (!is_known()) {
        code_patience_ = std::min<std::uint32_t>(4096, 2 * code_patience_ + 1);
        code_wait_ = code_patience_;
    }
    return true;
}

std::uint32_t Process::place(std::uint64_t address) {
    auto [found, is_new] = known_.try_emplace(address, 0);
    if (is_new)
        found->second =
            program->places.place(maps_.at(address), address, static_cast<std::uint32_t>(pid));
    return found->second;
}

std::uint32_t Process::call_place(std::uint64_t back) {
    return place(back > kCallBytes ? back - kCallBytes : back);
}

std::uint32_t Process::label(const Path& path, std::uint64_t pc, const DataTouched& data) {
    std::vector<std::uint32_t> calls;
    for (unsigned i = path.count; i > 0; i--) calls.push_back(call_place(path.back[i - 1]));
    std::uint32_t link = path.link > kCallBytes ? call_place(path.link) : kNowhere;
    return program->places.label(place(pc), program->places.stack(calls, link), data);
}

DataTouched Process::data_at(std::uint64_t address, std::uint64_t stack_pointer) {
    using Kind = DataTouched::Kind;
    constexpr std::uint64_t kBelow = 1u << 20;  // frames of functions called since
    if (HeapBlock block = heap_.find(shown_by(), address); block.low != 0)
        return {block.where & HeapTable::kMapped ? Kind::mapped : Kind::heap,
                call_place(block.where & ~HeapTable::kMapped), block.high - block.low, block.low,
                address - block.low};
    const Mapping* here = maps_.at(address);
    // Where the C library has its blocks: behind the program's data, and in arenas of threads.
    constexpr std::uint64_t kArena = std::uint64_t{64} << 20;
    bool is_arena = here != nullptr && here->path.empty() && here->low % kArena == 0;
    if (heap_.is_there() && (is_arena || maps_.is_in_heap(address))) {
        const std::uint64_t where = heap_.find_small(shown_by(), address);
        return where == 0 ? DataTouched{Kind::small, 0, 0, 0, 0}
                          : DataTouched{Kind::small, call_place(where), 1, 0, 0};
    }
    if (here == nullptr) {
        if (data_wait_ == 0) {
            maps_changed_ = true;
            data_wait_ = data_patience_ = std::min<std::uint32_t>(4096, 2 * data_patience_ + 1);
        } else
            data_wait_--;
        return {};
    }
    if (here->holds(stack_pointer) && address + kBelow >= stack_pointer && !here->is_file())
        return {Kind::stack, 0, 0};
    if (here->is_file() && !maps_.has_code(*here))
        return {Kind::file, 0, program->places.data_file(*here)};
    // What a program's data has beyond its file lies behind it.
    const Mapping* file = here;
    if (!file->is_file() && file > maps_.all().data() && (file - 1)->high == file->low) file--;
    const Mapping* start = maps_.file_start(file->low);
    if (start == nullptr) return {};
    return {Kind::global, (address - start->low) & ~std::uint64_t{3},
            program->places.file(*start, static_cast<std::uint32_t>(pid))};
}

// It is a program header of the file, whose headers are mapped with its beginning.
std::uint64_t Process::find_unwind_table(std::uint64_t pc) {
    const Mapping* start = maps_.file_start(pc);
    if (start == nullptr) return 0;
    auto [found, is_new] = unwind_tables_.try_emplace(start->low, 0);
    if (!is_new) return found->second;
    Elf64_Ehdr header;
    if (!RemoteMemory::read(shown_by(), start->low, &header, sizeof header) ||
        header.e_phentsize != sizeof(Elf64_Phdr))
        return 0;
    std::uint64_t first = ~std::uint64_t{0}, table = 0;
    for (unsigned i = 0; i < header.e_phnum; i++) {
        Elf64_Phdr part;
        if (!RemoteMemory::read(shown_by(), start->low + header.e_phoff + i * sizeof part, &part,
                                sizeof part))
            return 0;
        if (part.p_type == PT_LOAD)
            first = std::min<std::uint64_t>(first, part.p_vaddr - part.p_offset);
        if (part.p_type == PT_GNU_EH_FRAME) table = part.p_vaddr;
    }
    if (table != 0) found->second = start->low + table - first;
    return found->second;
}

}  // namespace revisit::watch::outside
