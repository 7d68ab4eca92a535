/* The version of these headers. C and C++, macros only; CMake reads them from here.
 *
 * A minor version only adds; a major one may change types and functions, and the shared library's name
 * changes with it (librevisit.so.1). revisit_version() of revisit.h is the version of the library that runs.
 */
#ifndef REVISIT_VERSION_H
#define REVISIT_VERSION_H

#define REVISIT_VERSION_MAJOR 1
#define REVISIT_VERSION_MINOR 0
#define REVISIT_VERSION_PATCH 0
#define REVISIT_VERSION_STRING "1.0.0"
/* 1.0.0 is 10000: for #if REVISIT_VERSION_NUMBER >= ... */
#define REVISIT_VERSION_NUMBER \
    (REVISIT_VERSION_MAJOR * 10000 + REVISIT_VERSION_MINOR * 100 + REVISIT_VERSION_PATCH)

#endif
