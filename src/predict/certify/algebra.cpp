// Values of a slice as Presburger arithmetic sees them.
//
// Each value is in a class (algebra.h): sizes alone, linear in counters, with quotients and selections,
// a row of bytes, a product of a size and a counter, or outside of all. An operation on values gives
// the class of its result; where no class holds it, the result is outside and carries the reason, which
// is reported only if an address or a condition comes to depend on it. Example: with a counter i, i + n
// is linear, i % 4 is piecewise if the samples follow residues by 4, i * n is a product, i * i is
// outside.
#include "predict/certify/algebra.h"

#include <algorithm>
#include <cstdlib>

#include "predict/fit/fixed_numbers.h"

namespace revisit::predict {
namespace {

std::optional<std::int64_t> plus(std::optional<std::int64_t> a, std::optional<std::int64_t> b,
                                 bool negative) {
    std::int64_t out = 0;
    if (!a || !b) return std::nullopt;
    if (negative ? __builtin_sub_overflow(*a, *b, &out) : __builtin_add_overflow(*a, *b, &out))
        return std::nullopt;
    return out;
}

}  // namespace

Value Algebra::outside(std::uint32_t line, const std::string& what, Doubt::Kind kind) {
    Value v = fresh(Class::outside);
    v.reason = static_cast<std::int32_t>(reasons_.size());
    reasons_.emplace_back(kind, line, what);
    return v;
}

Value Algebra::join(const Value& a, const Value& b) {
    if (a.id == b.id && a.cls == b.cls && a.symbol == b.symbol) return a;
    if (a.cls == Class::outside) return a;
    if (b.cls == Class::outside) return b;
    return fresh(std::max({a.cls, b.cls, Class::piecewise}));
}

Value Algebra::counter(const Value& first, const Value& after, std::uint32_t line) {
    if (first.cls == Class::outside) return first;
    if (!after.number) return fresh(Class::product);
    if (!followed(*after.number))
        return outside(line,
                       "a loop steps by " + std::to_string(*after.number) +
                           ", whose residues the samples do not follow",
                       Doubt::Kind::period);
    return fresh(std::max(first.cls, Class::affine));
}

bool Algebra::followed(std::int64_t period) const {
    return period != 0 && modulus_ % std::abs(period) == 0;
}

Value Algebra::widest(std::initializer_list<const Value*> from, Class least) {
    Class cls = Class::size;
    for (const Value* v : from) {
        if (v->cls == Class::outside) return *v;
        cls = std::max(cls, v->cls);
    }
    if (cls == Class::row && least == Class::piecewise) cls = Class::product;
    return fresh(cls == Class::size ? cls : std::max(cls, least));
}

Value Algebra::sum(const Value& a, const Value& b, bool negative) {
    Value v = widest({&a, &b});
    if (v.cls == Class::outside) return v;
    // Where in the row is not shown.
    if (v.cls == Class::row && std::min(a.cls, b.cls) != Class::size) v.cls = Class::product;
    if (a.symbol >= 0 && b.symbol < 0 && b.cls == Class::size) {
        v.symbol = a.symbol;
        v.number = plus(a.number, b.number, negative);
    } else if (b.symbol >= 0 && a.symbol < 0 && a.cls == Class::size && !negative) {
        v.symbol = b.symbol;
        v.number = plus(b.number, a.number, false);
    } else if (a.symbol < 0 && b.symbol < 0) {
        v.number = plus(a.number, b.number, negative);
    }
    return v;
}

Value Algebra::product(const Instruction& i, const Value& a, const Value& b) {
    Value v = widest({&a, &b});
    if (v.cls <= Class::size || v.cls == Class::outside) return v;
    const Value& factor = a.cls == Class::size ? a : b;
    if (factor.cls != Class::size) return outside(i.line, "a product of two values that both vary");
    if (!factor.number) return fresh(Class::product);
    if (std::abs(*factor.number) >= kLargeNumber) return fresh(Class::product);
    if (!followed(*factor.number))
        return outside(i.line,
                       "a factor of " + std::to_string(*factor.number) +
                           ", whose residues the samples do not follow",
                       Doubt::Kind::period);
    return v;
}

Value Algebra::periodic(const Instruction& i, const Value& a, const Value& by, std::int64_t period) {
    Value v = widest({&a, &by}, Class::piecewise);
    if (v.cls == Class::size || v.cls == Class::outside) return v;
    if (v.cls == Class::product || by.cls != Class::size || !by.number)
        return outside(i.line, "a quotient, a remainder or a shift by what is no number of the source");
    if (!followed(period))
        return outside(i.line,
                       "a period of " + std::to_string(period) + " that the samples do not follow",
                       Doubt::Kind::period);
    return v;
}

Value Algebra::bitwise(const Instruction& i, const Value& a, const Value& b) {
    if (i.width == 1) return widest({&a, &b}, Class::piecewise);
    const Value& mask = b.number && b.symbol < 0 ? b : a;
    const Value& other = &mask == &b ? a : b;
    Value v = widest({&a, &b}, Class::piecewise);
    if (v.cls == Class::size || v.cls == Class::outside) return v;
    if (!mask.number || mask.symbol >= 0 || mask.cls != Class::size)
        return outside(i.line, "bits of two values that vary are combined");
    if (*mask.number == -1 && i.op == Op::bit_xor) return widest({&other});
    const auto number = static_cast<std::uint64_t>(*mask.number < 0 ? ~*mask.number : *mask.number);
    const auto bits = 64 - __builtin_clzll(number | 1);
    return periodic(i, other, mask, bits > 30 ? 0 : std::int64_t{1} << (number ? bits : 0));
}

}  // namespace revisit::predict
