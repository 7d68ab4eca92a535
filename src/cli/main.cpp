// The program, whose parts are an archive (CMakeLists.txt says why).
#include "cli/program.h"

int main(int argc, char** argv) { return revisit::run_program(argc, argv); }
