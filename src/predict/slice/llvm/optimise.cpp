// What optimised code does of a function.
#include <llvm/Analysis/CGSCCPassManager.h>
#include <llvm/Analysis/LoopAnalysisManager.h>
#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/IR/DebugInfoMetadata.h>
#include <llvm/IR/Module.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Target/TargetOptions.h>
#include <llvm/TargetParser/Triple.h>
#include <llvm/Transforms/IPO/Internalize.h>

#include "predict/slice/llvm/lower.h"

namespace revisit::predict {

namespace {

// A static variable inside a function: no other code can name it.
bool is_static_local(const llvm::GlobalVariable& g) {
    llvm::SmallVector<llvm::DIGlobalVariableExpression*, 1> described;
    g.getDebugInfo(described);
    for (const auto* d : described)
        if (llvm::isa_and_nonnull<llvm::DILocalScope>(d->getVariable()->getScope())) return true;
    return false;
}

// The machine the module is for: what vectors cost there.
std::unique_ptr<llvm::TargetMachine> machine_of(const llvm::Module& module, char level) {
    llvm::InitializeAllTargetInfos();
    llvm::InitializeAllTargets();
    llvm::InitializeAllTargetMCs();
    std::string error;
    const auto* target = llvm::TargetRegistry::lookupTarget(module.getTargetTriple(), error);
    if (!target) return nullptr;
    return std::unique_ptr<llvm::TargetMachine>(target->createTargetMachine(
        module.getTargetTriple(), "", "", {}, std::nullopt, std::nullopt,
        level == '3' ? llvm::CodeGenOptLevel::Aggressive : llvm::CodeGenOptLevel::Default));
}

}  // namespace

void optimise(llvm::Module& module, const std::string& function, char level, bool in_program) {
    if (in_program) {
        // As when the whole program is linked: only main is called from elsewhere. The function stays
        // one, or there would be nothing to predict.
        llvm::internalizeModule(module,
                                [](const llvm::GlobalValue& v) { return v.getName() == "main"; });
        if (auto* f = module.getFunction(function)) {
            f->addFnAttr(llvm::Attribute::NoInline);
            f->removeFnAttr(llvm::Attribute::AlwaysInline);
        }
    }
    // Whoever calls the function and fills its arrays is elsewhere: nothing may be concluded from their
    // absence here (write-only arrays deleted, arguments replaced by a caller's constants). Static
    // variables of functions stay as they are: one that is only written is deleted by any compiler.
    for (auto& g : module.globals())
        if (g.hasLocalLinkage() && !is_static_local(g) && !in_program)
            g.setLinkage(llvm::GlobalValue::ExternalLinkage);
    if (auto* f = in_program ? nullptr : module.getFunction(function)) {
        f->setLinkage(llvm::GlobalValue::ExternalLinkage);
        f->addFnAttr(llvm::Attribute::NoInline);
        f->removeFnAttr(llvm::Attribute::AlwaysInline);
    }
    llvm::PipelineTuningOptions tuning;
    const bool as_written = level == '1';  // loops keep the shape of the source
    tuning.SLPVectorization = true;        // as clang has it from -O2 on, and LLVM alone has not
    if (as_written)
        tuning.LoopUnrolling = tuning.LoopVectorization = tuning.SLPVectorization =
            tuning.LoopInterleaving = false;
    const auto machine = as_written ? nullptr : machine_of(module, level);
    llvm::PassBuilder builder(machine.get(), tuning);
    llvm::LoopAnalysisManager loops;
    llvm::FunctionAnalysisManager functions;
    llvm::CGSCCAnalysisManager components;
    llvm::ModuleAnalysisManager modules;
    llvm::TargetLibraryInfoImpl library{llvm::Triple(module.getTargetTriple())};
    // Keeps a loop that clears an array from becoming memset.
    if (as_written)
        for (const auto f : {llvm::LibFunc_memset, llvm::LibFunc_memcpy, llvm::LibFunc_memmove,
                             llvm::LibFunc_memset_pattern16})
            library.setUnavailable(f);
    functions.registerPass([&] { return llvm::TargetLibraryAnalysis(library); });
    builder.registerModuleAnalyses(modules);
    builder.registerCGSCCAnalyses(components);
    builder.registerFunctionAnalyses(functions);
    builder.registerLoopAnalyses(loops);
    builder.crossRegisterProxies(loops, functions, components, modules);
    builder
        .buildPerModuleDefaultPipeline(level == '3'   ? llvm::OptimizationLevel::O3
                                       : level == '2' ? llvm::OptimizationLevel::O2
                                       : level == 's' ? llvm::OptimizationLevel::Os
                                                      : llvm::OptimizationLevel::O1)
        .run(module, modules);
}

}  // namespace revisit::predict
