// Values of a slice as Presburger arithmetic sees them: the algebra of the proof (proof.cpp).
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "predict/slice/doubt.h"
#include "predict/slice/slice.h"

namespace revisit::predict {

// What is known of a value. Each class contains those before it.
enum class Class : std::uint8_t {
    size,       // constants and sizes alone
    affine,     // and counters, linearly
    piecewise,  // and quotients, remainders, selections: Presburger functions
    row,        // bytes: a counter times a declared row, plus constants
    product,    // a size times a counter: rows of a length that only a size determines
    outside,
};

struct Value {
    Class cls = Class::size;
    std::int32_t symbol = -1;              // is this symbol plus something of class size
    std::uint32_t id = 0;                  // the same value has the same id
    std::optional<std::int64_t> number{};  // of the source; of a symbol, how much is added to it
    std::int32_t reason = -1;              // why it is outside, index into reasons_
};

// Makes values of values. Numbers of the source count as periods: each must divide the modulus whose
// residues the samples follow.
class Algebra {
 public:
    explicit Algebra(std::int64_t modulus) : modulus_(modulus) {}

    Value fresh(Class cls) { return {cls, -1, ++ids_, {}, -1}; }
    // A value that is the same wherever it is met.
    std::uint32_t name() { return ++ids_; }
    Value outside(std::uint32_t line, const std::string& what,
                  Doubt::Kind kind = Doubt::Kind::unproven);
    // Why a value is outside.
    const Doubt& reason(const Value& v) const { return reasons_[static_cast<std::size_t>(v.reason)]; }

    // One of two, by the way that control came.
    Value join(const Value& a, const Value& b);
    // A value that starts as `first` and moves by a size every round.
    Value counter(const Value& first, const Value& after, std::uint32_t line);
    // In the class of the largest, or outside with it.
    Value widest(std::initializer_list<const Value*> from, Class least = Class::size);
    Value sum(const Value& a, const Value& b, bool negative);
    Value product(const Instruction& i, const Value& a, const Value& b);
    // A quotient, a remainder, a shift, a mask: by a number of the source whose period is followed.
    Value periodic(const Instruction& i, const Value& a, const Value& by, std::int64_t period);
    Value bitwise(const Instruction& i, const Value& a, const Value& b);

 private:
    bool followed(std::int64_t period) const;

    std::int64_t modulus_;
    std::uint32_t ids_ = 0;
    std::vector<Doubt> reasons_;
};

}  // namespace revisit::predict
