// One instruction of x86_64 after the other: see x64.h. Where operands are is in x64/operands.h.
#pragma once

#include "machine/x64/operands.h"

namespace revisit::machine {

template <class Memory>
class X64Ahead : x64::Operands<Memory> {
    using Base = x64::Operands<Memory>;

 public:
    // `words`: repeated strings go by words, not by elements.
    X64Ahead(X64State& state, Memory& memory, X64Table* table = nullptr, bool words = false)
        : Base(state, memory, words), table_(table) {}

    const Touched& touched() const { return touched_; }
    std::uint64_t at() const { return at_; }
    // Where the thread stands after it: there a watchpoint on what it touches traps.
    std::uint64_t next() const { return next_; }
    // Whether this access is its instruction's first, or last.
    bool is_first() const { return piece_ == 0; }
    bool is_last() const { return piece_ + 1 == touches_; }
    // Of the last run's budget.
    std::uint64_t left() const { return left_; }
    // Whether it is a call, or a return: the state is no longer in the function that it is in.
    bool is_call() const { return op_ == Op::call || op_ == Op::call_indirect; }
    bool is_return() const { return op_ == Op::ret; }
    bool is_string() const { return op_ >= Op::string_move && op_ <= Op::string_compare; }
    bool is_jump() const { return op_ == Op::jump_indirect; }
    using Base::left_out_vectors;
    bool goes_by_words() const { return Base::words_; }

    Step step() {
        bool touches = false;
        Step step = run(1, [&] { return touches = true; });
        return step != Step::stop && touches ? Step::access : step;
    }

    // The instruction to come, and what its operand in memory is, where that is a word. False = none.
    bool peek(X64Instruction& i, x64::Value& operand) {
        std::uint8_t code[15];
        unsigned bytes = memory_.fetch(s_.pc, code);
        i = table_ ? table_->at(s_.pc, code, bytes) : decode_x64(code, bytes);
        operand.known = false;
        if (i.length == 0) return false;
        next_ = s_.pc + i.length;
        std::uint64_t address;
        if (i.has_memory && i.reads && i.memory_bytes <= 8 && Base::address_of(i, address))
            operand.known = memory_.load(address, i.memory_bytes, operand.bits) == Loaded::value;
        return true;
    }

    // As A64Ahead's. An instruction that reads and writes memory is two accesses: take() is called
    // twice.
    template <class Take>
    Step run(std::uint64_t budget, Take take) {
        while (budget > 0) {
            std::uint8_t code[15];
            at_ = s_.pc;
            left_ = --budget;
            unsigned bytes = memory_.fetch(s_.pc, code);
            X64Instruction fresh;
            if (table_ == nullptr) fresh = decode_x64(code, bytes);
            const X64Instruction& i = table_ ? table_->at(s_.pc, code, bytes) : fresh;
            if (i.length == 0) return Step::stop;
            touches_ = 0;
            next_ = s_.pc + i.length;
            if (!execute(i)) return Step::stop;
            s_.pc = next_;
            op_ = i.op;
            for (piece_ = 0; piece_ < touches_; piece_++) {
                touched_ = touch_[piece_];
                if (!take()) return Step::access;
            }
        }
        return Step::done;
    }

 private:
    using Op = X64Instruction::Op;
    using Value = x64::Value;
    using Base::add, Base::bit_count, Base::bmi, Base::checksum, Base::condition, Base::multiply_plain;
    using Base::at_, Base::memory_, Base::next_, Base::s_, Base::touch_, Base::touches_;
    using Base::get, Base::put, Base::read_rm, Base::set_flags, Base::write_rm;
    using Base::pop, Base::push, Base::result_flags;

