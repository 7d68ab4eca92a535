/* clang-format off */
/* revisit for C, and for every language that can call C: addresses in, histograms and curves out.
 *
 *     revisit_analysis* analysis;
 *     revisit_profile* profile;
 *     double hit_rate;
 *     if (revisit_analysis_new(NULL, &analysis) != REVISIT_OK) return complain(revisit_error_message());
 *     while ((count = next_addresses(addresses)) > 0)
 *         if (revisit_analysis_add_addresses(analysis, addresses, count) != REVISIT_OK) ...
 *     if (revisit_analysis_finish(analysis, &profile) != REVISIT_OK) ...
 *     if (revisit_profile_hit_rate(profile, "32K:8:64", &hit_rate, NULL) != REVISIT_OK) ...
 *     revisit_profile_free(profile);
 *     revisit_analysis_free(analysis);
 *
 * What can fail returns a revisit_status, and leaves its out parameters as they were. Nothing prints,
 * exits, or lets a C++ exception out. Arrays are the caller's and are not kept after the call; strings
 * and handles that a function gives belong to the handle they came from unless it says otherwise.
 *
 * Threads. A handle is used by one thread at a time, except that any number of threads may read one
 * profile. Different handles are independent. Error messages are kept per thread.
 */
/* clang-format on */
#ifndef REVISIT_C_H
#define REVISIT_C_H

#include <stddef.h>
#include <stdint.h>

#include "revisit/api.h"
#include "revisit/version.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum revisit_status {
    REVISIT_OK = 0,
    REVISIT_INVALID_INPUT = 1,  /* a file, a number or an argument is not what was expected */
    REVISIT_UNKNOWN_FORMAT = 2, /* a trace does not reveal its format: name it */
    REVISIT_UNKNOWN_METHOD = 3,
    REVISIT_UNSUPPORTED = 4, /* this combination of method, model and options does not exist */
    REVISIT_NOT_BUILT = 5,   /* needs a library that this build was made without */
    REVISIT_NO_MEMORY = 6,
    REVISIT_NO_THREADS = 7, /* cannot be counted on several threads; one can */
    REVISIT_IO = 8,
    REVISIT_DEVICE = 9,         /* no GPU, or one that failed */
    REVISIT_DEVICE_MEMORY = 10, /* more memory than the GPU has */
    REVISIT_CLUSTER = 11,
    REVISIT_INTERNAL = 12 /* a defect of the library */
} revisit_status;

/* Of the last call in this thread that failed: one sentence, never NULL, valid until the next one. */
REVISIT_API const char* revisit_error_message(void);

/* Of the library that runs, as REVISIT_VERSION_NUMBER and REVISIT_VERSION_STRING are of this header. */
REVISIT_API uint32_t revisit_version(void);
REVISIT_API const char* revisit_version_string(void);

/* --- How to analyze ---------------------------------------------------------------------------- */

typedef struct revisit_options revisit_options;

REVISIT_API revisit_options* revisit_options_new(void); /* NULL: no memory */
REVISIT_API void revisit_options_free(revisit_options* options);
/* By the names of the command's options, without dashes, and values as it takes them:
 *   method        exact, olken, partition, shards, hprda, time, sample, naive
 *   granularity   bytes per block: 64, 4K; 1 takes addresses as they are
 *   bins          log2, log2:K, linear:W, exact
 *   model         single, private (needs threads), both
 *   threads       that count; 0 = all cores
 *   time, sites, pairs   yes or no: the time-distance histogram, histograms by site, pairs of sites
 *   phases        windows of the run with histograms of their own
 *   rate          share to sample, of the methods sample and shards
 *   target-error  of the method sample
 *   seed          of all randomness
 */
REVISIT_API revisit_status revisit_options_set(revisit_options* options, const char* name,
                                               const char* value);

/* --- Addresses in ------------------------------------------------------------------------------ */

typedef struct revisit_analysis revisit_analysis;
typedef struct revisit_profile revisit_profile;

/* `options` NULL: the exact method, blocks of 64 bytes, bins log2:8. */
REVISIT_API revisit_status revisit_analysis_new(const revisit_options* options,
                                                revisit_analysis** analysis);
REVISIT_API void revisit_analysis_free(revisit_analysis* analysis);

/* Accesses in program order. A column that is not known is NULL; others have `count` elements. */
typedef struct revisit_batch {
    size_t count;
    const uint64_t* addresses;
    const uint32_t* sites;   /* ids of the instructions */
    const uint32_t* sizes;   /* bytes; 0 = unknown */
    const uint16_t* threads; /* numbers from 0 on */
    const uint8_t* flags;    /* bit 0: a write */
} revisit_batch;

