// Looking ahead: what a thread will touch next, found by interpreting its instructions.
//
// Problem. Without a performance unit that reports data addresses, a timer shows only where a thread
// is. Idea. Its registers and memory are at hand: interpret its instructions from there, real memory
// for loads, a side buffer for stores. Nothing is guessed: a register whose value is not known is
// marked so (a bit per slot), and what is not known here, a branch on an unknown value, an unknown
// address or a system call ends the look-ahead.
//
//     ldr  x0, [x1]        x1 known, but the word was stored to by what is not followed: x0 unknown
//     add  x2, x2, x0      x2 unknown
//     str  x2, [x3]        touches [x3]; what is there is unknown from now on
//     cbz  x0, …           ends here
//
// Memory is whoever has
//     bool fetch(pc, std::uint32_t& code)            aarch64; on x86_64
//     unsigned fetch(pc, std::uint8_t (&code)[15])   the bytes that can be read
//     Loaded load(std::uint64_t address, unsigned bytes, std::uint64_t& value);            up to 8
//     bool store(std::uint64_t address, unsigned bytes, std::uint64_t value, bool known);  up to 8
// the program's own or another process's. A store that finds no room, or memory that cannot be read,
// ends the look-ahead. Cost. Lifting an instruction once (micro.h), then 5 to 6 ns per instruction of
// aarch64, 6 to 9 with a side buffer, and 9 to 20 of x86_64 (bench_machine; Neoverse V1, and a Xeon of
// 2.5 GHz that shares its host). A single step by ptrace takes 31 700 ns.
#pragma once

#include <type_traits>

#include "machine/compute.h"

namespace revisit::machine {

enum class Loaded : std::uint8_t { value, unknown, fault };

struct Touched {  // pieces of so many bytes, one after the other
    std::uint64_t address = 0;
    unsigned pieces = 0, bytes = 0;
    bool writes = false;

    unsigned all_bytes() const { return pieces * bytes; }
};

// Calls take(block, address) with the number of each block of 2^shift bytes that a piece touches, and
// with the first address in it.
template <class Take>
[[gnu::always_inline]] inline void for_blocks(const Touched& op, unsigned shift, Take take) {
    for (unsigned k = 0; k < op.pieces; k++) {
        std::uint64_t low = op.address + std::uint64_t{k} * op.bytes, high = low + op.bytes - 1;
        for (std::uint64_t block = low >> shift; block <= high >> shift; block++)
            take(block, block << shift < low ? low : block << shift);
    }
}

enum class Step : std::uint8_t {
    done,    // executed; pc moved on
    access,  // executed, and it touched memory
    stop,    // not executed: unknown, or it depends on something unknown
};

// What is known of the machine beside its slots. The interpreter keeps it in registers of its own:
// going through the state for every instruction makes it twice as slow.
struct Known {
    std::uint64_t slots = 0;
    std::uint8_t flags = 0, flags_known = 0;
    std::uint64_t next = 0;  // where the instruction goes on
    unsigned touches = 0;    // that it has made

    bool slot(unsigned s) const { return slots >> s & 1; }
    void set_flags(std::uint8_t which, std::uint8_t to, bool is_known) {
        flags = static_cast<std::uint8_t>((flags & ~which) | (to & which));
        flags_known = static_cast<std::uint8_t>(is_known ? flags_known | which : flags_known & ~which);
    }
};

// One operation as it was executed: what the skipping of loops reasons about.
struct Executed {
    Micro m;
    std::uint64_t a = 0, b = 0;  // operands, b shifted and added to
    std::uint64_t d = 0, c = 0;  // what was there before: what a store stores
    std::uint64_t result = 0;    // … and is there afterwards
    Known before, after;
    bool touches = false;
    Touched touched;
};
// What an operation of one architecture alone comes to.
struct Outcome {
    std::uint64_t result = 0;
    std::uint8_t flags = 0;
    bool is_known = true, are_flags_known = true;
};
struct NoTrace {};

// Arch has State, Code, Unit (what executes vector instructions), and the hooks of A64 in a64/a64.h.
template <class Arch, class Memory>
class Ahead {
 public:
    using State = typename Arch::State;
    using Table = LiftTable<Arch>;

    Ahead(State& state, Memory& memory, typename Arch::Unit unit, Table* table)
        : s_(state), memory_(memory), unit_(unit), table_(table) {
        if (table_ != nullptr) table_->start();
    }

