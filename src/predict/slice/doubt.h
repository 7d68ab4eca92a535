// Why an answer is not called exact, as a value.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

namespace revisit::predict {

struct Doubt {
    enum class Kind : std::uint8_t {
        general,    // no formula, a check that failed: the sentence says it
        data,       // the data decides a branch
        recursion,  // calls in calls grow as no power of a size does
        bulk,       // a block of memory copied or filled at once: none by blocks
        outside,    // code that is not there: external and indirect calls
        place,      // where the compiler, the linker or the allocator puts something
        too_large,  // a count of more than 59 bits
        period,     // fits, but the samples do not follow a period the program has
        unproven,   // fits, but nothing shows that it must hold beyond the samples
    };

    Doubt(std::string text) : text(std::move(text)) {}
    Doubt(const char* text) : text(text) {}
    Doubt(Kind kind, std::uint32_t line, std::string text)
        : kind(kind), line(line), text(std::move(text)) {}

    std::string sentence() const {
        return line > 0 ? "line " + std::to_string(line) + ": " + text : text;
    }
    friend bool operator<(const Doubt& a, const Doubt& b) { return a.sentence() < b.sentence(); }
    friend bool operator==(const Doubt& a, const Doubt& b) { return a.sentence() == b.sentence(); }

    Kind kind = Kind::general;
    std::uint32_t line = 0;  // 0: of no line
    std::string text;
};

}  // namespace revisit::predict
