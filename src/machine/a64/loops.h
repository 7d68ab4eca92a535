// Loops of aarch64, many iterations at once.
//
// Problem. To count the accesses of a stretch that was run (replay_count.h) by interpreting it takes
// thirty times as long as running it did, so that few and short ones could be counted. Idea. Most of a
// computing program's time goes by in loops whose course is plain: what they count and compare grows by
// the same amount each time round. One iteration is recorded. For each register follows whether its
// value is v + k * s in the k-th one to come (proved by induction over the recorded instructions: sums
// and copies keep that form, what is loaded or computed otherwise does not), and for each branch up to
// which k it goes the same way. All but the last of these iterations are then left out: so many
// accesses are added, registers set to v + k * s, and to unknown where they do not have that form. A
// branch on such a register forbids it. Nothing is guessed; what is stored in iterations left out is
// read as the program has left it, as a replay does anyway. Looking ahead (touch_count.h) that has not
// happened yet: there addresses must have that form, too, so that it is known what is stored to, which
// is not known from then on, and which iteration touches the block that is looked for. Cost. About a
// microsecond a loop entered. On matrix multiply 400 times fewer instructions are interpreted.
#pragma once

#include <type_traits>

#include "machine/a64/ahead.h"
#include "machine/loops.h"
#include "machine/replay_count.h"
#include "machine/touch_count.h"

namespace revisit::machine {

class A64Loops {
 public:
    void start() { finder_.start(); }
    bool comes_round(std::uint64_t pc) { return finder_.comes_round(pc); }

    // The state is that after an access for which comes_round() was true. Goes once round, take() is
    // called after each access and may end it, and then leaves out what can be. `end` is where to end:
    // a ReplayEnd or a NextTouch.
    template <class Memory, class End, class Take>
    SkippedLoop skip(A64Ahead<Memory>& ahead, A64State& state, Memory& memory, const End& end,
                     unsigned shift, Take take) {
        shift_ = shift;
        std::uint64_t most = record(ahead, state, memory, end, shift, take) ? iterations_alike(end) : 0;
        if constexpr (!kIsReplay<End>)
            if (most >= 2 && !lose_stores(memory, most - 1)) most = 0;
        finder_.found(most, needs_lost_);
        if (most < 2) return {0, 0, length_};
        most--;
        for (unsigned r = 0; r < 32; r++)
            if (form_[r].is_plain)
                state.x[r] += most * static_cast<std::uint64_t>(form_[r].slope);
            else
                state.known &= ~(1u << r);
        state.v_known = 0;
        state.flags_known = flags_.is_set && flags_.a.is_plain && flags_.b.is_plain;
        state.nzcv = flags_.after(most);
        return {most * accesses_, most * length_, length_};
    }

 private:
    using Kind = QuickInstruction::Kind;
    using Mode = QuickInstruction::Mode;
    static constexpr unsigned kMostLength = 128;

    struct Recorded {
        QuickInstruction q;
        std::uint64_t n, m, d;  // what the registers held before
        std::uint64_t address;  // touched
        std::uint32_t blocks;   // … so many
        std::uint32_t known;    // registers, before
        bool ends_here;         // the replay may end after it, in another iteration
        std::int64_t slope;     // of the address, where it has to be plain
    };
    template <class End>
    static constexpr bool kIsReplay = std::is_same_v<End, ReplayEnd<A64State>>;

    template <class Memory, class End, class Take>
    bool record(A64Ahead<Memory>& ahead, A64State& state, Memory& memory, const End& end,
                unsigned shift, Take take) {
        std::uint64_t head = state.pc;
        before_ = state;
        length_ = 0;
        accesses_ = 0;
        can_end_ = needs_lost_ = false;
        bool ok = true;
        do {
            Recorded& one = record_[length_];
            std::uint32_t instruction;
            if (length_ == kMostLength || !memory.fetch(state.pc, instruction)) return false;
            one.q = decode_quick(instruction);
            one.n = state.x[one.q.n];
            one.m = state.x[one.q.m];
            one.d = state.x[one.q.d];
            one.known = state.known;
            one.blocks = 0;
            one.ends_here = false;
            if (one.q.kind == Kind::general && !touches_one_register(instruction)) ok = false;
            length_++;
            Step step = ahead.step();
            if (step == Step::stop) return false;
            if (step == Step::access) {
                const Touched& op = ahead.touched();
                one.address = op.address;
                one.blocks = static_cast<std::uint32_t>(blocks_of(op, shift));
                accesses_ += one.blocks;
                if constexpr (kIsReplay<End>) one.ends_here = ahead.at() == end.pc;
                if (one.ends_here) {
                    ok &= !can_end_;
                    can_end_ = true;
                    at_end_ = state;
                }
                if (!take()) return false;
            }
            if (!ok) return false;
        } while (state.pc != head);
        after_ = state;
        return true;
    }

