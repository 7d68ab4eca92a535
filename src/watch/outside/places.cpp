#include "watch/outside/places.h"

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "record/objects.h"
#include "symbols/contexts.h"
#include "symbols/jit_code.h"
#include "symbols/kept_files.h"
#include "symbols/symbolize.h"

namespace revisit::watch::outside {
namespace {

// Begin with mix(1, …): small numbers, such as those of places and stacks, must not meet unmixed.
std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
    hash = (hash ^ value) * 0x9e3779b97f4a7c15;
    return hash ^ hash >> 29;
}

// Files that are nowhere but in memory: what some JITs put their code in.
bool is_memory(std::string_view path) {
    return path.starts_with("/memfd:") || path.starts_with("/dev/zero") ||
           path.starts_with("/anon_hugepage");
}

}  // namespace

std::uint32_t Places::file(const Mapping& mapping, std::uint32_t process) {
    auto [found, is_new] =
        files_.try_emplace(mapping.path, static_cast<std::uint32_t>(origins_.modules.size()));
    if (is_new) {
        origins_.modules.push_back({0, 0, 0, mapping.path, ""});
        keep_file(static_cast<std::int32_t>(process), mapping.path, mapping.low, mapping.high);
    }
    return found->second;
}

std::uint32_t Places::data_file(const Mapping& mapping) {
    auto [found, is_new] =
        data_file_numbers_.try_emplace(mapping.path, static_cast<std::uint32_t>(data_files_.size()));
    if (is_new) data_files_.push_back(record::data_file(mapping.path));
    std::uint64_t& bytes = data_files_[found->second].bytes;
    bytes = std::max(bytes, mapping.high - mapping.low);
    return found->second;
}

std::uint32_t Places::place(const Mapping* mapping, std::uint64_t address, std::uint32_t process) {
    CodePlace place;
    place.offset = address;
    const bool in_file = mapping != nullptr && mapping->is_file() && !is_memory(mapping->path);
    if (in_file) {
        place.module = file(*mapping, process);
        place.offset = address - mapping->low + mapping->offset;
    }
    auto [found, is_new] =
        places_.try_emplace(mix(mix(mix(1, in_file ? 1 : 2 + process), place.module), place.offset),
                            static_cast<std::uint32_t>(origins_.places.size()));
    if (!is_new) return found->second;
    if (!in_file && mapping != nullptr && mapping->executable)
        made_.push_back(
            {found->second, process, mapping->path.starts_with("[v") ? mapping->path : std::string{}});
    origins_.places.push_back(place);
    return found->second;
}

void Places::describes_its_code(std::uint32_t process, const std::string& jitdump) {
    jitdumps_[process] = jitdump;
}

void Places::name_made_code(const std::string& program) {
    std::map<std::uint32_t, JitCode> known;
    for (const MadeCode& one : made_) {
        auto [code, is_new] = known.try_emplace(one.process);
        if (is_new) code->second = JitCode::of_process(one.process, jitdumps_[one.process]);
        CodePlace& place = origins_.places[one.place];
        Frame frame = code->second.at(place.offset);
        if (frame.function.empty()) frame.function = one.region;
        if (frame.function.empty())
            frame.function = std::filesystem::path(program).filename().string() + " JIT code";
        place.literal = static_cast<std::uint32_t>(origins_.literals.size());
        origins_.literals.push_back({std::move(frame)});
    }
}

std::uint32_t Places::stack(const std::vector<std::uint32_t>& calls, std::uint32_t link) {
    std::uint64_t hash = mix(1, link);
    for (std::uint32_t call : calls) hash = mix(hash, call);
    auto [found, is_new] = stack_numbers_.try_emplace(hash, static_cast<std::uint32_t>(stacks_.size()));
    if (is_new) stacks_.push_back({calls, link});
    return found->second;
}

std::uint32_t Places::label(std::uint32_t place, std::uint32_t stack, const DataTouched& data) {
    std::uint64_t hash = mix(mix(mix(1, place), stack), data.where);
    hash = mix(mix(hash, static_cast<std::uint64_t>(data.kind)), data.what);
    auto [found, is_new] = raw_numbers_.try_emplace(hash, static_cast<std::uint32_t>(raw_.size()));
    if (is_new) raw_.push_back({place, stack, data});
    return found->second;
}

