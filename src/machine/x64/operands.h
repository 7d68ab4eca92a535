// Operands of x86_64 instructions, in registers or in a memory, and the instructions that are little
// else: pushing, moving vectors, strings. See x64.h, and ahead.h for what a memory is; fetch here
// is
//     unsigned fetch(std::uint64_t pc, std::uint8_t (&code)[15]);  // bytes that can be read
// All of these are false where the look-ahead ends.
#pragma once

#include "machine/ahead.h"
#include "machine/x64/vectors.h"

namespace revisit::machine::x64 {

template <class Memory>
class Operands : public Vectors {
 public:
    Operands(X64State& state, Memory& memory, bool words)
        : Vectors(state), memory_(memory), words_(words) {}

 protected:
    using Op = X64Instruction::Op;

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
        Operand b;
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
                set_element(b.value, i.element, k, element_of(b.value, i.element, 0));
            b.known = b.known & 1 ? 15 : 0;
        }
        Vectors::vector(i, b);
        return true;
    }
    bool store_vector(const X64Instruction& i, std::uint64_t address, std::uint64_t elements) {
        Operand value = stored(i);
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

    // How many elements of a repeated string are moved or filled at once: one, as the processor does
    // when it is stepped through, or those up to the end of the target's word. Bytes that follow each
    // other are then one access, as they are in the code of any other copy.
    unsigned elements_at_once(const X64Instruction& i) const {
        bool moves = i.op == Op::string_move;
        if (!words_ || i.sub == 0 || s_.backwards || !(moves || i.op == Op::string_store)) return 1;
        auto room = static_cast<unsigned>((8 - (s_.r[7] & 7)) / i.bytes);
        if (s_.r[1] < room) room = static_cast<unsigned>(s_.r[1]);
        if (moves && s_.r[7] - s_.r[6] < 8) return 1;  // it reads what it has just written
        return room > 0 ? room : 1;
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
        unsigned elements = elements_at_once(i), bytes = elements * i.bytes;
        Value source = get(0, i.bytes), target;
        for (unsigned k = 1; k < elements; k++) source.bits |= source.bits << 8 * i.bytes;
        if (uses_source && !load(s_.r[6], bytes, source)) return false;
        bool compares = i.op == Op::string_scan || i.op == Op::string_compare;
        if (compares) {
            if (!load(s_.r[7], i.bytes, target)) return false;
            add(source, target, 1, i.bytes, true);
            if (i.sub != 0 && !(s_.flags_known & kZero)) return false;
        } else if (i.op == Op::string_load)
            put(0, source, i.bytes);
        else if (!store(s_.r[7], bytes, source))
            return false;
        std::uint64_t by = s_.backwards ? 0 - std::uint64_t{bytes} : bytes;
        if (uses_source) s_.r[6] += by;
        if (uses_target) s_.r[7] += by;
        bool ends = compares && ((s_.flags & kZero) != 0) != (i.sub == 1);
        if (i.sub == 0) return true;
        s_.r[1] -= elements;
        if (s_.r[1] != 0 && !ends) next_ = at_;
        return true;
    }

    Memory& memory_;
    bool words_;
    std::uint64_t at_ = 0, next_ = 0, address_ = 0;  // the instruction, and where it goes on
    Touched touch_[2];                               // what it touches
    unsigned touches_ = 0;
};

}  // namespace revisit::machine::x64
