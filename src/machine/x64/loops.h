// Loops of x86_64, many iterations at once: what a64/loops.h is for aarch64.
//
// One iteration is recorded, with the registers before each instruction and what it touched. Then it is
// gone through with forms (loops.h) instead of values, until those that registers begin with are those
// they end with. Sums, differences, copies, lea, and products and shifts by what does not change keep a
// plain form; 32-bit results do so until they wrap, which bounds the iterations; what is computed
// otherwise has one if nothing it comes of changes. Memory: what is read where no store of the loop
// comes to is the same every time, and what was stored before in the same iteration is what was stored.
// Flags are the two values they were last set by (the carry apart: inc and dec leave it). A branch on
// anything else forbids leaving out, and so does an instruction that is not named here; vector
// registers that were written are unknown afterwards. Cost. See a64/loops.h. Checked against a naive
// count on compiled loops in tests/machine_x64_loops_test.cpp.
#pragma once

#include <type_traits>

#include "machine/affine.h"
#include "machine/loop_finder.h"
#include "machine/replay_count.h"
#include "machine/touch_count.h"
#include "machine/x64/ahead.h"
#include "machine/x64/effects.h"

namespace revisit::machine {

class X64Loops {
 public:
    void start() { finder_.start(); }
    bool comes_round(std::uint64_t pc) { return finder_.comes_round(pc); }

    // As A64Loops's.
    template <class Memory, class End, class Take>
    SkippedLoop skip(X64Ahead<Memory>& ahead, X64State& state, Memory& memory, const End& end,
                     unsigned shift, Take take) {
        shift_ = shift;
        elsewhere_ = false;
        std::uint64_t most = record(ahead, state, end, take) ? iterations_alike(end) : 0;
        finder_.found(most, elsewhere_);
        if (most < 2 || !lose_stores(memory, most - 1, !kIsReplay<End>)) return {0, 0, length_};
        most--;
        for (unsigned r = 0; r < 16; r++)
            if (form_[r].is_plain)
                state.r[r] += most * static_cast<std::uint64_t>(form_[r].slope);
            else
                state.known &= ~(1u << r);
        for (unsigned v = 0; v < 32; v++)
            if (vectors_ >> v & 1) state.v_known[v] = 0;
        state.k_known = 0;
        set_flags(state, rest_, kAllFlags & ~kCarry, most);
        set_flags(state, carry_, kCarry, most);
        return {most * accesses_, most * length_, length_};
    }

 private:
    using Op = X64Instruction::Op;
    using Order = Comparison::Order;
    static constexpr unsigned kMostLength = 128;
    template <class End>
    static constexpr bool kIsReplay = std::is_same_v<End, ReplayEnd<X64State>>;

    struct Registers {
        std::uint64_t r[16];
        std::uint32_t known;
        std::uint8_t flags, flags_known;
        bool is_known(unsigned i) const { return known >> i & 1; }
    };
    struct Recorded {
        X64Instruction i;
        Registers before;
        x64::Value loaded;  // its operand in memory
        unsigned touches;
        Touched touch[2];
        bool ends_here;  // the replay may end after it, in another iteration
        // Found when going through it.
        Form where[2];  // what it touches
        Form stored;    // the last of these
    };
    struct Operand {
        Form form;
        std::uint64_t value = 0;
    };
    struct Flags {  // what they were last set by
        Comparison by;
        std::uint8_t valid = 0;  // those that are as if `by` had been compared
        bool is_still = false;   // or: the same every time
        bool is_set = false;     // in this iteration
        unsigned at = 0;
    };

    static Registers registers_of(const X64State& s) {
        Registers out;
        for (unsigned r = 0; r < 16; r++) out.r[r] = s.r[r];
        out.known = s.known;
        out.flags = s.flags;
        out.flags_known = s.flags_known;
        return out;
    }

