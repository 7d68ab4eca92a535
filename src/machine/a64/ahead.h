// One instruction after the other: the parts of a64.h on a memory.
//
// Memory is whoever has
//     bool fetch(std::uint64_t pc, std::uint32_t& instruction);
//     Loaded load(std::uint64_t address, unsigned bytes, std::uint64_t& value);        // up to 8
//     bool store(std::uint64_t address, unsigned bytes, std::uint64_t value, bool known);  // up to 8
// A store that finds no room, or memory that cannot be read, ends the look-ahead.
#pragma once

#include "machine/a64/a64.h"
#include "machine/a64/quick.h"

namespace revisit::machine {

enum class Loaded : std::uint8_t { value, unknown, fault };

struct Touched {  // pieces of so many bytes, one after the other
    std::uint64_t address = 0;
    unsigned pieces = 0, bytes = 0;
    bool writes = false;
};

template <class Memory>
class A64Ahead {
 public:
    // Without a vector unit, vector registers are not followed: what they hold rarely matters to what
    // is touched next, and memory that only they are loaded from is then not read at all.
    A64Ahead(A64State& state, Memory& memory, VectorUnit* vectors, QuickTable* quick = nullptr)
        : s_(state), memory_(memory), vectors_(vectors), quick_(quick) {}

    // After Step::access, what was touched.
    const Touched& touched() const { return touched_; }

    // Whether a vector instruction was met and not followed.
    bool left_out_vectors() const { return left_out_; }

    // One instruction.
    Step step() {
        bool touches = false;
        Step step = run(1, [&] { return touches = true; });
        return touches ? Step::access : step;
    }

