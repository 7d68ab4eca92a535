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

#include <cstring>

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

// What a vector holds.
const llvm::DIType* vector_element(const llvm::DIType* type) {
    const auto* c = dyn_cast_or_null<llvm::DICompositeType>(type);
    if (!c || !c->getName().starts_with("vector<")) return nullptr;
    for (const auto* parameter : c->getTemplateParams())
        if (const auto* t = dyn_cast<llvm::DITemplateTypeParameter>(parameter);
            t && t->getName() == "_Tp")
            return plain(t->getType());
    return nullptr;
}

// The type of an argument as the source declares it.
const llvm::DIType* declared(const llvm::Argument& a) {
    const auto* variable = declared_variable(a);
    return variable ? variable->getType() : nullptr;
}

// What an argument that is a pointer points to: a large structure passed by value is one, too.
const llvm::DIType* pointed_to(const llvm::Argument& a) {
    const auto* type = plain(declared(a));
    return llvm::isa_and_nonnull<llvm::DICompositeType>(type) ? type : pointee(type);
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
        if (!c || c->getName().starts_with("vector<")) return at;
        if (c->getTag() == llvm::dwarf::DW_TAG_array_type) {
            const auto* element = plain(c->getBaseType());
            const auto bytes = element ? static_cast<std::int64_t>(element->getSizeInBits() / 8) : 0;
            if (bytes == 0 || c->getElements().size() != 1 || at.rest < 0) return at;
            at.name += "[" + std::to_string(at.rest / bytes) + "]";
            at.rest %= bytes;
            at.type = element;
            continue;
        }
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

// Inside a method or a lambda members have their own names; views of the library are known by what
// they offer.
std::string joined(const std::string& object, const std::string& member) {
    if (member.empty()) return object;
    auto name = object.empty() || object == "this" || object == "__closure" ? member
                : member.starts_with('[')                                   ? object + member
                                                                            : object + "." + member;
    for (const auto& [end, instead] :
         {std::pair{"._M_extent._M_extent_value", ".size()"}, std::pair{"._M_len", ".size()"},
          std::pair{"._M_ptr", ""}, std::pair{"._M_str", ""}})
        if (name.ends_with(end)) return name.substr(0, name.size() - std::strlen(end)) + instead;
    return name;
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

    // A place in one of several structures that lie side by side, whichever it is.
    std::optional<Place> in_element(const llvm::Value* pointer, int depth = 0) const {
        llvm::APInt offset(64, 0);
        const auto* base = pointer->stripAndAccumulateConstantOffsets(layout_, offset, true);
        std::optional<Place> place;
        if (const auto* phi = dyn_cast<llvm::PHINode>(base); phi && depth <= kMostDepth) {
            for (const auto& from : phi->incoming_values()) {
                llvm::APInt step(64, 0);
                if (from->stripAndAccumulateConstantOffsets(layout_, step, true) == phi) continue;
                if (place) return std::nullopt;
                place = at(from, depth + 1);
                if (!place) place = in_element(from, depth + 1);
                if (!place) return std::nullopt;
            }
        } else if (const auto* gep = dyn_cast<llvm::GEPOperator>(base)) {
            place = at(gep->getPointerOperand(), depth + 1);
        }
        const auto bytes =
            place && place->type ? static_cast<std::int64_t>(place->type->getSizeInBits() / 8) : 0;
        if (bytes == 0) return std::nullopt;
        const auto in = (place->offset + offset.getSExtValue()) % bytes;
        place->offset = in < 0 ? in + bytes : in;
        if (!place->name.ends_with("[]")) place->name += "[]";
        return place;
    }

    // The pointers that an address may be counted from, whatever is added to them.
    void note_keys(const llvm::Value* pointer, llvm::StringSet<>& keys) const {
        llvm::SmallVector<const llvm::Value*, 4> objects;
        llvm::getUnderlyingObjects(pointer, objects, nullptr, 0);
        for (const auto* object : objects)
            if (const auto place = behind(object, 0, 0)) keys.insert(place->key);
    }

 private:
    std::optional<Place> behind(const llvm::Value* base, std::int64_t offset, int depth) const {
        if (depth > kMostDepth) return std::nullopt;
        if (const auto* a = dyn_cast<llvm::Argument>(base)) {
            if (a->getParent() != &entry_) return std::nullopt;
            return Place{"a" + std::to_string(a->getArgNo()), offset, source_name(a), pointed_to(*a)};
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
                     joined(from->name, member.name),
                     vector_element(member.type) ? vector_element(member.type) : pointee(member.type)};
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
            places.note_keys(s->getPointerOperand(), written);
        } else if (const auto* l = dyn_cast<llvm::LoadInst>(&i)) {
            llvm::APInt offset(64, 0);
            const auto* base =
                l->getPointerOperand()->stripAndAccumulateConstantOffsets(layout_, offset, true);
            if (isa<llvm::GEPOperator>(base) || isa<llvm::PHINode>(base) || isa<llvm::SelectInst>(base))
                places.note_keys(l->getPointerOperand(), indexed);
        } else if (const auto* x = dyn_cast<llvm::IntrinsicInst>(&i);
                   x && (x->isLifetimeStartOrEnd() || isa<llvm::DbgInfoIntrinsic>(x))) {
            continue;
        } else if (i.mayWriteToMemory()) {  // calls, atomics, memory moved at once
            for (const auto& operand : i.operands())
                if (operand->getType()->isPointerTy()) places.note_keys(operand.get(), written);
        }
    }
    const auto only_read = [&](const Place& p) {
        return !written.contains(p.key) && !indexed.contains(p.key);
    };
    for (auto& i : llvm::instructions(entry)) {
        if (const auto* l = dyn_cast<llvm::LoadInst>(&i)) {
            auto place = places.at(l->getPointerOperand());
            if (!place && l->getType()->isPointerTy()) {
                // Vectors in a vector: all as long as each other.
                place = places.in_element(l->getPointerOperand());
                if (!place || written.contains(place->key)) continue;
            } else if (!place || !only_read(*place) || !is_register_type(l->getType())) {
                continue;
            }
            const auto member = member_at(place->type, place->offset);
            const auto name = joined(place->name, member.name);
            if (l->getType()->isPointerTy()) {
                // The end of a vector: where it starts, and so many elements further.
                const auto* element = vector_element(member.type);
                if (member.rest == 8 && element)
                    ends_[l] = {name + ".size()", element->getSizeInBits() / 8};
                pointers_.insert(l);
            } else {
                const bool whole =
                    member.rest == 0 && (!member.type || !isa<llvm::DICompositeType>(member.type));
                // Of numbers side by side, which; of anything else, at which byte.
                const auto* basic = dyn_cast_or_null<llvm::DIBasicType>(member.type);
                const auto bytes = basic ? static_cast<std::int64_t>(basic->getSizeInBits() / 8) : 0;
                const auto number =
                    bytes > 0 && member.rest % bytes == 0 ? member.rest / bytes : member.rest;
                inputs_[l] = whole ? name : name + "[" + std::to_string(number) + "]";
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
                a && x->getNumIndices() == 1)
                note_packed(*x, *a, 8 * static_cast<std::int64_t>(x->getIndices()[0]), 8);
    for (const auto* user : entry.users())
        if (const auto* c = dyn_cast<llvm::CallBase>(user); c && index_.count(c->getFunction())) return;
    for (auto& a : entry.args())
        if (llvm::isa_and_nonnull<llvm::DICompositeType>(plain(declared(a))) &&
            a.getType()->isIntegerTy() && width_of(a.getType()) % 8 == 0)
            note_packed(a, a, a.getName().ends_with(".coerce1") ? 8 : 0, width_of(a.getType()) / 8);
}

// The members that a register of the calling convention holds.
void Slicer::note_packed(const llvm::Value& value, const llvm::Argument& a, std::int64_t from,
                         std::int64_t bytes) {
    std::vector<Packed> parts;
    for (std::int64_t at = 0; at < bytes;) {
        const auto member = member_at(declared(a), from + at);
        const auto size =
            member.type && member.rest == 0
                ? static_cast<std::int64_t>(is_pointer(member.type) ? 64 : member.type->getSizeInBits())
                : 0;
        if (size == 0 || size % 8 != 0 || at + size / 8 > bytes) {
            ++at;
            continue;
        }
        const auto* basic = dyn_cast<llvm::DIBasicType>(member.type);
        const auto* composite = dyn_cast<llvm::DICompositeType>(member.type);
        const bool number =
            basic ? basic->getEncoding() != llvm::dwarf::DW_ATE_float
                  : composite && composite->getTag() == llvm::dwarf::DW_TAG_enumeration_type;
        parts.push_back({joined(source_name(&a), member.name), static_cast<std::uint8_t>(size),
                         static_cast<std::uint8_t>(8 * at), is_pointer(member.type),
                         !number && !is_pointer(member.type)});
        at += size / 8;
    }
    if (!parts.empty()) packed_[&value] = std::move(parts);
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

// The member that an instruction takes out of a register of the calling convention, if it is one.
const Slicer::Packed* Slicer::taken_out(const llvm::Instruction& i) const {
    const auto* from = i.getNumOperands() > 0 ? i.getOperand(0) : nullptr;
    std::uint64_t offset = 0;
    const auto shifted = [&](const llvm::Value* v) {
        const auto* shift = dyn_cast<llvm::BinaryOperator>(v);
        if (!shift || (shift->getOpcode() != llvm::Instruction::LShr &&
                       shift->getOpcode() != llvm::Instruction::AShr))
            return false;
        const auto* by = dyn_cast<llvm::ConstantInt>(shift->getOperand(1));
        if (by) from = shift->getOperand(0), offset = by->getZExtValue();
        return by != nullptr;
    };
    const bool narrow = isa<llvm::TruncInst>(i);
    if (narrow)
        shifted(from);
    else if (!shifted(&i))
        return nullptr;
    const auto at = packed_.find(from);
    if (at == packed_.end()) return nullptr;
    const auto width = width_of(from->getType());
    for (const Packed& part : at->second)
        if (part.offset == offset &&
            (narrow ? part.bits == width_of(i.getType()) : part.offset + part.bits == width))
            return &part;
    return nullptr;
}

void Slicer::write_taken_out(const llvm::Instruction& i, const Packed& part) {
    const auto d = reg(&i);
    if (part.opaque) {
        emit(Op::unknown, i).dst = d;
        return;
    }
    const auto value = input(part.name, part.bits, part.pointer ? Kind::pointer : Kind::integer);
    auto& out =
        emit(i.getOpcode() == llvm::Instruction::LShr && part.bits < 64 ? Op::zext : Op::copy, i);
    out.dst = d, out.a = value, out.width = part.bits;
}

// Whether an instruction that uses a register leaves a member in it alone.
static bool leaves_alone(const llvm::Instruction& i, unsigned width, unsigned offset, unsigned bits) {
    if (isa<llvm::TruncInst>(i)) return width_of(i.getType()) <= offset;
    const auto* by = i.getNumOperands() == 2 ? dyn_cast<llvm::ConstantInt>(i.getOperand(1)) : nullptr;
    if (!by) return false;
    if (i.getOpcode() == llvm::Instruction::And) {
        const auto member = bits < 64 ? ((std::uint64_t{1} << bits) - 1) << offset : ~std::uint64_t{0};
        return (by->getZExtValue() & member) == 0;
    }
    return i.getOpcode() == llvm::Instruction::Shl && by->getZExtValue() >= width - offset;
}

// The whole register, from the members that it holds.
void Slicer::write_packed(const llvm::Value& value, const llvm::Instruction& at) {
    const auto& parts = packed_.find(&value)->second;
    const auto d = reg(&value);
    // Who takes members out does that on his own: with nobody else, no value is needed. Members that
    // are not followed are zero in it, for those who leave them alone.
    bool needed = false, known = true;
    for (const auto* user : value.users()) {
        const auto* i = dyn_cast<llvm::Instruction>(user);
        if (!i || !needed_.count(user) || taken_out(*i)) continue;
        if (i->isShift() && std::all_of(i->user_begin(), i->user_end(), [&](const llvm::User* u) {
                const auto* j = dyn_cast<llvm::Instruction>(u);
                return j && taken_out(*j);
            }))
            continue;
        needed = true;
        for (const Packed& part : parts)
            known &=
                !part.opaque || leaves_alone(*i, width_of(value.getType()), part.offset, part.bits);
    }
    known &= needed;
    std::int32_t sum = -1;
    for (const Packed& part : parts) {
        if (!known || part.opaque) continue;
        auto one = input(part.name, part.bits, part.pointer ? Kind::pointer : Kind::integer);
        if (part.bits < 64) one = calculated(Op::zext, at, one, -1, -1, part.bits);
        if (part.offset > 0) one = calculated(Op::shl, at, one, constant(part.offset));
        sum = sum < 0 ? one : calculated(Op::bit_or, at, sum, one);
    }
    if (sum < 0) {
        emit(Op::unknown, at).dst = d;
        return;
    }
    auto& out = emit(width_of(value.getType()) < 64 ? Op::trunc : Op::copy, at);
    out.dst = d, out.a = sum, out.width = width_of(value.getType());
}

}  // namespace revisit::predict
