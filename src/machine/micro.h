// Micro-operations: what instructions of any architecture are made of.
//
// Problem. Three readers must know what an instruction does: the look-ahead executes it, the skipping
// of loops proves what it does in every iteration, and finding the instruction that touched a word
// undoes it. Written three times per architecture, they disagree. Idea. Each architecture has one
// translator (a64/lift.cpp, x64/lift.cpp) into the few operations below, on slots: the registers of the
// machine, a zero, four temporaries. What an operation computes is one function of bits (compute.h).
// Everything else follows from its operands: a value is known if its operands are (ahead.h), affine in
// the iteration if they are and the operation keeps that form (loops.h), read or written if it is named
// (reads(), writes()).
//
//     ldr  x3, [x1, x2, lsl #3]     load      d=x3, [x1 + (x2 << 3) + 0], 8 bytes
//     subs w0, w0, #1               subtract  d=w0, x0 - ((zero << 0) + 1), 4 bytes, sets N Z C V
//     b.ne loop                     jump_if   not equal, to `loop`
//     add  [rdi + 8], eax           load t0; add t0 = t0 + rax, 4 bytes, sets flags; store t0
//
// The second operand is always (b << shift) + immediate: an index, an immediate or a register alone
// need no operations of their own, and an address is a + that. An instruction is one to eight of them;
// lifted once, they are kept by address (LiftTable). Checked against the processor, one instruction at
// a time (tests/machine_a64_test.cpp, tests/watched/x64_steps.cpp).
#pragma once

#include <cstdint>
#include <memory>

namespace revisit::machine {

// Slots beyond the machine's own registers (0 to 31).
inline constexpr std::uint8_t kZeroSlot = 32, kDiscard = 33, kTemporary = 34, kThreadPointer = 38,
                              kDirection = 39,  // of strings: 1 or -1
    kSlots = 40;

// Flags, as bits.
inline constexpr std::uint8_t kOverflow = 1, kCarry = 2, kZero = 4, kSign = 8, kParity = 16,
                              kAllFlags = 31;

// What flags say; odd = not so. After a subtraction the first seven order its operands.
enum class Test : std::uint8_t {
    equal,
    carry,
    negative,
    overflow,
    carry_or_zero,
    borrow_or_zero,  // where a subtraction clears the carry to borrow
    less,
    less_equal,
    parity,
    always,
};
struct Condition {
    Test test = Test::always;
    bool negated = false;

    constexpr std::uint8_t needs() const {
        constexpr std::uint8_t kNeeds[] = {kZero,
                                           kCarry,
                                           kSign,
                                           kOverflow,
                                           kCarry | kZero,
                                           kCarry | kZero,
                                           kSign | kOverflow,
                                           kSign | kOverflow | kZero,
                                           kParity,
                                           0};
        return kNeeds[static_cast<unsigned>(test)];
    }
    constexpr bool holds(std::uint8_t flags) const {
        bool n = flags & kSign, z = flags & kZero, c = flags & kCarry, v = flags & kOverflow, is = true;
        switch (test) {
            case Test::equal:
                is = z;
                break;
            case Test::carry:
                is = c;
                break;
            case Test::negative:
                is = n;
                break;
            case Test::overflow:
                is = v;
                break;
            case Test::carry_or_zero:
                is = c || z;
                break;
            case Test::borrow_or_zero:
                is = !c || z;
                break;
            case Test::less:
                is = n != v;
                break;
            case Test::less_equal:
                is = n != v || z;
                break;
            case Test::parity:
                is = flags & kParity;
                break;
            case Test::always:
                break;
        }
        return is != negated;
    }
};

struct Micro {
    enum class Op : std::uint8_t {
        // Values: d = a op ((b << shift) + immediate), of `bytes`; above them zeros.
        add,
        subtract,
        add_carry,
        subtract_carry,
        bit_and,
        bit_or,
        bit_xor,
        and_not,
        or_not,
        xor_not,
        multiply,
        multiply_high,
        multiply_high_signed,
        divide,
        divide_signed,
        shift_left,  // by less than the width
        shift_right,
        shift_signed,
        rotate_right,
        field,         // a << (b & 63) >> (b >> 8)
        signed_field,  // the same, with the sign
        leading_zeros,
        leading_signs,
        reverse_bits,
        reverse_bytes,  // of every b bytes
        min,
        max,
        min_signed,
        max_signed,
        equal,      // 1 or 0
        select,     // by the condition the second operand, else a
        choose,     // c != 0: the second operand, else a
        insert,     // a, of which the low `bytes` become the second operand's
        own,        // what only this architecture computes, of a, b and c: see its own()
        get_flags,  // as N Z C V in bits 31 to 28
        forget,     // not followed from here on
        // Flags alone.
        set_flags,         // from a
        compare_if,        // by the condition those of a - b, else the immediate's low four bits
        compare_if_added,  // … of a + b
        forget_flags,
        // Memory at a + (b << shift) + immediate: `pieces` of `bytes`, d and c.
        load,
        store,
        store_unknown,
        store_zeros,
        load_sized,  // as many bytes as slot c says
        store_sized,
        vector_load,
        vector_store,
        // Control: a jump that is taken ends the instruction.
        jump,
        jump_if,
        jump_zero,  // a, of `bytes`
        jump_not_zero,
        jump_bit,  // bit `shift` of a
        jump_not_bit,
        jump_register,
        // The architecture's own: see its native().
        native,
        none,
        stop,  // ends the look-ahead
    };
    enum class Extend : std::uint8_t { zero, sign, sign_to_32 };

