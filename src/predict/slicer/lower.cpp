// From LLVM IR to the slice.
//
// Two passes. The first marks what the slice needs, from the uses backwards: branch conditions,
// addresses, sizes of allocations, and what flows into them through registers, calls and memory. Memory
// is followed by object: a needed load of a local or a global makes the values stored to that object
// needed; a load through an unknown pointer, all stored integers. The second writes the needed
// instructions and every load, store and call in program order. Scalars whose address is never taken
// (all locals at -O0) keep their value in a register beside the access, so that interpreting -O0 code
// needs no memory at all.
#include "predict/slicer/lower.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/DenseSet.h>
#include <llvm/ADT/MapVector.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/DebugInfo.h>
#include <llvm/IR/DebugInfoMetadata.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Operator.h>

#include <optional>

#include "predict/slicer/places.h"
#include "predict/slicer/values.h"

namespace revisit::predict {
namespace {

using llvm::cast;
using llvm::dyn_cast;
using llvm::isa;

// Of memory moved at once: the bytes are another operand.
constexpr auto kAtOnce = llvm::TypeSize::getFixed(8);

class Slicer {
 public:
    Slicer(llvm::Module& module, llvm::Function& entry)
        : module_(module), layout_(module.getDataLayout()) {
        reach(entry);
    }

    Program run() {
        for (auto* f : functions_) seed(*f);
        while (!work_.empty()) {
            const auto* v = work_.pop_back_val();
            propagate(v);
        }
        program_.functions.resize(functions_.size());
        for (std::size_t i = 0; i < functions_.size(); ++i)
            write(*functions_[i], program_.functions[i]);
        for (auto& text : shared_places(functions_)) program_.limits.push_back(std::move(text));
        return std::move(program_);
    }

 private:
    void reach(llvm::Function& f) {
        if (!index_.try_emplace(&f, functions_.size()).second) return;
        functions_.push_back(&f);
        for (auto& i : llvm::instructions(f))
            if (auto* call = dyn_cast<llvm::CallBase>(&i))
                if (auto* callee = call->getCalledFunction(); callee && !callee->isDeclaration())
                    reach(*callee);
    }

    void need(const llvm::Value* v) {
        if (!is_register_type(v->getType())) return;
        if (needed_.insert(v).second) work_.push_back(v);
    }

    void seed(llvm::Function& f) {
        for (auto& i : llvm::instructions(f)) {
            if (auto* b = dyn_cast<llvm::BranchInst>(&i)) {
                if (b->isConditional()) need(b->getCondition());
            } else if (auto* s = dyn_cast<llvm::SwitchInst>(&i)) {
                need(s->getCondition());
            } else if (auto* l = dyn_cast<llvm::LoadInst>(&i)) {
                need(l->getPointerOperand());
            } else if (auto* s = dyn_cast<llvm::StoreInst>(&i)) {
                need(s->getPointerOperand());
            } else if (auto* x = dyn_cast<llvm::AtomicRMWInst>(&i)) {
                need(x->getPointerOperand());
            } else if (auto* x = dyn_cast<llvm::AtomicCmpXchgInst>(&i)) {
                need(x->getPointerOperand());
            } else if (auto* a = dyn_cast<llvm::AllocaInst>(&i)) {
                need(a->getArraySize());
            } else if (auto* m = dyn_cast<llvm::AnyMemIntrinsic>(&i)) {
                need(m->getRawDest());
                need(m->getLength());
                if (auto* t = dyn_cast<llvm::AnyMemTransferInst>(m)) need(t->getRawSource());
            } else if (auto* s = dyn_cast<llvm::IntrinsicInst>(&i)) {
                if (s->getIntrinsicID() == llvm::Intrinsic::stackrestore) need(s->getArgOperand(0));
            } else if (auto* c = dyn_cast<llvm::CallBase>(&i)) {
                if (c->getCalledFunction() && is_allocation(c->getCalledFunction()))
                    for (auto& a : c->args()) need(a.get());
            }
        }
    }

