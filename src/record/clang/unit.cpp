// Sites and blocks of one translation unit, written as the very records the analyzer reads
// (DEFINE_SITE, DEFINE_BLOCK), so that at run time they are copied and their numbers moved by a base.
//
// A site is a source location and a direction: the copies that unrolling and vectorising made of one
// access are one site, as the reader of a profile wants. Code without debug information has a site per
// instruction, known by its function alone.
#include "record/clang/unit.h"

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/Demangle/Demangle.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/DebugInfoMetadata.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/Support/Path.h>
#include <llvm/Transforms/Utils/ModuleUtils.h>

#include "record/clang/abi.h"

namespace revisit::clang_recorder {
namespace {

std::string function_name(const llvm::DISubprogram& program) {
    if (!program.getLinkageName().empty()) return llvm::demangle(program.getLinkageName());
    return program.getName().str();
}

std::string file_path(const llvm::DIFile* file) {
    if (!file) return {};
    if (llvm::sys::path::is_absolute(file->getFilename())) return file->getFilename().str();
    llvm::SmallString<256> path(file->getDirectory());
    llvm::sys::path::append(path, file->getFilename());
    llvm::sys::path::remove_dots(path);
    return std::string(path);
}

void add_frame(std::string& text, const std::string& function, const std::string& file, unsigned line) {
    std::string frame = function + '\0' + file + '\0' + std::to_string(line) + '\0';
    if (text.size() + frame.size() <= REVISIT_TEXT_MAX) text += frame;
}

}  // namespace

Unit::Unit(llvm::Module& module, const char* way) : module_(module), way_(way) {
    llvm::MDBuilder metadata(module.getContext());
    llvm::MDNode* scope =
        metadata.createAnonymousAliasScope(metadata.createAnonymousAliasScopeDomain("revisit"), "slot");
    slot_scope_ = llvm::MDNode::get(module.getContext(), {scope});
    // Their sizes are known at the end; until then they are named places.
    auto* word = llvm::Type::getInt64Ty(module.getContext());
    auto place = [&](llvm::Type* type, const char* name) {
        return new llvm::GlobalVariable(module, type, false, llvm::GlobalValue::InternalLinkage,
                                        llvm::Constant::getNullValue(type), name);
    };
    headers_ = place(llvm::ArrayType::get(word, 0), "revisit.headers.place");
    site_base_ = place(word, "revisit.site_base");
}

void Unit::put_text(const std::string& text) {
    for (std::size_t i = 0; i < text.size(); i += 8) {
        std::uint64_t word = 0;
        for (std::size_t j = i; j < std::min(i + 8, text.size()); ++j)
            word |= std::uint64_t{static_cast<unsigned char>(text[j])} << (8 * (j - i));
        definitions_.push_back(word);
    }
}

std::uint32_t Unit::add_site(const std::string& text) {
    definitions_.push_back(REVISIT_RECORD(REVISIT_DEFINE_SITE, text.size()));
    definitions_.push_back(site_count_);
    put_text(text);
    return site_count_++;
}

std::uint32_t Unit::site(const llvm::Instruction& at, bool write) {
    const llvm::DILocation* location = at.getDebugLoc();
    const void* key = location ? static_cast<const void*>(location) : &at;
    auto [known, is_new] = sites_.try_emplace({key, write}, site_count_);
    if (!is_new) return known->second;

    std::string text;
    const llvm::Function& function = *at.getFunction();
    for (auto* frame = location; frame; frame = frame->getInlinedAt()) {
        const llvm::DISubprogram* program = frame->getScope()->getSubprogram();
        // Line tables alone have no linkage names; the function we stand in has its symbol's.
        std::string name = !frame->getInlinedAt() || !program ? llvm::demangle(function.getName().str())
                                                              : function_name(*program);
        add_frame(text, name, file_path(frame->getFile()), frame->getLine());
    }
    if (auto loop = loops_.find(location); location && loop != loops_.end())
        add_frame(text, "*", file_path(loop->second->getFile()), loop->second->getLine());
    if (!location)
        add_frame(text, llvm::demangle(function.getName().str()), module_.getSourceFileName(), 0);
    return add_site(text);
}

void Unit::find_loops(llvm::Function& function) {
    llvm::DominatorTree dominators(function);
    llvm::LoopInfo loops(dominators);
    for (const llvm::Loop* loop : loops.getLoopsInPreorder()) {  // inner ones after those around them
        const llvm::DILocation* begin = loop->getStartLoc().get();
        if (!begin) continue;
        for (const llvm::BasicBlock* block : loop->blocks())
            for (const llvm::Instruction& instruction : *block)
                if (const llvm::DILocation* at = instruction.getDebugLoc().get()) loops_[at] = begin;
    }
}

std::uint32_t Unit::function_site(const llvm::Function& function) {
    auto [known, is_new] = sites_.try_emplace({&function, 2}, site_count_);
    if (!is_new) return known->second;
    std::string text;
    const llvm::DISubprogram* program = function.getSubprogram();
    add_frame(text, llvm::demangle(function.getName().str()),
              program ? file_path(program->getFile()) : module_.getSourceFileName(),
              program ? program->getLine() : 0);
    return add_site(text);
}

std::uint32_t Unit::block(llvm::ArrayRef<Access> accesses) {
    // Sites first: a definition may only name what is already defined.
    llvm::SmallVector<std::uint32_t, 32> sites;
    for (const Access& access : accesses)
        sites.push_back(site(*access.at, access.flags & REVISIT_WRITE));
    auto id = static_cast<std::uint32_t>(header_words_.size());
    definitions_.push_back(REVISIT_RECORD(REVISIT_DEFINE_BLOCK, accesses.size()));
    definitions_.push_back(id);
    std::uint32_t words = 0;
    for (std::size_t i = 0; i < accesses.size(); ++i) {
        const Access& access = accesses[i];
        std::uint64_t what = REVISIT_ACCESS(access.bytes, access.flags | REVISIT_BY_SITE);
        std::uint64_t where = sites[i];
        if (access.word >= 0) {
            what |= REVISIT_DERIVED_FROM(access.word);
            where |= REVISIT_DERIVED_BY(access.offset);
        }
        words += access.word < 0;
        definitions_.push_back(what);
        definitions_.push_back(where);
    }
    header_words_.push_back(REVISIT_BLOCK(id, words));
    return id;
}

llvm::Value* Unit::header(llvm::IRBuilder<>& at, std::uint32_t block) {
    auto* word = at.getInt64Ty();
    auto* load = at.CreateLoad(word, at.CreateConstInBoundsGEP1_64(word, headers_, block));
    // Written once, before anything runs: the code generator may keep it in a register over a loop.
    load->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(at.getContext(), {}));
    return load;
}

