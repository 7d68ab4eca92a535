/* What the analyzer receives beside accesses: the process and its modules, stacks, calls, heap blocks,
 * synchronisation, regions. Each is one record at the thread's cursor in memory; recorded code puts its
 * cursor there before it calls. What was not asked for costs a test.
 */
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "record/clang/runtime.h"
#include "record/clang/sampler.h"

#define process __revisit_process

static void put(uint32_t words, uint64_t first, uint64_t second, uint64_t third) {
    uint64_t* record = revisit_reserve(words);
    if (!record) return;
    record[0] = first;
    if (words > 1) record[1] = second;
    if (words > 2) record[2] = third;
    revisit_done(words);
}

void revisit_describe_process(uint32_t parent) {
    char command[2048];
    ssize_t bytes = 0;
    int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        bytes = read(fd, command, sizeof command);
        if (bytes < 0) bytes = 0;
        close(fd);
    }
    if (bytes > 0 && command[bytes - 1] == 0) bytes--;
    uint32_t words = 3 + (uint32_t)(bytes + 7) / 8;
    uint64_t* record = revisit_reserve(words);
    if (!record) return;
    record[0] = REVISIT_RECORD(REVISIT_PROCESS, bytes);
    struct stat space; /* its PID namespace */
    record[1] =
        REVISIT_PROCESS_ID(syscall(SYS_getpid), stat(REVISIT_NAMESPACE, &space) ? 0 : space.st_ino);
    record[2] = parent == (uint32_t)-1 ? REVISIT_NO_PARENT : parent;
    revisit_put_text(record + 3, command, (uint32_t)bytes);
    revisit_done(words);
}

/* The build id of a loaded object, in hex; its length. */
static size_t build_id(const struct dl_phdr_info* object, char* hex, size_t most) {
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr)* part = &object->dlpi_phdr[i];
        if (part->p_type != PT_NOTE) continue;
        const char* at = (const char*)(object->dlpi_addr + part->p_vaddr);
        const char* end = at + part->p_memsz;
        while (at + sizeof(ElfW(Nhdr)) <= end) {
            const ElfW(Nhdr)* head = (const ElfW(Nhdr)*)(const void*)at;
            const char* name = at + sizeof *head;
            const unsigned char* id = (const unsigned char*)name + ((head->n_namesz + 3u) & ~3u);
            at = (const char*)id + ((head->n_descsz + 3u) & ~3u);
            if (at > end || head->n_type != NT_GNU_BUILD_ID || head->n_namesz != 4 ||
                memcmp(name, "GNU", 4))
                continue;
            size_t n = 0;
            for (uint32_t j = 0; j < head->n_descsz && n + 2 <= most; j++) {
                hex[n++] = "0123456789abcdef"[id[j] >> 4];
                hex[n++] = "0123456789abcdef"[id[j] & 15];
            }
            return n;
        }
    }
    return 0;
}

static int describe_module(struct dl_phdr_info* object, size_t size, void* told) {
    char text[REVISIT_TEXT_MAX];
    ssize_t path = 0;
    (void)size;
    if (object->dlpi_name && object->dlpi_name[0]) {
        path = (ssize_t)strlen(object->dlpi_name);
        if (path > 4096) return 0;
        memcpy(text, object->dlpi_name, (size_t)path);
    } else if (!*(int*)told) {
        path = readlink("/proc/self/exe", text, 4096); /* the first without a name is the program */
        if (path < 0) path = 0;
    } else {
        return 0;
    }
    *(int*)told = 1;
    text[path] = 0;
    size_t bytes = (size_t)path + 1 + build_id(object, text + path + 1, 128);
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr)* part = &object->dlpi_phdr[i];
        if (part->p_type != PT_LOAD) continue;
        uint32_t words = 4 + (uint32_t)(bytes + 7) / 8;
        uint64_t* record = revisit_reserve(words);
        if (!record) return 1;
        record[0] = REVISIT_RECORD(REVISIT_MODULE, bytes);
        record[1] = object->dlpi_addr + part->p_vaddr;
        record[2] = record[1] + part->p_memsz;
        record[3] = part->p_offset;
        revisit_put_text(record + 4, text, (uint32_t)bytes);
        revisit_done(words);
    }
    return 0;
}

/* All that is loaded, again whenever the number of loads has grown. */
static int count_loads(struct dl_phdr_info* object, size_t size, void* loads) {
    (void)size;
    *(unsigned long long*)loads = object->dlpi_adds;
    return 1;
}
void revisit_describe_modules(void) {
    static unsigned long long known;
    unsigned long long loads = 0;
    int told = 0;
    dl_iterate_phdr(count_loads, &loads);
    if (loads == __atomic_exchange_n(&known, loads, __ATOMIC_RELAXED)) return;
    dl_iterate_phdr(describe_module, &told);
}

