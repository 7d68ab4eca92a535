// One program at every size.
#pragma once

#include <optional>
#include <vector>

#include "predict/polynomial.h"
#include "predict/slice.h"

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

    Program at(const std::vector<std::int64_t>& size) const;
    const Program& base() const { return base_; }

 private:
    struct Slot {
        std::size_t number;
        Polynomial value;
    };
    Program base_;
    std::vector<Slot> slots_;
};

// Constants that may hide a change of behaviour from small sizes: what is compared with, divided by or
// masked with a fixed number. Marks the comparisons (Instruction::imm > 0) so that the machine can tell
// whether both outcomes occurred, and lists the moduli.
struct FixedNumbers {
    std::vector<std::int64_t> moduli;
    struct Watched {
        std::uint32_t line = 0;
        std::int64_t number = 0;
    };
    std::vector<Watched> watched;  // Instruction::imm - 1
};
FixedNumbers mark_fixed_numbers(Program& at_one_size, const Program& at_another);

}  // namespace revisit::predict