    void propagate(const llvm::Value* v) {
        if (const auto* a = dyn_cast<llvm::Argument>(v)) {
            for (const auto* f : functions_)
                for (const auto& i : llvm::instructions(*f))
                    if (const auto* c = dyn_cast<llvm::CallBase>(&i);
                        c && c->getCalledFunction() == a->getParent())
                        need(c->getArgOperand(a->getArgNo()));
            return;
        }
        const auto* i = dyn_cast<llvm::Instruction>(v);
        if (!i) return;
        if (const auto* l = dyn_cast<llvm::LoadInst>(i))
            return need_memory(object_of(l->getPointerOperand()));
        if (const auto* c = dyn_cast<llvm::CallBase>(i)) {
            const auto* callee = c->getCalledFunction();
            if (callee && index_.count(callee)) {
                for (const auto& b : *callee)
                    if (const auto* r = dyn_cast<llvm::ReturnInst>(b.getTerminator());
                        r && r->getReturnValue())
                        need(r->getReturnValue());
            } else {
                for (const auto& a : c->args()) need(a.get());
            }
            return;
        }
        if (isa<llvm::FCmpInst>(i) || isa<llvm::AtomicRMWInst>(i) || isa<llvm::AtomicCmpXchgInst>(i))
            return;
        for (const auto& operand : i->operands())
            if (!isa<llvm::BasicBlock>(operand.get())) need(operand.get());
    }

    // Values stored to `object` matter from now on (null: to anything).
    void need_memory(const llvm::Value* object) {
        if (!needed_objects_.insert(object).second) return;
        const auto* local = object ? dyn_cast<llvm::AllocaInst>(object) : nullptr;
        if (!local || !is_private(local)) program_.memory_needed = true;
        for (const auto* f : functions_)
            for (const auto& i : llvm::instructions(*f))
                if (const auto* s = dyn_cast<llvm::StoreInst>(&i))
                    if (carries(s)) need(s->getValueOperand());
    }

    bool carries(const llvm::StoreInst* s) const {
        if (needed_objects_.empty()) return false;
        const auto* object = object_of(s->getPointerOperand());
        if (object && needed_objects_.count(object)) return true;
        const auto* local = object ? dyn_cast<llvm::AllocaInst>(object) : nullptr;
        if (local && is_private(local)) return false;
        if (needed_objects_.count(nullptr)) return true;
        if (object) return false;
        for (const auto* o :
             needed_objects_) {  // through an unknown pointer: reaches what is not private
            const auto* a = dyn_cast_or_null<llvm::AllocaInst>(o);
            if (!a || !is_private(a)) return true;
        }
        return false;
    }

    std::int32_t global_index(const llvm::GlobalVariable* g) {
        const auto [at, fresh] =
            globals_.try_emplace(g, static_cast<std::int32_t>(program_.globals.size()));
        if (fresh) {
            Global out;
            out.name = g->getName().str();
            if (g->getValueType()->isSized()) out.size = layout_.getTypeAllocSize(g->getValueType());
            out.align = layout_.getPreferredAlign(g).value();
            out.constant = g->isConstant();
            if (g->hasInitializer()) initial_values(*g, out);
            program_.globals.push_back(std::move(out));
        }
        return at->second;
    }

    // Scalars of any global and tables of constant ones; other contents are input.
    void initial_values(const llvm::GlobalVariable& g, Global& out) const {
        const auto* init = g.getInitializer();
        if (const auto* c = dyn_cast<llvm::ConstantInt>(init)) {
            out.element = static_cast<std::uint32_t>(out.size);
            if (g.isConstant() || !c->isZero()) out.values.push_back(c->getSExtValue());
        } else if (const auto* data = dyn_cast<llvm::ConstantDataSequential>(init)) {
            if (g.isConstant() && data->getElementType()->isIntegerTy() &&
                data->getNumElements() < 100000) {
                out.element = static_cast<std::uint32_t>(data->getElementByteSize());
                for (unsigned k = 0; k < data->getNumElements(); ++k)
                    out.values.push_back(data->getElementAsAPInt(k).getSExtValue());
            }
        }
    }

    // --- second pass, one function at a time ---

    void write(llvm::Function& f, Function& out) {
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
            if (needed_.count(&a)) arg.reg = reg(&a);
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
            for (auto& i : b) write(i);
            finish(b, block, block_index);
            out.blocks.push_back(std::move(block));
        }
        out.registers = next_register();
    }

    std::int32_t next_register() const {
        return static_cast<std::int32_t>(registers_.size() + slots_.size() + constants_.size()) +
               extra_;
    }