    // What was touched last.
    const Touched& touched() const { return touch_[piece_]; }
    // The instruction that the last step or run ended with, and where it goes on.
    std::uint64_t at() const { return at_; }
    std::uint64_t next() const { return next_; }
    // Of the last run's budget.
    std::uint64_t left() const { return left_; }
    // Whether this access is its instruction's first, or last.
    bool is_first() const { return piece_ == 0; }
    bool is_last() const { return piece_ + 1 >= touches_; }
    typename Arch::Unit unit() const { return unit_; }
    // What the last instruction was.
    Micro::Kind kind() const { return kind_; }
    // Whether a vector instruction was met and not followed.
    bool left_out_vectors() const { return left_out_; }

    // One instruction.
    Step step() {
        bool touches = false;
        Step step = run(1, [&] { return touches = true; });
        return step != Step::stop && touches ? Step::access : step;
    }

    // Up to `budget` instructions, as long as take() wants more: it is called after each access.
    template <class Take>
    Step run(std::uint64_t budget, Take take) {
        NoTrace none;
        return go(budget, take, none);
    }
    // … and trace() is told of each operation: begin() gives what to fill in, end_op() says that it is,
    // and goes_on() is asked after each instruction.
    template <class Take, class Trace>
    Step record(std::uint64_t budget, Take take, Trace& trace) {
        return go(budget, take, trace);
    }

 private:
    friend Arch;
    using Op = Micro::Op;
    using Ends = Micro::Ends;
    enum class Flow : std::uint8_t { on, jumped, stop };

    template <class Trace>
    static constexpr bool kTraces = !std::is_same_v<Trace, NoTrace>;

    template <class Take, class Trace>
    Step go(std::uint64_t budget, Take take, Trace& trace) {
        Known known = Arch::enter(s_);
        std::uint64_t pc = s_.pc;
        std::uint64_t* const r = Arch::slots(s_);
        Table* const table = table_;
        Lifting fresh;
        std::uint64_t at = pc;
        const Micro* m = nullptr;
        auto leave = [&](std::uint64_t to, Step step) {
            at_ = at;
            if (m != nullptr) kind_ = m->kind;
            left_ = budget;
            next_ = known.next;
            s_.pc = to;
            Arch::leave(s_, known);
            return step;
        };
        while (budget > 0) {
            at = pc;
            if (table != nullptr)
                m = table->at(pc, memory_);
            else
                m = lift_one(pc, fresh);
            if (m == nullptr) {
                budget--;
                return leave(pc, Step::stop);
            }
            for (;; m++) {  // instructions, up to a jump
                at = pc;
                budget--;
                known.next = pc + (Arch::kLength ? Arch::kLength : m->length);
                known.touches = 0;
                Flow flow;
                while ((flow = execute(*m, known, r, trace)) == Flow::on && m->ends == Ends::nothing)
                    m++;
                if (flow == Flow::stop) return leave(pc, Step::stop);
                if (known.touches != 0) {
                    leave(known.next, Step::access);
                    touches_ = known.touches;
                    for (piece_ = 0;; piece_++) {
                        if (!take()) return Step::access;
                        if (piece_ + 1 == touches_) break;
                    }
                }
                pc = known.next;
                if constexpr (kTraces<Trace>)
                    if (!trace.goes_on(at, pc)) return leave(pc, Step::done);
                if (flow == Flow::jumped || m->ends == Ends::run || budget == 0) break;
            }
        }
        return leave(pc, Step::done);
    }

    const Micro* lift_one(std::uint64_t pc, Lifting& fresh) {
        typename Arch::Code code;
        if (!Arch::fetch(memory_, pc, code)) return nullptr;
        fresh.count = 0;
        Arch::lift(pc, code, fresh);
        fresh.micro[fresh.count - 1].ends = Ends::run;
        return fresh.micro;
    }

    [[gnu::always_inline]] static void put(std::uint64_t* r, Known& known, unsigned d,
                                           std::uint64_t value, std::uint64_t is_known) {
        r[d] = value;
        if (is_known)
            [[likely]]  // a branch is foreseen; a mask would make every operation wait for the last
            known.slots |= slot_bit(d);
        else
            known.slots &= ~slot_bit(d);
    }

