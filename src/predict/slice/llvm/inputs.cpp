// Numbers that come in through memory.
//
// Problem. Not every size is an integer argument: Fortran passes all by reference, a view or a matrix
// has its extents in a structure, a lambda has captured them, a std::vector has two pointers whose
// difference is its length, and main has text on its command line. Read from memory they would be data,
// of which nothing is known.
//
// Idea. A place at a fixed distance behind an argument (through further pointers at fixed places, too)
// that the function only reads is as good as an argument: it is given a name from the debug information
// (`rows`, `m.rows`, `v.size()`, `argv[1]`) and becomes one. Behind a pointer that is written through,
// indexed or passed on, nothing is such a place.
//
// Example. struct Matrix { int rows, columns; double* at; };
// double sum(const Matrix* m) { … i < m->rows … m->at[i * m->columns + j] … } has the inputs m.rows and
// m.columns; m.at is a pointer that is read from memory, to an array of its own.
//
// Cost. One look at each load and store of the function.
#include <llvm/ADT/StringSet.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/BinaryFormat/Dwarf.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/DebugInfoMetadata.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>

#include "predict/slice/llvm/slicer.h"
#include "predict/slice/llvm/values.h"

namespace revisit::predict {

using llvm::dyn_cast;
using llvm::dyn_cast_or_null;
using llvm::isa;

namespace {

constexpr int kMostDepth = 8;

// Without typedef, const and the like.
const llvm::DIType* plain(const llvm::DIType* type) {
    while (const auto* d = dyn_cast_or_null<llvm::DIDerivedType>(type)) {
        const auto tag = d->getTag();
        if (tag == llvm::dwarf::DW_TAG_pointer_type || tag == llvm::dwarf::DW_TAG_reference_type ||
            tag == llvm::dwarf::DW_TAG_rvalue_reference_type)
            break;
        type = d->getBaseType();
    }
    return type;
}

// What a pointer or a reference is to.
const llvm::DIType* pointee(const llvm::DIType* type) {
    const auto* d = dyn_cast_or_null<llvm::DIDerivedType>(plain(type));
    return d ? plain(d->getBaseType()) : nullptr;
}

bool is_pointer(const llvm::DIType* type) {
    return isa<llvm::DIDerivedType>(type);
}

// The type of an argument as the source declares it.
const llvm::DIType* declared(const llvm::Argument& a) {
    const auto* sub = a.getParent()->getSubprogram();
    if (!sub) return nullptr;
    for (const auto* node : sub->getRetainedNodes())
        if (const auto* v = dyn_cast<llvm::DILocalVariable>(node); v && v->getArg() == a.getArgNo() + 1)
            return v->getType();
    const auto types = sub->getType() ? sub->getType()->getTypeArray() : llvm::DITypeRefArray();
    return types.size() == a.getParent()->arg_size() + 1 ? types[a.getArgNo() + 1] : nullptr;
}

// What lies at a distance in a type: names of members on the way, the type there, and what is left.
struct Member {
    std::string name;
    const llvm::DIType* type;
    std::int64_t rest;
};
Member member_at(const llvm::DIType* type, std::int64_t offset) {
    Member at{"", plain(type), offset};
    for (int depth = 0; depth < kMostDepth; ++depth) {
        const auto* c = dyn_cast_or_null<llvm::DICompositeType>(at.type);
        if (!c || c->getTag() == llvm::dwarf::DW_TAG_array_type || c->getName().starts_with("vector<"))
            return at;
        const llvm::DIDerivedType* found = nullptr;
        for (const auto* e : c->getElements()) {
            const auto* m = dyn_cast<llvm::DIDerivedType>(e);
            if (!m || m->isStaticMember() ||
                (m->getTag() != llvm::dwarf::DW_TAG_member &&
                 m->getTag() != llvm::dwarf::DW_TAG_inheritance))
                continue;
            const auto start = static_cast<std::int64_t>(m->getOffsetInBits() / 8);
            const auto* inside = plain(m->getBaseType());
            const auto bits = m->getSizeInBits() ? m->getSizeInBits()
                              : inside           ? inside->getSizeInBits()
                                                 : 0;
            if (at.rest >= start && at.rest < start + static_cast<std::int64_t>(bits / 8)) found = m;
        }
        if (!found) return at;
        at.rest -= static_cast<std::int64_t>(found->getOffsetInBits() / 8);
        at.type = plain(found->getBaseType());
        if (found->getTag() == llvm::dwarf::DW_TAG_member)
            at.name += (at.name.empty() ? "" : ".") + found->getName().str();
    }
    return at;
}

// Inside a method or a lambda members have their own names.
std::string joined(const std::string& object, const std::string& member) {
    if (member.empty()) return object;
    return object.empty() || object == "this" || object == "__closure" ? member : object + "." + member;
}

// A local that has one value always: at -O0 arguments are in such.
const llvm::Value* only_value(const llvm::AllocaInst* a) {
    const llvm::Value* value = nullptr;
    if (!is_private(a)) return nullptr;
    for (const auto* user : a->users())
        if (const auto* s = dyn_cast<llvm::StoreInst>(user)) {
            if (value) return nullptr;
            value = s->getValueOperand();
        }
    return value;
}

// A place behind an argument.
struct Place {
    std::string key;  // the pointer it is counted from
    std::int64_t offset = 0;
    std::string name;  // of what the pointer points to
    const llvm::DIType* type = nullptr;
};

class Places {
 public:
    Places(llvm::Function& f, const llvm::DataLayout& layout) : entry_(f), layout_(layout) {}

