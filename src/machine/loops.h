// Affine loops, many iterations at once.
//
// Problem. To count the accesses of a stretch that was run (replay_count.h) by interpreting it takes
// thirty times as long as running it did. Idea. Most of a computing program's time goes by in loops in
// which what is counted and compared grows by the same amount in each iteration. One iteration is
// recorded, micro-operation by micro-operation, with its values. It is then walked through with forms
// instead of values (affine.h): each register begins with the slope seen, and forms that do not come
// out of the walk as they went in are dropped, until all do: a proof by induction. Sums, differences,
// copies, and products and shifts by what does not change keep an affine form; 32-bit results until
// they wrap, which bounds the iterations; any other result has one if nothing that it comes of changes.
// Each branch gives a bound: how long its comparison comes out as it did. All but the last of these
// iterations are then skipped: so many accesses are added, registers set to v + k * s, and to unknown
// where they have no form.
//
//     loop: ldr  d0, [x1, x0, lsl #3]   address affine, slope 8
//           fadd d1, d1, d0             vector registers: unknown afterwards
//           add  x0, x0, #1             x0 = {7, slope 1}
//           cmp  x0, x2                 flags by {8, slope 1} - {1000, still}
//           b.lt loop                   as now for 991 iterations: 990 skipped, with 990 accesses;
//                                       x0 = 997
//
// Memory: what is loaded where no store of the loop comes to is the same every time, and what was
// stored before in the same iteration is what was stored. A replay reads memory as the program has left
// it. Looking ahead (touch_count.h) that has not happened yet: there addresses must be affine, so that
// it is known what is stored to, which is unknown from then on, and which iteration touches the block
// in question. Cost. 3.5 us per loop entered, the iterations that are interpreted included (Xeon of 2.5
// GHz, bench_machine); on matrix multiply 400 times fewer instructions are interpreted. Checked against
// a naive count on compiled loops in tests/machine_replay_test.cpp and machine_x64_loops_test.cpp.
#pragma once

#include <type_traits>
#include <utility>

#include "machine/affine.h"
#include "machine/ahead.h"
#include "machine/loop_finder.h"
#include "machine/loop_flags.h"
#include "machine/replay_count.h"
#include "machine/touch_count.h"

namespace revisit::machine {

template <class Arch>
class Loops {
 public:
    using State = typename Arch::State;

    void start() { finder_.start(); }
    bool comes_round(std::uint64_t pc) { return finder_.comes_round(pc); }

    // The state is that after an access for which comes_round() was true. Goes once round, take() is
    // called after each access and may end it, and then skips what can be. `end` is where to end: a
    // ReplayEnd or a NextTouch.
    template <class Memory, class End, class Take>
    SkippedLoop skip(Ahead<Arch, Memory>& ahead, State& state, Memory& memory, const End& end,
                     unsigned shift, Take take) {
        shift_ = shift;
        is_replay_ = kIsReplay<End>;
        elsewhere_ = false;
        unit_ = ahead.unit();
        std::uint64_t most = record(ahead, state, end, take) ? iterations_alike(end) : 0;
        finder_.found(most, elsewhere_);
        if constexpr (!kIsReplay<End>) most = within(most, end.accesses);
        if (most < 2 || !lose_stores(memory, most - 1)) return {0, 0, instructions_};
        most--;
        Known known = Arch::enter(state);
        for (unsigned r = 0; r < Arch::kRegisters; r++)
            if (form_[r].is_affine)
                Arch::slots(state)[r] += most * static_cast<std::uint64_t>(form_[r].slope);
            else
                known.slots &= ~slot_bit(r);
        flags_.apply<Arch>(known, most);
        Arch::leave(state, known);
        Arch::forget_vectors(state, vectors_);
        return {accesses_over(most), most * instructions_, instructions_};
    }

 private:
    using Op = Micro::Op;
    using Order = Comparison::Order;
    using Operand = AffineOperand;
    static constexpr unsigned kMostLength = 384;
    template <class End>
    static constexpr bool kIsReplay = std::is_same_v<End, ReplayEnd<State>>;

