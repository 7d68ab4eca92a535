// Which sizes the periods of a program can reach.
//
// Problem. A loop over N rows that the compiler unrolled by 5 makes counts periodic in N. If every size
// had to keep its residue by 5, and by the 8 elements of a line too, samples would be too large to run.
//
// Idea. Values that are never compared, added or used as the same index of the same array do not meet.
// Put registers, sizes and indices ("digits") of arrays into one component whenever an instruction
// brings them together. Then every atom of the formulas that say what is executed, in which order, and
// what touches the same element, is about one component. Eliminating a quantifier keeps it so, and a
// count over such a formula is a sum of products, one factor per component, each a quasi-polynomial of
// that component's sizes whose periods come from that component's numbers (docs/predict-proof.md).
// Conditions choose between values without meeting them: a selection is a case of the formula.
//
// Example. for (j < M) for (i < N; i += 5) { A[i][j]; … A[i + 4][j]; }: i, N and rows of A are one
// component, with the period 5; j, M and columns of A another one. With for (k < M) A[k][0] behind it,
// rows meet M, and M has the period 5 too.
//
// Digits. An address is a sum of indices times strides. Equal addresses have equal digits where each
// inner index stays within the extent that the source declares (certify.cpp checks those), up to a
// number of rows that does not depend on sizes. By blocks rows have to be whole blocks. Otherwise, and
// where pointers go round loops or several arrays are behind one pointer, all digits are one.
//
// Cost. A few passes over the slice: microseconds to milliseconds.
#include "predict/fit/components.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <numeric>
#include <optional>
#include <set>

#include "predict/fit/fixed_numbers.h"
#include "predict/fit/pointers.h"

namespace revisit::predict {
namespace {

// A load, store, fill or one side of a move.
struct Access {
    std::size_t function;
    std::int32_t address;
    const Reference* reference;
    std::int32_t length = -1;  // of a fill or move
};

// Bytes as so many of each stride, the longest first; nothing where that leaves a rest.
std::optional<std::vector<std::int64_t>> digits(std::int64_t bytes,
                                                const std::vector<std::int64_t>& strides) {
    std::vector<std::int64_t> all(strides.size());
    for (std::size_t k = strides.size(); k-- > 0;) {
        all[k] = bytes / strides[k];
        const auto rest = bytes % strides[k];
        if (2 * std::abs(rest) > strides[k]) all[k] += rest > 0 ? 1 : -1;
        bytes -= all[k] * strides[k];
    }
    if (bytes != 0) return std::nullopt;
    return all;
}

class Components {
 public:
    Components(const SizedPrograms& programs, const std::vector<Axis>& axes, std::uint64_t granularity)
        : programs_(programs),
          target_(programs.target),
          pointers_(programs.target),
          names_(axes),
          block_(static_cast<std::int64_t>(granularity)) {
        for (std::size_t a = 0; a < axes.size(); ++a) axes_.push_back(values_.fresh());
        anything_ = values_.fresh();
        for (const Function& f : target_.functions) {
            first_.push_back(values_.size());
            for (std::int32_t r = 0; r < f.registers; ++r) values_.fresh();
            results_.push_back(values_.fresh());
            for (const Block& b : f.blocks)
                for (const Instruction& i : b.code)
                    writes_ |= (i.op == Op::store && i.b < 0 && i.c >= 0) || i.op == Op::fill ||
                               i.op == Op::move;
        }
    }

    void run() {
        for (std::size_t f = 0; f < target_.functions.size(); ++f) look_at_constants(f);
        for (std::size_t f = 0; f < target_.functions.size(); ++f) look_at_code(f);
        for (std::size_t f = 0; f < target_.functions.size(); ++f) look_at_loops(f);
        look_at_arrays();
        if (unknown_)
            for (const auto axis : axes_) values_.join(axis, anything_);
    }

    std::int64_t period(std::size_t axis, std::int64_t modulus) {
        const auto at = values_.find(axes_[axis]);
        std::int64_t period = 1;
        for (const auto& [node, number] : periods_) {
            if (values_.find(node) != at) continue;
            if (number == 0) return modulus;
            if (modulus % number == 0) period = std::lcm(period, number);
        }
        return period;
    }