    std::optional<Place> at(const llvm::Value* pointer, int depth = 0) const {
        llvm::APInt offset(64, 0);
        const auto* base = pointer->stripAndAccumulateConstantOffsets(layout_, offset, true);
        return behind(base, offset.getSExtValue(), depth);
    }

    // The pointer that an address is counted from, whatever is added to it.
    std::string key_of(const llvm::Value* pointer) const {
        const auto place = behind(llvm::getUnderlyingObject(pointer, 0), 0, 0);
        return place ? place->key : std::string();
    }

 private:
    std::optional<Place> behind(const llvm::Value* base, std::int64_t offset, int depth) const {
        if (depth > kMostDepth) return std::nullopt;
        if (const auto* a = dyn_cast<llvm::Argument>(base)) {
            if (a->getParent() != &entry_) return std::nullopt;
            return Place{"a" + std::to_string(a->getArgNo()), offset, source_name(a),
                         pointee(declared(*a))};
        }
        const auto* l = dyn_cast<llvm::LoadInst>(base);
        if (!l || !l->getType()->isPointerTy()) return std::nullopt;
        if (const auto* local = dyn_cast<llvm::AllocaInst>(l->getPointerOperand())) {
            const auto* value = only_value(local);
            auto place = value ? at(value, depth + 1) : std::nullopt;
            if (place) place->offset += offset;
            return place;
        }
        const auto from = at(l->getPointerOperand(), depth + 1);
        if (!from) return std::nullopt;
        const auto member = member_at(from->type, from->offset);
        return Place{from->key + "+" + std::to_string(from->offset) + "*", offset,
                     joined(from->name, member.name), pointee(member.type)};
    }

