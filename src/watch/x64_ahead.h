// One instruction of x86_64 after the other, on a memory: see x64.h, and a64_ahead.h for what a memory
// is; fetch here is
//     unsigned fetch(std::uint64_t pc, std::uint8_t (&code)[15]);  // bytes that can be read
#pragma once

#include "watch/a64_ahead.h"
#include "watch/x64_floats.h"
#include "watch/x64_integer.h"

namespace revisit::watch {

template <class Memory>
class X64Ahead : x64::Integer {
 public:
    X64Ahead(X64State& state, Memory& memory, X64Table* table = nullptr)
        : x64::Integer(state), memory_(memory), table_(table) {}

    const Touched& touched() const { return touched_; }
    std::uint64_t at() const { return at_; }
    // Where the thread stands after it: there a watchpoint on what it touches traps.
    std::uint64_t next() const { return next_; }
    // Whether this access is its instruction's first.
    bool is_first() const { return piece_ == 0; }
    // Whether it is a call, or a return: the state is no longer in the function that it is in.
    bool is_call() const { return op_ == Op::call || op_ == Op::call_indirect; }
    bool is_return() const { return op_ == Op::ret; }
    bool is_string() const { return op_ == Op::string_move || op_ == Op::string_store; }
    bool is_jump() const { return op_ == Op::jump_indirect; }
    bool left_out_vectors() const { return left_out_; }

    Step step() {
        bool touches = false;
        Step step = run(1, [&] { return touches = true; });
        return step != Step::stop && touches ? Step::access : step;
    }