 private:
    std::size_t node(std::size_t f, std::int32_t reg) const {
        return first_[f] + static_cast<std::size_t>(reg);
    }
    bool literal(std::size_t f, std::int32_t reg) const { return literals_[f].contains(reg); }

    // The number of the source in a register, through casts.
    std::optional<std::int64_t> number(std::size_t f, std::int32_t reg) const {
        for (int depth = 0; reg >= 0 && depth < 8; ++depth) {
            if (const auto at = literals_[f].find(reg); at != literals_[f].end()) return at->second;
            const auto* from = definition(f, reg);
            if (!from || !is_cast(from->op)) break;
            reg = from->a;
        }
        return std::nullopt;
    }
    static bool is_cast(Op op) {
        return op == Op::trunc || op == Op::zext || op == Op::sext || op == Op::copy;
    }
    // The only instruction that writes a register.
    const Instruction* definition(std::size_t f, std::int32_t reg) const {
        const auto at = definitions_[f].find(reg);
        return at == definitions_[f].end() ? nullptr : at->second;
    }

    void meet(std::size_t f, std::initializer_list<std::int32_t> registers) {
        std::optional<std::size_t> first;
        for (const auto r : registers) {
            if (r < 0 || literal(f, r)) continue;
            if (first) values_.join(*first, node(f, r));
            first = node(f, r);
        }
    }
    void unknown(std::size_t f, std::int32_t reg) {
        if (reg < 0) return;
        unknown_ = true;
        values_.join(node(f, reg), anything_);
        periods_.emplace_back(anything_, 0);
    }
    // 0: any.
    void period_of(std::size_t f, std::int32_t reg, std::int64_t number) {
        if (reg >= 0 && std::abs(number) != 1) periods_.emplace_back(node(f, reg), std::abs(number));
    }

    void look_at_constants(std::size_t f) {
        const Function& fn = target_.functions[f];
        literals_.emplace_back();
        definitions_.emplace_back();
        constants_.emplace_back();
        for (std::size_t k = 0; k < fn.constants.size(); ++k) {
            const Constant& c = fn.constants[k];
            constants_[f][c.reg] = k;
            if (c.global >= 0) continue;
            bool sized = false;
            for (std::size_t a = 0; a < axes_.size(); ++a)
                if (programs_.marked[a].functions[f].constants[k].value != c.value) {
                    values_.join(node(f, c.reg), axes_[a]);
                    sized = true;
                }
            if (!c.known)
                unknown(f, c.reg);
            else if (!sized)
                literals_[f][c.reg] = c.value;
        }
        for (const Argument& argument : fn.arguments)
            if (f == 0 && argument.reg >= 0) join_named(node(f, argument.reg), argument.name);
        std::map<std::int32_t, int> written;
        for (const Block& b : fn.blocks)
            for (const Instruction& i : b.code)
                if (const auto to = i.op == Op::store ? i.b : i.dst; to >= 0) {
                    if (++written[to] == 1 && i.op != Op::store)
                        definitions_[f][to] = &i;
                    else
                        definitions_[f].erase(to);
                }
    }

    void join_named(std::size_t at, const std::string& name) {
        for (std::size_t a = 0; a < axes_.size(); ++a)
            for (const auto& [other, offset] : names_[a].names)
                if (other == name) values_.join(at, axes_[a]);
    }

    // A load of a global that is one number, in a program that writes no numbers: a size, or fixed.
    const Global* scalar(std::size_t f, const Instruction& load) const {
        const auto at = constants_[f].find(load.a);
        if (writes_ || load.c >= 0 || at == constants_[f].end()) return nullptr;
        const Constant& c = target_.functions[f].constants[at->second];
        if (c.global < 0 || c.value != 0) return nullptr;
        const Global& g = target_.globals[static_cast<std::size_t>(c.global)];
        return g.size <= 8 ? &g : nullptr;
    }

