// The slice of a program that decides which memory is touched when.
//
// Predicting reuse needs addresses and control flow, not data: of a kernel's instructions only those
// that feed a branch, an address or a call's control are kept, and everything else (all floating point,
// as a rule) is dropped. What is left is a small register program. The slicer, a helper that links
// libLLVM, writes it as text; this room reads and interprets it and never sees LLVM.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "predict/slice/doubt.h"
#include "revisit/error.h"

namespace revisit::predict {

using Parameters = std::map<std::string, std::int64_t>;  // sizes by name

// Registers hold values sign-extended from their width; one-bit values are 0 or 1.
enum class Op : std::uint8_t {
    add,
    sub,
    mul,
    udiv,
    sdiv,
    urem,
    srem,
    shl,
    lshr,
    ashr,
    bit_and,
    bit_or,
    bit_xor,
    eq,
    ne,
    slt,
    sle,
    ult,
    ule,
    select,
    smin,
    smax,
    umin,
    umax,
    abs,
    trunc,
    zext,
    sext,
    copy,
    offset,    // dst = a + b * imm
    load,      // dst (-1: value not needed) = memory at a; b = slot register or -1; imm = reference;
               // c = -1, or the number of elements up to this end of a vector
    store,     // memory at a = c (-1: not needed); b = slot register or -1; imm = reference
    reserve,   // dst = address of imm * a bytes on the stack, aligned to b
    allocate,  // dst = address of a bytes (times b unless -1) on the heap, aligned to imm at least;
               // cleared if width is 8
    stack_save,
    stack_restore,
    fill,     // memset: a = address, b = length, c = byte or -1, imm = reference
    move,     // memcpy: a = to, b = from, c = length, imm = read reference, the write is imm + 1
    call,     // imm = index into Function::calls
    unknown,  // dst = something only the data knows
};

constexpr bool is_division(Op op) {
    return op >= Op::udiv && op <= Op::srem;
}
constexpr bool is_bitwise(Op op) {
    return op >= Op::bit_and && op <= Op::bit_xor;
}
constexpr bool is_comparison(Op op) {
    return op >= Op::eq && op <= Op::ule;
}
constexpr bool is_clamp(Op op) {  // the smaller or the larger of two
    return op >= Op::smin && op <= Op::umax;
}

struct Instruction {
    Op op = Op::copy;
    std::uint8_t width = 64;
    std::int32_t dst = -1, a = -1, b = -1, c = -1;
    std::int64_t imm = 0;
    std::uint32_t line = 0;
    std::int32_t watch = 0;  // see run/observe.h
};

struct Move {
    std::int32_t to = -1, from = -1;
    bool operator==(const Move&) const = default;
};

struct Edge {
    std::int32_t block = 0;
    std::vector<Move> moves;  // what the phis of `block` receive, all at once
};

enum class Exit : std::uint8_t { jump, branch, choose, leave, trap };

struct Block {
    std::string name;
    std::vector<Instruction> code;
    Exit exit = Exit::leave;
    std::int32_t value = -1;  // branch: condition; choose: selector; leave: result or -1
    std::vector<Edge> edges;  // branch: true, false; choose: default, then the cases
    std::vector<std::int64_t> cases;
    std::int32_t loop = -1;  // innermost loop of the block
    std::uint32_t line = 0;  // of the terminator
    std::int32_t watch = 0;  // of a switch
};

struct Loop {
    std::int32_t header = 0;
    std::int32_t parent = -1;
    std::int32_t induction = -1;  // register that holds its variable when the header starts, or -1
    std::string variable;         // its name in the source
    std::uint32_t line = 0;
};

// One load or store in the text of the program.
struct Reference {
    bool write = false;
    bool pointer = false;  // a pointer is read that decides an address
    std::uint32_t size = 0;
    std::uint64_t element = 0;  // of the end of a vector: bytes of one of its elements
    std::string array;          // what is accessed: "A", "i"
    std::string expression;     // as the bracket notation writes it: "A~i~k"
    std::string file;
    std::uint32_t line = 0;
    std::uint32_t column = 0;
    std::string inlined;  // function the code was written in, when it was inlined from elsewhere
    // Indices with a declared extent: the value must stay below it or rows would alias.
    std::vector<std::pair<std::int32_t, std::uint64_t>> extents;
};

struct Call {
    std::int32_t function = -1;
    std::int32_t dst = -1;
    std::vector<std::int32_t> arguments;  // -1 where the callee does not need it
};

enum class Kind : std::uint8_t { integer, pointer, other };

struct Argument {
    std::string name;
    Kind kind = Kind::other;
    std::int32_t reg = -1;  // -1: not needed
    std::uint8_t width = 64;
    bool is_signed = false;  // as far as debug info says
    bool alone = false;      // a pointer declared restrict: nothing else points there
    bool inside = false;     // read from a place behind another argument, or part of one
};

struct Constant {
    std::int32_t reg = -1;
    std::int32_t global = -1;  // address of a global plus value, or plain value
    std::int64_t value = 0;
    bool known = true;
};

struct Function {
    std::string name;
    std::int32_t registers = 0;
    std::vector<Argument> arguments;
    std::vector<Constant> constants;
    std::vector<Block> blocks;  // the first is the entry
    std::vector<Loop> loops;
    std::vector<Reference> references;
    std::vector<Call> calls;
};

struct Global {
    std::string name;
    std::uint64_t size = 0;
    std::uint64_t align = 1;
    bool constant = false;
    std::uint32_t element = 0;         // bytes of one initial value
    std::vector<std::int64_t> values;  // initial contents where the slice may read them
};

// What an array holds that the program only reads, from outside the source.
struct Table {
    std::string name;
    std::uint32_t element = 0;  // bytes
    std::vector<std::int64_t> values;
    std::vector<bool> known;  // which of them; empty: all
    // Instead of values: any from low to high, by chance.
    bool random = false;
    std::int64_t low = 0, high = 0;
    std::uint64_t seed = 1;

    std::int64_t at(std::uint64_t entry) const {
        if (!random) return values[entry];
        auto mixed = (entry + 1) * 0x9E3779B97F4A7C15ull + seed * 0xD1B54A32D192ED03ull;
        mixed = (mixed ^ (mixed >> 32)) * 0xD6E8FEB86659FD93ull;
        mixed = (mixed ^ (mixed >> 32)) * 0xD6E8FEB86659FD93ull;
        mixed ^= mixed >> 32;
        const auto range = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low) + 1;
        return static_cast<std::int64_t>(static_cast<std::uint64_t>(low) +
                                         (range == 0 ? mixed : mixed % range));
    }
};

struct Program {
    std::vector<Global> globals;
    std::vector<Function> functions;  // the first is the one predicted
    bool memory_needed = false;       // the slice reads integers or pointers from memory
    bool addresses_compared = false;  // control or data may depend on where objects lie
    std::vector<Doubt> limits;        // what could not be followed: external and indirect calls
    std::vector<Table> data;          // given by the user
};

// Exit status of the slicer where the source defines several functions and none is chosen.
inline constexpr int kNoFunctionChosen = 3;

std::string to_text(const Program& program);
Result<std::vector<Program>> programs_from_text(std::string_view text);

// Programs compiled at two sizes have the same shape: same blocks, references and loops.
bool same_shape(const Program& a, const Program& b);

}  // namespace revisit::predict
