// The error of a called function, with what its caller knows; the code stays.
#pragma once

#include <string>
#include <utility>

#include "revisit/error.h"

namespace revisit {

inline unexpected<Error> in_file(std::string file, Error error) {
    error.file = std::move(file);
    return unexpected(std::move(error));
}

// The option that a value came from, as the library calls it.
inline unexpected<Error> about_option(std::string option, Error error) {
    error.place = std::move(option);
    if (error.code == ErrorCode::invalid_input) error.code = ErrorCode::option;
    return unexpected(std::move(error));
}

}  // namespace revisit
