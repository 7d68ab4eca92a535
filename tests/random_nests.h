// Random loop nests as slices: what the predictor is compared with brute force on.
#pragma once

#include <random>
#include <vector>

#include "predict/slice/slice.h"

namespace revisit::predict {

// How odd a nest is; each kind has all of the one before.
enum class Oddity : std::uint8_t {
    // Loops one to four deep, perfect or not, with affine bounds (lower and upper, triangular ones
    // among them), steps of one, two or minus one, and references to shared one- and two-dimensional
    // arrays. Sizes are the arguments n and m.
    plain,
    // Bounds that are the smaller or larger of two, fixed numbers of any size in bounds and indices,
    // remainders and steps of three.
    rich,
    // Up to three nests, steps down to minus three, bounds and indices of two variables or sizes and
    // counted from the end, elements of one to sixteen bytes and accesses of another size than the
    // array's, rows as long as a size, scalars, and accesses under a condition.
    wild,
};

class RandomNest {
 public:
    explicit RandomNest(std::uint64_t seed, Oddity oddity = Oddity::plain)
        : random_(seed), rich_(oddity != Oddity::plain), wild_(oddity == Oddity::wild) {}

    Program program() {
        program_ = {};
        program_.functions.emplace_back();
        f().name = "nest";
        for (const char* name : {"n", "m"}) f().arguments.push_back({name, Kind::integer, fresh(), 64});
        const int arrays = pick(1, 3);
        for (int k = 0; k < arrays; ++k) {
            program_.globals.push_back(
                {std::string(1, static_cast<char>('A' + k)), 64 << 20, 64, false, 0, {}});
            elements_.push_back(wild_ ? 1 << pick(0, 4) : 8);
        }
        if (wild_) program_.globals.push_back({"s", 8, 8, false, 0, {}});
        current_ = block(-1);
        const int nests = pick(1, wild_ ? 3 : 2);
        for (int k = 0; k < nests; ++k) loop(pick(1, wild_ ? 3 : 4), -1);
        f().blocks[current_].exit = Exit::leave;
        f().registers = registers_;
        return std::move(program_);
    }

 private:
    Function& f() { return program_.functions.front(); }
    int pick(int low, int high) {
        return low + static_cast<int>(random_() % static_cast<std::uint64_t>(high - low + 1));
    }
    std::int32_t fresh() { return registers_++; }
    std::int32_t constant(std::int64_t value, std::int32_t global = -1) {
        f().constants.push_back({fresh(), global, value, true});
        return f().constants.back().reg;
    }
    std::int32_t block(std::int32_t loop) {
        f().blocks.emplace_back().loop = loop;
        return static_cast<std::int32_t>(f().blocks.size()) - 1;
    }
    std::int32_t emit(Op op, std::int32_t a, std::int32_t b, std::int64_t imm = 0) {
        Instruction i;
        i.op = op;
        i.dst = fresh();
        i.a = a;
        i.b = b;
        i.imm = imm;
        f().blocks[current_].code.push_back(i);
        return i.dst;
    }
    std::int32_t plus(std::int32_t a, std::int64_t c) {
        return c == 0 ? a : emit(Op::add, a, constant(c));
    }
    std::int32_t variable() {
        return variables_[static_cast<std::size_t>(pick(0, static_cast<int>(variables_.size()) - 1))];
    }

    // What a loop runs from or to: a size or an outer variable, give or take one.
    std::int32_t bound(bool upper) {
        if (rich_ && pick(0, 5) == 0) {
            const auto a = bound(upper), b = bound(upper);
            return emit(pick(0, 1) ? Op::smin : Op::smax, a, b);
        }
        if (rich_ && pick(0, 7) == 0) return constant(upper ? pick(5, 40) : pick(2, 20));
        if (wild_ && !variables_.empty() && pick(0, 5) == 0) {
            if (upper) return emit(Op::sub, pick(0, 1), variable());
            return emit(Op::sdiv, variable(), constant(pick(2, 3)));
        }
        if (wild_ && upper && pick(0, 9) == 0) return emit(Op::sdiv, pick(0, 1), constant(pick(2, 4)));
        const int kind = pick(0, 5);
        if (upper) {
            if (kind <= 3 || variables_.empty()) return plus(pick(0, 1), pick(-1, 0));
            return plus(variable(), pick(0, 1));
        }
        if (kind <= 3 || variables_.empty()) return constant(pick(0, 1));
        return plus(variable(), pick(0, 1));
    }

    std::int64_t step() {
        const int form = pick(0, 9);
        if (wild_ && form == 3) return pick(-3, -2);
        return form == 0 ? 2 : form == 1 ? -1 : form == 2 && rich_ ? 3 : 1;
    }