    std::int32_t fresh(llvm::DenseMap<const llvm::Value*, std::int32_t>& map, const llvm::Value* v) {
        if (const auto at = map.find(v); at != map.end()) return at->second;
        const auto r = next_register();
        map[v] = r;
        return r;
    }

    std::int32_t constant(std::int64_t value, std::int32_t global = -1, bool known = true,
                          const llvm::Value* key = nullptr) {
        const Constant c{next_register(), global, value, known};
        if (key)
            constants_[key] = c.reg;
        else
            ++extra_;
        out_->constants.push_back(c);
        return c.reg;
    }

    std::int32_t reg(const llvm::Value* v) {
        if (const auto* c = dyn_cast<llvm::Constant>(v)) {
            if (const auto at = constants_.find(v); at != constants_.end()) return at->second;
            if (const auto* n = dyn_cast<llvm::ConstantInt>(c)) {
                const auto value = n->getBitWidth() == 1 ? n->getZExtValue()
                                                         : n->getValue().sextOrTrunc(64).getSExtValue();
                // A register for every use: numbers that happen to be equal at this size stay apart.
                return constant(static_cast<std::int64_t>(value));
            }
            if (c->isNullValue()) return constant(0, -1, true, v);
            if (c->getType()->isPointerTy()) {
                llvm::APInt offset(64, 0);
                const auto* base = c->stripAndAccumulateConstantOffsets(layout_, offset, true);
                if (const auto* g = dyn_cast<llvm::GlobalVariable>(base))
                    return constant(offset.getSExtValue(), global_index(g), true, v);
            }
            return constant(0, -1, false, v);
        }
        return fresh(registers_, v);
    }

    void find_induction(llvm::Loop& l, Loop& out) {
        for (auto& phi : l.getHeader()->phis()) {
            if (!phi.getType()->isIntegerTy() || !l.getLoopLatch()) continue;
            const auto* step =
                dyn_cast<llvm::BinaryOperator>(phi.getIncomingValueForBlock(l.getLoopLatch()));
            if (!step || (step->getOperand(0) != &phi && step->getOperand(1) != &phi)) continue;
            if (step->getOpcode() != llvm::Instruction::Add &&
                step->getOpcode() != llvm::Instruction::Sub)
                continue;
            if (out.variable.empty()) out.variable = source_name(&phi);
            if (needed_.count(&phi)) {
                out.induction = reg(&phi);
                out.variable = source_name(&phi);
                return;
            }
        }
        auto* latch = l.getLoopLatch();  // -O0: a local, loaded by the header, stored by the latch
        if (!latch) return;
        for (auto& i : *latch) {
            auto* s = dyn_cast<llvm::StoreInst>(&i);
            auto* a = s ? dyn_cast<llvm::AllocaInst>(s->getPointerOperand()) : nullptr;
            if (!a || !is_private(a) || !a->getAllocatedType()->isIntegerTy()) continue;
            for (auto& j : *l.getHeader())
                if (auto* load = dyn_cast<llvm::LoadInst>(&j); load && load->getPointerOperand() == a) {
                    out.induction = fresh(slots_, a);
                    out.variable = source_name(a);
                    return;
                }
        }
    }

    Instruction& emit(Op op, const llvm::Instruction& from) {
        auto& i = block_->code.emplace_back();
        i.op = op;
        i.width = width_of(from.getType());
        if (const auto& location = from.getDebugLoc()) i.line = location.getLine();
        return i;
    }

    void limit(const llvm::Instruction& i, const std::string& what) {
        program_.limits.push_back(
            (i.getDebugLoc() ? "line " + std::to_string(i.getDebugLoc().getLine()) + ": " : "") + what);
    }

