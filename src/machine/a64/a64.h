// Looking ahead on aarch64: what a thread will touch next, found by interpreting its instructions.
//
// Problem. Without a performance unit that reports data addresses, a timer tells only where a thread
// is. Idea. The thread's registers and memory are at hand in the signal handler: interpret its
// instructions forward from there, real memory for loads, a side buffer for stores, until it touches
// memory. Nothing is guessed: a register whose value is not known is marked so, and an instruction that
// is not known here, a branch on an unknown value or a system call ends the look-ahead.
// The work is split: a64/integer.cpp computes registers and branches, a64/memory.cpp says what a load
// or store touches, a64/vector.cpp lets the processor itself execute floating-point and vector
// instructions on copies of the registers. a64/ahead.h puts them together.
// Cost. 5 to 8 ns an instruction (12 to 15 before what was decoded was kept, a64/quick.h); a single
// step by ptrace takes 31 700. Source. The encodings are those of the Arm Architecture Reference
// Manual; loads and stores of all of libc are compared with a disassembler
// (tests/machine_a64_decode_test.cpp), runs of programs with the processor
// (tests/machine_a64_test.cpp).
#pragma once

#include <cstdint>

namespace revisit::machine {

struct VectorValue {
    std::uint64_t low = 0, high = 0;
    bool operator==(const VectorValue&) const = default;
};

struct A64State {
    std::uint64_t x[32] = {};   // 31 is the stack pointer
    std::uint32_t known = 0;    // a bit a register
    std::uint32_t v_known = 0;  // a bit a vector register
    std::uint64_t pc = 0;
    std::uint64_t thread_pointer = 0;
    std::uint32_t nzcv = 0;  // as 4 bits
    bool flags_known = false;
    VectorValue v[32];

    bool is_known(unsigned r) const { return known >> r & 1; }
    // Register 31 reads as zero, or is the stack pointer: the instruction says which.
    std::uint64_t read(unsigned r, bool& all_known) const {
        if (r == 31) return 0;
        all_known &= is_known(r);
        return x[r];
    }
    std::uint64_t read_sp(unsigned r, bool& all_known) const {
        all_known &= is_known(r);
        return x[r];
    }
    void write_sp(unsigned r, std::uint64_t value, bool is_known_value, bool wide = true) {
        x[r] = wide ? value : static_cast<std::uint32_t>(value);
        known = is_known_value ? known | 1u << r : known & ~(1u << r);
    }
    void write(unsigned r, std::uint64_t value, bool is_known_value, bool wide = true) {
        if (r != 31) write_sp(r, value, is_known_value, wide);
    }
};

// In all that is known of both.
inline bool same_registers(const A64State& a, const A64State& b) {
    for (unsigned r = 0; r < 32; r++)
        if (a.is_known(r) && b.is_known(r) && a.x[r] != b.x[r]) return false;
    return true;
}

enum class Step : std::uint8_t {
    done,    // executed; pc moved on
    access,  // executed, and it touched memory
    stop,    // not executed: unknown, or it depends on something unknown
};

constexpr unsigned field(std::uint32_t instruction, unsigned low, unsigned bits) {
    return instruction >> low & ((1u << bits) - 1);
}
constexpr std::int64_t sign_extend(std::uint64_t value, unsigned bits) {
    return static_cast<std::int64_t>(value << (64 - bits)) >> (64 - bits);
}

inline std::uint64_t ones(unsigned bits) {
    return bits >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
}

// a + b + carry, and its flags.
inline std::uint64_t add(std::uint64_t a, std::uint64_t b, unsigned carry, bool wide,
                         std::uint32_t& flags) {
    if (!wide) {
        a = static_cast<std::uint32_t>(a);
        b = static_cast<std::uint32_t>(b);
        std::uint64_t sum = a + b + carry;
        auto result = static_cast<std::uint32_t>(sum);
        bool overflow = (~(a ^ b) & (a ^ result)) >> 31 & 1;
        flags = static_cast<std::uint32_t>((result >> 31) << 3 | (result == 0) << 2 |
                                           (sum >> 32 != 0) << 1 | overflow);
        return result;
    }
    std::uint64_t partial = a + b;
    std::uint64_t result = partial + carry;
    bool carries = partial < a || result < partial;
    bool overflow = (~(a ^ b) & (a ^ result)) >> 63;
    flags =
        static_cast<std::uint32_t>((result >> 63) << 3 | (result == 0) << 2 | carries << 1 | overflow);
    return result;
}

inline bool holds(unsigned condition, std::uint32_t nzcv) {
    bool n = nzcv >> 3 & 1, z = nzcv >> 2 & 1, c = nzcv >> 1 & 1, v = nzcv & 1, result = true;
    switch (condition >> 1) {
        case 0:
            result = z;
            break;
        case 1:
            result = c;
            break;
        case 2:
            result = n;
            break;
        case 3:
            result = v;
            break;
        case 4:
            result = c && !z;
            break;
        case 5:
            result = n == v;
            break;
        case 6:
            result = n == v && !z;
            break;
        default:
            return true;
    }
    return condition & 1 ? !result : result;
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

// An instruction that is neither load, store nor vector arithmetic.
Step step_integer(std::uint32_t instruction, A64State& state);

// What a load, store or atomic does. Pieces are accesses: a pair of registers is two.
struct MemoryOperation {
    enum class Kind : std::uint8_t {
        none,  // a prefetch, or nothing that counts
        load,
        store,
        exclusive_store,  // success is not known beforehand
        atomic,           // old value into rt, new one computed from rs
        compare_swap,     // old value into rs, rt stored if equal
        zero,             // dc zva
        unknown,
    };
    Kind kind = Kind::unknown;
    std::uint8_t pieces = 1;
    std::uint8_t bytes = 0;  // of a piece
    std::uint8_t rt[4] = {31, 31, 31, 31};
    std::uint8_t rs = 31;
    bool vector = false;
    bool keeps_lanes = false;    // structures and lanes: the value of a register is a mixture
    std::uint8_t extend = 0;     // 0 zero, 1 sign to 64, 2 sign to 32
    std::uint8_t operation = 0;  // atomic: opc of LDADD and its like; 8 = swap
    bool address_known = false;
    std::uint64_t address = 0;
    bool writes_back = false;
    std::uint8_t base = 31;
    std::uint64_t written_back = 0;

    bool writes() const { return kind != Kind::load; }
};

constexpr bool is_memory_class(std::uint32_t instruction) {
    return (instruction & 0x0a000000) == 0x08000000;
}
constexpr bool is_vector_class(std::uint32_t instruction) {
    return (instruction & 0x0e000000) == 0x0e000000;
}
constexpr bool is_zero_block(std::uint32_t instruction) {
    return (instruction & 0xffffffe0) == 0xd50b7420;
}

MemoryOperation decode_memory(std::uint32_t instruction, const A64State& state);

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

    Step step(std::uint32_t instruction, A64State& state);
    // The same without executing anything: the result is unknown.
    static Step skip(std::uint32_t instruction, A64State& state);
    // Whether it changes nothing but its vector register.
    static bool stays_inside(std::uint32_t instruction);

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

}  // namespace revisit::machine
