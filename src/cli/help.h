// --help and --help-all.
//
// --help fits a screen: the options that most runs use, one line each with the default, and three
// examples. --help-all and the man pages have every option with its explanation.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

namespace revisit {

std::shared_ptr<CLI::FormatterBase> help_formatter();

// "-o,--output FILE"
std::string option_name(const CLI::Option& option);

// The description with the default at its end. Its first line is all that --help shows.
std::string option_text(const CLI::Option& option);

}  // namespace revisit
