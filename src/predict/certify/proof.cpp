// Whether formulas that fit the samples must hold beyond them.
//
// Problem. Fits that agree with every sample prove nothing about a size that was not run: a counter
// that wraps every 280 iterations, an index cut to a byte, a table that no sample reads to its end.
//
// Idea. Read the slice instead. If every branch condition and every address is built from loop counters
// and sizes by sums, products with constants, quotients and remainders by constants, comparisons and
// selections, then it is a function that Presburger arithmetic can define, and so is the relation "this
// access reuses what that one touched". Counting the points of such relations gives quasi-polynomials
// in the sizes, piece by piece (Ehrhart, Barvinok), of a degree no higher than loops are nested: a few
// points per piece determine them, and the samples have more. What breaks the argument is named:
//   - state that goes round a loop other than by a constant step (a conditional counter, a
//     recurrence, a permutation),
//   - values that come from memory the program writes, or from tables,
//   - products of two counters, remainders by a size, shifts by a counter, combined bits,
//   - a product of a size and a counter, unless it is a declared row,
//   - calls in calls, pointers that are compared, memory allocated in a loop.
//
// Example. for (i < n) for (j < i) A[i - j] += B[j % 4]: i and j step by one, i - j and j % 4 are in
// the class, with the period 4. With r = (r + 3) % n instead of j the phi of r is no constant step: the
// value of r is not in the class, and the store it addresses is named.
//
// Method. Abstract execution of the blocks in reverse post-order, loop by loop: the values that change
// in a loop become symbols at its header; one pass finds what arrives at the back edges; what is its
// own symbol plus something that depends on sizes alone is a counter, what is unchanged stays what it
// was, and everything else is outside the class. A second pass checks the uses. Widths do not appear
// here: that nothing wraps or is cut at the target is shown by the extremes (extremes.cpp) of the same
// program over the integers, which are in the class themselves.
//
// Cost. Two passes per level of nesting: microseconds to a few milliseconds.
#include "predict/certify/proof.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "predict/certify/algebra.h"
#include "predict/fit/fixed_numbers.h"

namespace revisit::predict {
namespace {

using State = std::vector<Value>;

constexpr int kMostDepth = 40;
constexpr std::size_t kMostWork = 2'000'000;  // blocks and instructions

class Prover {
 public:
    Prover(const Program& program, const Program& other, std::int64_t modulus)
        : program_(program), algebra_(std::max<std::int64_t>(1, modulus)) {
        for (std::size_t f = 0; f < program.functions.size(); ++f) {
            const auto& constants = program.functions[f].constants;
            auto& known = literals_.emplace_back();
            for (std::size_t k = 0; k < constants.size(); ++k) {
                const Constant& c = constants[k];
                const bool same = f < other.functions.size() &&
                                  k < other.functions[f].constants.size() &&
                                  other.functions[f].constants[k].value == c.value;
                if (c.global < 0 && c.known && same) known[c.reg] = c.value;
            }
            for (const Block& b : program.functions[f].blocks)
                for (const Instruction& i : b.code)
                    writes_ |= (i.op == Op::store && i.b < 0 && i.c >= 0) ||
                               ((i.op == Op::fill || i.op == Op::move) && program.memory_needed);
        }
        if (program.addresses_compared) lack(0, "pointers are compared, or taken as numbers");
    }

    std::vector<Doubt> run() {
        checking_ = true;
        call(0, State(static_cast<std::size_t>(program_.functions.front().registers)));
        return {lacks_.begin(), lacks_.end()};
    }

 private:
    struct Shape {
        std::vector<std::int32_t> order;            // blocks in reverse post-order
        std::vector<std::vector<std::int32_t>> in;  // loops that a block is in, outermost first
        bool reducible = true;
    };

    void lack(std::uint32_t line, const std::string& what) {
        lacks_.emplace(Doubt::Kind::unproven, line, what);
    }

    // A condition or an address is here.
    void use(const Value& v, std::uint32_t line, const char* as) {
        if (!checking_) return;
        if (v.cls == Class::outside) {
            const Doubt& why = algebra_.reason(v);
            lacks_.emplace(why.kind, why.line ? why.line : line, why.text);
        } else if (v.cls == Class::product) {
            lack(line, std::string(as) +
                           " has a product of a size and a counter: whether rows overlap is not shown");
        }
    }

