/* What the shared library shows: everything else in it is hidden. C and C++. */
#ifndef REVISIT_API_H
#define REVISIT_API_H

#define REVISIT_API __attribute__((visibility("default")))

#endif