    template <class Memory, class End, class Take>
    bool record(X64Ahead<Memory>& ahead, X64State& state, const End& end, Take take) {
        std::uint64_t head = state.pc;
        before_ = registers_of(state);
        length_ = 0;
        accesses_ = 0;
        vectors_ = 0;
        words_ = ahead.goes_by_words();
        bool can_end = false;
        do {
            if (length_ == kMostLength) return false;
            Recorded& one = record_[length_];
            if (!ahead.peek(one.i, one.loaded)) return false;
            one.before = registers_of(state);
            one.touches = 0;
            one.ends_here = false;
            length_++;
            bool wants_more = true;
            Step step = ahead.run(1, [&] {
                const Touched& op = ahead.touched();
                one.where[one.touches] = kStill;
                one.touch[one.touches++] = op;
                accesses_ += blocks_of(op, shift_);
                return wants_more = take();
            });
            if (step == Step::stop || !wants_more) return false;
            if constexpr (kIsReplay<End>) one.ends_here = one.touches > 0 && ahead.at() == end.pc;
            if (one.ends_here && can_end) return false;
            can_end |= one.ends_here;
        } while (state.pc != head);
        after_ = registers_of(state);
        return true;
    }

    // How many iterations from now on take the same way as the one recorded; not beyond the end.
    template <class End>
    std::uint64_t iterations_alike(const End& end) {
        constexpr unsigned kMostWalks = 40;
        Form head[16];
        for (unsigned r = 0; r < 16; r++) {
            head[r].is_plain = before_.is_known(r) && after_.is_known(r);
            head[r].slope = static_cast<std::int64_t>(after_.r[r] - before_.r[r]);
        }
        for (unsigned walks = 0; walks < kMostWalks; walks++) {
            for (unsigned r = 0; r < 16; r++) form_[r] = head[r];
            moved_ = false;
            bool understood = walk(end);
            if (!understood || most_ == 0) return 0;
            bool holds = !moved_;
            for (unsigned r = 0; r < 16; r++)
                if (head[r].is_plain && form_[r] != head[r]) {
                    head[r] = {};
                    holds = false;
                }
            if (holds) return most_;
        }
        return 0;
    }

    // Through the iteration once; the iterations alike are in most_. False = none.
    template <class End>
    bool walk(const End& end) {
        most_ = kMostIterations;
        carry_ = rest_ = {};
        earlier_ = 0;
        std::uint32_t lost = 0;  // registers that will not be known, the first time round after it
        for (unsigned r = 0; r < 16; r++)
            if (!form_[r].is_plain) lost |= 1u << r;
        bool flags_lost = true;
        for (at_ = 0; at_ < length_ && most_ > 0; at_++) {
            Recorded& one = record_[at_];
            effects_ = x64::effects_of(one.i);
            if (!effects_.understood) return false;
            if (lost & effects_.addresses) {
                elsewhere_ = true;
                return false;
            }
            bool loses = lost & effects_.reads || (flags_lost && effects_.reads_flags) ||
                         effects_.writes_unknown;
            lost = loses ? lost | effects_.writes : lost & ~effects_.writes;
            if (effects_.writes_flags) flags_lost = loses;
            vectors_ |= effects_.vectors;
            if (!touches_alike(one) || !execute(one)) return false;
            if constexpr (kIsReplay<End>) {
                if (one.ends_here) most_ = fewer(most_, before_end(end, one));
            } else
                for (unsigned t = 0; t < one.touches; t++)
                    most_ = fewer(most_, before_touch(end.block, shift_, one.touch[t].address, 1,
                                                      one.touch[t].bytes, one.where[t]));
        }
        for (unsigned k = 0; k < earlier_; k++) {
            bool before, after;
            if (!holds(condition_[k], before_, before) || !holds(condition_[k], after_, after) ||
                before != after)
                return false;
            most_ = fewer(most_, stays(condition_[k]) + 1);
        }
        return true;
    }

    // Operands and results.

    std::uint64_t after(unsigned r) const {
        return at_ + 1 < length_ ? record_[at_ + 1].before.r[r] : after_.r[r];
    }
    bool is_known_after(unsigned r) const {
        return (at_ + 1 < length_ ? record_[at_ + 1].before : after_).is_known(r);
    }
    Form form(unsigned r) const { return record_[at_].before.is_known(r) ? form_[r] : Form{}; }

