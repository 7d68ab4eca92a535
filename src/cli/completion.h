// What a shell offers after the words typed so far.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace revisit {

// One candidate per line, with a tab and what it means where that is known; ":files" and ":directories"
// ask the shell for names of files. `words`: those behind the program's name, the last one unfinished.
std::string complete(const CLI::App& app, const std::vector<std::string>& words);

// Scripts that ask the program itself (revisit --complete WORD…), so that they offer what it takes.
extern const char* const kBashCompletion;
extern const char* const kZshCompletion;
extern const char* const kFishCompletion;

}  // namespace revisit