    Op op = Op::stop;
    std::uint8_t d = kDiscard, a = kZeroSlot, b = kZeroSlot, c = kZeroSlot;
    std::uint8_t shift = 0;
    std::uint8_t bytes = 8;
    std::uint8_t flags = 0;  // that it sets
    Condition condition = {};
    std::uint8_t pieces = 1;
    Extend extend = Extend::zero;
    std::uint8_t lanes = 0;  // vectors: what a register gets, or gives, is a mixture; own: which one
    std::uint8_t loses = 0;  // flags that are undefined afterwards
    std::uint16_t key = 0;   // of all that chooses the code that executes it: see seal()
    enum class Ends : std::uint8_t { nothing, instruction, run } ends = Ends::nothing;
    enum class Kind : std::uint8_t { other, call, ret, jump, string } kind = Kind::other;
    std::uint8_t length = 0;     // of its instruction, in bytes
    std::int64_t immediate = 0;  // native: the instruction
    std::uint64_t needs = 0;     // slots a and b, as bits

    static constexpr std::uint16_t key_of(Op op, unsigned bytes, bool sets_flags) {
        const unsigned width = bytes == 8 ? 0 : bytes == 4 ? 2 : 4;
        return static_cast<std::uint16_t>(static_cast<unsigned>(op) * 6 + width + sets_flags);
    }
    constexpr void seal() {
        key = op < Op::select ? key_of(op, bytes, flags != 0) : key_of(op, 8, false);
        needs = std::uint64_t{1} << a | std::uint64_t{1} << b;
    }

