// Names of code that a process made at run time, as perf knows them: perf map files and jitdump.
//
// A perf map (/tmp/perf-PID.map) has one line per function: hexadecimal address, size, name. node
// (--perf-basic-prof), java (-XX:+DumpPerfMapAtExit), python3.12 (-X perf) and LuaJIT write one. A
// jitdump file (jit-PID.dump, mapped by its writer so that it is found) has source lines too. Code may
// be replaced: the last function at an address counts.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "revisit/profile.h"

namespace revisit {

class JitCode {
 public:
    // Both add to what is known; what is not of the format is passed over.
    void read_perf_map(std::string_view text);
    void read_jitdump(std::string_view bytes);
    // Of process `pid`; `jitdump` may be empty.
    static JitCode of_process(std::uint32_t pid, const std::string& jitdump);

    // The function there, with its line where that is known; an empty name where nothing is.
    Frame at(std::uint64_t address) const;
    bool empty() const { return functions_.empty(); }

 private:
    struct Line {
        std::uint64_t address;
        std::uint32_t number;
        std::string file;
    };
    struct Function {
        std::uint64_t end;
        std::string name;
        std::vector<Line> lines;
    };
    void add(std::uint64_t address, std::uint64_t bytes, std::string name, std::vector<Line> lines);
    std::map<std::uint64_t, Function> functions_;  // by address, without overlap
};

}  // namespace revisit
