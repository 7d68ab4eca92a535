// Which member of which type lies where: "particle.mass" for byte 16 of a struct particle.
//
// Problem. A line of an array of structs has many fields; advice to split them has to name the hot
// ones. The profile knows where in its object an access lies, not what lies there.
// Idea. DWARF describes types and globals. What a heap block holds, it does not say; the line that
// allocates it does, mostly: `new T`, `sizeof(struct T)`, `sizeof *p`, `p = malloc(…)` with the type
// that p points to, or a standard container's allocator<T> among the frames inlined there. The offset
// in the object, modulo the size of T, is a member of T:
//
//     particles = calloc(n, sizeof(struct particle));     type particle, 64 bytes
//     an access at 6400016 in it: 6400016 % 64 = 16       particle.mass
//
// Cost. One walk over a module's debug information, when first asked: 0.2 s for the C library's. So the
// finder is the Symbolizer's, which all processes of a run share.
// Source. The layout is what pahole prints; perf annotate --data-type finds types by registers instead.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "revisit/profile.h"
#include "symbols/symbolize.h"

namespace revisit {

struct TypeMember {
    std::string name;  // with those that it is inside of: "pos.x", "name[]"
    std::uint64_t offset = 0, bytes = 0;
};

struct DataType {
    std::string name;
    std::uint64_t bytes = 0;
    std::vector<TypeMember> members;  // by offset; nested ones one by one

    // What lies at an offset in an array of these; nothing in padding.
    const TypeMember* at(std::uint64_t offset) const;
};

class TypeFinder {
 public:
    explicit TypeFinder(Symbolizer& files);
    ~TypeFinder();
    TypeFinder(const TypeFinder&) = delete;

    // Of a global variable's elements; null: not known, or no struct.
    const DataType* of_variable(const std::string& module, const std::string& name);
    // Of what is allocated at a line: its frame first, then those that it was inlined into.
    const DataType* of_allocation(const std::string& module, const std::vector<Frame>& frames);

 private:
    struct ModuleTypes;
    ModuleTypes& module(const std::string& path);
    Symbolizer& files_;
    std::map<std::string, std::unique_ptr<ModuleTypes>> modules_;
};

// What the text of an allocation says: the names to look for, likeliest first. `is_type`: the name of a
// type, else that of a pointer to it.
struct AllocatedName {
    std::string name;
    bool is_type = false;
    bool operator==(const AllocatedName&) const = default;
};
std::vector<AllocatedName> allocated_names(const std::string& text);

// "Particle" of "std::__new_allocator<Particle>::allocate(unsigned long)"; empty: no allocator.
std::string allocator_type(const std::string& function);

}  // namespace revisit
