#include "engines/growing_array.h"

#include <sys/mman.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <new>
#include <vector>

namespace revisit {
namespace {

constexpr std::size_t kHugePage = GrowingBytes::kHugePage;
constexpr std::size_t kSmallStep = std::size_t{64} << 10;

std::size_t round_up(std::size_t value, std::size_t step) {
    return (value + step - 1) / step * step;
}

// No array can outgrow the machine's memory, so that much address space is always enough.
std::size_t address_space_worth_reserving() {
    static const std::size_t worth = [] {
        const auto pages = static_cast<std::size_t>(std::max(1L, sysconf(_SC_PHYS_PAGES)));
        const auto page = static_cast<std::size_t>(std::max(4096L, sysconf(_SC_PAGESIZE)));
        return round_up(pages * page, kHugePage);
    }();
    return worth;
}

bool has_swap() {
    struct sysinfo now{};
    return sysinfo(&now) != 0 || now.totalswap > 0;
}

// Whole pages. Counters for every distance are written to here and there: pages that are not there yet
// read as zero, and are left so. A page that was swapped out is not there either, and is given up.
void clear(std::byte* from, std::size_t bytes) {
    static const auto page = static_cast<std::size_t>(std::max(4096L, sysconf(_SC_PAGESIZE)));
    constexpr std::size_t kAtOnce = 256;
    const bool swaps = has_swap();
    for (std::size_t at = 0; at < bytes; at += kAtOnce * page) {
        unsigned char is_there[kAtOnce];
        const std::size_t many = std::min(kAtOnce * page, bytes - at);
        if (many <= page || mincore(from + at, many, is_there) != 0) {
            std::memset(from + at, 0, many);
            continue;
        }
        for (std::size_t i = 0; i * page < many; ++i) {
            std::byte* const here = from + at + i * page;
            const std::size_t length = std::min(page, many - i * page);
            if (is_there[i] & 1 || (swaps && madvise(here, length, MADV_DONTNEED) != 0))
                std::memset(here, 0, length);
        }
    }
}

}  // namespace

// Mappings of arrays that are gone, as they were. What they take is bounded, in bytes and in address
// space, and so is the time that it takes to find one.
struct GrowingBytes::Spares {
    static constexpr std::size_t kMost = 96, kMostBytes = std::size_t{12} << 20;
    static constexpr std::size_t kLargest = std::size_t{2} << 20;

    Spares() { arrays.reserve(kMost); }

    std::mutex guard;
    std::vector<GrowingBytes> arrays;
    std::size_t bytes = 0;
    std::atomic<std::size_t> reserved = 0;  // address space of all arrays

    // Mappings are handed out from the top of the address space down, so an address tells its size. An
    // eighth of it is not missed, unless there is a limit: then an array has less than it wished for.
    bool has_address_space_for(const GrowingBytes& array) const {
        return array.reserved_ == address_space_worth_reserving() &&
               reserved < reinterpret_cast<std::uintptr_t>(array.mapping_) / 8;
    }
};

GrowingBytes::Spares& GrowingBytes::spares() {
    static Spares& all = *new Spares;  // arrays may outlive other statics
    return all;
}

GrowingBytes::~GrowingBytes() {
    if (mapping_ == nullptr) return;
    Spares& all = spares();
    const std::size_t bytes = std::max(usable_, written_);
    if (bytes <= Spares::kLargest && all.has_address_space_for(*this)) {
        std::lock_guard lock(all.guard);
        if (all.arrays.size() < Spares::kMost && all.bytes + bytes <= Spares::kMostBytes) {
            all.bytes += bytes;
            written_ = bytes;
            usable_ = 0;
            all.arrays.push_back(std::move(*this));
            return;
        }
    }
    all.reserved -= mapped_;
    munmap(mapping_, mapped_);
}

void GrowingBytes::drop_spares() {
    Spares& all = spares();
    std::vector<GrowingBytes> dropped;
    {
        std::lock_guard lock(all.guard);
        std::swap(dropped, all.arrays);
        all.bytes = 0;
    }
    for (GrowingBytes& one : dropped) {
        all.reserved -= one.mapped_;
        munmap(one.mapping_, one.mapped_);
        one.mapping_ = nullptr;
    }
}

void GrowingBytes::reserve(std::size_t bytes) {
    Spares& all = spares();
    {
        // One that creeps may become large; others say at once how large they are. Each goes on with
        // what its like had: a small array that creeps would keep the memory of a large one.
        const bool creeps = huge_from_ <= kHugePage;
        std::lock_guard lock(all.guard);
        auto best = all.arrays.end();
        for (auto one = all.arrays.begin(); one != all.arrays.end(); ++one) {
            if ((one->huge_from_ <= kHugePage) != creeps) continue;
            const bool fits = one->written_ >= bytes;
            if (best == all.arrays.end() ||
                (creeps || best->written_ < bytes ? one->written_ > best->written_
                                                  : fits && one->written_ < best->written_))
                best = one;
        }
        if (best != all.arrays.end()) {
            all.bytes -= best->written_;
            const std::size_t huge_from = huge_from_;
            swap(*best);
            huge_from_ = huge_from;
            std::swap(*best, all.arrays.back());
            all.arrays.pop_back();
            return;
        }
    }
    // Unreadable address space is not charged by any overcommit policy; a limit on it (ulimit -v) may
    // still refuse the wish, so ask for less until it is granted.
    std::size_t wish = address_space_worth_reserving();
    void* got = MAP_FAILED;
    for (; wish >= bytes; wish = round_up(wish / 4, kHugePage)) {
        got = mmap(nullptr, wish + kHugePage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                   -1, 0);
        if (got != MAP_FAILED || wish <= kHugePage) break;
    }
    if (got == MAP_FAILED) throw std::bad_alloc();
    mapping_ = got;
    mapped_ = wish + kHugePage;
    reserved_ = wish;
    all.reserved += mapped_;
    data_ = reinterpret_cast<std::byte*>(round_up(reinterpret_cast<std::uintptr_t>(got), kHugePage));
    madvise(data_, reserved_, MADV_HUGEPAGE);  // a wish; small pages do as well
}

void GrowingBytes::grow(std::size_t bytes) {
    if (mapping_ == nullptr) reserve(bytes);
    // The system hands out a huge page only where all of its range is usable when first touched. An
    // array that grows by leaps gets them at once; one that creeps only when it is so large that a huge
    // page too many does not matter.
    const std::size_t next =
        std::min(round_up(bytes, bytes < huge_from_ ? kSmallStep : kHugePage), reserved_);
    if (next < bytes) throw std::bad_alloc();
    if (next > written_ && mprotect(data_, next, PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
    if (usable_ < written_) clear(data_ + usable_, std::min(next, written_) - usable_);
    usable_ = next;
}

void GrowingBytes::stop_growing() {
    if (mapping_ == nullptr || spares().has_address_space_for(*this)) return;
    std::byte* const end = static_cast<std::byte*>(mapping_) + mapped_;
    std::byte* const used = data_ + round_up(std::max(usable_, written_), kHugePage);
    reserved_ = usable_;
    if (used >= end) return;
    munmap(used, static_cast<std::size_t>(end - used));
    spares().reserved -= static_cast<std::size_t>(end - used);
    mapped_ -= static_cast<std::size_t>(end - used);
}

void GrowingBytes::release(std::size_t from, std::size_t to) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    from = round_up(from, page);
    to = std::min(to, usable_) / page * page;
    if (from < to) madvise(data_ + from, to - from, MADV_DONTNEED);
}

}  // namespace revisit
