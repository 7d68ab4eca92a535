// One way round an innermost loop, taken many times at once.
//
// Problem. Interpreting an iteration costs some thirty instructions an access, while nearly all inner
// loops do the same thing again a stride further. Idea. Once a path round the loop was seen, run it
// once more on pairs (value, step): if every register that the path carries into the next round ends
// it exactly one step further, then by induction it does so in every round, as long as no comparison
// on the way changes its outcome and no narrow number overflows. Each of those says how many rounds it
// allows; the least of them is taken in one go, its accesses being arithmetic progressions.
// Nothing is guessed: a path for which the induction fails is interpreted as before.
// Cost. About five interpreted rounds for the proof, then 1–2 ns an access.
#include "predict/run/affine_path.h"

#include <algorithm>
#include <set>

#include "predict/run/arithmetic.h"

namespace revisit::predict {
namespace {

bool continues(const Instruction& i, const Program& program) {
    switch (i.op) {
        case Op::load:
            return i.dst < 0 || i.b >= 0 || !program.memory_needed;
        case Op::store:
            return i.b >= 0 || !program.memory_needed;
        case Op::reserve:
        case Op::allocate:
        case Op::stack_save:
        case Op::stack_restore:
        case Op::fill:
        case Op::move:
        case Op::call:
            return false;
        default:
            return !is_division(i.op);
    }
}

}  // namespace

std::optional<LoopPath> path_of(const Program& program, const Function& function,
                                std::vector<std::int32_t> blocks) {
    LoopPath path;
    std::set<std::int32_t> written, carried;
    const auto reads = [&](std::int32_t reg) {
        if (reg >= 0 && !written.contains(reg)) carried.insert(reg);
    };
    for (std::size_t n = 0; n < blocks.size(); ++n) {
        const Block& b = function.blocks[blocks[n]];
        path.code += static_cast<std::int64_t>(b.code.size()) + 1;
        for (const Instruction& i : b.code) {
            if (!continues(i, program)) return std::nullopt;
            reads(i.a);
            reads(i.b);
            reads(i.c);
            if (i.op == Op::load || i.op == Op::store)
                for (const auto& [reg, extent] :
                     function.references[static_cast<std::size_t>(i.imm)].extents)
                    reads(reg);
            if (i.dst >= 0) written.insert(i.dst);
            if (i.op == Op::store && i.b >= 0 && i.c >= 0) written.insert(i.b);
        }
        if (b.exit == Exit::leave || b.exit == Exit::trap) return std::nullopt;
        if (b.exit != Exit::jump) reads(b.value);
        const auto next = blocks[n + 1 < blocks.size() ? n + 1 : 0];
        for (const Edge& e : b.edges)
            if (e.block == next) {
                for (const Move& m : e.moves) reads(m.from);
                for (const Move& m : e.moves) written.insert(m.to);
            }
    }
    path.blocks = std::move(blocks);
    path.written.assign(written.begin(), written.end());
    for (const auto reg : carried)
        if (written.contains(reg)) path.carried.push_back(reg);
    path.steps.assign(path.carried.size(), 0);
    return path;
}

// The value stays within [low, high] for how many rounds?
bool PathRunner::stay(std::int64_t base, std::int64_t step, std::int64_t low, std::int64_t high) {
    if (base < low || base > high) return false;
    if (step > 0)
        limit_ = static_cast<std::int64_t>(std::min<Wide>(limit_, (Wide{high} - base) / step + 1));
    else if (step < 0)
        limit_ =
            static_cast<std::int64_t>(std::min<Wide>(limit_, (Wide{base} - low) / -Wide{step} + 1));
    return true;
}

// Whether base + t * step < 0, and for how many rounds that stays as it is.
bool PathRunner::negative(Wide base, Wide step, bool& outcome) {
    outcome = base < 0;
    if (outcome && step > 0)
        limit_ = static_cast<std::int64_t>(std::min<Wide>(limit_, (-base + step - 1) / step));
    else if (!outcome && step < 0)
        limit_ = static_cast<std::int64_t>(std::min<Wide>(limit_, base / -step + 1));
    return true;
}

void PathRunner::take(std::int32_t to, std::int32_t from) {
    (*v_)[to] = (*v_)[from];
    (*k_)[to] = (*k_)[from];
    d_[to] = d_[from];
}

bool PathRunner::narrow(const Instruction& i, std::int64_t value, std::int64_t step) {
    (*v_)[i.dst] = sign_extend(value, i.width);
    d_[i.dst] = i.width >= 64 || i.width == 1 ? step : sign_extend(step, i.width);
    if (i.width >= 64 || !(*k_)[i.dst]) return true;
    if (i.width == 1) return step == 0;
    const auto most = (std::int64_t{1} << (i.width - 1)) - 1;
    return stay((*v_)[i.dst], d_[i.dst], -most - 1, most);
}

bool PathRunner::compare(const Instruction& i) {
    auto& v = *v_;
    auto& k = *k_;
    const bool known = k[i.a] && k[i.b];
    std::int64_t result = 0, step = 0;
    bool outcome = false;
    if (known) {
        if (!stay(v[i.a], d_[i.a], INT64_MIN, INT64_MAX) ||
            !stay(v[i.b], d_[i.b], INT64_MIN, INT64_MAX))
            return false;
        const bool is_unsigned =
            i.op == Op::ult || i.op == Op::ule || i.op == Op::umin || i.op == Op::umax;
        if (is_unsigned &&
            (!stay(v[i.a], d_[i.a], 0, INT64_MAX) || !stay(v[i.b], d_[i.b], 0, INT64_MAX)))
            return false;
        const Wide base = Wide{v[i.a]} - v[i.b], change = Wide{d_[i.a]} - d_[i.b];
        switch (i.op) {
            case Op::eq:
            case Op::ne:
                if (base == 0) {
                    if (change != 0) limit_ = std::min<std::int64_t>(limit_, 1);
                } else if (change != 0 && (base < 0) != (change < 0) && base % change == 0) {
                    limit_ = static_cast<std::int64_t>(std::min<Wide>(limit_, -base / change));
                }
                outcome = (base == 0) == (i.op == Op::eq);
                break;
            case Op::slt:
            case Op::ult:
                negative(base, change, outcome);
                break;
            case Op::sle:
            case Op::ule:
            case Op::smin:
            case Op::umin:
                negative(base - 1, change, outcome);  // a <= b
                break;
            default:  // smax, umax: b <= a
                negative(-base - 1, -change, outcome);
        }
        result = outcome;
        if (is_clamp(i.op)) {
            const auto from = outcome ? i.a : i.b;
            result = v[from];
            step = d_[from];
        }
    }
    v[i.dst] = result;
    d_[i.dst] = step;
    k[i.dst] = known;
    return true;
}

bool PathRunner::step(const Program& program, const Function& function, const Instruction& i) {
    auto& v = *v_;
    auto& k = *k_;
    auto& d = d_;
    const auto both = [&] { k[i.dst] = k[i.a] & k[i.b]; };
    const auto fixed = [&] { return d[i.a] == 0 && (i.b < 0 || d[i.b] == 0); };
    if (is_comparison(i.op) || is_clamp(i.op)) return compare(i);
    switch (i.op) {
        case Op::offset: {
            const auto value = signed_of(bits(v[i.a]) + bits(v[i.b]) * bits(i.imm)),
                       change = signed_of(bits(d[i.a]) + bits(d[i.b]) * bits(i.imm));
            both();
            v[i.dst] = value;
            d[i.dst] = change;
            return true;
        }
        case Op::add:
        case Op::sub: {
            const bool plus = i.op == Op::add;
            const auto value =
                           signed_of(plus ? bits(v[i.a]) + bits(v[i.b]) : bits(v[i.a]) - bits(v[i.b])),
                       change =
                           signed_of(plus ? bits(d[i.a]) + bits(d[i.b]) : bits(d[i.a]) - bits(d[i.b]));
            both();
            return narrow(i, value, change);
        }
        case Op::mul: {
            if (d[i.a] != 0 && d[i.b] != 0) return false;
            const auto change = signed_of(bits(v[i.a]) * bits(d[i.b]) + bits(d[i.a]) * bits(v[i.b]));
            const auto value = signed_of(bits(v[i.a]) * bits(v[i.b]));
            both();
            return narrow(i, value, change);
        }
        case Op::shl: {
            if (d[i.b] != 0) return false;
            const auto by = v[i.b] & 63;
            const auto value = signed_of(bits(v[i.a]) << by), change = signed_of(bits(d[i.a]) << by);
            both();
            return narrow(i, value, change);
        }
        case Op::lshr:
        case Op::ashr:
        case Op::bit_and:
        case Op::bit_or:
        case Op::bit_xor: {
            // ~a is -1 - a.
            if (i.op == Op::bit_xor && i.width > 1 && k[i.b] && d[i.b] == 0 && v[i.b] == -1) {
                const auto value = ~v[i.a], change = signed_of(0 - bits(d[i.a]));
                both();
                return narrow(i, value, change);
            }
            if (!fixed()) return false;
            const auto a = v[i.a], b = v[i.b];
            const auto low = i.width >= 64 ? bits(a) : bits(a) & ((std::uint64_t{1} << i.width) - 1);
            const auto value = i.op == Op::lshr      ? signed_of(low >> (b & 63))
                               : i.op == Op::ashr    ? a >> (b & 63)
                               : i.op == Op::bit_and ? a & b
                               : i.op == Op::bit_or  ? a | b
                                                     : a ^ b;
            both();
            v[i.dst] = i.op <= Op::ashr ? sign_extend(value, i.width) : value;
            d[i.dst] = 0;
            return true;
        }
        case Op::select:
            if (!k[i.a] || d[i.a] != 0) return false;
            take(i.dst, v[i.a] ? i.b : i.c);
            return true;
        case Op::abs:
        case Op::zext: {
            if (i.op == Op::zext && i.width >= 64) {
                take(i.dst, i.a);
                return true;
            }
            const auto value = v[i.a], change = d[i.a];
            k[i.dst] = k[i.a];
            if (k[i.a] &&
                (value >= 0 ? !stay(value, change, 0, INT64_MAX) : !stay(value, change, INT64_MIN, -1)))
                return false;
            if (i.op == Op::abs) {
                if (value == INT64_MIN) return false;
                v[i.dst] = value < 0 ? -value : value;
                d[i.dst] = value < 0 ? signed_of(0 - bits(change)) : change;
                return true;
            }
            if (i.width == 1 && change != 0) return false;
            v[i.dst] = signed_of(bits(value) & ((std::uint64_t{1} << i.width) - 1));
            d[i.dst] = change;
            return true;
        }
        case Op::trunc: {
            const auto value = v[i.a], change = d[i.a];
            k[i.dst] = k[i.a];
            return narrow(i, value, change);
        }
        case Op::sext:
            if (i.width == 1) {
                if (d[i.a] != 0) return false;
                k[i.dst] = k[i.a];
                v[i.dst] = -v[i.a];
                d[i.dst] = 0;
                return true;
            }
            [[fallthrough]];
        case Op::copy:
            take(i.dst, i.a);
            return true;
        case Op::load:
        case Op::store: {
            if (!k[i.a]) return false;
            if (used_ == accesses_.size()) accesses_.emplace_back();
            PathAccess& access = accesses_[used_++];
            access.reference = static_cast<std::uint32_t>(i.imm);
            access.address = bits(v[i.a]);
            access.step = d[i.a];
            access.indices.clear();
            for (const auto& [reg, extent] : function.references[access.reference].extents)
                access.indices.push_back({v[reg], d[reg]});
            if (i.op == Op::store) {
                if (i.b >= 0 && i.c >= 0) take(i.b, i.c);
                return i.b >= 0 || !program.memory_needed;
            }
            if (i.dst < 0) return true;
            if (i.b >= 0) {
                take(i.dst, i.b);
                return true;
            }
            v[i.dst] = d[i.dst] = 0;
            k[i.dst] = 0;
            return true;
        }
        case Op::unknown:
            v[i.dst] = d[i.dst] = 0;
            k[i.dst] = 0;
            return true;
        default:
            return false;
    }
}

bool PathRunner::round(const Program& program, const Function& function, const LoopPath& path) {
    for (std::size_t n = 0; n < path.blocks.size(); ++n) {
        const Block& b = function.blocks[path.blocks[n]];
        for (const Instruction& i : b.code) {
            Watched w{&i, 0, 0, 0, 0, 0, 0};
            if (i.watch > 0) {
                w.a = (*v_)[i.a], w.a_step = d_[i.a];
                if (i.b >= 0) w.b = (*v_)[i.b], w.b_step = d_[i.b];
            }
            if (!step(program, function, i) || limit_ < 1) return false;
            if (i.watch > 0 && (*k_)[i.dst]) {
                w.result = (*v_)[i.dst], w.result_step = d_[i.dst];
                watched_.push_back(w);
            }
        }
        const auto next = path.blocks[n + 1 < path.blocks.size() ? n + 1 : 0];
        std::size_t which = 0;
        if (b.exit != Exit::jump) {
            if (!(*k_)[b.value] || d_[b.value] != 0) return false;
            if (b.exit == Exit::branch) {
                which = (*v_)[b.value] & 1 ? 0 : 1;
            } else {
                const auto at = std::find(b.cases.begin(), b.cases.end(), (*v_)[b.value]);
                if (at != b.cases.end()) which = 1 + static_cast<std::size_t>(at - b.cases.begin());
            }
        }
        const Edge& edge = b.edges[which];
        if (edge.block != next) return false;
        moved_.clear();
        for (const Move& m : edge.moves) moved_.push_back({(*v_)[m.from], d_[m.from], (*k_)[m.from]});
        for (std::size_t m = 0; m < edge.moves.size(); ++m) {
            (*v_)[edge.moves[m].to] = moved_[m].value;
            d_[edge.moves[m].to] = moved_[m].step;
            (*k_)[edge.moves[m].to] = moved_[m].known;
        }
    }
    return true;
}

void PathRunner::observe_into(std::vector<Observed>& observed, std::int64_t rounds) const {
    // Everything moves in straight lines, so the ends are the extremes.
    for (const Watched& w : watched_)
        for (const auto t : {std::int64_t{0}, rounds - 1}) {
            const auto at = [&](std::int64_t value, std::int64_t step) {
                return signed_of(bits(value) + bits(step) * bits(t));
            };
            observe(*w.instruction, at(w.a, w.a_step), at(w.b, w.b_step), at(w.result, w.result_step),
                    observed[static_cast<std::size_t>(w.instruction->watch - 1)]);
        }
}

std::int64_t PathRunner::run(const Program& program, const Function& function, const LoopPath& path,
                             std::int64_t limit, std::vector<std::int64_t>& values,
                             std::vector<std::uint8_t>& known) {
    v_ = &values;
    k_ = &known;
    limit_ = limit;
    used_ = 0;
    watched_.clear();
    if (d_.size() < values.size()) d_.resize(values.size(), 0);
    saved_.clear();
    for (const auto reg : path.written) saved_.push_back({values[reg], known[reg]});
    for (std::size_t c = 0; c < path.carried.size(); ++c) d_[path.carried[c]] = path.steps[c];
    bool fine = round(program, function, path) && limit_ >= 1;
    // The induction: what is carried ends the round one step on, and will move by the same step again.
    std::size_t w = 0;
    for (std::size_t c = 0; c < path.carried.size() && fine; ++c) {
        const auto reg = path.carried[c];
        while (path.written[w] != reg) ++w;
        fine = known[reg] == saved_[w].known &&
               (!known[reg] || (d_[reg] == path.steps[c] &&
                                values[reg] == signed_of(bits(saved_[w].value) + bits(path.steps[c]))));
    }
    for (w = 0; w < path.written.size(); ++w) {
        const auto reg = path.written[w];
        if (fine)
            values[reg] = signed_of(bits(values[reg]) + bits(d_[reg]) * bits(limit_ - 1));
        else
            values[reg] = saved_[w].value, known[reg] = saved_[w].known;
        d_[reg] = 0;
    }
    return fine ? limit_ : 0;
}

}  // namespace revisit::predict
