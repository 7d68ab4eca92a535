// Calls: followed, taken as operations of the slice, or named as what could not be followed.
#include <llvm/IR/Constants.h>
#include <llvm/IR/IntrinsicInst.h>

#include "predict/slice/llvm/slicer.h"
#include "predict/slice/llvm/values.h"

namespace revisit::predict {

using llvm::cast;
using llvm::dyn_cast;
using llvm::isa;

void Slicer::write_call(llvm::CallBase& c) {
    auto* callee = c.getCalledFunction();
    if (callee && index_.count(callee)) {
        Call call;
        call.function = static_cast<std::int32_t>(index_[callee]);
        for (auto& a : callee->args())
            call.arguments.push_back(needed_.count(&a) ? reg(c.getArgOperand(a.getArgNo())) : -1);
        if (needed_.count(&c)) call.dst = reg(&c);
        emit(Op::call, c).imm = static_cast<std::int64_t>(out_->calls.size());
        out_->calls.push_back(std::move(call));
        return;
    }
    // In sequence there is one thread.
    if (callee && callee->isDeclaration() && callee->getName().starts_with("omp_get_") &&
        c.getType()->isIntegerTy()) {
        if (!needed_.count(&c)) return;
        const auto one = constant(callee->getName() == "omp_get_thread_num" ||
                                          callee->getName() == "omp_get_level" ||
                                          callee->getName() == "omp_get_dynamic"
                                      ? 0
                                      : 1);
        const auto d = reg(&c);
        auto& copy = emit(Op::copy, c);
        copy.dst = d, copy.a = one;
        return;
    }
    if (const auto in = inputs_.find(&c); in != inputs_.end()) {
        if (!needed_.count(&c)) return;
        const auto value = input(in->second, width_of(c.getType()), Kind::integer);
        const auto d = reg(&c);
        auto& copy = emit(Op::copy, c);
        copy.dst = d, copy.a = value;
        return;
    }
    if (const auto bulk = bulk_access(c)) {
        std::int64_t id = 0;
        if (bulk->from) id = reference(c, bulk->from, false, kAtOnce);
        const auto wrote = reference(c, bulk->to, true, kAtOnce);
        if (!bulk->from) id = wrote;
        const auto to = reg(bulk->to), length = reg(bulk->length);
        const auto from = bulk->from ? reg(bulk->from) : -1;
        const auto byte = bulk->byte ? reg(bulk->byte) : -1;
        auto& out = emit(bulk->from ? Op::move : Op::fill, c);
        out.a = to;
        out.b = bulk->from ? from : length;
        out.c = bulk->from ? length : byte;
        out.imm = id;
        // What a routine called by name returns is where it wrote.
        if (needed_.count(&c)) {
            const auto d = reg(&c);
            auto& copy = emit(Op::copy, c);
            copy.dst = d, copy.a = to;
        }
        return;
    }
    if (auto* i = dyn_cast<llvm::IntrinsicInst>(&c)) {
        using I = llvm::Intrinsic::IndependentIntrinsics;
        switch (static_cast<I>(i->getIntrinsicID())) {
            case I::smax:
            case I::smin:
            case I::umax:
            case I::umin:
                if (needed_.count(i)) {
                    const auto id = i->getIntrinsicID();
                    write_op(id == I::smax   ? Op::smax
                             : id == I::smin ? Op::smin
                             : id == I::umax ? Op::umax
                                             : Op::umin,
                             *i, i->getArgOperand(0), i->getArgOperand(1));
                }
                return;
            case I::abs:
                if (needed_.count(i)) write_op(Op::abs, *i, i->getArgOperand(0), i->getArgOperand(0));
                return;
            case I::usub_sat:  // the larger of both less the second
                if (needed_.count(i)) {
                    const auto a = reg(i->getArgOperand(0)), b = reg(i->getArgOperand(1)), d = reg(i);
                    const auto larger = next_register();
                    ++extra_;
                    auto& max = emit(Op::umax, c);
                    max.dst = larger, max.a = a, max.b = b;
                    auto& out = emit(Op::sub, c);
                    out.dst = d, out.a = larger, out.b = b;
                }
                return;
            case I::expect:
            case I::threadlocal_address:
                if (needed_.count(i)) write_op(Op::copy, *i, i->getArgOperand(0), i->getArgOperand(0));
                return;
            case I::stacksave: {
                const auto d = reg(i);
                emit(Op::stack_save, c).dst = d;
                return;
            }
            case I::stackrestore: {
                const auto a = reg(i->getArgOperand(0));
                emit(Op::stack_restore, c).a = a;
                return;
            }
            case I::ctpop:
            case I::cttz:
            case I::ctlz:
                if (!needed_.count(i) || write_bits(*i)) return;
                break;
            default:
                if (touches_memory(*i))
                    limit(c, "what " + i->getCalledFunction()->getName().str() +
                                 " touches is not counted");
                break;
        }
    } else if (callee && is_allocation(callee)) {
        if (!needed_.count(&c)) return;
        const auto a = reg(c.getArgOperand(0));
        const auto b =
            c.arg_size() > 1 && callee->getName() != "aligned_alloc" ? reg(c.getArgOperand(1)) : -1;
        const auto aligned = callee->getName() == "aligned_alloc" ? reg(c.getArgOperand(1)) : a;
        const auto d = reg(&c);
        auto& out = emit(Op::allocate, c);
        out.dst = d, out.a = aligned, out.b = b;
        out.imm = promised_alignment(c);
        if (callee->getName() == "calloc") out.width = 8;
        return;
    } else if (!callee || !is_harmless(callee)) {
        const auto what =
            callee ? "calls " + callee->getName().str() +
                         ", which is not in the file: what it touches is not counted"
                   : std::string(c.isInlineAsm() ? "inline assembly" : "calls through a pointer") +
                         ": what it touches is not counted";
        limit(c, what);
    }
    if (needed_.count(&c)) {
        const auto d = reg(&c);
        emit(Op::unknown, c).dst = d;
    }
}

}  // namespace revisit::predict
