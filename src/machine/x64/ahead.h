// What the interpreter (machine/ahead.h) needs to know of x86_64: what a64/a64.h is for aarch64.
//
// x64/lift.cpp says what instructions do, in micro-operations. Vector instructions are `native`: what
// they do to general registers and flags is named, memory operands go through the vector register that
// is the interpreter's own, the rest is x64/vectors.h's.
//
//     addsd xmm1, [rax + 8*rcx]   vector_load v32, [rax + (rcx << 3)], 8 bytes; native v1 += v32
//     pmovmskb eax, xmm0          native d=rax, of v0
//     add  [rdi + 8], al          load t0; add t2 = t0 + rax, 1 byte, sets flags; store t2
//     mov  al, [rsi]              load t0, 1 byte; insert rax, the low byte of t0
#pragma once

#include "machine/loop_flags.h"
#include "machine/x64/own.h"
#include "machine/x64/vectors.h"

namespace revisit::machine {

namespace x64 {

std::int64_t pack(x64::Native i);

// The interpreter's own vector register.
inline constexpr std::uint8_t kOperand = 32;

}  // namespace x64

struct X64 {
    using State = X64State;
    struct Code {
        std::uint8_t bytes = 0, code[15] = {};
        bool operator==(const Code&) const = default;
    };
    using Unit = x64::Unit;
    static constexpr unsigned kAlignment = 1, kLength = 0, kRegisters = 16, kStack = 4;
    static constexpr bool kCarryIsBorrow = true;
    static constexpr bool kDefinesFlags = false;
    static constexpr bool kJoinsTouches = false;  // one that reads and writes memory is two accesses
    static constexpr std::uint8_t kLogicFlags = kAllFlags;
    // What a native does beside the registers that it names.
    static constexpr std::uint8_t kComputes = 0, kMasked = 1, kSpecial = 2;
    // In a native's `shift`: floating point into a vector register; in a load's `c`: for it alone.
    static constexpr std::uint8_t kFloats = 1;

    static void lift(std::uint64_t pc, const Code& code, Lifting& out);
    static Outcome own(const Micro& m, std::uint64_t a, std::uint64_t b, std::uint64_t c,
                       const Known& known, Unit unit) {
        return x64::own(m, a, b, c, known, unit);
    }

    static std::uint64_t* slots(State& s) { return s.r; }
    static Known enter(State& s) {
        s.r[kZeroSlot] = 0;
        s.r[kThreadPointer] = s.fs_base;
        s.r[kDirection] = s.backwards ? ~std::uint64_t{0} : 1;
        return {s.known | slot_bit(kZeroSlot) | slot_bit(kThreadPointer) | slot_bit(kDirection),
                s.flags, s.flags_known};
    }
    static void leave(State& s, const Known& known) {
        s.known = known.slots;
        s.flags = known.flags;
        s.flags_known = known.flags_known;
    }
    static void forget_vectors(State& s, std::uint32_t which) {
        for (unsigned v = 0; v < 32; v++)
            if (which >> v & 1) s.v_known[v] = 0;
        s.k_known = 0;
    }
    static std::uint32_t vectors_written(const Micro& m) {
        if (m.op == Micro::Op::native) return m.pieces == 0 ? 0 : m.pieces == 1 ? 1u << m.c : ~0u;
        return m.op == Micro::Op::vector_load && m.d < 32 ? 1u << m.d : 0;
    }
    // Whether all that a native does is in its operation. What a mask leaves out is not touched, and
    // masks are not followed.
    static bool can_skip(const Micro& m) { return m.lanes == kComputes; }
    // The form of a value that is x86_64's own, over the iterations of a loop; `most` is bounded to
    // those in which it is so.
    static Form own_form(const Micro& m, Unit unit, AffineOperand a, AffineOperand b, AffineOperand c,
                         std::uint64_t& most) {
        if (a.form.is_still() && b.form.is_still() && c.form.is_still() && !m.reads_flags())
            return kStill;
        auto what = static_cast<x64::Own>(m.lanes);
        bool moves = what == x64::Own::string_chunk;
        if (!moves && what != x64::Own::string_chunk_stored) return {};
        if (!unit.words) return kStill;
        // As many bytes every time: the same place in a word, the same way from the source, and no
        // fewer left than a word has, or all of one by one.
        Form way = moves ? a.form - b.form : kStill;
        if (!a.form.is_affine || a.form.slope % 8 != 0 || !way.is_still() || !c.form.is_affine)
            return {};
        const std::uint64_t chunk = 8u / m.pieces;
        if (c.value < chunk) return {};
        most =
            fewer(most, Comparison{c.form, kStill, c.value, chunk, 64}.stays(Comparison::Order::below));
        return kStill;
    }
    template <class Memory>
    [[gnu::always_inline]] static bool fetch(Memory& memory, std::uint64_t pc, Code& code) {
        code = {};
        code.bytes = static_cast<std::uint8_t>(memory.fetch(pc, code.code));
        return code.bytes != 0;
    }

