// The whole program.
#pragma once

namespace revisit {

// Runs the command that the arguments name; the exit status.
int run_program(int argc, char** argv);

}  // namespace revisit
