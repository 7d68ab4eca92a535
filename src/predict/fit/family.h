// One program at every size.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "predict/fit/polynomial.h"
#include "predict/run/interpret.h"
#include "predict/slice/slice.h"

namespace revisit::predict {

// A program whose sizes are macros is compiled anew for each size and differs only in its constants.
// Those are polynomials of the sizes (N - 1, 8 * N * M): a few compilations give all the others.
class ProgramFamily {
 public:
    // The same program at every size: sizes are arguments, not macros.
    explicit ProgramFamily(Program program) : base_(std::move(program)) {}

    // From programs compiled at `sizes`. Nothing when they differ in shape, when a constant is no
    // polynomial, or when the formulas do not give `check` at `check_size` constant for constant.
    static std::optional<ProgramFamily> interpolate(const std::vector<std::vector<std::int64_t>>& sizes,
                                                    const std::vector<Program>& programs,
                                                    const std::vector<std::int64_t>& check_size,
                                                    const Program& check);

    // Large fixed numbers in formulas (N - 100) get the values given for them (fixed_numbers.h).
    Program at(const std::vector<std::int64_t>& size, const Parameters& numbers = {}) const;
    const Program& base() const { return base_; }
    // Those numbers, and what is large in a formula and cannot be varied.
    const Parameters& numbers() const { return numbers_; }
    const std::vector<std::string>& left() const { return left_; }
    // No constant is a fraction of a size (N / 32): those hold for one divisor alone.
    bool whole() const;
    // The program with other constants wherever one of these sizes or large numbers is in them.
    Program marked(const std::vector<bool>& sizes, const std::set<std::string>& numbers) const;
    // The common denominator of the constants that have one of these sizes in them; 0 = none.
    std::int64_t denominator(const std::vector<bool>& sizes) const;

 private:
    struct Slot {
        std::size_t number;
        Polynomial value;
        std::vector<std::pair<std::size_t, std::int64_t>> large;  // term, coefficient
    };
    void look_at(Slot& slot);
    static bool uses(const Slot& slot, const std::vector<bool>& sizes);

    Program base_;
    Parameters numbers_;
    std::vector<std::string> left_;
    std::vector<Slot> slots_;
};

}  // namespace revisit::predict
