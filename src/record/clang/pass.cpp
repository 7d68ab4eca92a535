// The clang recorder's pass: writes the address of every access into the thread's slot, inline.
//
// Problem. A program makes an access or more a cycle; whatever is added to one is felt. Idea. What
// costs is not the branch that asks whether the buffer is full but the index in memory: each append
// waits for the store of the one before (store-to-load forwarding). So the place in the slot ("cursor")
// is a value in a register inside a function. It is put into thread-local memory only where control may
// reach other recorded code: before calls and returns, and only where it has moved; it is taken back
// after calls only where it is needed. A run of accesses with nothing of the kind between them is a
// block: one word says which, then come the addresses, at constant offsets from the cursor, which moves
// once; addresses that another tells are left out (derive.cpp). It is checked (one bit of it, see
// abi.h) where the loop closes and where it goes back to memory, not for every block. Exceptions,
// longjmp and coroutines need no care: all are calls, and after a call the cursor is what thread-local
// memory says.
//
// Every body exists twice (copies.cpp). The counting copy writes nothing and moves the cursor by the
// number of accesses; where it meets its bit, the runtime says which copy goes on. A function that
// cannot be copied asks for a place to record, for as long as it runs.
//
// Two older ways to append exist for comparison (papers/, make bench-record).
//
// Measured on a 2-core Neoverse-V1, geometric mean over examples/: see bench/record.py.
#include <llvm/ADT/PostOrderIterator.h>
#include <llvm/Analysis/CFG.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Passes/PassPlugin.h>
#include <llvm/Support/CommandLine.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>
#include <llvm/Transforms/Utils/PromoteMemToReg.h>

#include "record/clang/abi.h"
#include "record/clang/accesses.h"
#include "record/clang/copies.h"
#include "record/clang/recorder.h"

