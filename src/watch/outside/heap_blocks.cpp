#include "watch/outside/heap_blocks.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "core/elf_file.h"
#include "watch/outside/remote_memory.h"

namespace revisit::watch::outside {
namespace {

// Where the library has its table, from the beginning of the file as it is mapped; 0 = it has none.
std::uint64_t table_offset(const std::string& path) {
    ElfFile file(path);
    const std::string_view wanted = HeapTable::kSymbol;
    const std::vector<Elf64_Shdr> sections = file.sections();
    for (const Elf64_Shdr& section : sections) {
        if (section.sh_type != SHT_DYNSYM || section.sh_link >= sections.size()) continue;
        for (std::uint64_t at = 0; at + sizeof(Elf64_Sym) <= section.sh_size; at += sizeof(Elf64_Sym)) {
            Elf64_Sym symbol;
            if (file.read(section.sh_offset + at, &symbol, sizeof symbol) != sizeof symbol) return 0;
            if (symbol.st_size >= sizeof(HeapSpace) &&
                file.text(sections[section.sh_link].sh_offset + symbol.st_name, wanted.size()) ==
                    wanted)
                return symbol.st_value;
        }
    }
    return 0;
}

}  // namespace

void HeapBlocks::find_table(const Maps& maps) {
    constexpr std::string_view kName = "/librevisit-heap.so";
    static std::map<std::string, std::uint64_t> offsets;
    at_ = 0;
    code_low_ = code_high_ = 0;
    for (const Mapping& one : maps.all()) {
        if (!one.path.ends_with(kName)) continue;
        if (one.executable) {
            code_low_ = one.low;
            code_high_ = one.high;
        }
        if (one.offset != 0 || at_ != 0) continue;
        auto [found, is_new] = offsets.try_emplace(one.path, 0);
        if (is_new) found->second = table_offset(one.path);
        if (found->second != 0) at_ = one.low + found->second;
    }
}

bool HeapBlocks::read(pid_t process) {
    std::uint64_t noted = 0;
    if (!RemoteMemory::read(process, at_ + offsetof(HeapTable, noted), &noted, sizeof noted))
        return false;
    if (copy_ != nullptr && copy_->noted == noted) return false;
    if (copy_ == nullptr) copy_ = std::make_unique<HeapTable>();
    if (!RemoteMemory::read(process, at_, copy_.get(), sizeof *copy_)) {
        copy_.reset();
        return false;
    }
    copy_->noted = noted;  // what was noted while it was copied may be in it in part
    return true;
}

int HeapBlocks::entry_of(std::uint64_t address) const {
    if (copy_ == nullptr) return -1;
    for (unsigned group = 0; group < HeapTable::kGroups; group += 8) {
        std::uint64_t eight;
        std::memcpy(&eight, copy_->used + group, 8);
        for (; eight != 0; eight &= eight - 1) {
            unsigned i = group * HeapTable::kWays + static_cast<unsigned>(__builtin_ctzll(eight));
            if (copy_->low[i] != 0 && address >= copy_->low[i] && address < copy_->high[i])
                return static_cast<int>(i);
        }
    }
    return -1;
}

bool HeapBlocks::is_still(pid_t process, unsigned entry) const {
    std::uint64_t now[3] = {};
    iovec here{now, sizeof now};
    auto of = [&](std::size_t list) {
        return iovec{reinterpret_cast<void*>(at_ + list + entry * sizeof(std::uint64_t)), 8};
    };
    iovec there[3] = {of(offsetof(HeapTable, low)), of(offsetof(HeapTable, high)),
                      of(offsetof(HeapTable, where))};
    return process_vm_readv(process, &here, 1, there, 3, 0) == sizeof now &&
           now[0] == copy_->low[entry] && now[1] == copy_->high[entry] && now[2] == copy_->where[entry];
}

HeapBlock HeapBlocks::find(pid_t process, std::uint64_t address) {
    if (at_ == 0) return {};
    int entry = entry_of(address);
    bool is_good = entry >= 0 && is_still(process, static_cast<unsigned>(entry));
    if (!is_good) {
        if (!read(process)) return {};
        entry = entry_of(address);
        if (entry < 0) return {};
    }
    auto i = static_cast<unsigned>(entry);
    return {copy_->low[i], copy_->high[i], copy_->where[i]};
}

std::uint64_t HeapBlocks::find_small(pid_t process, std::uint64_t address) const {
    constexpr unsigned kNear = 8;  // pages
    if (at_ == 0) return 0;
    const std::uint64_t number = address >> HeapPages::kShift;
    const unsigned entry = HeapPages::entry_of(number), first = entry - std::min(entry, kNear),
                   last = std::min(entry + kNear, HeapPages::kPages - 1);
    HeapPages::Page near[2 * kNear + 1];
    if (!RemoteMemory::read(process, at_ + offsetof(HeapSpace, small) + first * sizeof(HeapPages::Page),
                            near, (last - first + 1) * sizeof(HeapPages::Page)))
        return 0;
    std::uint64_t where = 0;
    unsigned least = kNear + 1;
    for (unsigned i = first; i <= last; i++) {
        const HeapPages::Page& page = near[i - first];
        const unsigned away = i > entry ? i - entry : entry - i;
        if (away >= least || page.number != number - entry + i) continue;
        least = away;
        where = page.where;
    }
    return where;
}

}  // namespace revisit::watch::outside