    // Up to `budget` instructions, as long as take() wants more: it is called after each one that
    // touches memory; `touched()` and `at()` say what and where. The loop keeps pc and what is known in
    // registers of its own: going through the state for each instruction makes it three times slower.
    template <class Take>
    Step run(std::uint64_t budget, Take take) {
        std::uint64_t* const x = s_.x;
        std::uint64_t pc = s_.pc;
        std::uint32_t known = s_.known;
        while (budget > 0) {
            budget--;
            std::uint32_t instruction;
            at_ = pc;
            left_ = budget;
            if (!memory_.fetch(pc, instruction)) return leave(pc, known, Step::stop);
            if (quick_ != nullptr) {
                const QuickInstruction& q = quick_->at(pc, instruction);
                if ((known & q.needs) == q.needs) {
                    std::uint64_t result;
                    switch (q.kind) {
                        case Quick::constant:
                            result = static_cast<std::uint64_t>(q.value);
                            break;
                        case Quick::address:
                            result = pc + static_cast<std::uint64_t>(q.value);
                            break;
                        case Quick::page_address:
                            result = (pc & ~std::uint64_t{0xfff}) + static_cast<std::uint64_t>(q.value);
                            break;
                        case Quick::move:
                            result = x[q.m];
                            break;
                        case Quick::add_immediate:
                            result = x[q.n] + static_cast<std::uint64_t>(q.value);
                            break;
                        case Quick::add:
                            result = x[q.n] + (x[q.m] << q.shift);
                            break;
                        case Quick::subtract:
                            result = x[q.n] - (x[q.m] << q.shift);
                            break;
                        case Quick::bit_and:
                            result = x[q.n] & x[q.m] << q.shift;
                            break;
                        case Quick::bit_or:
                            result = x[q.n] | x[q.m] << q.shift;
                            break;
                        case Quick::bit_xor:
                            result = x[q.n] ^ x[q.m] << q.shift;
                            break;
                        case Quick::and_immediate:
                            result = x[q.n] & static_cast<std::uint64_t>(q.value);
                            break;
                        case Quick::or_immediate:
                            result = x[q.n] | static_cast<std::uint64_t>(q.value);
                            break;
                        case Quick::xor_immediate:
                            result = x[q.n] ^ static_cast<std::uint64_t>(q.value);
                            break;
                        case Quick::field:
                            result = x[q.n] << q.shift >> q.shift_right;
                            break;
                        case Quick::signed_field:
                            result = static_cast<std::uint64_t>(
                                static_cast<std::int64_t>(x[q.n] << q.shift) >> q.shift_right);
                            break;
                        case Quick::compare_immediate:
                            result = compare(x[q.n], static_cast<std::uint64_t>(q.value), q.wide);
                            if (q.d != 31) break;
                            pc += 4;
                            continue;
                        case Quick::compare:
                            result = compare(x[q.n], x[q.m] << q.shift, q.wide);
                            if (q.d != 31) break;
                            pc += 4;
                            continue;
                        case Quick::select:
                            if (!s_.flags_known) goto general;
                            result = holds(q.shift, s_.nzcv) ? (q.n == 31 ? 0 : x[q.n])
                                                             : (q.m == 31 ? 0 : x[q.m]) + q.is_negative;
                            break;
                        case Quick::call:
                            x[30] = pc + 4;
                            known |= 1u << 30;
                            [[fallthrough]];
                        case Quick::jump:
                            pc += static_cast<std::uint64_t>(q.value);
                            continue;
                        case Quick::jump_if:
                            if (!s_.flags_known) return leave(pc, known, Step::stop);
                            pc += holds(q.shift, s_.nzcv) ? static_cast<std::uint64_t>(q.value) : 4;
                            continue;
                        case Quick::jump_zero:
                            result = q.wide ? x[q.d] : static_cast<std::uint32_t>(x[q.d]);
                            pc += (result != 0) == q.is_negative ? static_cast<std::uint64_t>(q.value)
                                                                 : 4;
                            continue;
                        case Quick::jump_bit:
                            result = x[q.d] >> q.shift & 1;
                            pc += result == q.is_negative ? static_cast<std::uint64_t>(q.value) : 4;
                            continue;
                        case Quick::jump_register:
                            result = x[q.n];
                            if (q.is_negative) {
                                x[30] = pc + 4;
                                known |= 1u << 30;
                            }
                            pc = result;
                            continue;
                        case Quick::vector_skip:
                            if (vectors_ != nullptr) goto general;
                            s_.v_known &= ~(1u << q.d);
                            left_out_ = true;
                            pc += 4;
                            continue;
                        case Quick::general:
                            goto general;
                        default:
                            if (q.kind == Quick::vector_load && vectors_ != nullptr) goto general;
                            if (!access_quick(q, known)) return leave(pc, known, Step::stop);
                            pc += 4;
                            leave(pc, known, Step::access);
                            if (!take()) return Step::access;
                            continue;
                    }
                    x[q.d] = q.wide ? result : static_cast<std::uint32_t>(result);
                    known |= 1u << q.d;
                    pc += 4;
                    continue;
                }
            }
        general:
            leave(pc, known, Step::done);
            if (Step step = step_general(instruction);
                step == Step::stop || (step == Step::access && !take()))
                return step;
            pc = s_.pc;
            known = s_.known;
        }
        return leave(pc, known, Step::done);
    }

    // The instruction that the last step or run ended with.
    std::uint64_t at() const { return at_; }
    // What it has left of its budget.
    std::uint64_t left() const { return left_; }
    // All that an instruction touches is told at once.
    static constexpr bool is_first() { return true; }

 private:
    using Kind = MemoryOperation::Kind;
    using Quick = QuickInstruction::Kind;

    Step step_general(std::uint32_t instruction) {
        if (is_memory_class(instruction) || is_zero_block(instruction)) return access(instruction);
        if (is_vector_class(instruction)) {
            if (vectors_ != nullptr) return vectors_->step(instruction, s_);
            left_out_ = true;
            return VectorUnit::skip(instruction, s_);
        }
        return step_integer(instruction, s_);
    }

    Step leave(std::uint64_t pc, std::uint32_t known, Step step) {
        s_.pc = pc;
        s_.known = known;
        return step;
    }

    std::uint64_t compare(std::uint64_t a, std::uint64_t b, bool wide) {
        s_.flags_known = true;
        return add(a, ~b, 1, wide, s_.nzcv);
    }