    struct Recorded : Executed {
        bool joins = false;  // one access with what its instruction touched before
        // Found when walking through it.
        Form where;      // what it touches
        Form stored[2];  // its pieces
    };
    struct Registers {
        std::uint64_t value[Arch::kRegisters];
        Known known;
    };

    static Registers registers_of(State& state) {
        Registers out;
        out.known = Arch::enter(state);
        for (unsigned r = 0; r < Arch::kRegisters; r++) out.value[r] = Arch::slots(state)[r];
        return out;
    }

    // An iteration as it is interpreted.
    template <class End>
    struct Recorder {
        Loops& l;
        State& state;
        const End& end;
        const std::uint64_t head = state.pc;
        unsigned first = 0;  // operation of the instruction
        bool touches = false, is_good = true;

        Executed& begin() { return l.record_[l.length_]; }
        void end_op() {
            Recorded& one = l.record_[l.length_];
            one.where = kStill;
            one.joins = Arch::kJoinsTouches && touches;
            touches |= one.touches;
            l.length_++;
        }
        bool goes_on(std::uint64_t at, std::uint64_t next) {
            l.instructions_++;
            if constexpr (kIsReplay<End>)
                if (touches && at == end.pc) {
                    is_good = l.ends_at_ == kMostLength;  // not in two places
                    for (l.end_touch_ = first; !l.record_[l.end_touch_].touches;) l.end_touch_++;
                    l.ends_at_ = l.length_ - 1;
                    l.at_end_ = registers_of(state);
                }
            first = l.length_;
            touches = false;
            if (next == head) return false;
            return is_good = is_good && l.length_ + Lifting::kMost <= kMostLength;
        }
    };

    template <class Memory, class End, class Take>
    bool record(Ahead<Arch, Memory>& ahead, State& state, const End& end, Take take) {
        before_ = registers_of(state);
        length_ = instructions_ = 0;
        vectors_ = 0;
        ends_at_ = kMostLength;
        bool wants_more = true;
        Recorder<End> recorder{*this, state, end};
        Step step = ahead.record(kMostLength, [&] { return wants_more = take(); }, recorder);
        if (step == Step::stop || !wants_more || !recorder.is_good) return false;
        after_ = registers_of(state);
        return true;
    }

