// Man pages and shell completions, out of the same declarations as --help.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "revisit/error.h"

namespace revisit {

// Writes man/man1/*.1, bash-completion/, zsh/ and fish/ files below `folder`.
Result<void> write_manuals(const CLI::App& app, const std::string& folder);

}  // namespace revisit
