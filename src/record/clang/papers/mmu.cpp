// Algorithm 2 of Shen and Shaw (2008, section 3), for comparison: the cursor is read, the words are
// written (any may fault, and the handler then moves the cursor to another slot), the cursor is read
// again and moved past them. A pair of stores that the machine makes one would straddle both pages that
// are closed in turn, and fault for ever: they are volatile.
#include "record/clang/recorder.h"

namespace revisit::clang_recorder {

void append_by_mmu(Recorder& recorder) {
    using namespace llvm;
    auto* pointer = PointerType::getUnqual(recorder.context());
    for (auto& [block, steps] : recorder.steps())
        for (Step& step : steps) {
            if (step.words() == 0) continue;
            Instruction* last = recorder.write(
                step,
                [&](IRBuilder<>& at) {
                    return at.CreateLoad(pointer, recorder.tls(at, REVISIT_TLS_CURSOR),
                                         /*isVolatile=*/true);
                },
                true);
            // The words must be out before the cursor is read again.
            IRBuilder<> at(last);
            at.CreateFence(AtomicOrdering::SequentiallyConsistent, SyncScope::SingleThread);
            Value* place = recorder.tls(at, REVISIT_TLS_CURSOR);
            Value* now = at.CreateLoad(pointer, place, true);
            at.CreateStore(recorder.word_at(at, now, step.words()), place, true);
        }
}

}  // namespace revisit::clang_recorder