    void look_at_code(std::size_t f) {
        const Function& fn = target_.functions[f];
        for (std::size_t b = 0; b < fn.blocks.size(); ++b) {
            const Block& block = fn.blocks[b];
            for (std::size_t k = 0; k < block.code.size(); ++k) look_at(f, block.code[k]);
            for (const Edge& e : block.edges)
                for (const Move& m : e.moves) meet(f, {m.to, m.from});
            if (block.exit == Exit::leave && block.value >= 0 && !literal(f, block.value))
                values_.join(node(f, block.value), results_[f]);
            for (std::size_t c = 0; c < block.cases.size(); ++c)
                for (std::size_t a = 0; a < axes_.size(); ++a)
                    if (programs_.marked[a].functions[f].blocks[b].cases[c] != block.cases[c])
                        values_.join(node(f, block.value), axes_[a]);
        }
    }

    void look_at(std::size_t f, const Instruction& i) {
        const auto by = i.b >= 0 ? number(f, i.b) : std::nullopt;
        switch (i.op) {
            case Op::mul:
                meet(f, {i.dst, i.a, i.b});
                for (const auto reg : {i.a, i.b})
                    if (const auto factor = number(f, reg)) period_of(f, i.dst, *factor);
                return;
            case Op::shl:
            case Op::lshr:
            case Op::ashr:
                meet(f, {i.dst, i.a, i.b});
                return period_of(f, i.dst, by && *by >= 0 && *by < 40 ? std::int64_t{1} << *by : 0);
            case Op::udiv:
            case Op::sdiv:
            case Op::urem:
            case Op::srem:
                meet(f, {i.dst, i.a, i.b});
                return period_of(f, i.dst, by.value_or(0));
            case Op::bit_and:
            case Op::bit_or:
            case Op::bit_xor: {
                if (i.width == 1) return;  // conditions, not values
                meet(f, {i.dst, i.a, i.b});
                const auto mask = by ? by : number(f, i.a);
                if (!mask) return period_of(f, i.dst, 0);
                const auto bits = static_cast<std::uint64_t>(*mask < 0 ? ~*mask : *mask);
                if (bits == 0) return;  // all or none
                const auto width = 64 - __builtin_clzll(bits);
                return period_of(f, i.dst, width > 30 ? 0 : std::int64_t{1} << width);
            }
            case Op::select:
                return meet(f, {i.dst, i.b, i.c});
            case Op::load:
                if (i.b >= 0 && i.c < 0) return meet(f, {i.dst, i.b});
                if (const auto* g = i.dst >= 0 && i.b < 0 ? scalar(f, i) : nullptr)
                    return join_named(node(f, i.dst), g->name);
                return unknown(f, i.dst);
            case Op::store:
                if (i.b < 0) return;
                return i.c >= 0 ? meet(f, {i.b, i.c}) : unknown(f, i.b);
            case Op::call: {
                const Call& c = target_.functions[f].calls[static_cast<std::size_t>(i.imm)];
                const auto callee = static_cast<std::size_t>(c.function);
                for (std::size_t k = 0; k < c.arguments.size(); ++k)
                    if (c.arguments[k] >= 0 && !literal(f, c.arguments[k]))
                        values_.join(node(f, c.arguments[k]),
                                     node(callee, target_.functions[callee].arguments[k].reg));
                if (c.dst >= 0) values_.join(node(f, c.dst), results_[callee]);
                return;
            }
            case Op::unknown:
                return unknown(f, i.dst);
            case Op::offset:  // pointers are followed below
            case Op::reserve:
            case Op::allocate:
            case Op::stack_save:
            case Op::stack_restore:
            case Op::fill:
            case Op::move:
                return;
            default:
                // What is compared meets; a condition is no value.
                return is_comparison(i.op) ? meet(f, {i.a, i.b}) : meet(f, {i.dst, i.a, i.b});
        }
    }