    const Shape& shape(std::uint32_t f) {
        if (const auto at = shapes_.find(f); at != shapes_.end()) return at->second;
        const Function& fn = program_.functions[f];
        Shape s;
        s.in.resize(fn.blocks.size());
        for (std::size_t b = 0; b < fn.blocks.size(); ++b) {
            for (auto l = fn.blocks[b].loop; l >= 0; l = fn.loops[static_cast<std::size_t>(l)].parent)
                s.in[b].push_back(l);
            std::reverse(s.in[b].begin(), s.in[b].end());
        }
        std::vector<std::uint8_t> seen(fn.blocks.size(), 0);
        std::vector<std::pair<std::int32_t, std::size_t>> stack{{0, 0}};
        seen[0] = 1;
        while (!stack.empty()) {
            auto& [b, next] = stack.back();
            const auto& edges = fn.blocks[static_cast<std::size_t>(b)].edges;
            if (next == edges.size()) {
                s.order.push_back(b);
                seen[static_cast<std::size_t>(b)] = 2;
                stack.pop_back();
                continue;
            }
            const auto to = edges[next++].block;
            auto& mark = seen[static_cast<std::size_t>(to)];
            if (mark == 1 && !is_back_edge(fn, s, b, to)) s.reducible = false;
            if (mark == 0) {
                mark = 1;
                stack.push_back({to, 0});
            }
        }
        std::reverse(s.order.begin(), s.order.end());
        return shapes_[f] = std::move(s);
    }

    static bool is_back_edge(const Function& fn, const Shape& s, std::int32_t from, std::int32_t to) {
        const auto& loops = s.in[static_cast<std::size_t>(from)];
        return std::any_of(loops.begin(), loops.end(), [&](std::int32_t l) {
            return fn.loops[static_cast<std::size_t>(l)].header == to;
        });
    }

    Value call(std::uint32_t f, State state) {
        const Function& fn = program_.functions[f];
        if (std::find(active_.begin(), active_.end(), f) != active_.end()) {
            lack(0, "recursion in " + fn.name);
            return algebra_.outside(0, "recursion in " + fn.name);
        }
        if (active_.size() > kMostDepth || work_ > kMostWork) {
            lack(0, "too much code to go through");
            return algebra_.outside(0, "too much code to go through");
        }
        active_.push_back(f);
        for (Value& v : state)
            if (v.id == 0) v.id = algebra_.name();
        for (const Constant& c : fn.constants) {
            Value v = algebra_.fresh(Class::size);
            if (const auto at = literals_[f].find(c.reg); at != literals_[f].end())
                v.number = at->second;
            if (!c.known) v = algebra_.outside(0, "a constant that is not known");
            state[static_cast<std::size_t>(c.reg)] = v;
        }
        const Shape& s = shape(f);
        std::optional<Value> result;
        if (!s.reducible) {
            lack(0, fn.name + " jumps into a loop");
        } else {
            std::map<std::int32_t, State> arrived;
            arrived[0] = std::move(state);
            region(f, -1, 0, arrived, result);
        }
        active_.pop_back();
        return result ? *result : algebra_.fresh(Class::size);
    }

    void arrive(std::map<std::int32_t, State>& arrived, std::int32_t to, State&& state) {
        const auto [at, is_new] = arrived.try_emplace(to, State{});
        if (is_new)
            at->second = std::move(state);
        else
            for (std::size_t r = 0; r < state.size(); ++r)
                at->second[r] = algebra_.join(at->second[r], state[r]);
    }

    void merge(std::optional<State>& into, State&& state) {
        if (!into) {
            into = std::move(state);
            return;
        }
        for (std::size_t r = 0; r < state.size(); ++r) (*into)[r] = algebra_.join((*into)[r], state[r]);
    }

    static State moved(const State& state, const Edge& e) {
        State out = state;
        for (const Move& m : e.moves)
            out[static_cast<std::size_t>(m.to)] = state[static_cast<std::size_t>(m.from)];
        return out;
    }

