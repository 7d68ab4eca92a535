// aarch64: the registers of a thread, and what the interpreter (ahead.h) needs to know of the machine.
//
// a64/lift.cpp says what instructions do, in micro-operations. Floating point and vectors are the
// processor's: a64/vector.cpp lets it execute them itself, on copies of the registers. Loads and stores
// of all of libc are compared with a disassembler (tests/machine_a64_decode_test.cpp), runs of programs
// with the processor (tests/machine_a64_test.cpp).
#pragma once

#include <span>

#include "machine/ahead.h"

namespace revisit::machine {

struct VectorValue {
    std::uint64_t low = 0, high = 0;
    bool operator==(const VectorValue&) const = default;
};

struct A64State {
    std::uint64_t x[kSlots] = {};  // 31 is the stack pointer; from 32 on they are the interpreter's
    std::uint32_t known = 0;       // a bit per register
    std::uint32_t v_known = 0;     // a bit per vector register
    std::uint64_t pc = 0;
    std::uint64_t thread_pointer = 0;
    std::uint32_t nzcv = 0;  // as 4 bits
    bool flags_known = false;
    VectorValue v[32];

    bool is_known(unsigned r) const { return known >> r & 1; }
};

// With the stack pointer.
inline std::span<const std::uint64_t> general_registers(const A64State& state) {
    return {state.x, 32};
}

constexpr unsigned field(std::uint32_t instruction, unsigned low, unsigned bits) {
    return instruction >> low & ((1u << bits) - 1);
}

// The immediate of logical instructions: a rotated run of ones, repeated.
inline bool bit_mask(unsigned n, unsigned imms, unsigned immr, std::uint64_t& mask) {
    unsigned selector = n << 6 | (~imms & 0x3f);
    if (selector < 2) return false;
    unsigned length = 31 - static_cast<unsigned>(__builtin_clz(selector));
    unsigned size = 1u << length, ones_count = (imms & (size - 1)) + 1, rotate = immr & (size - 1);
    if (ones_count == size) return false;
    std::uint64_t run = ones(ones_count);
    if (rotate) run = (run >> rotate | run << (size - rotate)) & ones(size);
    for (unsigned width = size; width < 64; width *= 2) run |= run << width;
    mask = run;
    return true;
}

// Loads and stores of the scalable vectors and of the matrix array; how much they touch depends on
// their length and on predicates.
constexpr bool is_scalable_memory(std::uint32_t instruction) {
    return (instruction >> 31 && field(instruction, 25, 4) == 2) || instruction >> 25 == 0x70;
}
constexpr bool is_memory_class(std::uint32_t instruction) {
    return (instruction & 0x0a000000) == 0x08000000 || is_scalable_memory(instruction);
}
constexpr bool is_vector_class(std::uint32_t instruction) {
    return (instruction & 0x0e000000) == 0x0e000000;
}
constexpr bool is_zero_block(std::uint32_t instruction) {
    return (instruction & 0xffffffe0) == 0xd50b7420;
}

// What a vector instruction does to the general registers and flags.
struct VectorRoles {
    bool to_general = false;    // Rd is a general register
    bool from_general = false;  // Rn is one
    bool sets_flags = false;
    bool reads_flags = false;
};
VectorRoles vector_roles(std::uint32_t instruction);

// Executes floating-point and vector instructions by running them: each is put, once, into a few
// instructions of code of our own that load its operands from the state and store its result back.
// Where no memory may be executed that was written, results are unknown instead.
class VectorUnit {
 public:
    static constexpr unsigned kStubs = 512;
    static constexpr unsigned kStubWords = 16;
    static constexpr std::uint64_t kCodeBytes = kStubs * kStubWords * 4;

    // Zeroed memory of kCodeBytes that may be written and executed, or nothing.
    explicit VectorUnit(void* code = nullptr) : code_(static_cast<std::uint32_t*>(code)) {}

    // False where it cannot be executed. A result of something unknown is unknown.
    bool step(std::uint32_t instruction, A64State& state);
    // The same without executing anything: the result is unknown.
    static void skip(std::uint32_t instruction, A64State& state);

    // For the handler of an illegal instruction: whether `pc` is in that code, and where to go on.
    bool is_code(std::uint64_t pc) const {
        return code_ != nullptr && pc - reinterpret_cast<std::uint64_t>(code_) < kCodeBytes;
    }
    std::uint64_t failed(std::uint64_t pc) {
        failed_ = true;
        return (pc | (4 * kStubWords - 1)) - 3;
    }

 private:
    std::uint32_t* stub(std::uint32_t instruction, std::uint32_t renamed);
    std::uint32_t* code_;
    std::uint32_t key_[kStubs] = {};
    volatile bool failed_ = false;
};

struct A64 {
    using State = A64State;
    using Code = std::uint32_t;
    // Without one vector registers are not followed: what they hold rarely matters to what is touched
    // next, and memory that only they are loaded from is then not read at all.
    using Unit = VectorUnit*;
    static constexpr unsigned kAlignment = 4, kLength = 4, kRegisters = 32, kStack = 31;
    static constexpr bool kCarryIsBorrow = false;
    static constexpr bool kDefinesFlags = true;  // an operation leaves none undefined
    static constexpr bool kJoinsTouches = true;  // all that an instruction touches is one access
    static constexpr std::uint8_t kLogicFlags = kSign | kZero;  // those that are as if compared with 0