    constexpr bool is_value() const { return op <= Op::forget; }
    constexpr bool is_memory() const { return op >= Op::load && op <= Op::vector_store; }
    constexpr bool is_store() const {
        return op == Op::store || op == Op::store_unknown || op == Op::store_zeros ||
               op == Op::store_sized || op == Op::vector_store;
    }
    constexpr bool is_sized() const { return op == Op::load_sized || op == Op::store_sized; }
    constexpr bool is_jump() const { return op >= Op::jump && op <= Op::jump_register; }
    constexpr bool reads_flags() const {
        return op == Op::select || op == Op::jump_if || op == Op::add_carry ||
               op == Op::subtract_carry || op == Op::get_flags || op == Op::compare_if ||
               op == Op::compare_if_added || (op == Op::own && condition.test != Test::always);
    }
};
static_assert(sizeof(Micro) == 40);

constexpr bool is_shift(Micro::Op op) {
    return op == Micro::Op::shift_left || op == Micro::Op::shift_right || op == Micro::Op::shift_signed;
}
constexpr std::uint64_t slot_bit(unsigned slot) {
    return std::uint64_t{1} << slot;
}
// For field and signed_field: the low bits from `from`, so many, moved to `to`.
constexpr std::int64_t field_of(unsigned from, unsigned bits, unsigned to = 0) {
    unsigned left = 64 - from - bits;
    return static_cast<std::int64_t>(left | (left + from - to) << 8);
}
// Slots that its values come of; for memory, those stored.
constexpr std::uint64_t reads(const Micro& m) {
    using Op = Micro::Op;
    if (m.op == Op::store) return slot_bit(m.d) | (m.pieces > 1 ? slot_bit(m.c) : 0);
    if (m.is_sized()) return slot_bit(m.c) | (m.op == Op::store_sized ? slot_bit(m.d) : 0);
    if (m.is_memory() || m.op == Op::none || m.op == Op::forget) return 0;
    if (m.op == Op::choose || m.op == Op::own) return slot_bit(m.a) | slot_bit(m.b) | slot_bit(m.c);
    return slot_bit(m.a) | slot_bit(m.b);
}
constexpr std::uint64_t writes(const Micro& m) {
    if (m.is_value() || m.op == Micro::Op::load_sized) return slot_bit(m.d);
    if (m.op == Micro::Op::load) return slot_bit(m.d) | (m.pieces > 1 ? slot_bit(m.c) : 0);
    return 0;
}

// One instruction, lifted.
struct Lifting {
    static constexpr unsigned kMost = 12;
    Micro micro[kMost];
    std::uint8_t count = 0;
    std::uint8_t length = 0;  // in bytes; 0 = it cannot be read
    Micro::Kind kind = Micro::Kind::other;

    Micro& put(Micro::Op op, std::uint8_t d = kDiscard, std::uint8_t a = kZeroSlot,
               std::uint8_t b = kZeroSlot, std::int64_t immediate = 0, std::uint8_t bytes = 8) {
        Micro& m = micro[count < kMost ? count++ : kMost - 1];
        m = {};
        m.op = op;
        m.d = d;
        m.a = a;
        m.b = b;
        m.bytes = bytes;
        m.immediate = immediate;
        return m;
    }
    // The last thing to do. What is not known here ends the look-ahead.
    void seal(bool is_known) {
        if (!is_known) {
            count = 0;
            put(Micro::Op::stop);
        }
        if (count == 0) put(Micro::Op::none);
        for (unsigned k = 0; k < count; k++) {
            micro[k].seal();
            micro[k].length = length;
            micro[k].kind = kind;
        }
        micro[count - 1].ends = Micro::Ends::instruction;
    }
};

// Flags that nothing reads before they are set again need not be computed: on x86_64 that is so of most
// operations that set them. The operations follow one another up to a jump, after which any are read;
// what a look ahead breaks off, it goes on with, or with none of it.
inline void leave_out_unread_flags(Micro* micro, unsigned count) {
    using Op = Micro::Op;
    std::uint8_t read = kAllFlags;  // from here on
    for (unsigned k = count; k-- > 0;) {
        Micro& m = micro[k];
        if (m.op == Op::native || m.op == Op::own || m.op == Op::stop || m.op == Op::get_flags) {
            read = kAllFlags;
            continue;
        }
        const auto sets = static_cast<std::uint8_t>(m.flags | m.loses);
        const bool is_by_constant = m.b == kZeroSlot && (m.immediate & (8 * m.bytes - 1)) != 0;
        const bool may_keep_them = (is_shift(m.op) && !is_by_constant) || !m.is_value();
        if (sets != 0 && m.is_value() && (sets & read) == 0) {
            m.flags = m.loses = 0;
            m.seal();
        } else if (!may_keep_them)
            read &= static_cast<std::uint8_t>(~sets);
        if (m.op == Op::add_carry || m.op == Op::subtract_carry) read |= kCarry;
        if (m.reads_flags()) read |= m.condition.needs();
    }
}

// Runs of instructions lifted before, each up to a jump, by address, beside the code they were made
// from. Whether the code is still the same is looked at once per look-ahead: the thread does not move
// meanwhile, and what the look-ahead stores is not stored in memory. There is a table per process and
// most processes end soon, so it begins small. It grows when it is full: with 1024 runs at most, going
// 120 000 instructions ahead in python3 took 3 ms instead of 1.6.
template <class Arch>
class LiftTable {
 public:
    using Code = typename Arch::Code;

