// Blocks from many hands: each function that allocates must be told by its name.
#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

#define APART __attribute__((noinline))

#ifdef PLUGIN

extern "C" int plugged_in() {
    std::vector<int> numbers;
    for (int i = 0; i < 1000; i++) numbers.push_back(i);
    int sum = 0;
    for (int number : numbers) sum += number;
    try {
        std::vector<long> large(1ul << 58);
        asm volatile("" ::"r"(large.data()) : "memory");  // gcc 15 leaves out what nobody can see
    } catch (std::bad_alloc&) {
        return sum;
    }
    return 0;
}

#else

namespace {

constexpr unsigned kWords = 1 << 16;

APART unsigned* make_table() {
    return static_cast<unsigned*>(calloc(kWords, 4));
}
APART std::unique_ptr<unsigned[]> make_vector() {
    return std::unique_ptr<unsigned[]>(new unsigned[kWords]());
}
APART unsigned* make_larger(unsigned* before) {
    return static_cast<unsigned*>(realloc(before, kWords * 4));
}
APART unsigned* make_pages(std::size_t bytes) {
    void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return at == MAP_FAILED ? nullptr : static_cast<unsigned*>(at);
}
APART unsigned* make_larger_pages() {
    unsigned* small = make_pages(4096);
    void* at = mremap(small, 4096, kWords * 4, MREMAP_MAYMOVE);
    return at == MAP_FAILED ? nullptr : static_cast<unsigned*>(at);
}
APART void* first_owner() {
    void* at = malloc(kWords * 2);
    memset(at, 1, kWords * 2);
    return at;
}
APART unsigned* second_owner() {
    return static_cast<unsigned*>(malloc(kWords * 2));
}
APART unsigned* make_one_large() {
    return static_cast<unsigned*>(malloc(kWords * 4));
}
APART void* make_one_small(std::size_t bytes) {
    return malloc(bytes);
}

APART unsigned work(unsigned* words, unsigned mask, int rounds) {
    unsigned sum = 0, at = 1;
    for (int r = 0; r < rounds; r++) {
        at = at * 1103515245 + 12345;
        sum += words[(at >> 8) & mask] += at;
    }
    return sum;
}

}  // namespace

int main(int count, char** arguments) {
    const char* which = count > 1 ? arguments[1] : "";
    constexpr unsigned kMask = kWords - 1;
    unsigned sum = 0;
    if (strcmp(which, "malloc") == 0) {
        unsigned* table = make_table();
        auto vector = make_vector();
        auto* small = static_cast<unsigned*>(malloc(64));
        unsigned* larger = make_larger(small);
        memset(larger, 0, kWords * 4);
        for (int i = 0; i < 600; i++)
            sum += work(table, kMask, 100000) + work(vector.get(), kMask, 100000) +
                   work(larger, kMask, 100000);
        free(table);
        free(larger);
        try {
            std::vector<long> large(1ul << 58);
        asm volatile("" ::"r"(large.data()) : "memory");  // gcc 15 leaves out what nobody can see
        } catch (std::bad_alloc&) {
            puts("too large");
        }
    } else if (strcmp(which, "pages") == 0) {
        unsigned *pages = make_pages(kWords * 4), *larger = make_larger_pages();
        for (int i = 0; i < 600; i++) sum += work(pages, kMask, 150000) + work(larger, kMask, 150000);
        munmap(pages, kWords * 4);
        munmap(larger, kWords * 4);
    } else if (strcmp(which, "reuse") == 0) {
        free(first_owner());
        unsigned* words = second_owner();
        memset(words, 0, kWords * 2);
        sum = work(words, kMask / 2, 150000000);
        free(words);
    } else if (strcmp(which, "many") == 0) {  // more blocks than can be noted
        std::vector<void*> all;
        for (unsigned i = 0; i < 20000; i++) all.push_back(make_one_small(1024 + i % 900));
        unsigned* large = make_one_large();
        memset(large, 0, kWords * 4);
        sum = work(large, kMask, 150000000);
        for (void* one : all) free(one);
    }
    printf("%u\n", sum);
    return 0;
}

#endif