llvm::Value* Unit::site_number(llvm::IRBuilder<>& at, std::uint32_t site) {
    auto* base = at.CreateLoad(at.getInt64Ty(), site_base_);
    base->setNoSanitizeMetadata();  // ours, not the program's
    return at.CreateAdd(base, at.getInt64(site));
}

void Unit::finish() {
    auto& context = module_.getContext();
    if (header_words_.empty() && site_count_ == 0) {
        headers_->eraseFromParent();
        site_base_->eraseFromParent();
        return;
    }
    auto* word = llvm::Type::getInt64Ty(context);
    auto* pointer = llvm::PointerType::getUnqual(context);
    auto table = [&](llvm::ArrayRef<std::uint64_t> words, bool constant, const char* name) {
        auto* data = llvm::ConstantDataArray::get(context, words);
        return new llvm::GlobalVariable(module_, data->getType(), constant,
                                        llvm::GlobalValue::InternalLinkage, data, name);
    };
    auto* headers = table(header_words_, false, "revisit.headers");
    headers_->replaceAllUsesWith(headers);
    headers_->eraseFromParent();
    auto* definitions = table(definitions_, true, "revisit.definitions");

    auto number = [&](std::uint64_t n) { return llvm::ConstantInt::get(word, n); };
    llvm::Constant* way = llvm::ConstantPointerNull::get(pointer);
    if (way_) way = module_.getOrInsertGlobal(way_, llvm::Type::getInt8Ty(context));
    llvm::Constant* fields[] = {number(REVISIT_ABI),
                                way,
                                headers,
                                number(header_words_.size()),
                                site_base_,
                                number(site_count_),
                                definitions,
                                number(definitions_.size())};
    auto* unit_type =
        llvm::StructType::get(context, {word, pointer, pointer, word, pointer, word, pointer, word});
    auto* unit = new llvm::GlobalVariable(module_, unit_type, true, llvm::GlobalValue::InternalLinkage,
                                          llvm::ConstantStruct::get(unit_type, fields), "revisit.unit");

    auto* type = llvm::FunctionType::get(llvm::Type::getVoidTy(context), false);
    auto* constructor =
        llvm::Function::Create(type, llvm::GlobalValue::InternalLinkage, "revisit.register", module_);
    constructor->addFnAttr(llvm::Attribute::NoUnwind);
    llvm::IRBuilder<> at(llvm::BasicBlock::Create(context, "", constructor));
    at.CreateCall(module_.getOrInsertFunction("__revisit_register", at.getVoidTy(), pointer), {unit});
    at.CreateRetVoid();
    llvm::appendToGlobalCtors(module_, constructor, 0);
}

}  // namespace revisit::clang_recorder