    // How many iterations from now on take the same way as the one recorded; not beyond the end.
    template <class End>
    std::uint64_t iterations_alike(const End& end) {
        constexpr unsigned kMostWalks = 40;
        Form head[Arch::kRegisters];
        for (unsigned r = 0; r < Arch::kRegisters; r++) {
            head[r].is_affine = before_.known.slot(r) && after_.known.slot(r);
            head[r].slope = static_cast<std::int64_t>(after_.value[r] - before_.value[r]);
        }
        for (unsigned walks = 0; walks < kMostWalks; walks++) {
            for (unsigned r = 0; r < kSlots; r++)
                form_[r] = r < Arch::kRegisters                    ? head[r]
                           : r == kZeroSlot || r >= kThreadPointer ? kStill
                                                                   : Form{};
            moved_ = false;
            bool understood = walk(end);
            if (!understood || most_ == 0) return 0;
            bool holds = !moved_;
            for (unsigned r = 0; r < Arch::kRegisters; r++)
                if (head[r].is_affine && form_[r] != head[r]) {
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
        flags_ = {};
        earlier_ = 0;
        std::uint64_t lost = 0;  // registers that will not be known, the first time round after it
        for (unsigned r = 0; r < Arch::kRegisters; r++)
            if (!form_[r].is_affine) lost |= slot_bit(r);
        bool flags_lost = true;
        for (at_ = 0; at_ < length_ && most_ > 0; at_++) {
            Recorded& one = record_[at_];
            const Micro& m = one.m;
            if (one.touches && lost & (slot_bit(m.a) | slot_bit(m.b))) {
                elsewhere_ = true;
                return false;
            }
            bool loses = lost & reads(m) || (flags_lost && m.reads_flags()) || m.op == Op::native;
            lost = loses ? lost | writes(m) : lost & ~writes(m);
            if (m.flags != 0) flags_lost = loses;
            vectors_ |= Arch::vectors_written(m);
            if ((one.touches && !touches_alike(one)) || !follow(one)) return false;
            if constexpr (kIsReplay<End>) {
                if (at_ == ends_at_) most_ = fewer(most_, before_end(end));
            } else if (one.touches)
                most_ = fewer(most_, before_touch(end.block, shift_, one.touched.address,
                                                  one.touched.pieces, one.touched.bytes, one.where));
        }
        for (unsigned k = 0; k < earlier_; k++) {
            Condition condition = condition_[k];
            std::uint8_t needs = condition.needs();
            bool can_tell = (before_.known.flags_known & after_.known.flags_known & needs) == needs;
            if (!can_tell ||
                condition.holds(before_.known.flags) != condition.holds(after_.known.flags))
                return false;
            most_ = fewer(most_, flags_.stays(condition) + 1);
        }
        return true;
    }

    // Operands and results.

    Form form(const Recorded& one, unsigned slot) const {
        return one.before.slot(slot) ? form_[slot] : Form{};
    }
    Operand first(const Recorded& one) const { return {form(one, one.m.a), one.a}; }
    Operand second(const Recorded& one) const {
        return {form(one, one.m.b) * (std::uint64_t{1} << one.m.shift), one.b};
    }
    void put(const Recorded& one, unsigned slot, Form form) {
        form_[slot] = one.after.slot(slot) ? form : Form{};
    }
    // As long as it does not wrap; where that is soon it is of no use.
    Form narrowed(Operand operand, unsigned bits, bool is_signed) {
        if (!operand.form.is_affine || bits == 64) return operand.form;
        auto slope = static_cast<std::int64_t>(
            low_bits(static_cast<std::uint64_t>(operand.form.slope), bits, true));
        return bounded({true, slope}, stays_within(operand.value, slope, bits, is_signed));
    }
    Form bounded(Form form, std::uint64_t iterations) {
        if (!form.is_affine || iterations < LoopFinder::kFew) return {};
        most_ = fewer(most_, iterations);
        return form;
    }

    // Memory.

    std::uint64_t accesses_over(std::uint64_t iterations) const {
        std::uint64_t all = 0;
        for (unsigned k = 0; k < length_; k++) {
            const Recorded& one = record_[k];
            if (!one.touches || one.joins) continue;
            all += blocks_over(one.touched.address, one.touched.pieces, one.touched.bytes, one.where,
                               iterations, shift_);
        }
        return all;
    }
    // So many iterations that those to be left out, all but the last, make no more accesses with the
    // one recorded.
    std::uint64_t within(std::uint64_t iterations, std::uint64_t accesses) const {
        std::uint64_t recorded = accesses_over(1), low = 0, high = iterations;
        if (high < 2 || (accesses >= recorded && accesses_over(high - 1) <= accesses - recorded))
            return high;
        if (accesses < recorded) return 0;
        while (low + 1 < high) {
            std::uint64_t middle = (low + high) / 2;
            (accesses_over(middle) <= accesses - recorded ? low : high) = middle;
        }
        return low + 1;
    }
    // Whether it is known how many blocks it touches every time. What has an address that is not
    // affine, and is aligned, is taken to be so always.
    bool touches_alike(Recorded& one) {
        Form where = form(one, one.m.a) + form(one, one.m.b) * (std::uint64_t{1} << one.m.shift);
        if (one.touched.writes && where != one.where) moved_ = true;  // what is loaded depends on it
        one.where = where;
        one.stored[0] = one.stored[1] = {};
        if (where.is_affine) return true;
        std::uint64_t block = std::uint64_t{1} << shift_, bytes = one.touched.bytes;
        std::uint64_t piece = bytes < block ? bytes : block;
        return (bytes & (bytes - 1)) == 0 && one.touched.address % piece == 0;
    }

    static Piece piece_of(const Recorded& one, unsigned piece) {
        return {one.touched.address + std::uint64_t{piece} * one.touched.bytes, one.touched.bytes};
    }
    // What is loaded by a piece: that of the last store in this iteration, or, where none comes there,
    // what it always is.
    Form loaded(const Recorded& one, unsigned piece) {
        Piece load = piece_of(one, piece);
        Form where = one.where;
        if (!where.is_affine) return {};
        std::uint64_t iterations = kMostIterations;
        for (unsigned k = 0; k < length_; k++) {
            unsigned from = at_ + length_ - 1 - k;  // backwards, and around
            bool is_before = from >= length_;
            const Recorded& other = record_[is_before ? from - length_ : from];
            if (!is_before && !where.is_still()) return {};
            if (!other.touches || !other.touched.writes) continue;
            Piece store{other.touched.address, other.touched.all_bytes()};
            Form to = other.where;
            if (!to.is_affine) {
                // A replay reads what the program has left there; it has come there in this iteration
                // or is taken not to.
                if (is_replay_ && before_store(store, kStill, load) != 0) continue;
                return {};
            }
            if (to.slope == where.slope) {
                if (before_store(store, kStill, load) != 0) continue;
                bool is_same = false;
                for (unsigned p = 0; p < other.touched.pieces && p < 2; p++) {
                    Piece stored = piece_of(other, p);
                    if (stored.address != load.address || stored.bytes != load.bytes) continue;
                    is_same = true;
                    if (is_before) return bounded(other.stored[p], iterations);
                }
                if (is_same && &other != &one) elsewhere_ = true;  // stored in the iteration before
                return {};
            }
            if (!where.is_still()) return {};
            iterations = fewer(iterations, before_store(store, to, load));
        }
        return where.is_still() ? bounded(kStill, iterations) : Form{};
    }

    // What the skipped iterations store in one place is known where it is affine. Elsewhere a replay
    // reads memory as the program has left it; looking ahead it is unknown.
    template <class Memory>
    bool lose_stores(Memory& memory, std::uint64_t iterations) {
        for (unsigned k = 0; k < length_; k++) {
            const Recorded& one = record_[k];
            if (!one.touches || !one.touched.writes) continue;
            const Touched& op = one.touched;
            unsigned all = op.all_bytes();
            if (!one.where.is_still()) {
                if constexpr (requires { memory.lose(op.address, op.address); }) {
                    AddressRange lost(op.address, all, one.where.slope, iterations);
                    if (!is_replay_) memory.lose(lost.low, lost.high);
                } else if (!is_replay_)
                    return false;
                continue;
            }
            bool by_pieces = (one.m.op == Op::store || one.m.op == Op::store_sized) && op.bytes <= 8;
            for (unsigned at = 0, p = 0; at < all; at += by_pieces ? op.bytes : 8, p++) {
                bool is_affine = by_pieces && one.stored[p].is_affine;
                if (is_affine && one.stored[p].slope == 0) continue;
                std::uint64_t value = p == 0 ? one.d : one.c;
                if (is_affine) value += iterations * static_cast<std::uint64_t>(one.stored[p].slope);
                unsigned bytes = by_pieces ? op.bytes : all - at < 8 ? all - at : 8;
                if (!memory.store(op.address + at, bytes, value, is_affine)) return false;
            }
        }
        return true;
    }

    // Micro-operations. False = such a loop cannot be skipped.

    bool follow(Recorded& one) {
        const Micro& m = one.m;
        if (m.is_value()) {
            value(one);
            return true;
        }
        switch (m.op) {
            case Op::load:
                put(one, m.d, loaded(one, 0));
                if (m.pieces > 1) put(one, m.c, loaded(one, 1));
                return true;
            case Op::store:
                one.stored[0] = form(one, m.d);
                one.stored[1] = form(one, m.c);
                return true;
            case Op::load_sized:
            case Op::store_sized:
                if (!form(one, m.c).is_still()) return false;
                if (m.op == Op::load_sized)
                    put(one, m.d, loaded(one, 0));
                else
                    one.stored[0] = form(one, m.d);
                return true;
            case Op::forget_flags:
                flags_.set_still(at_, false, m.loses);
                return true;
            case Op::store_zeros:
            case Op::store_unknown:
            case Op::vector_load:
            case Op::vector_store:
            case Op::none:
            case Op::jump:
                return true;
            case Op::set_flags:
                flags_.set_still(at_, first(one).form.is_still(), m.flags);
                return true;
            case Op::compare_if:
            case Op::compare_if_added: {
                std::uint64_t iterations = flags_.stays(m.condition);
                bool holds = m.condition.holds(one.before.flags),
                     can_tell = iterations >= LoopFinder::kFew;
                if (can_tell) most_ = fewer(most_, iterations);
                if (can_tell && holds && m.op == Op::compare_if)
                    flags_.compare(at_, first(one), second(one), m.bytes, m.flags, m.flags);
                else
                    flags_.set_still(at_, can_tell && !holds, m.flags);
                return true;
            }
            case Op::jump_if:
                return branch(m.condition);
            case Op::jump_zero:
            case Op::jump_not_zero:
                most_ = fewer(most_, Comparison{first(one).form, kStill, one.a, 0, 8u * m.bytes}.stays(
                                         Order::equal));
                return true;
            case Op::jump_bit:
            case Op::jump_not_bit: {  // what is below it says when it changes
                Form form = first(one).form;
                if (form.is_still()) return true;
                if (!form.is_affine) return false;
                // Of the bits up to this one, the top is a sign.
                most_ = fewer(most_,
                              Comparison{form, kStill, one.a, 0, m.shift + 1u}.stays(Order::negative));
                return true;
            }
            case Op::jump_register:
                return first(one).form.is_still();
            case Op::native:
                return native(one);
            default:
                return false;
        }
    }

    void value(Recorded& one) {
        const Micro& m = one.m;
        Operand a = first(one), b = second(one);
        bool is_still = a.form.is_still() && b.form.is_still();
        bool is_same = m.a == m.b && m.shift == 0 && m.immediate == 0;
        unsigned width = 8u * m.bytes;
        Form result = is_still ? kStill : Form{};
        switch (m.op) {
            case Op::add:
                result = a.form + b.form;
                break;
            case Op::subtract:
                result = a.form - b.form;
                break;
            case Op::or_not:  // not b is -b - 1
                if (m.a == kZeroSlot) result = kStill - b.form;
                break;
            case Op::bit_and:
            case Op::bit_or:
                if (is_same) result = a.form;
                if (m.a == kZeroSlot && m.op == Op::bit_or) result = b.form;
                if (m.op == Op::bit_and) result = is_still ? result : masked(a, b, result);
                break;
            case Op::multiply:
                if (b.form.is_still()) result = a.form * b.value;
                if (a.form.is_still()) result = b.form * a.value;
                break;
            case Op::shift_left:
                if (b.form.is_still()) result = a.form * (std::uint64_t{1} << (b.value & (width - 1)));
                break;
            case Op::field:
            case Op::signed_field: {
                unsigned left = one.b & 63, right = one.b >> 8 & 63;
                if (!is_still && right <= left)
                    result = narrowed(a, 64 - left, m.op == Op::signed_field) *
                             (std::uint64_t{1} << (left - right));
                break;
            }
            case Op::select: {
                bool takes_second = m.condition.holds(one.before.flags);
                result = bounded((takes_second ? b : a).form, flags_.stays(m.condition));
                break;
            }
            case Op::choose:
                if (!form(one, m.c).is_still()) result = {};
                break;
            case Op::add_carry:
            case Op::subtract_carry:
                if (!flags_.has_still_carry()) result = {};
                break;
            case Op::insert:  // the rest of a stays while its low bytes do not wrap
                if (!is_still && narrowed(a, width, false).is_affine) result = b.form;
                width = 64;
                break;
            case Op::own:
                if constexpr (requires { Arch::own_form(m, unit_, a, b, a, most_); })
                    result = Arch::own_form(m, unit_, a, b, {form(one, m.c), one.c}, most_);
                break;
            case Op::get_flags:
            case Op::forget:
                result = {};
                break;
            default:
                break;
        }
        if (m.flags != 0) flags_of(m, a, b, result, is_same);
        if (width != 64) result = narrowed({result, one.result}, width, false);
        put(one, m.d, result);
    }

    // The low bits of an affine value, until they wrap.
    Form masked(Operand a, Operand b, Form otherwise) {
        if (!b.form.is_still() || !a.form.is_affine || (b.value & (b.value + 1)) != 0 || b.value == 0)
            return otherwise;
        return narrowed(a, static_cast<unsigned>(std::popcount(b.value)), false);
    }

    void flags_of(const Micro& m, Operand a, Operand b, Form result, bool is_same) {
        std::uint64_t lowest = std::uint64_t{1} << (8 * m.bytes - 1);
        bool is_still = a.form.is_still() && b.form.is_still();
        switch (m.op) {
            case Op::subtract:
                flags_.compare(at_, a, b, m.bytes, m.flags, m.flags);
                return;
            case Op::add:
                if (is_still)
                    flags_.set_still(at_, true, m.flags);
                else if (a.form.is_still() || b.form.is_still()) {  // as if less its negative
                    if (a.form.is_still()) std::swap(a, b);
                    if (cut(b.value, m.bytes) == lowest || cut(b.value, m.bytes) == 0)
                        flags_.compare(at_, {result, a.value + b.value}, {kStill, 0}, m.bytes,
                                       kZero | kSign | kParity, m.flags);
                    else
                        flags_.compare(at_, a, {kStill, 0 - b.value}, m.bytes,
                                       static_cast<std::uint8_t>(m.flags & ~kCarry), m.flags);
                } else
                    flags_.compare(at_, {result, a.value + b.value}, {kStill, 0}, m.bytes,
                                   kZero | kSign | kParity, m.flags);
                return;
            case Op::bit_and:
            case Op::bit_or:
                if (is_same) {
                    flags_.compare(at_, a, {kStill, 0}, m.bytes, Arch::kLogicFlags, m.flags);
                    return;
                }
                [[fallthrough]];
            default:
                flags_.set_still(at_, is_still && result.is_still(), m.flags);
        }
    }

    // The way it went, for as long as the condition stays what it is. Flags of the iteration before are
    // looked at when this one is through.
    bool branch(Condition condition) {
        if (flags_.is_set(condition)) {
            most_ = fewer(most_, flags_.stays(condition));
            return true;
        }
        if (flags_.is_halfway(condition) || earlier_ == kMostEarlier) return false;
        condition_[earlier_++] = condition;
        return true;
    }

    // What comes of vectors is not followed.
    bool native(Recorded& one) {
        if (!Arch::can_skip(one.m)) return false;
        if (one.m.d != kDiscard) form_[one.m.d] = {};
        if (one.m.flags != 0) flags_.set_still(at_, false, one.m.flags);
        return true;
    }

    // The state after this access, in some iteration to come, may be that of the end: how many come
    // before.
    std::uint64_t before_end(const ReplayEnd<State>& end) const {
        Meeting meeting;
        const Recorded& touch = record_[end_touch_];
        meeting.wants(touch.touched.address, touch.where, end.address);
        State final = end.state;
        Known wanted = Arch::enter(final);
        for (unsigned r = 0; r < Arch::kRegisters; r++)
            if (at_end_.known.slot(r) && wanted.slot(r))
                meeting.wants(at_end_.value[r], form_[r], Arch::slots(final)[r]);
        return meeting.before();
    }

    static constexpr unsigned kMostEarlier = 4;

    LoopFinder finder_;
    Recorded record_[kMostLength];
    unsigned length_ = 0, instructions_ = 0, at_ = 0, shift_ = 3;
    unsigned ends_at_ = 0, end_touch_ = 0;  // operations
    std::uint64_t most_ = 0;
    std::uint32_t vectors_ = 0;
    typename Arch::Unit unit_ = {};
    bool elsewhere_ = false, moved_ = false, is_replay_ = false;
    Registers before_, after_, at_end_;
    Form form_[kSlots];
    LoopFlags flags_;
    Condition condition_[kMostEarlier] = {};
    unsigned earlier_ = 0;
};

}  // namespace revisit::machine