    // Whatever changes in a loop goes with the number of its iteration.
    void look_at_loops(std::size_t f) {
        const Function& fn = target_.functions[f];
        for (std::size_t l = 0; l < fn.loops.size(); ++l) {
            std::int32_t counter = -1;
            std::set<std::int32_t> stepped;
            const auto changes = [&](std::int32_t to, std::int32_t from) {
                if (to == from) return;
                if (counter >= 0) meet(f, {counter, to});
                counter = to;
                if (!made_of(f, from, to)) return;
                const auto step = step_of(f, to, from);
                // Twice in one iteration: by how much is not looked at.
                if (!step || !stepped.insert(to).second)
                    period_of(f, to, 0);
                else if (*step != 0)
                    period_of(f, to, *step);
            };
            for (const Block& b : fn.blocks) {
                auto around = b.loop;
                while (around >= 0 && around != static_cast<std::int32_t>(l))
                    around = fn.loops[static_cast<std::size_t>(around)].parent;
                if (around < 0) continue;
                for (const Instruction& i : b.code)
                    if (i.op == Op::store && i.b >= 0) changes(i.b, i.c);
                for (const Edge& e : b.edges)
                    if (e.block == fn.loops[l].header)
                        for (const Move& m : e.moves) changes(m.to, m.from);
            }
        }
    }

    // Whether a value may have another in it.
    bool made_of(std::size_t f, std::int32_t value, std::int32_t other) const {
        std::vector<std::int32_t> work{value};
        std::set<std::int32_t> seen;
        while (!work.empty()) {
            const auto reg = work.back();
            work.pop_back();
            if (reg < 0 || constants_[f].contains(reg) || !seen.insert(reg).second) continue;
            const auto* i = definition(f, reg);
            if (reg == other || !i || i->op == Op::call || seen.size() > 100) return true;
            work.insert(work.end(), {i->a, i->b, i->c});
        }
        return false;
    }

    // How much `from` is more than `to`.
    std::optional<std::int64_t> step_of(std::size_t f, std::int32_t to, std::int32_t from) const {
        std::int64_t sum = 0;
        for (int depth = 0; depth < 16; ++depth) {
            if (from == to) return sum;
            const auto* i = from < 0 ? nullptr : definition(f, from);
            if (!i) return std::nullopt;
            if (is_cast(i->op)) {
                from = i->a;
            } else if (i->op == Op::load) {
                from = i->b;
            } else if (i->op == Op::add || i->op == Op::sub || i->op == Op::offset) {
                auto by = number(f, i->b);
                from = i->a;
                if (!by && i->op == Op::add) {
                    by = number(f, i->a);
                    from = i->b;
                }
                if (!by || __builtin_add_overflow(sum, i->op == Op::sub ? -*by : *by, &sum))
                    return std::nullopt;
            } else {
                return std::nullopt;
            }
        }
        return std::nullopt;
    }

    void look_at_arrays() {
        std::map<std::size_t, std::vector<Access>> arrays;
        const auto add = [&](std::size_t f, std::int32_t address, std::int64_t reference,
                             std::int32_t length) {
            arrays[pointers_.root(f, address)].push_back(
                {f, address, &target_.functions[f].references[static_cast<std::size_t>(reference)],
                 length});
        };
        for (std::size_t f = 0; f < target_.functions.size(); ++f)
            for (const Block& b : target_.functions[f].blocks)
                for (const Instruction& i : b.code) {
                    if ((i.op == Op::load || i.op == Op::store) && i.b < 0) add(f, i.a, i.imm, -1);
                    if (i.op == Op::fill) add(f, i.a, i.imm, i.b);
                    if (i.op == Op::move) {
                        add(f, i.b, i.imm, i.c);
                        add(f, i.a, i.imm + 1, i.c);
                    }
                }
        for (const auto& [root, accesses] : arrays)
            if (pointers_.mixed(root) || !look_at_array(root, accesses)) mix(root, accesses);
    }