    bool alu(const X64Instruction& i) {
        Value a, b;
        if (!read_rm(i, i.bytes, a)) return false;
        b = i.has_immediate ? x64::constant(i) : get(i.reg, i.bytes, i.reg_is_high);
        if (i.to_reg) std::swap(a, b);
        bool same = !i.has_immediate && !i.has_memory && i.reg == i.rm && i.reg_is_high == i.rm_is_high;
        Value result = Base::Integer::alu(i, a, b, same);
        if (i.sub == 7) return true;
        if (i.to_reg) {
            put(i.reg, result, i.bytes, i.reg_is_high);
            return true;
        }
        return write_rm(i, result);
    }

    bool shift(const X64Instruction& i) {
        Value a, by = i.has_immediate ? x64::constant(i) : get(1, 1);
        if (!read_rm(i, i.bytes, a)) return false;
        if (by.known && (by.bits & (i.bytes == 8 ? 63 : 31)) == 0)
            return !i.has_memory || write_rm(i, a);
        return write_rm(i, Base::Integer::shift(i, a, by));
    }

    bool multiply(const X64Instruction& i) {
        Value a, b = i.has_immediate ? x64::constant(i) : get(i.reg, i.bytes);
        if (!read_rm(i, i.bytes, a)) return false;
        put(i.reg, Base::Integer::multiply(i, a, b), i.bytes);
        return true;
    }

    bool multiply_wide(const X64Instruction& i) {
        Value b;
        if (!read_rm(i, i.bytes, b)) return false;
        return Base::Integer::multiply_wide(i, b);
    }

    bool bits(const X64Instruction& i) {
        Value a;
        if (!read_rm(i, i.bytes, a)) return false;
        if (i.op == Op::bit_test) {
            Value by = i.has_immediate ? x64::constant(i) : get(i.reg, i.bytes);
            Value result = Base::Integer::bit_test(i, a, by);
            return i.sub == 0 || write_rm(i, result);
        }
        put(i.reg, bit_count(i, a), i.bytes);
        return true;
    }

