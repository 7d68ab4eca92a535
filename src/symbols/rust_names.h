// Names of Rust's functions as its programmers write them.
#pragma once

#include <string>
#include <string_view>

namespace revisit {

// A symbol in Rust's own mangling (_R…), without the numbers of its crates. Empty: it is none.
std::string rust_name(std::string_view symbol);

// What C++'s demangler makes of a symbol in Rust's older mangling (_ZN…17h0123456789abcdefE) has a hash
// at its end and punctuation spelled out: without these. Other names stay as they are.
std::string plain_rust_name(std::string_view symbol, std::string name);

}  // namespace revisit