    // All digits of an array are one, with every size that its strides and places have in them.
    void mix(std::size_t root, const std::vector<Access>& accesses) {
        const auto all = values_.fresh();
        // Pointers among them, which may go round loops.
        for (std::size_t f = 0; f < target_.functions.size(); ++f)
            for (std::int32_t r = 0; r < target_.functions[f].registers; ++r)
                if (pointers_.root(f, r) == root) values_.join(node(f, r), all);
        std::set<Place> offsets;
        for (const Access& a : accesses) {
            const auto& own = pointers_.offsets(a.function, a.address);
            offsets.insert(own.begin(), own.end());
            if (a.length >= 0 && !literal(a.function, a.length))
                values_.join(node(a.function, a.length), all);
        }
        for (const auto& at : offsets) {
            const auto b = instruction(target_, at).b;
            if (!literal(at.function, b)) values_.join(node(at.function, b), all);
            join_axes(all, [&](const Program& p) { return instruction(p, at).imm; });
        }
        for (const auto& [f, k] : constants_in(root))
            join_axes(all, [&](const Program& p) { return p.functions[f].constants[k].value; });
    }

    // What a number has in it meets.
    template <class F>
    void join_axes(std::size_t at, F&& number_in) {
        for (std::size_t a = 0; a < axes_.size(); ++a)
            if (number_in(programs_.marked[a]) != number_in(target_)) values_.join(at, axes_[a]);
    }

    // Addresses of an array that are constants: by function, their number.
    std::vector<std::pair<std::size_t, std::size_t>> constants_in(std::size_t root) {
        std::vector<std::pair<std::size_t, std::size_t>> all;
        for (std::size_t f = 0; f < target_.functions.size(); ++f) {
            const auto& constants = target_.functions[f].constants;
            for (std::size_t k = 0; k < constants.size(); ++k)
                if (constants[k].global >= 0 && pointers_.root(f, constants[k].reg) == root)
                    all.emplace_back(f, k);
        }
        return all;
    }

    // Joins each digit with the indices in it; false where digits are not shown to be apart.
    bool look_at_array(std::size_t root, const std::vector<Access>& accesses) {
        std::map<std::int64_t, Place> by_stride;  // of indices that vary
        std::set<std::int64_t> extents;
        for (const Access& a : accesses) {
            for (const auto& at : pointers_.offsets(a.function, a.address))
                if (const auto& i = instruction(target_, at);
                    i.imm != 0 && !constants_[at.function].contains(i.b))
                    by_stride.emplace(std::abs(i.imm), at);
            for (const auto& [reg, extent] : a.reference->extents)
                extents.insert(static_cast<std::int64_t>(extent));
        }
        // Each stride is a row of the one before; others, as of a diagonal, are made of these.
        std::vector<Place> rows;
        std::vector<std::int64_t> strides;
        for (const auto& [stride, at] : by_stride)
            if (strides.empty() ||
                (stride % strides.back() == 0 && extents.contains(stride / strides.back()))) {
                strides.push_back(stride);
                rows.push_back(at);
            }
        for (const Program& p : programs_.marked)
            for (std::size_t k = 0; k < rows.size(); ++k)
                if (strides[k] < block_ && std::abs(instruction(p, rows[k]).imm) != strides[k])
                    return false;  // so short, and not always the same
        std::vector<const Program*> all{&target_};
        for (const Program& p : programs_.samples) all.push_back(&p);
        std::vector<std::vector<std::int64_t>> strides_of;
        for (const Program* p : all) {
            auto& own = strides_of.emplace_back();
            for (const auto& at : rows) own.push_back(std::abs(instruction(*p, at).imm));
            for (std::size_t k = 0; k < own.size(); ++k) {
                if (k > 0 && (own[k] < own[k - 1] || own[k] % own[k - 1] != 0)) return false;
                if ((own[k] >= block_) != (strides[k] >= block_)) return false;
                if (own[k] >= block_ && own[k] % block_ != 0) return false;
            }
        }
        // A row of less than a block is in one with others.
        std::vector<std::size_t> digit;
        for (const auto stride : strides) {
            digit.push_back(values_.fresh());
            if (digit.size() > 1 && strides[digit.size() - 2] < block_ && stride < block_)
                values_.join(digit[digit.size() - 2], digit.back());
        }
        // The same digits at every size, or none.
        const auto same_digits = [&](auto&& bytes_in) -> std::optional<std::vector<std::int64_t>> {
            const auto here = digits(bytes_in(target_), strides);
            for (std::size_t p = 0; here && p < all.size(); ++p)
                if (digits(bytes_in(*all[p]), strides_of[p]) != here) return std::nullopt;
            return here;
        };
        const auto place = [&](auto&& bytes_in) {  // at a constant
            bool sized = false;
            for (std::size_t a = 0; a < axes_.size(); ++a)
                sized |= bytes_in(programs_.marked[a]) != bytes_in(target_);
            if (!sized || same_digits(bytes_in)) return;
            for (const auto d : digit) join_axes(d, bytes_in);
        };
        for (const auto& [f, k] : constants_in(root))
            place([&](const Program& p) { return p.functions[f].constants[k].value; });
        for (const Access& a : accesses) {
            for (const auto& at : pointers_.offsets(a.function, a.address)) {
                const auto b = instruction(target_, at).b;
                if (const auto c = constants_[at.function].find(b);
                    c != constants_[at.function].end()) {
                    place([&](const Program& p) {
                        return instruction(p, at).imm *
                               p.functions[at.function].constants[c->second].value;
                    });
                    continue;
                }
                const auto parts =
                    same_digits([&](const Program& p) { return instruction(p, at).imm; });
                if (!parts) return false;
                for (std::size_t k = 0; k < parts->size(); ++k) {
                    const auto times = (*parts)[k];
                    if (times == 0) continue;
                    if (std::abs(times) >= kLargeNumber) return false;
                    if (k + 1 < strides.size() && !within(*a.reference, b, strides[k + 1] / strides[k]))
                        return false;
                    values_.join(node(at.function, b), digit[k]);
                    period_of(at.function, b, times);
                }
            }
            if (a.length >= 0 && !covers(a, all, strides_of, digit)) return false;
        }
        return true;
    }

