// Random loop nests as slices: what the predictor is compared with brute force on.
#pragma once

#include <random>
#include <vector>

#include "predict/slice.h"

namespace revisit::predict {

// Loops one to four deep, perfect or not, with affine bounds (lower and upper, triangular ones among
// them), steps of one, two or minus one, and references to shared one- and two-dimensional arrays.
// Sizes are the arguments n and m. Rich ones also have bounds that are the smaller or larger of two,
// fixed numbers of any size in bounds and indices, remainders and steps of three.
class RandomNest {
 public:
    explicit RandomNest(std::uint64_t seed, bool rich = false) : random_(seed), rich_(rich) {}

    Program program() {
        program_ = {};
        program_.functions.emplace_back();
        f().name = "nest";
        for (const char* name : {"n", "m"}) f().arguments.push_back({name, Kind::integer, fresh(), 64});
        const int arrays = pick(1, 3);
        for (int k = 0; k < arrays; ++k)
            program_.globals.push_back(
                {std::string(1, static_cast<char>('A' + k)), 64 << 20, 64, false, 0, {}});
        current_ = block(-1);
        const int nests = pick(1, 2);
        for (int k = 0; k < nests; ++k) loop(pick(1, 4), -1);
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

    // What a loop runs from or to: a size or an outer variable, give or take one.
    std::int32_t bound(bool upper) {
        if (rich_ && pick(0, 5) == 0) {
            const auto a = bound(upper), b = bound(upper);
            return emit(pick(0, 1) ? Op::smin : Op::smax, a, b);
        }
        if (rich_ && pick(0, 7) == 0) return constant(upper ? pick(5, 40) : pick(2, 20));
        const int kind = pick(0, 5);
        if (upper) {
            if (kind <= 3 || variables_.empty()) return plus(pick(0, 1), pick(-1, 0));
            return plus(
                variables_[static_cast<std::size_t>(pick(0, static_cast<int>(variables_.size()) - 1))],
                pick(0, 1));
        }
        if (kind <= 3 || variables_.empty()) return constant(pick(0, 1));
        return plus(
            variables_[static_cast<std::size_t>(pick(0, static_cast<int>(variables_.size()) - 1))],
            pick(0, 1));
    }

    void loop(int depth, std::int32_t parent) {
        const auto low = bound(false), high = bound(true);
        const int form = pick(0, 9);
        const std::int64_t step = form == 0 ? 2 : form == 1 ? -1 : form == 2 && rich_ ? 3 : 1;
        // Downwards: from high - 1 to low.
        const auto start = step < 0 ? plus(high, -1) : low;
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
        const auto more = step < 0 ? emit(Op::sle, low, v) : emit(Op::slt, v, high);
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
            } else {
                access();
            }
        }
        variables_.pop_back();
        const auto next = plus(v, step);
        f().blocks[current_].exit = Exit::jump;
        f().blocks[current_].edges = {{header, {{v, next}}}};
        current_ = after;
    }

    // An index: an outer variable, or a constant, shifted so that it is never negative.
    std::int32_t index() {
        if (pick(0, 7) == 0) return constant(pick(0, rich_ ? 30 : 3));
        const auto v =
            variables_[static_cast<std::size_t>(pick(0, static_cast<int>(variables_.size()) - 1))];
        const int form = rich_ ? pick(0, 11) : 11;
        if (form == 0) return plus(v, pick(3, 30));
        if (form == 1) return emit(Op::srem, plus(v, 1), constant(pick(2, 5)));
        if (form == 2) return plus(emit(Op::mul, v, constant(pick(2, 20))), 1);
        if (form == 3) return emit(Op::add, plus(v, 1), variables_.front());
        return plus(v, pick(0, 3) == 0 ? pick(1, 2) : 1);
    }

    void access() {
        const auto array = pick(0, static_cast<int>(program_.globals.size()) - 1);
        auto address = constant(0, array);
        if (pick(0, 2) > 0) address = emit(Op::offset, address, index(), 8 * 1000);
        address = emit(Op::offset, address, index(), 8);
        const int count = pick(1, 2);
        for (int k = 0; k < count; ++k) {
            Instruction i;
            i.op = k ? Op::store : Op::load;
            i.a = address;
            i.imm = static_cast<std::int64_t>(f().references.size());
            Reference r;
            r.write = k;
            r.size = 8;
            r.array = r.expression = program_.globals[static_cast<std::size_t>(array)].name;
            r.line = static_cast<std::uint32_t>(f().references.size()) + 1;
            f().references.push_back(r);
            f().blocks[current_].code.push_back(i);
        }
    }

    std::mt19937_64 random_;
    bool rich_;
    Program program_;
    std::int32_t registers_ = 0;
    std::int32_t current_ = 0;
    std::vector<std::int32_t> variables_;
};

}  // namespace revisit::predict