    // A value, with the operation known to the compiler. `kBytes` is 0 where it is the operation's own.
    template <Op kOp, unsigned kBytes, bool kFlags>
    [[gnu::always_inline]] void value(const Micro& m, Known& known, std::uint64_t* r, std::uint64_t a,
                                      std::uint64_t b, std::uint64_t is_known) {
        unsigned bytes = kBytes ? kBytes : m.bytes;
        a = cut(a, bytes);
        b = cut(b, bytes);
        std::uint64_t result = cut(compute(kOp, a, b, bytes), bytes);
        if constexpr (kFlags) set_flags(m, kOp, known, a, b, result, bytes, is_known);
        put(r, known, m.d, result, is_known);
    }
    [[gnu::always_inline]] static void set_flags(const Micro& m, Op op, Known& known, std::uint64_t a,
                                                 std::uint64_t b, std::uint64_t result, unsigned bytes,
                                                 std::uint64_t is_known) {
        if (is_shift(op) && is_known) {
            unsigned count = b & (8 * bytes - 1);
            if (count == 0) return;
            known.set_flags(m.flags, flags_of<Arch>(op, a, b, result, bytes), true);
            if (count != 1) known.flags_known &= static_cast<std::uint8_t>(~kOverflow);
            return;
        }
        known.set_flags(m.flags, is_shift(op) ? 0 : flags_of<Arch>(op, a, b, result, bytes), is_known);
        if constexpr (!Arch::kDefinesFlags) known.flags_known &= static_cast<std::uint8_t>(~m.loses);
    }

    template <class Trace>
    [[gnu::always_inline]] Flow execute(const Micro& m, Known& known, std::uint64_t* r, Trace& trace) {
        std::uint64_t a = r[m.a], b = (r[m.b] << m.shift) + static_cast<std::uint64_t>(m.immediate);
        std::uint64_t is_known = (~known.slots & m.needs) == 0;
        if constexpr (kTraces<Trace>) {
            Executed& event = trace.begin();
            event.m = m;
            event.a = a;
            event.b = b;
            event.d = r[m.d];
            event.c = r[m.c];
            event.before = known;
            Flow flow = act(m, known, r, a, b, is_known);
            if (flow == Flow::stop) return flow;
            event.result = r[m.d];
            event.after = known;
            event.touches = m.is_memory() || known.touches > event.before.touches;
            if (m.is_memory() && !m.is_sized())
                event.touched = {a + b, m.pieces, m.bytes, m.is_store()};
            else if (event.touches)
                event.touched = touch_[known.touches - 1];
            trace.end_op();
            return flow;
        } else
            return act(m, known, r, a, b, is_known);
    }

    [[gnu::always_inline]] Flow act(const Micro& m, Known& known, std::uint64_t* r, std::uint64_t a,
                                    std::uint64_t b, std::uint64_t is_known) {
        auto jump = [&](bool is_taken) {
            if (!is_taken) return Flow::on;
            known.next = static_cast<std::uint64_t>(m.immediate);
            return Flow::jumped;
        };
        switch (m.key) {
#define REVISIT_VALUE(op)                                     \
    case Micro::key_of(Op::op, 8, false):                     \
        value<Op::op, 8, false>(m, known, r, a, b, is_known); \
        return Flow::on;                                      \
    case Micro::key_of(Op::op, 4, false):                     \
        value<Op::op, 4, false>(m, known, r, a, b, is_known); \
        return Flow::on;                                      \
    case Micro::key_of(Op::op, 2, false):                     \
        value<Op::op, 0, false>(m, known, r, a, b, is_known); \
        return Flow::on;                                      \
    case Micro::key_of(Op::op, 8, true):                      \
        value<Op::op, 8, true>(m, known, r, a, b, is_known);  \
        return Flow::on;                                      \
    case Micro::key_of(Op::op, 4, true):                      \
        value<Op::op, 4, true>(m, known, r, a, b, is_known);  \
        return Flow::on;                                      \
    case Micro::key_of(Op::op, 2, true):                      \
        value<Op::op, 0, true>(m, known, r, a, b, is_known);  \
        return Flow::on;
            REVISIT_VALUE(add)
            REVISIT_VALUE(subtract)
            REVISIT_VALUE(bit_and)
            REVISIT_VALUE(bit_or)
            REVISIT_VALUE(bit_xor)
            REVISIT_VALUE(multiply)
            REVISIT_VALUE(shift_left)
            REVISIT_VALUE(shift_right)
            REVISIT_VALUE(field)
            REVISIT_VALUE(signed_field)
#undef REVISIT_VALUE
            case Micro::key_of(Op::load, 8, false):
                if (!is_known) return Flow::stop;
                touch(known, a + b, m.pieces, m.bytes, false);
                return load_all(m, known, r, a + b) ? Flow::on : Flow::stop;
            case Micro::key_of(Op::store, 8, false):
                if (!is_known) return Flow::stop;
                touch(known, a + b, m.pieces, m.bytes, true);
                return store_all(m, known, r, a + b) ? Flow::on : Flow::stop;
            case Micro::key_of(Op::jump, 8, false):
                return jump(true);
            case Micro::key_of(Op::jump_if, 8, false): {
                std::uint8_t needs = m.condition.needs();
                if ((known.flags_known & needs) != needs) return Flow::stop;
                return jump(m.condition.holds(known.flags));
            }
            case Micro::key_of(Op::jump_zero, 8, false):
                if (!known.slot(m.a)) return Flow::stop;
                return jump(cut(a, m.bytes) == 0);
            case Micro::key_of(Op::jump_not_zero, 8, false):
                if (!known.slot(m.a)) return Flow::stop;
                return jump(cut(a, m.bytes) != 0);
            case Micro::key_of(Op::jump_bit, 8, false):
                if (!known.slot(m.a)) return Flow::stop;
                return jump(a >> m.shift & 1);
            case Micro::key_of(Op::jump_not_bit, 8, false):
                if (!known.slot(m.a)) return Flow::stop;
                return jump(!(a >> m.shift & 1));
            case Micro::key_of(Op::select, 8, false): {
                std::uint8_t needs = m.condition.needs();
                bool takes_second = m.condition.holds(known.flags);
                std::uint64_t value = cut(takes_second ? b : a, m.bytes);
                bool value_known = known.slot(takes_second ? m.b : m.a);
                put(r, known, m.d, value, value_known && (known.flags_known & needs) == needs);
                return Flow::on;
            }
            case Micro::key_of(Op::insert, 8, false): {
                std::uint64_t low = ones(8u * m.bytes);
                put(r, known, m.d, (a & ~low) | (b & low), is_known);
                return Flow::on;
            }
            case Micro::key_of(Op::vector_load, 8, false):
            case Micro::key_of(Op::vector_store, 8, false):
                if (!is_known) return Flow::stop;
                touch(known, a + b, m.pieces, m.bytes, m.op == Op::vector_store);
                return Arch::move_vectors(*this, m, a + b) ? Flow::on : Flow::stop;
            case Micro::key_of(Op::none, 8, false):
                return Flow::on;
            case Micro::key_of(Op::native, 8, false):
                if (Arch::leaves_out(*this, m)) return Flow::on;
                [[fallthrough]];
            default: {
                Known copy = known;  // which may be in memory, this one not
                Flow flow = rare(m, copy, r, a, b, is_known);
                known = copy;
                return flow;
            }
        }
    }

