// Loops whose iterations all do the same, by the text of the program.
//
// Problem. repeat.cpp walks the control flow of a whole run to see that it repeats. In space of three
// dimensions that is millions of inner loops, most of the time spent. But that time steps do the same
// can be read: nothing but the number of the step goes from one to the next, and only the exit asks for
// it. Idea. A register varies if an edge back to the header sets it, or it is calculated from one that
// varies. If no address, no length, no inner branch takes a register that varies, and nothing is read
// from memory, then iteration t + 1 starts with what iteration t started with, as far as it matters,
// and does the same. How many iterations there are is counted by calculating the exit condition alone.
// Limits. One exit, at the header or at the only way back; no calls, no memory reserved in the loop; no
// access after it, which would have to be reached. What is not shown is nothing, never a guess.
// Cost. Microseconds, and some nanoseconds an iteration.
#include "predict/run/time_steps.h"

#include <algorithm>
#include <map>
#include <vector>

#include "predict/run/arithmetic.h"

namespace revisit::predict {
namespace {

bool accesses_memory(Op op) {
    return op >= Op::load && op <= Op::call;
}

class LoopText {
 public:
    LoopText(const Function& f, const Parameters& parameters, std::int32_t loop)
        : f_(f),
          loop_(loop),
          header_(f.loops[static_cast<std::size_t>(loop)].header),
          varies_(static_cast<std::size_t>(f.registers)),
          values_(varies_.size()),
          known_(varies_.size()) {
        for (const Constant& c : f.constants)
            if (c.global < 0 && c.known) set(c.reg, c.value);
        for (const Argument& a : f.arguments)
            if (const auto at = parameters.find(a.name);
                a.reg >= 0 && a.kind == Kind::integer && at != parameters.end())
                set(a.reg, sign_extend(at->second, a.width));
    }

    // How many iterations, all the same; nothing where that is not shown.
    std::optional<std::int64_t> iterations(std::int64_t most) {
        if (!find_edges() || !find_varying() || !same_body() || !nothing_after()) return std::nullopt;
        return count(most);
    }

 private:
    struct At {
        std::size_t block;
        const Edge* edge;
    };

    void set(std::int32_t reg, std::int64_t value) {
        values_[static_cast<std::size_t>(reg)] = value;
        known_[static_cast<std::size_t>(reg)] = 1;
    }
    bool varies(std::int32_t reg) const { return reg >= 0 && varies_[static_cast<std::size_t>(reg)]; }
    bool inside(std::int32_t block) const {
        auto l = f_.blocks[static_cast<std::size_t>(block)].loop;
        while (l >= 0 && l != loop_) l = f_.loops[static_cast<std::size_t>(l)].parent;
        return l == loop_;
    }

    // One way in, one way back, one way out.
    bool find_edges() {
        for (std::size_t b = 0; b < f_.blocks.size(); ++b) {
            const bool in = inside(static_cast<std::int32_t>(b));
            for (const Edge& e : f_.blocks[b].edges) {
                const bool to = inside(e.block);
                if (!in && to && (e.block != header_ || entry_.edge)) return false;
                if (in && !to && exit_.edge) return false;
                if (in && e.block == header_ && back_.edge) return false;
                if (!in && to) entry_ = {b, &e};
                if (in && !to) exit_ = {b, &e};
                if (in && e.block == header_) back_ = {b, &e};
            }
        }
        if (!entry_.edge || !exit_.edge || !back_.edge) return false;
        const Block& out = f_.blocks[exit_.block];
        const bool first = exit_.block == static_cast<std::size_t>(header_);
        // An arrival at the header that finds the loop over must do nothing else.
        if (first && exit_.block != back_.block &&
            std::any_of(out.code.begin(), out.code.end(),
                        [](const Instruction& i) { return accesses_memory(i.op); }))
            return false;
        return out.exit == Exit::branch && out.loop == loop_ && (first || exit_.block == back_.block);
    }

    // Marks what differs from iteration to iteration, or may.
    bool find_varying() {
        for (const Move& m : back_.edge->moves)
            if (m.from != m.to) varies_[static_cast<std::size_t>(m.to)] = true;
        for (bool more = true; more;) {
            more = false;
            const auto mark = [&](std::int32_t reg) {
                if (reg < 0 || varies(reg)) return;
                varies_[static_cast<std::size_t>(reg)] = more = true;
            };
            for (std::size_t b = 0; b < f_.blocks.size(); ++b) {
                if (!inside(static_cast<std::int32_t>(b))) continue;
                for (const Instruction& i : f_.blocks[b].code) {
                    // What was read or is not known may differ; locals in registers are not followed.
                    if ((i.op == Op::load || i.op == Op::store) && i.b >= 0) return false;
                    if (i.op == Op::load || i.op == Op::unknown)
                        mark(i.dst);
                    else if (varies(i.a) || varies(i.b) || varies(i.c))
                        mark(i.dst);
                }
                for (const Edge& e : f_.blocks[b].edges)
                    for (const Move& m : e.moves)
                        if (varies(m.from)) mark(m.to);
            }
        }
        return true;
    }