    // A data-processing instruction: all it changes is its destination and the flags.
    static bool touches_one_register(std::uint32_t i) {
        unsigned group = field(i, 25, 4);
        return group == 8 || group == 9 || group == 5 || group == 13 || is_vector_class(i);
    }

    // How many iterations from now on take the same way as the one recorded; not beyond the end.
    template <class End>
    std::uint64_t iterations_alike(const End& end) {
        for (unsigned r = 0; r < 32; r++) {
            bool known = before_.is_known(r) && after_.is_known(r);
            head_[r] = {known, static_cast<std::int64_t>(after_.x[r] - before_.x[r])};
        }
        for (;;) {
            for (unsigned r = 0; r < 32; r++) form_[r] = head_[r];
            std::uint64_t most = walk(end);
            bool holds = true;
            for (unsigned r = 0; r < 32; r++)
                if (head_[r].is_plain && form_[r] != head_[r]) {
                    head_[r] = {};
                    holds = false;
                }
            if (holds || most == 0) return most;
        }
    }

    // Through the iteration once, with forms instead of values.
    template <class End>
    std::uint64_t walk(const End& end) {
        std::uint64_t most = kMostIterations;
        Compared flags;
        bool flags_met = false;
        constexpr unsigned kMostEarlier = 4;
        unsigned condition[kMostEarlier], earlier = 0;
        std::uint32_t lost = 0;  // registers that will not be known, the first time round after it
        for (unsigned r = 0; r < 32; r++)
            if (!head_[r].is_plain) lost |= 1u << r;
        needs_lost_ = false;
        for (unsigned at = 0; at < length_ && most > 0; at++) {
            Recorded& one = record_[at];
            const QuickInstruction& q = one.q;
            auto known = [&](unsigned r) { return one.known >> r & 1; };
            unsigned bits = q.wide ? 64 : 32;
            Form n = known(q.n) ? form_[q.n] : Form{}, m = known(q.m) ? form_[q.m] : Form{}, result;
            if (q.bytes != 0 && lost & addressed_by(q)) {
                needs_lost_ = true;
                return 0;
            }
            follow(q, lost);
            switch (q.kind) {
                case Kind::constant:
                case Kind::address:
                case Kind::page_address:
                    result = {true, 0};
                    break;
                case Kind::move:
                    result = m;
                    break;
                case Kind::add_immediate:
                    result = n;
                    break;
                case Kind::add:
                case Kind::subtract:
                    m = m * (std::uint64_t{1} << q.shift);
                    result = q.kind == Kind::add ? n + m : n - m;
                    break;
                case Kind::bit_and:
                case Kind::bit_or:
                case Kind::bit_xor:
                    result = {n.is_still() && m.is_still(), 0};
                    break;
                case Kind::and_immediate:
                case Kind::or_immediate:
                case Kind::xor_immediate:
                case Kind::field:
                case Kind::signed_field:
                    result = {n.is_still(), 0};
                    break;
                case Kind::compare_immediate:
                    flags_met = true;
                    flags = {{n, kStill, one.n, static_cast<std::uint64_t>(q.value), bits}, true};
                    result = n;
                    break;
                case Kind::compare:
                    m = m * (std::uint64_t{1} << q.shift);
                    flags_met = true;
                    flags = {{n, m, one.n, one.m << q.shift, bits}, true};
                    result = n - m;
                    break;
                case Kind::select: {
                    if (!flags.is_set || !flags.a.is_still() || !flags.b.is_still()) break;
                    unsigned chosen = flags.holds(q.shift, 0) ? q.n : q.m;
                    result = chosen == 31 ? Form{true, 0} : chosen == q.n ? n : m;
                    break;
                }
                case Kind::jump:
                    continue;
                case Kind::call:
                    form_[30] = {true, 0};
                    continue;
                case Kind::jump_if:
                    if (!flags_met) {  // those of the iteration before
                        if (earlier == kMostEarlier || !before_.flags_known) return 0;
                        condition[earlier++] = q.shift;
                        continue;
                    }
                    most = fewer(most, flags.stays(q.shift));
                    continue;
                case Kind::jump_zero: {
                    Form d = known(q.d) ? form_[q.d] : Form{};
                    most = fewer(most, Compared{{d, kStill, one.d, 0, bits}, true}.stays(0));
                    continue;
                }
                case Kind::jump_bit:
                    if (!known(q.d) || !form_[q.d].is_still()) return 0;
                    continue;
                case Kind::jump_register:
                    if (!n.is_still()) return 0;
                    if (q.is_negative) form_[30] = {true, 0};
                    continue;
                case Kind::vector_skip:
                    continue;
                case Kind::general:
                    if (q.d != 31) form_[q.d] = {};
                    flags = {};
                    flags_met = true;
                    continue;
                default:
                    if (!touches_alike(one, n, m)) return 0;
                    access(at, one, n, m);
                    if constexpr (kIsReplay<End>) {
                        if (one.ends_here) most = fewer(most, before_end(end, one, n, m));
                    } else
                        most = fewer(most, next_touch(end, one, address_form(q, n, m)));
                    continue;
            }
            if (q.d == 31 && (q.kind == Kind::compare || q.kind == Kind::compare_immediate)) continue;
            if (!q.wide && result.is_plain &&
                q.kind != Kind::constant) {  // as long as it does not wrap
                result.slope = static_cast<std::int32_t>(result.slope);
                most = fewer(most, stays_within(value_after(at, q.d), result.slope, 32, false));
            }
            form_[q.d] = result;
        }
        for (unsigned i = 0; i < earlier; i++) {
            if (!flags.is_set ||
                flags.holds(condition[i], 0) != machine::holds(condition[i], before_.nzcv))
                return 0;
            most = fewer(most, flags.stays(condition[i]) + 1);
        }
        flags_ = flags;
        return most;
    }

