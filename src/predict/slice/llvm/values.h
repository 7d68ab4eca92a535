// What LLVM values are: names for people, and the kinds the slicer distinguishes.
#pragma once

#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>

#include <cstdint>
#include <optional>
#include <string>

namespace revisit::predict {

// The name of a scalar as the source has it: from debug info, else the IR's without its decoration.
std::string source_name(const llvm::Value* value);

// The variable of the source that an argument is, or is a part of.
const llvm::DILocalVariable* declared_variable(const llvm::Argument& argument);

// What a pointer points into, and how the bracket notation writes it: A, A~i~k-1.
struct Description {
    std::string array;
    std::string expression;
};
Description describe(const llvm::Value* pointer, int depth = 0);

// What registers of the slice hold; wider integers and all else are data to it.
bool is_register_type(const llvm::Type* type);
std::uint8_t width_of(const llvm::Type* type);

// A local scalar whose address is never taken.
bool is_private(const llvm::AllocaInst* a);
// Objects that memory is divided into; null is "could be anything".
const llvm::Value* object_of(const llvm::Value* pointer);
// An integer argument that the source declares signed.
bool is_signed(const llvm::Argument& argument);
// Memory filled or copied at once, by an intrinsic or by a routine of libc called by its name.
struct BulkAccess {
    llvm::Value* to = nullptr;
    llvm::Value* from = nullptr;  // null: filled
    llvm::Value* length = nullptr;
    llvm::ConstantInt* byte = nullptr;  // that it is filled with, where the source says
};
std::optional<BulkAccess> bulk_access(llvm::Instruction& i);
// An intrinsic that reads or writes memory of the program.
bool touches_memory(const llvm::IntrinsicInst& call);
bool is_allocation(const llvm::Function* f);
// Of the block an allocation returns, in bytes.
std::int64_t promised_alignment(const llvm::CallBase& allocation);
// Makes text a number: atoi and its like.
bool is_number_reader(const llvm::Function* f);
// Calls that touch no memory we count: mathematics, freeing, output.
bool is_harmless(const llvm::Function* f);

}  // namespace revisit::predict