    // Whether nothing that varies decides where memory is touched, or how long, or what comes next.
    bool same_body() const {
        for (std::size_t b = 0; b < f_.blocks.size(); ++b) {
            if (!inside(static_cast<std::int32_t>(b))) continue;
            const Block& block = f_.blocks[b];
            for (const Instruction& i : block.code) {
                if (i.op == Op::load || i.op == Op::store) {
                    if (varies(i.a)) return false;
                } else if (i.op == Op::fill || i.op == Op::move) {
                    if (varies(i.a) || varies(i.b) || (i.op == Op::move && varies(i.c))) return false;
                } else if (accesses_memory(i.op)) {
                    return false;  // reserved, allocated, called
                } else if (is_division(i.op) && (varies(i.a) || varies(i.b))) {
                    return false;  // might be by zero
                }
            }
            if (block.exit == Exit::leave || block.exit == Exit::trap) return false;
            if (block.exit != Exit::jump && varies(block.value) && b != exit_.block) return false;
        }
        return true;
    }

    // Whether the function ends without another access once the loop is left.
    bool nothing_after() const {
        std::vector<std::int32_t> todo{exit_.edge->block};
        std::vector<bool> seen(f_.blocks.size());
        while (!todo.empty()) {
            const auto b = static_cast<std::size_t>(todo.back());
            todo.pop_back();
            if (seen[b]) continue;
            seen[b] = true;
            const Block& block = f_.blocks[b];
            if (block.loop >= 0 || block.exit == Exit::trap ||
                std::any_of(block.code.begin(), block.code.end(),
                            [](const Instruction& i) { return accesses_memory(i.op); }))
                return false;
            for (const Edge& e : block.edges) todo.push_back(e.block);
        }
        return true;
    }

    // What a register holds in this iteration, where a plain calculation from the header's registers
    // and from numbers gives it.
    bool calculated(std::int32_t reg, int depth = 0) {
        const auto r = static_cast<std::size_t>(reg);
        if (known_[r]) return true;
        if (depth > 16) return false;
        const Instruction* from = nullptr;
        for (const Block& b : f_.blocks) {
            for (const Instruction& i : b.code)
                if (i.dst == reg) {
                    if (from || (b.loop >= 0 && b.loop != loop_)) return false;
                    from = &i;
                }
            for (const Edge& e : b.edges)
                for (const Move& m : e.moves)
                    if (m.to == reg) return false;
        }
        if (!from || accesses_memory(from->op) || from->op == Op::unknown) return false;
        for (const auto operand : {from->a, from->b, from->c})
            if (operand >= 0 && !calculated(operand, depth + 1)) return false;
        return calculate(*from, values_, known_) && known_[r];
    }

    std::optional<std::int64_t> count(std::int64_t most) {
        for (const Move& m : entry_.edge->moves) {
            if (!known_[static_cast<std::size_t>(m.from)]) continue;
            if (varies(m.from)) return std::nullopt;
            set(m.to, values_[static_cast<std::size_t>(m.from)]);
        }
        const auto numbers = known_;  // and the header's registers
        const Block& out = f_.blocks[exit_.block];
        const bool on_true = &out.edges[0] == exit_.edge;
        const bool first = exit_.block != back_.block;
        for (std::int64_t n = 0; n < most; ++n) {
            if (!calculated(out.value)) return std::nullopt;
            const bool over = ((values_[static_cast<std::size_t>(out.value)] & 1) != 0) == on_true;
            if (over) return first ? n : n + 1;
            std::vector<std::pair<std::int32_t, std::int64_t>> next;
            for (const Move& m : back_.edge->moves)
                if (numbers[static_cast<std::size_t>(m.to)]) {
                    if (!calculated(m.from)) return std::nullopt;
                    next.emplace_back(m.to, values_[static_cast<std::size_t>(m.from)]);
                }
            known_ = numbers;
            for (const auto& [reg, value] : next) set(reg, value);
        }
        return std::nullopt;
    }

    const Function& f_;
    const std::int32_t loop_, header_;
    At entry_{0, nullptr}, back_{0, nullptr}, exit_{0, nullptr};
    std::vector<bool> varies_;
    std::vector<std::int64_t> values_;
    std::vector<std::uint8_t> known_;
};

}  // namespace

std::optional<TimeSteps> time_steps(const Program& program, const Parameters& parameters,
                                    std::int64_t most) {
    if (program.memory_needed) return std::nullopt;
    for (const Function& caller : program.functions)
        for (const Call& c : caller.calls)
            if (c.function == 0) return std::nullopt;  // its loops are entered several times
    const Function& f = program.functions.front();
    for (std::size_t l = 0; l < f.loops.size(); ++l) {
        if (f.loops[l].parent >= 0) continue;
        const auto loop = static_cast<std::int32_t>(l);
        if (const auto n = LoopText(f, parameters, loop).iterations(most)) return TimeSteps{loop, *n};
    }
    return std::nullopt;
}

}  // namespace revisit::predict
