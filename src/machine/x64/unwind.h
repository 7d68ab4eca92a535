// Call stacks on x86_64.
//
// Problem. Compilers use rbp for anything there, so frames are not chained; the tables in .eh_frame
// tell where each one ends, for every instruction. Copying the stack out and unwinding later costs
// kilobytes per sample. Idea. Of all that the tables can say, compilers use little: a frame begins at
// rsp, rbp or (where the dynamic linker aligns its stack) rbx plus a number, the return address lies
// just below, rbp and rbx are kept or were saved at a fixed place. That is a rule of 16 bytes per
// instruction; it is worked out once, from the tables as they are mapped, and remembered. Then a frame
// is one lookup and two or three loads. The one expression that is common, that of the stubs through
// which libraries are called, depends on the place alone and is computed. What says more than that ends
// the path; code without tables is followed by frame pointers. All memory is read as a look-ahead reads
// it, so nothing can fault. Measured: tests/watched/x64_steps.cpp compares every 37th instruction's
// path with the C library's unwinder. Source. The .eh_frame_hdr of the Linux Standard Base; DWARF
// 5, 6.4 and 2.5.
#pragma once

#include "machine/ahead.h"
#include "machine/x64/x64.h"

namespace revisit::machine {

struct X64FrameRule {
    enum class Base : std::uint8_t {
        none,  // there is no table for it
        lost,  // there is, but it says more than is known here
        end,   // of the path
        rsp,
        rbp,
        rbx,
    };
    Base base = Base::none;
    bool loses_rbx = false;      // the table says where it is, but not by a number
    std::int32_t frame = 0;      // from the base to where the caller's frame begins
    std::int32_t saved_rbp = 0;  // from there to where it is; 0 = it still is the caller's
    std::int32_t saved_rbx = 0;
    bool operator==(const X64FrameRule&) const = default;
};

namespace x64 {

// Bytes, numbers and addresses of the tables, one after the other.
template <class Memory>
class Cursor {
 public:
    Cursor(Memory& memory, std::uint64_t address) : at(address), memory_(memory) {}

    std::uint64_t fixed(unsigned bytes) {
        std::uint64_t value = 0;
        if (memory_.load(at, bytes, value) != Loaded::value) failed = true;
        at += bytes;
        return value;
    }
    std::uint8_t byte() { return static_cast<std::uint8_t>(fixed(1)); }
    std::uint64_t leb(bool has_sign) {
        std::uint64_t value = 0;
        for (unsigned shift = 0; shift < 64; shift += 7) {
            std::uint8_t next = byte();
            value |= std::uint64_t{next & 0x7fu} << shift;
            if (next & 0x80) continue;
            if (has_sign && next & 0x40 && shift + 7 < 64) value |= ~std::uint64_t{0} << (shift + 7);
            return value;
        }
        failed = true;
        return 0;
    }
    // An address in one of the encodings that .eh_frame uses.
    std::uint64_t address(std::uint8_t encoding, std::uint64_t data) {
        static constexpr std::uint8_t kBytes[8] = {8, 0, 2, 4, 8, 0, 0, 0};
        std::uint64_t from = at, value = 0;
        bool has_sign = encoding & 8;
        if (unsigned bytes = kBytes[encoding & 7]; bytes != 0) {
            value = fixed(bytes);
            if (has_sign) value = static_cast<std::uint64_t>(sign_extend(value, 8 * bytes));
        } else if ((encoding & 7) == 1)
            value = leb(has_sign);
        else
            failed = true;
        if ((encoding & 0x70) == 0x10) value += from;
        if ((encoding & 0x70) == 0x30) value += data;
        return value;
    }

    std::uint64_t at;
    bool failed = false;

 private:
    Memory& memory_;
};

// The state of a table's program: where the frame begins, where rbp is.
template <class Memory>
class FrameProgram {
 public:
    FrameProgram(std::uint64_t code_unit, std::int64_t data_unit)
        : code_unit_(code_unit), data_unit_(data_unit) {}

