#include "symbols/types.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <fmt/format.h>

#include <algorithm>
#include <fstream>

namespace revisit {
namespace {

constexpr std::size_t kMostEntries = 4'000'000;  // of a module's debug information
constexpr std::size_t kMostMembers = 4096;
constexpr unsigned kMostDepth = 12;

std::string plain_name(Dwarf_Die* die) {
    const char* name = dwarf_diename(die);
    return name ? name : "";
}

bool type_of(Dwarf_Die* die, Dwarf_Die* type) {
    Dwarf_Attribute attribute;
    return dwarf_attr_integrate(die, DW_AT_type, &attribute) != nullptr &&
           dwarf_formref_die(&attribute, type) != nullptr;
}

// Without typedefs, const and volatile.
bool peel(Dwarf_Die* type) {
    return dwarf_peel_type(type, type) == 0;
}

bool is_struct(Dwarf_Die* type) {
    const int tag = dwarf_tag(type);
    return tag == DW_TAG_structure_type || tag == DW_TAG_class_type || tag == DW_TAG_union_type;
}

std::uint64_t bytes_of(Dwarf_Die* type) {
    Dwarf_Word bytes = 0;
    return dwarf_aggregate_size(type, &bytes) == 0 ? bytes : 0;
}

// The element of an array, of arrays too; what is no array is its own.
bool element_of(Dwarf_Die* type, bool& is_array) {
    is_array = false;
    for (unsigned depth = 0; depth < kMostDepth; depth++) {
        if (!peel(type)) return false;
        if (dwarf_tag(type) != DW_TAG_array_type) return true;
        is_array = true;
        if (!type_of(type, type)) return false;
    }
    return false;
}

std::uint64_t offset_of(Dwarf_Die* member) {
    Dwarf_Attribute attribute;
    Dwarf_Word offset = 0;
    if (dwarf_attr(member, DW_AT_data_member_location, &attribute))
        dwarf_formudata(&attribute, &offset);
    else if (dwarf_attr(member, DW_AT_data_bit_offset, &attribute)) {
        dwarf_formudata(&attribute, &offset);
        offset /= 8;
    }
    return offset;
}

void add_members(Dwarf_Die* type, const std::string& prefix, std::uint64_t base, unsigned depth,
                 std::vector<TypeMember>& out) {
    Dwarf_Die member;
    if (depth > kMostDepth || dwarf_child(type, &member) != 0) return;
    do {
        const int tag = dwarf_tag(&member);
        if ((tag != DW_TAG_member && tag != DW_TAG_inheritance) || out.size() >= kMostMembers) continue;
        Dwarf_Attribute attribute;
        if (dwarf_attr(&member, DW_AT_external, &attribute) ||
            dwarf_attr(&member, DW_AT_const_value, &attribute))
            continue;  // static
        Dwarf_Die of;
        if (!type_of(&member, &of)) continue;
        const std::uint64_t offset = base + offset_of(&member), bytes = bytes_of(&of);
        bool is_array = false;
        std::string name = tag == DW_TAG_inheritance ? "" : plain_name(&member);
        std::string whole = prefix + name;
        if (!element_of(&of, is_array)) continue;
        if (is_struct(&of) && !is_array) {
            add_members(&of, name.empty() ? prefix : whole + ".", offset, depth + 1, out);
            continue;
        }
        if (is_array) whole += "[]";
        out.push_back({std::move(whole), offset, bytes});
    } while (dwarf_siblingof(&member, &member) == 0);
}

}  // namespace

const TypeMember* DataType::at(std::uint64_t offset) const {
    if (bytes == 0) return nullptr;
    offset %= bytes;
    for (const TypeMember& member : members)
        if (member.offset <= offset &&
            offset < member.offset + std::max<std::uint64_t>(1, member.bytes))
            return &member;
    return nullptr;
}

struct TypeFinder::ModuleTypes {
    Dwarf* dwarf = nullptr;
    // Definitions by name; pointers and arrays of structs by the name of variable, parameter or member.
    std::map<std::string, Dwarf_Off> types;
    std::map<std::string, Dwarf_Off> variables;              // global ones, any type
    std::map<std::string, std::vector<Dwarf_Off>> pointees;  // of local ones and members
    std::map<Dwarf_Off, std::optional<DataType>> described;
    std::size_t entries = 0;

    explicit ModuleTypes(Dwfl_Module* module) {
        Dwarf_Addr bias = 0;
        if (module != nullptr) dwarf = dwfl_module_getdwarf(module, &bias);
        if (dwarf == nullptr) return;
        for (Dwarf_Die* unit = nullptr; (unit = dwfl_module_nextcu(module, unit, &bias));)
            walk(unit, "", 0);
    }
    ModuleTypes(const ModuleTypes&) = delete;

