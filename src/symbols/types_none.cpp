// Without libdw: no types.
#include "symbols/types.h"

namespace revisit {

struct TypeFinder::ModuleTypes {};
TypeFinder::TypeFinder(Symbolizer& files) : files_(files) {}
TypeFinder::~TypeFinder() = default;
const TypeMember* DataType::at(std::uint64_t) const {
    return nullptr;
}
const DataType* TypeFinder::of_variable(const std::string&, const std::string&) {
    return nullptr;
}
const DataType* TypeFinder::of_allocation(const std::string&, const std::vector<Frame>&) {
    return nullptr;
}

}  // namespace revisit
