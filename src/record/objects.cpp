#include "record/objects.h"

#include <algorithm>
#include <filesystem>

#include "symbols/kept_files.h"

namespace revisit::record {

DataObject data_file(const std::string& path) {
    constexpr std::string_view kDeleted = " (deleted)", kNameless[] = {"/dev/zero", "/anon_hugepage"};
    std::string_view rest = path;
    if (rest.ends_with(kDeleted)) rest.remove_suffix(kDeleted.size());
    if (std::ranges::find(kNameless, rest) != std::end(kNameless))
        return {"mapped", "shared memory", 0, kNowhere, 0};
    return {"file", std::filesystem::path(rest).filename().string(), 0, kNowhere, 0};
}

ObjectMap::ObjectMap(const ObjectMap& other, Origins& origins) : origins_(origins) {
    pages_ = other.pages_;
    heap_ = other.heap_;
    heap_objects_ = other.heap_objects_;
    live_bytes_ = other.live_bytes_;
    stack_objects_ = other.stack_objects_;
    symbols_ = other.symbols_;
    mapped_files_ = other.mapped_files_;
    data_files_ = other.data_files_;
    mappings_ = other.mappings_;
    keeps_extents_ = other.keeps_extents_;
    extents_ = other.extents_;
}

// Of blocks that are gone, so many are remembered as there are live ones, and these at least.
constexpr std::size_t kLeastRemembered = std::size_t{1} << 16;

constexpr std::uint64_t kLarge = 4096;      // bytes of a block
constexpr std::uint64_t kHuge = 64u << 20;  // … whose pages are marked when they are touched

void ObjectMap::remember(std::uint64_t address, std::uint64_t size, std::uint32_t object) {
    if (!keeps_extents_ || size == 0) return;
    if (extents_.size() > 2 * extents_at_clearing_ + kLeastRemembered) {
        std::erase_if(extents_, [&](const auto& one) {
            return !heap_.contains(one.first) && !mappings_.contains(one.first);
        });
        extents_at_clearing_ = extents_.size();
    }
    auto at = extents_.lower_bound(address);
    if (at != extents_.begin() && std::prev(at)->second.high > address) --at;
    while (at != extents_.end() && at->first < address + size) at = extents_.erase(at);
    extents_[address] = {address, address + size, object};
}

std::vector<Extent> ObjectMap::extents() const {
    std::vector<Extent> all;
    for (const auto& [low, extent] : extents_) all.push_back(extent);
    for (const Symbol& symbol : symbols_)
        if (symbol.object != kNowhere && symbol.bytes != 0)
            all.push_back({symbol.low, symbol.low + symbol.bytes, symbol.object});
    std::ranges::stable_sort(all, {}, &Extent::low);
    std::vector<Extent> apart;  // aliases have one address
    for (const Extent& extent : all)
        if (apart.empty() || apart.back().high <= extent.low) apart.push_back(extent);
    return apart;
}

void ObjectMap::mark(std::uint64_t address, std::uint64_t size, std::uint32_t held,
                     unsigned cell_shift) {
    std::uint64_t end = address + size;
    std::size_t pages_before = pages_.size();
    while (address < end) {
        std::uint64_t page_end = (address | kPageMask) + 1, stop = std::min(end, page_end);
        Page& page = pages_[address >> kPageShift];
        if ((address & kPageMask) == 0 && stop == page_end) {
            if (page.all != held) changes_++;
            page.all = held;
            page.cells.clear();
        } else {
            if (page.all != kMixed) {
                changes_++;
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

bool ObjectMap::is_one_object(std::uint64_t low, std::uint64_t high) const {
    std::optional<std::uint32_t> all;
    for (std::uint64_t number = low >> kPageShift; number < high >> kPageShift; number++) {
        const auto page = pages_.find(number);
        if (page == pages_.end() || page->second.all == kMixed) return false;
        if (page->second.all != all.value_or(page->second.all)) return false;
        all = page->second.all;
    }
    return true;
}

std::optional<ObjectMap::Known> ObjectMap::known(std::uint64_t address) const {
    const auto page = pages_.find(address >> kPageShift);
    if (page == pages_.end()) {
        const auto after = mappings_.upper_bound(address | kPageMask);
        const bool is_mapped =
            after != mappings_.begin() && std::prev(after)->second.high > (address & ~kPageMask);
        if (is_mapped) return std::nullopt;  // find() notes the page
        return Known{kNowhere, true};
    }
    const bool is_mixed = page->second.all == kMixed;
    std::uint32_t held = page->second.all;
    if (is_mixed) held = page->second.cells[(address & kPageMask) >> page->second.cell_shift];
    if (held >= kSymbol && held != kNowhere) {
        held = symbols_[held - kSymbol].object;
        if (held == kNowhere) return std::nullopt;
    }
    return Known{held, !is_mixed};
}

std::optional<std::uint32_t> ObjectMap::known_stack_object(std::uint32_t place) const {
    const auto found = stack_objects_.find(place);
    if (found == stack_objects_.end()) return std::nullopt;
    return found->second;
}

std::uint32_t ObjectMap::object_of(const char* kind, std::uint32_t place, std::uint32_t context) {
    auto [found, is_new] = heap_objects_.try_emplace(
        std::uint64_t{context} << 32 | place, static_cast<std::uint32_t>(origins_.objects.size()));
    if (is_new) origins_.objects.push_back({kind, "", 0, place, context});
    return found->second;
}

void ObjectMap::map_pages(std::uint64_t address, std::uint64_t size, std::uint32_t place,
                          std::uint32_t context) {
    if (size == 0 || address + size < address) return;
    clear(address, address + size);
    const std::uint32_t object = object_of("mapped", place, context);
    std::uint64_t& bytes = origins_.objects[object].bytes;
    bytes = std::max(bytes, size);
    mappings_[address] = {address, address + size, object};
    remember(address, size, object);
    forget();  // that there was nothing
}

// A page of a mapping that is touched for the first time.
const ObjectMap::Page* ObjectMap::mapped_page(std::uint64_t number) {
    const std::uint64_t address = number << kPageShift;
    auto after = mappings_.upper_bound(address | kPageMask);
    if (after == mappings_.begin() || std::prev(after)->second.high <= address) return nullptr;
    const Extent& extent = std::prev(after)->second;
    // A new page keeps readers waiting (record/slot_readers.h). Where memory is gone through, about as
    // many pages as lie behind are marked ahead.
    constexpr std::uint64_t kMostAhead = 4096;
    std::uint64_t up = 1, down = 1;
    while (up < kMostAhead && pages_.contains(number - up)) up *= 2;
    while (down < kMostAhead && pages_.contains(number + down)) down *= 2;
    const std::uint64_t first = std::max(extent.low >> kPageShift, number - std::min(number, down - 1));
    const std::uint64_t last = std::min((extent.high - 1) >> kPageShift, number + up - 1);
    for (std::uint64_t one = first; one <= last; one++)
        if (auto [page, is_new] = pages_.try_emplace(one); is_new) page->second.all = extent.object;
    return &pages_[number];
}

void ObjectMap::mark_block(std::uint64_t address, std::uint64_t size, std::uint32_t object) {
    if (size < kHuge) return mark(address, size, object, 4);
    const std::uint64_t low = (address + kPageMask) & ~kPageMask, high = (address + size) & ~kPageMask;
    clear(low, high);
    if (object != kNowhere) mappings_[low] = {low, high, object};
    mark(address, low - address, object, 4);
    mark(high, address + size - high, object, 4);
}

void ObjectMap::allocate(std::uint64_t address, std::uint64_t size, std::uint32_t place,
                         std::uint32_t context) {
    const std::uint32_t object = object_of("heap", place, context);
    release(address);  // one whose end was not seen
    heap_[address] = {size, object};
    if (size >= kLarge) large_[address] = size;
    remember(address, size, object);
    std::uint64_t& live = live_bytes_[object];
    live += size;
    origins_.objects[object].bytes = std::max(origins_.objects[object].bytes, live);
    mark_block(address, size, object);
}

std::uint32_t ObjectMap::block_object(const char* kind, std::uint32_t place, std::uint64_t bytes) {
    const std::uint32_t object = object_of(kind, place, 0);
    std::uint64_t& most = origins_.objects[object].bytes;
    most = std::max(most, bytes);
    return object;
}

void ObjectMap::release(std::uint64_t address) {
    auto found = heap_.find(address);
    if (found == heap_.end()) return;
    live_bytes_[found->second.object] -= found->second.size;
    mark_block(address, found->second.size, kNowhere);
    if (found->second.size >= kLarge) large_.erase(address);
    heap_.erase(found);
}

// Asked once for each instruction and object: small blocks are found by trying where they may begin.
std::optional<std::uint64_t> ObjectMap::beginning_of(std::uint64_t address) const {
    auto page = pages_.find(address >> kPageShift);
    if (page == pages_.end()) return std::nullopt;
    std::uint32_t held = page->second.all;
    if (held == kMixed) held = page->second.cells[(address & kPageMask) >> page->second.cell_shift];
    if (held == kNowhere) return std::nullopt;
    if (held >= kSymbol) return symbols_[held - kSymbol].low;
    auto after = large_.upper_bound(address);
    if (after != large_.begin() && address < std::prev(after)->first + std::prev(after)->second)
        return std::prev(after)->first;
    auto mapping = mappings_.upper_bound(address);
    if (mapping != mappings_.begin() && address < std::prev(mapping)->second.high)
        return std::prev(mapping)->first;
    for (std::uint64_t at = address & ~std::uint64_t{15}; at + kLarge > address; at -= 16) {
        auto block = heap_.find(at);
        if (block == heap_.end()) continue;
        if (address < at + block->second.size) return at;
        break;
    }
    return std::nullopt;
}

void ObjectMap::map_data_file(const Module& module) {
    auto [found, is_new] =
        data_files_.try_emplace(module.path, static_cast<std::uint32_t>(origins_.objects.size()));
    if (is_new) origins_.objects.push_back(data_file(module.path));
    std::uint64_t& bytes = origins_.objects[found->second].bytes;
    bytes = std::max(bytes, module.high - module.low);
    mappings_[module.low] = {module.low, module.high, found->second};
    forget();  // that there was nothing
}

// Any segment of a file shows where all its symbols lie; the first one seen does.
void ObjectMap::map_file(const Module& module) {
    std::error_code ignored;
    const bool is_there =
        is_kept(module.path) || std::filesystem::is_regular_file(module.path, ignored);
    if (!is_there || data_files_.contains(module.path)) return map_data_file(module);
    auto known = mapped_files_.find(module.path);
    if (known != mapped_files_.end() && known->second == module.low - module.file_offset) return;
    if (module.file_offset != 0 && known != mapped_files_.end()) return;
    mapped_files_[module.path] = module.low - module.file_offset;
    SymbolFile file(module.path);
    if (!file.is_elf()) return map_data_file(module);
    std::uint64_t bias = module.low - file.address_of(module.file_offset);
    if (module.file_offset == 0) bias = module.low - (file.address_of(0) & ~kPageMask);
    std::string stem = std::filesystem::path(module.path).filename().string();
    for (const DataSymbol& symbol : file.data_symbols()) {
        if (symbol.bytes > std::uint64_t{1} << 40) continue;
        symbols_.push_back(
            {symbol.name + " (" + stem + ")", bias + symbol.file_address, symbol.bytes, kNowhere});
        mark(bias + symbol.file_address, symbol.bytes,
             kSymbol + static_cast<std::uint32_t>(symbols_.size() - 1), 2);
    }
}

void ObjectMap::unmap(std::uint64_t low, std::uint64_t high) {
    forget();
    auto is_inside = [&](std::uint64_t page) {
        return page >= low >> kPageShift && page < high >> kPageShift;
    };
    if ((high - low) >> kPageShift > pages_.size())
        std::erase_if(pages_, [&](const auto& page) { return is_inside(page.first); });
    else
        for (std::uint64_t page = low >> kPageShift; is_inside(page); page++) pages_.erase(page);
}

// What is left of mappings that reach over the ends stays.
void ObjectMap::unmap_pages(std::uint64_t low, std::uint64_t high) {
    if (drop_mappings(low, high)) unmap(low, high);
}

// Blocks that lay there have left pages that are marked.
void ObjectMap::clear(std::uint64_t low, std::uint64_t high) {
    drop_mappings(low, high);
    unmap(low, high);
}

bool ObjectMap::drop_mappings(std::uint64_t low, std::uint64_t high) {
    bool any = false;
    auto at = mappings_.upper_bound(low);
    if (at != mappings_.begin() && std::prev(at)->second.high > low) --at;
    while (at != mappings_.end() && at->first < high) {
        const Extent whole = at->second;
        any = true;
        mappings_.erase(at);
        if (whole.low < low) mappings_[whole.low] = {whole.low, low, whole.object};
        if (whole.high > high) mappings_[high] = {high, whole.high, whole.object};
        at = mappings_.lower_bound(high);
        if (whole.high > high) break;
    }
    return any;
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