    // Runs up to the row for `pc`, the program starting at `location`. Its instructions are DW_CFA_….
    bool run(Cursor<Memory>& in, std::uint64_t end, std::uint64_t location, std::uint64_t pc) {
        while (in.at < end && !in.failed) {
            unsigned op = in.byte(), low = op & 63;
            switch (op >> 6) {
                case 1:  // advance_loc
                    if ((location += low * code_unit_) > pc) return true;
                    continue;
                case 2:  // offset
                    offset(low, in.leb(false), true);
                    continue;
                case 3:  // restore
                    restore(low);
                    continue;
                default:
                    break;
            }
            std::uint64_t r;
            switch (op) {
                case 0x00:  // nop
                    break;
                case 0x02:
                case 0x03:
                case 0x04:  // advance_loc1, 2, 4
                    if ((location += in.fixed(1u << (op - 2)) * code_unit_) > pc) return !in.failed;
                    break;
                case 0x05:
                case 0x11:  // offset_extended, and _sf
                    r = in.leb(false);
                    offset(r, in.leb(op == 0x11), true);
                    break;
                case 0x06:  // restore_extended
                    restore(in.leb(false));
                    break;
                case 0x07:  // undefined: not to be found again
                    if (in.leb(false) == kReturn) row_.rule.base = X64FrameRule::Base::end;
                    break;
                case 0x08:  // same_value
                    r = in.leb(false);
                    if (r == kRbp) row_.rule.saved_rbp = 0;
                    if (r == kRbx) row_.rule.saved_rbx = 0;
                    break;
                case 0x09:  // register
                    r = in.leb(false);
                    in.leb(false);
                    lose(r);
                    break;
                case 0x0a:  // remember_state
                    if (depth_ == kDepth) return false;
                    stack_[depth_++] = row_;
                    break;
                case 0x0b:  // restore_state
                    if (depth_ == 0) return false;
                    row_ = stack_[--depth_];
                    break;
                case 0x0c:
                case 0x12:  // def_cfa, and _sf
                    r = in.leb(false);
                    base(r);
                    row_.rule.frame = distance(in.leb(op == 0x12), op == 0x12);
                    break;
                case 0x0d:  // def_cfa_register
                    base(in.leb(false));
                    break;
                case 0x0e:
                case 0x13:  // def_cfa_offset, and _sf
                    row_.rule.frame = distance(in.leb(op == 0x13), op == 0x13);
                    break;
                case 0x0f: {  // def_cfa_expression
                    std::uint64_t bytes = in.leb(false), begin = in.at;
                    if (!expression(in, begin + bytes, pc)) row_.rule.base = X64FrameRule::Base::lost;
                    in.at = begin + bytes;
                    break;
                }
                case 0x10:
                case 0x16: {  // expression, val_expression
                    r = in.leb(false);
                    std::uint64_t bytes = in.leb(false);
                    in.at += bytes;
                    lose(r);
                    break;
                }
                case 0x2e:  // GNU_args_size
                    in.leb(false);
                    break;
                default:
                    return false;
            }
        }
        return !in.failed;
    }
    void start() { first_ = row_; }
    X64FrameRule rule() const {
        X64FrameRule rule = row_.rule;
        if (!row_.is_plain || rule.base == X64FrameRule::Base::none)
            rule.base = X64FrameRule::Base::lost;
        return rule;
    }

 private:
    static constexpr unsigned kRbx = 3, kRbp = 6, kRsp = 7, kReturn = 16, kDepth = 8;
    struct Row {
        X64FrameRule rule;
        bool is_plain = true;
    };
    void base(std::uint64_t r) {
        row_.rule.base = r == kRsp   ? X64FrameRule::Base::rsp
                         : r == kRbp ? X64FrameRule::Base::rbp
                         : r == kRbx ? X64FrameRule::Base::rbx
                                     : X64FrameRule::Base::lost;
    }
    void lose(std::uint64_t r) {
        if (r == kRbp || r == kReturn) row_.is_plain = false;
        if (r == kRbx) row_.rule.loses_rbx = true;
    }

