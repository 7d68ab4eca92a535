// From LLVM IR to the slice.
//
// Two passes. The first marks what the slice needs, from the uses backwards: branch conditions,
// addresses, sizes of allocations, and what flows into them through registers, calls and memory. Memory
// is followed by object: a needed load of a local or a global makes the values stored to that object
// needed; a load through an unknown pointer, all stored integers. The second writes the needed
// instructions and every load, store and call in program order. Scalars whose address is never taken
// (all locals at -O0) keep their value in a register beside the access, so that interpreting -O0 code
// needs no memory at all.
#include "predict/slice/llvm/lower.h"

#include <llvm/ADT/DepthFirstIterator.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Demangle/Demangle.h>
#include <llvm/IR/CFG.h>
#include <llvm/IR/Dominators.h>

#include "predict/slice/llvm/places.h"
#include "predict/slice/llvm/slicer.h"
#include "predict/slice/llvm/values.h"

namespace revisit::predict {

using llvm::cast;
using llvm::dyn_cast;
using llvm::isa;

Program Slicer::run() {
    find_inputs();
    for (auto* f : functions_) seed(*f);
    while (!work_.empty()) {
        const auto* v = work_.pop_back_val();
        propagate(v);
    }
    program_.functions.resize(functions_.size());
    for (std::size_t i = 0; i < functions_.size(); ++i) write(*functions_[i], program_.functions[i]);
    for (auto& place : shared_places(functions_)) program_.limits.push_back(std::move(place));
    return std::move(program_);
}

void Slicer::write(llvm::Function& f, Function& out) {
    out_ = &out;
    registers_.clear();
    slots_.clear();
    constants_.clear();
    out.name = f.getName().str();
    for (auto& a : f.args()) {
        Argument arg;
        arg.name = source_name(&a);
        if (arg.name.empty()) arg.name = "arg" + std::to_string(a.getArgNo());
        arg.kind = a.getType()->isIntegerTy()   ? Kind::integer
                   : a.getType()->isPointerTy() ? Kind::pointer
                                                : Kind::other;
        arg.width = width_of(a.getType());
        arg.is_signed = is_signed(a);
        arg.alone = a.hasNoAliasAttr();
        if (packed_.count(&a))
            arg.kind = Kind::other;
        else if (needed_.count(&a))
            arg.reg = reg(&a);
        if (arg.reg >= 0 && a.getType()->isFloatingPointTy()) {  // it decides: an integer, see is_given
            arg.kind = Kind::integer;
            arg.width = kMostBits;
            arg.is_signed = true;
        }
        out.arguments.push_back(std::move(arg));
    }
    llvm::DominatorTree tree(f);
    llvm::LoopInfo loops(tree);
    llvm::DenseMap<const llvm::BasicBlock*, std::int32_t> block_index;
    for (auto& b : f) block_index[&b] = static_cast<std::int32_t>(block_index.size());
    llvm::DenseMap<const llvm::Loop*, std::int32_t> loop_index;
    for (auto* l : loops.getLoopsInPreorder()) {
        loop_index[l] = static_cast<std::int32_t>(out.loops.size());
        Loop loop;
        loop.header = block_index[l->getHeader()];
        loop.parent = l->getParentLoop() ? loop_index[l->getParentLoop()] : -1;
        if (const auto& location = l->getStartLoc()) loop.line = location.getLine();
        find_induction(*l, loop);
        out.loops.push_back(std::move(loop));
    }
    std::size_t number = 0;
    for (auto& b : f) {
        Block block;
        block.name = b.hasName() ? b.getName().str() : "b" + std::to_string(number);
        ++number;
        if (auto* l = loops.getLoopFor(&b)) block.loop = loop_index[l];
        block_ = &block;
        if (&b == &f.getEntryBlock())
            for (auto& a : f.args())
                if (packed_.count(&a) && needed_.count(&a)) write_packed(a, b.front());
        for (auto& i : b) write(i);
        finish(b, block, block_index);
        out.blocks.push_back(std::move(block));
    }
    out.registers = next_register();
}

void Slicer::finish(llvm::BasicBlock& b, Block& block,
                    llvm::DenseMap<const llvm::BasicBlock*, std::int32_t>& index) {
    auto* t = b.getTerminator();
    if (t->getDebugLoc()) block.line = t->getDebugLoc().getLine();
    const auto edge = [&](llvm::BasicBlock* to) {
        Edge e;
        e.block = index[to];
        for (auto& phi : to->phis())
            if (needed_.count(&phi)) {
                const auto from = reg(phi.getIncomingValueForBlock(&b));
                e.moves.push_back({reg(&phi), from});
            }
        block.edges.push_back(std::move(e));
    };
    if (auto* br = dyn_cast<llvm::BranchInst>(t)) {
        block.exit = br->isConditional() ? Exit::branch : Exit::jump;
        if (br->isConditional()) block.value = reg(br->getCondition());
        for (unsigned k = 0; k < br->getNumSuccessors(); ++k) edge(br->getSuccessor(k));
    } else if (auto* sw = dyn_cast<llvm::SwitchInst>(t)) {
        block.exit = Exit::choose;
        block.value = is_register_type(sw->getCondition()->getType()) ? reg(sw->getCondition())
                                                                      : constant(0, -1, false);
        edge(sw->getDefaultDest());
        for (auto& c : sw->cases()) {
            block.cases.push_back(c.getCaseValue()->getValue().sextOrTrunc(64).getSExtValue());
            edge(c.getCaseSuccessor());
        }
    } else if (auto* ret = dyn_cast<llvm::ReturnInst>(t)) {
        block.exit = Exit::leave;
        if (ret->getReturnValue() && needed_.count(ret->getReturnValue()))
            block.value = reg(ret->getReturnValue());
    } else if (auto* invoke = dyn_cast<llvm::InvokeInst>(t)) {
        block.exit = Exit::jump;  // nothing is thrown
        edge(invoke->getNormalDest());
    } else {
        block.exit = Exit::trap;
    }
}

namespace {

// Whether no path leads out of the function. Interpreting one takes all the accesses allowed before it
// is refused.
bool has_no_end(llvm::Function& f) {
    return llvm::none_of(llvm::depth_first(&f.getEntryBlock()),
                         [](const llvm::BasicBlock* b) { return llvm::succ_empty(b); });
}

}  // namespace

Result<Program> lower(llvm::Module& module, const std::string& function) {
    auto* f = module.getFunction(function);
    if (!f || f->isDeclaration()) {
        const auto fitting = functions_named(module, function);
        std::string have;
        for (auto& g : module)
            if (!g.isDeclaration() && !g.hasLinkOnceLinkage())
                have += (have.empty() ? "" : ", ") + readable_name(g.getName().str());
        if (fitting.size() > 1) {
            have.clear();
            for (const auto& name : fitting) have += (have.empty() ? "" : ", ") + llvm::demangle(name);
            return fail(function + " is several functions; give one of: " + have);
        }
        if (have.empty()) return fail("defines no function");
        if (function.empty()) return fail(ErrorCode::no_function, "defines several functions: " + have);
        return fail("no function " + function + "; it defines " + have);
    }
    if (has_no_end(*f)) return fail(readable_name(f->getName().str()) + " has a loop without end");
    return Slicer(module, *f).run();
}

}  // namespace revisit::predict
