#include "record/decode.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "core/try.h"

namespace revisit::record {
namespace {

constexpr std::size_t kBatch = std::size_t{1} << 15;
constexpr std::uint64_t kNearBlocks = std::uint64_t{1} << 24;
constexpr std::uint32_t kThreadsApart = 256;
std::string_view text_of(const std::uint64_t* words, std::size_t bytes) {
    return {reinterpret_cast<const char*>(words), bytes};
}

}  // namespace

std::optional<std::size_t> record_length(std::uint64_t word) {
    if (word & REVISIT_BLOCK_BIT) return REVISIT_BLOCK_COUNT(word);
    std::size_t n = REVISIT_N(word), text = (n + 7) / 8;
    switch (REVISIT_TAG(word)) {
        case REVISIT_PROCESS:
            return 2 + text;
        case REVISIT_END:
        case REVISIT_THREAD_START:
        case REVISIT_ENTER:
        case REVISIT_ENTER_SITE:
        case REVISIT_SYNC:
        case REVISIT_PATH:
        case REVISIT_SAMPLE:
            return 1;
        case REVISIT_MODULE:
            return 3 + text;
        case REVISIT_UNLOAD:
        case REVISIT_ALLOC:
        case REVISIT_ALLOC_SITE:
        case REVISIT_MAP_SITE:
        case REVISIT_STACK:
            return 2;
        case REVISIT_SAMPLED:
            return 3;
        case REVISIT_SAMPLE_END:
            return 4;
        case REVISIT_SAMPLE_TAKEN:
            return 5;
        case REVISIT_DEFINE_BLOCK:
            return 1 + 2 * n;
        case REVISIT_DEFINE_SITE:
            return 1 + text;
        case REVISIT_THREAD:
        case REVISIT_THREAD_EXIT:
        case REVISIT_LEAVE:
        case REVISIT_FREE:
            return 0;
        case REVISIT_BULK:
            return 3;
        case REVISIT_REGION_BEGIN:
        case REVISIT_REGION_END:
            return text;
        default:
            return std::nullopt;
    }
}

Decoder::Decoder(const DecodeOptions& options, Sink sink) : options_(options), sink_(std::move(sink)) {
    one_by_one_ = options.only_regions || !options.stack;
    within_block_ = options.cut > 1 ? options.cut - 1 : 0;
    // A batch may be overshot by one block, and that by a vector.
    std::size_t capacity = kBatch + REVISIT_BLOCK_MAX + 1 + kVector;
    addresses_.resize(capacity);
    if (options.labels) label_column_.resize(capacity);
    if (options.cut == 0) sizes_.resize(capacity);
    if (options.threads) thread_column_.resize(capacity);
    if (options.flags) flags_.resize(capacity);
    running_ = &thread(0);
    if (options.objects) objects_ = std::make_unique<ObjectMap>(origins_);
    if (objects_ && options.extents) objects_->keep_extents();
}

Decoder::Decoder(const Decoder& parent, Sink sink) : Decoder(parent.options_, std::move(sink)) {
    origins_ = parent.origins_;
    mapped_ = parent.mapped_;
    unread_modules_ = parent.unread_modules_;
    address_places_ = parent.address_places_;
    site_places_ = parent.site_places_;
    label_ids_ = parent.label_ids_;
    context_children_ = parent.context_children_;
    object_labels_ = parent.object_labels_;
    if (parent.objects_) objects_ = std::make_unique<ObjectMap>(*parent.objects_, origins_);
    block_count_ = parent.block_count_;
    threads_ = parent.threads_;
    running_ = &thread(parent.running_->number);
    auto copy = [](const Block& from) {
        auto block = std::make_unique<Block>(from);
        block->context = block->root = kNowhere;
        block->near_labels = nullptr;
        return block;
    };
    blocks_.resize(parent.blocks_.size());
    for (std::size_t i = 0; i < blocks_.size(); i++)
        if (parent.blocks_[i]) blocks_[i] = copy(*parent.blocks_[i]);
    for (const auto& [id, block] : parent.far_blocks_) far_blocks_[id] = copy(*block);
}

Decoder::Thread& Decoder::thread(std::uint32_t number) {
    auto [found, is_new] = threads_.try_emplace(number);
    if (is_new) {
        found->second.number = static_cast<std::uint16_t>(number);
        // More threads than anybody reads about one by one share a node: labels stay few.
        std::uint32_t shown = std::min(number, kThreadsApart);
        if (number != 0) found->second.context = found->second.root = thread_root(shown);
    }
    return found->second;
}

std::uint32_t Decoder::Block::accesses_of(std::uint32_t count) const {
    if (count == words) return static_cast<std::uint32_t>(from.size());
    return static_cast<std::uint32_t>(std::ranges::find(from, count) - from.begin());
}

std::uint32_t Decoder::Block::expand(const std::uint64_t* told, std::uint32_t count,
                                     std::uint64_t* to) const {
    const std::uint32_t accesses = accesses_of(count);
    for (std::uint32_t i = 0; i < accesses; i++)
        to[i] = told[from[i]] + static_cast<std::uint64_t>(offsets[i]);
    return accesses;
}

// Addresses, and sizes unless the accesses are cut here; then whether none of them reaches into a
// second block.
inline bool Decoder::copy_addresses(const Block& block, const std::uint64_t* addresses,
                                    std::uint32_t count) {
    std::uint64_t* to = &addresses_[filled_];
    if (options_.cut == 0) {
        std::memcpy(to, addresses, count * sizeof *addresses);
        std::memcpy(&sizes_[filled_], block.sizes.data(), count * sizeof(std::uint32_t));
        return true;
    }
    const std::uint32_t* reaches = block.reaches.data();
    std::uint64_t beyond = 0;
    for (std::uint32_t i = 0; i < count; i++) {
        to[i] = addresses[i];
        beyond |= (addresses[i] & within_block_) + reaches[i];
    }
    return options_.cut == 1 || beyond <= within_block_;
}

void Decoder::block(Block& block, const std::uint64_t* addresses, std::uint32_t count) {
    const std::uint32_t* label_list = nullptr;
    if (options_.labels)
        label_list = block.context == running_->context ? block.labels : labels(block, count);
    if (block.guarded || one_by_one_ || !copy_addresses(block, addresses, count)) [[unlikely]] {
        for (std::uint32_t i = 0; i < count; i++)
            if (!(block.flags[i] & REVISIT_GUARDED) || addresses[i] != REVISIT_NO_ACCESS)
                access(addresses[i], label_list ? label_list[i] : 0, block.sizes[i], block.flags[i]);
        return;
    }
    if (objects_)
        labels_with_objects(block, label_list, addresses, count);
    else if (options_.labels)
        copy_vectors(label_list, count, &label_column_[filled_]);
    if (options_.flags) copy_vectors(block.writes.data(), count, &flags_[filled_]);
    if (options_.threads) {
        std::uint16_t number[kVector / sizeof(std::uint16_t)];
        std::ranges::fill(number, running_->number);
        for (std::uint32_t i = 0; i < count; i += std::size(number))
            std::memcpy(&thread_column_[filled_ + i], number, kVector);
    }
    filled_ += count;
}

Result<void> Decoder::feed(const SlotView& slot) {
    running_ = &thread(slot.thread);
    std::span<const std::uint64_t> words = slot.words;
    std::size_t size = words.size();
    while (!words.empty()) {
        std::uint64_t first = words[0];
        if (first & REVISIT_BLOCK_BIT) [[likely]] {
            std::uint32_t count = REVISIT_BLOCK_COUNT(first);
            Block* known = find_block(REVISIT_BLOCK_ID(first));
            if (!known || count > known->words || count >= words.size()) {
                if (slot.salvaged) break;
                return fail(fmt::format(
                    "the recorder's stream is broken at word {} of {} of a slot: block {:#x} with {} "
                    "accesses is not defined",
                    size - words.size(), size, REVISIT_BLOCK_ID(first), count));
            }
            if (known->is_derived()) {
                std::uint64_t all[REVISIT_BLOCK_MAX];
                block(*known, all, known->expand(&words[1], count, all));
            } else
                block(*known, &words[1], count);
            words = words.subspan(1 + count);
            if (filled_ >= kBatch) TRY(flush());
            continue;
        }
        if (first == 0 && slot.salvaged) break;
        Result<std::size_t> used = record(words, slot.salvaged);
        if (!used) {
            if (slot.salvaged) break;
            used.error().message =
                fmt::format("the recorder's stream is broken at word {} of {} of a slot: {}",
                            size - words.size(), size, used.error().message);
            return unexpected(used.error());
        }
        words = words.subspan(*used);
    }
    return {};
}

void Decoder::access(std::uint64_t address, std::uint32_t label, std::uint32_t size,
                     std::uint8_t flags) {
    if (options_.only_regions && running_->open_regions == 0) return;
    if (!options_.stack && running_->stack_low <= address && address < running_->stack_high) return;
    if (objects_) label = label_with_object(label, address);
    put(address, label, size, flags);
    if (options_.cut <= 1 || size <= 1) return;
    std::uint64_t last = address > ~std::uint64_t{size - 1} ? ~std::uint64_t{0} : address + size - 1;
    for (std::uint64_t more = (last - (address & ~within_block_)) / options_.cut; more > 0; more--) {
        address = (address & ~within_block_) + options_.cut;
        put(address, label, size, flags);
    }
}

void Decoder::put(std::uint64_t address, std::uint32_t label, std::uint32_t size, std::uint8_t flags) {
    addresses_[filled_] = address;
    if (options_.labels) label_column_[filled_] = label;
    if (options_.cut == 0) sizes_[filled_] = size;
    if (options_.flags) flags_[filled_] = flags & kWrite;
    if (options_.threads) thread_column_[filled_] = running_->number;
    if (++filled_ < addresses_.size()) return;
    if (Result<void> done = flush(); !done) trouble_ = done.error();
}

Result<void> Decoder::flush() {
    if (trouble_) return unexpected(*trouble_);
    std::size_t count = std::min<std::uint64_t>(filled_, options_.most_accesses - accesses_);
    filled_ = 0;
    accesses_ += count;
    if (count == 0) return {};
    auto column = [&](const auto& from) { return std::span(from.data(), from.empty() ? 0 : count); };
    return sink_(AccessBatch{column(addresses_), column(label_column_), column(sizes_),
                             column(thread_column_), column(flags_)});
}

Result<void> Decoder::finish() {
    if (objects_ && options_.extents && threads_.size() > 1) origins_.extents = objects_->extents();
    return flush();
}

Result<std::size_t> Decoder::record(std::span<const std::uint64_t> words, bool salvaged) {
    std::uint64_t n = REVISIT_N(words[0]);
    std::optional<std::size_t> length = record_length(words[0]);
    if (!length) return fail(fmt::format("{:#018x} does not begin a record", words[0]));
    if (*length >= words.size()) return fail("a record is cut off");
    const std::uint64_t* rest = words.data() + 1;
    switch (REVISIT_TAG(words[0])) {
        case REVISIT_PROCESS:
            pid_ = static_cast<std::uint32_t>(rest[0]);
            origins_.command = split_text(text_of(rest + 2, n));
            break;
        case REVISIT_END:
            ended_ = true;
            break;
        case REVISIT_MODULE:
            module(rest[0], rest[1], rest[2], text_of(rest + 3, n));
            break;
        case REVISIT_UNLOAD:
            unload(rest[0], rest[1]);
            break;
        case REVISIT_DEFINE_BLOCK:
            TRY(define_block(words.subspan(1, *length)));
            break;
        case REVISIT_DEFINE_SITE:
            define_site(rest[0], text_of(rest + 1, n));
            break;
        case REVISIT_THREAD:
            running_ = &thread(static_cast<std::uint32_t>(n));
            break;
        case REVISIT_BULK:
            bulk(words.data());
            break;
        case REVISIT_ENTER:
            if (follows_calls()) enter(place_of_address(n), rest[0]);
            break;
        case REVISIT_ENTER_SITE:
            if (follows_calls()) enter(place_of_site(n), rest[0]);
            break;
        case REVISIT_LEAVE:
            running_->leave(n);
            break;
        case REVISIT_ALLOC:
            if (objects_ && n != 0)
                objects_->allocate(rest[0], rest[1], place_of_address(n), object_context());
            else if (objects_)
                objects_->map_pages(rest[0], rest[1],
                                    running_->frames.empty() ? kNowhere : running_->frames.back().place,
                                    object_context());
            break;
        case REVISIT_ALLOC_SITE:
            if (objects_) objects_->allocate(rest[0], rest[1], place_of_site(n), object_context());
            break;
        case REVISIT_MAP_SITE:
            if (objects_) objects_->map_pages(rest[0], rest[1], place_of_site(n), object_context());
            break;
        case REVISIT_FREE:
            if (objects_) objects_->release(n);
            break;
        case REVISIT_STACK: {
            Thread& of = thread(static_cast<std::uint32_t>(n));
            of.stack_low = rest[0];
            of.stack_high = rest[1];
            break;
        }
        case REVISIT_REGION_BEGIN:
            region(text_of(rest, n), true);
            break;
        case REVISIT_REGION_END:
            region(text_of(rest, n), false);
            break;
        case REVISIT_PATH:
            sampled_paths_[static_cast<std::uint32_t>(n)] = rest[0];
            break;
        case REVISIT_SAMPLE:
        case REVISIT_SAMPLE_END:
        case REVISIT_SAMPLE_TAKEN:
        case REVISIT_SAMPLED:
            sample(words.data());
            break;
        default:
            break;
    }
    (void)salvaged;
    if (filled_ >= kBatch) TRY(flush());
    return 1 + *length;
}

Result<void> Decoder::define_block(std::span<const std::uint64_t> words) {
    std::uint64_t id = words[0];
    std::size_t count = (words.size() - 1) / 2;
    if (count > REVISIT_BLOCK_MAX) return fail(fmt::format("a block of {} accesses", count));
    auto defined = std::make_unique<Block>();
    defined->number = block_count_++;
    for (std::size_t i = 0; i < count; i++) {
        std::uint64_t what = words[1 + 2 * i], where = words[2 + 2 * i];
        auto flags = static_cast<std::uint8_t>(what >> 32);
        if (flags & REVISIT_DERIVED) {
            defined->from.push_back(REVISIT_DERIVED_WORD(what));
            defined->offsets.push_back(REVISIT_DERIVED_OFFSET(where));
            where = static_cast<std::uint32_t>(where);
            if (defined->from.back() >= defined->words)
                return fail("an access is derived from one that comes later");
        } else {
            defined->from.push_back(defined->words++);
            defined->offsets.push_back(0);
        }
        auto size = static_cast<std::uint32_t>(what);
        defined->sizes.push_back(size);
        defined->reaches.push_back(size == 0 ? 0 : size - 1);
        defined->flags.push_back(flags);
        defined->writes.push_back(flags & kWrite);
        defined->places.push_back(flags & REVISIT_BY_SITE ? place_of_site(where)
                                                          : place_of_address(where));
        defined->guarded |= (flags & REVISIT_GUARDED) != 0;
    }
    if (!defined->is_derived()) defined->from = {}, defined->offsets = {};
    defined->writes.resize(count + kVector);
    if (id < kNearBlocks) {
        if (id >= blocks_.size()) blocks_.resize(std::max<std::size_t>(id + 1, blocks_.size() * 2));
        blocks_[id] = std::move(defined);
    } else
        far_blocks_[id] = std::move(defined);
    return {};
}

void Decoder::bulk(const std::uint64_t* words) {
    auto flags = static_cast<std::uint8_t>(REVISIT_N(words[0]));
    std::uint32_t place =
        flags & REVISIT_BY_SITE ? place_of_site(words[1]) : place_of_address(words[1]);
    std::uint32_t id = options_.labels ? label(place, running_->context) : 0;
    constexpr std::uint64_t kMost = std::uint64_t{1} << 31;
    for (std::uint64_t done = 0; done < words[3]; done += kMost)
        access(words[2] + done, id, static_cast<std::uint32_t>(std::min(kMost, words[3] - done)),
               flags);
}

void Decoder::sample(const std::uint64_t* words) {
    SampleRecord out{};
    out.id = REVISIT_N(words[0]);
    out.thread = running_->number;
    auto label_of = [&](std::uint64_t site, Thread& of) {
        return label(place_of_site(site & 0xffffffff),
                     options_.contexts ? sampled_context(of, site >> 32) : 0);
    };
    switch (REVISIT_TAG(words[0])) {
        case REVISIT_SAMPLE:
            out.kind = SampleRecord::begin;
            out.site = label_of(words[1], *running_);
            break;
        case REVISIT_SAMPLE_END:
            out.kind = SampleRecord::end;
            out.outcome = words[1] & 0xff;
            out.write = (words[1] >> 8 & 1) != 0;
            out.distance = words[2];
            out.time = words[3];
            out.site = label_of(words[4], *running_);
            break;
        case REVISIT_SAMPLE_TAKEN: {
            auto parts_from = [&](unsigned bit) {
                return static_cast<std::uint16_t>((words[1] >> bit & 63) | (words[1] >> (bit + 6) & 63)
                                                                               << 8);
            };
            out.kind = SampleRecord::end;
            out.outcome = REVISIT_INVALIDATED;
            out.write = (words[1] & 1) != 0;
            out.line = words[2];
            out.time = words[3];
            out.site = label_of(words[4], *running_);
            out.parts = parts_from(8);
            out.writer = {label_of(words[5], thread(static_cast<std::uint16_t>(words[1] >> 32))),
                          static_cast<std::uint16_t>(words[1] >> 32), parts_from(20)};
            const std::uint64_t part_bytes = std::max<std::uint64_t>(1, options_.sampled_block / 64);
            for (const std::uint16_t parts : {out.parts, out.writer.parts})
                find_shared_object(out.line + (parts & 63u) * part_bytes);
            break;
        }
        default:
            out.kind = SampleRecord::counts;
            out.accesses = words[1];
            out.analyzed = words[2];
            out.chosen = words[3];
            out.level =
                static_cast<std::uint32_t>(std::min<std::uint64_t>(out.id >> 32, REVISIT_MOST_LEVELS));
            accesses_ += out.accesses;
    }
    if (sample_sink_) sample_sink_(out);
}

void Decoder::region(std::string_view name, bool begins) {
    if (std::ranges::find(regions_seen_, name) == regions_seen_.end()) regions_seen_.emplace_back(name);
    if (!options_.regions.empty() &&
        std::ranges::find(options_.regions, name) == options_.regions.end())
        return;
    if (begins)
        running_->open_regions++;
    else if (running_->open_regions > 0)
        running_->open_regions--;
}

}  // namespace revisit::record
