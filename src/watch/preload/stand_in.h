// How this library takes the place of functions of the C library: loaded into a program it is found
// first and asks the loader for the next; linked into a static one, the linker is asked to wrap them
// (--wrap=NAME: calls go to __wrap_NAME, and __real_NAME is the function itself).
#pragma once

// What a program that is linked with it has in it.
#define REVISIT_LINKED_MARK "revisit-watch-is-linked-in"

// Those that a static program is linked with: for the linker.
#define REVISIT_WRAPPED                                                                             \
    "pthread_create,pthread_sigmask,sigprocmask,sigaction,signal,sigaltstack,prctl,syscall,_exit,_" \
    "Exit,malloc,calloc,realloc,free,memalign,aligned_alloc,posix_memalign,mmap,mmap64,munmap,"     \
    "mremap"

#ifdef REVISIT_STATIC

#define REVISIT_STANDS_IN extern "C"
#define REVISIT_NAME(name) __wrap_##name
#define REVISIT_NEXT(name, ...) reinterpret_cast<__VA_ARGS__>(&__real_##name)
#define REVISIT_DECLARE(name) extern "C" void __real_##name();
REVISIT_DECLARE(pthread_create)
REVISIT_DECLARE(pthread_sigmask)
REVISIT_DECLARE(sigprocmask)
REVISIT_DECLARE(sigaction)
REVISIT_DECLARE(signal)
REVISIT_DECLARE(sigaltstack)
REVISIT_DECLARE(prctl)
REVISIT_DECLARE(syscall)
REVISIT_DECLARE(malloc)
REVISIT_DECLARE(calloc)
REVISIT_DECLARE(realloc)
REVISIT_DECLARE(free)
REVISIT_DECLARE(memalign)
REVISIT_DECLARE(aligned_alloc)
REVISIT_DECLARE(posix_memalign)
REVISIT_DECLARE(mmap)
REVISIT_DECLARE(mmap64)
REVISIT_DECLARE(munmap)
REVISIT_DECLARE(mremap)

#else

#include <dlfcn.h>

#define REVISIT_STANDS_IN extern "C" __attribute__((visibility("default")))
#define REVISIT_NAME(name) name
#define REVISIT_NEXT(name, ...) reinterpret_cast<__VA_ARGS__>(dlsym(RTLD_NEXT, #name))

#endif
