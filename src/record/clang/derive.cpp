// Leaves out addresses of a block that another tells.
//
// Problem. What recording costs is the way of the words from one core to another, eight bytes an
// access. Idea. Loops that the compiler unrolled or made vectors of touch the same place again or one a
// constant away: a[i], a[i + 4], and the store to what was just read. Such an access is told by the
// definition of its block, which is sent once; only the first of them has a word.
//
//   load b[j]  load b[j + 2]  load c[j]  load c[j + 2]  store c[j]  store c[j + 2]
//   words: header, b[j], c[j]       before: header and six addresses
//
// Cost. An address is a base and a sum of values times constants (LLVM's collectOffset, and additions
// of constants inside an index); one lookup for each access, at compile time. Source: none known for
// recorders; compilers that merge bounds checks do the same. Measured: two Neoverse-V1 cores, recording
// handed over to a reader that discards it (bench_discard): tiled matrix multiply 0.143 -> 0.053 s
// (native 0.031), five-point stencil 0.217 -> 0.072 (0.046), sparse matrix-vector product 0.137 ->
// 0.107 (0.077). Words per access, x86_64: sparse product 0.71, matrix multiply ijk 0.76, stencil 0.50
// (1.17, 1.13 and 0.61 while values that a copied body keeps in memory were different ones at each
// use).
#include "record/clang/derive.h"

#include <llvm/ADT/MapVector.h>
#include <llvm/IR/Operator.h>

#include <map>

#include "record/stream.h"

namespace revisit::clang_recorder {
namespace {

using namespace llvm;

// A block's words are at least this share of what they stand for: readers have room for so much.
constexpr std::size_t kMostPerWord = REVISIT_DERIVED_MOST;

// The kind of map that collectOffset fills is not the same in all versions of LLVM.
template <typename Map>
Map map_of(bool (GEPOperator::*)(const DataLayout&, unsigned, Map&, APInt&) const);
using Terms = decltype(map_of(&GEPOperator::collectOffset));

// How compilers write an addition that carries nothing.
bool is_disjoint_or(const BinaryOperator& operation) {
    const auto* either = dyn_cast<PossiblyDisjointInst>(&operation);
    return either && either->isDisjoint();
}

bool has_address_of_its_own(const Access& access) {
    // An atomic store may open a lock: what orders the threads looks for its word.
    return access.lane >= 0 || access.at->isAtomic() || access.at->isVolatile();
}

}  // namespace

Addresses::Sum Addresses::sum_of(const Value* pointer, const DataLayout& layout) {
    Sum sum;
    std::map<const void*, std::uint64_t> factors;
    const Value* base = pointer;
    unsigned bits = layout.getIndexTypeSizeInBits(pointer->getType());
    while (const auto* step = dyn_cast<GEPOperator>(base)) {
        APInt constant(bits, 0);
        Terms variable;
        if (bits != 64 || !step->collectOffset(layout, bits, variable, constant)) break;
        bool is_whole = llvm::all_of(variable, [](const auto& term) {
            return term.first->getType()->isIntegerTy(
                64);  // a narrower one is extended, after its own sum wrapped
        });
        if (!is_whole) break;
        sum.offset += constant.getZExtValue();
        for (auto& [value, factor] : variable) {
            const Value* of = value;
            const std::uint64_t times = factor.getZExtValue();
            const auto* add = dyn_cast<BinaryOperator>(of);
            while (add && (add->getOpcode() == Instruction::Add || is_disjoint_or(*add)) &&
                   isa<ConstantInt>(add->getOperand(1))) {
                sum.offset += times * cast<ConstantInt>(add->getOperand(1))->getZExtValue();
                of = add->getOperand(0);
                add = dyn_cast<BinaryOperator>(of);
            }
            factors[of] += times;
        }
        base = step->getPointerOperand();
    }
    sum.base = base;
    sum.terms.assign(factors.begin(), factors.end());
    return sum;
}

Addresses::Key Addresses::key_of(const Access& access) {
    return {access.at, access.flags & REVISIT_WRITE};
}

void Addresses::learn(const std::vector<Access>& run, const DataLayout& layout) {
    for (const Access& access : run) {
        if (has_address_of_its_own(access)) continue;
        auto [found, is_new] = sums_.try_emplace(key_of(access));
        // An instruction with two of a kind (arguments passed by value) is not told apart from itself.
        found->second = is_new ? sum_of(access.pointer, layout) : Sum{};
    }
}

void Addresses::derive(std::vector<Access>& run) const {
    struct Written {
        unsigned word;
        std::uint64_t offset;
    };
    std::map<decltype(Sum{}.key()), Written> written;
    unsigned words = 0;
    std::size_t accesses = 0;
    for (Access& access : run) {
        access.word = -1;
        auto known = sums_.find(key_of(access));
        const Sum sum = known != sums_.end() ? known->second : Sum{};
        auto found = sum.base ? written.find(sum.key()) : written.end();
        accesses++;
        if (found != written.end() && accesses + 1 <= kMostPerWord * (1 + words)) {
            auto offset = static_cast<std::int64_t>(sum.offset - found->second.offset);
            if (offset == static_cast<std::int32_t>(offset)) {
                access.word = static_cast<int>(found->second.word);
                access.offset = static_cast<std::int32_t>(offset);
                continue;
            }
        }
        if (sum.base) written.insert_or_assign(sum.key(), Written{words, sum.offset});
        words++;
    }
}

}  // namespace revisit::clang_recorder
