// Where accesses come from, as the stream has it: modules and sites become places, calls a tree of
// contexts, and place, context and data object together the label that an access carries.
#include <algorithm>
#include <charconv>

#include "record/decode.h"
#include "symbols/kept_files.h"

namespace revisit::record {
namespace {

// A call from a place that is already this near on the path is recursion: it returns to that node, so
// that a path says which calls lead here and not how deep they nest.
constexpr int kRecursionReach = 32;
constexpr std::size_t kMostContexts = std::size_t{1} << 20;  // calls beyond stay in their caller

}  // namespace

std::vector<std::string> split_text(std::string_view text) {
    std::vector<std::string> result;
    while (!text.empty()) {
        std::size_t end = std::min(text.find('\0'), text.size());
        result.emplace_back(text.substr(0, end));
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return result;
}

void Decoder::define_site(std::uint64_t site, std::string_view text) {
    std::vector<std::string> parts = split_text(text);
    std::vector<Frame> frames;
    for (std::size_t i = 0; i + 2 < parts.size(); i += 3) {
        Frame frame{parts[i], parts[i + 1], 0};
        std::from_chars(parts[i + 2].data(), parts[i + 2].data() + parts[i + 2].size(), frame.line);
        frames.push_back(std::move(frame));
    }
    CodePlace place;
    place.offset = site;
    place.literal = static_cast<std::uint32_t>(origins_.literals.size());
    origins_.literals.push_back(std::move(frames));
    site_places_[site] = static_cast<std::uint32_t>(origins_.places.size());
    origins_.places.push_back(place);
}

void Decoder::module(std::uint64_t low, std::uint64_t high, std::uint64_t offset,
                     std::string_view text) {
    std::vector<std::string> parts = split_text(text);
    Module module{low, high, offset, parts.empty() ? "" : parts[0], parts.size() > 1 ? parts[1] : ""};
    unload(low, high);
    keep_file(static_cast<std::int32_t>(pid_), module.path, low, high);
    mapped_[low] = static_cast<std::uint32_t>(origins_.modules.size());
    if (objects_ && options_.sampled_block == 0)
        objects_->map_file(module);
    else if (objects_)
        unread_modules_.push_back(static_cast<std::uint32_t>(origins_.modules.size()));
    origins_.modules.push_back(std::move(module));
}

// Extents are listed only of globals that were asked for. Reading the symbols of all modules takes a
// quarter of a second: only for a program whose threads share lines.
void Decoder::find_shared_object(std::uint64_t address) {
    if (!objects_) return;
    for (const std::uint32_t index : std::exchange(unread_modules_, {})) {
        const Module& module = origins_.modules[index];
        auto mapped = mapped_.find(module.low);
        if (mapped != mapped_.end() && mapped->second == index) objects_->map_file(module);
    }
    objects_->find(address);
}

// What starts inside the range is gone, and so are the places found there: another file may come to lie
// where this one lay.
void Decoder::unload(std::uint64_t low, std::uint64_t high) {
    if (low >= high) return;  // the stream says so: nothing is mapped there
    if (objects_) objects_->unmap_pages(low, high);
    auto first = mapped_.lower_bound(low), last = mapped_.lower_bound(high);
    if (first == last) return;
    mapped_.erase(first, last);
    if (objects_) objects_->unmap(low, high);
    address_places_.erase(address_places_.lower_bound(low), address_places_.lower_bound(high));
}

std::uint32_t Decoder::place_of_address(std::uint64_t address) {
    auto [found, is_new] =
        address_places_.try_emplace(address, static_cast<std::uint32_t>(origins_.places.size()));
    if (!is_new) return found->second;
    CodePlace place;
    place.offset = address;
    auto after = mapped_.upper_bound(address);
    if (after != mapped_.begin()) {
        std::uint32_t index = std::prev(after)->second;
        const Module& module = origins_.modules[index];
        if (address < module.high) {
            place.module = index;
            place.offset = address - module.low + module.file_offset;
        }
    }
    origins_.places.push_back(place);
    return found->second;
}

std::uint32_t Decoder::place_of_site(std::uint64_t site) {
    auto found = site_places_.find(site);
    if (found != site_places_.end()) return found->second;
    define_site(site, {});
    return site_places_[site];
}

std::uint32_t Decoder::label(std::uint32_t place, std::uint32_t context) {
    auto [found, is_new] = label_ids_.try_emplace(both_in_one(context, place),
                                                  static_cast<std::uint32_t>(origins_.labels.size()));
    if (is_new) origins_.labels.push_back({place, context, kNowhere});
    return found->second;
}

const std::uint32_t* Decoder::make_labels(const Block& block, std::uint32_t context) {
    const std::uint64_t key = both_in_one(block.number, context);
    if (std::uint32_t known = label_list_of_.find(key); known != KeyTable::kNone)
        return label_lists_[known].get();
    // Read by whole vectors.
    auto list = std::make_unique<std::uint32_t[]>(block.places.size() + 4);
    for (std::size_t i = 0; i < block.places.size(); i++) list[i] = label(block.places[i], context);
    label_list_of_.add(key, static_cast<std::uint32_t>(label_lists_.size()));
    label_lists_.push_back(std::move(list));
    return label_lists_.back().get();
}

// The labels of a block's accesses on the path that the thread is on, or, while that path is one of
// very many and rare, on any path.
const std::uint32_t* Decoder::labels(Block& block, std::uint32_t count) {
    const std::uint32_t context = running_->context;
    const std::uint64_t key = both_in_one(block.number, context);
    const std::uint32_t known = label_list_of_.find(key);
    if (known != KeyTable::kNone || context == running_->root || paths_.admit(key, count, now())) {
        block.labels =
            known != KeyTable::kNone ? label_lists_[known].get() : make_labels(block, context);
        block.context = context;
        return block.labels;
    }
    if (block.root != running_->root) {
        block.root_labels = make_labels(block, running_->root);
        block.root = running_->root;
    }
    return block.root_labels;
}

// A stack access belongs to the function whose frame it is in: the one that made the call below it, or,
// in the lowest frame, the one that accesses.
std::uint32_t Decoder::object_at(std::uint64_t address, std::uint32_t place) {
    const Thread& t = *running_;
    if (address < t.stack_low || address >= t.stack_high) return objects_->find(address);
    return objects_->stack_object(t.place_of_frame(address, place));
}

// Most accesses of an instruction are to pages it met before.
void Decoder::labels_with_objects(Block& block, const std::uint32_t* labels,
                                  const std::uint64_t* addresses, std::uint32_t count) {
    if (block.near_labels != labels || block.near_changes != objects_->changes()) {
        block.near.assign(block.places.size(), {});
        block.near_labels = labels;
        block.near_changes = objects_->changes();
    }
    std::uint32_t* const out = &label_column_[filled_];
    const std::uint64_t low = running_->stack_low, stack = running_->stack_high - low;
    NearLabel* const near = block.near.data();
    for (std::uint32_t i = 0; i < count; i++) {
        if (addresses[i] - near[i].low < near[i].size && addresses[i] - low >= stack) [[likely]]
            out[i] = near[i].label;
        else
            out[i] = label_with_object(labels[i], addresses[i], &near[i]);
    }
}

// Fills in `near` where the answer goes for the whole page until objects change.
std::uint32_t Decoder::label_with_object(std::uint32_t label, std::uint64_t address, NearLabel* near) {
    const std::uint32_t object = object_at(address, origins_.labels[label].place);
    if (label >= last_object_.size())
        last_object_.resize(std::max<std::size_t>(label + 1, 2 * last_object_.size()));
    if (object != kNowhere && last_object_[label].object != object)
        return find_or_make_object_label(label, object, address);
    const std::uint32_t found = object == kNowhere ? label : last_object_[label].label;
    const bool on_stack = address >= running_->stack_low && address < running_->stack_high;
    if (near != nullptr && !on_stack && objects_->is_one_object(address)) widen(*near, address, found);
    return found;
}

// Towards the address, some pages at a time: a walk along a column skips pages, and random accesses are
// all over an array.
void Decoder::widen(NearLabel& near, std::uint64_t address, std::uint32_t label) const {
    constexpr std::uint64_t kPage = std::uint64_t{1} << ObjectMap::kPageShift, kReach = 16 * kPage;
    const std::uint64_t low = address & ~(kPage - 1), near_high = near.low + near.size;
    if (near.size != 0 && near.label == label && near_high != 0) {  // 0: the last page there is
        const std::uint64_t high = near_high + std::min(low + kPage - near_high, kReach);
        if (low >= near_high && objects_->is_one_object(near_high - kPage, high)) {
            near.size = high - near.low;
            return;
        }
        const std::uint64_t from = near.low - std::min(near.low - low, kReach);
        if (low < near.low && objects_->is_one_object(from, near.low + kPage)) {
            near = {from, near_high - from, label};
            return;
        }
    }
    near = {low, kPage, label};
}

// An object that is rare on this path counts on any path; one that is rare at this instruction is not
// told.
std::uint32_t Decoder::find_or_make_object_label(std::uint32_t label, std::uint32_t object,
                                                 std::uint64_t address) {
    const std::uint64_t key = both_in_one(label, object);
    std::uint32_t found = object_labels_.find(key);
    if (found == KeyTable::kNone) {
        const Label on_path = origins_.labels[label];
        const bool any_path = on_path.context == running_->root;
        if (!(any_path ? objects_of_sites_ : objects_on_paths_).admit(key, 1, now()))
            return any_path ? label
                            : find_or_make_object_label(this->label(on_path.place, running_->root),
                                                        object, address);
        found = static_cast<std::uint32_t>(origins_.labels.size());
        object_labels_.add(key, found);
        origins_.labels.push_back({on_path.place, on_path.context, object});
        if (auto begins = objects_->beginning_of(address))
            origins_.labels.back().offset = address - *begins;
    }
    if (label < last_object_.size()) last_object_[label] = {object, found};
    return found;
}

std::uint32_t Decoder::thread_root(std::uint32_t number) {
    const std::uint64_t key = both_in_one(0, kThreadBegins + number);
    std::uint32_t found = context_children_.find(key);
    if (found == KeyTable::kNone) {
        found = static_cast<std::uint32_t>(origins_.contexts.size());
        context_children_.add(key, found);
        origins_.contexts.push_back({0, kThreadBegins + number});
    }
    return found;
}

void Decoder::Calls::enter(std::uint32_t place, std::uint64_t stack_pointer) {
    while (!frames.empty() && frames.back().stack_pointer <= stack_pointer) {
        context = frames.back().context;
        frames.pop_back();
    }
    frames.push_back({stack_pointer, context, place});
}

void Decoder::Calls::leave(std::uint64_t stack_pointer) {
    while (!frames.empty() && frames.back().stack_pointer <= stack_pointer) {
        const bool this_one = frames.back().stack_pointer == stack_pointer;
        context = frames.back().context;
        frames.pop_back();
        if (this_one) break;
    }
}

std::uint32_t Decoder::Calls::place_of_frame(std::uint64_t address, std::uint32_t place) const {
    std::size_t depth = frames.size();
    while (depth > 0 && frames[depth - 1].stack_pointer <= address) depth--;
    return depth == frames.size() ? place : frames[depth].place;
}

void Decoder::enter(std::uint32_t place, std::uint64_t stack_pointer) {
    running_->enter(place, stack_pointer);
    if (options_.contexts) running_->context = child_context(running_->context, place);
}

std::uint32_t Decoder::child_context(std::uint32_t context, std::uint32_t place) {
    const std::uint64_t key = both_in_one(context, place);
    std::uint32_t node = context_children_.find(key);
    if (node == KeyTable::kNone) {
        node = context;
        for (int i = 0; i < kRecursionReach && node != 0; i++, node = origins_.contexts[node].parent)
            if (origins_.contexts[node].place == place) break;
        if (origins_.contexts.size() >= kMostContexts)
            node = context;
        else if (node == 0 || origins_.contexts[node].place != place) {
            node = static_cast<std::uint32_t>(origins_.contexts.size());
            origins_.contexts.push_back({context, place});
        }
        context_children_.add(key, node);
    }
    return node;
}

// A path as a program that samples itself told it, in the thread that it was in.
std::uint32_t Decoder::sampled_context(const Thread& of, std::uint64_t path) {
    constexpr std::size_t kDeepest = 1024;  // a program may overwrite what it tells
    std::vector<std::uint64_t> sites;
    for (auto at = sampled_paths_.find(path); at != sampled_paths_.end() && sites.size() < kDeepest;
         at = sampled_paths_.find(at->second >> 32))
        sites.push_back(at->second & 0xffffffff);
    std::uint32_t context = of.root;
    for (std::size_t i = sites.size(); i-- > 0;)
        context = child_context(context, place_of_site(sites[i]));
    return context;
}

}  // namespace revisit::record