    std::int64_t reference(const llvm::Instruction& i, const llvm::Value* pointer, bool write,
                           llvm::TypeSize size) {
        Reference r;
        r.write = write;
        r.size = static_cast<std::uint32_t>(size.getKnownMinValue());
        if (size.isScalable()) limit(i, "how long a vector is only the machine knows");
        auto d = describe(pointer);
        r.array = d.array;
        r.expression = d.expression;
        if (const auto* location = i.getDebugLoc().get()) {
            r.file = location->getFilename().str();
            r.line = location->getLine();
            r.column = location->getColumn();
            if (location->getInlinedAt()) r.inlined = location->getSubprogramLinkageName().str();
        }
        if (r.inlined.empty() && i.getDebugLoc() && i.getDebugLoc()->getInlinedAt() &&
            i.getDebugLoc()->getScope())
            if (const auto* sub = i.getDebugLoc()->getScope()->getSubprogram())
                r.inlined = sub->getName().str();
        if (const auto* gep = dyn_cast<llvm::GEPOperator>(pointer)) collect_extents(*gep, r);
        out_->references.push_back(std::move(r));
        return static_cast<std::int64_t>(out_->references.size()) - 1;
    }

    // A[i][j] declared [M]: j must stay below M, or it is another row's element.
    void collect_extents(const llvm::GEPOperator& gep, Reference& r) {
        const auto* inner = dyn_cast<llvm::GEPOperator>(gep.getPointerOperand());
        if (inner) collect_extents(*inner, r);
        auto type = gep.getSourceElementType();
        auto index = gep.idx_begin();
        if (index == gep.idx_end()) return;
        for (++index; index != gep.idx_end(); ++index) {
            if (const auto* array = dyn_cast<llvm::ArrayType>(type)) {
                if (!isa<llvm::Constant>(index->get()) && index->get()->getType()->isIntegerTy() &&
                    needed_.count(index->get()))
                    r.extents.emplace_back(reg(index->get()), array->getNumElements());
                type = array->getElementType();
            } else {
                return;
            }
        }
    }

    void write(llvm::Instruction& i) {
        if (i.isTerminator() || isa<llvm::PHINode>(i) || isa<llvm::DbgInfoIntrinsic>(i)) return;
        if (auto* l = dyn_cast<llvm::LoadInst>(&i)) {
            const auto id =
                reference(i, l->getPointerOperand(), false, layout_.getTypeStoreSize(l->getType()));
            const auto a = reg(l->getPointerOperand());
            auto& out = emit(Op::load, i);
            out.a = a;
            out.imm = id;
            out.b = slot(l->getPointerOperand());
            if (needed_.count(l)) out.dst = reg(l);
            return;
        }
        if (auto* s = dyn_cast<llvm::StoreInst>(&i)) {
            const auto size = layout_.getTypeStoreSize(s->getValueOperand()->getType());
            const auto id = reference(i, s->getPointerOperand(), true, size);
            const auto a = reg(s->getPointerOperand());
            const auto value = carries(s) && is_register_type(s->getValueOperand()->getType())
                                   ? reg(s->getValueOperand())
                                   : -1;
            auto& out = emit(Op::store, i);
            out.width = width_of(s->getValueOperand()->getType());
            out.a = a;
            out.c = value;
            out.b = slot(s->getPointerOperand());
            out.imm = id;
            return;
        }
        if (isa<llvm::AtomicRMWInst>(i) || isa<llvm::AtomicCmpXchgInst>(i)) {
            auto* pointer = i.getOperand(0);
            const auto size = layout_.getTypeStoreSize(i.getOperand(1)->getType());
            const auto wrote = reference(i, pointer, true, size);
            const auto a = reg(pointer);
            // One access, as it is one for those who record it.
            auto& out = emit(Op::store, i);
            out.a = a;
            out.imm = wrote;
            if (needed_.count(&i)) emit(Op::unknown, i).dst = reg(&i);
            return;
        }
        if (auto* c = dyn_cast<llvm::CallBase>(&i)) return write_call(*c);
        if (isa<llvm::VAArgInst>(i))
            limit(i, "reads arguments of variable number, which are not counted");
        if (auto* a = dyn_cast<llvm::AllocaInst>(&i)) {
            if (!needed_.count(a)) return;
            const auto count = reg(a->getArraySize());
            const auto r = reg(a);
            auto& out = emit(Op::reserve, i);
            out.dst = r;
            out.a = count;
            out.b = static_cast<std::int32_t>(a->getAlign().value());
            out.imm = static_cast<std::int64_t>(layout_.getTypeAllocSize(a->getAllocatedType()));
            return;
        }
        if (needed_.count(&i)) write_value(i);
    }