    Operand get(unsigned r, unsigned bytes, bool is_high = false) const {
        std::uint64_t value = record_[at_].before.r[r];
        if (is_high) return {form(r).is_still() ? kStill : Form{}, value >> 8 & 0xff};
        return {form(r), value & x64::mask(bytes)};
    }
    void put(unsigned r, Form form, unsigned bytes, bool is_high = false) {
        if (!is_known_after(r)) form = {};
        if (bytes < 4 || is_high) form = form.is_still() && this->form(r).is_still() ? kStill : Form{};
        if (bytes == 4) form = narrowed({form, after(r)}, 32, false);
        form_[r] = form;
    }
    // As long as it does not wrap; where that is soon it is of no use.
    Form narrowed(Operand operand, unsigned bits, bool is_signed) {
        if (!operand.form.is_plain) return {};
        auto slope = static_cast<std::int64_t>(
            low_bits(static_cast<std::uint64_t>(operand.form.slope), bits, true));
        return bounded({true, slope}, stays_within(operand.value, slope, bits, is_signed));
    }
    Form bounded(Form form, std::uint64_t iterations) {
        if (iterations < LoopFinder::kFew) return {};
        most_ = fewer(most_, iterations);
        return form;
    }
    Operand read_rm(const Recorded& one, unsigned bytes) {
        const X64Instruction& i = one.i;
        if (!i.has_memory) return get(i.rm, bytes, i.rm_is_high);
        return {one.loaded.known ? loaded(one, 0) : Form{}, one.loaded.bits & x64::mask(bytes)};
    }
    void write_rm(Recorded& one, Form form) {
        const X64Instruction& i = one.i;
        if (i.has_memory)
            one.stored = form;
        else
            put(i.rm, form, i.bytes, i.rm_is_high);
    }
    static Operand constant(const X64Instruction& i) {
        return {kStill, static_cast<std::uint64_t>(i.immediate)};
    }

    // Memory.

    Form address_of(const X64Instruction& i) const {
        Form out = kStill;
        if (i.base < 16) out = out + form(i.base);
        if (i.index < 16) out = out + form(i.index) * i.scale;
        return out;
    }
    Form address_of(const Recorded& one, unsigned touch) const {
        const X64Instruction& i = one.i;
        switch (i.op) {
            case Op::push:
            case Op::call:
            case Op::call_indirect:
                return touch + 1 == one.touches ? form(4) : address_of(i);
            case Op::pop:
            case Op::ret:
                return form(4);
            case Op::leave:
                return form(5);
            case Op::string_move:
                return form(touch == 0 ? 6 : 7);
            case Op::string_load:
                return form(6);
            case Op::string_store:
                return form(7);
            default:
                return address_of(i);
        }
    }

    // Whether it is as many blocks every time: steps of whole blocks, or pieces that stay within one.
    // What has an address that is not plain, and is aligned, is taken to be so always.
    bool touches_alike(Recorded& one) {
        for (unsigned t = 0; t < one.touches; t++) {
            const Touched& op = one.touch[t];
            Form where = address_of(one, t);
            if (where != one.where[t]) moved_ = true;
            one.where[t] = where;
            std::uint64_t block = std::uint64_t{1} << shift_, bytes = op.bytes;
            auto slope = static_cast<std::uint64_t>(where.slope);
            bool is_power = (bytes & (bytes - 1)) == 0;
            if (where.is_plain && slope % block == 0) continue;
            std::uint64_t piece = bytes < block ? bytes : block;
            if (!is_power || op.address % piece != 0 || (where.is_plain && slope % piece != 0))
                return false;
        }
        one.stored = {};
        return true;
    }

    // In how many iterations a store does not come to a place that stays where it is.
    static std::uint64_t before_store(const Touched& store, Form where, const Touched& load) {
        Long128 slope = where.slope, from = static_cast<std::int64_t>(store.address - load.address);
        if (from < load.bytes && from + store.bytes > 0) return 0;
        if (slope == 0 || (slope > 0) == (from > 0)) return kMostIterations;
        Long128 way = slope > 0 ? -from - store.bytes : from - load.bytes;
        Long128 times = way / (slope > 0 ? slope : -slope);
        return times < Long128{kMostIterations} ? static_cast<std::uint64_t>(times) : kMostIterations;
    }