    static std::uint32_t addressed_by(const QuickInstruction& q) {
        bool by_index =
            q.mode == Mode::index || q.mode == Mode::signed_index || q.mode == Mode::unsigned_index;
        return 1u << q.n | (by_index ? 1u << q.m : 0);
    }

    // What is computed from something lost is lost, too.
    static void follow(const QuickInstruction& q, std::uint32_t& lost) {
        std::uint32_t reads = 0;
        switch (q.kind) {
            case Kind::jump:
            case Kind::jump_if:
            case Kind::jump_zero:
            case Kind::jump_bit:
            case Kind::store:
            case Kind::store_pair:
            case Kind::vector_load:
            case Kind::vector_store:
            case Kind::vector_skip:
                return;
            case Kind::call:
            case Kind::jump_register:
                lost &= ~(1u << 30);
                return;
            case Kind::load_pair:
                lost &= ~(1u << q.m);
                break;
            case Kind::move:
                reads = 1u << q.m;
                break;
            case Kind::add:
            case Kind::subtract:
            case Kind::bit_and:
            case Kind::bit_or:
            case Kind::bit_xor:
            case Kind::compare:
            case Kind::select:
                reads = 1u << q.n | 1u << q.m;
                break;
            case Kind::general:
                reads = 1u << q.n | 1u << q.m | 1u << field(q.instruction, 10, 5);
                break;
            case Kind::constant:
            case Kind::address:
            case Kind::page_address:
            case Kind::load:
                break;
            default:
                reads = 1u << q.n;
        }
        if (q.d == 31) return;
        lost = lost & reads ? lost | 1u << q.d : lost & ~(1u << q.d);
    }

    // What register `r` held after the instruction number `at`.
    std::uint64_t value_after(unsigned at, unsigned r) const {
        for (unsigned i = at + 1; i < length_; i++) {
            const Recorded& one = record_[i];
            if (one.q.n == r) return one.n;
            if (one.q.m == r) return one.m;
            if (one.q.d == r) return one.d;
        }
        return after_.x[r];
    }

    static Form address_form(const QuickInstruction& q, Form n, Form m) {
        switch (q.mode) {
            case Mode::index:
                return n + m * (std::uint64_t{1} << q.shift);
            case Mode::signed_index:
            case Mode::unsigned_index:
                return {n.is_plain && m.is_plain && m.slope == 0, n.slope};
            default:
                return n;
        }
    }

    // Whether it is as many blocks every time: steps of whole words, or pieces that stay within one.
    static bool touches_alike(const Recorded& one, Form n, Form m) {
        const QuickInstruction& q = one.q;
        if (q.bytes <= 8 && one.blocks == q.pieces && one.address % q.bytes == 0) return true;
        Form form = address_form(q, n, m);
        return form.is_plain ? form.slope % 8 == 0 : one.address % 8 == 0;
    }

    // A word that is read every time and never written stays what it is.
    void access(unsigned at, const Recorded& one, Form n, Form m) {
        const QuickInstruction& q = one.q;
        bool loads = q.kind == Kind::load || q.kind == Kind::load_pair;
        if (loads) {
            Form where = address_form(q, n, m), value;
            if (where.is_plain && where.slope == 0 && !is_written(one)) value = {true, 0};
            auto give = [&](unsigned r) {
                bool known = at + 1 < length_ ? record_[at + 1].known >> r & 1 : after_.is_known(r);
                form_[r] = known ? value : Form{};
            };
            give(q.d);
            if (q.kind == Kind::load_pair) give(q.m);
        }
        if (q.mode == Mode::after || q.mode == Mode::before) form_[q.n] = n;
    }