    std::int32_t slot(const llvm::Value* pointer) {
        const auto* a = dyn_cast<llvm::AllocaInst>(pointer);
        return a && is_private(a) && is_register_type(a->getAllocatedType()) ? fresh(slots_, a) : -1;
    }

    void write_value(llvm::Instruction& i) {
        if (auto* gep = dyn_cast<llvm::GetElementPtrInst>(&i)) return write_address(*gep);
        const auto binary = [&]() -> std::optional<Op> {
            switch (i.getOpcode()) {
                case llvm::Instruction::Add:
                    return Op::add;
                case llvm::Instruction::Sub:
                    return Op::sub;
                case llvm::Instruction::Mul:
                    return Op::mul;
                case llvm::Instruction::UDiv:
                    return Op::udiv;
                case llvm::Instruction::SDiv:
                    return Op::sdiv;
                case llvm::Instruction::URem:
                    return Op::urem;
                case llvm::Instruction::SRem:
                    return Op::srem;
                case llvm::Instruction::Shl:
                    return Op::shl;
                case llvm::Instruction::LShr:
                    return Op::lshr;
                case llvm::Instruction::AShr:
                    return Op::ashr;
                case llvm::Instruction::And:
                    return Op::bit_and;
                case llvm::Instruction::Or:
                    return Op::bit_or;
                case llvm::Instruction::Xor:
                    return Op::bit_xor;
                default:
                    return std::nullopt;
            }
        }();
        if (!is_register_type(i.getType()) || !in_registers(i)) {
            const auto d = reg(&i);
            emit(Op::unknown, i).dst = d;
            return;
        }
        if (binary) return write_op(*binary, i, i.getOperand(0), i.getOperand(1));
        if (auto* c = dyn_cast<llvm::ICmpInst>(&i)) return write_compare(*c);
        if (isa<llvm::SelectInst>(i)) {
            const auto a = reg(i.getOperand(0)), b = reg(i.getOperand(1)), c = reg(i.getOperand(2)),
                       d = reg(&i);
            auto& out = emit(Op::select, i);
            out.dst = d, out.a = a, out.b = b, out.c = c;
            return;
        }
        if (isa<llvm::TruncInst>(i) || isa<llvm::ZExtInst>(i) || isa<llvm::SExtInst>(i) ||
            isa<llvm::BitCastInst>(i) || isa<llvm::PtrToIntInst>(i) || isa<llvm::IntToPtrInst>(i) ||
            isa<llvm::FreezeInst>(i) || isa<llvm::AddrSpaceCastInst>(i)) {
            if (is_register_type(i.getOperand(0)->getType())) {
                program_.addresses_compared |= isa<llvm::PtrToIntInst>(i);
                const auto a = reg(i.getOperand(0)), d = reg(&i);
                const auto op = isa<llvm::TruncInst>(i)  ? Op::trunc
                                : isa<llvm::ZExtInst>(i) ? Op::zext
                                : isa<llvm::SExtInst>(i) ? Op::sext
                                                         : Op::copy;
                auto& out = emit(op, i);
                out.dst = d, out.a = a;
                if (op != Op::trunc) out.width = width_of(i.getOperand(0)->getType());
                return;
            }
        }
        const auto d = reg(&i);
        emit(Op::unknown, i).dst = d;
    }

    static bool in_registers(const llvm::Instruction& i) {
        return std::all_of(i.op_begin(), i.op_end(),
                           [](const llvm::Use& u) { return is_register_type(u->getType()); });
    }

    void write_op(Op op, llvm::Instruction& i, llvm::Value* left, llvm::Value* right) {
        const auto a = reg(left), b = reg(right), d = reg(&i);
        auto& out = emit(op, i);
        out.dst = d, out.a = a, out.b = b;
    }

    void write_compare(llvm::ICmpInst& c) {
        auto* left = c.getOperand(0);
        auto* right = c.getOperand(1);
        auto predicate = c.getPredicate();
        using P = llvm::CmpInst;
        program_.addresses_compared |= left->getType()->isPointerTy() &&
                                       !isa<llvm::ConstantPointerNull>(left) &&
                                       !isa<llvm::ConstantPointerNull>(right);
        if (predicate == P::ICMP_SGT || predicate == P::ICMP_SGE || predicate == P::ICMP_UGT ||
            predicate == P::ICMP_UGE) {
            std::swap(left, right);
            predicate = P::getSwappedPredicate(predicate);
        }
        const auto op = predicate == P::ICMP_EQ    ? Op::eq
                        : predicate == P::ICMP_NE  ? Op::ne
                        : predicate == P::ICMP_SLT ? Op::slt
                        : predicate == P::ICMP_SLE ? Op::sle
                        : predicate == P::ICMP_ULT ? Op::ult
                                                   : Op::ule;
        write_op(op, c, left, right);
    }