    // What is loaded by this touch: that of the last store in this iteration, or, where none comes
    // there, what it always is.
    Form loaded(const Recorded& one, unsigned touch) {
        const Touched& load = one.touch[touch];
        Form where = one.where[touch];
        if (!where.is_plain) return {};
        std::uint64_t iterations = kMostIterations;
        for (unsigned k = 0; k < length_; k++) {
            unsigned from = at_ + length_ - 1 - k;  // backwards, and around
            bool is_before = from >= length_;
            const Recorded& other = record_[is_before ? from - length_ : from];
            if (!is_before && !where.is_still()) return {};
            if (other.touches == 0) continue;
            const Touched& store = other.touch[other.touches - 1];
            Form to = other.where[other.touches - 1];
            if (!store.writes) continue;
            if (!to.is_plain) return {};
            if (to.slope == where.slope) {
                bool is_same = store.address == load.address && store.bytes == load.bytes;
                if (is_same && is_before) return bounded(other.stored, iterations);
                if (before_store(store, kStill, load) != 0) continue;
                if (is_same && &other != &one) elsewhere_ = true;  // stored in the iteration before
                return {};
            }
            if (!where.is_still()) return {};
            iterations = fewer(iterations, before_store(store, to, load));
        }
        return where.is_still() ? bounded(kStill, iterations) : Form{};
    }

    // What the iterations left out store in one place is not known, unless it is always the same.
    // Elsewhere a replay reads memory as the program has left it; looking ahead that is not known
    // either.
    template <class Memory>
    bool lose_stores(Memory& memory, std::uint64_t iterations, bool everywhere) {
        for (unsigned k = 0; k < length_; k++) {
            const Recorded& one = record_[k];
            if (one.touches == 0) continue;
            const Touched& op = one.touch[one.touches - 1];
            Form where = one.where[one.touches - 1];
            if (!op.writes || (where.is_still() && one.stored.is_still())) continue;
            if (!where.is_still()) {
                if constexpr (requires { memory.lose(op.address, op.address); }) {
                    AddressRange lost(op.address, op.bytes, where.slope, iterations);
                    if (everywhere) memory.lose(lost.low, lost.high);
                } else if (everywhere)
                    return false;
                continue;
            }
            for (unsigned at = 0; at < op.bytes; at += 8)
                if (!memory.store(op.address + at, op.bytes - at < 8 ? op.bytes - at : 8, 0, false))
                    return false;
        }
        return true;
    }

    // Flags.

    void compare(Operand a, Operand b, unsigned bytes, std::uint8_t valid, bool sets_carry = true) {
        Flags flags;
        flags.by = {a.form, b.form, a.value, b.value, 8 * bytes};
        flags.valid = valid;
        flags.is_still = a.form.is_still() && b.form.is_still();
        set(flags, sets_carry);
    }
    void set(Flags flags, bool sets_carry = true) {
        flags.is_set = true;
        flags.at = at_;
        rest_ = flags;
        if (sets_carry) carry_ = flags;
    }
    void set_flags_still(bool is_still) {
        Flags flags;
        flags.is_still = is_still;
        set(flags);
    }

    static std::uint8_t needed_by(unsigned condition) {
        static constexpr std::uint8_t kNeeds[8] = {kOverflow,
                                                   kCarry,
                                                   kZero,
                                                   kCarry | kZero,
                                                   kSign,
                                                   kParity,
                                                   kSign | kOverflow,
                                                   kSign | kOverflow | kZero};
        return kNeeds[condition >> 1];
    }
    static bool holds(unsigned condition, const Registers& registers, bool& holds) {
        X64State state;
        state.flags = registers.flags;
        state.flags_known = registers.flags_known;
        return x64::Registers(state).condition(condition, holds);
    }
    // Whether what the condition depends on was set in this iteration.
    bool is_set(unsigned condition) const {
        std::uint8_t needs = needed_by(condition);
        return (!(needs & kCarry) || carry_.is_set) && (!(needs & ~kCarry) || rest_.is_set);
    }
    // In how many iterations to come the condition is what it is now.
    std::uint64_t stays(unsigned condition) const {
        static constexpr Order kOrders[8] = {Order::equal,       Order::below,     Order::equal,
                                             Order::below_equal, Order::negative,  Order::equal,
                                             Order::less,        Order::less_equal};
        std::uint8_t needs = needed_by(condition);
        if (!is_set(condition)) return 0;
        const Flags& flags = needs == kCarry ? carry_ : rest_;
        bool is_still =
            (!(needs & kCarry) || carry_.is_still) && (!(needs & ~kCarry) || rest_.is_still);
        if (is_still) return kMostIterations;
        bool is_one = !(needs & kCarry) || !(needs & ~kCarry) || carry_.at == rest_.at;
        bool can_tell = condition >> 1 != 0 && condition >> 1 != 5;
        if (!is_one || !can_tell || (flags.valid & needs) != needs) return 0;
        return flags.by.stays(kOrders[condition >> 1]);
    }

