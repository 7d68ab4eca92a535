// One instruction of x86_64 after the other, on a memory: see x64.h, and a64_ahead.h for what a memory
// is; fetch here is
//     unsigned fetch(std::uint64_t pc, std::uint8_t (&code)[15]);  // bytes that can be read
#pragma once

#include "watch/a64_ahead.h"
#include "watch/x64_vectors.h"

namespace revisit::watch {

template <class Memory>
class X64Ahead : x64::Vectors {
 public:
    X64Ahead(X64State& state, Memory& memory, X64Table* table = nullptr)
        : x64::Vectors(state), memory_(memory), table_(table) {}

    const Touched& touched() const { return touched_; }
    std::uint64_t at() const { return at_; }
    // Where the thread stands after it: there a watchpoint on what it touches traps.
    std::uint64_t next() const { return next_; }
    // Whether this access is its instruction's first.
    bool is_first() const { return piece_ == 0; }
    // Whether it is a call, or a return: the state is no longer in the function that it is in.
    bool is_call() const { return op_ == Op::call || op_ == Op::call_indirect; }
    bool is_return() const { return op_ == Op::ret; }
    bool is_string() const { return op_ >= Op::string_move && op_ <= Op::string_compare; }
    bool is_jump() const { return op_ == Op::jump_indirect; }
    using x64::Vectors::left_out_vectors;

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
        put(i.reg, Integer::multiply(i, a, b), i.bytes);
        return true;
    }

    bool multiply_wide(const X64Instruction& i) {
        Value b;
        if (!read_rm(i, i.bytes, b)) return false;
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

    // A masked instruction touches the elements it names, from the first to the last of them.
    bool vector(const X64Instruction& i) {
        if (!i.has_memory) {
            Vectors::vector(i, get_vector(i.rm));
            return true;
        }
        std::uint64_t address, elements;
        if (!address_of(i, address) || !touched_elements(i, elements)) return false;
        unsigned low = 0, high = i.memory_bytes;
        if (i.mask != 0 && !i.broadcasts) {
            elements &= ones(i.memory_bytes / i.element);
            low = elements ? static_cast<unsigned>(__builtin_ctzll(elements)) * i.element : 0;
            high = elements ? static_cast<unsigned>(64 - __builtin_clzll(elements)) * i.element : 0;
        }
        if (high > low) touch(address + low, high - low, i.writes);
        if (i.writes) return store_vector(i, address, i.mask != 0 ? elements : 0);
        x64::Operand b;
        b.known = 15;
        for (unsigned at = low & ~7u; at < high; at += 8) {
            unsigned bytes = i.memory_bytes - at < 8 ? i.memory_bytes - at : 8;
            Loaded loaded = memory_.load(address + at, bytes, b.value.word[at / 8]);
            if (loaded == Loaded::fault) return false;
            if (loaded != Loaded::value)
                b.known = static_cast<std::uint8_t>(b.known & ~(1u << at / 16));
        }
        if (i.broadcasts) {
            for (unsigned k = 1; k < i.bytes / i.element; k++)
                x64::set_element(b.value, i.element, k, x64::element_of(b.value, i.element, 0));
            b.known = b.known & 1 ? 15 : 0;
        }
        Vectors::vector(i, b);
        return true;
    }
    bool store_vector(const X64Instruction& i, std::uint64_t address, std::uint64_t elements) {
        x64::Operand value = stored(i);
        unsigned most = i.mask != 0 ? i.element : 8;
        for (unsigned at = 0; at < i.memory_bytes; at += most) {
            if (i.mask != 0 && !(elements >> at / most & 1)) continue;
            unsigned bytes = i.memory_bytes - at < most ? i.memory_bytes - at : most;
            std::uint64_t bits = value.value.word[at / 8] >> 8 * (at & 7);
            if (!memory_.store(address + at, bytes, bits, value.known >> at / 16 & 1)) return false;
        }
        return true;
    }
    // x87 and others of which only the place in memory is known.
    bool floating(const X64Instruction& i) {
        std::uint64_t address;
        if (i.has_memory && (i.reads || i.writes)) {
            if (!address_of(i, address)) return false;
            touch(address, i.memory_bytes, i.writes);
            for (unsigned at = 0; at < i.memory_bytes && i.writes; at += 8)
                if (!memory_.store(address + at, i.memory_bytes - at < 8 ? i.memory_bytes - at : 8, 0,
                                   false))
                    return false;
        }
        if (i.sub == 1) set_flags(kAllFlags, 0, false);
        if (i.sub == 2) put(0, {0, false}, 2);
        if (i.sub == 3) s_.plain_floats = false;
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
                return write_rm(i, Integer::double_shift(i, value, get(i.reg, i.bytes), count));
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
                return compare_exchange_wide(i);
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
                return floating(i);
            case Op::string_move:
            case Op::string_store:
            case Op::string_load:
            case Op::string_scan:
            case Op::string_compare:
                return string(i);
            case Op::unknown:
                return false;
            default:
                return vector(i);
        }
    }