    void write_address(llvm::GetElementPtrInst& gep) {
        llvm::MapVector<llvm::Value*, llvm::APInt> scales;
        llvm::APInt offset(64, 0);
        const auto result = reg(&gep);
        if (gep.getType()->isVectorTy() || !in_registers(gep) ||
            !gep.collectOffset(layout_, 64, scales, offset)) {
            emit(Op::unknown, gep).dst = result;
            return;
        }
        auto current = reg(gep.getPointerOperand());
        for (auto& [index, scale] : scales) {
            const auto r = reg(index);
            auto& out = emit(Op::offset, gep);
            out.dst = result, out.a = current, out.b = r, out.imm = scale.getSExtValue();
            current = result;
        }
        if (!offset.isZero() || scales.empty()) {
            const auto one = reg(llvm::ConstantInt::get(llvm::Type::getInt64Ty(gep.getContext()), 1));
            auto& out = emit(Op::offset, gep);
            out.dst = result, out.a = current, out.b = one, out.imm = offset.getSExtValue();
        }
    }

    void write_call(llvm::CallBase& c) {
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
        if (auto* m = dyn_cast<llvm::AnyMemIntrinsic>(&c)) {
            auto* transfer = dyn_cast<llvm::AnyMemTransferInst>(m);
            std::int64_t id = 0;
            if (transfer) id = reference(c, transfer->getRawSource(), false, kAtOnce);
            const auto wrote = reference(c, m->getRawDest(), true, kAtOnce);
            if (!transfer) id = wrote;
            const auto to = reg(m->getRawDest()), length = reg(m->getLength());
            const auto from = transfer ? reg(transfer->getRawSource()) : -1;
            auto& out = emit(transfer ? Op::move : Op::fill, c);
            out.a = to;
            out.b = transfer ? from : length;
            out.c = transfer ? length : -1;
            out.imm = id;
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
                    if (needed_.count(i))
                        write_op(Op::abs, *i, i->getArgOperand(0), i->getArgOperand(0));
                    return;
                case I::usub_sat:  // the larger of both less the second
                    if (needed_.count(i)) {
                        const auto a = reg(i->getArgOperand(0)), b = reg(i->getArgOperand(1)),
                                   d = reg(i);
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
                    if (needed_.count(i))
                        write_op(Op::copy, *i, i->getArgOperand(0), i->getArgOperand(0));
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

    void finish(llvm::BasicBlock& b, Block& block,
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
        } else {
            block.exit = Exit::trap;
        }
    }

    llvm::Module& module_;
    const llvm::DataLayout& layout_;
    llvm::SmallVector<llvm::Function*, 8> functions_;
    llvm::DenseMap<const llvm::Function*, std::size_t> index_;
    llvm::DenseSet<const llvm::Value*> needed_;
    llvm::DenseSet<const llvm::Value*> needed_objects_;
    llvm::SmallVector<const llvm::Value*, 64> work_;
    llvm::DenseMap<const llvm::GlobalVariable*, std::int32_t> globals_;
    Program program_;

    Function* out_ = nullptr;
    Block* block_ = nullptr;
    llvm::DenseMap<const llvm::Value*, std::int32_t> registers_, slots_, constants_;
    std::int32_t extra_ = 0;
};

}  // namespace

Result<Program> lower(llvm::Module& module, const std::string& function) {
    auto* f = module.getFunction(function);
    if (!f || f->isDeclaration()) {
        std::string have;
        for (auto& g : module)
            if (!g.isDeclaration()) have += (have.empty() ? "" : ", ") + g.getName().str();
        return fail((function.empty() ? "give --function" : "no function " + function) +
                    "; it defines " + (have.empty() ? "none" : have));
    }
    return Slicer(module, *f).run();
}

}  // namespace revisit::predict
