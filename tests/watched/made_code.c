// A program that makes code at run time, as a JIT does, and describes it to perf where asked to:
// `made_code map` writes /tmp/perf-PID.map, which the caller removes; without it the code has no name.
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static unsigned table[1 << 20];

// Position independent and without calls: works wherever it is copied to. In a section of its own,
// whose size the linker tells.
extern const char __start_made[], __stop_made[];
__attribute__((noipa, aligned(64), optimize("no-stack-protector"), section("made"))) static unsigned
walk(unsigned* data, unsigned mask, long steps) {
    unsigned sum = 0, at = 1;
    for (long i = 0; i < steps; i++) {
        at = at * 1103515245 + 12345;
        sum += data[at >> 8 & mask] += at;
    }
    return sum;
}

int main(int argc, char** argv) {
    unsigned char* code = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(code, __start_made, (size_t)(__stop_made - __start_made));
    __builtin___clear_cache((char*)code, (char*)code + 1024);
    mprotect(code, 4096, PROT_READ | PROT_EXEC);
    if (argc > 1 && !strcmp(argv[1], "map")) {
        char path[64];
        snprintf(path, sizeof path, "/tmp/perf-%d.map", (int)getpid());
        FILE* map = fopen(path, "w");
        fprintf(map, "%lx 400 JS:*walk_made /srv/app/walk.js:17:9\n", (unsigned long)code);
        fclose(map);
    }
    printf("%u\n", ((unsigned (*)(unsigned*, unsigned, long))(
                       code + ((const char*)walk - __start_made)))(table, (1 << 20) - 1, 150000000));
    return 0;
}
