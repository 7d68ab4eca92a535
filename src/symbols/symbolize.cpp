// libdw does the reading. Each file is reported to a Dwfl of its own with bias 0, so addresses in it
// are the file's own virtual addresses whatever the program was loaded at; what a recorder knows, the
// offset in the file, becomes one through the program headers.
#include "symbols/symbolize.h"

#include <dwarf.h>
#include <elfutils/libdwelf.h>
#include <elfutils/libdwfl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <unordered_map>
#include <utility>

#include "symbols/debug_information.h"
#include "symbols/functions.h"
#include "symbols/go_table.h"
#include "symbols/loops.h"
#include "symbols/scopes.h"
#include "symbols/types.h"

namespace revisit {
namespace {

std::string name_of(Dwarf_Die* die) {
    Dwarf_Attribute attribute;
    for (unsigned kind : {DW_AT_linkage_name, DW_AT_MIPS_linkage_name})
        if (dwarf_attr_integrate(die, kind, &attribute)) return demangled(dwarf_formstring(&attribute));
    if (dwarf_attr_integrate(die, DW_AT_name, &attribute)) {
        const char* name = dwarf_formstring(&attribute);
        return name ? name : "";
    }
    return {};
}

std::uint64_t number_of(Dwarf_Die* die, unsigned kind) {
    Dwarf_Attribute attribute;
    Dwarf_Word value = 0;
    if (dwarf_attr(die, kind, &attribute)) dwarf_formudata(&attribute, &value);
    return value;
}

}  // namespace

struct SymbolFile::Inside {
    Dwfl* dwfl = nullptr;
    Dwfl_Module* module = nullptr;
    Elf* elf = nullptr;
    bool lines = false;  // read_code
    bool code_read = false;
    struct Load {
        std::uint64_t offset, bytes, address;
    };
    std::vector<Load> loads;
    GoTable go;  // where there is no other debug information
    FunctionIndex functions;
    std::map<std::uint64_t, std::vector<CodeLoop>> loops;  // by function
    std::map<std::uint64_t, Frame> loop_frames;            // by head

    struct UnitRange {
        std::uint64_t low, high;
        Dwarf_Die* unit;
        Dwarf_Addr bias;
    };
    Scopes scopes;
    std::unordered_map<std::uint64_t, CodeSymbol> known;  // by address
    std::vector<UnitRange> units;                         // sorted; made when first needed
    bool units_known = false;

