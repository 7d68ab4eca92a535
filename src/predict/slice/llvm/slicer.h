// The slicer: marks what the slice needs (needs.cpp), then writes it, function by function (lower.cpp,
// instructions.cpp, calls.cpp, registers.cpp).
#pragma once

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/DenseSet.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Operator.h>

#include "predict/slice/slice.h"

namespace revisit::predict {

// Of memory moved at once: the bytes are another operand.
constexpr auto kAtOnce = llvm::TypeSize::getFixed(8);

class Slicer {
 public:
    Slicer(llvm::Module& module, llvm::Function& entry) : layout_(module.getDataLayout()) {
        reach(entry);
    }

    Program run();

    // After run(): loads of numbers that decide, and the name of one that is an input.
    std::vector<llvm::LoadInst*> deciding_loads() const;
    std::string input_name(const llvm::Value* v) const;

 private:
    // What is needed.
    void reach(llvm::Function& f);
    void need(const llvm::Value* v);
    void seed(llvm::Function& f);
    void propagate(const llvm::Value* v);
    // Values stored to `object` matter from now on (null: to anything).
    void need_memory(const llvm::Value* object);
    bool carries(const llvm::StoreInst* s) const;

    // Numbers that come in through memory (inputs.cpp).
    struct Packed {
        std::string name;
        std::uint8_t bits, offset;  // offset: from the lowest bit
        bool pointer;
        bool opaque;  // a number that is not followed
    };
    struct End {
        std::string size;
        std::uint64_t element;  // bytes
    };
    void find_inputs();
    std::int32_t input(const std::string& name, std::uint8_t width, Kind kind);
    void note_packed(const llvm::Value& value, const llvm::Argument& a, std::int64_t from,
                     std::int64_t bytes);
    const Packed* taken_out(const llvm::Instruction& i) const;
    void write_taken_out(const llvm::Instruction& i, const Packed& part);
    void write_packed(const llvm::Value& value, const llvm::Instruction& at);

    // Registers.
    std::int32_t global_index(const llvm::GlobalVariable* g);
    // What is initialised; where that is zero, of constants and of static state; the rest is input.
    void initial_values(const llvm::GlobalVariable& g, Global& out) const;
    bool is_own_state(const llvm::GlobalVariable& g) const;
    std::int32_t next_register() const;
    std::int32_t fresh(llvm::DenseMap<const llvm::Value*, std::int32_t>& map, const llvm::Value* v);
    std::int32_t constant(std::int64_t value, std::int32_t global = -1, bool known = true,
                          const llvm::Value* key = nullptr);
    std::int32_t reg(const llvm::Value* v);
    std::int32_t slot(const llvm::Value* pointer);
    void find_induction(llvm::Loop& l, Loop& out);

    // Instructions.
    Instruction& emit(Op op, const llvm::Instruction& from);
    void limit(const llvm::Instruction& i, const std::string& what);
    std::int64_t reference(const llvm::Instruction& i, const llvm::Value* pointer, bool write,
                           llvm::TypeSize size);
    // A[i][j] declared [M]: j must stay below M, or it is another row's element.
    void collect_extents(const llvm::GEPOperator& gep, Reference& r);
    void write(llvm::Instruction& i);
    void write_value(llvm::Instruction& i);
    static bool in_registers(const llvm::Instruction& i);
    void write_op(Op op, llvm::Instruction& i, llvm::Value* left, llvm::Value* right);
    void write_compare(llvm::ICmpInst& c);
    void write_address(llvm::GetElementPtrInst& gep);

    // Calls.
    void write_call(llvm::CallBase& c);

    // Whole numbers kept as floating point, and counted bits.
    static constexpr unsigned kMostBits = 32;  // of integers whose products and quotients are exact
    struct Quotient {
        const llvm::Value *dividend, *divisor;
        std::int64_t number = 0;  // where the divisor is no value
    };
    bool is_given(const llvm::Value* v) const;
    bool is_leaf(const llvm::Value* v) const;
    std::optional<Quotient> quotient(const llvm::Value* v) const;
    bool is_whole(const llvm::Value* v, int depth = 0) const;
    bool is_whole_product(const llvm::Value* left, const llvm::Value* right, int depth) const;
    bool is_whole_comparison(const llvm::Value* v) const;
    bool is_whole_conversion(const llvm::Value* v) const;
    void need_whole(const llvm::Value* v);
    std::int32_t temporary();
    std::int32_t calculated(Op op, const llvm::Instruction& at, std::int32_t a, std::int32_t b = -1,
                            std::int32_t c = -1, std::uint8_t width = 64);
    std::int32_t within(const llvm::Instruction& at, std::int32_t value, bool is_double);
    std::int32_t whole(const llvm::Instruction& at, const llvm::Value* v);
    std::int32_t divided(const llvm::Instruction& at, const llvm::Value* v, int rounded);
    std::int32_t compared(const llvm::Instruction& at, const llvm::Value* v, bool up);
    void write_whole(const llvm::Instruction& i);
    bool write_bits(const llvm::IntrinsicInst& i);

    // Functions and blocks.
    void write(llvm::Function& f, Function& out);
    void finish(llvm::BasicBlock& b, Block& block,
                llvm::DenseMap<const llvm::BasicBlock*, std::int32_t>& index);

    const llvm::DataLayout& layout_;
    llvm::SmallVector<llvm::Function*, 8> functions_;
    llvm::DenseMap<const llvm::Function*, std::size_t> index_;
    llvm::DenseSet<const llvm::Value*> needed_;
    llvm::DenseSet<const llvm::Value*> needed_objects_;
    llvm::SmallVector<const llvm::Value*, 64> work_;
    llvm::DenseMap<const llvm::GlobalVariable*, std::int32_t> globals_;
    llvm::DenseMap<const llvm::Value*, std::string> inputs_;
    llvm::DenseMap<const llvm::Value*, End> ends_;
    llvm::DenseSet<const llvm::Value*> pointers_;  // loads of those that nothing here writes
    llvm::DenseMap<const llvm::Value*, std::vector<Packed>> packed_;
    Program program_;

    Function* out_ = nullptr;
    Block* block_ = nullptr;
    llvm::DenseMap<const llvm::Value*, std::int32_t> registers_, slots_, constants_;
    std::int32_t extra_ = 0;
};

}  // namespace revisit::predict
