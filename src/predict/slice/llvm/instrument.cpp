// A program that writes down what decides: the numbers that one function reads in its first call.
//
// Problem. A sparse product does what its index arrays say, and the source does not have them.
// Idea. The slicer knows which loads decide an address or a branch. Each of them gets a call that notes
// address and value; at the function's entry its arguments and the globals are noted, so that an
// address is an entry of an array again. The rest of the program stays as it is and computes what it
// always does. Accesses are not recorded here: the prediction finds those.
// Cost. A call for each such load, 25 bytes in the file.
#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>

#include "predict/slice/llvm/lower.h"
#include "predict/slice/llvm/slicer.h"
#include "predict/slice/llvm/values.h"

namespace revisit::predict {

using llvm::dyn_cast;

std::vector<llvm::LoadInst*> Slicer::deciding_loads() const {
    std::vector<llvm::LoadInst*> loads;
    for (auto* f : functions_)
        for (auto& i : llvm::instructions(*f))
            if (auto* l = dyn_cast<llvm::LoadInst>(&i); l && needed_.count(l) &&
                                                        l->getType()->isIntegerTy() &&
                                                        l->getType()->getIntegerBitWidth() % 8 == 0)
                loads.push_back(l);
    return loads;
}

std::string Slicer::input_name(const llvm::Value* v) const {
    const auto at = inputs_.find(v);
    return at == inputs_.end() ? std::string() : at->second;
}

bool instrument(llvm::Module& module, const std::string& function) {
    auto* entry = module.getFunction(function);
    if (!entry || entry->isDeclaration()) return false;
    Slicer slicer(module, *entry);
    (void)slicer.run();
    auto& context = module.getContext();
    auto* number = llvm::Type::getInt64Ty(context);
    auto* pointer = llvm::PointerType::get(context, 0);
    auto* nothing = llvm::Type::getVoidTy(context);
    const auto note = module.getOrInsertFunction("revisit_note", nothing, pointer, number, number);
    const auto load = module.getOrInsertFunction("revisit_note_load", nothing, number, number, number);
    const auto level = module.getOrInsertFunction("revisit_note_call", nothing, number);
    for (auto* l : slicer.deciding_loads()) {
        llvm::IRBuilder<> build(l->getNextNode());
        auto* value = build.CreateSExt(l, number);
        if (const auto name = slicer.input_name(l); !name.empty())
            build.CreateCall(note, {build.CreateGlobalString(name), value, build.getInt64('n')});
        else
            build.CreateCall(load, {build.CreatePtrToInt(l->getPointerOperand(), number), value,
                                    build.getInt64(l->getType()->getIntegerBitWidth() / 8)});
    }
    for (auto& i : llvm::instructions(*entry))
        if (llvm::isa<llvm::ReturnInst>(i))
            llvm::IRBuilder<>(&i).CreateCall(level, {llvm::ConstantInt::getSigned(number, -1)});
    llvm::IRBuilder<> build(&*entry->getEntryBlock().getFirstNonPHIOrDbgOrAlloca());
    build.CreateCall(level, {build.getInt64(1)});
    for (auto& a : entry->args()) {
        const bool address = a.getType()->isPointerTy();
        if (!address && !a.getType()->isIntegerTy()) continue;
        if (!address && a.getType()->getIntegerBitWidth() > 64) continue;
        auto* value = address ? build.CreatePtrToInt(&a, number) : build.CreateSExt(&a, number);
        build.CreateCall(note, {build.CreateGlobalString(source_name(&a)), value,
                                build.getInt64(address ? 'p' : 'n')});
    }
    for (auto& g : module.globals())
        if (g.getValueType()->isSized() && !g.isThreadLocal() && !g.isConstant() &&
            !g.getName().starts_with("llvm."))
            build.CreateCall(note, {build.CreateGlobalString(g.getName()),
                                    build.CreatePtrToInt(&g, number), build.getInt64('p')});
    return true;
}

const char* const kNotes = R"(
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static FILE *file;
static long calls, depth;
void revisit_note_call(long by) {
  if (by > 0 && depth == 0 && calls++ == 0 && getenv("REVISIT_NOTES")) file = fopen(getenv("REVISIT_NOTES"), "wb");
  depth += by;
  if (depth == 0 && file) { fclose(file); file = NULL; }
}
void revisit_note(const char *name, long value, long kind) {
  if (!file) return;
  unsigned char head[2] = {(unsigned char)kind, (unsigned char)strlen(name)};
  fwrite(head, 1, 2, file);
  fwrite(name, 1, head[1], file);
  fwrite(&value, 8, 1, file);
}
void revisit_note_load(long address, long value, long bytes) {
  if (!file) return;
  unsigned char head[2] = {'l', (unsigned char)bytes};
  fwrite(head, 1, 2, file);
  fwrite(&address, 8, 1, file);
  fwrite(&value, 8, 1, file);
}
)";

}  // namespace revisit::predict