    static void lift(std::uint64_t pc, std::uint32_t code, Lifting& out);

    static std::uint64_t* slots(State& s) { return s.x; }
    static Known enter(State& s) {
        s.x[kZeroSlot] = 0;
        s.x[kThreadPointer] = s.thread_pointer;
        return {s.known | slot_bit(kZeroSlot) | slot_bit(kThreadPointer),
                static_cast<std::uint8_t>(s.nzcv),
                static_cast<std::uint8_t>(s.flags_known ? kAllFlags : 0)};
    }
    static void leave(State& s, const Known& known) {
        s.known = static_cast<std::uint32_t>(known.slots);
        s.nzcv = known.flags & 15;
        s.flags_known = (known.flags_known & 15) == 15;
    }
    static void forget_vectors(State& s, std::uint32_t which) { s.v_known &= ~which; }
    // Vector registers that it writes.
    static std::uint32_t vectors_written(const Micro& m) {
        if (m.op == Micro::Op::native) return m.pieces != 0 ? 1u << m.c : 0;
        return m.op == Micro::Op::vector_load ? registers_of(m) : 0;
    }
    // Whether all that a native does is in its operation.
    static bool can_skip(const Micro&) { return true; }
    template <class Memory>
    [[gnu::always_inline]] static bool fetch(Memory& memory, std::uint64_t pc, std::uint32_t& code) {
        return memory.fetch(pc, code);
    }

    // Arithmetic on vector registers alone, not followed.
    template <class Ahead>
    [[gnu::always_inline]] static bool leaves_out(Ahead& ahead, const Micro& m) {
        if (ahead.unit_ != nullptr || m.pieces == 0) return false;
        ahead.left_out_ = true;
        ahead.s_.v_known &= ~(1u << m.c);
        return true;
    }
    template <class Ahead>
    static bool native(Ahead& ahead, const Micro& m) {
        if (ahead.unit_ != nullptr)
            return ahead.unit_->step(static_cast<std::uint32_t>(m.immediate), ahead.s_);
        ahead.left_out_ = true;
        VectorUnit::skip(static_cast<std::uint32_t>(m.immediate), ahead.s_);
        return true;
    }

    template <class Ahead>
    [[gnu::always_inline]] static bool move_vectors(Ahead& ahead, const Micro& m,
                                                    std::uint64_t address) {
        State& s = ahead.s_;
        bool loads = m.op == Micro::Op::vector_load;
        if (loads && ahead.unit_ == nullptr) {
            s.v_known &= ~registers_of(m);
            ahead.left_out_ = true;
            return true;
        }
        for (unsigned k = 0; k < m.pieces; k++, address += m.bytes) {
            unsigned v = register_of(m, k);
            if (loads ? !load_vector(ahead, m, address, v) : !store_vector(ahead, m, address, v))
                return false;
        }
        return true;
    }

 private:
    static unsigned register_of(const Micro& m, unsigned k) {
        return k == 0 ? m.d : k == 1 ? m.c : (m.d + k) & 31;
    }
    static std::uint32_t registers_of(const Micro& m) {
        std::uint32_t out = 0;
        for (unsigned k = 0; k < m.pieces; k++) out |= 1u << register_of(m, k);
        return out;
    }
    template <class Ahead>
    static bool load_vector(Ahead& ahead, const Micro& m, std::uint64_t address, unsigned v) {
        VectorValue whole;
        Loaded low = ahead.memory_.load(address, m.bytes > 8 ? 8 : m.bytes, whole.low);
        Loaded high = m.bytes > 8 ? ahead.memory_.load(address + 8, 8, whole.high) : Loaded::value;
        if (low == Loaded::fault || high == Loaded::fault) return false;
        bool known = low == Loaded::value && high == Loaded::value && !m.lanes;
        State& s = ahead.s_;
        s.v[v] = whole;
        s.v_known = known ? s.v_known | 1u << v : s.v_known & ~(1u << v);
        return true;
    }
    template <class Ahead>
    static bool store_vector(Ahead& ahead, const Micro& m, std::uint64_t address, unsigned v) {
        bool known = (ahead.s_.v_known >> v & 1) && !m.lanes;
        const VectorValue& value = ahead.s_.v[v];
        if (!ahead.memory_.store(address, m.bytes > 8 ? 8 : m.bytes, value.low, known)) return false;
        return m.bytes <= 8 || ahead.memory_.store(address + 8, 8, value.high, known);
    }
};

using QuickTable = LiftTable<A64>;

template <class Memory>
class A64Ahead : public Ahead<A64, Memory> {
 public:
    A64Ahead(A64State& state, Memory& memory, VectorUnit* vectors, QuickTable* table = nullptr)
        : Ahead<A64, Memory>(state, memory, vectors, table) {}
};

}  // namespace revisit::machine
