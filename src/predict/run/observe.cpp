// What a watched instruction meets: see certify/extremes.cpp for what is made of it.
#include "predict/run/observe.h"

#include "predict/run/arithmetic.h"

namespace revisit::predict {
namespace {

using Wide = __int128;

bool watched(const Instruction& i) {
    return i.dst >= 0 &&
           (is_comparison(i.op) ||
            (i.width > 1 && (i.op <= Op::ashr || is_clamp(i.op) || i.op == Op::abs ||
                             i.op == Op::trunc || i.op == Op::zext || i.op == Op::select)));
}

}  // namespace

std::int32_t watch_all(Program& program) {
    std::int32_t count = 0;
    for (Function& f : program.functions)
        for (Block& b : f.blocks) {
            for (Instruction& i : b.code) i.watch = watched(i) ? ++count : 0;
            b.watch = b.exit == Exit::choose ? ++count : 0;
        }
    return count;
}

void observe(const Instruction& i, std::int64_t a, std::int64_t b, std::int64_t result, Observed& to) {
    if (is_unsigned(i.op)) {
        to.first.add(a);
        if (i.op != Op::zext && i.op != Op::lshr) to.second.add(b);
    }
    switch (i.op) {
        case Op::add:
            return to.value.add(Wide{a} + b);
        case Op::sub:
            return to.value.add(Wide{a} - b);
        case Op::mul:
            return to.value.add(Wide{a} * b);
        case Op::shl:
            return to.value.add(b >= 0 && b < 63 ? Wide{a} * (std::int64_t{1} << b) : Wide{result});
        case Op::trunc:
            return to.value.add(a);
        case Op::udiv:
        case Op::sdiv:
        case Op::urem:
        case Op::srem:
            // Whether the quotient is zero, and of signed ones the sign of the dividend.
            to.margin.add((a < 0 ? -Wide{a} : Wide{a}) - (b < 0 ? -Wide{b} : Wide{b}));
            to.first.add(a);
            return to.value.add(result);
        case Op::lshr:
        case Op::ashr:
            to.margin.add((a < 0 ? -Wide{a} : Wide{a}) - (Wide{1} << (b & 63)));
            to.first.add(a);
            return to.value.add(result);
        case Op::abs:
            to.margin.add(a);
            return to.value.add(result);
        case Op::zext:
        case Op::select:
            return to.value.add(result);
        default:  // comparisons and clamps; of unsigned ones the margin where neither looks negative
            if (!is_unsigned(i.op) || (a >= 0 && b >= 0)) to.margin.add(Wide{a} - b);
            if (i.op == Op::eq || i.op == Op::ne) {
                to.taken.resize(2, false);
                to.taken[a == b] = true;
            }
            if (is_clamp(i.op)) to.value.add(result);
    }
}

}  // namespace revisit::predict