    // A register plus what the place alone decides, by the stack machine of DWARF.
    bool expression(Cursor<Memory>& in, std::uint64_t end, std::uint64_t pc) {
        struct Entry {
            std::uint64_t value = 0;
            unsigned of = 0;  // 0 = a number, else a register and one
        } stack[8];
        unsigned depth = 0;
        while (in.at < end && !in.failed) {
            unsigned op = in.byte();
            if (op >= 0x30 && op < 0x50) {  // DW_OP_lit0 …
                if (depth == 8) return false;
                stack[depth++] = {op - 0x30, 0};
            } else if (op >= 0x70 && op <= 0x80) {  // breg0 …
                if (depth == 8) return false;
                std::uint64_t offset = in.leb(true);
                stack[depth++] =
                    op == 0x70 + kReturn ? Entry{pc + offset, 0} : Entry{offset, op - 0x70 + 1};
            } else {
                if (depth < 2) return false;
                Entry b = stack[--depth], &a = stack[depth - 1];
                if (b.of != 0 || (a.of != 0 && op != 0x22)) return false;
                switch (op) {
                    case 0x1a:  // DW_OP_and
                        a.value &= b.value;
                        break;
                    case 0x22:  // plus
                        a.value += b.value;
                        break;
                    case 0x24:  // shl
                        a.value = b.value < 64 ? a.value << b.value : 0;
                        break;
                    case 0x2a:  // ge
                        a.value =
                            static_cast<std::int64_t>(a.value) >= static_cast<std::int64_t>(b.value);
                        break;
                    default:
                        return false;
                }
            }
        }
        if (depth != 1 || stack[0].of == 0 || in.failed) return false;
        base(stack[0].of - 1);
        row_.rule.frame = static_cast<std::int32_t>(stack[0].value);
        return true;
    }
    std::int32_t distance(std::uint64_t value, bool scaled) const {
        return static_cast<std::int32_t>(static_cast<std::int64_t>(value) * (scaled ? data_unit_ : 1));
    }
    void offset(std::uint64_t r, std::uint64_t value, bool scaled) {
        if (r == kRbp) row_.rule.saved_rbp = distance(value, scaled);
        if (r == kRbx) row_.rule.saved_rbx = distance(value, scaled);
        if (r == kReturn && distance(value, scaled) != -8) row_.is_plain = false;
    }
    void restore(std::uint64_t r) {
        if (r == kRbp) row_.rule.saved_rbp = first_.rule.saved_rbp;
        if (r == kRbx) row_.rule.saved_rbx = first_.rule.saved_rbx;
    }