    bool is_written(const Recorded& one) const {
        std::uint64_t low = one.address, high = low + std::uint64_t{one.q.pieces} * one.q.bytes;
        for (unsigned i = 0; i < length_; i++) {
            const Recorded& other = record_[i];
            if (other.q.kind != Kind::store && other.q.kind != Kind::store_pair &&
                other.q.kind != Kind::vector_store)
                continue;
            if (other.address < high &&
                low < other.address + std::uint64_t{other.q.pieces} * other.q.bytes)
                return true;
        }
        return false;
    }

    // The state after this access, in some iteration to come, may be that of the end: which one, less
    // one. None, all and those that passed: as far as one likes, not at all.
    std::uint64_t before_end(const ReplayEnd<A64State>& end, const Recorded& one, Form n,
                             Form m) const {
        Meeting meeting;
        meeting.wants(one.address, address_form(one.q, n, m), end.address);
        for (unsigned r = 0; r < 32; r++)
            if (at_end_.is_known(r) && end.state.is_known(r))
                meeting.wants(at_end_.x[r], form_[r], end.state.x[r]);
        return meeting.before();
    }

    std::uint64_t next_touch(NextTouch to, Recorded& one, Form where) const {
        one.slope = where.slope;
        return before_touch(to.block, shift_, one.address, one.q.pieces, one.q.bytes, where);
    }

    // What so many iterations store is not known from now on. False where that cannot be noted, or
    // where they overwrite what others were taken to read again and again.
    template <class Memory>
    bool lose_stores(Memory& memory, std::uint64_t iterations) {
        auto is_store = [](const Recorded& one) {
            return one.q.kind == Kind::store || one.q.kind == Kind::store_pair ||
                   one.q.kind == Kind::vector_store;
        };
        auto bytes_of = [](const Recorded& one) { return std::uint64_t{one.q.pieces} * one.q.bytes; };
        for (unsigned i = 0; i < length_; i++) {
            if (record_[i].blocks == 0 || !is_store(record_[i]) || record_[i].slope == 0) continue;
            const Recorded& store = record_[i];
            AddressRange stored(store.address, bytes_of(store), store.slope, iterations);
            for (unsigned k = 0; k < length_; k++) {
                const Recorded& other = record_[k];
                if (other.blocks == 0 || is_store(other) || other.slope != 0) continue;
                if (stored.low < other.address + bytes_of(other) && other.address < stored.high)
                    return false;
            }
            memory.lose(stored.low, stored.high);
        }
        for (unsigned i = 0; i < length_; i++) {
            const Recorded& one = record_[i];
            if (one.blocks == 0 || !is_store(one) || one.slope != 0) continue;
            for (std::uint64_t at = 0; at < bytes_of(one); at += 8)
                if (!memory.store(one.address + at, bytes_of(one) < 8 ? one.q.bytes : 8, 0, false))
                    return false;
        }
        return true;
    }

    struct Compared : Comparison {  // what the flags were set by
        bool is_set = false;

        std::uint32_t after(std::uint64_t k) const {
            std::uint32_t nzcv;
            add(a_value + k * static_cast<std::uint64_t>(a.slope),
                ~(b_value + k * static_cast<std::uint64_t>(b.slope)), 1, bits == 64, nzcv);
            return nzcv;
        }
        bool holds(unsigned condition, std::uint64_t k) const {
            return machine::holds(condition, after(k));
        }
        // In how many iterations to come the condition is what it is now.
        std::uint64_t stays(unsigned condition) const {
            static constexpr Order kOrders[8] = {Order::equal,      Order::below,       Order::negative,
                                                 Order::equal,      Order::below_equal, Order::less,
                                                 Order::less_equal, Order::equal};
            if (!is_set) return 0;
            bool is_told = condition >> 1 != 3 && condition >> 1 != 7;  // overflow, always
            if (!is_told && !(a.is_still() && b.is_still())) return 0;
            return Comparison::stays(kOrders[condition >> 1]);
        }
    };

    LoopFinder finder_;
    Recorded record_[kMostLength];
    unsigned length_ = 0, shift_ = 3;
    std::uint64_t accesses_ = 0;
    bool can_end_ = false, needs_lost_ = false;
    A64State before_, after_, at_end_;
    Form head_[32], form_[32];
    Compared flags_;
};

}  // namespace revisit::machine
