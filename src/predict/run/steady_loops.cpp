// Loops whose iterations all do the same, moved on, by the text of the program.
//
// Problem. repeat.cpp walks the control flow of a whole run to see that it repeats. That is millions of
// inner loops, most of the time spent. But that time steps do the same, and rows of a product the same
// a row further, can be read: nothing but counters goes from one iteration to the next, and only the
// exit asks for them. Idea. Each register of the loop is fixed, moves by a constant per iteration, or
// varies. What the edge back to the header adds a number to moves; a sum of what moves does too. If no
// address, no length, no inner branch takes a register that varies, and no length or branch one that
// moves, then iteration t + 1 does what iteration t did with every address moved by its constant.
// Example. for (i) for (j) C[i][j] += B[j]: i moves by 1, the address of C[i][j] by a row, j and the
// address of B[j] are fixed.
// How many iterations there are is counted by calculating the exit condition alone.
// Limits. One exit, at the header or at the only way back; no calls, no memory reserved in the loop;
// what moves is calculated in 64 bits, where sums hold whatever wraps. What is not shown is nothing,
// never a guess. Cost. Microseconds, and some nanoseconds an iteration.
#include "predict/run/steady_loops.h"

#include <algorithm>
#include <map>
#include <optional>
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
          course_(static_cast<std::size_t>(f.registers)),
          values_(course_.size()),
          known_(course_.size()) {
        for (const Constant& c : f.constants)
            if (c.global < 0 && c.known) set(c.reg, c.value);
        for (const Argument& a : f.arguments)
            if (const auto at = parameters.find(a.name);
                a.reg >= 0 && a.kind == Kind::integer && at != parameters.end())
                set(a.reg, sign_extend(at->second, a.width));
    }

    // Nothing where it is not shown.
    std::optional<SteadyLoop> steady(std::int64_t most) {
        if (!find_edges() || !find_steps() || !follow_values() || !same_body()) return std::nullopt;
        const auto iterations = count(most);
        if (!iterations) return std::nullopt;
        return SteadyLoop{loop_, *iterations, std::move(advances_)};
    }

 private:
    struct At {
        std::size_t block;
        const Edge* edge;
    };
    // How a register's value in an iteration differs from that at the same point of the one before.
    struct Course {
        enum class Kind : std::uint8_t { open, moves, varies } kind = Kind::open;  // open: not met yet
        std::int64_t by = 0;
        bool operator==(const Course&) const = default;
    };
    static constexpr Course kFixed{Course::Kind::moves, 0}, kVaries{Course::Kind::varies, 0};

    void set(std::int32_t reg, std::int64_t value) {
        values_[static_cast<std::size_t>(reg)] = value;
        known_[static_cast<std::size_t>(reg)] = 1;
    }
    const Course& course(std::int32_t reg) const { return course_[static_cast<std::size_t>(reg)]; }
    bool fixed(std::int32_t reg) const { return reg < 0 || course(reg) == kFixed; }
    bool moves(std::int32_t reg) const { return reg < 0 || course(reg).kind == Course::Kind::moves; }
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

    // What the way back adds to the registers of the header. All of them have to be known where
    // iterations are left out, those that only the exit asks for too.
    bool find_steps() {
        for (const Move& m : back_.edge->moves) {
            if (m.from == m.to) continue;
            const Instruction* sum = nullptr;
            for (const Block& b : f_.blocks)
                for (const Instruction& i : b.code)
                    if (i.dst == m.from) {
                        if (sum) return false;
                        sum = &i;
                    }
            if (!sum) return false;
            const bool first = sum->a == m.to, second = sum->op == Op::add && sum->b == m.to;
            const auto number = first ? sum->b : sum->a;
            if (first == second || number < 0 || !known_[static_cast<std::size_t>(number)])
                return false;
            const auto value = values_[static_cast<std::size_t>(number)];
            std::int64_t step = 0;
            if (sum->op == Op::add)
                step = value;
            else if (sum->op == Op::sub)
                step = signed_of(0 - bits(value));
            else if (sum->op == Op::offset)
                step = signed_of(bits(value) * bits(sum->imm));
            else
                return false;
            const std::uint8_t width = sum->op == Op::offset ? 64 : sum->width;
            advances_.push_back({m.to, step, width});
            header_course_[m.to] = width == 64 ? Course{Course::Kind::moves, step} : kVaries;
        }
        return true;
    }

    // What an instruction makes of the courses of its operands.
    Course result(const Instruction& i) const {
        if (i.op == Op::load || i.op == Op::unknown) return kVaries;  // what the data knows
        bool all_fixed = true;
        for (const auto operand : {i.a, i.b, i.c}) {
            if (operand < 0) continue;
            if (course(operand).kind != Course::Kind::moves) return course(operand);
            all_fixed &= fixed(operand);
        }
        if (all_fixed) return kFixed;
        const auto by = [&](std::int32_t reg) { return bits(course(reg).by); };
        const auto moves_by = [](std::uint64_t step) {
            return Course{Course::Kind::moves, signed_of(step)};
        };
        const auto number = [&](std::int32_t reg) {
            return fixed(reg) && known_[static_cast<std::size_t>(reg)];
        };
        const auto value = [&](std::int32_t reg) {
            return bits(values_[static_cast<std::size_t>(reg)]);
        };
        if (i.op == Op::offset) return moves_by(by(i.a) + by(i.b) * bits(i.imm));
        if (i.op == Op::copy) return course(i.a);
        // Both moved alike, they are equal as often as before.
        if (i.op == Op::eq || i.op == Op::ne) return by(i.a) == by(i.b) ? kFixed : kVaries;
        if (i.op == Op::select) return fixed(i.a) && course(i.b) == course(i.c) ? course(i.b) : kVaries;
        if (i.width != 64) return kVaries;
        if (i.op == Op::add) return moves_by(by(i.a) + by(i.b));
        if (i.op == Op::sub) return moves_by(by(i.a) - by(i.b));
        if (i.op == Op::bit_xor && number(i.b) && value(i.b) == ~std::uint64_t{0})
            return moves_by(0 - by(i.a));  // ~a is -1 - a
        if (i.op == Op::mul && number(i.b)) return moves_by(by(i.a) * value(i.b));
        if (i.op == Op::mul && number(i.a)) return moves_by(by(i.b) * value(i.a));
        if (i.op == Op::shl && number(i.b)) return moves_by(by(i.a) << (value(i.b) & 63));
        return kVaries;
    }

    // Follows values from the header through the body until nothing changes. By induction over what an
    // iteration executes: the same point of the next has each value moved by its course.
    bool follow_values() {
        std::vector<bool> set_inside(course_.size());
        for (std::size_t b = 0; b < f_.blocks.size(); ++b) {
            if (!inside(static_cast<std::int32_t>(b))) continue;
            for (const Instruction& i : f_.blocks[b].code) {
                // Locals in registers are not followed.
                if ((i.op == Op::load || i.op == Op::store) && i.b >= 0) return false;
                if (i.dst >= 0) set_inside[static_cast<std::size_t>(i.dst)] = true;
            }
            for (const Edge& e : f_.blocks[b].edges)
                for (const Move& m : e.moves) set_inside[static_cast<std::size_t>(m.to)] = true;
        }
        for (std::size_t r = 0; r < course_.size(); ++r)
            if (!set_inside[r]) course_[r] = kFixed;
        for (const Move& m : back_.edge->moves) {
            const auto moved = header_course_.find(m.to);
            course_[static_cast<std::size_t>(m.to)] =
                moved == header_course_.end() ? kFixed : moved->second;
        }
        const auto join = [&](std::int32_t reg, const Course& with) {
            Course& c = course_[static_cast<std::size_t>(reg)];
            if (with.kind == Course::Kind::open || c == with || c == kVaries) return false;
            c = c.kind == Course::Kind::open ? with : kVaries;
            return true;
        };
        for (bool more = true; more;) {
            more = false;
            for (std::size_t b = 0; b < f_.blocks.size(); ++b) {
                if (!inside(static_cast<std::int32_t>(b))) continue;
                for (const Instruction& i : f_.blocks[b].code)
                    if (i.dst >= 0) more |= join(i.dst, result(i));
                for (const Edge& e : f_.blocks[b].edges)
                    if (&e != back_.edge)
                        for (const Move& m : e.moves) more |= join(m.to, course(m.from));
            }
        }
        return true;
    }

    // Whether nothing that varies decides where memory is touched, and nothing that moves how long or
    // what comes next.
    bool same_body() const {
        for (std::size_t b = 0; b < f_.blocks.size(); ++b) {
            if (!inside(static_cast<std::int32_t>(b))) continue;
            const Block& block = f_.blocks[b];
            for (const Instruction& i : block.code) {
                if (i.op == Op::load || i.op == Op::store) {
                    if (!moves(i.a)) return false;
                    for (const auto& [reg, extent] :
                         f_.references[static_cast<std::size_t>(i.imm)].extents)
                        if (!moves(reg)) return false;
                } else if (i.op == Op::fill) {
                    if (!moves(i.a) || !fixed(i.b)) return false;
                } else if (i.op == Op::move) {
                    if (!moves(i.a) || !moves(i.b) || !fixed(i.c)) return false;
                } else if (accesses_memory(i.op)) {
                    return false;  // reserved, allocated, called
                } else if (is_division(i.op) && (!fixed(i.a) || !fixed(i.b))) {
                    return false;  // might be by zero
                }
            }
            if (block.exit == Exit::leave || block.exit == Exit::trap) return false;
            if (block.exit != Exit::jump && !fixed(block.value) && b != exit_.block) return false;
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
            if (!fixed(m.from)) return std::nullopt;
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
    std::vector<Course> course_;
    std::map<std::int32_t, Course> header_course_;  // of its registers that the way back changes
    std::vector<Advance> advances_;
    std::vector<std::int64_t> values_;
    std::vector<std::uint8_t> known_;
};

}  // namespace

std::vector<SteadyLoop> steady_loops(const Program& program, const Parameters& parameters,
                                     std::int64_t most) {
    std::vector<SteadyLoop> found;
    if (program.memory_needed) return found;
    for (const Function& caller : program.functions)
        for (const Call& c : caller.calls)
            if (c.function == 0) return found;  // its loops are entered several times
    const Function& f = program.functions.front();
    for (std::size_t l = 0; l < f.loops.size(); ++l) {
        if (f.loops[l].parent >= 0) continue;
        if (auto steady = LoopText(f, parameters, static_cast<std::int32_t>(l)).steady(most))
            found.push_back(std::move(*steady));
    }
    return found;
}

}  // namespace revisit::predict