    static bool within(const Reference& r, std::int32_t reg, std::int64_t extent) {
        return std::any_of(r.extents.begin(), r.extents.end(), [&](const auto& e) {
            return e.first == reg && static_cast<std::int64_t>(e.second) <= extent;
        });
    }

    // A range that is filled or copied at once lies within a row.
    bool covers(const Access& a, const std::vector<const Program*>& all,
                const std::vector<std::vector<std::int64_t>>& strides_of,
                const std::vector<std::size_t>& digit) {
        if (digit.empty()) return false;
        const auto c = constants_[a.function].find(a.length);
        if (digit.size() > 1 && c == constants_[a.function].end()) return false;
        for (std::size_t p = 0; p < all.size() && strides_of[p].size() > 1; ++p)
            if (all[p]->functions[a.function].constants[c->second].value > strides_of[p][1])
                return false;
        if (!literal(a.function, a.length)) values_.join(node(a.function, a.length), digit.front());
        return true;
    }

    const SizedPrograms& programs_;
    const Program& target_;
    Pointers pointers_;
    const std::vector<Axis>& names_;
    std::int64_t block_;
    Sets values_;  // registers, results, axes, digits of arrays
    std::size_t anything_ = 0;
    bool unknown_ = false, writes_ = false;
    std::vector<std::size_t> axes_, first_, results_;
    std::vector<std::map<std::int32_t, std::int64_t>> literals_;  // by function and register
    std::vector<std::map<std::int32_t, std::size_t>> constants_;  // which, of a register
    std::vector<std::map<std::int32_t, const Instruction*>> definitions_;
    std::vector<std::pair<std::size_t, std::int64_t>> periods_;  // of nodes; 0 = any
};

}  // namespace

std::vector<std::int64_t> periods_by_axis(const SizedPrograms& programs, const std::vector<Axis>& axes,
                                          std::uint64_t granularity, std::int64_t modulus) {
    Components components(programs, axes, granularity);
    components.run();
    std::vector<std::int64_t> periods;
    for (std::size_t a = 0; a < axes.size(); ++a) {
        auto period = components.period(a, modulus);
        if (const auto d = programs.denominators[a]; d == 0)
            period = modulus;
        else if (modulus % d == 0)
            period = std::lcm(period, d);
        periods.push_back(period);
    }
    return periods;
}

}  // namespace revisit::predict
