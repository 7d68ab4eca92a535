#include "record/slot_readers.h"

#include <algorithm>
#include <atomic>
#include <new>

namespace revisit::record {
namespace {

constexpr std::size_t kMostBlocks = 2 * REVISIT_SLOT_WORDS;  // few accesses touch two blocks
constexpr std::size_t kDeepest = 4096;                       // frames that are copied with every slot

std::uint64_t last_byte(std::uint64_t address, std::uint32_t size) {
    const std::uint64_t reach = std::max(1u, size) - 1;
    return address > ~reach ? ~std::uint64_t{0} : address + reach;
}

}  // namespace

SlotReader::SlotReader(const Decoder& decoder) : decoder_(decoder) {
    if (decoder.options_.labels) met_.resize(kMet);
}

bool SlotReader::list_calls(const SlotView& slot) {
    call_at_.clear();
    const std::span<const std::uint64_t> words = slot.words;
    for (std::size_t at = 0; at < words.size();) {
        const std::uint64_t first = words[at];
        if (first & REVISIT_BLOCK_BIT) [[likely]] {
            at += 1 + REVISIT_BLOCK_COUNT(first);
            continue;
        }
        const std::optional<std::size_t> length = record_length(first);
        if (!length || at + *length >= words.size()) return false;
        switch (REVISIT_TAG(first)) {
            case REVISIT_ENTER:
            case REVISIT_ENTER_SITE:
            case REVISIT_LEAVE:
                call_at_.push_back(static_cast<std::uint32_t>(at));
                break;
            case REVISIT_THREAD:
                if (REVISIT_N(first) != slot.thread) return false;
                break;
            case REVISIT_THREAD_START:
            case REVISIT_THREAD_EXIT:
            case REVISIT_SYNC:
            case REVISIT_BULK:
                break;
            default:
                return false;
        }
        at += 1 + *length;
    }
    return true;
}

bool SlotReader::follow(const SlotView& slot, Decoder::Calls& calls) const {
    if (calls.frames.size() > kDeepest) return false;
    return std::ranges::all_of(call_at_,
                               [&](std::uint32_t at) { return call(slot.words.subspan(at), calls); });
}

// As Decoder::record does it.
bool SlotReader::call(std::span<const std::uint64_t> record, Decoder::Calls& calls) const {
    const std::uint64_t n = REVISIT_N(record[0]);
    if (REVISIT_TAG(record[0]) == REVISIT_LEAVE) {
        calls.leave(n);
        return true;
    }
    if (!decoder_.follows_calls()) return true;
    std::uint32_t place = 0;
    if (REVISIT_TAG(record[0]) == REVISIT_ENTER) {
        const auto found = decoder_.address_places_.find(n);
        if (found == decoder_.address_places_.end()) return false;
        place = found->second;
    } else {
        const auto found = decoder_.site_places_.find(n);
        if (found == decoder_.site_places_.end()) return false;
        place = found->second;
    }
    calls.enter(place, record[1]);
    if (!decoder_.options_.contexts) return true;
    const std::uint32_t context = decoder_.context_children_.find(both_in_one(calls.context, place));
    if (context == KeyTable::kNone) return false;
    calls.context = context;
    return true;
}

inline const std::uint32_t* SlotReader::labels_of(const Decoder::Block& block, Met& met) const {
    if (met.number != block.number) {
        met.number = block.number;
        met.context = kNowhere;
        met.near_labels = nullptr;
    }
    if (met.context == calls_->context) [[likely]]
        return met.labels;
    const std::uint32_t list = decoder_.label_list_of_.find(both_in_one(block.number, calls_->context));
    if (list == KeyTable::kNone) return nullptr;
    met.context = calls_->context;
    return met.labels = decoder_.label_lists_[list].get();
}

void SlotReader::see_objects(const Decoder::Block& block, Met& met) const {
    const std::uint64_t changes = decoder_.objects_->changes();
    if (met.near_labels == met.labels && met.near_changes == changes) return;
    met.near.assign(block.places.size(), {});
    met.near_labels = met.labels;
    met.near_changes = changes;
}

// As Decoder::labels_with_objects does it, after see_objects.
inline bool SlotReader::label_at(Met& met, std::uint32_t i, std::uint64_t address,
                                 std::uint32_t& label) const {
    Decoder::NearLabel& near = met.near[i];
    const std::uint64_t low = thread_->stack_low, stack = thread_->stack_high - low;
    if (address - near.low < near.size && address - low >= stack) [[likely]] {
        label = near.label;
        return true;
    }
    const std::optional<std::uint32_t> found = with_object(met.labels[i], address, &near);
    label = found.value_or(0);
    return found.has_value();
}

// Accesses of which some touch several blocks, or may not have been made. Those of one block or two
// take two places each, and the next one begins with the second where that is not needed.
bool SlotReader::one_by_one(const Decoder::Block& block, Met* met, const std::uint64_t* addresses,
                            std::uint32_t count, Output& out) const {
    const std::uint64_t inside = (std::uint64_t{1} << shift_) - 1;
    const unsigned part = shift_ > 6 ? shift_ - 6 : 0;
    const bool has_objects = met != nullptr && decoder_.objects_;
    if (has_objects) see_objects(block, *met);
    for (std::uint32_t i = 0; i < count; i++) {
        const std::uint64_t address = addresses[i];
        if ((block.flags[i] & REVISIT_GUARDED) && address == REVISIT_NO_ACCESS) continue;
        std::uint32_t label = met != nullptr ? met->labels[i] : 0;
        if (has_objects && !label_at(*met, i, address, label)) return false;
        const std::uint64_t first = address & inside, last = first + block.reaches[i];
        if (last >> shift_ > 1 || address > ~std::uint64_t{block.reaches[i]} ||
            out.room - out.filled < 2) [[unlikely]] {
            if (!put(address, label, block.sizes[i], block.flags[i], out)) return false;
            continue;
        }
        const std::size_t at = out.filled;
        out.blocks[at] = address >> shift_;
        out.blocks[at + 1] = (address >> shift_) + 1;
        if (out.sites != nullptr) out.sites[at] = out.sites[at + 1] = label;
        if (out.flags != nullptr) out.flags[at] = out.flags[at + 1] = block.writes[i];
        if (out.parts != nullptr) {
            out.parts[at] =
                static_cast<std::uint16_t>(first >> part | std::min(last, inside) >> part << 8);
            out.parts[at + 1] = static_cast<std::uint16_t>((last & inside) >> part << 8);
        }
        out.filled += 1 + (last >> shift_);
        out.accesses++;
    }
    return true;
}

// In its only caller, a call per block of code takes 1 ns per access.
[[gnu::always_inline]] inline bool SlotReader::block(const Decoder::Block& block,
                                                     const std::uint64_t* addresses,
                                                     std::uint32_t count, Output& out) {
    if (out.filled + count > out.room) return false;
    Met* met = nullptr;
    const std::uint32_t* labels = nullptr;
    if (out.sites != nullptr) {
        met = &met_[block.number % kMet];
        labels = labels_of(block, *met);
        if (labels == nullptr) return false;
    }
    const std::uint64_t inside = (std::uint64_t{1} << shift_) - 1;
    const std::uint32_t* const reaches = block.reaches.data();
    std::uint64_t* const to = out.blocks + out.filled;
    std::uint64_t beyond = block.guarded ? inside + 1 : 0;  // more than `inside`: one by one
    for (std::uint32_t i = 0; i < count; i++) {
        beyond |= (addresses[i] & inside) + reaches[i];
        to[i] = addresses[i] >> shift_;
    }
    if (beyond > inside) [[unlikely]]
        return one_by_one(block, met, addresses, count, out);
    if (labels != nullptr && decoder_.objects_) {
        see_objects(block, *met);
        for (std::uint32_t i = 0; i < count; i++)
            if (!label_at(*met, i, addresses[i], out.sites[out.filled + i])) return false;
    } else if (labels != nullptr)
        copy_vectors(labels, count, out.sites + out.filled);
    if (out.flags != nullptr) copy_vectors(block.writes.data(), count, out.flags + out.filled);
    if (out.parts != nullptr) {
        const unsigned part = shift_ > 6 ? shift_ - 6 : 0;
        for (std::uint32_t i = 0; i < count; i++) {
            const std::uint64_t byte = addresses[i] & inside;
            out.parts[out.filled + i] =
                static_cast<std::uint16_t>(byte >> part | (byte + reaches[i]) >> part << 8);
        }
    }
    out.filled += count;
    out.accesses += count;
    return true;
}

std::optional<std::size_t> SlotReader::read(const SlotView& slot, const BlocksWanted& wanted,
                                            Decoder::Calls& calls, BlockRoom& room) {
    const DecodeOptions& options = decoder_.options_;
    if (slot.salvaged) return std::nullopt;
    const auto thread = decoder_.threads_.find(slot.thread);
    if (thread == decoder_.threads_.end()) return std::nullopt;
    thread_ = &thread->second;
    calls_ = &calls;
    shift_ = wanted.shift;
    Output out{};
    out.room = kMostBlocks;
    out.blocks = room.blocks.make_room(kMostBlocks);
    if (options.labels) out.sites = room.sites.make_room(kMostBlocks + kVector);
    if (options.flags) out.flags = room.flags.make_room(kMostBlocks + kVector);
    const bool keeps_parts = wanted.parts || (wanted.lines && wanted.lines->keeps_parts());
    if (keeps_parts)
        out.parts = room.parts.make_room(kMostBlocks);
    else if (wanted.lines && wanted.lines->bytes)
        out.parts = parts_.make_room(kMostBlocks);
    const std::span<const std::uint64_t> words = slot.words;
    for (std::size_t at = 0; at < words.size();) {
        const std::uint64_t first = words[at];
        if (first & REVISIT_BLOCK_BIT) [[likely]] {
            const std::uint32_t count = REVISIT_BLOCK_COUNT(first);
            const Decoder::Block* const known = decoder_.find_block(REVISIT_BLOCK_ID(first));
            if (!known || count > known->sizes.size() || at + count >= words.size() ||
                !block(*known, words.data() + at + 1, count, out))
                return std::nullopt;
            at += 1 + count;
            continue;
        }
        const std::optional<std::size_t> length = record_length(first);
        if (!length || at + *length >= words.size()) return std::nullopt;
        switch (REVISIT_TAG(first)) {
            case REVISIT_ENTER:
            case REVISIT_ENTER_SITE:
            case REVISIT_LEAVE:
                if (!call(words.subspan(at), calls)) return std::nullopt;
                break;
            case REVISIT_BULK:
                if (!bulk(words.data() + at, out)) return std::nullopt;
                break;
            case REVISIT_THREAD:
                if (options.labels && REVISIT_N(first) != slot.thread) return std::nullopt;
                break;
            case REVISIT_THREAD_START:
            case REVISIT_THREAD_EXIT:
            case REVISIT_SYNC:
                break;
            default:
                return std::nullopt;
        }
        at += 1 + *length;
    }
    room.count = out.filled;
    room.has_sites = out.sites != nullptr;
    room.has_flags = out.flags != nullptr;
    room.has_parts = keeps_parts;
    room.has_threads = false;
    if (wanted.lines) {
        if (!dealer_) dealer_.emplace(*wanted.lines);
        BlockBatch lines = room.batch();
        if (out.parts != nullptr) lines.parts = {out.parts, out.filled};
        dealer_->deal(lines, room.lines);
    }
    // The decoder counts accesses as it hands them on.
    return options.cut != 0 ? out.filled : out.accesses;
}

// An access of any size.
bool SlotReader::put(std::uint64_t address, std::uint32_t label, std::uint32_t size, std::uint8_t flags,
                     Output& out) const {
    const std::uint64_t last = last_byte(address, size), last_block = last >> shift_;
    const unsigned part = shift_ > 6 ? shift_ - 6 : 0;
    const std::uint64_t inside = (std::uint64_t{1} << shift_) - 1;
    if (last_block - (address >> shift_) >= out.room - out.filled) return false;
    for (std::uint64_t block = address >> shift_;; block++) {
        out.blocks[out.filled] = block;
        if (out.sites != nullptr) out.sites[out.filled] = label;
        if (out.flags != nullptr) out.flags[out.filled] = flags & kWrite;
        if (out.parts != nullptr) {
            const std::uint64_t from = block == address >> shift_ ? address & inside : 0;
            const std::uint64_t to = block == last_block ? last & inside : inside;
            out.parts[out.filled] = static_cast<std::uint16_t>(from >> part | to >> part << 8);
        }
        out.filled++;
        if (block == last_block) break;
    }
    out.accesses++;
    return true;
}

// As Decoder::bulk does it.
bool SlotReader::bulk(const std::uint64_t* record, Output& out) const {
    constexpr std::uint64_t kMost = std::uint64_t{1} << 31;  // more is not read here anyway
    if (record[3] > kMost) return false;
    const auto flags = static_cast<std::uint8_t>(REVISIT_N(record[0]));
    std::uint32_t label = 0;
    if (out.sites != nullptr) {
        std::uint32_t place = 0;
        if (flags & REVISIT_BY_SITE) {
            const auto found = decoder_.site_places_.find(record[1]);
            if (found == decoder_.site_places_.end()) return false;
            place = found->second;
        } else {
            const auto found = decoder_.address_places_.find(record[1]);
            if (found == decoder_.address_places_.end()) return false;
            place = found->second;
        }
        const auto found = decoder_.label_ids_.find(both_in_one(calls_->context, place));
        if (found == decoder_.label_ids_.end()) return false;
        label = found->second;
        if (decoder_.objects_ && record[3] != 0) {  // it is of the object that it begins in
            const std::optional<std::uint32_t> with = with_object(label, record[2], nullptr);
            if (!with) return false;
            label = *with;
        }
    }
    if (record[3] == 0) return true;
    return put(record[2], label, static_cast<std::uint32_t>(record[3]), flags, out);
}

std::optional<std::uint32_t> SlotReader::with_object(std::uint32_t label, std::uint64_t address,
                                                     Decoder::NearLabel* near) const {
    const bool on_stack = address >= thread_->stack_low && address < thread_->stack_high;
    std::uint32_t object = kNowhere;
    bool is_near = false;
    if (on_stack) {
        const std::uint32_t place =
            calls_->place_of_frame(address, decoder_.origins_.labels[label].place);
        const std::optional<std::uint32_t> found = decoder_.objects_->known_stack_object(place);
        if (!found) return std::nullopt;
        object = *found;
    } else {
        const std::optional<ObjectMap::Known> found = decoder_.objects_->known(address);
        if (!found) return std::nullopt;
        object = found->object;
        is_near = found->is_whole_page && near != nullptr;
    }
    std::uint32_t with = label;
    if (object != kNowhere) {
        with = decoder_.object_labels_.find(both_in_one(label, object));
        if (with == KeyTable::kNone) return std::nullopt;
    }
    if (is_near) decoder_.widen(*near, address, with);
    return with;
}

std::unique_ptr<SlotReader> SlotReaders::take_reader() {
    std::lock_guard lock(guard_);
    if (idle_.empty()) return std::make_unique<SlotReader>(decoder_);
    std::unique_ptr<SlotReader> reader = std::move(idle_.back());
    idle_.pop_back();
    return reader;
}

// Where the thread's slots so far have led it; null: the decoder does not know the thread.
Decoder::Calls* SlotReaders::calls_of(std::uint32_t thread) {
    for (Following& one : following_)
        if (one.thread == thread) return &one.calls;
    const auto known = decoder_.threads_.find(thread);
    if (known == decoder_.threads_.end()) return nullptr;
    following_.push_back({thread, known->second});
    return &following_.back().calls;
}

std::size_t SlotReaders::read(std::span<const SlotView> slots, const BlocksWanted& wanted,
                              std::span<BlockRoom> rooms,
                              const std::function<void(const SlotView&)>& done) {
    const bool follows_calls = decoder_.follows_calls();
    following_.clear();
    ending_.resize(std::max(ending_.size(), slots.size()));
    std::vector<std::optional<std::size_t>> accesses(slots.size());
    std::atomic<std::uint32_t> turn = 0;
    bool stopped = false;      // whose turn it is decides
    std::size_t read_all = 0;  // slots, from the first on; guard_ is for this and `accesses`
    // Whoever waits for a turn must get it: nothing is thrown before it is passed on.
    auto begin = [&](std::size_t i, SlotReader& reader) {
        Decoder::Calls* const calls = calls_of(slots[i].thread);
        if (calls == nullptr) return false;
        ending_[i] = *calls;
        return !follows_calls || reader.follow(slots[i], *calls);
    };
    crew_.run(slots.size(), [&](std::size_t i) {
        std::unique_ptr<SlotReader> reader;
        bool goes_on = false;
        try {
            reader = take_reader();
            goes_on = !follows_calls || reader->list_calls(slots[i]);
        } catch (const std::bad_alloc&) {
        }
        // Pieces are taken in order, so those before are under way.
        for (std::uint32_t at = turn; at != i; at = turn) turn.wait(at);
        try {
            goes_on = goes_on && !stopped && begin(i, *reader);
        } catch (const std::bad_alloc&) {
            goes_on = false;
        }
        stopped = !goes_on;
        turn = static_cast<std::uint32_t>(i + 1);
        turn.notify_all();
        std::optional<std::size_t> read;
        if (goes_on) read = reader->read(slots[i], wanted, ending_[i], rooms[i]);
        std::size_t from = 0, to = 0;
        {
            std::lock_guard lock(guard_);
            if (reader) idle_.push_back(std::move(reader));
            accesses[i] = read;
            from = read_all;
            while (read_all < slots.size() && accesses[read_all]) read_all++;
            to = read_all;
        }
        for (; from < to; from++) done(slots[from]);
    });
    for (std::size_t i = 0; i < read_all; i++) {
        decoder_.accesses_ += *accesses[i];
        if (!follows_calls) continue;
        Decoder::Calls& now = decoder_.threads_.at(slots[i].thread);
        std::swap(now, ending_[i]);
    }
    return read_all;
}

}  // namespace revisit::record
