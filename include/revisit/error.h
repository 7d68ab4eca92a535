// Errors are values. Nothing in the library prints, exits or throws across its edge: what can fail
// returns a Result, and the Error in it reads as one sentence a user can act on.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "revisit/api.h"
#include "revisit/expected.h"

namespace revisit {

// What a program can act on; the sentence is for people.
enum class ErrorCode : std::uint8_t {
    invalid_input,     // a file, a number or an argument is not what was expected
    unknown_format,    // a trace does not reveal its format, or the format named does not exist
    unknown_method,    // there is no engine of that name
    unsupported,       // this combination of method, model, device and options does not exist
    not_built,         // needs a library that this build was made without
    no_memory,         // more memory than there is
    no_threads,        // cannot be counted on several threads; one can
    io,                // the system could not open, read or write a file
    device,            // no GPU, or one that failed
    device_memory,     // more memory than the GPU has
    cluster,           // MPI did not do what was asked
    option,            // an option of the call does not fit; `place` names it: "data idx=columns.txt"
    no_cache,          // needs a cache, and this system does not describe its own
    no_sites,          // the profile has no sites
    no_phases,         // the profile has no phases
    no_sharing,        // the profile has no data on lines that threads invalidate
    no_function,       // the source defines several functions, and none is chosen
    no_size,           // a size is needed that the source leaves open
    no_data,           // the contents of an array are needed that the source leaves open
    no_formulas,       // formulas cannot be found; the run can be interpreted
    not_recordable,    // the recorder cannot run this program; it can be sampled
    not_sampling,      // the program was built to record, not to sample
    not_instrumented,  // no program of the run was built with the compiler plug-in
};

struct REVISIT_API Error {
    std::string file;     // the input it is about; empty when there is none
    std::string place;    // "line 17", "byte 4096"; empty when unknown
    std::string message;  // what was expected and what was found
    ErrorCode code = ErrorCode::invalid_input;

    // "trace.din: line 17: expected a label 0, 1 or 2, found "7""
    std::string sentence() const;
};

template <class T>
using Result = expected<T, Error>;

inline unexpected<Error> fail(std::string message) {
    return unexpected(Error{{}, {}, std::move(message)});
}
inline unexpected<Error> fail(std::string file, std::string place, std::string message) {
    return unexpected(Error{std::move(file), std::move(place), std::move(message)});
}
inline unexpected<Error> fail(ErrorCode code, std::string message) {
    return unexpected(Error{{}, {}, std::move(message), code});
}
inline unexpected<Error> fail(ErrorCode code, std::string file, std::string place,
                              std::string message) {
    return unexpected(Error{std::move(file), std::move(place), std::move(message), code});
}

}  // namespace revisit