    // After so many more iterations.
    static void set_flags(X64State& state, const Flags& flags, std::uint8_t which,
                          std::uint64_t iterations) {
        if (flags.is_set && flags.is_still) return;  // they are as they were
        auto valid = static_cast<std::uint8_t>(which & (flags.is_set ? flags.valid : 0));
        const Comparison& by = flags.by;
        if (!by.a.is_plain || !by.b.is_plain) valid = 0;
        x64::Value a{by.a_value + iterations * static_cast<std::uint64_t>(by.a.slope), true};
        x64::Value b{by.b_value + iterations * static_cast<std::uint64_t>(by.b.slope), true};
        x64::Registers registers(state);
        registers.set_flags(which, 0, false);
        if (valid != 0) registers.add(a, b, 1, by.bits / 8, true, valid);
    }

    // Instructions.

    bool alu(Recorded& one) {
        const X64Instruction& i = one.i;
        Operand a = read_rm(one, i.bytes),
                b = i.has_immediate ? constant(i) : get(i.reg, i.bytes, i.reg_is_high);
        b.value &= x64::mask(i.bytes);
        bool same = !i.has_immediate && !i.has_memory && i.reg == i.rm && i.reg_is_high == i.rm_is_high;
        if (i.to_reg) std::swap(a, b);
        bool is_still = a.form.is_still() && b.form.is_still();
        Form result;
        switch (i.sub) {
            case 0: {
                result = a.form + b.form;
                if (a.form.is_still()) std::swap(a, b);
                std::uint64_t lowest = std::uint64_t{1} << (8 * i.bytes - 1);
                if (is_still)
                    set_flags_still(true);
                else if (b.form.is_still() && b.value != lowest)  // as if less its negative
                    compare(a, {kStill, (0 - b.value) & x64::mask(i.bytes)}, i.bytes,
                            kAllFlags & ~kCarry);
                else
                    compare({result, a.value + b.value}, {kStill, 0}, i.bytes, kZero | kSign | kParity);
                break;
            }
            case 2:
            case 3:
                is_still &= carry_.is_set && carry_.is_still;
                result = is_still ? kStill : Form{};
                set_flags_still(is_still);
                break;
            case 5:
            case 7:
                if (same) a = b = {kStill, 0};
                result = a.form - b.form;
                compare(a, b, i.bytes, kAllFlags);
                if (i.sub == 7) return true;
                break;
            default:  // or and xor
                if (same && i.sub == 6) a = b = {kStill, 0};
                if (same && i.sub != 6)
                    result = a.form;
                else
                    result = a.form.is_still() && b.form.is_still() ? kStill : Form{};
                if (same)
                    compare(a, {kStill, 0}, i.bytes, kAllFlags);
                else
                    set_flags_still(is_still);
        }
        if (i.to_reg)
            put(i.reg, result, i.bytes, i.reg_is_high);
        else
            write_rm(one, result);
        return true;
    }

    // The way it went, for as long as the condition stays what it is. Flags of the iteration before are
    // looked at when this one is through.
    bool branch(unsigned condition) {
        constexpr std::uint8_t kBoth = kCarry | kZero;
        if (is_set(condition)) {
            most_ = fewer(most_, stays(condition));
            return true;
        }
        bool halfway = needed_by(condition) == kBoth && (carry_.is_set || rest_.is_set);
        if (halfway || earlier_ == kMostEarlier) return false;
        condition_[earlier_++] = static_cast<std::uint8_t>(condition);
        return true;
    }

    // True where nothing that a result comes of changes.
    bool is_all_still(const Recorded& one) {
        for (unsigned r = 0; r < 16; r++)
            if (effects_.reads >> r & 1 && !form(r).is_still()) return false;
        if (effects_.reads_flags || effects_.writes_unknown) return false;
        return !one.i.has_memory || !one.i.reads || (one.loaded.known && loaded(one, 0).is_still());
    }

