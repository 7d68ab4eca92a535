// Large blocks of the heap, so that a sampled address is known by where its block was allocated. This
// is all that is loaded into a program; it is sampled from outside, with or without it.
//
// Problem. Programs allocate millions of times a second, and a sample needs one block in the middle of
// which some address lies. Idea. Only blocks of a kilobyte and more are noted (they hold most data, and
// are rare), in a fixed table without locks: 512 groups of 8, by a hash of the address, with one byte
// per group that says which are used and one tag per entry. A free block costs one look at that byte,
// or at the group's tags, and small blocks go straight on to the real functions, by a jump. Each
// instruction of that way counts: a shell's loop allocates all the time. When a group is full,
// its smallest block is given up for a larger one and the smallest size that is noted doubles. Where it
// was allocated is the return address of malloc, or of operator new, which leaves it and its size for
// the malloc that follows. Of small blocks one in some 64 is drawn, and its page noted with where it
// was allocated: neighbours mostly come from the same place. The sampler reads the table from outside
// (outside/heap_blocks.h) when an address lies in none of the blocks that it has read before.
#include <dlfcn.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cstddef>

#include "watch/inside/heap_table.h"

#define REVISIT_STANDS_IN extern "C" __attribute__((visibility("default")))
#define REVISIT_NEXT(name, ...) reinterpret_cast<__VA_ARGS__>(dlsym(RTLD_NEXT, #name))

extern "C" {
// By a name of its own, so that it is reached without the table of symbols that others may replace.
__attribute__((visibility("hidden"))) constinit revisit::watch::HeapSpace revisit_heap_own_table{};
extern __attribute__((visibility("default"),
                      alias("revisit_heap_own_table"))) revisit::watch::HeapSpace revisit_heap_table;
}

