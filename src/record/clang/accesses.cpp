// Finds what is to be recorded: every load, store, atomic and memory intrinsic that is left after
// optimisation, and the calls that allocate, free and synchronise.
//
// A memory intrinsic of constant length is one access of that many bytes; one of variable length is a
// bulk record. A masked vector access is one guarded access a lane, exact at any granularity. What the
// code generator adds later (register spills, argument copies on the stack) has no place in the source
// and is not seen.
#include "record/clang/accesses.h"

#include <llvm/ADT/StringSet.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>

#include "record/clang/abi.h"

namespace revisit::clang_recorder {
namespace {

using namespace llvm;

// Routines of libc that call nothing back and allocate nothing: the cursor may stay in its register.
bool appends_nothing(StringRef name) {
    static const StringSet<> plain = {"memcpy",
                                      "memmove",
                                      "memset",
                                      "memcmp",
                                      "memchr",
                                      "memrchr",
                                      "bcmp",
                                      "mempcpy",
                                      "strlen",
                                      "strnlen",
                                      "strcmp",
                                      "strncmp",
                                      "strcpy",
                                      "strncpy",
                                      "stpcpy",
                                      "strcat",
                                      "strncat",
                                      "strchr",
                                      "strrchr",
                                      "strstr",
                                      "strspn",
                                      "strcspn",
                                      "strpbrk",
                                      "strtok",
                                      "strtol",
                                      "strtoul",
                                      "strtoll",
                                      "strtoull",
                                      "strtod",
                                      "strtof",
                                      "atoi",
                                      "atol",
                                      "atoll",
                                      "atof",
                                      "abs",
                                      "labs",
                                      "rand",
                                      "srand",
                                      "random",
                                      "rand_r",
                                      "drand48",
                                      "lrand48",
                                      "toupper",
                                      "tolower",
                                      "isalpha",
                                      "isdigit",
                                      "isspace",
                                      "isalnum",
                                      "__ctype_b_loc",
                                      "__ctype_tolower_loc",
                                      "__ctype_toupper_loc",
                                      "__errno_location",
                                      "clock_gettime",
                                      "gettimeofday",
                                      "time",
                                      "clock",
                                      "getpid",
                                      "putchar_unlocked"};
    static const StringSet<> math = {
        "sqrt",   "cbrt",      "sin",    "cos",    "tan",   "asin",     "acos",     "atan",  "atan2",
        "sinh",   "cosh",      "tanh",   "exp",    "exp2",  "expm1",    "log",      "log2",  "log10",
        "log1p",  "pow",       "fmod",   "hypot",  "fma",   "floor",    "ceil",     "round", "trunc",
        "rint",   "nearbyint", "lround", "lrint",  "ldexp", "frexp",    "modf",     "erf",   "erfc",
        "tgamma", "lgamma",    "fabs",   "fmin",   "fmax",  "copysign", "sincos",   "asinh", "acosh",
        "atanh",  "llround",   "llrint", "scalbn", "logb",  "ilogb",    "remainder"};
    if (plain.contains(name) || math.contains(name)) return true;
    return (name.ends_with("f") || name.ends_with("l")) && math.contains(name.drop_back());
}

void add_masked(std::vector<Access>& out, Instruction* at, Value* pointer, Value* mask, Type* type,
                std::uint32_t flags) {
    auto* vector = cast<FixedVectorType>(type);
    auto bytes = at->getDataLayout().getTypeStoreSize(vector->getElementType()).getFixedValue();
    for (unsigned lane = 0; lane < vector->getNumElements(); ++lane)
        out.push_back({at, pointer, static_cast<std::uint32_t>(bytes), flags | REVISIT_GUARDED, mask,
                       static_cast<int>(lane)});
}

// What one instruction accesses: constant-size accesses into `out`, others into `bulk`.
void accesses_of(Instruction& instruction, std::vector<Access>& out, std::vector<Bulk>& bulk) {
    if (instruction.hasMetadata(LLVMContext::MD_nosanitize)) return;
    const DataLayout& layout = instruction.getDataLayout();
    auto in_memory = [](Value* pointer) {
        return pointer->getType()->getPointerAddressSpace() == 0 && !pointer->isSwiftError();
    };
    auto add = [&](Value* pointer, TypeSize size, std::uint32_t flags) {
        if (!in_memory(pointer) || size.isZero()) return;
        if (size.isScalable()) {
            IRBuilder<> at(&instruction);
            bulk.push_back({&instruction, pointer, at.CreateTypeSize(at.getInt64Ty(), size), flags});
        } else {
            out.push_back(
                {&instruction, pointer, static_cast<std::uint32_t>(size.getFixedValue()), flags});
        }
    };
    auto add_extent = [&](Value* pointer, Value* length, std::uint32_t flags) {
        if (!in_memory(pointer)) return;
        if (auto* known = dyn_cast<ConstantInt>(length); known && known->getZExtValue() < (1u << 31)) {
            add(pointer, TypeSize::getFixed(known->getZExtValue()), flags);
        } else {
            IRBuilder<> at(&instruction);
            bulk.push_back(
                {&instruction, pointer, at.CreateZExtOrTrunc(length, at.getInt64Ty()), flags});
        }
    };
    auto atomic = [](bool is) -> std::uint32_t { return is ? REVISIT_ATOMIC : 0; };

    if (auto* load = dyn_cast<LoadInst>(&instruction))
        return add(load->getPointerOperand(), layout.getTypeStoreSize(load->getType()),
                   atomic(load->isAtomic()));
    if (auto* store = dyn_cast<StoreInst>(&instruction))
        return add(store->getPointerOperand(),
                   layout.getTypeStoreSize(store->getValueOperand()->getType()),
                   REVISIT_WRITE | atomic(store->isAtomic()));
    if (auto* update = dyn_cast<AtomicRMWInst>(&instruction))
        return add(update->getPointerOperand(), layout.getTypeStoreSize(update->getType()),
                   REVISIT_WRITE | REVISIT_ATOMIC);
    if (auto* exchange = dyn_cast<AtomicCmpXchgInst>(&instruction))
        return add(exchange->getPointerOperand(),
                   layout.getTypeStoreSize(exchange->getNewValOperand()->getType()),
                   REVISIT_WRITE | REVISIT_ATOMIC);
    if (auto* transfer = dyn_cast<AnyMemTransferInst>(&instruction)) {
        add_extent(transfer->getRawSource(), transfer->getLength(), 0);
        return add_extent(transfer->getRawDest(), transfer->getLength(), REVISIT_WRITE);
    }
    if (auto* set = dyn_cast<AnyMemSetInst>(&instruction))
        return add_extent(set->getRawDest(), set->getLength(), REVISIT_WRITE);

    auto* call = dyn_cast<CallBase>(&instruction);
    if (!call) return;
    // An argument passed by value is copied by the call: its source is read.
    for (unsigned i = 0; i < call->arg_size(); ++i)
        if (call->isByValArgument(i))
            add(call->getArgOperand(i), layout.getTypeStoreSize(call->getParamByValType(i)), 0);

    auto* intrinsic = dyn_cast<IntrinsicInst>(call);
    if (!intrinsic) return;
    auto operand = [&](unsigned i) { return intrinsic->getArgOperand(i); };
    auto masked = [&](Value* pointer, Value* mask, Type* type, std::uint32_t flags) {
        if (isa<ScalableVectorType>(type))
            return add(pointer, layout.getTypeStoreSize(type), flags);  // the extent it may touch
        if (!in_memory(pointer->getType()->isVectorTy()
                           ? UndefValue::get(pointer->getType()->getScalarType())
                           : pointer))
            return;
        add_masked(out, &instruction, pointer, mask, type, flags);
    };
    switch (intrinsic->getIntrinsicID()) {
        case Intrinsic::masked_load:
            return masked(operand(0), operand(2), intrinsic->getType(), 0);
        case Intrinsic::masked_store:
            return masked(operand(1), operand(3), operand(0)->getType(), REVISIT_WRITE);
        case Intrinsic::masked_gather:
            if (isa<ScalableVectorType>(intrinsic->getType())) return;
            return masked(operand(0), operand(2), intrinsic->getType(), 0);
        case Intrinsic::masked_scatter:
            if (isa<ScalableVectorType>(operand(0)->getType())) return;
            return masked(operand(1), operand(3), operand(0)->getType(), REVISIT_WRITE);
        default:
            break;
    }
    // Target intrinsics such as aarch64.neon.ld2: one pointer, and as many bytes as the vectors have.
    if (!intrinsic->getCalledFunction()->isTargetIntrinsic() || !intrinsic->onlyAccessesArgMemory())
        return;
    Value* pointer = nullptr;
    std::uint64_t stored = 0;
    for (Value* value : intrinsic->args()) {
        if (value->getType()->isPointerTy()) pointer = pointer ? nullptr : value;
        if (auto* vector = dyn_cast<FixedVectorType>(value->getType()))
            stored += layout.getTypeStoreSize(vector).getFixedValue();
    }
    if (!pointer) return;
    if (intrinsic->mayWriteToMemory() && stored != 0)
        add(pointer, TypeSize::getFixed(stored), REVISIT_WRITE);
    else if (intrinsic->onlyReadsMemory() && intrinsic->getType()->isSized())
        add(pointer, layout.getTypeStoreSize(intrinsic->getType()), 0);
}

bool needs_cursor_in_memory(const CallBase& call) {
    if (call.isInlineAsm()) return false;
    const Function* callee = call.getCalledFunction();
    if (!callee) return true;
    return !callee->isIntrinsic() && !appends_nothing(callee->getName());
}

// What the runtime learns about a call, by the callee's name. Arguments are numbered from 0.
struct Event {
    enum Kind { none, alloc, alloc_out, realloc, free, map, unmap, remap, sync } kind = none;
    int size = 0, count = -1;   // arguments that make up the size, of what is new
    int before = 0, after = 0;  // REVISIT_SYNC_… before and after the call; 0 = nothing
};

Event event_of(StringRef name) {
    static const StringMap<Event> known = {
        {"malloc", {Event::alloc, 0}},
        {"valloc", {Event::alloc, 0}},
        {"calloc", {Event::alloc, 0, 1}},
        {"aligned_alloc", {Event::alloc, 1}},
        {"memalign", {Event::alloc, 1}},
        {"mmap", {Event::map, 1}},
        {"mmap64", {Event::map, 1}},
        {"posix_memalign", {Event::alloc_out, 2}},
        {"realloc", {Event::realloc, 1}},
        {"reallocarray", {Event::realloc, 1, 2}},
        {"free", {Event::free}},
        {"munmap", {Event::unmap}},
        {"mremap", {Event::remap, 2}},
        {"pthread_mutex_lock", {Event::sync, 0, -1, 0, REVISIT_SYNC_LOCK}},
        {"pthread_mutex_trylock", {Event::sync, 0, -1, 0, REVISIT_SYNC_LOCK}},
        {"pthread_mutex_unlock", {Event::sync, 0, -1, REVISIT_SYNC_UNLOCK}},
        {"pthread_rwlock_rdlock", {Event::sync, 0, -1, 0, REVISIT_SYNC_LOCK}},
        {"pthread_rwlock_wrlock", {Event::sync, 0, -1, 0, REVISIT_SYNC_LOCK}},
        {"pthread_rwlock_unlock", {Event::sync, 0, -1, REVISIT_SYNC_UNLOCK}},
        {"pthread_spin_lock", {Event::sync, 0, -1, 0, REVISIT_SYNC_LOCK}},
        {"pthread_spin_unlock", {Event::sync, 0, -1, REVISIT_SYNC_UNLOCK}},
        {"pthread_cond_wait", {Event::sync, 0, -1, REVISIT_SYNC_UNLOCK, REVISIT_SYNC_WAIT}},
        {"pthread_cond_timedwait", {Event::sync, 0, -1, REVISIT_SYNC_UNLOCK, REVISIT_SYNC_WAIT}},
        {"pthread_cond_signal", {Event::sync, 0, -1, REVISIT_SYNC_SIGNAL}},
        {"pthread_cond_broadcast", {Event::sync, 0, -1, REVISIT_SYNC_SIGNAL}},
        {"pthread_barrier_wait", {Event::sync, 0, -1, REVISIT_SYNC_SIGNAL, REVISIT_SYNC_WAIT}},
        {"sem_post", {Event::sync, 0, -1, REVISIT_SYNC_SIGNAL}},
        {"sem_wait", {Event::sync, 0, -1, REVISIT_SYNC_UNLOCK, REVISIT_SYNC_WAIT}},
        {"pthread_join", {Event::sync, 0, -1, REVISIT_SYNC_REST, REVISIT_SYNC_JOIN}},
        {"_ZNSt6thread4joinEv", {Event::sync, 0, -1, REVISIT_SYNC_REST, REVISIT_SYNC_JOIN}},
        {"_ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE",
         {Event::sync, 0, -1, REVISIT_SYNC_UNLOCK, REVISIT_SYNC_WAIT}},
        {"_ZNSt18condition_variable10notify_oneEv", {Event::sync, 0, -1, REVISIT_SYNC_SIGNAL}},
        {"_ZNSt18condition_variable10notify_allEv", {Event::sync, 0, -1, REVISIT_SYNC_SIGNAL}},
        // OpenMP, as clang calls it: what a thread did before is known to all that go on after.
        {"__kmpc_barrier", {Event::sync, 0, -1, REVISIT_SYNC_SIGNAL, REVISIT_SYNC_WAIT}},
        {"__kmpc_fork_call", {Event::sync, 0, -1, REVISIT_SYNC_SIGNAL, REVISIT_SYNC_JOIN}},
        {"__kmpc_critical", {Event::sync, 0, -1, 0, REVISIT_SYNC_LOCK}},
        {"__kmpc_end_critical", {Event::sync, 0, -1, REVISIT_SYNC_UNLOCK}},
        {"__kmpc_reduce", {Event::sync, 0, -1, REVISIT_SYNC_UNLOCK, REVISIT_SYNC_LOCK}},
        {"__kmpc_end_reduce", {Event::sync, 0, -1, REVISIT_SYNC_UNLOCK}},
        {"__kmpc_reduce_nowait", {Event::sync, 0, -1, REVISIT_SYNC_UNLOCK, REVISIT_SYNC_LOCK}},
        {"__kmpc_end_reduce_nowait", {Event::sync, 0, -1, REVISIT_SYNC_UNLOCK}},
    };
    if (auto it = known.find(name); it != known.end()) return it->second;
    if (name.starts_with("_Znwm") || name.starts_with("_Znam")) return {Event::alloc, 0};
    if (name.starts_with("_ZdlPv") || name.starts_with("_ZdaPv")) return {Event::free};
    return {};
}

void add_event(CallBase& call, const Event& event, Unit& unit) {
    Module& module = *call.getModule();
    LLVMContext& context = module.getContext();
    auto* pointer = PointerType::getUnqual(context);
    auto* word = Type::getInt64Ty(context);
    auto* nothing = Type::getVoidTy(context);
    auto argument = [&](int i) { return call.getArgOperand(static_cast<unsigned>(i)); };

    IRBuilder<> before(&call);
    Instruction* next = nullptr;
    if (auto* invoke = dyn_cast<InvokeInst>(&call)) {
        BasicBlock* normal = invoke->getNormalDest();
        if (!normal->getSinglePredecessor()) normal = SplitEdge(invoke->getParent(), normal);
        next = &*normal->getFirstInsertionPt();
    } else {
        next = call.getNextNode();
    }
    IRBuilder<> after(next);
    before.SetCurrentDebugLocation(call.getDebugLoc());
    after.SetCurrentDebugLocation(call.getDebugLoc());

    auto free_function = module.getOrInsertFunction("__revisit_free", nothing, pointer);
    auto add_new = [&](const char* runtime, Value* address) {
        Value* size = after.CreateZExtOrTrunc(argument(event.size), word);
        if (event.count >= 0)
            size = after.CreateMul(size, after.CreateZExtOrTrunc(argument(event.count), word));
        auto function = module.getOrInsertFunction(runtime, nothing, pointer, word, word);
        after.CreateCall(function, {address, size, unit.site_number(after, unit.site(call, false))});
    };
    auto add_alloc = [&](Value* address) { add_new("__revisit_alloc", address); };
    auto add_unmap = [&] {
        auto unmap = module.getOrInsertFunction("__revisit_unmap", nothing, pointer, word);
        before.CreateCall(unmap, {argument(0), before.CreateZExtOrTrunc(argument(1), word)});
    };
    auto add_sync = [&](IRBuilder<>& at, int kind) {
        if (kind == 0) return;
        Value* object = argument(0);
        if (!object->getType()->isPointerTy()) object = at.CreateIntToPtr(object, pointer);
        auto sync = module.getOrInsertFunction("__revisit_sync", nothing, word, pointer);
        at.CreateCall(sync, {at.getInt64(static_cast<std::uint64_t>(kind)), object});
    };
    switch (event.kind) {
        case Event::none:
            return;
        case Event::alloc:
            return add_alloc(&call);
        case Event::alloc_out: {
            auto* address = after.CreateLoad(pointer, argument(0));
            address->setNoSanitizeMetadata();
            return add_alloc(address);
        }
        case Event::realloc:
            before.CreateCall(free_function, {argument(0)});
            return add_alloc(&call);
        case Event::free:
            before.CreateCall(free_function, {argument(0)});
            return;
        case Event::map:
            return add_new("__revisit_map", &call);
        case Event::unmap:
            return add_unmap();
        case Event::remap:
            add_unmap();
            return add_new("__revisit_map", &call);
        case Event::sync:
            add_sync(before, event.before);
            add_sync(after, event.after);
            return;
    }
}

// The body of an OpenMP region: it returns into a barrier of the library's.
bool is_parallel_region(const Function& function) {
    return function.getName().contains(".omp_outlined") && !function.getName().contains("_debug__") &&
           !function.arg_empty() && function.getArg(0)->getType()->isPointerTy();
}

void add_region_end(Function& function) {
    Module& module = *function.getParent();
    auto sync = module.getOrInsertFunction("__revisit_sync", Type::getVoidTy(module.getContext()),
                                           Type::getInt64Ty(module.getContext()),
                                           PointerType::getUnqual(module.getContext()));
    for (BasicBlock& block : function)
        if (auto* exit = dyn_cast<ReturnInst>(block.getTerminator())) {
            IRBuilder<> at(exit);
            at.CreateCall(sync, {at.getInt64(REVISIT_SYNC_SIGNAL), function.getArg(0)});
        }
}

}  // namespace

bool may_record(const Function& function) {
    if (function.isDeclaration() || function.hasAvailableExternallyLinkage()) return false;
    if (function.hasFnAttribute(Attribute::Naked) || function.isPresplitCoroutine()) return false;
    if (function.hasFnAttribute(Attribute::DisableSanitizerInstrumentation)) return false;
    if (function.getName().starts_with("__revisit_") || function.getName().starts_with("revisit."))
        return false;
    for (const GlobalIFunc& resolved : function.getParent()->ifuncs())
        if (resolved.getResolverFunction() == &function) return false;
    return !appends_nothing(function.getName());
}

void add_events(Function& function, Unit& unit) {
    SmallVector<std::pair<CallBase*, Event>, 8> found;
    for (Instruction& instruction : instructions(function)) {
        auto* call = dyn_cast<CallBase>(&instruction);
        if (!call || !call->getCalledFunction() || call->isMustTailCall() || isa<CallBrInst>(call))
            continue;
        if (call->arg_empty() || function.getName() == call->getCalledFunction()->getName()) continue;
        Event event = event_of(call->getCalledFunction()->getName());
        auto arguments = static_cast<int>(call->arg_size());
        if (event.kind != Event::none && event.size < arguments && event.count < arguments)
            found.emplace_back(call, event);
    }
    for (auto& [call, event] : found) add_event(*call, event, unit);
    if (is_parallel_region(function)) add_region_end(function);
}

std::vector<Step> steps_of(BasicBlock& block, unsigned block_max) {
    std::vector<Step> steps;
    std::vector<Access> accesses;
    std::vector<Bulk> bulk;
    std::vector<Instruction*> order;
    for (Instruction& instruction : block) order.push_back(&instruction);
    for (Instruction* instruction : order) {
        accesses.clear();
        bulk.clear();
        accesses_of(*instruction, accesses, bulk);
        for (Access& access : accesses) {
            if (steps.empty() || steps.back().kind != Step::accesses ||
                steps.back().run.size() >= block_max)
                steps.push_back({Step::accesses, {}});
            steps.back().run.push_back(access);
        }
        for (Bulk& extent : bulk) steps.push_back({Step::bulk, {}, extent});
        auto* call = dyn_cast<CallBase>(instruction);
        if (call && needs_cursor_in_memory(*call))
            steps.push_back({Step::call, {}, {}, instruction});
        else if (isa<ReturnInst, ResumeInst>(instruction))
            steps.push_back({Step::exit, {}, {}, instruction});
    }
    return steps;
}

}  // namespace revisit::clang_recorder
