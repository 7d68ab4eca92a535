// One instruction after the other: the parts of a64.h on a memory.
//
// Memory is whoever has
//     bool fetch(std::uint64_t pc, std::uint32_t& instruction);
//     Loaded load(std::uint64_t address, unsigned bytes, std::uint64_t& value);        // up to 8
//     bool store(std::uint64_t address, unsigned bytes, std::uint64_t value, bool known);  // up to 8
// A store that finds no room, or memory that cannot be read, ends the look-ahead.
#pragma once

#include "watch/a64.h"

namespace revisit::watch {

enum class Loaded : std::uint8_t { value, unknown, fault };

template <class Memory>
class A64Ahead {
 public:
    // Without a vector unit, vector registers are not followed: what they hold rarely matters to what
    // is touched next, and memory that only they are loaded from is then not read at all.
    A64Ahead(A64State& state, Memory& memory, VectorUnit* vectors)
        : s_(state), memory_(memory), vectors_(vectors) {}

    // After Step::access, what was touched.
    const MemoryOperation& touched() const { return op_; }

    // Whether a vector instruction was met and not followed.
    bool left_out_vectors() const { return left_out_; }

    Step step() {
        std::uint32_t instruction;
        if (!memory_.fetch(s_.pc, instruction)) return Step::stop;
        if (is_memory_class(instruction) || is_zero_block(instruction)) return access(instruction);
        if (is_vector_class(instruction)) {
            if (vectors_ != nullptr) return vectors_->step(instruction, s_);
            left_out_ = true;
            return VectorUnit::skip(instruction, s_);
        }
        return step_integer(instruction, s_);
    }

 private:
    using Kind = MemoryOperation::Kind;

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
    MemoryOperation op_;
    bool left_out_ = false;
};

}  // namespace revisit::watch