namespace revisit::watch {
namespace {

constexpr unsigned kGroups = HeapTable::kGroups, kWays = HeapTable::kWays;
constexpr std::size_t kMostLeast = std::size_t{1} << 40;

struct HeapBlock {
    std::uint64_t low = 0, high = 0, where = 0;
};
constexpr HeapTable& blocks = revisit_heap_own_table.table;
alignas(64) constinit std::uint8_t tags[kGroups * kWays]{};  // of blocks that are, or were, noted
constexpr std::size_t kLeast = 1024;
constinit std::size_t least = 0;  // until the real functions are found: all go the long way

// By its page, and by what is above 2 MiB, at which large ones begin.
std::uint64_t group_of(const void* at) {
    auto number = reinterpret_cast<std::uint64_t>(at);
    return (number >> 12 ^ number >> 21) % kGroups;
}
std::uint8_t tag_of(const void* at) {
    return static_cast<std::uint8_t>(reinterpret_cast<std::uint64_t>(at) >> 4);
}

// A relaxed load, for which the compiler finds shorter code.
template <class Value>
[[gnu::always_inline]] inline Value read(const Value& value) {
    return const_cast<const volatile Value&>(value);
}

bool is_wanted(std::size_t bytes) {
    return bytes >= read(least);
}

// Allocations until a small block is drawn. A thread's own: threads would wait for a common one.
__thread unsigned until_drawn __attribute__((tls_model("initial-exec"))) = 1;
[[gnu::always_inline]] inline bool is_drawn() {
    return --until_drawn == 0;
}

// From 32 to 95 allocations on, by where this one lies: a program's own rhythm must not be met.
void note_small(const void* at, std::uint64_t where) {
    const auto address = reinterpret_cast<std::uint64_t>(at);
    until_drawn = 32 + static_cast<unsigned>((address * 0x9e3779b97f4a7c15) >> 58);
    if (at == nullptr) return;
    const std::uint64_t number = address >> HeapPages::kShift;
    auto& page = revisit_heap_own_table.small.pages[HeapPages::entry_of(number)];
    __atomic_store_n(&page.where, where, __ATOMIC_RELAXED);
    __atomic_store_n(&page.number, number, __ATOMIC_RELEASE);
}

// Whoever turns an entry's address into 0 owns it until it is written again or marked unused.
bool take(unsigned entry, std::uint64_t low) {
    return low != 0 && __atomic_compare_exchange_n(&blocks.low[entry], &low, 0, false, __ATOMIC_ACQUIRE,
                                                   __ATOMIC_RELAXED);
}

// Takes an entry of the group that is not used, or that of its smallest block if it is smaller.
bool take_entry(std::uint64_t group, std::size_t bytes, unsigned& entry) {
    std::uint8_t used = __atomic_load_n(&blocks.used[group], __ATOMIC_RELAXED);
    while (used != 0xff) {
        auto way = static_cast<unsigned>(__builtin_ctz(~used));
        entry = static_cast<unsigned>(group * kWays + way);
        if (__atomic_compare_exchange_n(&blocks.used[group], &used,
                                        static_cast<std::uint8_t>(used | 1u << way), true,
                                        __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            return true;
    }
    std::size_t small = __atomic_load_n(&least, __ATOMIC_RELAXED), smallest = bytes;
    if (small < kMostLeast)
        __atomic_compare_exchange_n(&least, &small, 2 * small, false, __ATOMIC_RELAXED,
                                    __ATOMIC_RELAXED);
    std::uint64_t found = 0;
    auto first = static_cast<unsigned>(group * kWays);
    for (unsigned i = first; i < first + kWays; i++) {
        std::uint64_t low = __atomic_load_n(&blocks.low[i], __ATOMIC_ACQUIRE);
        if (low == 0 || blocks.high[i] - low >= smallest) continue;
        smallest = blocks.high[i] - low;
        found = low;
        entry = i;
    }
    return take(entry, found);
}

void note(void* at, std::size_t bytes, std::uint64_t where) {
    unsigned i = 0;
    if (at == nullptr || !take_entry(group_of(at), bytes, i)) return;
    auto low = reinterpret_cast<std::uint64_t>(at);
    blocks.high[i] = low + bytes;
    blocks.where[i] = where;
    __atomic_store_n(&tags[i], tag_of(at), __ATOMIC_RELAXED);
    __atomic_store_n(&blocks.low[i], low, __ATOMIC_RELEASE);
    __atomic_add_fetch(&blocks.noted, 1, __ATOMIC_RELEASE);
}

// Whether a block may have been noted: most were not. A byte of the tags is its own: then a zero byte
// is left where they differ in nothing.
[[gnu::always_inline]] inline bool may_be_noted(const void* at) {
    constexpr std::uint64_t kOnes = 0x0101010101010101;
    static_assert(kWays == 8);
    std::uint64_t group = group_of(at);
    if (read(blocks.used[group]) == 0) [[likely]]
        return false;
    std::uint64_t differ =
        __atomic_load_n(reinterpret_cast<std::uint64_t*>(tags) + group, __ATOMIC_RELAXED) ^
        tag_of(at) * kOnes;
    return ((differ - kOnes) & ~differ & kOnes << 7) != 0;
}

// The block's end and place, if it was noted.
bool forget(void* at, HeapBlock& block) {
    std::uint64_t group = group_of(at);
    std::uint8_t used = __atomic_load_n(&blocks.used[group], __ATOMIC_RELAXED);
    if (used == 0) [[likely]]
        return false;
    for (unsigned way = 0; way < kWays; way++) {
        auto i = static_cast<unsigned>(group * kWays + way);
        auto low = reinterpret_cast<std::uint64_t>(at);
        if (!(used >> way & 1) || __atomic_load_n(&blocks.low[i], __ATOMIC_RELAXED) != low ||
            !take(i, low))
            continue;
        block = {reinterpret_cast<std::uint64_t>(at), blocks.high[i], blocks.where[i]};
        __atomic_and_fetch(&blocks.used[group], static_cast<std::uint8_t>(~(1u << way)),
                           __ATOMIC_RELEASE);
        return true;
    }
    return false;
}
void forget(void* at) {
    HeapBlock block;
    forget(at, block);
}

// Looking up the real ones may itself allocate: from here, and never given back.
alignas(16) char early[32768];
std::size_t early_used;
bool is_resolving;

void* early_block(std::size_t bytes) {
    std::size_t at = (early_used + 15) & ~std::size_t{15};
    if (at + bytes > sizeof early) return nullptr;
    early_used = at + bytes;
    return early + at;
}
bool is_early(const void* at) {
    return static_cast<const char*>(at) >= early && static_cast<const char*>(at) < early + sizeof early;
}

struct Real {
    void* (*malloc)(std::size_t);
    void* (*calloc)(std::size_t, std::size_t);
    void* (*realloc)(void*, std::size_t);
    void (*free)(void*);
    void* (*memalign)(std::size_t, std::size_t);
    void* (*aligned_alloc)(std::size_t, std::size_t);
    int (*posix_memalign)(void**, std::size_t, std::size_t);
};
void free_early(void* at);  // the real one, once it is found; not of early blocks
constinit Real real{nullptr, nullptr, nullptr, free_early, nullptr, nullptr, nullptr};
void (*real_free)(void*) = nullptr;

const Real& the_real() {
    if (real_free != nullptr) [[likely]]
        return real;
    is_resolving = true;
    real.malloc = REVISIT_NEXT(malloc, decltype(real.malloc));
    real.calloc = REVISIT_NEXT(calloc, decltype(real.calloc));
    real.realloc = REVISIT_NEXT(realloc, decltype(real.realloc));
    real.memalign = REVISIT_NEXT(memalign, decltype(real.memalign));
    real.aligned_alloc = REVISIT_NEXT(aligned_alloc, decltype(real.aligned_alloc));
    real.posix_memalign = REVISIT_NEXT(posix_memalign, decltype(real.posix_memalign));
    real_free = REVISIT_NEXT(free, decltype(real.free));
    is_resolving = false;
    if (early_used == 0) real.free = real_free;
    std::size_t none = 0;
    __atomic_compare_exchange_n(&least, &none, kLeast, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
    return real;
}

void free_early(void* at) {
    if (at == nullptr || is_early(at)) return;
    the_real();
    real_free(at);
}

// Left by operator new for the malloc that it calls; by that of arrays for the plain one.
struct Wish {
    std::uint64_t where;
    std::size_t bytes;
    bool of_array;
};
__thread Wish wish __attribute__((tls_model("initial-exec")));

std::uint64_t place_of(std::size_t bytes, void* back) {
    std::uint64_t where = wish.where;
    if (where == 0 || wish.bytes != bytes) return reinterpret_cast<std::uint64_t>(back);
    wish.where = 0;
    return where;
}

using New = void* (*)(std::size_t);

void* plain_new(std::size_t bytes) {
    void* at = malloc(bytes != 0 ? bytes : 1);
    if (at == nullptr) __builtin_trap();
    return at;
}

// The next operator new, also where only a library that was loaded later for itself has one.
[[gnu::noinline]] New find_new(const char* symbol) {
    void* next = dlsym(RTLD_NEXT, symbol);
    constexpr const char* kLibraries[] = {"libstdc++.so.6", "libc++abi.so.1", "libc++.so.1"};
    for (const char* library : kLibraries) {
        if (next != nullptr) break;
        if (void* handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD)) next = dlsym(handle, symbol);
    }
    return next != nullptr ? reinterpret_cast<New>(next) : plain_new;
}

}  // namespace

}  // namespace revisit::watch

using namespace revisit::watch;

#define REVISIT_BACK __builtin_return_address(0)

namespace {

// What is rare is kept apart, so that the common case needs no stack frame.

[[gnu::noinline]] void* malloc_noted(std::size_t bytes, void* back) {
    if (is_resolving) return early_block(bytes);
    void* at = the_real().malloc(bytes);
    if (is_wanted(bytes))
        note(at, bytes, place_of(bytes, back));
    else
        note_small(at, place_of(bytes, back));
    return at;
}

[[gnu::noinline]] void* calloc_noted(std::size_t count, std::size_t each, void* back) {
    if (is_resolving) return early_block(count * each);
    void* at = the_real().calloc(count, each);
    if (is_wanted(count * each))
        note(at, count * each, reinterpret_cast<std::uint64_t>(back));
    else
        note_small(at, reinterpret_cast<std::uint64_t>(back));
    return at;
}

[[gnu::noinline]] void free_noted(void* at) {
    forget(at);
    the_real().free(at);
}

[[gnu::noinline]] void* realloc_noted(void* before, std::size_t bytes, void* back) {
    if (is_resolving || is_early(before)) {
        void* at = is_resolving ? early_block(bytes) : the_real().malloc(bytes);
        std::size_t most =
            before ? static_cast<std::size_t>(early + sizeof early - static_cast<char*>(before)) : 0;
        if (at != nullptr && before != nullptr) memcpy(at, before, most < bytes ? most : bytes);
        return at;
    }
    HeapBlock block;
    bool was_noted = before != nullptr && forget(before, block);
    void* at = the_real().realloc(before, bytes);
    if (at == nullptr && bytes != 0 && was_noted)
        note(before, block.high - block.low, block.where);
    else if (is_wanted(bytes))
        note(at, bytes, reinterpret_cast<std::uint64_t>(back));
    else if (until_drawn == 0)
        note_small(at, reinterpret_cast<std::uint64_t>(back));
    return at;
}

}  // namespace

REVISIT_STANDS_IN void* malloc(std::size_t bytes) noexcept {
    if (is_wanted(bytes) || is_drawn()) [[unlikely]]
        return malloc_noted(bytes, REVISIT_BACK);
    return real.malloc(bytes);
}

REVISIT_STANDS_IN void* calloc(std::size_t count, std::size_t each) noexcept {
    if (is_wanted(count * each) || is_drawn()) [[unlikely]]
        return calloc_noted(count, each, REVISIT_BACK);
    return real.calloc(count, each);
}

REVISIT_STANDS_IN void free(void* at) noexcept {
    if (may_be_noted(at)) [[unlikely]]
        return free_noted(at);
    real.free(at);
}

REVISIT_STANDS_IN void* realloc(void* before, std::size_t bytes) noexcept {
    if (is_wanted(bytes) || is_early(before) || may_be_noted(before) || is_drawn()) [[unlikely]]
        return realloc_noted(before, bytes, REVISIT_BACK);
    return real.realloc(before, bytes);
}

REVISIT_STANDS_IN void* memalign(std::size_t alignment, std::size_t bytes) noexcept {
    void* at = the_real().memalign(alignment, bytes);
    if (is_wanted(bytes)) note(at, bytes, reinterpret_cast<std::uint64_t>(REVISIT_BACK));
    return at;
}

REVISIT_STANDS_IN void* aligned_alloc(std::size_t alignment, std::size_t bytes) noexcept {
    void* at = the_real().aligned_alloc(alignment, bytes);
    if (is_wanted(bytes)) note(at, bytes, place_of(bytes, REVISIT_BACK));
    return at;
}

REVISIT_STANDS_IN int posix_memalign(void** at, std::size_t alignment, std::size_t bytes) noexcept {
    int failed = the_real().posix_memalign(at, alignment, bytes);
    if (failed == 0 && is_wanted(bytes))
        note(*at, bytes, reinterpret_cast<std::uint64_t>(REVISIT_BACK));
    return failed;
}

// Nothing of ours may be on the stack when these throw: they end with a jump.
#define REVISIT_NEW(name, symbol, is_array)                                          \
    REVISIT_STANDS_IN void* name(std::size_t bytes) __asm__(symbol);                 \
    void* name(std::size_t bytes) {                                                  \
        static New next;                                                             \
        if (next == nullptr) next = find_new(symbol);                                \
        if (!is_wanted(bytes) && until_drawn != 1) return next(bytes);               \
        if (is_array || !wish.of_array || wish.bytes != bytes)                       \
            wish = {reinterpret_cast<std::uint64_t>(REVISIT_BACK), bytes, is_array}; \
        else                                                                         \
            wish.of_array = false;                                                   \
        return next(bytes);                                                          \
    }
REVISIT_NEW(revisit_new, "_Znwm", false)
REVISIT_NEW(revisit_new_array, "_Znam", true)

// Memory straight from the kernel, by either name; files are named by their modules, or not at all.
#define REVISIT_MAP(name)                                                                              \
    REVISIT_STANDS_IN void* name(void* wanted, std::size_t bytes, int protection, int flags, int file, \
                                 long offset) noexcept {                                               \
        static auto next = REVISIT_NEXT(name, void* (*)(void*, std::size_t, int, int, int, long));     \
        void* at = next(wanted, bytes, protection, flags, file, offset);                               \
        if (at == MAP_FAILED) return at;                                                               \
        forget(at);                                                                                    \
        if (flags & MAP_ANONYMOUS && !(flags & MAP_STACK) && is_wanted(bytes))                         \
            note(at, bytes, reinterpret_cast<std::uint64_t>(REVISIT_BACK) | HeapTable::kMapped);       \
        return at;                                                                                     \
    }
REVISIT_MAP(mmap)
REVISIT_MAP(mmap64)

REVISIT_STANDS_IN int munmap(void* at, std::size_t bytes) noexcept {
    static auto next = REVISIT_NEXT(munmap, int (*)(void*, std::size_t));
    forget(at);
    return next(at, bytes);
}

REVISIT_STANDS_IN void* mremap(void* before, std::size_t old_bytes, std::size_t bytes, int flags,
                               ...) noexcept {
    static auto next = REVISIT_NEXT(mremap, void* (*)(void*, std::size_t, std::size_t, int, ...));
    va_list list;
    va_start(list, flags);
    void* wanted = flags & MREMAP_FIXED ? va_arg(list, void*) : nullptr;
    va_end(list);
    HeapBlock block;
    bool was_noted = forget(before, block);
    void* at = next(before, old_bytes, bytes, flags, wanted);
    if (was_noted && at == MAP_FAILED)
        note(before, block.high - block.low, block.where);
    else if (was_noted)
        note(at, bytes, reinterpret_cast<std::uint64_t>(REVISIT_BACK) | HeapTable::kMapped);
    return at;
}
