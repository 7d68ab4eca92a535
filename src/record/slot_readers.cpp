#include "record/slot_readers.h"

#include <algorithm>
#include <atomic>
#include <new>
#include <utility>

#include "engines/simd.h"

namespace revisit::record {
namespace {

// Few accesses touch two blocks.
constexpr std::size_t kMostBlocks = std::size_t{REVISIT_DERIVED_MOST} * REVISIT_SLOT_WORDS;
constexpr std::size_t kDeepest = 4096;  // frames that are copied with every slot

std::uint64_t last_byte(std::uint64_t address, std::uint32_t size) {
    const std::uint64_t reach = std::max(1u, size) - 1;
    return address > ~reach ? ~std::uint64_t{0} : address + reach;
}

}  // namespace

SlotReader::SlotReader(const Decoder& decoder) : decoder_(decoder), met_(kMet) {}

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

// Blocks of one call path are side by side: they are the ones that are met in turn.
REVISIT_INLINE SlotReader::Met& SlotReader::met_at(std::uint64_t id) {
    constexpr std::uint64_t kApart = 61;
    return met_[(id + kApart * calls_->context) % kMet];
}

REVISIT_INLINE bool SlotReader::is_met(std::uint64_t id, const Met& met) const {
    return met.id == id && met.context == calls_->context && met.changes == changes_;
}

// Finds what is known of a block. False: its labels in this call path are not.
bool SlotReader::meet(std::uint64_t id, Met& met) const {
    met.id = kNoBlock;
    const Decoder::Block* const block = decoder_.find_block(id);
    if (block == nullptr) return false;
    met.labels = nullptr;
    if (decoder_.options_.labels) {
        const std::uint32_t list =
            decoder_.label_list_of_.find(both_in_one(block->number, calls_->context));
        if (list == KeyTable::kNone) return false;
        met.labels = decoder_.label_lists_[list].get();
    }
    met.accesses.resize(block->sizes.size());
    for (std::size_t i = 0; i < met.accesses.size(); i++) {
        Decoder::NearLabel near;
        if (met.labels == nullptr || !decoder_.objects_)
            near = {0, ~std::uint64_t{0}, met.labels != nullptr ? met.labels[i] : 0};
        met.accesses[i] = {near, block->reaches[i], block->writes[i],
                           (block->flags[i] & REVISIT_GUARDED) != 0};
        if (!block->is_derived()) continue;
        met.accesses[i].from = block->from[i];
        met.accesses[i].offset = static_cast<std::int32_t>(block->offsets[i]);
    }
    met.guarded = block->guarded;
    met.block = block;
    met.context = calls_->context;
    met.changes = changes_;
    met.id = id;
    return true;
}

// As Decoder::labels_with_objects does it.
inline bool SlotReader::label_at(Met& met, std::uint32_t i, std::uint64_t address,
                                 std::uint32_t& label) const {
    Decoder::NearLabel& near = met.accesses[i].near;
    if (address - near.low < near.size && address - stack_low_ >= stack_bytes_) [[likely]] {
        label = near.label;
        return true;
    }
    label = met.labels != nullptr ? met.labels[i] : 0;
    if (met.labels == nullptr || !decoder_.objects_) return true;
    const std::optional<std::uint32_t> found = with_object(label, address, &near);
    label = found.value_or(0);
    return found.has_value();
}

// Accesses of which some touch several blocks, are of another object than those before, or may not have
// been made. Those of one block or two take two places each, and the next one begins with the second
// where that is not needed.
bool SlotReader::one_by_one(Met& met, const std::uint64_t* addresses, std::uint32_t count,
                            Output& out) const {
    const std::uint64_t inside = (std::uint64_t{1} << shift_) - 1;
    const unsigned part = shift_ > 6 ? shift_ - 6 : 0;
    for (std::uint32_t i = 0; i < count; i++) {
        const std::uint64_t address = addresses[i];
        const KnownAccess& known = met.accesses[i];
        if (known.guarded && address == REVISIT_NO_ACCESS) continue;
        std::uint32_t label = 0;
        if (!label_at(met, i, address, label)) return false;
        const std::uint64_t first = address & inside, last = first + known.reach;
        if (last >> shift_ > 1 || address > ~std::uint64_t{known.reach} || out.room - out.filled < 2)
            [[unlikely]] {
            if (!put(address, label, known.reach + 1, known.write, out)) return false;
            continue;
        }
        const std::size_t at = out.filled;
        out.blocks[at] = address >> shift_;
        out.blocks[at + 1] = (address >> shift_) + 1;
        if (out.sites != nullptr) out.sites[at] = out.sites[at + 1] = label;
        if (out.flags != nullptr) out.flags[at] = out.flags[at + 1] = known.write;
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

// Writes what can be told without looking closer, of all accesses. False where that is not enough: then
// one_by_one() writes it again. As a call, a block of code takes 1 ns per access more.
template <bool kParts, bool kDerived>
REVISIT_INLINE bool SlotReader::plain_block(const Met& met, const std::uint64_t* told,
                                            std::uint32_t count, const Output& to,
                                            std::size_t at) const {
    const unsigned shift = shift_, part = shift > 6 ? shift - 6 : 0;
    const std::uint64_t inside = (std::uint64_t{1} << shift) - 1;
    const std::uint64_t stack_low = stack_low_, stack_bytes = stack_bytes_;
    const KnownAccess* const known = met.accesses.data();
    std::uint64_t* const blocks = to.blocks + at;
    std::uint32_t* const sites = to.sites + at;
    std::uint8_t* const flags = to.flags + at;
    std::uint16_t* const parts = kParts ? to.parts + at : nullptr;
    bool is_plain = !met.guarded;
    for (std::uint32_t i = 0; i < count; i++) {
        const std::uint64_t address =
            kDerived ? told[known[i].from] + static_cast<std::uint64_t>(std::int64_t{known[i].offset})
                     : told[i];
        const std::uint64_t first = address & inside, last = first + known[i].reach;
        is_plain &= last <= inside;
        is_plain &= address - known[i].near.low < known[i].near.size;
        is_plain &= address - stack_low >= stack_bytes;
        blocks[i] = address >> shift;
        sites[i] = known[i].near.label;
        flags[i] = known[i].write;
        if constexpr (kParts) parts[i] = static_cast<std::uint16_t>(first >> part | last >> part << 8);
    }
    return is_plain;
}

// The same without sites: loops over two columns at a time are faster here.
template <bool kDerived>
REVISIT_INLINE bool SlotReader::plain_block(const Decoder::Block& block, const std::uint64_t* told,
                                            std::uint32_t count, const Output& to,
                                            std::size_t at) const {
    const std::uint64_t inside = (std::uint64_t{1} << shift_) - 1;
    const std::uint32_t* const reaches = block.reaches.data();
    const std::uint32_t* const from = block.from.data();
    const std::int64_t* const offsets = block.offsets.data();
    std::uint64_t* const blocks = to.blocks + at;
    std::uint64_t beyond = block.guarded ? inside + 1 : 0;
    auto address_of = [&](std::uint32_t i) {
        return kDerived ? told[from[i]] + static_cast<std::uint64_t>(offsets[i]) : told[i];
    };
    for (std::uint32_t i = 0; i < count; i++) {
        const std::uint64_t address = address_of(i);
        beyond |= (address & inside) + reaches[i];
        blocks[i] = address >> shift_;
    }
    if (to.parts != nullptr) {
        const unsigned part = shift_ > 6 ? shift_ - 6 : 0;
        for (std::uint32_t i = 0; i < count; i++) {
            const std::uint64_t byte = address_of(i) & inside;
            to.parts[at + i] =
                static_cast<std::uint16_t>(byte >> part | (byte + reaches[i]) >> part << 8);
        }
    }
    return beyond <= inside;
}

// Anything but accesses of a block. Gives its length; 0: it is not for readers.
std::size_t SlotReader::record(const SlotView& slot, std::size_t at, Decoder::Calls& calls,
                               Output& out) const {
    const std::span<const std::uint64_t> words = slot.words;
    const std::optional<std::size_t> length = record_length(words[at]);
    if (!length || at + *length >= words.size()) return 0;
    switch (REVISIT_TAG(words[at])) {
        case REVISIT_ENTER:
        case REVISIT_ENTER_SITE:
        case REVISIT_LEAVE:
            if (!call(words.subspan(at), calls)) return 0;
            break;
        case REVISIT_BULK:
            if (!bulk(words.data() + at, out)) return 0;
            break;
        case REVISIT_THREAD:
            if (decoder_.options_.labels && REVISIT_N(words[at]) != slot.thread) return 0;
            break;
        case REVISIT_THREAD_START:
        case REVISIT_THREAD_EXIT:
        case REVISIT_SYNC:
            break;
        default:
            return 0;
    }
    return 1 + *length;
}

// Where it reads and writes is in variables that nothing points to: in memory, each block of code would
// wait for the one before it.
template <bool kLabels, bool kParts>
bool SlotReader::read_words(const SlotView& slot, Decoder::Calls& calls, Output& out) {
    const std::span<const std::uint64_t> words = slot.words;
    const Output to = out;
    std::uint64_t expanded[REVISIT_BLOCK_MAX];
    std::size_t filled = out.filled, accesses = out.accesses;
    auto take_back = [&] {
        filled = out.filled;
        accesses = out.accesses;
    };
    for (std::size_t at = 0; at < words.size();) {
        const std::uint64_t first = words[at];
        if (!(first & REVISIT_BLOCK_BIT)) [[unlikely]] {
            out.filled = filled;
            out.accesses = accesses;
            const std::size_t length = record(slot, at, calls, out);
            if (length == 0) return false;
            take_back();
            at += length;
            continue;
        }
        const std::uint32_t told = REVISIT_BLOCK_COUNT(first);
        const std::uint64_t id = REVISIT_BLOCK_ID(first);
        const std::uint64_t* const addresses = words.data() + at + 1;
        if (at + told >= words.size()) return false;
        at += 1 + told;
        bool is_plain = false;
        std::uint32_t count = told;
        auto fits = [&](const Decoder::Block& block) {
            if (told > block.words) return false;
            if (block.is_derived()) count = block.accesses_of(told);
            return count <= to.room - filled;
        };
        const Decoder::Block* block = nullptr;
        if constexpr (kLabels) {
            Met& met = met_at(id);
            if (!is_met(id, met) && !meet(id, met)) [[unlikely]]
                return false;
            block = met.block;
            if (!fits(*block)) return false;
            is_plain = block->is_derived()
                           ? plain_block<kParts, true>(met, addresses, count, to, filled)
                           : plain_block<kParts, false>(met, addresses, count, to, filled);
        } else {
            block = decoder_.find_block(id);
            if (block == nullptr || !fits(*block)) return false;
            is_plain = block->is_derived() ? plain_block<true>(*block, addresses, count, to, filled)
                                           : plain_block<false>(*block, addresses, count, to, filled);
        }
        if (!is_plain) [[unlikely]] {
            out.filled = filled;
            out.accesses = accesses;
            Met& met = met_at(id);
            if (!is_met(id, met) && !meet(id, met)) return false;
            const std::uint64_t* all = addresses;
            if (block->is_derived()) {
                block->expand(addresses, told, expanded);
                all = expanded;
            }
            if (!one_by_one(met, all, count, out)) return false;
            take_back();
            continue;
        }
        filled += count;
        accesses += count;
    }
    out.filled = filled;
    out.accesses = accesses;
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
    const bool has_objects = options.labels && decoder_.objects_;
    stack_low_ = thread_->stack_low;
    stack_bytes_ = has_objects ? thread_->stack_high - stack_low_ : 0;
    changes_ = has_objects ? decoder_.objects_->changes() : 0;
    // Another block may have got the id of one that is gone.
    if (std::exchange(defined_, decoder_.block_count_) != decoder_.block_count_)
        for (Met& met : met_) met.id = kNoBlock;
    Output out{};
    out.room = kMostBlocks;
    out.blocks = room.blocks.make_room(kMostBlocks);
    if (options.labels) out.sites = room.sites.make_room(kMostBlocks);
    if (options.flags) out.flags = room.flags.make_room(kMostBlocks);
    const bool keeps_parts = wanted.parts || (wanted.lines && wanted.lines->keeps_parts());
    if (keeps_parts)
        out.parts = room.parts.make_room(kMostBlocks);
    else if (wanted.lines && wanted.lines->bytes)
        out.parts = parts_.make_room(kMostBlocks);
    bool has_read = false;
    if (out.sites != nullptr && out.flags != nullptr)
        has_read = out.parts != nullptr ? read_words<true, true>(slot, calls, out)
                                        : read_words<true, false>(slot, calls, out);
    else if (out.sites == nullptr && out.flags == nullptr)
        has_read = read_words<false, false>(slot, calls, out);
    if (!has_read) return std::nullopt;
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
    // One reader comes to the end of a slot before it begins the next, and need not know more.
    const bool lists_calls = follows_calls && crew_.size() > 1;
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
        return !lists_calls || reader.follow(slots[i], *calls);
    };
    crew_.run(slots.size(), [&](std::size_t i) {
        std::unique_ptr<SlotReader> reader;
        bool goes_on = false;
        try {
            reader = take_reader();
            goes_on = !lists_calls || reader->list_calls(slots[i]);
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
        if (follows_calls && !lists_calls) {
            stopped = !read;
            if (read) *calls_of(slots[i].thread) = ending_[i];
        }
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