    // As A64Ahead's. An instruction that reads and writes memory is two accesses: take() is called
    // twice.
    template <class Take>
    Step run(std::uint64_t budget, Take take) {
        for (; budget > 0; budget--) {
            std::uint8_t code[15];
            at_ = s_.pc;
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

    // Memory.
    bool address_of(const X64Instruction& i, std::uint64_t& address) const {
        address = static_cast<std::uint64_t>(i.displacement);
        if (i.base == X64Instruction::kPc)
            address += next_;
        else if (i.base != X64Instruction::kNone) {
            if (!s_.is_known(i.base)) return false;
            address += s_.r[i.base];
        }
        if (i.index != X64Instruction::kNone) {
            if (!s_.is_known(i.index)) return false;
            address += s_.r[i.index] * i.scale;
        }
        if (i.segment == 1) address += s_.fs_base;
        return i.segment != 2;
    }
    void touch(std::uint64_t address, unsigned bytes, bool writes) {
        touch_[touches_++] = {address, 1, bytes, writes};
    }
    bool load(std::uint64_t address, unsigned bytes, Value& value) {
        touch(address, bytes, false);
        Loaded loaded = memory_.load(address, bytes, value.bits);
        value.known = loaded == Loaded::value;
        return loaded != Loaded::fault;
    }
    bool store(std::uint64_t address, unsigned bytes, Value value) {
        touch(address, bytes, true);
        return memory_.store(address, bytes, value.bits, value.known);
    }

    // The operand that may be in memory. An address that is not known ends it.
    bool read_rm(const X64Instruction& i, unsigned bytes, Value& value) {
        if (!i.has_memory) {
            value = get(i.rm, bytes, i.rm_is_high);
            return true;
        }
        return address_of(i, address_) && load(address_, bytes, value);
    }
    bool write_rm(const X64Instruction& i, Value value) {
        if (!i.has_memory) {
            put(i.rm, value, i.bytes, i.rm_is_high);
            return true;
        }
        return address_of(i, address_) && store(address_, i.bytes, value);
    }

    bool alu(const X64Instruction& i) {
        Value a, b;
        if (!read_rm(i, i.bytes, a)) return false;
        b = i.has_immediate ? x64::constant(i) : get(i.reg, i.bytes, i.reg_is_high);
        if (i.to_reg) std::swap(a, b);
        bool same = !i.has_immediate && !i.has_memory && i.reg == i.rm && i.reg_is_high == i.rm_is_high;
        Value result = Integer::alu(i, a, b, same);
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
        return write_rm(i, Integer::shift(i, a, by));
    }

    bool multiply(const X64Instruction& i) {
        Value a, b = i.has_immediate ? x64::constant(i) : get(i.reg, i.bytes);
        if (!read_rm(i, i.bytes, a)) return false;
        set_flags(kAllFlags, 0, false);
        put(i.reg, {a.bits * b.bits, a.known && b.known}, i.bytes);
        return true;
    }

    bool multiply_wide(const X64Instruction& i) {
        Value b;
        if (!read_rm(i, i.bytes, b) || i.bytes < 4) return false;
        return Integer::multiply_wide(i, b);
    }

    bool bits(const X64Instruction& i) {
        Value a;
        if (!read_rm(i, i.bytes, a)) return false;
        if (i.op == Op::bit_test) {
            Value by = i.has_immediate ? x64::constant(i) : get(i.reg, i.bytes);
            Value result = Integer::bit_test(i, a, by);
            return i.sub == 0 || write_rm(i, result);
        }
        put(i.reg, bit_count(i, a), i.bytes);
        return true;
    }

    bool push(Value value) {
        if (!s_.is_known(4)) return false;
        s_.r[4] -= 8;
        return store(s_.r[4], 8, value);
    }
    bool pop(Value& value) {
        if (!s_.is_known(4) || !load(s_.r[4], 8, value)) return false;
        s_.r[4] += 8;
        return true;
    }

    void know(unsigned v, bool known) {
        s_.v_known = known ? s_.v_known | 1u << v : s_.v_known & ~(1u << v);
    }

    bool logic(const X64Instruction& i, std::uint64_t address) {
        VectorValue a = s_.v[i.first], b = s_.v[i.rm];
        bool known = s_.v_known >> i.first & 1 && i.bytes == 16;
        if (i.has_memory) {
            Loaded low = memory_.load(address, 8, b.low), high = memory_.load(address + 8, 8, b.high);
            if (low == Loaded::fault || high == Loaded::fault) return false;
            known &= low == Loaded::value && high == Loaded::value;
        } else
            known &= (s_.v_known >> i.rm & 1) != 0;
        auto combined = [&](std::uint64_t x, std::uint64_t y) {
            return i.sub == 0 ? x & y : i.sub == 1 ? ~x & y : i.sub == 2 ? x | y : x ^ y;
        };
        s_.v[i.reg] = {combined(a.low, b.low), combined(a.high, b.high)};
        know(i.reg, known);
        return true;
    }

    // Scalar floating point: the low part is computed, the rest is that of the first source.
    bool floats(const X64Instruction& i, std::uint64_t address) {
        unsigned from = i.op == Op::scalar_move ? i.bytes : i.from;
        Value b;
        if (i.has_memory) {
            Loaded loaded = memory_.load(address, from, b.bits);
            if (loaded == Loaded::fault) return false;
            b.known = loaded == Loaded::value;
        } else if (i.op == Op::integer_to_scalar)
            b = get(i.rm, from);
        else
            b = {s_.v[i.rm].low & x64::mask(from), (s_.v_known >> i.rm & 1) != 0};
        bool known = b.known && s_.plain_floats;
        VectorValue first = s_.v[i.first];
        x64::Computed result;
        switch (i.op) {
            case Op::scalar_to_integer:
                result = x64::to_integer(x64::widened(b.bits, from), i.bytes);
                put(i.reg, {result.bits, known}, i.bytes);
                return true;
            case Op::scalar_compare: {
                double x = x64::widened(s_.v[i.reg].low & x64::mask(from), from),
                       y = x64::widened(b.bits, from);
                unsigned flags = x > y    ? 0u
                                 : x < y  ? kCarry
                                 : x == y ? kZero
                                          : 0u + kZero + kParity + kCarry;
                set_flags(kAllFlags, static_cast<std::uint8_t>(flags),
                          known && s_.v_known >> i.reg & 1);
                return true;
            }
            case Op::scalar_move:
                result = {b.bits, true};
                known = b.known;
                break;
            case Op::scalar:
                result = x64::scalar(i.sub, first.low & x64::mask(i.bytes), b.bits, i.bytes);
                break;
            case Op::scalar_convert:
                result = x64::narrowed(x64::widened(b.bits, from), i.bytes);
                break;
            default:
                result = x64::from_integer(x64::extended(b.bits, from), i.bytes);
        }
        s_.v[i.reg] = {(first.low & ~x64::mask(i.bytes)) | result.bits, first.high};
        know(i.reg, known && result.known && s_.v_known >> i.first & 1);
        return true;
    }

    bool vector(const X64Instruction& i) {
        std::uint64_t address = 0;
        if (i.has_memory) {
            if (!address_of(i, address)) return false;
            touch(address, i.memory_bytes, i.writes);
        }
        switch (i.op) {
            case Op::vector_load: {
                Value low, high;
                if (i.bytes > 16) {
                    know(i.reg, false);
                    return true;
                }
                Loaded first = memory_.load(address, i.bytes < 8 ? i.bytes : 8, low.bits);
                Loaded second = i.bytes > 8 ? memory_.load(address + 8, 8, high.bits) : Loaded::value;
                if (first == Loaded::fault || second == Loaded::fault) return false;
                s_.v[i.reg] = {low.bits, high.bits};
                know(i.reg, first == Loaded::value && second == Loaded::value);
                return true;
            }
            case Op::vector_store: {
                bool known = s_.v_known >> i.reg & 1 && i.bytes <= 16;
                for (unsigned k = 0; k < i.bytes; k += 8)
                    if (!memory_.store(address + k, i.bytes < 8 ? i.bytes : 8,
                                       k ? s_.v[i.reg].high : s_.v[i.reg].low, known))
                        return false;
                return true;
            }
            case Op::vector_move: {
                unsigned to = i.to_reg ? i.reg : i.rm, from = i.to_reg ? i.rm : i.reg;
                s_.v[to] = s_.v[from];
                know(to, s_.v_known >> from & 1 && i.bytes <= 16);
                return true;
            }
            case Op::vector_zero:
                s_.v[i.reg] = {0, 0};
                know(i.reg, i.bytes <= 16);
                return true;
            case Op::vector_logic:
                return logic(i, address);
            case Op::scalar:
            case Op::scalar_move:
            case Op::scalar_compare:
            case Op::scalar_convert:
            case Op::integer_to_scalar:
            case Op::scalar_to_integer:
                return floats(i, address);
            case Op::general_to_vector: {
                Value value;
                if (i.has_memory) {
                    Loaded loaded = memory_.load(address, i.bytes, value.bits);
                    if (loaded == Loaded::fault) return false;
                    value.known = loaded == Loaded::value;
                } else
                    value = get(i.rm, i.bytes);
                s_.v[i.reg] = {value.bits, 0};
                know(i.reg, value.known);
                return true;
            }
            case Op::vector_to_general: {
                Value value{s_.v[i.reg].low & x64::mask(i.bytes), (s_.v_known >> i.reg & 1) != 0};
                if (i.has_memory) return memory_.store(address, i.bytes, value.bits, value.known);
                put(i.rm, value, i.bytes);
                return true;
            }
            case Op::vector_writes:
                return memory_.store(address, 8, 0, false);
            case Op::vector_to_mask:
                return true;
            case Op::vector_to_flags:
                set_flags(kAllFlags, 0, false);
                break;
            case Op::vector_to_opaque:
                put(i.reg, {0, false}, 8);
                break;
            default:
                know(i.reg, false);
        }
        left_out_ = true;
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
                value.known = address_of(plain, value.bits);
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
            case Op::string_move:
            case Op::string_store:
                return string(i);
            case Op::unknown:
                return false;
            default:
                return vector(i);
        }
    }

    // One element. Repeated, it comes back to itself until the count is used up.
    bool string(const X64Instruction& i) {
        bool repeats = i.sub == 1;
        if (s_.backwards || !s_.is_known(7) || (repeats && !s_.is_known(1))) return false;
        if (repeats && s_.r[1] == 0) return true;
        Value value = get(0, i.bytes);
        if (i.op == Op::string_move) {
            if (!s_.is_known(6) || !load(s_.r[6], i.bytes, value)) return false;
            s_.r[6] += i.bytes;
        }
        if (!store(s_.r[7], i.bytes, value)) return false;
        s_.r[7] += i.bytes;
        if (repeats && --s_.r[1] != 0) next_ = at_;
        return true;
    }

    Memory& memory_;
    X64Table* table_;
    Op op_ = Op::unknown;
    unsigned piece_ = 0;
    std::uint64_t at_ = 0, next_ = 0, address_ = 0;
    Touched touch_[2], touched_;
    unsigned touches_ = 0;
    bool left_out_ = false;
};

}  // namespace revisit::watch