    void read_code();
    void read_functions();
    void read_go_table();
    Dwarf_Die* unit_at(std::uint64_t address, Dwarf_Addr& bias);
    CodeSymbol at(std::uint64_t address);
    Frame loop_around(std::uint64_t address);
    std::span<const std::uint8_t> bytes_of(std::uint64_t address, std::uint64_t size) const;
    ~Inside() {
        if (dwfl) dwfl_end(dwfl);
    }
};

SymbolFile::SymbolFile(const std::string& path) : inside_(std::make_unique<Inside>()) {
    Inside& in = *inside_;
    in.dwfl = dwfl_begin(&kDebugInformation);
    if (!in.dwfl) return;
    dwfl_report_begin(in.dwfl);
    in.module = report_file(in.dwfl, path);
    dwfl_report_end(in.dwfl, nullptr, nullptr);
    if (!in.module) return;
    Dwarf_Addr bias = 0;
    in.elf = dwfl_module_getelf(in.module, &bias);
    std::size_t headers = 0;
    if (!in.elf || elf_getphdrnum(in.elf, &headers) != 0) return;
    for (std::size_t i = 0; i < headers; i++) {
        GElf_Phdr header;
        if (gelf_getphdr(in.elf, static_cast<int>(i), &header) && header.p_type == PT_LOAD)
            in.loads.push_back({header.p_offset, header.p_filesz, header.p_vaddr});
    }
}

// Not before somebody asks about code: debug information may be packed, and unpacking the C library's
// takes 40 ms.
void SymbolFile::Inside::read_code() {
    if (!elf || std::exchange(code_read, true)) return;
    Dwarf_Addr bias = 0;
    lines = dwfl_module_getdwarf(module, &bias) != nullptr;
    read_functions();
}

void SymbolFile::Inside::read_functions() {
    std::vector<FunctionSymbol> found;
    int count = dwfl_module_getsymtab(module);
    for (int i = 1; i < count; i++) {
        GElf_Sym symbol;
        GElf_Addr start = 0;
        GElf_Word section = 0;
        Elf* from = nullptr;
        Dwarf_Addr bias = 0;
        const char* name = dwfl_module_getsym_info(module, i, &symbol, &start, &section, &from, &bias);
        int type = GELF_ST_TYPE(symbol.st_info), binding = GELF_ST_BIND(symbol.st_info);
        if (!name || !*name || *name == '$' ||
            section == SHN_UNDEF ||  // $x, $d: kinds of code and data
            (type != STT_FUNC && type != STT_NOTYPE && type != STT_GNU_IFUNC))
            continue;
        GElf_Shdr header;
        if (!from || !gelf_getshdr(elf_getscn(from, section), &header) ||
            !(header.sh_flags & SHF_EXECINSTR))
            continue;
        unsigned rank = binding == STB_LOCAL ? 0 : binding == STB_WEAK ? 1 : 2;
        found.push_back({start, symbol.st_size, header.sh_addr + bias + header.sh_size, rank, name});
    }
    if (!lines) read_go_table();
    if (found.empty()) found = go.functions();
    functions = FunctionIndex(std::move(found));
}

void SymbolFile::Inside::read_go_table() {
    std::size_t names = 0;
    if (elf_getshdrstrndx(elf, &names) != 0) return;
    std::uint64_t text = 0;
    Elf_Data* table = nullptr;
    for (Elf_Scn* section = nullptr; (section = elf_nextscn(elf, section));) {
        GElf_Shdr header;
        const char* name =
            gelf_getshdr(section, &header) ? elf_strptr(elf, names, header.sh_name) : nullptr;
        const std::string_view called = name ? name : "";
        if (called == ".text") text = header.sh_addr;
        if (called.ends_with(".gopclntab")) table = elf_rawdata(section, nullptr);
    }
    if (table && table->d_buf)
        go = GoTable({static_cast<const std::uint8_t*>(table->d_buf), table->d_size}, text);
}

SymbolFile::~SymbolFile() = default;

bool SymbolFile::is_elf() const {
    return inside_->elf != nullptr;
}
bool SymbolFile::has_lines() const {
    inside_->read_code();
    return inside_->lines || inside_->go.is_there();
}

std::string SymbolFile::build_id() const {
    if (!is_elf()) return {};
    const void* bytes = nullptr;
    ssize_t length = dwelf_elf_gnu_build_id(inside_->elf, &bytes);
    std::string hex;
    for (ssize_t i = 0; i < length; i++)
        hex += fmt::format("{:02x}", static_cast<const unsigned char*>(bytes)[i]);
    return hex;
}

std::uint64_t SymbolFile::address_of(std::uint64_t file_offset) const {
    // Segments share pages at their edges; the one that holds the offset wins over one that merely maps
    // it.
    for (const auto& load : inside_->loads)
        if (load.offset <= file_offset && file_offset < load.offset + load.bytes)
            return file_offset - load.offset + load.address;
    const Inside::Load* nearest = nullptr;
    for (const auto& load : inside_->loads)
        if ((load.offset & ~0xffffull) <= file_offset && (!nearest || load.offset > nearest->offset))
            nearest = &load;
    return nearest ? file_offset - nearest->offset + nearest->address : file_offset;
}

// libdw finds units by .debug_aranges, which clang does not write: then by the units' own ranges.
Dwarf_Die* SymbolFile::Inside::unit_at(std::uint64_t address, Dwarf_Addr& bias) {
    if (Dwarf_Die* unit = dwfl_module_addrdie(module, address, &bias)) return unit;
    if (!std::exchange(units_known, true)) {
        Dwarf_Addr unit_bias = 0;
        for (Dwarf_Die* unit = nullptr; (unit = dwfl_module_nextcu(module, unit, &unit_bias));) {
            Dwarf_Addr base = 0, low = 0, high = 0;
            for (ptrdiff_t at = 0; (at = dwarf_ranges(unit, at, &base, &low, &high)) > 0;)
                units.push_back({low + unit_bias, high + unit_bias, unit, unit_bias});
        }
        std::ranges::sort(units, {}, &UnitRange::low);
    }
    auto after = std::ranges::upper_bound(units, address, {}, &UnitRange::low);
    if (after == units.begin() || address >= std::prev(after)->high) return nullptr;
    bias = std::prev(after)->bias;
    return std::prev(after)->unit;
}

std::span<const std::uint8_t> SymbolFile::Inside::bytes_of(std::uint64_t address,
                                                           std::uint64_t size) const {
    std::size_t whole = 0;
    const char* file = elf_rawfile(elf, &whole);
    for (const Load& load : loads) {
        if (address < load.address || address - load.address > load.bytes) continue;
        std::uint64_t from = address - load.address + load.offset;
        if (!file || from > whole || size > whole - from) break;
        return {reinterpret_cast<const std::uint8_t*>(file) + from, size};
    }
    return {};
}

// The test at a loop's end has the line of its `for` or `while`; the first instruction may come from
// anywhere in the body.
Frame SymbolFile::Inside::loop_around(std::uint64_t address) {
    GElf_Ehdr header;
    const FunctionSymbol* function = functions.at(address);
    if ((!lines && !go.is_there()) || !gelf_getehdr(elf, &header) || !function || function->bytes == 0)
        return {};
    auto [known, is_new] = loops.try_emplace(function->start);
    if (is_new)
        known->second =
            loops_in(bytes_of(function->start, function->bytes), function->start, header.e_machine);
    const CodeLoop* loop = innermost(known->second, address);
    if (!loop) return {};
    auto [frame, is_new_loop] = loop_frames.try_emplace(loop->head);
    if (is_new_loop) {
        frame->second = at(loop->branch).frame;
        if (frame->second.line == 0) frame->second = at(loop->head).frame;
    }
    return frame->second;
}

CodeSymbol SymbolFile::code_at(std::uint64_t file_offset) {
    std::uint64_t address = address_of(file_offset);
    if (!inside_->elf) return {address, {}, {}, {}};
    inside_->read_code();
    auto [known, is_new] = inside_->known.try_emplace(address);
    if (is_new) {
        CodeSymbol symbol = inside_->at(address);
        symbol.loop = inside_->loop_around(address);
        known->second = std::move(symbol);
    }
    return known->second;
}

CodeSymbol SymbolFile::Inside::at(std::uint64_t address) {
    CodeSymbol symbol{address, {}, {}, {}};
    Inside& in = *this;

    if (const FunctionSymbol* function = functions.at(address))
        symbol.frame.function = demangled(function->name);
    if (go.is_there()) {
        const GoTable::Line line = go.line_at(address);
        symbol.frame.file = line.file;
        symbol.frame.line = line.line;
    }
    if (!in.lines) return symbol;

    std::vector<Frame> frames;
    Frame at;
    Dwarf_Addr bias = 0;
    Dwarf_Die* unit = in.unit_at(symbol.address, bias);
    if (Dwarf_Line* line = unit ? dwarf_getsrc_die(unit, symbol.address - bias) : nullptr) {
        int number = 0;
        if (const char* file = dwarf_linesrc(line, nullptr, nullptr)) at.file = file;
        dwarf_lineno(line, &number);
        at.line = static_cast<std::uint32_t>(number);
    }
    std::vector<Dwarf_Die> chain;
    if (unit) chain = in.scopes.around(unit, symbol.address - bias);
    Dwarf_Files* files = nullptr;
    std::size_t file_count = 0;
    if (unit) dwarf_getsrcfiles(unit, &files, &file_count);
    for (Dwarf_Die& scope : chain) {
        int tag = dwarf_tag(&scope);
        if (tag == DW_TAG_subprogram) {
            at.function = name_of(&scope);
            frames.push_back(at);
            break;
        }
        if (tag != DW_TAG_inlined_subroutine) continue;
        at.function = name_of(&scope);
        frames.push_back(at);
        std::uint64_t file = number_of(&scope, DW_AT_call_file);
        const char* path =
            files && file < file_count ? dwarf_filesrc(files, file, nullptr, nullptr) : nullptr;
        at = {{}, path ? path : "", static_cast<std::uint32_t>(number_of(&scope, DW_AT_call_line))};
    }
    if (frames.empty()) {
        at.function = symbol.frame.function;
        frames.push_back(at);
    }
    symbol.frame = frames.front();
    symbol.inlined.assign(frames.begin() + 1, frames.end());
    return symbol;
}

std::vector<DataSymbol> SymbolFile::data_symbols() {
    std::vector<DataSymbol> symbols;
    if (!is_elf()) return symbols;
    int count = dwfl_module_getsymtab(inside_->module);
    for (int i = 1; i < count; i++) {
        GElf_Sym symbol;
        const char* name = dwfl_module_getsym(inside_->module, i, &symbol, nullptr);
        if (!name || GELF_ST_TYPE(symbol.st_info) != STT_OBJECT || symbol.st_size == 0) continue;
        symbols.push_back({symbol.st_value, symbol.st_size, demangled(name)});
    }
    std::ranges::sort(symbols, {},
                      [](const DataSymbol& s) { return std::pair(s.file_address, s.name); });
    return symbols;
}

bool SymbolFile::returns_by_register(std::uint64_t file_offset) {
    constexpr int kLinkRegister = 30;
    Dwarf_Addr bias = 0;
    Dwarf_CFI* table = is_elf() ? dwfl_module_eh_cfi(inside_->module, &bias) : nullptr;
    Dwarf_Frame* frame = nullptr;
    if (!table || dwarf_cfi_addrframe(table, address_of(file_offset) - bias, &frame) != 0) return false;
    Dwarf_Op memory[3], *operations = nullptr;
    std::size_t count = 0;
    int found = dwarf_frame_register(frame, kLinkRegister, memory, &operations, &count);
    std::free(frame);
    return found == 0 && count == 0 && operations == nullptr;  // it has the value that the call gave it
}

Dwfl_Module* SymbolFile::module() const {
    return inside_->module;
}

Symbolizer::Symbolizer() : types_(std::make_unique<TypeFinder>(*this)) {}
Symbolizer::~Symbolizer() = default;

SymbolFile& Symbolizer::file(const std::string& path) {
    auto& file = files_[path];
    if (!file) file = std::make_unique<SymbolFile>(path);
    return *file;
}

}  // namespace revisit