    bool execute(Recorded& one) {
        const X64Instruction& i = one.i;
        switch (i.op) {
            case Op::nop:
            case Op::jump:
                return true;
            case Op::alu:
                return alu(one);
            case Op::test: {
                Operand a = read_rm(one, i.bytes),
                        b = i.has_immediate ? constant(i) : get(i.reg, i.bytes, i.reg_is_high);
                bool same =
                    !i.has_immediate && !i.has_memory && i.reg == i.rm && i.reg_is_high == i.rm_is_high;
                if (same)
                    compare(a, {kStill, 0}, i.bytes, kAllFlags);
                else
                    set_flags_still(a.form.is_still() && b.form.is_still());
                return true;
            }
            case Op::mov:
                if (i.to_reg)
                    put(i.reg, read_rm(one, i.bytes).form, i.bytes, i.reg_is_high);
                else
                    write_rm(one, i.has_immediate ? kStill : get(i.reg, i.bytes, i.reg_is_high).form);
                return true;
            case Op::lea:
                put(i.reg, address_of(i), i.bytes);
                return true;
            case Op::zero_extend:
            case Op::sign_extend:
                put(i.reg, narrowed(read_rm(one, i.from), 8u * i.from, i.op == Op::sign_extend),
                    i.bytes);
                return true;
            case Op::extend_a:
                put(0, narrowed(get(0, i.bytes / 2), 4u * i.bytes, true), i.bytes);
                return true;
            case Op::push:
                one.stored = i.has_immediate ? kStill : read_rm(one, 8).form;
                return true;
            case Op::pop:
                put(i.rm, loaded(one, 0), 8);
                return true;
            case Op::call:
                one.stored = kStill;
                return true;
            case Op::call_indirect:
            case Op::jump_indirect:
                if (!read_rm(one, 8).form.is_still()) return false;
                if (i.op == Op::call_indirect) one.stored = kStill;
                return true;
            case Op::ret:
                return loaded(one, 0).is_still();
            case Op::leave: {
                Form frame = form(5), value = loaded(one, 0);
                put(5, value, 8);
                form_[4] = frame;
                return true;
            }
            case Op::jump_if:
                return branch(i.sub);
            case Op::jump_if_count: {
                if (i.sub < 2) return false;
                most_ = fewer(most_, stays_zero_or_not(form(1), after(1)));
                return true;
            }
            case Op::increment:
            case Op::decrement: {
                Operand a = read_rm(one, i.bytes);
                std::uint64_t by = i.op == Op::decrement ? 1 : x64::mask(i.bytes);
                compare(a, {kStill, by}, i.bytes, kAllFlags & ~kCarry, false);
                write_rm(one, a.form);
                return true;
            }
            case Op::negate: {
                Operand a = read_rm(one, i.bytes);
                compare({kStill, 0}, a, i.bytes, kAllFlags);
                write_rm(one, kStill - a.form);
                return true;
            }
            case Op::invert:
                write_rm(one, kStill - read_rm(one, i.bytes).form);
                return true;
            case Op::multiply: {
                Operand a = read_rm(one, i.bytes),
                        b = i.has_immediate ? constant(i) : get(i.reg, i.bytes);
                bool is_still = a.form.is_still() && b.form.is_still();
                if (a.form.is_still()) std::swap(a, b);
                put(i.reg, b.form.is_still() ? a.form * b.value : Form{}, i.bytes);
                set_flags_still(is_still);
                return true;
            }
            case Op::shift: {
                Operand a = read_rm(one, i.bytes), by = i.has_immediate ? constant(i) : get(1, 1);
                unsigned count = by.value & (i.bytes == 8 ? 63 : 31);
                if (!by.form.is_still()) {
                    write_rm(one, {});
                    set_flags_still(false);
                    return true;
                }
                if (count == 0) {
                    if (i.has_memory) one.stored = a.form;
                    return true;
                }
                bool is_left = i.sub == 4 || i.sub == 6, is_still = a.form.is_still();
                Form result = is_still  ? kStill
                              : is_left ? a.form * (std::uint64_t{1} << count)
                                        : Form{};
                write_rm(one, result);
                set_flags_still(is_still && i.sub >= 4);
                return true;
            }
            case Op::set:
            case Op::move_if: {
                std::uint64_t iterations = stays(i.sub);
                Form result;
                if (i.op == Op::set)
                    result = kStill;
                else {
                    bool chosen = false;
                    Operand value = read_rm(one, i.bytes);
                    if (holds(i.sub, one.before, chosen))
                        result = chosen ? value.form : get(i.reg, i.bytes).form;
                }
                result = bounded(result, iterations);
                if (i.op == Op::set)
                    write_rm(one, result);
                else
                    put(i.reg, result, i.bytes);
                return true;
            }
            case Op::exchange: {
                if (i.has_memory) return false;
                Form a = get(i.rm, i.bytes, i.rm_is_high).form,
                     b = get(i.reg, i.bytes, i.reg_is_high).form;
                put(i.rm, b, i.bytes, i.rm_is_high);
                put(i.reg, a, i.bytes, i.reg_is_high);
                return true;
            }
            case Op::string_move:
            case Op::string_store:
            case Op::string_load:
                return string(one);
            default:
                return others(one);
        }
    }

