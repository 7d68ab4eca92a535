// Errors are values. Nothing in the library prints, exits or throws across its edge: what can fail
// returns a Result, and the Error in it reads as one sentence a user can act on.
#pragma once

#include <expected>
#include <string>
#include <utility>

namespace revisit {

struct Error {
    std::string file;     // the input it is about; empty when there is none
    std::string place;    // "line 17", "byte 4096"; empty when unknown
    std::string message;  // what was expected and what was found

    // "trace.din: line 17: expected a label 0, 1 or 2, found "7""
    std::string sentence() const;
};

template <class T>
using Result = std::expected<T, Error>;

inline std::unexpected<Error> fail(std::string message) {
    return std::unexpected(Error{{}, {}, std::move(message)});
}
inline std::unexpected<Error> fail(std::string file, std::string place, std::string message) {
    return std::unexpected(Error{std::move(file), std::move(place), std::move(message)});
}

}  // namespace revisit