    [[gnu::noinline]] Flow rare(const Micro& m, Known& known, std::uint64_t* r, std::uint64_t a,
                                std::uint64_t b, bool is_known) {
        switch (m.op) {
            case Op::jump_register:
                if (!known.slot(m.a)) return Flow::stop;
                known.next = a;
                return Flow::jumped;
            case Op::add_carry:
            case Op::subtract_carry: {
                is_known &= (known.flags_known & kCarry) != 0;
                bool carry = known.flags & kCarry, subtracts = m.op == Op::subtract_carry;
                a = cut(a, m.bytes);
                b = cut(b, m.bytes);
                Sum sum = subtracts ? difference_of<Arch>(a, b, carry == Arch::kCarryIsBorrow, m.bytes)
                                    : sum_of(a, b, carry, m.bytes);
                if (m.flags != 0) known.set_flags(m.flags, sum.flags, is_known);
                put(r, known, m.d, sum.result, is_known);
                return Flow::on;
            }
            case Op::choose:
                put(r, known, m.d, r[m.c] ? b : a, is_known && known.slot(m.c));
                return Flow::on;
            case Op::get_flags:
                put(r, known, m.d, std::uint64_t{known.flags & 15u} << 28,
                    (known.flags_known & 15) == 15);
                return Flow::on;
            case Op::set_flags:
                known.set_flags(15, static_cast<std::uint8_t>(a >> 28 & 15), known.slot(m.a));
                return Flow::on;
            case Op::own:
                if constexpr (requires { Arch::own(m, a, b, a, known, unit_); }) {
                    is_known &= known.slot(m.c);
                    Outcome of = Arch::own(m, a, b, r[m.c], known, unit_);
                    known.set_flags(m.flags, of.flags, is_known && of.are_flags_known);
                    known.flags_known &= static_cast<std::uint8_t>(~m.loses);
                    put(r, known, m.d, cut(of.result, m.bytes), is_known && of.is_known);
                }
                return Flow::on;
            case Op::load_sized:
            case Op::store_sized: {
                if (!is_known || !known.slot(m.c)) return Flow::stop;
                auto bytes = static_cast<unsigned>(r[m.c]);
                bool stores = m.op == Op::store_sized;
                touch(known, a + b, 1, bytes, stores);
                if (stores)
                    return memory_.store(a + b, bytes, r[m.d], known.slot(m.d)) ? Flow::on : Flow::stop;
                std::uint64_t value = 0;
                Loaded loaded = memory_.load(a + b, bytes, value);
                put(r, known, m.d, value, loaded == Loaded::value);
                return loaded == Loaded::fault ? Flow::stop : Flow::on;
            }
            case Op::forget_flags:
                known.set_flags(m.loses, 0, false);
                return Flow::on;
            case Op::forget:
                put(r, known, m.d, 0, false);
                return Flow::on;
            case Op::compare_if:
            case Op::compare_if_added: {
                std::uint8_t needs = m.condition.needs(), flags = m.lanes;
                bool can_tell = (known.flags_known & needs) == needs;
                bool compares = m.condition.holds(known.flags);
                a = cut(a, m.bytes);
                b = cut(b, m.bytes);
                if (compares)
                    flags = m.op == Op::compare_if ? difference_of<Arch>(a, b, 0, m.bytes).flags
                                                   : sum_of(a, b, 0, m.bytes).flags;
                known.set_flags(m.flags, flags, can_tell && (!compares || is_known));
                return Flow::on;
            }
            case Op::store_unknown:
            case Op::store_zeros: {
                if (!is_known) return Flow::stop;
                touch(known, a + b, m.pieces, m.bytes, true);
                unsigned all = m.pieces * m.bytes;
                for (unsigned at = 0; at < all; at += 8)
                    if (!memory_.store(a + b + at, all - at < 8 ? all - at : 8, 0,
                                       m.op == Op::store_zeros))
                        return Flow::stop;
                return Flow::on;
            }
            case Op::native: {
                Arch::leave(s_, known);
                next_ = known.next;
                touches_ = known.touches;
                bool goes_on = Arch::native(*this, m);
                known = Arch::enter(s_);
                known.next = next_;
                known.touches = touches_;
                return goes_on ? Flow::on : Flow::stop;
            }
            case Op::stop:
                return Flow::stop;
            default: {  // the less common values
                a = cut(a, m.bytes);
                b = cut(b, m.bytes);
                std::uint64_t result = cut(compute(m.op, a, b, m.bytes), m.bytes);
                if (m.flags != 0) set_flags(m, m.op, known, a, b, result, m.bytes, is_known);
                put(r, known, m.d, result, is_known);
                return Flow::on;
            }
        }
    }