    template <class Ahead>
    [[gnu::always_inline]] static bool leaves_out(Ahead& ahead, const Micro& m) {
        if (ahead.unit_.floats || m.shift != kFloats) return false;
        ahead.left_out_ = true;
        ahead.s_.v_known[m.c] = 0;
        return true;
    }
    template <class Ahead>
    static bool native(Ahead& ahead, const Micro& m) {
        using Op = X64Instruction::Op;
        State& s = ahead.s_;
        auto i = std::bit_cast<x64::Native>(m.immediate);
        if (m.lanes == kSpecial) switch (i.op) {
                case Op::ldmxcsr:
                    s.mxcsr = s.v_known[x64::kOperand] & 1
                                  ? static_cast<std::uint32_t>(s.v[x64::kOperand].word[0])
                                  : 0;
                    return true;
                case Op::stmxcsr:  // what has happened since the stop is not noted in it
                    s.v[x64::kOperand].word[0] = s.mxcsr;
                    s.v_known[x64::kOperand] = s.mxcsr != 0;
                    return true;
                case Op::gather:
                case Op::scatter:
                    return gather(ahead, m, i);
                case Op::flag_set:
                    s.backwards = i.is(X64Flag::std);
                    if (s.backwards) ahead.unit_.words = false;
                    return true;
                default:
                    return exchange(ahead, m, i);
            }
        x64::Vectors vectors(s);
        if (m.lanes == kMasked) return masked(ahead, m, i, vectors);
        if (i.writes)  // what is stored next
            put_operand(s, vectors.stored(i));
        else {
            x64::Operand b = vectors.get_vector(i.has_memory ? x64::kOperand : i.rm);
            if (i.broadcasts) spread(i, b);
            vectors.vector(i, b);
        }
        ahead.left_out_ |= vectors.left_out_vectors();
        return true;
    }

    // The rest of the register becomes zero up to 16 bytes, or (lanes) up to its end.
    template <class Ahead>
    [[gnu::always_inline]] static bool move_vectors(Ahead& ahead, const Micro& m,
                                                    std::uint64_t address) {
        State& s = ahead.s_;
        X64Vector& v = s.v[m.d];
        std::uint8_t& known = s.v_known[m.d];
        unsigned bytes = m.bytes;
        if (m.op == Micro::Op::vector_store) {
            for (unsigned at = 0; at < bytes; at += 8) {
                unsigned here = bytes - at < 8 ? bytes - at : 8;
                if (!ahead.memory_.store(address + at, here, v.word[at / 8], known >> at / 16 & 1))
                    return false;
            }
            return true;
        }
        bool is_needed = ahead.unit_.floats || m.c != kFloats;
        if (!is_needed || bytes > 64 || (bytes & (bytes - 1)) != 0) return true;  // or x87's
        std::uint8_t all = x64::lanes(bytes), unknown = 0;
        if (bytes <= 8) v.word[0] = v.word[1] = 0;
        for (unsigned at = 0; at < bytes; at += 8) {
            Loaded loaded =
                ahead.memory_.load(address + at, bytes - at < 8 ? bytes - at : 8, v.word[at / 8]);
            if (loaded == Loaded::fault) return false;
            if (loaded != Loaded::value) unknown = static_cast<std::uint8_t>(unknown | 1u << at / 16);
        }
        known = static_cast<std::uint8_t>((known | all) & ~unknown);
        if (m.lanes) {
            for (unsigned w = bytes < 16 ? 2 : bytes / 8; w < 8; w++) v.word[w] = 0;
            known = static_cast<std::uint8_t>(known | (15 & ~all));
        }
        return true;
    }

 private:
    static void put_operand(State& s, const x64::Operand& operand) {
        s.v[x64::kOperand] = operand.value;
        s.v_known[x64::kOperand] = operand.known;
    }
    static void spread(x64::Native i, x64::Operand& b) {
        b.value = x64::made(i.element(), i.bytes, [&, from = b.value](unsigned) {
            return x64::element_of(from, i.element(), 0);
        });
        b.known = b.known & 1 ? 15 : 0;
    }
    template <class Ahead>
    static void touch(Ahead& ahead, std::uint64_t address, unsigned bytes, bool writes) {
        ahead.touch_[ahead.touches_++] = {address, 1, bytes, writes};
    }

    // A masked instruction touches the elements it names, from the first to the last of them.
    template <class Ahead>
    static bool masked(Ahead& ahead, const Micro& m, x64::Native i, x64::Vectors& vectors) {
        State& s = ahead.s_;
        std::uint64_t elements, address = s.r[m.a];
        if (!(s.known >> m.a & 1) || !vectors.touched_elements(i, elements)) return false;
        elements &= ones(m.bytes / i.element());
        unsigned low = elements ? static_cast<unsigned>(std::countr_zero(elements)) * i.element() : 0;
        unsigned high =
            elements ? static_cast<unsigned>(64 - std::countl_zero(elements)) * i.element() : 0;
        if (high > low) touch(ahead, address + low, high - low, i.writes);
        if (i.writes) {
            x64::Operand value = vectors.stored(i);
            for (unsigned k = 0; k < m.bytes / i.element(); k++) {
                unsigned at = k * i.element();
                if (elements >> k & 1 &&
                    !ahead.memory_.store(address + at, i.element(),
                                         x64::element_of(value.value, i.element(), k),
                                         value.known >> at / 16 & 1))
                    return false;
            }
            return true;
        }
        x64::Operand b;
        b.known = 15;
        for (unsigned at = low & ~7u; at < high; at += 8) {
            unsigned bytes = m.bytes - at < 8u ? m.bytes - at : 8u;
            Loaded loaded = ahead.memory_.load(address + at, bytes, b.value.word[at / 8]);
            if (loaded == Loaded::fault) return false;
            if (loaded != Loaded::value)
                b.known = static_cast<std::uint8_t>(b.known & ~(1u << at / 16));
        }
        vectors.vector(i, b);
        ahead.left_out_ |= vectors.left_out_vectors();
        return true;
    }