    void walk(Dwarf_Die* parent, const std::string& scope, unsigned depth) {
        Dwarf_Die die;
        if (depth > kMostDepth || dwarf_child(parent, &die) != 0) return;
        do {
            if (++entries > kMostEntries) return;
            const std::string name = plain_name(&die);
            switch (dwarf_tag(&die)) {
                case DW_TAG_structure_type:
                case DW_TAG_class_type:
                case DW_TAG_union_type:
                    if (!dwarf_hasattr(&die, DW_AT_declaration) && !name.empty())
                        types.emplace(scope + name, dwarf_dieoffset(&die));
                    walk(&die, name.empty() ? scope : scope + name + "::", depth + 1);
                    break;
                case DW_TAG_typedef:
                    if (!name.empty()) types.emplace(scope + name, dwarf_dieoffset(&die));
                    break;
                case DW_TAG_namespace:
                    walk(&die, name.empty() ? scope : scope + name + "::", depth + 1);
                    break;
                case DW_TAG_subprogram:
                case DW_TAG_lexical_block:
                    walk(&die, scope, depth + 1);
                    break;
                case DW_TAG_variable:
                    if (depth == 0 || dwarf_tag(parent) == DW_TAG_namespace) {
                        if (!name.empty()) variables.emplace(scope + name, dwarf_dieoffset(&die));
                    }
                    [[fallthrough]];
                case DW_TAG_formal_parameter:
                case DW_TAG_member:
                    note_pointer(&die, name);
                    break;
                default:
                    break;
            }
        } while (dwarf_siblingof(&die, &die) == 0);
    }

    void note_pointer(Dwarf_Die* die, const std::string& name) {
        Dwarf_Die type;
        if (name.empty() || !type_of(die, &type) || !peel(&type)) return;
        if (dwarf_tag(&type) != DW_TAG_pointer_type || !type_of(&type, &type) || !peel(&type)) return;
        if (!is_struct(&type)) return;
        auto& found = pointees[name];
        const Dwarf_Off offset = dwarf_dieoffset(&type);
        if (std::ranges::find(found, offset) == found.end()) found.push_back(offset);
    }

    // The struct at, or in an array at, this entry.
    const DataType* describe(Dwarf_Off offset) {
        auto [known, is_new] = described.try_emplace(offset);
        if (!is_new) return known->second ? &*known->second : nullptr;
        Dwarf_Die die;
        bool is_array = false;
        if (dwarf_offdie(dwarf, offset, &die) == nullptr) return nullptr;
        if (dwarf_tag(&die) == DW_TAG_variable && !type_of(&die, &die)) return nullptr;
        if (!element_of(&die, is_array) || !is_struct(&die)) return nullptr;
        if (dwarf_hasattr(&die, DW_AT_declaration)) {
            auto defined = types.find(plain_name(&die));
            if (defined == types.end() || dwarf_offdie(dwarf, defined->second, &die) == nullptr ||
                !element_of(&die, is_array) || !is_struct(&die))
                return nullptr;
        }
        DataType type;
        type.name = plain_name(&die);
        if (type.name.empty()) type.name = "struct";
        type.bytes = bytes_of(&die);
        if (type.bytes == 0) return nullptr;
        add_members(&die, "", 0, 0, type.members);
        std::ranges::stable_sort(type.members, {}, &TypeMember::offset);
        known->second = std::move(type);
        return &*known->second;
    }

    const DataType* named(const AllocatedName& one) {
        if (one.is_type) {
            auto found = types.find(one.name);
            if (found == types.end())
                found = std::ranges::find_if(
                    types, [&](const auto& type) { return type.first.ends_with("::" + one.name); });
            return found == types.end() ? nullptr : describe(found->second);
        }
        // One name, several types: nothing is certain.
        auto found = pointees.find(one.name);
        return found == pointees.end() || found->second.size() != 1 ? nullptr
                                                                    : describe(found->second[0]);
    }
};

TypeFinder::TypeFinder(Symbolizer& files) : files_(files) {}
TypeFinder::~TypeFinder() = default;

TypeFinder::ModuleTypes& TypeFinder::module(const std::string& path) {
    auto& found = modules_[path];
    if (!found) found = std::make_unique<ModuleTypes>(files_.file(path).module());
    return *found;
}

const DataType* TypeFinder::of_variable(const std::string& path, const std::string& name) {
    ModuleTypes& types = module(path);
    auto found = types.variables.find(name);
    return found == types.variables.end() ? nullptr : types.describe(found->second);
}

const DataType* TypeFinder::of_allocation(const std::string& path, const std::vector<Frame>& frames) {
    ModuleTypes& types = module(path);
    for (const Frame& frame : frames)
        if (std::string name = allocator_type(frame.function); !name.empty())
            return types.named({name, true});
    for (const Frame& frame : frames) {
        if (frame.line == 0) continue;
        std::ifstream file(frame.file);
        std::string line, text;
        // The statement may begin on the line before and go on for a few.
        for (std::uint32_t number = 1; number < frame.line + 3 && std::getline(file, line); number++)
            if (number >= frame.line) {
                text += line + " ";
                if (line.find(';') != std::string::npos) break;
            }
        for (const AllocatedName& one : allocated_names(text))
            if (const DataType* type = types.named(one)) return type;
    }
    return nullptr;
}

}  // namespace revisit
