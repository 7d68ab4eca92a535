// The value of a Result, or the end of the function with its error:
//     auto reader = TRY(open_trace(path));
//     TRY(reader->read(into));
// A statement expression (gcc and clang): standard C++ has no expression that returns from its
// function.
#pragma once

#include <utility>

#include "revisit/error.h"

namespace revisit::core {

template <class T>
T value_of(Result<T>&& result) {
    return std::move(*result);
}
inline void value_of(Result<void>&&) {}

}  // namespace revisit::core

#define TRY(expression)                                                                 \
    ({                                                                                  \
        auto try_result_ = (expression);                                                \
        if (!try_result_) return ::revisit::unexpected(std::move(try_result_).error()); \
        ::revisit::core::value_of(std::move(try_result_));                              \
    })