    // The same unless something changes that it comes of.
    bool others(Recorded& one) {
        const X64Instruction& i = one.i;
        bool is_still = effects_.writes != 0 || effects_.writes_flags || (i.has_memory && i.writes)
                            ? is_all_still(one)
                            : false;
        for (unsigned r = 0; r < 16; r++)
            if (effects_.writes >> r & 1) form_[r] = is_still && is_known_after(r) ? kStill : Form{};
        if (i.has_memory && i.writes) one.stored = is_still ? kStill : Form{};
        if (effects_.writes_flags) {  // those it leaves as they are, too
            bool all = is_still && carry_.is_set && carry_.is_still && rest_.is_set && rest_.is_still;
            set_flags_still(all);
        }
        return true;
    }

    static std::uint64_t stays_zero_or_not(Form form, std::uint64_t value) {
        return Comparison{form, kStill, value, 0, 64}.stays(Order::equal);
    }

    bool string(Recorded& one) {
        const X64Instruction& i = one.i;
        if (i.op == Op::string_load) put(0, {}, i.bytes);
        if (i.sub == 0) return true;
        if (one.touches == 0) return form(1).is_still();
        most_ = fewer(most_, fewer(stays_zero_or_not(form(1), one.before.r[1]),
                                   stays_zero_or_not(form(1), after(1))));
        if (!words_ || i.bytes == 8 || i.op == Op::string_load) return true;
        // As many elements every time: the same place in a word, the same way from the source, and no
        // fewer left than those.
        std::uint64_t count = one.before.r[1], elements = count - after(1);
        Form to = form(7), way = i.op == Op::string_move ? to - form(6) : kStill;
        if (!to.is_plain || to.slope % 8 != 0 || !way.is_still()) return false;
        most_ = fewer(most_, Comparison{form(1), kStill, count, 8u / i.bytes, 64}.stays(Order::below));
        most_ = fewer(most_, Comparison{form(1), kStill, count, elements, 64}.stays(Order::below));
        return count >= 8u / i.bytes || form(1).is_still();
    }

    // The state after this access, in some iteration to come, may be that of the end: how many come
    // before.
    std::uint64_t before_end(const ReplayEnd<X64State>& end, const Recorded& one) const {
        Meeting meeting;
        meeting.wants(one.touch[0].address, one.where[0], end.address);
        for (unsigned r = 0; r < 16; r++)
            if (is_known_after(r) && end.state.is_known(r))
                meeting.wants(after(r), form_[r], end.state.r[r]);
        return meeting.before();
    }

    static constexpr unsigned kMostEarlier = 4;

    LoopFinder finder_;
    Recorded record_[kMostLength];
    unsigned length_ = 0, at_ = 0, shift_ = 3;
    std::uint64_t accesses_ = 0, most_ = 0;
    std::uint32_t vectors_ = 0;
    bool elsewhere_ = false, moved_ = false, words_ = false;
    Registers before_, after_;
    Form form_[16];
    Flags carry_, rest_;
    x64::Effects effects_;
    std::uint8_t condition_[kMostEarlier] = {};
    unsigned earlier_ = 0;
};

}  // namespace revisit::machine
