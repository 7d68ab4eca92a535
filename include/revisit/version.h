/* The version of these headers. C and C++, macros only; CMake reads them from here.
 *
 * Until 1.0 a minor version may change types and functions, and the shared library's name changes with
 * it (librevisit.so.0.1). revisit_version() of revisit.h is the version of the library that runs.
 */
#ifndef REVISIT_VERSION_H
#define REVISIT_VERSION_H

#define REVISIT_VERSION_MAJOR 0
#define REVISIT_VERSION_MINOR 1
#define REVISIT_VERSION_PATCH 0
#define REVISIT_VERSION_STRING "0.1.0"
/* 0.1.0 is 100: for #if REVISIT_VERSION_NUMBER >= ... */
#define REVISIT_VERSION_NUMBER \
    (REVISIT_VERSION_MAJOR * 10000 + REVISIT_VERSION_MINOR * 100 + REVISIT_VERSION_PATCH)

#endif
