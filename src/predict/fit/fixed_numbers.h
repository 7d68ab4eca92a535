// Numbers that stand in the source: what they can hide from small sizes, and what is done about it.
#pragma once

#include <string>
#include <vector>

#include "predict/fit/design.h"
#include "predict/run/interpret.h"
#include "predict/slice/slice.h"

namespace revisit::predict {

// From this magnitude on a number is a size like any other: too large for the samples to be small
// beside it, so it has to become smaller with them.
inline constexpr std::int64_t kLargeNumber = 13;
inline constexpr std::int64_t kSentinel = std::int64_t{1} << 30;  // limits of types and the like

// Periods that fixed numbers bring: what is divided by or masked with them, and steps of loops.
struct FixedPeriods {
    std::vector<std::int64_t> moduli;
    std::vector<std::int64_t> steps;
    std::vector<Doubt> left;  // operations on bits that have no short period, each a sentence
};
FixedPeriods fixed_periods(const Program& at_one_size, const Program& at_another);

// The largest of the small numbers that are added, compared with or lie between indices.
std::int64_t longest_small_shift(const Program& program);

// The name under which a fixed number is varied, and how people see it.
std::string name_of_number(std::int64_t number);
bool is_number(const std::string& name);
std::string shown(const std::string& name);
// "N=20, M=30", and of fixed numbers "100 as 12".
std::string sizes_text(const Parameters& sizes);

// Large fixed numbers turned into parameters of the program.
class VariedNumbers {
 public:
    VariedNumbers() = default;
    // What is large and the same in a program compiled at two sizes (or given twice). Tiles are
    // left alone: the samples are larger.
    VariedNumbers(const Program& target, const Program& at_another_size, const Pinned& pinned = {});

    const Parameters& numbers() const { return numbers_; }
    // Large numbers that stay as they are, each a sentence: no answer that has any is certain.
    const std::vector<Doubt>& left() const { return left_; }
    // Gives the numbers in a program of the same shape their values.
    void apply(Program& program, const Parameters& values) const;

 private:
    enum class Part : std::uint8_t { a, b, c, shift, offset, move, argument, value, which_case };
    struct Use {
        std::uint32_t function;
        Part part;
        std::uint32_t block;  // of an argument: the call
        std::uint32_t index;
        std::uint32_t edge;
        std::int64_t number;
    };
    void look_at(const Program& target, const Program& other, std::uint32_t function);
    bool large(std::int64_t number) const;
    void add(const Use& use);
    void leave(std::uint32_t line, const std::string& what, std::int64_t number);

    Pinned pinned_;
    Parameters numbers_;
    std::vector<Doubt> left_;
    std::vector<Use> uses_;
};

}  // namespace revisit::predict