    // The blocks of a loop (-1: of the function), inner loops as a whole. `arrived` has the state at
    // the first block and afterwards what leaves. Returns what arrives at the loop's own header again.
    std::optional<State> region(std::uint32_t f, std::int32_t loop, std::size_t depth,
                                std::map<std::int32_t, State>& arrived, std::optional<Value>& result) {
        const Function& fn = program_.functions[f];
        const Shape& s = shape(f);
        const auto header = loop < 0 ? -1 : fn.loops[static_cast<std::size_t>(loop)].header;
        const auto inside = [&](std::int32_t b) {
            const auto& in = s.in[static_cast<std::size_t>(b)];
            return loop < 0 || std::find(in.begin(), in.end(), loop) != in.end();
        };
        std::optional<State> again;
        std::map<std::int32_t, State> leaving;
        for (const auto b : s.order) {
            if (!inside(b)) continue;
            const auto at = arrived.find(b);
            if (at == arrived.end()) continue;
            const auto& in = s.in[static_cast<std::size_t>(b)];
            State state = std::move(at->second);
            arrived.erase(at);
            // The loop around `b` that is directly in this region.
            const auto inner = in.size() > depth ? in[depth] : -1;
            if (inner >= 0) {
                if (fn.loops[static_cast<std::size_t>(inner)].header == b) {
                    for (auto& [to, left] : whole_loop(f, inner, depth + 1, state, result)) {
                        if (to == header)
                            merge(again, std::move(left));
                        else
                            arrive(inside(to) ? arrived : leaving, to, std::move(left));
                    }
                } else {
                    lack(0, fn.name + " jumps into a loop");
                }
                continue;
            }
            const Block& block = fn.blocks[static_cast<std::size_t>(b)];
            for (const Instruction& i : block.code) step(f, i, state, depth);
            work_ += block.code.size() + 1;
            if (block.exit == Exit::branch || block.exit == Exit::choose) {
                const auto& v = state[static_cast<std::size_t>(block.value)];
                use(v, block.line, "a condition");
            } else if (block.exit == Exit::leave && block.value >= 0) {
                Value v = state[static_cast<std::size_t>(block.value)];
                v.symbol = -1;
                result = result ? algebra_.join(*result, v) : v;
            }
            for (const Edge& e : block.edges) {
                State next = moved(state, e);
                if (e.block == header) {
                    merge(again, std::move(next));
                } else {
                    arrive(inside(e.block) ? arrived : leaving, e.block, std::move(next));
                }
            }
        }
        arrived = std::move(leaving);
        return again;
    }

    // From the state at the header to the states where it is left.
    std::map<std::int32_t, State> whole_loop(std::uint32_t f, std::int32_t loop, std::size_t depth,
                                             const State& before, std::optional<Value>& result) {
        const Function& fn = program_.functions[f];
        const Loop& l = fn.loops[static_cast<std::size_t>(loop)];
        // What changes becomes a symbol.
        State assumed = before;
        const auto changing = changed_in(f, loop);
        for (const auto r : changing) {
            Value& v = assumed[static_cast<std::size_t>(r)];
            if (v.cls == Class::outside) continue;
            v = {std::max(v.cls, Class::affine), ++symbols_, algebra_.name(), 0, -1};
        }
        const bool was = std::exchange(checking_, false);
        std::optional<Value> ignored;
        std::map<std::int32_t, State> arrived;
        arrived[l.header] = assumed;
        const auto again = region(f, loop, depth, arrived, ignored);
        State start = before;
        std::vector<std::size_t> counters;
        for (const auto reg : changing) {
            const auto r = static_cast<std::size_t>(reg);
            if (!again || assumed[r].cls == Class::outside) continue;
            const Value& v = (*again)[r];
            if (v.id == assumed[r].id) continue;  // unchanged
            counters.push_back(r);
            if (v.cls == Class::outside)
                start[r] = v;
            else if (v.symbol != assumed[r].symbol)
                start[r] =
                    algebra_.outside(l.line, "what one iteration leaves to the next is no counter");
            else
                start[r] = algebra_.counter(before[r], v, l.line);
        }
        checking_ = was;
        arrived.clear();
        arrived[l.header] = std::move(start);
        (void)region(f, loop, depth, arrived, result);
        // How far a counter has come when the loop ends is a function of what ends it.
        for (auto& [to, state] : arrived)
            for (const auto r : counters)
                if (state[r].cls < Class::piecewise) state[r] = algebra_.fresh(Class::piecewise);
        return arrived;
    }

