// Which array each address of a slice is in, and the offsets that may be in it.
//
// Passes over the code until nothing is new: an offset adds itself to what it is added to; copies,
// selections, edges and calls hand on. Arrays that come together in one register become one.
#include "predict/fit/pointers.h"

#include <algorithm>
#include <map>

namespace revisit::predict {

Pointers::Pointers(const Program& program) : program_(program) {
    for (const Function& f : program.functions) {
        first_.push_back(roots_.size());
        for (std::int32_t r = 0; r < f.registers; ++r) fresh();
        results_.push_back(fresh());
    }
    const auto globals = roots_.size();
    for (std::size_t g = 0; g < program.globals.size(); ++g) fresh();
    for (std::size_t f = 0; f < program.functions.size(); ++f) {
        for (const Constant& c : program.functions[f].constants)
            if (c.global >= 0) {
                pointer_[node(f, c.reg)] = true;
                roots_.join(node(f, c.reg), globals + static_cast<std::size_t>(c.global));
            }
        for (const Argument& a : program.functions[f].arguments)
            if (a.kind == Kind::pointer && a.reg >= 0) pointer_[node(f, a.reg)] = true;
        for (const Block& b : program.functions[f].blocks)
            for (const Instruction& i : b.code)
                if (i.op == Op::reserve || i.op == Op::allocate) pointer_[node(f, i.dst)] = true;
    }
    for (bool changed = true; changed;) {
        changed = false;
        for (std::size_t f = 0; f < program.functions.size(); ++f) changed |= follow(f);
    }
}

bool Pointers::mixed(std::size_t root) const {
    return std::any_of(mixed_.begin(), mixed_.end(),
                       [&](std::size_t n) { return roots_.find(n) == root; });
}

std::size_t Pointers::fresh() {
    offsets_.emplace_back();
    pointer_.push_back(false);
    return roots_.fresh();
}

bool Pointers::flow(std::size_t to, std::size_t from) {
    if (!pointer_[from]) return false;
    const bool known = pointer_[to] && roots_.find(to) == roots_.find(from);
    pointer_[to] = true;
    roots_.join(to, from);
    const auto before = offsets_[to].size();
    offsets_[to].insert(offsets_[from].begin(), offsets_[from].end());
    return !known || offsets_[to].size() != before;
}

bool Pointers::follow(std::size_t f) {
    const Function& fn = program_.functions[f];
    bool changed = false;
    std::map<std::int32_t, std::set<std::int32_t>> sources;
    const auto hand_on = [&](std::int32_t to, std::int32_t from) {
        if (to < 0 || from < 0 || !pointer_[node(f, from)]) return;
        changed |= flow(node(f, to), node(f, from));
        sources[to].insert(from);
        if (sources[to].size() > 1) changed |= mixed_.insert(node(f, to)).second;
    };
    for (std::size_t b = 0; b < fn.blocks.size(); ++b) {
        for (std::size_t k = 0; k < fn.blocks[b].code.size(); ++k) {
            const Instruction& i = fn.blocks[b].code[k];
            switch (i.op) {
                case Op::offset:
                    if (!pointer_[node(f, i.a)]) {
                        pointer_[node(f, i.a)] = changed = true;
                        mixed_.insert(node(f, i.a));
                    }
                    changed |= flow(node(f, i.dst), node(f, i.a));
                    changed |= offsets_[node(f, i.dst)].insert({f, b, k}).second;
                    break;
                case Op::trunc:
                case Op::zext:
                case Op::sext:
                case Op::copy:
                    hand_on(i.dst, i.a);
                    break;
                case Op::select:
                    hand_on(i.dst, i.b);
                    hand_on(i.dst, i.c);
                    break;
                case Op::store:
                    hand_on(i.b, i.c);
                    break;
                case Op::load:
                    hand_on(i.dst, i.b);
                    break;
                case Op::call: {
                    const Call& c = fn.calls[static_cast<std::size_t>(i.imm)];
                    const auto callee = static_cast<std::size_t>(c.function);
                    for (std::size_t n = 0; n < c.arguments.size(); ++n)
                        if (c.arguments[n] >= 0)
                            changed |= flow(node(callee, program_.functions[callee].arguments[n].reg),
                                            node(f, c.arguments[n]));
                    if (c.dst >= 0) changed |= flow(node(f, c.dst), results_[callee]);
                    break;
                }
                default:
                    break;
            }
        }
        for (const Edge& e : fn.blocks[b].edges)
            for (const Move& m : e.moves) hand_on(m.to, m.from);
        if (fn.blocks[b].exit == Exit::leave && fn.blocks[b].value >= 0)
            changed |= flow(results_[f], node(f, fn.blocks[b].value));
    }
    return changed;
}

}  // namespace revisit::predict
