#include "formats/mapped_file.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "core/try.h"

namespace revisit {
namespace {

constexpr std::size_t kMostMappings = 64;
// Given back at once: less costs system calls.
constexpr std::uint64_t kWindow = std::uint64_t{2} << 20;

constexpr int kPopulateRead = 22;  // MADV_POPULATE_READ, of Linux 5.14

std::atomic<bool> allowed = false;
std::uintptr_t page_bytes = 4096;

}  // namespace

struct MappedFile::Slot {
    std::atomic<bool> taken = false;
    std::atomic<std::uintptr_t> begin = 0, end = 0;
    std::atomic<bool> lost = false;

    // In a handler: system calls and atomics only. False where this mapping has no such byte.
    bool fill(std::uintptr_t at) {
        if (at < begin || at >= end) return false;
        lost = true;
        const std::uintptr_t page = at & ~(page_bytes - 1);
        return mmap(reinterpret_cast<void*>(page), end - page, PROT_READ,
                    MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) != MAP_FAILED;
    }
};

MappedFile::Slot MappedFile::slots[kMostMappings];

void allow_mapped_files() {
    page_bytes = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    struct sigaction action {};
    action.sa_flags = SA_SIGINFO;
    action.sa_sigaction = [](int number, siginfo_t* info, void*) {
        const int error = errno;
        const auto at = reinterpret_cast<std::uintptr_t>(info->si_addr);
        bool filled = false;
        for (MappedFile::Slot& slot : MappedFile::slots) filled = filled || slot.fill(at);
        if (!filled) {  // ends the program as if nobody had taken it
            std::signal(number, SIG_DFL);
            std::raise(number);
        }
        errno = error;
    };
    if (sigaction(SIGBUS, &action, nullptr) == 0) allowed = true;
}

std::unique_ptr<MappedFile> MappedFile::of(std::shared_ptr<const PlainFile> file) {
    if (!allowed || !file || file->size() == 0) return nullptr;
    Slot* slot = nullptr;
    for (Slot& candidate : slots)
        if (!candidate.taken.exchange(true)) {
            slot = &candidate;
            break;
        }
    if (slot == nullptr) return nullptr;
    const std::uint64_t before = file->begin() % page_bytes;
    void* const mapped = mmap(nullptr, before + file->size(), PROT_READ, MAP_SHARED, file->descriptor(),
                              static_cast<off_t>(file->begin() - before));
    if (mapped == MAP_FAILED) {
        slot->taken = false;
        return nullptr;
    }
    slot->lost = false;
    slot->end = reinterpret_cast<std::uintptr_t>(mapped) + before + file->size();
    slot->begin = reinterpret_cast<std::uintptr_t>(mapped);
    const auto* bytes = static_cast<const std::uint8_t*>(mapped) + before;
    return std::unique_ptr<MappedFile>(new MappedFile(std::move(file), *slot, bytes));
}

MappedFile::~MappedFile() {
    const std::uintptr_t begin = slot_.begin, end = slot_.end;
    slot_.begin = slot_.end = 0;
    munmap(reinterpret_cast<void*>(begin), end - begin);
    slot_.taken = false;
}

void MappedFile::advise(std::uint64_t low, std::uint64_t high, int advice) const {
    const std::uintptr_t begin = slot_.begin;
    const std::uint64_t offset = reinterpret_cast<std::uintptr_t>(bytes_) - begin;
    low = (offset + low) / kWindow * kWindow;
    high = std::min<std::uint64_t>((offset + high) / kWindow * kWindow, slot_.end - begin);
    if (low < high) madvise(reinterpret_cast<void*>(begin + low), high - low, advice);
}

const std::uint8_t* MappedFile::get(std::uint64_t from, std::size_t size) const {
    // Windows that begin here. One call costs less than a fault for each 16 pages; where it fails, as
    // at the end of a shorter file, bytes are there or not when they are used.
    advise(from + kWindow - 1, from + size + kWindow - 1, kPopulateRead);
    return bytes_ + from;
}

Result<void> MappedFile::used(std::uint64_t from, std::size_t size) const {
    // The end of a page beyond the end of its file reads as zeros without a signal.
    struct stat status {};
    if (fstat(file_->descriptor(), &status) != 0 ||
        static_cast<std::uint64_t>(status.st_size) < file_->begin() + from + size)
        return file_->became_shorter(static_cast<std::uint64_t>(status.st_size));
    if (slot_.lost)
        return fail(ErrorCode::io, file_->name(), {},
                    fmt::format("cannot read: {}", std::strerror(EIO)));
    advise(from, from + size, MADV_DONTNEED);
    return {};
}

}  // namespace revisit
