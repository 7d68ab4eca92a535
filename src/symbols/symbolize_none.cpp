// Without libdw: offsets only.
#include "symbols/symbolize.h"
#include "symbols/types.h"

namespace revisit {

struct SymbolFile::Inside {};
SymbolFile::SymbolFile(const std::string&) : inside_(std::make_unique<Inside>()) {}
SymbolFile::~SymbolFile() = default;
bool SymbolFile::is_elf() const {
    return false;
}
bool SymbolFile::has_lines() const {
    return false;
}
std::string SymbolFile::build_id() const {
    return {};
}
std::uint64_t SymbolFile::address_of(std::uint64_t file_offset) const {
    return file_offset;
}
CodeSymbol SymbolFile::code_at(std::uint64_t file_offset) {
    return {file_offset, {}, {}, {}};
}
std::vector<DataSymbol> SymbolFile::data_symbols() {
    return {};
}
bool SymbolFile::returns_by_register(std::uint64_t) {
    return false;
}
Dwfl_Module* SymbolFile::module() const {
    return nullptr;
}
Symbolizer::Symbolizer() : types_(std::make_unique<TypeFinder>(*this)) {}
Symbolizer::~Symbolizer() = default;
SymbolFile& Symbolizer::file(const std::string& path) {
    auto& file = files_[path];
    if (!file) file = std::make_unique<SymbolFile>(path);
    return *file;
}

}  // namespace revisit