REVISIT_API revisit_status revisit_analysis_add(revisit_analysis* analysis, const revisit_batch* batch);
REVISIT_API revisit_status revisit_analysis_add_addresses(revisit_analysis* analysis,
                                                          const uint64_t* addresses, size_t count);
/* Once; then the analysis can only be freed. The profile is the caller's, to be freed. */
REVISIT_API revisit_status revisit_analysis_finish(revisit_analysis* analysis,
                                                   revisit_profile** profile);

/* A stored trace; `format` NULL: by its content or its name's ending. */
REVISIT_API revisit_status revisit_analyze_file(const char* path, const char* format,
                                                const revisit_options* options,
                                                revisit_profile** profile);

/* --- Profiles ---------------------------------------------------------------------------------- */

REVISIT_API revisit_status revisit_profile_load(const char* path, revisit_profile** profile);
REVISIT_API revisit_status revisit_profile_save(const revisit_profile* profile, const char* path);
REVISIT_API revisit_status revisit_profile_from_json(const char* text, size_t length,
                                                     revisit_profile** profile);
/* The text is the caller's, to be freed by revisit_text_free. */
REVISIT_API revisit_status revisit_profile_to_json(const revisit_profile* profile, char** text);
REVISIT_API void revisit_text_free(char* text);
/* Adds `other`. What was refused changes nothing. */
REVISIT_API revisit_status revisit_profile_merge(revisit_profile* into, const revisit_profile* other);
REVISIT_API void revisit_profile_free(revisit_profile* profile);

REVISIT_API double revisit_profile_accesses(const revisit_profile* profile);
REVISIT_API double revisit_profile_distinct(const revisit_profile* profile); /* blocks */
REVISIT_API uint64_t revisit_profile_granularity(const revisit_profile* profile);
REVISIT_API const char* revisit_profile_method(const revisit_profile* profile);
REVISIT_API const char* revisit_profile_model(const revisit_profile* profile);

/* --- Histograms and curves out ----------------------------------------------------------------- */

typedef struct revisit_histogram revisit_histogram; /* of a profile, and valid as long as it is */

typedef enum revisit_kind {
    REVISIT_REUSE = 0, /* reuse distances, in blocks */
    REVISIT_TIME = 1,  /* time distances, in accesses; with option time */
    REVISIT_SHARED = 2 /* model both: what one stack for all threads would see */
} revisit_kind;

/* NULL: the profile does not have it. */
REVISIT_API const revisit_histogram* revisit_profile_histogram(const revisit_profile* profile,
                                                               revisit_kind kind);

typedef struct revisit_bin {
    uint64_t low;  /* distances from here ... */
    uint64_t high; /* ... to below here */
    double count;
    double error; /* 95 % half-width; 0 = exact */
} revisit_bin;

REVISIT_API double revisit_histogram_cold(const revisit_histogram* histogram); /* first touches */
REVISIT_API double revisit_histogram_invalidated(const revisit_histogram* histogram);
REVISIT_API double revisit_histogram_percentile(const revisit_histogram* histogram, double share);
/* How many bins there are, rising and not empty; fills in the first `room` of them. */
REVISIT_API size_t revisit_histogram_bins(const revisit_histogram* histogram, revisit_bin* bins,
                                          size_t room);

typedef struct revisit_point {
    double blocks;
    double miss_rate;
} revisit_point;

/* The miss ratio of a fully associative cache by its size, between the points a straight line; how
 * many there are, and the first `room` of them. */
REVISIT_API size_t revisit_profile_curve(const revisit_profile* profile, revisit_point* points,
                                         size_t room);
/* Of a cache SIZE:WAYS:LINE, such as 32K:8:64 or 1M:full:64. `error`, the 95 % half-width, may be NULL.
 * Where the granularity of the profile is not LINE, each block is assumed to fill one line. */
REVISIT_API revisit_status revisit_profile_hit_rate(const revisit_profile* profile, const char* cache,
                                                    double* hit_rate, double* error);

typedef struct revisit_site {
    uint32_t id;
    double accesses;
    double writes;
    const revisit_histogram* reuse;
} revisit_site;

/* With option sites: how many there are, and the first `room` of them. */
REVISIT_API size_t revisit_profile_sites(const revisit_profile* profile, revisit_site* sites,
                                         size_t room);

#ifdef __cplusplus
}
#endif
#endif