    std::uint64_t code_unit_;
    std::int64_t data_unit_;
    Row row_, first_, stack_[kDepth];
    unsigned depth_ = 0;
};

}  // namespace x64

// From the .eh_frame_hdr at `table`.
template <class Memory>
X64FrameRule find_frame_rule(Memory& memory, std::uint64_t table, std::uint64_t pc) {
    x64::Cursor<Memory> in(memory, table);
    if (in.byte() != 1) return {};
    std::uint8_t frames_as = in.byte(), count_as = in.byte(), entries_as = in.byte();
    if (entries_as != 0x3b) return {};  // pairs of 4 bytes, relative to the table
    in.address(frames_as, table);
    std::uint64_t count = in.address(count_as, table), entries = in.at, low = 0, high = count;
    if (in.failed || count == 0 || count > 1u << 28) return {};
    auto entry = [&](std::uint64_t i, unsigned which) {
        in.at = entries + 8 * i + 4 * which;
        return table + static_cast<std::uint64_t>(sign_extend(in.fixed(4), 32));
    };
    while (high - low > 1) {
        std::uint64_t middle = low + (high - low) / 2;
        (entry(middle, 0) <= pc ? low : high) = middle;
    }
    x64::Cursor<Memory> frame(memory, entry(low, 1));
    std::uint64_t bytes = frame.fixed(4), end = frame.at + bytes;
    if (bytes == 0 || bytes >= 0xffffff00) return {};
    std::uint64_t common_at = frame.at;
    common_at -= frame.fixed(4);
    x64::Cursor<Memory> common(memory, common_at);
    std::uint64_t common_bytes = common.fixed(4), common_end = common.at + common_bytes;
    if (common.fixed(4) != 0) return {};
    unsigned version = common.byte();
    char augmentation[8] = {};
    for (unsigned i = 0; i < 7; i++)
        if ((augmentation[i] = static_cast<char>(common.byte())) == 0) break;
    if (augmentation[0] != 'z' || (version != 1 && version != 3)) return {};
    std::uint64_t code_unit = common.leb(false);
    auto data_unit = static_cast<std::int64_t>(common.leb(true));
    if (common.leb(false) != 16) return {};
    std::uint64_t program = common.leb(false);
    program += common.at;
    std::uint8_t addresses_as = 0;
    for (unsigned i = 1; augmentation[i] != 0; i++) {
        if (augmentation[i] == 'R')
            addresses_as = common.byte();
        else if (augmentation[i] == 'L')
            common.byte();
        else if (augmentation[i] == 'P') {
            std::uint8_t as = common.byte();
            common.address(as, table);
        } else
            return {.base = X64FrameRule::Base::lost};  // S: a frame of a signal
    }
    std::uint64_t begin = frame.address(addresses_as, table);
    std::uint64_t length = frame.address(addresses_as & 15, table);
    if (frame.failed || common.failed || pc < begin || pc - begin >= length) return {};
    std::uint64_t skip = frame.leb(false);
    frame.at += skip;
    common.at = program;
    x64::FrameProgram<Memory> rows(code_unit, data_unit);
    if (!rows.run(common, common_end, 0, ~std::uint64_t{0})) return {.base = X64FrameRule::Base::lost};
    rows.start();
    if (!rows.run(frame, end, begin, pc)) return {.base = X64FrameRule::Base::lost};
    return rows.rule();
}

class X64Unwinder {
 public:
    // Return addresses, innermost first, from where `s` stands. find_table(pc) names a module's table.
    template <class Memory, class FindTable>
    unsigned walk(Memory& memory, const X64State& s, FindTable find_table, std::uint64_t* back,
                  unsigned most) {
        using Base = X64FrameRule::Base;
        constexpr std::uint64_t kMostBytes = 8u << 20;
        if (!s.is_known(4)) return 0;
        std::uint64_t sp = s.r[4], bp = s.is_known(5) ? s.r[5] : 0, bx = s.is_known(3) ? s.r[3] : 0;
        std::uint64_t pc = s.pc;
        const std::uint64_t lowest = sp;
        unsigned count = 0;
        while (count < most) {
            // A call may be a function's last instruction: look where it was made from.
            X64FrameRule rule = find(memory, count == 0 ? pc : pc - 1, find_table);
            if (rule.base == Base::end || rule.base == Base::lost) break;
            if (rule.base == Base::none)
                rule = {.base = Base::rbp, .loses_rbx = true, .frame = 16, .saved_rbp = -16};
            std::uint64_t base = rule.base == Base::rsp ? sp : rule.base == Base::rbp ? bp : bx;
            std::uint64_t frame = base + static_cast<std::uint64_t>(std::int64_t{rule.frame});
            if (frame <= sp || frame - lowest > kMostBytes || frame & 7) break;
            if (memory.load(frame - 8, 8, pc) != Loaded::value || pc < 4096) break;
            auto restored = [&](std::int32_t saved, std::uint64_t& value) {
                return saved == 0 ||
                       memory.load(frame + static_cast<std::uint64_t>(std::int64_t{saved}), 8, value) ==
                           Loaded::value;
            };
            if (!restored(rule.saved_rbp, bp)) break;
            if (rule.loses_rbx || !restored(rule.saved_rbx, bx)) bx = 0;
            back[count++] = pc;
            sp = frame;
        }
        return count;
    }
    // Modules were unloaded: what is remembered may be about others.
    void forget() {
        for (Entry& entry : entries_) entry.pc = 0;
    }

 private:
    static constexpr unsigned kEntries = 1024;
    struct Entry {
        std::uint64_t pc = 0;
        X64FrameRule rule;
    };

    template <class Memory, class FindTable>
    X64FrameRule find(Memory& memory, std::uint64_t pc, FindTable find_table) {
        Entry& entry = entries_[pc * 0x9e3779b97f4a7c15 >> 54];
        static_assert(kEntries == 1u << 10);
        if (entry.pc != pc) {
            std::uint64_t table = find_table(pc);
            entry = {pc, table ? find_frame_rule(memory, table, pc) : X64FrameRule{}};
        }
        return entry.rule;
    }

    Entry entries_[kEntries];
};

}  // namespace revisit::machine