    // Registers that one iteration may leave to the next: those of the header's phis, and locals kept
    // in registers that the loop assigns.
    std::set<std::int32_t> changed_in(std::uint32_t f, std::int32_t loop) {
        const Function& fn = program_.functions[f];
        const Shape& s = shape(f);
        std::set<std::int32_t> changed;
        for (std::size_t b = 0; b < fn.blocks.size(); ++b) {
            if (std::find(s.in[b].begin(), s.in[b].end(), loop) == s.in[b].end()) continue;
            for (const Instruction& i : fn.blocks[b].code)
                if (i.op == Op::store && i.b >= 0) changed.insert(i.b);
            for (const Edge& e : fn.blocks[b].edges)
                if (e.block == fn.loops[static_cast<std::size_t>(loop)].header)
                    for (const Move& m : e.moves) changed.insert(m.to);
        }
        return changed;
    }

    void step(std::uint32_t f, const Instruction& i, State& state, std::size_t depth) {
        const auto at = [&](std::int32_t r) -> Value& { return state[static_cast<std::size_t>(r)]; };
        const auto set = [&](Value v) {
            if (i.dst >= 0) at(i.dst) = std::move(v);
        };
        switch (i.op) {
            case Op::add:
                return set(algebra_.sum(at(i.a), at(i.b), false));
            case Op::sub:
                return set(algebra_.sum(at(i.a), at(i.b), true));
            case Op::offset: {
                Value v = algebra_.sum(at(i.a), at(i.b), false);
                if (at(i.b).cls == Class::row && i.imm != 1 && v.cls != Class::outside)
                    v.cls = Class::product;
                return set(v);
            }
            case Op::mul:
                if (at(i.a).cls == Class::affine && is_row(f, i.b))
                    return set(algebra_.fresh(Class::row));
                return set(algebra_.product(i, at(i.a), at(i.b)));
            case Op::shl: {
                Value by = at(i.b);
                if (by.cls == Class::size && by.number && by.symbol < 0 && *by.number >= 0 &&
                    *by.number < 40) {
                    by.number = std::int64_t{1} << *by.number;
                    return set(algebra_.product(i, at(i.a), by));
                }
                return set(algebra_.periodic(i, at(i.a), at(i.b), 0));
            }
            case Op::udiv:
            case Op::sdiv:
            case Op::urem:
            case Op::srem:
                return set(algebra_.periodic(i, at(i.a), at(i.b), at(i.b).number.value_or(0)));
            case Op::lshr:
            case Op::ashr: {
                const auto by = at(i.b).number.value_or(-1);
                return set(algebra_.periodic(i, at(i.a), at(i.b),
                                             by >= 0 && by < 31 ? std::int64_t{1} << by : 0));
            }
            case Op::bit_and:
            case Op::bit_or:
            case Op::bit_xor:
                return set(algebra_.bitwise(i, at(i.a), at(i.b)));
            case Op::select:
                return set(at(i.b).id == at(i.c).id
                               ? at(i.b)
                               : algebra_.widest({&at(i.a), &at(i.b), &at(i.c)}, Class::piecewise));
            case Op::abs:
                return set(algebra_.widest({&at(i.a)}, Class::piecewise));
            case Op::trunc:
            case Op::zext:
            case Op::sext:
            case Op::copy:
                return set(at(i.a));
            case Op::load:
            case Op::store:
                return access(f, i, state);
            case Op::reserve:
                use(at(i.a), i.line, "the size of a local array");
                return set(algebra_.fresh(Class::size));
            case Op::allocate:
                use(at(i.a), i.line, "the size of an allocation");
                if (i.b >= 0) use(at(i.b), i.line, "the size of an allocation");
                return set(
                    depth > 0 || active_.size() > 1
                        ? algebra_.outside(i.line, "memory is allocated in a loop or a called function")
                        : algebra_.fresh(Class::size));
            case Op::stack_save:
                return set(algebra_.fresh(Class::size));
            case Op::stack_restore:
                return;
            case Op::fill:
            case Op::move:
                use(at(i.a), i.line, "an address");
                use(at(i.b), i.line, i.op == Op::move ? "an address" : "a length");
                if (i.op == Op::move) use(at(i.c), i.line, "a length");
                return;
            case Op::call: {
                const Call& c = program_.functions[f].calls[static_cast<std::size_t>(i.imm)];
                const Function& callee = program_.functions[static_cast<std::size_t>(c.function)];
                State inner(static_cast<std::size_t>(callee.registers));
                for (std::size_t k = 0; k < c.arguments.size(); ++k)
                    if (c.arguments[k] >= 0) {
                        Value v = at(c.arguments[k]);
                        if (v.symbol >= 0) v = {std::max(v.cls, Class::affine), -1, v.id, {}, v.reason};
                        inner[static_cast<std::size_t>(callee.arguments[k].reg)] = v;
                    }
                const Value result = call(static_cast<std::uint32_t>(c.function), std::move(inner));
                if (c.dst >= 0) at(c.dst) = result;
                return;
            }
            case Op::unknown:
                return set(algebra_.outside(i.line, "a value that only the data knows"));
            default:  // comparisons and clamps
                return set(algebra_.widest({&at(i.a), &at(i.b)}, Class::piecewise));
        }
    }

