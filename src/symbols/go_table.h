// The table by which a Go program names its own functions and lines (.gopclntab), stripped or not.
//
// Every Go program has it, for its stack traces: `go run` and builds with -ldflags "-s -w" have nothing
// else. It begins with a header; then come names, compilation units, files, deltas of files and lines
// by program counter, and for each function where its own of these are. Of Go 1.18 and later.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "symbols/functions.h"

namespace revisit {

class GoTable {
 public:
    GoTable() = default;
    // The section's bytes, which are to stay there, and the address of .text.
    GoTable(std::span<const std::uint8_t> section, std::uint64_t text);

    bool is_there() const { return count_ > 0; }
    std::vector<FunctionSymbol> functions() const;

    struct Line {
        std::string_view file;
        std::uint32_t line = 0;  // 0: not known
    };
    Line line_at(std::uint64_t address) const;

 private:
    std::uint64_t number(std::uint64_t at, unsigned bytes) const;  // 0 beyond the end
    std::string_view text(std::uint64_t at) const;
    std::uint64_t entry(std::uint64_t index) const;
    std::int64_t value_at(std::uint64_t deltas, std::uint64_t from, std::uint64_t address) const;

    std::span<const std::uint8_t> section_;
    std::uint64_t count_ = 0, text_ = 0, smallest_ = 1;  // smallest_: bytes of an instruction
    std::uint64_t names_ = 0, units_ = 0, files_ = 0, deltas_ = 0, functions_ = 0;
};

}  // namespace revisit
