// Flags over the iterations of a loop: see loops.h.
//
// They are the two values that they were last set by, as if these had been compared; the carry apart,
// because some instructions leave it as it was.
#pragma once

#include "machine/affine.h"
#include "machine/ahead.h"

namespace revisit::machine {

struct AffineOperand {
    Form form;
    std::uint64_t value = 0;
};

class LoopFlags {
 public:
    // At operation `at`, flags `sets` are set; those in `valid` as if a had been compared with b.
    void compare(unsigned at, AffineOperand a, AffineOperand b, unsigned bytes, std::uint8_t valid,
                 std::uint8_t sets) {
        Set flags;
        flags.by = {a.form, b.form, a.value, b.value, 8 * bytes};
        flags.valid = valid;
        flags.is_still = a.form.is_still() && b.form.is_still();
        set(at, flags, sets);
    }
    // … to the same every time, or to what is not followed.
    void set_still(unsigned at, bool is_still, std::uint8_t sets) {
        Set flags;
        flags.is_still = is_still;
        set(at, flags, sets);
    }

    bool has_still_carry() const { return carry_.is_set && carry_.is_still; }
    // Whether what the condition depends on was set in this iteration; or half of it.
    bool is_set(Condition condition) const {
        std::uint8_t needs = condition.needs();
        return (!(needs & kCarry) || carry_.is_set) && (!(needs & ~kCarry) || rest_.is_set);
    }
    bool is_halfway(Condition condition) const {
        std::uint8_t needs = condition.needs();
        return needs & kCarry && needs & ~kCarry && (carry_.is_set || rest_.is_set);
    }

    // In how many iterations to come the condition is what it is now.
    std::uint64_t stays(Condition condition) const {
        using Order = Comparison::Order;
        std::uint8_t needs = condition.needs();
        if (needs == 0) return kMostIterations;
        if (!is_set(condition)) return 0;
        const Set& flags = needs == kCarry ? carry_ : rest_;
        bool is_still =
            (!(needs & kCarry) || carry_.is_still) && (!(needs & ~kCarry) || rest_.is_still);
        if (is_still) return kMostIterations;
        bool is_one = !(needs & kCarry) || !(needs & ~kCarry) || carry_.at == rest_.at;
        if (!is_one || (flags.valid & needs) != needs) return 0;
        if (condition.test == Test::overflow || condition.test == Test::parity) return 0;
        static constexpr Order kOrders[] = {Order::equal, Order::below,       Order::negative,
                                            {},           Order::below_equal, Order::below_equal,
                                            Order::less,  Order::less_equal};
        return flags.by.stays(kOrders[static_cast<unsigned>(condition.test)]);
    }

    // What they are after so many more iterations.
    template <class Arch>
    void apply(Known& known, std::uint64_t iterations) const {
        apply<Arch>(known, rest_, kAllFlags & ~kCarry, iterations);
        apply<Arch>(known, carry_, kCarry, iterations);
    }

 private:
    struct Set {  // what they were last set by
        Comparison by;
        std::uint8_t valid = 0;
        bool is_still = false;
        bool is_set = false;  // in this iteration
        unsigned at = 0;
    };

    void set(unsigned at, Set flags, std::uint8_t sets) {
        flags.is_set = true;
        flags.at = at;
        if (sets & ~kCarry) rest_ = flags;
        if (sets & kCarry) carry_ = flags;
    }

    template <class Arch>
    static void apply(Known& known, const Set& flags, std::uint8_t which, std::uint64_t iterations) {
        if (flags.is_set && flags.is_still) return;  // they are as they were
        auto valid = static_cast<std::uint8_t>(which & (flags.is_set ? flags.valid : 0));
        const Comparison& by = flags.by;
        if (!by.a.is_affine || !by.b.is_affine) valid = 0;
        unsigned bytes = by.bits / 8;
        std::uint64_t a = by.a_value + iterations * static_cast<std::uint64_t>(by.a.slope);
        std::uint64_t b = by.b_value + iterations * static_cast<std::uint64_t>(by.b.slope);
        known.set_flags(which, 0, false);
        if (valid != 0)
            known.set_flags(valid, difference_of<Arch>(cut(a, bytes), cut(b, bytes), 0, bytes).flags,
                            true);
    }

    Set carry_, rest_;
};

}  // namespace revisit::machine