    bool access_quick(const QuickInstruction& q, std::uint32_t& known) {
        using Mode = QuickInstruction::Mode;
        std::uint64_t base = s_.x[q.n], moved = base + static_cast<std::uint64_t>(q.value), address;
        switch (q.mode) {
            case Mode::after:
                address = base;
                break;
            case Mode::index:
                address = base + (s_.x[q.m] << q.shift);
                break;
            case Mode::signed_index:
                address = base + (static_cast<std::uint64_t>(sign_extend(s_.x[q.m], 32)) << q.shift);
                break;
            case Mode::unsigned_index:
                address = base + (std::uint64_t{static_cast<std::uint32_t>(s_.x[q.m])} << q.shift);
                break;
            default:
                address = moved;
        }
        touched_ = {
            address, q.pieces, q.bytes,
            q.kind == Quick::store || q.kind == Quick::store_pair || q.kind == Quick::vector_store};
        bool done = true;
        switch (q.kind) {
            case Quick::vector_load:
                s_.v_known &= ~(1u << q.d);
                if (q.pieces == 2) s_.v_known &= ~(1u << q.m);
                left_out_ = true;
                break;
            case Quick::vector_store:
                done = store_vector(q, address, q.d) &&
                       (q.pieces == 1 || store_vector(q, address + q.bytes, q.m));
                break;
            case Quick::load_pair:
                done =
                    load_quick(q, address, q.d, known) && load_quick(q, address + q.bytes, q.m, known);
                break;
            case Quick::load:
                done = load_quick(q, address, q.d, known);
                break;
            case Quick::store_pair:
                done = store_quick(q, address, q.d, known) &&
                       store_quick(q, address + q.bytes, q.m, known);
                break;
            default:
                done = store_quick(q, address, q.d, known);
        }
        if (q.mode == Mode::after || q.mode == Mode::before) s_.x[q.n] = moved;
        return done;
    }

    bool load_quick(const QuickInstruction& q, std::uint64_t address, unsigned rt,
                    std::uint32_t& known) {
        std::uint64_t value = 0;
        Loaded loaded = memory_.load(address, q.bytes, value);
        if (loaded == Loaded::fault) return false;
        if (q.extend) value = static_cast<std::uint64_t>(sign_extend(value, 8 * q.bytes));
        s_.x[rt] = q.extend != 2 ? value : static_cast<std::uint32_t>(value);
        known = loaded == Loaded::value ? known | 1u << rt : known & ~(1u << rt);
        return true;
    }

    bool store_vector(const QuickInstruction& q, std::uint64_t address, unsigned rt) {
        bool known = s_.v_known >> rt & 1;
        if (!memory_.store(address, q.bytes > 8 ? 8 : q.bytes, s_.v[rt].low, known)) return false;
        return q.bytes <= 8 || memory_.store(address + 8, 8, s_.v[rt].high, known);
    }

    bool store_quick(const QuickInstruction& q, std::uint64_t address, unsigned rt,
                     std::uint32_t known) {
        return memory_.store(address, q.bytes, rt == 31 ? 0 : s_.x[rt], rt == 31 || (known >> rt & 1));
    }

    Step access(std::uint32_t instruction) {
        op_ = decode_memory(instruction, s_);
        if (op_.kind == Kind::unknown) return Step::stop;
        if (op_.kind == Kind::none) {
            s_.pc += 4;
            return Step::done;
        }
        if (!op_.address_known || !execute()) return Step::stop;
        if (op_.writes_back) s_.write_sp(op_.base, op_.written_back, true);
        s_.pc += 4;
        touched_ = {op_.address, op_.pieces, op_.bytes, op_.writes()};
        return Step::access;
    }

    bool execute() {
        switch (op_.kind) {
            case Kind::load:
                for (unsigned k = 0; k < op_.pieces; k++)
                    if (!load(op_.address + k * op_.bytes, op_.rt[k])) return false;
                return true;
            case Kind::store:
                for (unsigned k = 0; k < op_.pieces; k++)
                    if (!store(op_.address + k * op_.bytes, op_.rt[k])) return false;
                return true;
            case Kind::exclusive_store:
                for (unsigned k = 0; k < op_.pieces; k++)
                    if (!memory_.store(op_.address + k * op_.bytes, op_.bytes, 0, false)) return false;
                s_.write(op_.rs, 0, false);
                return true;
            case Kind::zero:
                for (unsigned k = 0; k < op_.bytes; k += 8)
                    if (!memory_.store(op_.address + k, 8, 0, true)) return false;
                return true;
            case Kind::atomic:
                return atomic();
            case Kind::compare_swap:
                return compare_swap();
            default:
                return false;
        }
    }