extern void* __libc_stack_end;

void revisit_describe_stack(int main_thread) {
    uint64_t low = 0, high = 0;
    if (!process.stream) return;
    if (main_thread) {
        /* Arguments and environment lie above; the stack may grow as far down as its limit. */
        struct rlimit limit;
        high = ((uint64_t)(uintptr_t)__libc_stack_end + 0x200000) & ~(uint64_t)0xfff;
        if (getrlimit(RLIMIT_STACK, &limit) || limit.rlim_cur == RLIM_INFINITY)
            limit.rlim_cur = 1u << 30;
        low = (uint64_t)(uintptr_t)__libc_stack_end - limit.rlim_cur;
    } else {
        pthread_attr_t attributes;
        void* base;
        size_t bytes;
        if (pthread_getattr_np(pthread_self(), &attributes)) return;
        if (pthread_attr_getstack(&attributes, &base, &bytes) == 0) {
            low = (uint64_t)(uintptr_t)base;
            high = low + bytes;
        }
        pthread_attr_destroy(&attributes);
    }
    if (__revisit_tls.self)
        put(3, REVISIT_RECORD(REVISIT_STACK, __revisit_tls.self->number), low, high);
}

static void region(uint64_t tag, const char* name, size_t bytes) {
    uint32_t words = 1 + (uint32_t)(bytes + 7) / 8;
    uint64_t* record = revisit_reserve(words);
    if (!record) return;
    record[0] = REVISIT_RECORD(tag, bytes);
    revisit_put_text(record + 1, name, (uint32_t)bytes);
    revisit_done(words);
}

/* Functions chosen by name are one region, "()", from the entry of the first to its return. Sites of
   chosen functions are bits of a map. */
enum { CHOSEN_SITES = 1 << 26 };

static int is_one_of(const char* names, const char* name) {
    size_t plain = strcspn(name, "("); /* C++: with or without its parameters */
    while (*names) {
        size_t bytes = strcspn(names, "\n");
        if (strncmp(names, name, bytes) == 0 && (name[bytes] == 0 || bytes == plain)) return 1;
        names += bytes + (names[bytes] == '\n');
    }
    return 0;
}

