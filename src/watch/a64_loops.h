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

#include <initializer_list>
#include <type_traits>

#include "watch/a64_ahead.h"
#include "watch/replay_count.h"
#include "watch/touch_count.h"

namespace revisit::watch {

class A64Loops {
 public:
    void start() {
        anchor_ = 0;
        since_ = period_ = repeats_ = 0;
        for (std::uint8_t& one : in_vain_) one = 0;
    }

    // After each access, at `pc`: whether the same few come round again and again, and recording pays.
    bool comes_round(std::uint64_t pc) {
        constexpr unsigned kTimes = 3;
        since_++;
        if (pc == anchor_) {
            repeats_ = since_ == period_ ? repeats_ + 1 : 0;
            period_ = since_;
            since_ = 0;
            return repeats_ >= kTimes && in_vain_[slot(pc)] < kTries;
        }
        if (since_ <= kLongest) return false;
        anchor_ = pc;
        since_ = period_ = repeats_ = 0;
        return false;
    }

    // The state is that after an access for which comes_round() was true. Goes once round, take() is
    // called after each access and may end it, and then leaves out what can be. `end` is where to end:
    // a ReplayEnd or a NextTouch.
    template <class Memory, class End, class Take>
    SkippedLoop skip(A64Ahead<Memory>& ahead, A64State& state, Memory& memory, const End& end,
                     unsigned shift, Take take) {
        shift_ = shift;
        repeats_ = 0;
        std::uint8_t& in_vain = in_vain_[slot(anchor_)];
        std::uint64_t most = record(ahead, state, memory, end, shift, take) ? iterations_alike(end) : 0;
        constexpr std::uint64_t kFew = 8;
        in_vain = most < kFew ? static_cast<std::uint8_t>(in_vain + 1) : 0;
        if (needs_lost_) since_ = kLongest;  // another access to begin with may do
        if (most < 2) return {0, 0, length_};
        most--;
        if constexpr (!kIsReplay<End>)
            if (!lose_stores(memory, most)) {
                in_vain++;
                return {0, 0, length_};
            }
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
    static constexpr unsigned kMostLength = 128, kTries = 4, kLongest = 64, kSlots = 64;
    static constexpr std::uint64_t kMostIterations = 1u << 24;

    struct Recorded {
        QuickInstruction q;
        std::uint64_t n, m, d;  // what the registers held before
        std::uint64_t address;  // touched
        std::uint32_t blocks;   // … so many
        std::uint32_t known;    // registers, before
        bool ends_here;         // the replay may end after it, in another iteration
        std::int64_t slope;     // of the address, where it has to be plain
    };
    struct Form {  // of a register over iterations: what it holds now, and so much more each time
        bool is_plain = false;
        std::int64_t slope = 0;
        bool operator==(const Form&) const = default;
    };
    using Signed = __int128;
    template <class End>
    static constexpr bool kIsReplay = std::is_same_v<End, ReplayEnd<A64State>>;

    static unsigned slot(std::uint64_t pc) { return pc >> 2 & (kSlots - 1); }

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
            Form n = known(q.n) ? form_[q.n] : Form{}, m = known(q.m) ? form_[q.m] : Form{}, result;
            auto still = [](Form a) { return a.is_plain && a.slope == 0; };
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
                    m.slope = static_cast<std::int64_t>(static_cast<std::uint64_t>(m.slope) << q.shift);
                    result = {n.is_plain && m.is_plain,
                              q.kind == Kind::add ? n.slope + m.slope : n.slope - m.slope};
                    break;
                case Kind::bit_and:
                case Kind::bit_or:
                case Kind::bit_xor:
                    result = {still(n) && still(m), 0};
                    break;
                case Kind::and_immediate:
                case Kind::or_immediate:
                case Kind::xor_immediate:
                case Kind::field:
                case Kind::signed_field:
                    result = {still(n), 0};
                    break;
                case Kind::compare_immediate:
                    m = {true, 0};
                    flags_met = true;
                    flags = {n, m, one.n, static_cast<std::uint64_t>(q.value), q.wide, true};
                    result = n;
                    break;
                case Kind::compare:
                    m.slope = static_cast<std::int64_t>(static_cast<std::uint64_t>(m.slope) << q.shift);
                    flags_met = true;
                    flags = {n, m, one.n, one.m << q.shift, q.wide, true};
                    result = {n.is_plain && m.is_plain, n.slope - m.slope};
                    break;
                case Kind::select: {
                    if (!flags.is_set || !still(flags.a) || !still(flags.b)) break;
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
                    most = least(most, flags.stays(q.shift));
                    continue;
                case Kind::jump_zero: {
                    Form d = known(q.d) ? form_[q.d] : Form{};
                    most = least(most, Compared{d, {true, 0}, one.d, 0, q.wide, true}.stays(0));
                    continue;
                }
                case Kind::jump_bit:
                    if (!known(q.d) || !still(form_[q.d])) return 0;
                    continue;
                case Kind::jump_register:
                    if (!still(n)) return 0;
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
                        if (one.ends_here) most = least(most, before_end(end, one, n, m));
                    } else
                        most = least(most, before_touch(end, one, address_form(q, n, m)));
                    continue;
            }
            if (q.d == 31 && (q.kind == Kind::compare || q.kind == Kind::compare_immediate)) continue;
            if (!q.wide && result.is_plain && q.kind != Kind::constant)
                most = least(most, stays_small(value_after(at, q.d), result.slope));
            form_[q.d] = result;
        }
        for (unsigned i = 0; i < earlier; i++) {
            if (!flags.is_set ||
                flags.holds(condition[i], 0) != watch::holds(condition[i], before_.nzcv))
                return 0;
            most = least(most, flags.stays(condition[i]) + 1);
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

    static std::uint64_t least(std::uint64_t a, std::uint64_t b) { return a < b ? a : b; }

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

    // Iterations in which a 32-bit result does not wrap.
    static std::uint64_t stays_small(std::uint64_t value, std::int64_t slope) {
        if (slope == 0) return kMostIterations;
        if (value >> 32) return 0;
        std::uint64_t room = slope > 0 ? 0xffffffff - value : value;
        return room /
               (slope > 0 ? static_cast<std::uint64_t>(slope) : -static_cast<std::uint64_t>(slope));
    }

    static Form address_form(const QuickInstruction& q, Form n, Form m) {
        switch (q.mode) {
            case Mode::index:
                return {n.is_plain && m.is_plain,
                        n.slope +
                            static_cast<std::int64_t>(static_cast<std::uint64_t>(m.slope) << q.shift)};
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
        std::uint64_t when = 0;
        bool found = false, never = false;
        auto meet = [&](std::uint64_t value, std::int64_t slope, std::uint64_t wanted) {
            auto missing = static_cast<std::int64_t>(wanted - value);
            if (slope == 0 || missing == 0) {
                if (missing != 0 || slope != 0) never = true;  // now, but not in one to come
                return;
            }
            std::int64_t times = missing / slope;
            if (missing % slope != 0 || times < 1 ||
                (found && static_cast<std::uint64_t>(times) != when))
                never = true;
            when = static_cast<std::uint64_t>(times);
            found = true;
        };
        if (Form where = address_form(one.q, n, m); where.is_plain)
            meet(one.address, where.slope, end.address);
        for (unsigned r = 0; r < 32; r++)
            if (form_[r].is_plain && at_end_.is_known(r) && end.state.is_known(r))
                meet(at_end_.x[r], form_[r].slope, end.state.x[r]);
        if (never) return kMostIterations;
        return found ? when - 1 : 0;
    }

    // In how many iterations to come the access does not touch the block, and one more. None where it
    // is not known what it touches, or not always as many blocks.
    std::uint64_t before_touch(NextTouch to, Recorded& one, Form where) const {
        constexpr std::int64_t kFar = std::int64_t{1} << 32;
        auto bytes = static_cast<std::int64_t>(one.q.bytes), block = std::int64_t{1} << shift_;
        std::int64_t slope = where.slope;
        if (!where.is_plain || slope > kFar || slope < -kFar) return 0;
        bool is_aligned = one.address % one.q.bytes == 0 && slope % bytes == 0;
        if (!is_aligned && slope % block != 0) return 0;
        one.slope = slope;
        // Its first byte is one of [low, high] then, from where it is now.
        auto begin = static_cast<std::int64_t>((to.block << shift_) - one.address);
        std::int64_t low = begin - bytes * one.q.pieces + 1, high = begin + block - 1;
        if (slope < 0) {
            slope = -slope;
            begin = low;
            low = -high;
            high = -begin;
        }
        if (slope == 0 || high < slope) return kMostIterations;
        std::int64_t when = low <= slope ? 1 : (low + slope - 1) / slope;
        if (when * slope > high) return kMostIterations;
        return least(kMostIterations, static_cast<std::uint64_t>(when));
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
        struct Range {
            std::uint64_t low, high;
        };
        auto range_of = [&](const Recorded& one) {
            std::uint64_t last = one.address + iterations * static_cast<std::uint64_t>(one.slope);
            return one.slope < 0 ? Range{last, one.address + bytes_of(one)}
                                 : Range{one.address, last + bytes_of(one)};
        };
        for (unsigned i = 0; i < length_; i++) {
            if (record_[i].blocks == 0 || !is_store(record_[i]) || record_[i].slope == 0) continue;
            Range stored = range_of(record_[i]);
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

    struct Compared {  // what the flags were set by
        Form a, b;
        std::uint64_t a_value = 0, b_value = 0;
        bool wide = true, is_set = false;

        std::uint32_t after(std::uint64_t k) const {
            std::uint32_t nzcv;
            add(a_value + k * static_cast<std::uint64_t>(a.slope),
                ~(b_value + k * static_cast<std::uint64_t>(b.slope)), 1, wide, nzcv);
            return nzcv;
        }
        bool holds(unsigned condition, std::uint64_t k) const {
            return watch::holds(condition, after(k));
        }
        Signed as_number(std::uint64_t value, bool is_signed) const {
            if (wide) return is_signed ? Signed{static_cast<std::int64_t>(value)} : Signed{value};
            return is_signed ? Signed{static_cast<std::int32_t>(value)}
                             : Signed{static_cast<std::uint32_t>(value)};
        }
        // In how many iterations to come the condition is what it is now.
        std::uint64_t stays(unsigned condition) const {
            if (!is_set || !a.is_plain || !b.is_plain) return 0;
            if (a.slope == 0 && b.slope == 0) return kMostIterations;
            bool now = holds(condition, 0);
            if (condition < 2) {
                Signed slope = Signed{a.slope} - b.slope;
                if (!wide) slope = static_cast<std::int32_t>(slope);
                Signed apart = as_number(a_value - b_value, true);
                if (slope == 0) return kMostIterations;
                if (apart == 0) return 0;  // equal now, and not the next time
                if (-apart % slope != 0 || -apart / slope < 1) return kMostIterations;
                return least(kMostIterations, static_cast<std::uint64_t>(-apart / slope) - 1);
            }
            if (condition >= 4 && condition < 8) return 0;
            bool is_signed = condition >= 10;
            // Both are straight lines as long as neither wraps, and meet once: alike here and there,
            // alike between.
            auto alike = [&](std::uint64_t k) {
                Signed size = Signed{1} << (wide ? 64 : 32), low = is_signed ? -size / 2 : Signed{0};
                for (auto [value, slope] : {Line{a_value, a.slope}, Line{b_value, b.slope}}) {
                    Signed then = as_number(value, is_signed) + Signed{slope} * static_cast<Signed>(k);
                    if (then < low || then >= low + size) return false;
                }
                return holds(condition, k) == now;
            };
            std::uint64_t low = 0, high = kMostIterations;
            while (low < high) {
                std::uint64_t middle = (low + high + 1) / 2;
                if (alike(middle))
                    low = middle;
                else
                    high = middle - 1;
            }
            return low;
        }
        struct Line {
            std::uint64_t value;
            std::int64_t slope;
        };
    };

    std::uint64_t anchor_ = 0;
    unsigned since_ = 0, period_ = 0, repeats_ = 0, shift_ = 3;
    std::uint8_t in_vain_[kSlots] = {};
    Recorded record_[kMostLength];
    unsigned length_ = 0;
    std::uint64_t accesses_ = 0;
    bool can_end_ = false, needs_lost_ = false;
    A64State before_, after_, at_end_;
    Form head_[32], form_[32];
    Compared flags_;
};

}  // namespace revisit::watch