    void access(std::uint32_t f, const Instruction& i, State& state) {
        const auto at = [&](std::int32_t r) -> Value& { return state[static_cast<std::size_t>(r)]; };
        use(at(i.a), i.line, "an address");
        if (i.op == Op::store) {
            if (i.b >= 0)
                at(i.b) =
                    i.c >= 0 ? at(i.c) : algebra_.outside(i.line, "a value that only the data knows");
            return;
        }
        if (i.dst < 0) return;
        if (i.b >= 0) {
            at(i.dst) = at(i.b);
        } else if (writes_) {
            at(i.dst) = algebra_.outside(i.line, "a value that went through memory decides");
        } else {
            // A pointer kept at one place is to the same array always.
            const auto& r = program_.functions[f].references[static_cast<std::size_t>(i.imm)];
            at(i.dst) = is_scalar(f, i.a) || (r.pointer && at(i.a).cls == Class::size)
                            ? algebra_.fresh(Class::size)
                            : algebra_.outside(i.line, "an entry of a table decides");
        }
    }

    // Whether a register holds the bytes of a row that the function declares and indexes.
    bool is_row(std::uint32_t f, std::int32_t reg) const {
        const Function& fn = program_.functions[f];
        for (const Constant& c : fn.constants)
            if (c.reg == reg && c.global < 0 && c.value >= kLargeNumber)
                for (const Block& b : fn.blocks)
                    for (const Instruction& i : b.code)
                        if (i.op == Op::offset && i.imm == c.value) return true;
        return false;
    }

    // Whether a register holds the address of a global that is one number.
    bool is_scalar(std::uint32_t f, std::int32_t reg) const {
        const auto& constants = program_.functions[f].constants;
        const auto at = std::find_if(constants.begin(), constants.end(),
                                     [&](const Constant& c) { return c.reg == reg; });
        return at != constants.end() && at->global >= 0 && at->value == 0 &&
               program_.globals[static_cast<std::size_t>(at->global)].size <= 8;
    }

    const Program& program_;
    Algebra algebra_;
    std::vector<std::map<std::int32_t, std::int64_t>> literals_;  // by function and register
    bool writes_ = false;  // the program stores values that it may need again
    bool checking_ = false;
    std::map<std::uint32_t, Shape> shapes_;
    std::vector<std::uint32_t> active_;
    std::set<Doubt> lacks_;
    std::int32_t symbols_ = 0;
    std::size_t work_ = 0;
};

}  // namespace

std::vector<Doubt> unproven(const Program& target, const Program& other, std::int64_t modulus) {
    return Prover(target, other, modulus).run();
}

}  // namespace revisit::predict