void revisit_choose(uint64_t site, const char* function) {
    const char* names = getenv(REVISIT_FUNCTIONS_ENV);
    if (!names || !*names || site >= CHOSEN_SITES || !is_one_of(names, function)) return;
    if (!process.chosen) {
        void* map = mmap(NULL, CHOSEN_SITES / 8, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (map == MAP_FAILED) return;
        process.chosen = map;
        if (__revisit_tls.self) __revisit_tls.want |= REVISIT_WANT_FUNCTIONS;
    }
    process.chosen[site / 8] |= (uint8_t)(1 << site % 8);
}

static void end_chosen(revisit_thread* self) {
    self->chosen_stack = 0;
    region(REVISIT_REGION_END, "()", 2);
}

/* A thread that samples itself and only counts now has no page for calls: it keeps its path at once.
   What handlers do has none. */
static inline int only_counts(const revisit_thread* self) {
    return process.sampling && self && !self->depth && self->lane[0].counts;
}
static void put_call(const revisit_thread* self, uint32_t words, uint64_t first, uint64_t second) {
    if (!process.sampling || (self && !self->depth)) put(words, first, second, 0);
}

EXPORTED void __revisit_enter(uint64_t site, void* stack) {
    revisit_thread* self = __revisit_tls.self;
    int is_wanted = (__revisit_tls.want & REVISIT_WANT_CALLS) != 0;
    if (is_wanted && only_counts(self)) {
        revisit_sampler_enter(self, site, (uintptr_t)stack);
        if (!process.chosen) return;
        is_wanted = 0;
    }
    int saved = errno;
    if (is_wanted) put_call(self, 2, REVISIT_RECORD(REVISIT_ENTER_SITE, site), (uintptr_t)stack);
    if (process.chosen && self) {
        uintptr_t frame = (uintptr_t)stack;
        if (self->chosen_stack && frame > self->chosen_stack) end_chosen(self); /* left by a jump */
        if (!self->chosen_stack && site < CHOSEN_SITES && process.chosen[site / 8] >> site % 8 & 1) {
            self->chosen_stack = frame;
            region(REVISIT_REGION_BEGIN, "()", 2);
        }
    }
    errno = saved;
}

static void leave(revisit_thread* self, void* stack) {
    if (!(__revisit_tls.want & REVISIT_WANT_CALLS)) return;
    if (only_counts(self)) {
        revisit_sampler_leave(self, (uintptr_t)stack);
        return;
    }
    int saved = errno;
    put_call(self, 1, REVISIT_RECORD(REVISIT_LEAVE, (uintptr_t)stack), 0);
    errno = saved;
}
EXPORTED void __revisit_leave(void* stack) {
    revisit_thread* self = __revisit_tls.self;
    leave(self, stack);
    if (!self || !self->chosen_stack || (uintptr_t)stack < self->chosen_stack) return;
    int saved = errno;
    end_chosen(self);
    errno = saved;
}
/* By a tail call: what is called has this frame and belongs to whoever was chosen; its return ends it.
 */
EXPORTED void __revisit_leave_by_call(void* stack) {
    leave(__revisit_tls.self, stack);
}

/* A heap block comes or goes. While the program samples itself that is no reason to end its page. */
static void heap_event(uint32_t words, uint64_t first, uint64_t second, uint64_t third) {
    const uint64_t record[3] = {first, second, third};
    int saved = errno;
    if (!process.sampling)
        put(words, first, second, third);
    else if (__revisit_tls.self)
        revisit_sampler_send(__revisit_tls.self, record, words);
    errno = saved;
}
static uint64_t whole_pages(uint64_t bytes) {
    const uint64_t inside = (uint64_t)sysconf(_SC_PAGESIZE) - 1;
    return bytes > ~inside ? ~inside : (bytes + inside) & ~inside;
}
EXPORTED void __revisit_alloc(void* address, uint64_t bytes, uint64_t site) {
    if (!(__revisit_tls.want & REVISIT_WANT_OBJECTS) || !address || address == (void*)-1) return;
    heap_event(3, REVISIT_RECORD(REVISIT_ALLOC_SITE, site), (uint64_t)(uintptr_t)address, bytes);
}
EXPORTED void __revisit_map(void* address, uint64_t bytes, uint64_t site) {
    if (!(__revisit_tls.want & REVISIT_WANT_OBJECTS) || address == (void*)-1) return;
    heap_event(3, REVISIT_RECORD(REVISIT_MAP_SITE, site), (uint64_t)(uintptr_t)address,
               whole_pages(bytes));
}
EXPORTED void __revisit_unmap(void* address, uint64_t bytes) {
    const uint64_t low = (uint64_t)(uintptr_t)address, high = low + whole_pages(bytes);
    if (!(__revisit_tls.want & REVISIT_WANT_OBJECTS) || high < low) return;
    heap_event(3, REVISIT_RECORD(REVISIT_UNLOAD, 0), low, high);
}
EXPORTED void __revisit_free(void* address) {
    if (!(__revisit_tls.want & REVISIT_WANT_OBJECTS) || !address) return;
    heap_event(1, REVISIT_RECORD(REVISIT_FREE, (uint64_t)(uintptr_t)address), 0, 0);
}

static int ends_wait(uint64_t kind) {
    return kind == REVISIT_SYNC_LOCK || kind == REVISIT_SYNC_WAIT || kind == REVISIT_SYNC_JOIN;
}

/* Before a thread lets others go on, what it did so far is handed over: analysis follows the order of
   hand-over. At the unlock of a mutex, which happens millions of times a second, only where the order
   matters. */
EXPORTED void __revisit_sync(uint64_t kind, void* object) {
    if (!process.stream) return;
    int saved = errno;
    if (process.sampling) {
        /* What came before is analyzed before, and others learn of it. */
        if (revisit_sampler_wants_order()) {
            revisit_flush();
            if (__revisit_tls.self && ends_wait(kind)) revisit_sampler_waited(__revisit_tls.self);
        }
        if (__revisit_tls.self && kind == REVISIT_SYNC_REST) revisit_sampler_rest(__revisit_tls.self);
        if (__revisit_tls.self && kind == REVISIT_SYNC_JOIN) revisit_sampler_go_on(__revisit_tls.self);
        errno = saved;
        return;
    }
    put(2, REVISIT_RECORD(REVISIT_SYNC, kind), (uint64_t)(uintptr_t)object, 0);
    if (kind == REVISIT_SYNC_SIGNAL || ((kind == REVISIT_SYNC_UNLOCK || kind == REVISIT_SYNC_REST) &&
                                        process.stream->want & REVISIT_WANT_ORDER))
        revisit_flush();
    errno = saved;
}

static void mark(uint64_t tag, const char* name) {
    size_t bytes = strlen(name);
    int saved = errno;
    if (process.stream && bytes <= REVISIT_TEXT_MAX) region(tag, name, bytes);
    errno = saved;
}
EXPORTED void __revisit_region_begin(const char* name) {
    mark(REVISIT_REGION_BEGIN, name);
}
EXPORTED void __revisit_region_end(const char* name) {
    mark(REVISIT_REGION_END, name);
}