    llvm::Function& entry_;
    const llvm::DataLayout& layout_;
};

// Text on the command line made a number.
bool reads_number(const llvm::Function* f) {
    static const llvm::StringSet<> names{"atoi",
                                         "atol",
                                         "atoll",
                                         "strtol",
                                         "strtoul",
                                         "strtoll",
                                         "strtoull",
                                         "__isoc23_strtol",
                                         "__isoc23_strtoul",
                                         "__isoc23_strtoll",
                                         "__isoc23_strtoull",
                                         "__strtol_internal"};
    return f && names.contains(f->getName());
}

}  // namespace

bool is_number_reader(const llvm::Function* f) {
    return reads_number(f);
}

// Which loads and calls of the entry function are inputs, by name.
void Slicer::find_inputs() {
    llvm::Function& entry = *functions_.front();
    const Places places(entry, layout_);
    llvm::StringSet<> written, indexed;
    for (auto& i : llvm::instructions(entry)) {
        if (const auto* s = dyn_cast<llvm::StoreInst>(&i)) {
            written.insert(places.key_of(s->getPointerOperand()));
        } else if (const auto* l = dyn_cast<llvm::LoadInst>(&i)) {
            llvm::APInt offset(64, 0);
            const auto* base =
                l->getPointerOperand()->stripAndAccumulateConstantOffsets(layout_, offset, true);
            if (isa<llvm::GEPOperator>(base) || isa<llvm::PHINode>(base) || isa<llvm::SelectInst>(base))
                indexed.insert(places.key_of(l->getPointerOperand()));
        } else if (const auto* x = dyn_cast<llvm::IntrinsicInst>(&i);
                   x && (x->isLifetimeStartOrEnd() || isa<llvm::DbgInfoIntrinsic>(x))) {
            continue;
        } else if (i.mayWriteToMemory()) {  // calls, atomics, memory moved at once
            for (const auto& operand : i.operands())
                if (operand->getType()->isPointerTy()) written.insert(places.key_of(operand.get()));
        }
    }
    const auto only_read = [&](const Place& p) {
        return !written.contains(p.key) && !indexed.contains(p.key);
    };
    for (auto& i : llvm::instructions(entry)) {
        if (const auto* l = dyn_cast<llvm::LoadInst>(&i)) {
            const auto place = places.at(l->getPointerOperand());
            if (!place || !only_read(*place) || !is_register_type(l->getType())) continue;
            const auto member = member_at(place->type, place->offset);
            const auto name = joined(place->name, member.name);
            if (l->getType()->isPointerTy()) {
                // The end of a vector: where it starts, and so many elements further.
                const auto* c = dyn_cast_or_null<llvm::DICompositeType>(member.type);
                if (member.rest != 8 || !c || !c->getName().starts_with("vector<")) continue;
                for (const auto* parameter : c->getTemplateParams())
                    if (const auto* t = dyn_cast<llvm::DITemplateTypeParameter>(parameter);
                        t && t->getName() == "_Tp" && plain(t->getType()))
                        ends_[l] = {name + ".size()", plain(t->getType())->getSizeInBits() / 8};
            } else {
                const bool whole =
                    member.rest == 0 && (!member.type || !isa<llvm::DICompositeType>(member.type));
                inputs_[l] = whole ? name : name + "[" + std::to_string(member.rest) + "]";
            }
        } else if (const auto* c = dyn_cast<llvm::CallBase>(&i);
                   c && reads_number(c->getCalledFunction())) {
            const auto* text = dyn_cast<llvm::LoadInst>(c->getArgOperand(0));
            const auto place = text ? places.at(text->getPointerOperand()) : std::nullopt;
            if (place && place->key == "a1" && entry.getName() == "main" && place->offset % 8 == 0)
                inputs_[c] = "argv[" + std::to_string(place->offset / 8) + "]";
        }
    }
    // Structures in registers, as some machines pass them: eight bytes each.
    for (auto& i : llvm::instructions(entry))
        if (const auto* x = dyn_cast<llvm::ExtractValueInst>(&i); x && x->getType()->isIntegerTy(64))
            if (const auto* a = dyn_cast<llvm::Argument>(x->getAggregateOperand());
                a && x->getNumIndices() == 1) {
                std::vector<Packed> parts;
                for (std::int64_t at = 0; at < 8;) {
                    const auto member =
                        member_at(declared(*a), 8 * static_cast<std::int64_t>(x->getIndices()[0]) + at);
                    const auto bits =
                        member.type && member.rest == 0 ? member.type->getSizeInBits() : 0;
                    if (bits != 64 && bits != 32) break;
                    parts.push_back({joined(source_name(a), member.name),
                                     static_cast<std::uint8_t>(bits), is_pointer(member.type)});
                    at += static_cast<std::int64_t>(bits / 8);
                }
                if (!parts.empty()) packed_[x] = std::move(parts);
            }
}

std::int32_t Slicer::input(const std::string& name, std::uint8_t width, Kind kind) {
    for (const Argument& a : out_->arguments)
        if (a.inside && a.name == name && a.kind == kind) return a.reg;
    Argument a;
    a.name = name;
    a.kind = kind;
    a.width = width;
    a.is_signed = true;
    a.inside = true;
    a.reg = temporary();
    out_->arguments.push_back(a);
    return a.reg;
}

// A register of the calling convention, from the members that it holds.
void Slicer::write_packed(const llvm::ExtractValueInst& i) {
    const auto& parts = packed_.find(&i)->second;
    const auto d = reg(&i);
    auto value = input(parts[0].name, parts[0].bits, parts[0].pointer ? Kind::pointer : Kind::integer);
    if (parts.size() == 2) {
        const auto low = calculated(Op::zext, i, value, -1, -1, 32);
        const auto other = input(parts[1].name, 32, Kind::integer);
        const auto high = calculated(Op::shl, i, other, constant(32));
        value = calculated(Op::bit_or, i, low, high);
    }
    auto& out = emit(Op::copy, i);
    out.dst = d, out.a = value;
}

}  // namespace revisit::predict
