// Objects that may come to lie where others were.
//
// Two things take memory back before a function ends. A block that was freed is handed out again by the
// next allocation, as the allocator likes. And local arrays that are never in use at the same time (of
// scopes that follow each other, of inlined calls) share a place on the stack: the code generator keeps
// one from its first use to the end of its lifetime and lets others have the place before and after.
// The slice gives each object a place of its own, so the reuse between such objects would be missed.
// This finds both; what is found is not called exact.
#include "predict/slice/llvm/places.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/Analysis/CFG.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>

#include "predict/slice/llvm/values.h"

namespace revisit::predict {
namespace {

using llvm::dyn_cast;
using llvm::isa;

constexpr std::size_t kMostLocals = 64;

// What an instruction does to one local.
struct Touch {
    std::size_t local;
    bool ends;
};
using Touches = llvm::DenseMap<const llvm::Instruction*, llvm::SmallVector<Touch, 2>>;

// Notes the uses of a local, through addresses derived from it; false: it has no end of life.
bool note_uses(const llvm::AllocaInst& local, std::size_t number, Touches& touches) {
    bool ends = false;
    llvm::SmallVector<const llvm::Value*, 8> work{&local};
    llvm::SmallPtrSet<const llvm::Value*, 8> seen{&local};
    while (!work.empty())
        for (const auto* user : work.pop_back_val()->users()) {
            const auto* i = dyn_cast<llvm::Instruction>(user);
            if (!i) continue;
            if (const auto* x = dyn_cast<llvm::IntrinsicInst>(i); x && x->isLifetimeStartOrEnd()) {
                if (x->getIntrinsicID() != llvm::Intrinsic::lifetime_end) continue;
                ends = true;
                touches[i].push_back({number, true});
                continue;
            }
            touches[i].push_back({number, false});
            if (i->getType()->isPointerTy() && seen.insert(i).second) work.push_back(i);
        }
    return ends;
}

bool locals_share(const llvm::Function& f) {
    Touches touches;
    std::size_t count = 0;
    for (const auto& i : llvm::instructions(f))
        if (const auto* a = dyn_cast<llvm::AllocaInst>(&i); a && a->isStaticAlloca()) {
            Touches own;
            if (!note_uses(*a, count, own)) continue;
            if (++count > kMostLocals) return true;
            for (auto& [at, what] : own) touches[at].append(what.begin(), what.end());
        }
    if (count < 2) return false;
    llvm::DenseMap<const llvm::BasicBlock*, std::uint64_t> in;
    std::vector<std::uint64_t> together(count, 0);  // in use at the same time
    for (bool changed = true; changed;) {
        changed = false;
        for (const auto& b : f) {
            auto live = in[&b];
            const auto note = [&] {
                for (std::size_t k = 0; k < count; ++k)
                    if (live >> k & 1) together[k] |= live;
            };
            note();
            for (const auto& i : b)
                if (const auto at = touches.find(&i); at != touches.end()) {
                    for (const auto& t : at->second)
                        live = t.ends ? live & ~(std::uint64_t{1} << t.local)
                                      : live | std::uint64_t{1} << t.local;
                    note();
                }
            for (const auto* next : llvm::successors(&b))
                if (auto& to = in[next]; (to | live) != to) {
                    to |= live;
                    changed = true;
                }
        }
    }
    const auto all = count == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1;
    for (std::size_t k = 0; k < count; ++k)
        if (together[k] != 0 && (together[k] & all) != all) return true;
    return false;
}

bool is_release(const llvm::Function* f) {
    const auto n = f->getName();
    return n == "free" || n == "_ZdlPv" || n == "_ZdaPv" || n == "_ZdlPvm" || n == "_ZdaPvm";
}

}  // namespace

std::vector<Doubt> shared_places(llvm::ArrayRef<llvm::Function*> functions) {
    std::vector<Doubt> found;
    std::vector<const llvm::CallBase*> taken, given_back;
    for (const auto* f : functions) {
        if (locals_share(*f))
            found.emplace_back(Doubt::Kind::place, 0,
                               "local variables of " + f->getName().str() +
                                   " that are not used at the same time may share their place");
        for (const auto& i : llvm::instructions(*f))
            if (const auto* c = dyn_cast<llvm::CallBase>(&i); c && c->getCalledFunction()) {
                if (is_allocation(c->getCalledFunction())) taken.push_back(c);
                if (is_release(c->getCalledFunction())) given_back.push_back(c);
            }
    }
    for (const auto* released : given_back)
        for (const auto* again : taken)
            if (released->getFunction() != again->getFunction() ||
                llvm::isPotentiallyReachable(released, again)) {
                found.emplace_back(Doubt::Kind::place,
                                   again->getDebugLoc() ? again->getDebugLoc().getLine() : 0,
                                   "memory is allocated after some was freed: where it lies is the "
                                   "allocator's choice");
                return found;
            }
    return found;
}

}  // namespace revisit::predict