    [[gnu::always_inline]] void touch(Known& known, std::uint64_t address, unsigned pieces,
                                      unsigned bytes, bool writes) {
        if (Arch::kJoinsTouches && known.touches != 0) {
            touch_[0].writes |= writes;
            return;
        }
        touch_[known.touches++] = {address, pieces, bytes, writes};
    }

    [[gnu::always_inline]] bool load_all(const Micro& m, Known& known, std::uint64_t* r,
                                         std::uint64_t address) {
        if (!load_one(m, known, r, address, m.d)) return false;
        return m.pieces == 1 || load_one(m, known, r, address + m.bytes, m.c);
    }
    [[gnu::always_inline]] bool load_one(const Micro& m, Known& known, std::uint64_t* r,
                                         std::uint64_t address, unsigned d) {
        std::uint64_t value = 0;
        Loaded loaded = memory_.load(address, m.bytes, value);
        if (loaded == Loaded::fault) return false;
        if (m.extend != Micro::Extend::zero) {
            value = static_cast<std::uint64_t>(sign_extend(value, 8 * m.bytes));
            if (m.extend == Micro::Extend::sign_to_32) value = cut(value, 4);
        }
        put(r, known, d, value, loaded == Loaded::value);
        return true;
    }
    [[gnu::always_inline]] bool store_all(const Micro& m, const Known& known, const std::uint64_t* r,
                                          std::uint64_t address) {
        return memory_.store(address, m.bytes, r[m.d], known.slot(m.d)) &&
               (m.pieces == 1 || memory_.store(address + m.bytes, m.bytes, r[m.c], known.slot(m.c)));
    }

    State& s_;
    Memory& memory_;
    typename Arch::Unit unit_;
    Table* table_;
    Touched touch_[16];  // a gather's, at most
    unsigned touches_ = 0, piece_ = 0;
    std::uint64_t at_ = 0, next_ = 0, left_ = 0;
    bool left_out_ = false;
    Micro::Kind kind_ = Micro::Kind::other;
};

}  // namespace revisit::machine
