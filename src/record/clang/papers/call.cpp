// Algorithm 1 of Shen and Shaw (2008), for comparison: a call stores, counts and compares.
#include "record/clang/recorder.h"

namespace revisit::clang_recorder {

void append_by_call(Recorder& recorder) {
    using namespace llvm;
    auto* nothing = Type::getVoidTy(recorder.context());
    auto* word = Type::getInt64Ty(recorder.context());
    auto begin = recorder.module().getOrInsertFunction("__revisit_append_block", nothing, word);
    auto append = recorder.module().getOrInsertFunction("__revisit_append", nothing, word);
    for (auto& [block, steps] : recorder.steps())
        for (Step& step : steps) {
            if (step.kind == Step::accesses) {
                IRBuilder<> at(step.run.front().at);
                at.CreateCall(begin, {recorder.unit().header(at, recorder.unit().block(step.run))});
                for (const Access& access : step.run) {
                    at.SetInsertPoint(access.at);
                    Value* value = recorder.address(at, access);
                    if (value->getType()->isPointerTy()) value = at.CreatePtrToInt(value, word);
                    at.CreateCall(append, {value});
                }
            } else if (step.kind == Step::bulk) {
                IRBuilder<> at(step.extent.at);
                recorder.call_bulk(at, step);
            }
        }
}

}  // namespace revisit::clang_recorder