    // The elements that the mask names, each an access; of the mask nothing is left.
    template <class Ahead>
    static bool gather(Ahead& ahead, const Micro& m, x64::Native i) {
        State& s = ahead.s_;
        const unsigned e = i.element(), count = i.bytes / e, from = i.from;
        const bool scatters = i.op == X64Instruction::Op::scatter, has_vector_mask = i.sub != 0;
        const std::uint8_t indices = x64::lanes(count * from), data = x64::lanes(i.bytes);
        const bool is_mask_known =
            has_vector_mask ? (s.v_known[i.first] & data) == data : (s.k_known >> i.mask & 1) != 0;
        if (!(s.known >> m.a & 1) || (s.v_known[i.rm] & indices) != indices || !is_mask_known)
            return false;
        x64::Operand value{s.v[i.reg], s.v_known[i.reg]};
        for (unsigned k = 0; k < count; k++) {
            const bool is_named = has_vector_mask
                                      ? x64::element_of(s.v[i.first], e, k) >> (8 * e - 1) & 1
                                      : s.k[i.mask] >> k & 1;
            if (!is_named) continue;
            const std::int64_t index = sign_extend(x64::element_of(s.v[i.rm], from, k), 8 * from);
            const std::uint64_t address =
                s.r[m.a] + static_cast<std::uint64_t>(index) * static_cast<std::uint64_t>(i.immediate);
            touch(ahead, address, e, scatters);
            const auto lane = static_cast<std::uint8_t>(1u << k * e / 16);
            if (scatters) {
                if (!ahead.memory_.store(address, e, x64::element_of(value.value, e, k),
                                         (value.known & lane) != 0))
                    return false;
                continue;
            }
            std::uint64_t loaded = 0;
            const Loaded how = ahead.memory_.load(address, e, loaded);
            if (how == Loaded::fault) return false;
            if (how != Loaded::value) value.known = static_cast<std::uint8_t>(value.known & ~lane);
            x64::set_element(value.value, e, k, loaded);
        }
        x64::Vectors(s).end_gather(i, value);
        return true;
    }

    // cmpxchg8b and cmpxchg16b.
    template <class Ahead>
    static bool exchange(Ahead& ahead, const Micro& m, x64::Native i) {
        State& s = ahead.s_;
        unsigned half = i.bytes / 2;
        std::uint64_t address = s.r[m.a];
        if (!(s.known >> m.a & 1)) return false;
        x64::Vectors registers(s);
        x64::Value low, high;
        touch(ahead, address, i.bytes, false);
        Loaded first = ahead.memory_.load(address, half, low.bits),
               second = ahead.memory_.load(address + half, half, high.bits);
        if (first == Loaded::fault || second == Loaded::fault) return false;
        x64::Value a = registers.get(0, half), d = registers.get(2, half), b = registers.get(3, half),
                   c = registers.get(1, half);
        bool known = first == Loaded::value && second == Loaded::value && a.known && d.known;
        bool equal = a.bits == low.bits && d.bits == high.bits;
        low.known = high.known = known;
        registers.set_flags(kZero, equal ? kZero : 0, known);
        if (!known || !equal) {
            registers.put(0, low, half);
            registers.put(2, high, half);
        }
        x64::Value to_low = known && equal ? b : low, to_high = known && equal ? c : high;
        touch(ahead, address, i.bytes, true);
        return ahead.memory_.store(address, half, to_low.bits, to_low.known) &&
               ahead.memory_.store(address + half, half, to_high.bits, to_high.known);
    }
};

using X64Table = LiftTable<X64>;

template <class Memory>
class X64Ahead : public Ahead<X64, Memory> {
 public:
    // `words`: repeated strings go by words, not by elements.
    X64Ahead(X64State& state, Memory& memory, X64Table* table = nullptr, bool words = false,
             bool floats = true)
        : Ahead<X64, Memory>(state, memory, {words && !state.backwards, state.has_bmi, floats}, table) {
    }

    // Whether it is a call, or a return: the state is no longer in the function that it is in.
    bool is_call() const { return this->kind() == Micro::Kind::call; }
    bool is_return() const { return this->kind() == Micro::Kind::ret; }
    bool is_jump() const { return this->kind() == Micro::Kind::jump; }
    bool is_string() const { return this->kind() == Micro::Kind::string; }
};

}  // namespace revisit::machine