namespace revisit::clang_recorder {
namespace {

using namespace llvm;

static_assert(2 * (REVISIT_BLOCK_ACCESSES + 1) <= REVISIT_UNCHECKED_WORDS);

enum Way { by_pointer, by_call, by_mmu };

// What each way to append is made by. The runtime has its part of the others in a table of this name,
// which is linked where it is referred to.
struct WayEntry {
    const char* runtime;  // null: the default, which needs none
    void (*append)(Recorder&);
};
constexpr WayEntry kWays[] = {
    {nullptr, [](Recorder& recorder) { recorder.append_by_pointer(); }},
    {"__revisit_way_call", append_by_call},
    {"__revisit_way_mmu", append_by_mmu},
};

cl::opt<Way> append_option("revisit-append", cl::desc("how an address is appended"),
                           cl::init(by_pointer),
                           cl::values(clEnumValN(by_pointer, "pointer",
                                                 "cursor in a register (default)"),
                                      clEnumValN(by_call, "call", "branch and call"),
                                      clEnumValN(by_mmu, "mmu", "no check, a closed page")));
cl::opt<bool> copies_option("revisit-copies", cl::init(true),
                            cl::desc("a second body that only counts, for when nothing is recorded"));
cl::opt<bool> derive_option("revisit-derive", cl::init(true),
                            cl::desc("write no address that lies a constant away from another"));
cl::opt<bool> calls_option("revisit-calls", cl::init(true),
                           cl::desc("mark function entry and exit for call contexts"));

}  // namespace

bool Recorder::run() {
    unit_.find_loops(function_);
    add_events(function_, unit_);
    prepare();
    find_steps();
    bool appends = false, calls = false;
    for (auto& [block, steps] : steps_)
        for (const Step& step : steps) {
            appends |= step.words() != 0;
            calls |= step.kind == Step::call;
        }
    if (!appends && !calls) return false;
    if (appends && append_option == by_pointer && copies_option) {
        copies_ = copy_body(function_);
        if (copies_.recording) find_steps();
    }
    if (appends) {
        kWays[append_option].append(*this);
        keep_apart();
    }
    if (calls_option) mark_calls();
    drop_promises();
    return true;
}

void Recorder::find_steps() {
    SmallPtrSet<const Value*, 32> own(copies_.values.begin(), copies_.values.end());
    ReversePostOrderTraversal<Function*> order(&function_);
    SmallVector<BasicBlock*, 32> blocks(order.begin(), order.end());
    // The counting copy is not reached from the entry yet.
    if (copies_.counting)
        for (std::size_t i = 0, n = blocks.size(); i < n; ++i)
            if (BasicBlock* copy = copies_.other.lookup(blocks[i])) blocks.push_back(copy);
    steps_.clear();
    for (BasicBlock* block : blocks) {
        auto& steps = steps_[block] = steps_of(*block, REVISIT_BLOCK_ACCESSES);
        for (Step& step : steps)
            erase_if(step.run, [&](const Access& access) { return own.contains(access.pointer); });
        erase_if(steps,
                 [](const Step& step) { return step.kind == Step::accesses && step.run.empty(); });
        if (append_option != by_pointer || !derive_option) continue;
        for (Step& step : steps) {
            if (!copies_.recording) addresses_.learn(step.run, module_.getDataLayout());
            addresses_.derive(step.run);
        }
    }
}

// Allocas to the top, so that splitting the entry block leaves them in it; and no edge that an invoke
// shares with other jumps, so that there is a place to take the cursor back.
void Recorder::prepare() {
    BasicBlock& entry = function_.getEntryBlock();
    SmallVector<AllocaInst*, 16> allocas;
    for (Instruction& instruction : entry)
        if (auto* alloca = dyn_cast<AllocaInst>(&instruction);
            alloca && isa<Constant>(alloca->getArraySize()))
            allocas.push_back(alloca);
    for (AllocaInst* alloca : reverse(allocas)) alloca->moveBefore(entry, entry.begin());
    SmallVector<InvokeInst*, 8> invokes;
    for (BasicBlock& block : function_)
        if (auto* invoke = dyn_cast<InvokeInst>(block.getTerminator())) invokes.push_back(invoke);
    for (InvokeInst* invoke : invokes)
        if (!invoke->getNormalDest()->getSinglePredecessor())
            SplitEdge(invoke->getParent(), invoke->getNormalDest());
}

namespace {

// Where the cursor is what, per block: `moved`, since it was last in memory; `needed` in its register.
struct Flow {
    bool moved_in = false, moved_out = false, needed_in = false;
};

}  // namespace

void Recorder::append_by_pointer() {
    auto* pointer = PointerType::getUnqual(context_);
    DenseMap<BasicBlock*, Flow> flow;
    for (bool changed = true; changed;) {
        changed = false;
        for (auto& [block, steps] : steps_) {
            bool moved = false;
            for (BasicBlock* before : predecessors(block)) moved |= flow[before].moved_out;
            Flow& here = flow[block];
            here.moved_in = moved;
            for (const Step& step : steps)
                moved = step.words() != 0 || (moved && step.kind != Step::call);
            changed |= moved != here.moved_out;
            here.moved_out = moved;
        }
    }
    // Walks a block's steps backwards; reports what holds before and after each.
    auto walk = [&](BasicBlock* block,
                    function_ref<void(const Step&, bool moved, bool needed_after)> visit) {
        const auto& steps = steps_[block];
        SmallVector<bool, 16> moved(steps.size());
        bool now = flow[block].moved_in;
        for (std::size_t i = 0; i < steps.size(); ++i) {
            moved[i] = now;
            now = steps[i].words() != 0 || (now && steps[i].kind != Step::call);
        }
        bool needed = false;
        for (BasicBlock* after : successors(block)) needed |= flow[after].needed_in;
        for (std::size_t i = steps.size(); i-- > 0;) {
            visit(steps[i], moved[i], needed);
            needed = steps[i].words() != 0 || moved[i];
        }
        return needed;
    };
    for (bool changed = true; changed;) {
        changed = false;
        for (auto& [block, steps] : reverse(steps_)) {
            bool needed = walk(block, [](const Step&, bool, bool) {});
            changed |= needed != flow[block].needed_in;
            flow[block].needed_in = needed;
        }
    }

    BasicBlock& entry = function_.getEntryBlock();
    AllocaInst* cursor =
        IRBuilder<>(&entry, entry.begin()).CreateAlloca(pointer, nullptr, "revisit.cursor");
    auto get = [&](IRBuilder<>& at) { return at.CreateLoad(pointer, cursor); };
    auto from_memory = [&](BasicBlock::iterator where) {
        IRBuilder<> at(where->getParent(), where);
        return at.CreateStore(at.CreateLoad(pointer, tls(at, REVISIT_TLS_CURSOR)), cursor);
    };
    // `leaving`: nothing is written after it before the cursor is taken back.
    SmallVector<std::pair<Instruction*, bool>, 16> checks;
    SmallVector<StoreInst*, 16> taken_back;
    // What was called may have gone over to counting; a block of words must not be counted.
    auto take_back = [&](BasicBlock* block, BasicBlock::iterator where) {
        StoreInst* taken = from_memory(where);
        if (!copies_.counts.contains(block)) taken_back.push_back(taken);
    };

    DenseMap<BasicBlock*, unsigned> order, unchecked;
    for (auto& [block, steps] : steps_) order.try_emplace(block, order.size());
    for (auto& [block, steps] : steps_) {
        // Putting back and taking back around calls.
        walk(block, [&](const Step& step, bool moved, bool needed_after) {
            if (step.words() != 0) return;
            if (moved) {
                IRBuilder<> at(step.at);
                LoadInst* value = get(at);
                at.CreateStore(value, tls(at, REVISIT_TLS_CURSOR));
                checks.emplace_back(value, true);
            }
            if (step.kind == Step::call && needed_after && !step.at->isTerminator())
                take_back(block, std::next(step.at->getIterator()));
        });
        // An invoke is taken back from where it goes.
        bool after_invoke = false;
        for (BasicBlock* before : predecessors(block))
            after_invoke |= isa<InvokeInst>(before->getTerminator()) && !steps_[before].empty() &&
                            steps_[before].back().at == before->getTerminator();
        if (copies_.recording && block == &entry) {
            from_memory(entry.getTerminator()->getIterator());
            Instruction* end = entry.getTerminator();
            IRBuilder<> at(end);
            at.CreateCondBr(has_bit(at, get(at), REVISIT_RECORD_BIT), copies_.recording,
                            copies_.counting);
            end->eraseFromParent();
        } else if ((block == &entry || after_invoke) && flow[block].needed_in) {
            take_back(block, block == &entry ? entry.getFirstNonPHIOrDbgOrAlloca()
                                             : block->getFirstInsertionPt());
        }
    }
    for (auto& [block, steps] : steps_) {
        unsigned words = 0;
        for (BasicBlock* before : predecessors(block))
            words = std::max(words, unchecked.lookup(before));
        for (const Step& step : steps) {
            if (step.kind == Step::call) words = 0;
            if (step.words() == 0) continue;
            if (copies_.counts.contains(block)) {
                words =
                    step.kind == Step::bulk ? 0 : words + 1 + static_cast<unsigned>(step.run.size());
                Instruction* after = count(step, cursor);
                if (words + REVISIT_BLOCK_ACCESSES + 1 > REVISIT_UNCHECKED_WORDS) {
                    checks.emplace_back(after, false);
                    words = 0;
                }
                continue;
            }
            Value* value = nullptr;
            Instruction* last = write(step, [&](IRBuilder<>& at) { return value = get(at); });
            IRBuilder<> at(last);
            auto* moved = at.CreateStore(word_at(at, value, step.words()), cursor);
            words += step.words();
            if (words + REVISIT_BLOCK_ACCESSES + 1 > REVISIT_UNCHECKED_WORDS) {
                checks.emplace_back(moved->getNextNode(), false);
                words = 0;
            }
        }
        // Every cycle has an edge that goes back in this order; one check on it bounds all paths.
        for (BasicBlock* after : successors(block))
            if (words != 0 && order.lookup(after) <= order.lookup(block)) {
                checks.emplace_back(block->getTerminator(), false);
                words = 0;
            }
        unchecked[block] = words;
    }

    is_counting_ = copies_.counts;
    for (StoreInst* taken : taken_back) checks.emplace_back(taken->getNextNode(), false);
    for (auto& [where, leaving] : checks) check(where, leaving, cursor);
    DominatorTree tree(function_);
    SmallVector<AllocaInst*, 32> promoted(copies_.values);
    promoted.push_back(cursor);
    PromoteMemToReg(promoted, tree);
}

// Asks the runtime for a place to go on where the cursor has met its bit. At the end of a loop, the
// answer decides which copy goes on.
void Recorder::check(Instruction* where, bool leaving, AllocaInst* cursor) {
    auto* pointer = PointerType::getUnqual(context_);
    BasicBlock* block = where->getParent();
    const bool counting = is_counting_.contains(block);
    const bool crosses = copies_.backward.contains(block) && where == block->getTerminator();
    const char* name = counting || crosses || leaving ? "__revisit_full" : "__revisit_full_record";
    auto full = module_.getOrInsertFunction(name, pointer, pointer);
    if (auto* callee = dyn_cast<Function>(full.getCallee())) {
        callee->setCallingConv(CallingConv::PreserveMost);
        callee->addFnAttr(Attribute::NoUnwind);
        callee->addFnAttr(Attribute::Cold);
        callee->setVisibility(GlobalValue::HiddenVisibility);
        callee->setDSOLocal(true);
    }
    IRBuilder<> at(where);
    Value* value = at.CreateLoad(pointer, cursor);
    Value* met = has_bit(at, value, counting ? REVISIT_RECORD_BIT : REVISIT_FULL_BIT);
    BasicBlock* head = crosses ? copies_.other.lookup(block->getSingleSuccessor()) : nullptr;
    Instruction* end =
        SplitBlockAndInsertIfThen(met, where, false, MDBuilder(context_).createUnlikelyBranchWeights());
    if (counting) is_counting_.insert(where->getParent());
    at.SetInsertPoint(end);
    auto* call = at.CreateCall(full, {value});
    call->setCallingConv(CallingConv::PreserveMost);
    at.CreateStore(call, cursor);
    if (!head) return;
    Value* records = has_bit(at, call, REVISIT_RECORD_BIT);
    BasicBlock* stay = where->getParent();
    at.CreateCondBr(records, counting ? head : stay, counting ? stay : head);
    end->eraseFromParent();
}

// In the counting copy: what the step's accesses are, without writing them. A length that is known only
// at run time is the runtime's to count. The instruction before which it is done.
Instruction* Recorder::count(const Step& step, AllocaInst* cursor) {
    auto* pointer = PointerType::getUnqual(context_);
    if (step.kind == Step::accesses) {
        IRBuilder<> at(step.run.front().at);
        Value* value = at.CreateLoad(pointer, cursor);
        at.CreateStore(word_at(at, value, static_cast<unsigned>(step.run.size())), cursor);
        return step.run.front().at;
    }
    IRBuilder<> at(step.extent.at);
    at.CreateStore(at.CreateLoad(pointer, cursor), tls(at, REVISIT_TLS_CURSOR));
    call_bulk(at, step);
    at.CreateStore(at.CreateLoad(pointer, tls(at, REVISIT_TLS_CURSOR)), cursor);
    return step.extent.at;
}

// The program has no pointer into a slot. Told so, the code generator moves and pairs stores of both.
void Recorder::keep_apart() {
    for (auto& [block, steps] : steps_)
        for (const Step& step : steps)
            for (const Access& access : step.run)
                access.at->setMetadata(
                    LLVMContext::MD_noalias,
                    MDNode::concatenate(access.at->getMetadata(LLVMContext::MD_noalias),
                                        unit_.slot_scope()));
}

// ENTER before the cursor is first read, LEAVE after it went back: the runtime works on memory's. Only
// a branch when nobody asked for call contexts. Frames left by an exception or a jump are closed by the
// analyzer, which sees the stack pointer.
void Recorder::mark_calls() {
    auto* nothing = Type::getVoidTy(context_);
    auto* pointer = PointerType::getUnqual(context_);
    auto* word = Type::getInt64Ty(context_);
    // The stack pointer at entry; x86 knows it as the place of the return address.
    Intrinsic::ID frame = Triple(module_.getTargetTriple()).isX86() ? Intrinsic::addressofreturnaddress
                                                                    : Intrinsic::sponentry;
    auto mark = [&](Instruction* where, function_ref<void(IRBuilder<>&, Value*)> call) {
        IRBuilder<> at(where);
        Value* want = at.CreateLoad(word, tls(at, REVISIT_TLS_WANT));
        Value* calls = at.CreateICmpNE(at.CreateAnd(want, REVISIT_WANT_CALLS | REVISIT_WANT_FUNCTIONS),
                                       at.getInt64(0));
        at.SetInsertPoint(SplitBlockAndInsertIfThen(calls, where, false,
                                                    MDBuilder(context_).createUnlikelyBranchWeights()));
        call(at, at.CreateIntrinsic(frame, {pointer}, {}));
    };
    SmallVector<Instruction*, 4> exits;
    for (BasicBlock& block : function_) {
        auto* exit = dyn_cast<ReturnInst>(block.getTerminator());
        if (!exit) continue;
        // A tail call leaves before it calls, or it would no longer be one.
        Instruction* before = exit->getPrevNonDebugInstruction();
        auto* call = dyn_cast_or_null<CallInst>(before);
        bool last = exit->getNumOperands() == 0 || exit->getReturnValue() == call;
        exits.push_back(call && last && call->isTailCall() && !call->isInlineAsm() &&
                                !(call->getCalledFunction() && call->getCalledFunction()->isIntrinsic())
                            ? static_cast<Instruction*>(call)
                            : exit);
    }
    auto leave = module_.getOrInsertFunction("__revisit_leave", nothing, pointer);
    // Where a jump or an exception comes back to, deeper frames are over: closed by a stack pointer
    // just below this one's.
    SmallVector<Instruction*, 4> returns;
    for (BasicBlock& block : function_) {
        if (block.isLandingPad()) returns.push_back(&*block.getFirstInsertionPt());
        for (Instruction& instruction : block)
            if (auto* call = dyn_cast<CallInst>(&instruction);
                call && call->hasFnAttr(Attribute::ReturnsTwice))
                returns.push_back(call->getNextNode());
    }
    for (Instruction* back : returns)
        mark(back, [&](IRBuilder<>& at, Value* frame) {
            at.CreateCall(leave, {at.CreateConstGEP1_64(at.getInt8Ty(), frame, ~std::uint64_t{0})});
        });
    auto leave_by_call = module_.getOrInsertFunction("__revisit_leave_by_call", nothing, pointer);
    for (Instruction* exit : exits)
        mark(exit, [&](IRBuilder<>& at, Value* frame) {
            at.CreateCall(isa<ReturnInst>(exit) ? leave : leave_by_call, {frame});
        });
    auto enter = module_.getOrInsertFunction("__revisit_enter", nothing, word, pointer);
    std::uint32_t site = unit_.function_site(function_);
    mark(&*function_.getEntryBlock().getFirstNonPHIOrDbgOrAlloca(), [&](IRBuilder<>& at, Value* frame) {
        at.CreateCall(enter, {unit_.site_number(at, site), frame});
    });
}

// A function that appends writes memory, whatever was known about it before.
void Recorder::drop_promises() {
    auto drop = [](auto& of) {
        of.removeFnAttr(Attribute::Memory);
        of.removeFnAttr(Attribute::NoSync);
        of.removeFnAttr(Attribute::NoFree);
        of.removeFnAttr(Attribute::Speculatable);
    };
    drop(function_);
    for (auto& [block, steps] : steps_)
        for (Step& step : steps)
            if (step.kind == Step::call) {
                auto& call = cast<CallBase>(*step.at);
                drop(call);
                if (Function* callee = call.getCalledFunction()) drop(*callee);
            }
}

namespace {

struct RecordPass : PassInfoMixin<RecordPass> {
    static bool isRequired() { return true; }
    PreservedAnalyses run(Module& module, ModuleAnalysisManager&) {
        Unit unit(module, kWays[append_option].runtime);
        std::vector<Function*> functions;
        for (Function& function : module)
            if (may_record(function)) functions.push_back(&function);
        bool changed = false;
        for (Function* function : functions) changed |= Recorder(*function, unit).run();
        unit.finish();
        return changed ? PreservedAnalyses::none() : PreservedAnalyses::all();
    }
};

}  // namespace
}  // namespace revisit::clang_recorder

extern "C" __attribute__((visibility("default"))) llvm::PassPluginLibraryInfo llvmGetPassPluginInfo() {
    return {LLVM_PLUGIN_API_VERSION, "revisit", "1", [](llvm::PassBuilder& builder) {
                builder.registerOptimizerLastEPCallback(  // LLVM 20 adds the phase of LTO
                    [](llvm::ModulePassManager& passes, llvm::OptimizationLevel, auto...) {
                        passes.addPass(revisit::clang_recorder::RecordPass());
                    });
            }};
}