    // With 8 or 16 bytes.
    bool compare_exchange_wide(const X64Instruction& i) {
        unsigned half = i.bytes / 2;
        std::uint64_t address;
        Value low, high;
        if (!address_of(i, address)) return false;
        touch(address, i.bytes, false);
        Loaded first = memory_.load(address, half, low.bits),
               second = memory_.load(address + half, half, high.bits);
        if (first == Loaded::fault || second == Loaded::fault) return false;
        Value a = get(0, half), d = get(2, half), b = get(3, half), c = get(1, half);
        bool known = first == Loaded::value && second == Loaded::value && a.known && d.known;
        bool equal = a.bits == low.bits && d.bits == high.bits;
        low.known = high.known = known;
        set_flags(kZero, equal ? kZero : 0, known);
        if (!known || !equal) {
            put(0, low, half);
            put(2, high, half);
        }
        Value to_low = known && equal ? b : low, to_high = known && equal ? c : high;
        touch(address, i.bytes, true);
        return memory_.store(address, half, to_low.bits, to_low.known) &&
               memory_.store(address + half, half, to_high.bits, to_high.known);
    }

    // One element. Repeated, it comes back to itself until the count is used up, or what it compares is
    // (sub 1), or is not (2), the same.
    bool string(const X64Instruction& i) {
        bool uses_source = i.op != Op::string_store && i.op != Op::string_scan;
        bool uses_target = i.op != Op::string_load;
        if ((uses_target && !s_.is_known(7)) || (uses_source && !s_.is_known(6)) ||
            (i.sub != 0 && !s_.is_known(1)))
            return false;
        if (i.sub != 0 && s_.r[1] == 0) return true;
        Value source = get(0, i.bytes), target;
        if (uses_source && !load(s_.r[6], i.bytes, source)) return false;
        bool compares = i.op == Op::string_scan || i.op == Op::string_compare;
        if (compares) {
            if (!load(s_.r[7], i.bytes, target)) return false;
            add(source, target, 1, i.bytes, true);
            if (i.sub != 0 && !(s_.flags_known & kZero)) return false;
        } else if (i.op == Op::string_load)
            put(0, source, i.bytes);
        else if (!store(s_.r[7], i.bytes, source))
            return false;
        std::uint64_t by = s_.backwards ? 0 - std::uint64_t{i.bytes} : i.bytes;
        if (uses_source) s_.r[6] += by;
        if (uses_target) s_.r[7] += by;
        bool ends = compares && ((s_.flags & kZero) != 0) != (i.sub == 1);
        if (i.sub != 0 && --s_.r[1] != 0 && !ends) next_ = at_;
        return true;
    }

    Memory& memory_;
    X64Table* table_;
    Op op_ = Op::unknown;
    unsigned piece_ = 0;
    std::uint64_t at_ = 0, next_ = 0, address_ = 0;
    Touched touch_[2], touched_;
    unsigned touches_ = 0;
};

}  // namespace revisit::watch
