// Which function, and what optimised code does of it.
#include <llvm/Analysis/CGSCCPassManager.h>
#include <llvm/Analysis/LoopAnalysisManager.h>
#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/IR/DebugInfoMetadata.h>
#include <llvm/IR/Module.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/TargetParser/Triple.h>

#include "predict/slice/llvm/lower.h"

namespace revisit::predict {

std::string chosen_function(const llvm::Module& module, const std::string& given) {
    if (!given.empty()) return given;
    std::string only;
    for (const auto& f : module) {
        if (f.isDeclaration() || f.getName() == "main") continue;
        if (!only.empty()) return {};
        only = f.getName().str();
    }
    return only;
}

namespace {

// A static variable inside a function: no other code can name it.
bool is_static_local(const llvm::GlobalVariable& g) {
    llvm::SmallVector<llvm::DIGlobalVariableExpression*, 1> described;
    g.getDebugInfo(described);
    for (const auto* d : described)
        if (llvm::isa_and_nonnull<llvm::DILocalScope>(d->getVariable()->getScope())) return true;
    return false;
}

}  // namespace

void optimise(llvm::Module& module, const std::string& function) {
    // Whoever calls the function and fills its arrays is elsewhere: nothing may be concluded from their
    // absence here (write-only arrays deleted, arguments replaced by a caller's constants). Static
    // variables of functions stay as they are: one that is only written is deleted by any compiler.
    for (auto& g : module.globals())
        if (g.hasLocalLinkage() && !is_static_local(g))
            g.setLinkage(llvm::GlobalValue::ExternalLinkage);
    if (auto* f = module.getFunction(function)) {
        f->setLinkage(llvm::GlobalValue::ExternalLinkage);
        f->addFnAttr(llvm::Attribute::NoInline);
        f->removeFnAttr(llvm::Attribute::AlwaysInline);
    }
    llvm::PipelineTuningOptions tuning;
    tuning.LoopUnrolling = tuning.LoopVectorization = tuning.SLPVectorization =
        tuning.LoopInterleaving = false;
    llvm::PassBuilder builder(nullptr, tuning);
    llvm::LoopAnalysisManager loops;
    llvm::FunctionAnalysisManager functions;
    llvm::CGSCCAnalysisManager components;
    llvm::ModuleAnalysisManager modules;
    llvm::TargetLibraryInfoImpl library{llvm::Triple(module.getTargetTriple())};
    library.disableAllFunctions();  // keeps a loop that clears an array from becoming memset
    functions.registerPass([&] { return llvm::TargetLibraryAnalysis(library); });
    builder.registerModuleAnalyses(modules);
    builder.registerCGSCCAnalyses(components);
    builder.registerFunctionAnalyses(functions);
    builder.registerLoopAnalyses(loops);
    builder.crossRegisterProxies(loops, functions, components, modules);
    builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O1).run(module, modules);
}

}  // namespace revisit::predict