    void loop(int depth, std::int32_t parent) {
        const auto low = bound(false), high = bound(true);
        const auto by = step();
        // Downwards: from high - 1 to low.
        const auto start = by < 0 ? plus(high, -1) : low;
        const auto id = static_cast<std::int32_t>(f().loops.size());
        f().loops.emplace_back();
        const auto header = block(id), body = block(id), after = block(parent);
        f().loops[id].header = header;
        f().loops[id].parent = parent;
        f().loops[id].variable = std::string(1, static_cast<char>('i' + variables_.size()));
        const auto v = fresh();
        f().loops[id].induction = v;
        f().blocks[current_].exit = Exit::jump;
        f().blocks[current_].edges = {{header, {{v, start}}}};
        current_ = header;
        const auto more = by < 0 ? emit(Op::sle, low, v) : emit(Op::slt, v, high);
        f().blocks[header].exit = Exit::branch;
        f().blocks[header].value = more;
        f().blocks[header].edges = {{body, {}}, {after, {}}};
        current_ = body;
        variables_.push_back(v);
        const int parts = pick(1, depth > 1 ? 3 : 2);
        bool went_deeper = false;
        for (int k = 0; k < parts; ++k) {
            if (depth > 1 && (pick(0, 2) > 0 || (k + 1 == parts && !went_deeper))) {
                if (went_deeper && pick(0, 1)) continue;
                went_deeper = true;
                loop(depth - 1, id);
            } else if (wild_ && pick(0, 4) == 0) {
                guarded(id);
            } else {
                access();
            }
        }
        variables_.pop_back();
        const auto next = plus(v, by);
        f().blocks[current_].exit = Exit::jump;
        f().blocks[current_].edges = {{header, {{v, next}}}};
        current_ = after;
    }

    // One access, or another, as a condition on the variables and sizes says.
    void guarded(std::int32_t id) {
        const auto left = pick(0, 1) ? variable() : emit(Op::add, variable(), variable());
        const int form = pick(0, 3);
        std::int32_t value = 0;
        if (form == 0)
            value = emit(Op::slt, left, pick(0, 1));
        else if (form == 1)
            value = emit(Op::slt, left, emit(Op::sdiv, pick(0, 1), constant(2)));
        else if (form == 2)
            value = emit(Op::eq, emit(Op::srem, left, constant(pick(2, 4))), constant(0));
        else
            value = emit(Op::slt, left, constant(pick(3, 40)));
        const auto yes = block(id), no = block(id), after = block(id);
        f().blocks[current_].exit = Exit::branch;
        f().blocks[current_].value = value;
        f().blocks[current_].edges = {{yes, {}}, {no, {}}};
        for (const auto side : {yes, no}) {
            current_ = side;
            if (side == yes || pick(0, 1)) access();
            f().blocks[current_].exit = Exit::jump;
            f().blocks[current_].edges = {{after, {}}};
        }
        current_ = after;
    }

    // An index: an outer variable, or a constant, shifted so that it is never negative.
    std::int32_t index() {
        if (pick(0, 7) == 0) return constant(pick(0, rich_ ? 30 : 3));
        const auto v = variable();
        const int form = wild_ ? pick(0, 15) : rich_ ? pick(0, 11) : 11;
        if (form == 0) return plus(v, pick(3, 30));
        if (form == 1) return emit(Op::srem, plus(v, 1), constant(pick(2, 5)));
        if (form == 2) return plus(emit(Op::mul, v, constant(pick(2, 20))), 1);
        if (form == 3) return emit(Op::add, plus(v, 1), variables_.front());
        if (form == 12) return emit(Op::sub, plus(pick(0, 1), 200), v);
        if (form == 13) return emit(Op::add, emit(Op::mul, v, pick(0, 1)), variable());
        if (form == 14) return emit(Op::sdiv, plus(v, 4), constant(pick(2, 4)));
        if (form == 15) return emit(Op::add, emit(Op::sub, v, variable()), plus(pick(0, 1), 50));
        return plus(v, pick(0, 3) == 0 ? pick(1, 2) : 1);
    }

    void access() {
        const bool scalar = wild_ && pick(0, 7) == 0;
        const auto array = scalar ? static_cast<int>(elements_.size())
                                  : pick(0, static_cast<int>(elements_.size()) - 1);
        const std::int64_t element = scalar ? 8 : elements_[static_cast<std::size_t>(array)];
        auto address = constant(0, array);
        if (!scalar) {
            if (pick(0, 2) > 0) address = emit(Op::offset, address, index(), element * 1000);
            address = emit(Op::offset, address, index(), element);
        }
        const bool other = wild_ && pick(0, 7) == 0;
        const int count = pick(1, 2);
        for (int k = 0; k < count; ++k) {
            Instruction i;
            i.op = k ? Op::store : Op::load;
            i.a = address;
            i.imm = static_cast<std::int64_t>(f().references.size());
            Reference r;
            r.write = k;
            r.size = static_cast<std::uint32_t>(other ? 1 << pick(0, 3) : element);
            r.array = r.expression = program_.globals[static_cast<std::size_t>(array)].name;
            r.line = static_cast<std::uint32_t>(f().references.size()) + 1;
            f().references.push_back(r);
            f().blocks[current_].code.push_back(i);
        }
    }

    std::mt19937_64 random_;
    bool rich_, wild_;
    Program program_;
    std::int32_t registers_ = 0;
    std::int32_t current_ = 0;
    std::vector<std::int32_t> variables_;
    std::vector<int> elements_;  // bytes, by array
};

}  // namespace revisit::predict
