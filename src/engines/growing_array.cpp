#include "engines/growing_array.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <new>

namespace revisit {
namespace {

constexpr std::size_t kHugePage = GrowingBytes::kHugePage;
constexpr std::size_t kSmallStep = std::size_t{64} << 10;

std::size_t round_up(std::size_t value, std::size_t step) {
    return (value + step - 1) / step * step;
}

// No array can outgrow the machine's memory, so that much address space is always enough.
std::size_t address_space_worth_reserving() {
    const auto pages = static_cast<std::size_t>(std::max(1L, sysconf(_SC_PHYS_PAGES)));
    const auto page = static_cast<std::size_t>(std::max(4096L, sysconf(_SC_PAGESIZE)));
    return round_up(pages * page, kHugePage);
}

}  // namespace

GrowingBytes::~GrowingBytes() {
    if (mapping_ != nullptr) munmap(mapping_, mapped_);
}

void GrowingBytes::grow(std::size_t bytes) {
    if (mapping_ == nullptr) {
        // Unreadable address space is not charged by any overcommit policy; a limit on it (ulimit -v)
        // may still refuse the wish, so ask for less until it is granted.
        std::size_t wish = address_space_worth_reserving();
        void* got = MAP_FAILED;
        for (; wish >= bytes; wish = round_up(wish / 4, kHugePage)) {
            got = mmap(nullptr, wish + kHugePage, PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
            if (got != MAP_FAILED || wish <= kHugePage) break;
        }
        if (got == MAP_FAILED) throw std::bad_alloc();
        mapping_ = got;
        mapped_ = wish + kHugePage;
        reserved_ = wish;
        data_ =
            reinterpret_cast<std::byte*>(round_up(reinterpret_cast<std::uintptr_t>(got), kHugePage));
        madvise(data_, reserved_, MADV_HUGEPAGE);  // a wish; small pages do as well
    }
    // The system hands out a huge page only where all of its range is usable when first touched. An
    // array that grows by leaps gets them at once; one that creeps only when it is so large that a huge
    // page too many does not matter.
    const std::size_t next =
        std::min(round_up(bytes, bytes < huge_from_ ? kSmallStep : kHugePage), reserved_);
    if (next < bytes || mprotect(data_, next, PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
    usable_ = next;
}

void GrowingBytes::stop_growing() {
    if (mapping_ == nullptr) return;
    std::byte* const end = static_cast<std::byte*>(mapping_) + mapped_;
    std::byte* const used = data_ + round_up(usable_, kHugePage);
    reserved_ = usable_;
    if (used >= end) return;
    munmap(used, static_cast<std::size_t>(end - used));
    mapped_ -= static_cast<std::size_t>(end - used);
}

void GrowingBytes::release(std::size_t from, std::size_t to) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    from = round_up(from, page);
    to = std::min(to, usable_) / page * page;
    if (from < to) madvise(data_ + from, to - from, MADV_DONTNEED);
}

}  // namespace revisit
