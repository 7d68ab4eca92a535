// Numbers that stand in the source.
//
// Problem. Formulas come from sizes of 10 to 80. A loop of 300 rounds, a tile of 64, A[i + 150] beside
// A[i] or a row of 200 elements written as i * 200 + j are out of all proportion there: the samples
// never see the case the target is in, and all checks pass. Idea. A number of 13 or more that does not
// change with the sizes is made a size itself: it becomes smaller with the others, keeps its place in
// their order, and has its own axis in the formulas. What cannot be varied (divisors and masks, whose
// residues are followed instead; places fixed at compile time) is left, and where it is large the
// answer is not called exact. Declared extents are no such numbers: indices are checked against them at
// the target.
#include "predict/fit/fixed_numbers.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>

namespace revisit::predict {
namespace {

// By register: the constant in it, when it is the same at both sizes.
std::vector<std::optional<std::int64_t>> fixed_registers(const Function& f, const Function& other) {
    std::vector<std::optional<std::int64_t>> fixed(static_cast<std::size_t>(f.registers));
    for (std::size_t c = 0; c < f.constants.size() && c < other.constants.size(); ++c)
        if (f.constants[c].global < 0 && f.constants[c].known &&
            other.constants[c].value == f.constants[c].value)
            fixed[static_cast<std::size_t>(f.constants[c].reg)] = f.constants[c].value;
    // Small arguments are constants too, and used in other widths.
    for (const Block& b : f.blocks)
        for (const Instruction& i : b.code)
            if ((i.op == Op::sext || i.op == Op::copy) && i.a >= 0 && i.dst >= 0 &&
                fixed[static_cast<std::size_t>(i.a)] &&
                std::abs(*fixed[static_cast<std::size_t>(i.a)]) < kLargeNumber)
                fixed[static_cast<std::size_t>(i.dst)] = fixed[static_cast<std::size_t>(i.a)];
    return fixed;
}

// What an address is counted from: a global, or the register of an argument or allocation.
struct Roots {
    std::vector<std::int64_t> of;  // by register
    explicit Roots(const Function& f) : of(static_cast<std::size_t>(f.registers)) {
        for (std::size_t r = 0; r < of.size(); ++r) of[r] = -1 - static_cast<std::int64_t>(r);
        for (const Constant& c : f.constants)
            if (c.global >= 0) of[static_cast<std::size_t>(c.reg)] = c.global;
        for (int again = 0; again < 2; ++again)
            for (const Block& b : f.blocks)
                for (const Instruction& i : b.code)
                    if ((i.op == Op::offset || i.op == Op::copy) && i.dst >= 0 && i.a >= 0)
                        of[static_cast<std::size_t>(i.dst)] = of[static_cast<std::size_t>(i.a)];
    }
};

// Bytes from one index to the next, by root, the longest first.
using Strides = std::map<std::int64_t, std::vector<std::int64_t>>;
Strides strides_of(const Function& f, const Roots& roots,
                   const std::vector<std::optional<std::int64_t>>& fixed) {
    std::map<std::int64_t, std::set<std::int64_t>> found;
    for (const Block& b : f.blocks)
        for (const Instruction& i : b.code)
            if (i.op == Op::offset && i.b >= 0 && !fixed[static_cast<std::size_t>(i.b)] && i.imm)
                found[roots.of[static_cast<std::size_t>(i.a)]].insert(std::abs(i.imm));
    Strides all;
    for (const auto& [root, strides] : found) all[root].assign(strides.rbegin(), strides.rend());
    return all;
}

// Products that are bytes from one row to the next: a declared extent guards those, see certify.cpp.
std::set<std::int32_t> row_products(const Function& f) {
    std::set<std::int64_t> rows;
    for (const Reference& r : f.references) {
        std::int64_t bytes = r.size;
        for (auto e = r.extents.rbegin(); e != r.extents.rend(); ++e)
            rows.insert(bytes *= static_cast<std::int64_t>(e->second));
    }
    std::set<std::int32_t> places, products;
    for (const Block& b : f.blocks)
        for (const Instruction& i : b.code)
            if (i.op == Op::offset) (i.imm == 1 ? (void)places.insert(i.b) : (void)rows.insert(i.imm));
    for (const Block& b : f.blocks)
        for (const Instruction& i : b.code)
            if (i.op == Op::mul && places.contains(i.dst))
                for (const Constant& c : f.constants)
                    if ((c.reg == i.a || c.reg == i.b) && rows.contains(c.value))
                        products.insert(i.dst);
    return products;
}

struct Digits {
    std::vector<std::int64_t> digit;  // beside the strides
    std::int64_t rest = 0;
};
Digits digits_of(std::int64_t bytes, const std::vector<std::int64_t>& strides) {
    Digits d;
    for (const auto s : strides) {
        // The nearest multiple: one row up and three to the left is 1 and -3.
        auto q = bytes / s;
        const auto r = bytes % s;
        if (2 * std::abs(r) > s) q += r > 0 ? 1 : -1;
        d.digit.push_back(q);
        bytes -= q * s;
    }
    d.rest = bytes;
    return d;
}

}  // namespace

std::string name_of_number(std::int64_t number) {
    return "~" + std::to_string(std::abs(number));  // sorts after what people call sizes
}
bool is_number(const std::string& name) {
    return name.starts_with('~');
}
std::string shown(const std::string& name) {
    return is_number(name) ? name.substr(1) : name;
}

std::string sizes_text(const Parameters& sizes) {
    std::string out;
    for (const auto& [name, value] : sizes)
        out += (out.empty() ? "" : ", ") + shown(name) + (is_number(name) ? " as " : "=") +
               std::to_string(value);
    return out;
}

FixedPeriods fixed_periods(const Program& program, const Program& other) {
    FixedPeriods found;
    std::set<std::int64_t> moduli, steps;
    std::set<Doubt> left;
    for (std::size_t f = 0; f < program.functions.size(); ++f) {
        const Function& fn = program.functions[f];
        const auto fixed = fixed_registers(fn, other.functions[f]);
        const auto number_in = [&](std::int32_t reg) {
            return reg >= 0 ? fixed[static_cast<std::size_t>(reg)] : std::nullopt;
        };
        std::map<std::int32_t, std::pair<std::int32_t, std::int64_t>> added;  // dst: from, how much
        for (const auto& b : fn.blocks)
            for (const auto& i : b.code) {
                const auto a = number_in(i.a), right = number_in(i.b);
                if (i.op == Op::udiv || i.op == Op::sdiv || i.op == Op::urem || i.op == Op::srem) {
                    if (right && std::abs(*right) > 1) moduli.insert(std::abs(*right));
                } else if (i.op == Op::lshr || i.op == Op::ashr) {
                    if (right && *right > 0 && *right < 31) moduli.insert(std::int64_t{1} << *right);
                } else if (is_bitwise(i.op) && i.width > 1) {
                    // Bits below the highest of the number repeat; a mask of high bits, from its
                    // lowest.
                    const auto number = a ? a : right;
                    if (number && *number == -1) continue;
                    const auto bits = !number ? 64
                                      : *number < 0
                                          ? std::bit_width(~static_cast<std::uint64_t>(*number))
                                          : std::bit_width(static_cast<std::uint64_t>(*number));
                    if (bits < 31)
                        moduli.insert(std::int64_t{1} << bits);
                    else
                        left.emplace(Doubt::Kind::general, i.line,
                                     "bits of numbers are combined, which has no short period");
                } else if (i.op == Op::add && right) {
                    added[i.dst] = {i.a, *right};
                }
            }
        for (const Loop& l : fn.loops)
            for (const Block& b : fn.blocks)
                for (const Edge& e : b.edges)
                    for (const Move& m : e.moves)
                        if (const auto at = added.find(m.from);
                            e.block == l.header && at != added.end() && at->second.first == m.to &&
                            std::abs(at->second.second) > 1)
                            steps.insert(std::abs(at->second.second));
    }
    found.moduli.assign(moduli.begin(), moduli.end());
    found.steps.assign(steps.begin(), steps.end());
    found.left.assign(left.begin(), left.end());
    return found;
}

std::int64_t longest_small_shift(const Program& program) {
    std::int64_t longest = 0;
    const auto add = [&](std::int64_t number) {
        if (std::abs(number) < kLargeNumber) longest = std::max(longest, std::abs(number));
    };
    for (const Function& f : program.functions) {
        const auto fixed = fixed_registers(f, f);
        std::uint32_t element = 64;
        for (const Reference& r : f.references) element = std::min(element, std::max(1u, r.size));
        for (const Block& b : f.blocks)
            for (const Instruction& i : b.code)
                for (const auto reg : {i.a, i.b}) {
                    if (reg < 0 || !fixed[static_cast<std::size_t>(reg)]) continue;
                    const auto number = *fixed[static_cast<std::size_t>(reg)];
                    if (i.op == Op::add || i.op == Op::sub || is_comparison(i.op) || is_clamp(i.op))
                        add(number);
                    else if (i.op == Op::offset && reg == i.b)
                        add(number * i.imm / static_cast<std::int64_t>(element));
                }
    }
    return longest;
}

bool VariedNumbers::large(std::int64_t number) const {
    return std::abs(number) >= kLargeNumber && std::abs(number) < kSentinel &&
           !pinned_.keeps(std::abs(number));
}

VariedNumbers::VariedNumbers(const Program& target, const Program& other, const Pinned& pinned)
    : pinned_(pinned) {
    for (std::uint32_t f = 0; f < target.functions.size(); ++f) look_at(target, other, f);
    if (target.memory_needed)
        for (const Global& g : target.globals)
            if (std::any_of(g.values.begin(), g.values.end(), [&](auto v) { return large(v); }))
                leave(0, "the table " + g.name + " holds numbers of", kLargeNumber);
}

void VariedNumbers::add(const Use& use) {
    numbers_[name_of_number(use.number)] = std::abs(use.number);
    uses_.push_back(use);
}

void VariedNumbers::leave(std::uint32_t line, const std::string& what, std::int64_t number) {
    const Doubt doubt{Doubt::Kind::general, line,
                      what + " " + std::to_string(number) + " or more, which small sizes may not show"};
    if (std::find(left_.begin(), left_.end(), doubt) == left_.end()) left_.push_back(doubt);
}

void VariedNumbers::look_at(const Program& target, const Program& other, std::uint32_t function) {
    const Function &f = target.functions[function], &g = other.functions[function];
    const auto fixed = fixed_registers(f, g);
    const Roots roots(f);
    const auto strides = strides_of(f, roots, fixed), strides_there = strides_of(g, roots, fixed);
    const auto rows = row_products(f);
    const auto number_in = [&](std::int32_t reg) -> std::optional<std::int64_t> {
        if (reg < 0 || !fixed[static_cast<std::size_t>(reg)]) return std::nullopt;
        const auto v = *fixed[static_cast<std::size_t>(reg)];
        return large(v) ? std::optional(v) : std::nullopt;
    };
    // The large digits of an address that are the same at both sizes.
    const auto large_digits = [&](std::int64_t root, std::int64_t here, std::int64_t there) {
        std::vector<std::int64_t> digits;
        const auto s = strides.find(root), t = strides_there.find(root);
        if (s == strides.end() || t == strides_there.end() || s->second.size() != t->second.size())
            return std::pair{digits, true};
        const auto d = digits_of(here, s->second), e = digits_of(there, t->second);
        bool alone = d.rest == 0;  // nothing but one large digit
        for (std::size_t k = 0; k < d.digit.size(); ++k) {
            if (large(d.digit[k]) && d.digit[k] == e.digit[k])
                digits.push_back(d.digit[k]);
            else
                alone &= d.digit[k] == 0;
        }
        return std::pair{digits, alone};
    };
    for (std::size_t c = 0; c < f.constants.size(); ++c)
        if (f.constants[c].global >= 0 && f.constants[c].value != 0)
            for (const auto d :
                 large_digits(f.constants[c].global, f.constants[c].value, g.constants[c].value).first)
                leave(0, "an index of " + target.globals[f.constants[c].global].name + " is", d);
    for (std::uint32_t b = 0; b < f.blocks.size(); ++b) {
        const Block& block = f.blocks[b];
        for (std::uint32_t k = 0; k < block.code.size(); ++k) {
            const Instruction& i = block.code[k];
            const auto take = [&](Part part, std::int32_t reg) {
                if (const auto number = number_in(reg)) add({function, part, b, k, 0, *number});
            };
            switch (i.op) {
                case Op::mul:
                    if (rows.contains(i.dst)) break;
                    [[fallthrough]];
                case Op::add:
                case Op::sub:
                    take(Part::a, i.a);
                    take(Part::b, i.b);
                    break;
                case Op::udiv:
                case Op::sdiv:
                case Op::urem:
                case Op::srem:
                    if (const auto number = number_in(i.a))
                        leave(i.line, "what is divided is", *number);
                    break;
                case Op::select:
                    take(Part::b, i.b);
                    take(Part::c, i.c);
                    break;
                case Op::fill:
                    take(Part::b, i.b);
                    break;
                case Op::move:
                case Op::store:
                    take(Part::c, i.c);
                    break;
                case Op::trunc:
                case Op::zext:
                case Op::sext:
                case Op::copy:
                    take(Part::a, i.a);
                    break;
                case Op::shl:
                    if (i.b >= 0 && fixed[static_cast<std::size_t>(i.b)])
                        if (const auto by = *fixed[static_cast<std::size_t>(i.b)];
                            by > 3 && by < 30 && !(i.a >= 0 && fixed[static_cast<std::size_t>(i.a)]))
                            add({function, Part::shift, b, k, 0, std::int64_t{1} << by});
                    break;
                case Op::offset:
                    if (i.b >= 0 && fixed[static_cast<std::size_t>(i.b)]) {
                        const auto times = *fixed[static_cast<std::size_t>(i.b)];
                        const auto [digits, alone] =
                            large_digits(roots.of[static_cast<std::size_t>(i.a)], times * i.imm,
                                         times * g.blocks[b].code[k].imm);
                        if (digits.size() == 1 && alone)
                            add({function, Part::offset, b, k, 0, digits[0]});
                        else
                            for (const auto d : digits) leave(i.line, "an index is", d);
                    }
                    break;
                default:
                    if (is_comparison(i.op) || is_clamp(i.op)) {
                        take(Part::a, i.a);
                        take(Part::b, i.b);
                    }
                    break;
            }
        }
        for (std::uint32_t e = 0; e < block.edges.size(); ++e)
            for (std::uint32_t m = 0; m < block.edges[e].moves.size(); ++m)
                if (const auto number = number_in(block.edges[e].moves[m].from))
                    add({function, Part::move, b, m, e, *number});
        if (block.exit == Exit::leave)
            if (const auto number = number_in(block.value))
                add({function, Part::value, b, 0, 0, *number});
        for (std::uint32_t k = 0; k < block.cases.size(); ++k)
            if (large(block.cases[k]) && g.blocks[b].cases.size() > k &&
                g.blocks[b].cases[k] == block.cases[k])
                add({function, Part::which_case, b, k, 0, block.cases[k]});
    }
    for (std::uint32_t c = 0; c < f.calls.size(); ++c)
        for (std::uint32_t k = 0; k < f.calls[c].arguments.size(); ++k)
            if (const auto number = number_in(f.calls[c].arguments[k]))
                add({function, Part::argument, c, k, 0, *number});
}

void VariedNumbers::apply(Program& program, const Parameters& values) const {
    std::map<std::pair<std::uint32_t, std::int64_t>, std::int32_t> registers;
    for (const Use& use : uses_) {
        Function& f = program.functions[use.function];
        const auto given = values.find(name_of_number(use.number));
        const auto now =
            (use.number < 0 ? -1 : 1) * (given == values.end() ? std::abs(use.number) : given->second);
        if (use.part == Part::which_case) {
            f.blocks[use.block].cases[use.index] = now;
            continue;
        }
        const auto [at, fresh] = registers.try_emplace({use.function, use.number}, f.registers);
        if (fresh) {
            f.constants.push_back({f.registers, -1, now, true});
            ++f.registers;
        }
        const auto reg = at->second;
        if (use.part == Part::argument) {
            f.calls[use.block].arguments[use.index] = reg;
            continue;
        }
        Block& block = f.blocks[use.block];
        if (use.part == Part::move) {
            block.edges[use.edge].moves[use.index].from = reg;
            continue;
        }
        if (use.part == Part::value) {
            block.value = reg;
            continue;
        }
        Instruction& i = block.code[use.index];
        switch (use.part) {
            case Part::a:
                i.a = reg;
                break;
            case Part::c:
                i.c = reg;
                break;
            case Part::shift:
                i.op = Op::mul;
                i.b = reg;
                break;
            case Part::offset: {
                // So many strides: what is left of the bytes is one.
                std::int64_t times = 1;
                for (const Constant& c : f.constants)
                    if (c.reg == i.b) times = c.value;
                i.imm = times * i.imm / use.number;
                i.b = reg;
                break;
            }
            default:
                i.b = reg;
                break;
        }
    }
}

}  // namespace revisit::predict
