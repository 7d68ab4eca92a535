#include "record/objects.h"

#include <algorithm>
#include <filesystem>

namespace revisit::record {

ObjectMap::ObjectMap(const ObjectMap& other, Origins& origins) : origins_(origins) {
    pages_ = other.pages_;
    heap_ = other.heap_;
    heap_objects_ = other.heap_objects_;
    live_bytes_ = other.live_bytes_;
    stack_objects_ = other.stack_objects_;
    symbols_ = other.symbols_;
    mapped_files_ = other.mapped_files_;
}

void ObjectMap::mark(std::uint64_t address, std::uint64_t size, std::uint32_t held,
                     unsigned cell_shift) {
    std::uint64_t end = address + size;
    std::size_t pages_before = pages_.size();
    while (address < end) {
        std::uint64_t page_end = (address | kPageMask) + 1, stop = std::min(end, page_end);
        Page& page = pages_[address >> kPageShift];
        if ((address & kPageMask) == 0 && stop == page_end) {
            page.all = held;
            page.cells.clear();
        } else {
            if (page.all != kMixed) {
                page.cell_shift = static_cast<std::uint8_t>(cell_shift);
                page.cells.assign((kPageMask + 1) >> cell_shift, page.all);
                page.all = kMixed;
            }
            std::size_t first = (address & kPageMask) >> page.cell_shift;
            std::size_t last = ((stop - 1) & kPageMask) >> page.cell_shift;
            std::fill(page.cells.begin() + static_cast<std::ptrdiff_t>(first),
                      page.cells.begin() + static_cast<std::ptrdiff_t>(last) + 1, held);
        }
        address = stop;
    }
    if (pages_.size() != pages_before) forget();
}

void ObjectMap::allocate(std::uint64_t address, std::uint64_t size, std::uint32_t place,
                         std::uint32_t context) {
    auto [found, is_new] = heap_objects_.try_emplace(
        std::uint64_t{context} << 32 | place, static_cast<std::uint32_t>(origins_.objects.size()));
    if (is_new) origins_.objects.push_back({"heap", "", 0, place, context});
    std::uint32_t object = found->second;
    release(address);  // one whose end was not seen
    heap_[address] = {size, object};
    std::uint64_t& live = live_bytes_[object];
    live += size;
    origins_.objects[object].bytes = std::max(origins_.objects[object].bytes, live);
    mark(address, size, object, 4);
}

std::uint32_t ObjectMap::heap_object(std::uint32_t place, std::uint64_t bytes) {
    auto [found, is_new] =
        heap_objects_.try_emplace(place, static_cast<std::uint32_t>(origins_.objects.size()));
    if (is_new) origins_.objects.push_back({"heap", "", 0, place, 0});
    std::uint64_t& most = origins_.objects[found->second].bytes;
    most = std::max(most, bytes);
    return found->second;
}

void ObjectMap::release(std::uint64_t address) {
    auto found = heap_.find(address);
    if (found == heap_.end()) return;
    live_bytes_[found->second.object] -= found->second.size;
    mark(address, found->second.size, kNowhere, 4);
    heap_.erase(found);
}

// Any segment of a file tells where all its symbols lie; the first one seen does.
void ObjectMap::map_file(const Module& module) {
    std::error_code ignored;
    if (!std::filesystem::is_regular_file(module.path, ignored)) return;
    auto known = mapped_files_.find(module.path);
    if (known != mapped_files_.end() && known->second == module.low - module.file_offset) return;
    if (module.file_offset != 0 && known != mapped_files_.end()) return;
    mapped_files_[module.path] = module.low - module.file_offset;
    SymbolFile file(module.path);
    if (!file.is_elf()) return;
    std::uint64_t bias = module.low - file.address_of(module.file_offset);
    if (module.file_offset == 0) bias = module.low - (file.address_of(0) & ~kPageMask);
    std::string stem = std::filesystem::path(module.path).filename().string();
    for (const DataSymbol& symbol : file.data_symbols()) {
        if (symbol.bytes > std::uint64_t{1} << 40) continue;
        symbols_.push_back({symbol.name + " (" + stem + ")", symbol.bytes, kNowhere});
        mark(bias + symbol.file_address, symbol.bytes,
             kSymbol + static_cast<std::uint32_t>(symbols_.size() - 1), 2);
    }
}

void ObjectMap::unmap(std::uint64_t low, std::uint64_t high) {
    forget();
    for (std::uint64_t page = low >> kPageShift; page < high >> kPageShift; page++) pages_.erase(page);
}

std::uint32_t ObjectMap::symbol_object(std::uint32_t index) {
    Symbol& symbol = symbols_[index];
    if (symbol.object == kNowhere) {
        symbol.object = static_cast<std::uint32_t>(origins_.objects.size());
        origins_.objects.push_back({"global", symbol.name, symbol.bytes, kNowhere, 0});
    }
    return symbol.object;
}

std::uint32_t ObjectMap::stack_object(std::uint32_t place) {
    auto [found, is_new] =
        stack_objects_.try_emplace(place, static_cast<std::uint32_t>(origins_.objects.size()));
    if (is_new) origins_.objects.push_back({"stack", "", 0, place, 0});
    return found->second;
}

}  // namespace revisit::record