Origins Places::finish(Samples& samples, const std::string& program, bool contexts, bool objects) {
    name_made_code(program);
    origins_.symbols =
        std::make_shared<Symbolizer>();  // a look at what was sampled so far may go on beside
    ContextTree tree(origins_);
    record::ObjectMap data(origins_);
    std::unordered_map<std::uint32_t, bool> by_register;  // place → its function's caller is in one
    auto in_register = [&](std::uint32_t place) {
        auto [found, is_new] = by_register.try_emplace(place, false);
        const CodePlace& at = origins_.places[place];
        if (is_new && at.module != kNowhere)
            found->second =
                origins_.symbols->file(origins_.modules[at.module].path).returns_by_register(at.offset);
        return found->second;
    };
    auto context_of = [&](const Raw& raw) {
        std::uint32_t context = 0;
        if (!contexts) return context;
        const Stack& stack = stacks_[raw.stack];
        for (std::uint32_t call : stack.calls) context = tree.child(context, call);
        if (stack.link != kNowhere && in_register(raw.place)) context = tree.child(context, stack.link);
        return context;
    };
    // Each file has addresses of its own, far from all others'.
    auto base_of = [](std::uint64_t file) { return (file + 1) << 40; };
    std::unordered_map<std::uint64_t, bool> read;
    std::uint32_t small = kNowhere;
    std::vector<std::uint32_t> file_objects(data_files_.size(), kNowhere);
    auto object_of = [&](const Raw& raw) {
        using Kind = DataTouched::Kind;
        if (!objects || raw.data.kind == Kind::none) return kNowhere;
        if (raw.data.kind == Kind::stack) return data.stack_object(raw.place);
        if (raw.data.kind == Kind::small && raw.data.what == 1)
            return data.block_object("heap", static_cast<std::uint32_t>(raw.data.where), 0);
        if (raw.data.kind == Kind::small) {
            if (small == kNowhere) {
                small = static_cast<std::uint32_t>(origins_.objects.size());
                origins_.objects.push_back({"heap", "small blocks", 0, kNowhere, 0});
            }
            return small;
        }
        if (raw.data.kind == Kind::file) {
            std::uint32_t& object = file_objects[raw.data.what];
            if (object == kNowhere) {
                object = static_cast<std::uint32_t>(origins_.objects.size());
                origins_.objects.push_back(data_files_[raw.data.what]);
            }
            return object;
        }
        if (raw.data.is_block())
            return data.block_object(raw.data.kind == Kind::heap ? "heap" : "mapped",
                                     static_cast<std::uint32_t>(raw.data.where), raw.data.what);
        std::uint64_t base = base_of(raw.data.what);
        if (read.try_emplace(raw.data.what, true).second)
            data.map_file({base, base + 1, 0, origins_.modules[raw.data.what].path, ""});
        return data.find(base + raw.data.where);
    };
    std::unordered_map<std::uint64_t, std::uint32_t> numbers;
    std::vector<std::uint32_t> renumbered;
    for (const Raw& raw : raw_) {
        Label label{raw.place, context_of(raw), object_of(raw)};
        auto [found, is_new] =
            numbers.try_emplace(mix(mix(mix(1, label.place), label.context), label.object),
                                static_cast<std::uint32_t>(origins_.labels.size()));
        if (is_new) {
            if (label.object != kNowhere && raw.data.is_block())
                label.offset = raw.data.offset;
            else if (label.object != kNowhere && raw.data.kind == DataTouched::Kind::global)
                if (auto begins = data.beginning_of(base_of(raw.data.what) + raw.data.where))
                    label.offset = base_of(raw.data.what) + raw.data.where - *begins;
            origins_.labels.push_back(label);
        }
        renumbered.push_back(found->second);
    }
    for (auto& [number, thread] : samples.threads)
        for (Sample& sample : thread.samples)
            for (std::uint32_t* label :
                 {&sample.label, &sample.reuse_label, &sample.far_label, &sample.far_reuse_label})
                if (*label != kNowhere) *label = renumbered[*label];
    // Where the data of shared lines lies, at the addresses that the process has.
    const std::vector<Extent> globals =
        samples.conflicts.entries().empty() ? std::vector<Extent>() : data.extents();
    for (ConflictTally::Entry& entry : samples.conflicts.entries())
        for (ConflictTally::Side* side : {&entry.writer, &entry.victim}) {
            const Raw& raw = raw_[side->label];
            side->label = renumbered[side->label];
            const std::uint32_t object = origins_.labels[side->label].object;
            if (object == kNowhere) continue;
            if (raw.data.is_block())
                origins_.extents.push_back({side->block_low, side->block_low + raw.data.what, object});
            if (raw.data.kind != DataTouched::Kind::global) continue;
            const std::uint64_t at = base_of(raw.data.what) + raw.data.where;
            auto after = std::ranges::upper_bound(globals, at, {}, &Extent::low);
            if (after == globals.begin() || at >= std::prev(after)->high) continue;
            const Extent& extent = *std::prev(after);
            const std::uint64_t low = (side->address & ~std::uint64_t{3}) - (at - extent.low);
            origins_.extents.push_back({low, low + (extent.high - extent.low), object});
        }
    std::ranges::sort(origins_.extents, {}, &Extent::low);
    const auto same = std::ranges::unique(origins_.extents, {}, &Extent::low);
    origins_.extents.erase(same.begin(), same.end());
    return std::move(origins_);
}

}  // namespace revisit::watch::outside