    bool execute(const X64Instruction& i) {
        Value value;
        bool holds = false;
        switch (i.op) {
            case Op::nop:
                return true;
            case Op::alu:
                return alu(i);
            case Op::test: {
                Value b = i.has_immediate ? x64::constant(i) : get(i.reg, i.bytes, i.reg_is_high);
                if (!read_rm(i, i.bytes, value)) return false;
                set_flags(kAllFlags, result_flags(value.bits & b.bits, i.bytes),
                          value.known && b.known);
                return true;
            }
            case Op::mov:
                if (i.to_reg) {
                    if (!read_rm(i, i.bytes, value)) return false;
                    put(i.reg, value, i.bytes, i.reg_is_high);
                    return true;
                }
                return write_rm(
                    i, i.has_immediate ? x64::constant(i) : get(i.reg, i.bytes, i.reg_is_high));
            case Op::lea: {
                X64Instruction plain = i;
                plain.segment = 0;
                value.known = Base::address_of(plain, value.bits);
                put(i.reg, value, i.bytes);
                return true;
            }
            case Op::zero_extend:
            case Op::sign_extend:
                if (!read_rm(i, i.from, value)) return false;
                if (i.op == Op::sign_extend)
                    value.bits = static_cast<std::uint64_t>(x64::extended(value.bits, i.from));
                put(i.reg, value, i.bytes);
                return true;
            case Op::push:
                if (i.has_immediate)
                    value.bits = static_cast<std::uint64_t>(i.immediate);
                else if (!read_rm(i, 8, value))
                    return false;
                return push(value);
            case Op::pop:
                if (!pop(value)) return false;
                put(i.rm, value, 8);
                return true;
            case Op::call:
                if (!push({next_, true})) return false;
                next_ += static_cast<std::uint64_t>(i.immediate);
                return true;
            case Op::call_indirect:
                if (!read_rm(i, 8, value) || !value.known || !push({next_, true})) return false;
                next_ = value.bits;
                return true;
            case Op::jump:
                next_ += static_cast<std::uint64_t>(i.immediate);
                return true;
            case Op::jump_indirect:
                if (!read_rm(i, 8, value) || !value.known) return false;
                next_ = value.bits;
                return true;
            case Op::jump_if:
                if (!condition(i.sub, holds)) return false;
                if (holds) next_ += static_cast<std::uint64_t>(i.immediate);
                return true;
            case Op::ret:
                if (!pop(value) || !value.known) return false;
                s_.r[4] += static_cast<std::uint64_t>(i.immediate);
                next_ = value.bits;
                return true;
            case Op::leave:
                if (!s_.is_known(5)) return false;
                put(4, get(5, 8), 8);
                if (!pop(value)) return false;
                put(5, value, 8);
                return true;
            case Op::increment:
            case Op::decrement:
                if (!read_rm(i, i.bytes, value)) return false;
                return write_rm(i, add(value, {1, true}, i.op == Op::decrement, i.bytes,
                                       i.op == Op::decrement, kAllFlags & ~kCarry));
            case Op::invert:
                if (!read_rm(i, i.bytes, value)) return false;
                return write_rm(i, {~value.bits, value.known});
            case Op::negate:
                if (!read_rm(i, i.bytes, value)) return false;
                return write_rm(i, add({0, true}, value, 1, i.bytes, true));
            case Op::multiply_wide:
                return multiply_wide(i);
            case Op::multiply:
                return multiply(i);
            case Op::shift:
                return shift(i);
            case Op::set:
                value.known = condition(i.sub, holds);
                value.bits = holds;
                return write_rm(i, value);
            case Op::move_if: {
                if (!read_rm(i, i.bytes, value)) return false;
                bool known = condition(i.sub, holds);
                Value old = get(i.reg, i.bytes), result = known && !holds ? old : value;
                result.known &= known;
                put(i.reg, result, i.bytes);
                return true;
            }
            case Op::exchange: {
                Value other = get(i.reg, i.bytes, i.reg_is_high);
                if (!read_rm(i, i.bytes, value) || !write_rm(i, other)) return false;
                put(i.reg, value, i.bytes, i.reg_is_high);
                return true;
            }
            case Op::exchange_add: {
                if (!read_rm(i, i.bytes, value)) return false;
                Value sum = add(value, get(i.reg, i.bytes, i.reg_is_high), 0, i.bytes, false);
                put(i.reg, value, i.bytes, i.reg_is_high);
                return write_rm(i, sum);
            }
            case Op::compare_exchange: {
                if (!read_rm(i, i.bytes, value)) return false;
                Value expected = get(0, i.bytes), wanted = get(i.reg, i.bytes, i.reg_is_high);
                add(expected, value, 1, i.bytes, true);
                bool known = expected.known && value.known,
                     equal = known && expected.bits == value.bits;
                if (!known) {
                    put(0, {0, false}, i.bytes);
                    return write_rm(i, {0, false});
                }
                if (equal) return write_rm(i, wanted);
                put(0, value, i.bytes);
                return write_rm(i, value);
            }
            case Op::bit_test:
            case Op::bit_count:
                return bits(i);
            case Op::byte_swap:
                value = get(i.rm, i.bytes);
                value.bits = __builtin_bswap64(value.bits) >> (64 - 8 * i.bytes);
                put(i.rm, value, i.bytes);
                return true;
            case Op::extend_a:
                value = get(0, i.bytes / 2);
                value.bits = static_cast<std::uint64_t>(x64::extended(value.bits, i.bytes / 2));
                put(0, value, i.bytes);
                return true;
            case Op::extend_d:
                value = get(0, i.bytes);
                value.bits = x64::extended(value.bits, i.bytes) < 0 ? ~std::uint64_t{0} : 0;
                put(2, value, i.bytes);
                return true;
            case Op::opaque:
                if (!read_rm(i, i.bytes, value)) return false;
                set_flags(kAllFlags, 0, false);
                if (!i.to_reg) return write_rm(i, {0, false});
                put(i.reg, {0, false}, i.bytes);
                return true;
            case Op::bmi:
                if (!read_rm(i, i.bytes, value)) return false;
                if (i.sub == static_cast<std::uint8_t>(X64Bmi::multiply))
                    multiply_plain(i, value);
                else
                    put(i.reg, bmi(i, get(i.first, i.bytes), value), i.bytes);
                return true;
            case Op::double_shift: {
                Value by = i.has_immediate ? x64::constant(i) : get(1, 1);
                if (!read_rm(i, i.bytes, value)) return false;
                auto count = static_cast<unsigned>(by.bits & (i.bytes == 8 ? 63 : 31));
                if (!by.known) {
                    set_flags(kAllFlags, 0, false);
                    return write_rm(i, {0, false});
                }
                if (count == 0) return !i.has_memory || write_rm(i, value);
                if (count >= 8u * i.bytes) {
                    set_flags(kAllFlags, 0, false);
                    return write_rm(i, {0, false});
                }
                return write_rm(i, Base::Integer::double_shift(i, value, get(i.reg, i.bytes), count));
            }
            case Op::checksum: {
                if (!read_rm(i, i.from, value)) return false;
                Value sum = get(i.reg, 4);
                put(i.reg, {checksum(sum.bits, value.bits, i.from), sum.known && value.known}, i.bytes);
                return true;
            }
            case Op::swap_move:
                if (i.to_reg && !read_rm(i, i.bytes, value)) return false;
                if (!i.to_reg) value = get(i.reg, i.bytes);
                value.bits = __builtin_bswap64(value.bits) >> (64 - 8 * i.bytes);
                if (!i.to_reg) return write_rm(i, value);
                put(i.reg, value, i.bytes);
                return true;
            case Op::compare_exchange_wide:
                return Base::compare_exchange_wide(i);
            case Op::flag_set:
                if (i.sub >= 3)
                    s_.backwards = i.sub == 4;
                else
                    set_flags(kCarry,
                              i.sub == 2 ? s_.flags ^ kCarry
                              : i.sub    ? kCarry
                                         : 0,
                              i.sub < 2 || s_.flags_known & kCarry);
                return true;
            case Op::flag_load: {
                Value ah = get(0, 1, true);
                unsigned flags = (ah.bits & 1 ? kCarry : 0u) | (ah.bits & 4 ? kParity : 0u) |
                                 (ah.bits & 64 ? kZero : 0u) | (ah.bits & 128 ? kSign : 0u);
                set_flags(kAllFlags & ~kOverflow, static_cast<std::uint8_t>(flags), ah.known);
                return true;
            }
            case Op::flag_save:  // with one that is not followed
                put(0, {0, false}, 1, true);
                return true;
            case Op::jump_if_count: {
                Value count = get(1, 8);
                if (i.sub != 3) {
                    count.bits--;
                    put(1, count, 8);
                }
                holds = (count.bits == 0) == (i.sub == 3);
                if (i.sub < 2) {
                    count.known &= (s_.flags_known & kZero) != 0;
                    holds = holds && ((s_.flags & kZero) != 0) == (i.sub == 1);
                }
                if (!count.known) return false;
                if (holds) next_ += static_cast<std::uint64_t>(i.immediate);
                return true;
            }
            case Op::no_values:
                for (unsigned r = 0; r < 16; r++)
                    if (i.immediate >> r & 1) put(r, {0, false}, 8);
                // Outside of a transaction, which a signal would have ended.
                if (i.sub) set_flags(kAllFlags, kZero, i.sub == 2);
                return true;
            case Op::floating:
                return Base::floating(i);
            case Op::string_move:
            case Op::string_store:
            case Op::string_load:
            case Op::string_scan:
            case Op::string_compare:
                return Base::string(i);
            case Op::unknown:
                return false;
            default:
                return Base::vector(i);
        }
    }

    X64Table* table_;
    Op op_ = Op::unknown;
    std::uint64_t left_ = 0;
    unsigned piece_ = 0;
    Touched touched_;
};

}  // namespace revisit::machine