    bool load(std::uint64_t address, unsigned rt) {
        std::uint64_t value = 0;
        if (op_.vector && vectors_ == nullptr) {
            s_.v_known &= ~(1u << rt);
            left_out_ = true;
            return true;
        }
        if (op_.vector) {
            VectorValue whole;
            Loaded low = memory_.load(address, op_.bytes > 8 ? 8 : op_.bytes, whole.low);
            Loaded high = op_.bytes > 8 ? memory_.load(address + 8, 8, whole.high) : Loaded::value;
            if (low == Loaded::fault || high == Loaded::fault) return false;
            bool known = low == Loaded::value && high == Loaded::value && !op_.keeps_lanes;
            s_.v[rt] = whole;
            s_.v_known = known ? s_.v_known | 1u << rt : s_.v_known & ~(1u << rt);
            return true;
        }
        Loaded loaded = memory_.load(address, op_.bytes, value);
        if (loaded == Loaded::fault) return false;
        if (op_.extend) value = static_cast<std::uint64_t>(sign_extend(value, 8 * op_.bytes));
        s_.write(rt, value, loaded == Loaded::value, op_.extend != 2);
        return true;
    }

    bool store(std::uint64_t address, unsigned rt) {
        if (op_.vector) {
            bool known = (s_.v_known >> rt & 1) && !op_.keeps_lanes;
            if (!memory_.store(address, op_.bytes > 8 ? 8 : op_.bytes, s_.v[rt].low, known))
                return false;
            return op_.bytes <= 8 || memory_.store(address + 8, 8, s_.v[rt].high, known);
        }
        bool known = true;
        std::uint64_t value = s_.read(rt, known);
        return memory_.store(address, op_.bytes, value, known);
    }

    bool atomic() {
        std::uint64_t old = 0;
        Loaded loaded = memory_.load(op_.address, op_.bytes, old);
        if (loaded == Loaded::fault) return false;
        bool known = loaded == Loaded::value, operand_known = known;
        std::uint64_t by = s_.read(op_.rs, operand_known), now = by;
        auto less = [&](bool is_signed) {
            if (!is_signed) return old < (by & (~std::uint64_t{0} >> (64 - 8 * op_.bytes)));
            return sign_extend(old, 8 * op_.bytes) < sign_extend(by, 8 * op_.bytes);
        };
        switch (op_.operation) {
            case 0:
                now = old + by;
                break;
            case 1:
                now = old & ~by;
                break;
            case 2:
                now = old ^ by;
                break;
            case 3:
                now = old | by;
                break;
            case 4:
                now = less(true) ? by : old;
                break;
            case 5:
                now = less(true) ? old : by;
                break;
            case 6:
                now = less(false) ? by : old;
                break;
            case 7:
                now = less(false) ? old : by;
                break;
            default:
                break;
        }
        s_.write(op_.rt[0], old, known);
        return memory_.store(op_.address, op_.bytes, now, operand_known);
    }

    bool compare_swap() {
        bool known = op_.pieces == 1;
        std::uint64_t old = 0;
        if (known) {
            Loaded loaded = memory_.load(op_.address, op_.bytes, old);
            if (loaded == Loaded::fault) return false;
            known = loaded == Loaded::value;
        }
        bool operands_known = known;
        std::uint64_t mask = ~std::uint64_t{0} >> (64 - 8 * op_.bytes);
        std::uint64_t expected = s_.read(op_.rs, operands_known);
        std::uint64_t wanted = s_.read(op_.rt[0], operands_known);
        for (unsigned k = 0; k < op_.pieces; k++) s_.write(op_.rs + k, old, known);
        bool equal = old == (expected & mask);
        if (operands_known && !equal) return true;
        for (unsigned k = 0; k < op_.pieces; k++)
            if (!memory_.store(op_.address + k * op_.bytes, op_.bytes, wanted, operands_known))
                return false;
        return true;
    }

    A64State& s_;
    Memory& memory_;
    VectorUnit* vectors_;
    QuickTable* quick_;
    MemoryOperation op_;
    Touched touched_;
    std::uint64_t at_ = 0, left_ = 0;
    bool left_out_ = false;
};

}  // namespace revisit::machine
