/* Counts the accesses of another process while it runs.
 *
 * A tracer, such as a DynamoRIO or Pin client, writes the addresses it sees into a pipe, 8 bytes each.
 * This program starts it, reads the pipe in batches and counts them as they come: nothing is stored.
 * Here the tracer is this program's own child, which walks an array of 256 KiB four times.
 *
 *     cc stream.c -o stream $(pkg-config --cflags --libs revisit) && ./stream
 */
#include <revisit.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kBatch = 4096 };

static void trace_into(int pipe_end) {
    static uint64_t addresses[kBatch];
    size_t filled = 0;
    for (int pass = 0; pass < 4; ++pass)
        for (uint64_t at = 0; at < 256 * 1024; at += 8) {
            addresses[filled++] = 0x10000000 + at;
            if (filled < kBatch) continue;
            if (write(pipe_end, addresses, sizeof addresses) != (ssize_t)sizeof addresses) _exit(1);
            filled = 0;
        }
    _exit(0);
}

static void check(revisit_status status) {
    if (status == REVISIT_OK) return;
    fprintf(stderr, "stream: %s\n", revisit_error_message());
    exit(2);
}

int main(void) {
    int ends[2];
    if (pipe(ends) != 0) return perror("stream: pipe"), 2;
    const pid_t tracer = fork();
    if (tracer < 0) return perror("stream: fork"), 2;
    if (tracer == 0) {
        close(ends[0]);
        trace_into(ends[1]);
    }
    close(ends[1]);

    revisit_options* options = revisit_options_new();
    check(revisit_options_set(options, "granularity", "64"));
    check(revisit_options_set(options, "bins", "log2"));
    revisit_analysis* analysis = NULL;
    check(revisit_analysis_new(options, &analysis));

    /* A read may end within an address: the rest of it comes with the next one. */
    static uint64_t addresses[kBatch];
    size_t have = 0;
    for (;;) {
        const ssize_t got = read(ends[0], (char*)addresses + have, sizeof addresses - have);
        if (got < 0) return perror("stream: read"), 2;
        if (got == 0) break;
        have += (size_t)got;
        const size_t whole = have / sizeof *addresses;
        check(revisit_analysis_add_addresses(analysis, addresses, whole));
        for (size_t i = 0; i < have % sizeof *addresses; ++i)
            ((char*)addresses)[i] = ((char*)addresses)[whole * sizeof *addresses + i];
        have %= sizeof *addresses;
    }
    int ended = 0;
    if (waitpid(tracer, &ended, 0) < 0 || ended != 0)
        return fputs("stream: the tracer failed\n", stderr), 2;

    revisit_profile* profile = NULL;
    check(revisit_analysis_finish(analysis, &profile));
    printf("%.0f accesses to %.0f blocks\n", revisit_profile_accesses(profile),
           revisit_profile_distinct(profile));
    revisit_bin bins[64];
    const size_t count =
        revisit_histogram_bins(revisit_profile_histogram(profile, REVISIT_REUSE), bins, 64);
    for (size_t i = 0; i < count && i < 64; ++i)
        printf("distance %llu to %llu: %.0f\n", (unsigned long long)bins[i].low,
               (unsigned long long)bins[i].high - 1, bins[i].count);
    double l1 = 0, l2 = 0;
    check(revisit_profile_hit_rate(profile, "32K:8:64", &l1, NULL));
    check(revisit_profile_hit_rate(profile, "1M:16:64", &l2, NULL));
    printf("L1 hits %.2f %%, L2 hits %.2f %%\n", 100 * l1, 100 * l2);

    revisit_profile_free(profile);
    revisit_analysis_free(analysis);
    revisit_options_free(options);
    return 0;
}
