/* Marks regions of a program for `revisit profile --region NAME`. C or C++, nothing to link.
 *
 *     revisit_region_begin("solve");
 *     ...
 *     revisit_region_end("solve");
 *
 * A region is the thread's own and may contain others. When the program is not recorded, a mark is one
 * call of an empty function. The functions stay functions, under these names, because that is how the
 * valgrind recorder knows them in an unmodified binary; code built with revisit-clang finds the
 * recorder's runtime behind the weak symbols.
 */
#ifndef REVISIT_REGION_H
#define REVISIT_REGION_H

#ifdef __cplusplus
extern "C" {
#endif

__attribute__((weak)) void __revisit_region_begin(const char* name);
__attribute__((weak)) void __revisit_region_end(const char* name);

__attribute__((noinline, unused)) static void revisit_region_begin(const char* name) {
    __asm__ volatile("" : : "r"(name) : "memory"); /* an empty function would be left out */
    if (__revisit_region_begin) __revisit_region_begin(name);
}

__attribute__((noinline, unused)) static void revisit_region_end(const char* name) {
    __asm__ volatile("" : : "r"(name) : "memory");
    if (__revisit_region_end) __revisit_region_end(name);
}

#ifdef __cplusplus
}
#endif
#endif