    // `keeps_flags`: all are computed, for a state that is looked at after each instruction.
    explicit LiftTable(bool keeps_flags = false) : keeps_flags_(keeps_flags) { begin_anew(kFirst); }

    // Before a look-ahead.
    void start() { look_++; }
    // The operations from `pc` on, up to one that ends the run; nothing where there is no code.
    template <class Memory>
    [[gnu::always_inline]] const Micro* at(std::uint64_t pc, Memory& memory) {
        Run& run = run_at(pc);
        if (run.pc != pc || run.look != look_) [[unlikely]] {
            if (!is_same(run, pc, memory)) return lift(pc, memory);
            run.look = look_;
        }
        return micro_.get() + run.first;
    }

 private:
    static constexpr unsigned kFirst = 1024, kMost = 16 * kFirst, kMicros = 8;  // runs; of each
    static constexpr unsigned kMostInstructions = 8;
    struct Run {
        std::uint64_t pc = ~std::uint64_t{0};
        std::uint64_t look = 0;
        std::uint32_t first = 0;
        std::uint8_t instructions = 0, length[kMostInstructions] = {};
        Code code[kMostInstructions] = {};
    };

    template <class Memory>
    [[gnu::noinline]] bool is_same(const Run& run, std::uint64_t pc, Memory& memory) {
        if (run.pc != pc) return false;
        for (unsigned k = 0; k < run.instructions; pc += run.length[k++]) {
            Code code;
            if (!Arch::fetch(memory, pc, code) || !(code == run.code[k])) return false;
        }
        return true;
    }

    template <class Memory>
    [[gnu::noinline]] const Micro* lift(std::uint64_t pc, Memory& memory) {
        if (is_full()) begin_anew(count_ < kMost ? 4 * count_ : count_);
        Run& run = run_at(pc);
        run.pc = pc;
        run.first = used_;
        run.instructions = 0;
        Lifting lifting;
        bool goes_on = true;
        for (unsigned k = 0; k < kMostInstructions && goes_on; pc += lifting.length, k++) {
            if (!Arch::fetch(memory, pc, run.code[k])) break;
            lifting.count = 0;
            Arch::lift(pc, run.code[k], lifting);
            run.instructions++;
            run.length[k] = lifting.length;
            for (unsigned n = 0; n < lifting.count; n++) {
                const Micro& m = micro_[used_++] = lifting.micro[n];
                goes_on &= !m.is_jump() && m.op != Micro::Op::stop;
            }
        }
        if (run.instructions == 0) {
            run.pc = ~std::uint64_t{0};
            return nullptr;
        }
        micro_[used_ - 1].ends = Micro::Ends::run;
        if (!keeps_flags_) leave_out_unread_flags(micro_.get() + run.first, used_ - run.first);
        run.look = look_;
        return micro_.get() + run.first;
    }

    Run& run_at(std::uint64_t pc) { return runs_[pc / Arch::kAlignment & (count_ - 1)]; }
    bool is_full() const { return used_ + kMostInstructions * Lifting::kMost > kMicros * count_; }
    void begin_anew(unsigned count) {
        count_ = count;
        used_ = 0;
        runs_ = std::make_unique<Run[]>(count);
        micro_ = std::make_unique_for_overwrite<Micro[]>(std::size_t{kMicros} * count);
    }

    bool keeps_flags_;
    unsigned count_ = 0, used_ = 0;  // runs, a power of two; operations
    std::unique_ptr<Run[]> runs_;
    std::unique_ptr<Micro[]> micro_;
    std::uint64_t look_ = 0;
};

}  // namespace revisit::machine
