// Exact reuse distances in private caches: one stack per thread, kept coherent.
//
// Problem. A thread's block is lost when another thread writes to it, and leaves a hole behind. The
// definition is a list per thread, searched from the top (naive.cpp); here an access must take
// O(log M) steps.
//
// Idea. What hardware does: a directory and exclusive states. A thread keeps a position in its own
// stack (private_stack.h) for each block it holds, and beside it a bit that says nobody else holds it.
// A read of a block one holds, or a write to one held alone, concerns no other thread: that is one
// lookup in the thread's own table, prefetched some accesses ahead, and one count of the slots above.
// Only a fetch, or a write to a block held with others, asks the directory who the holders are; a write
// turns their slots into holes. Each holder put on a list was paid for by its own fetch, so lists cost
// O(1) per access however many threads there are.
//
//     thread 0   reads A, reads B      its stack: B A
//     thread 1   writes A              that of thread 0: B and a hole
//     thread 0   reads B               distance 0
//     thread 0   reads A               invalidated, in a cache of any size; A fills the hole
//
// An entry is never removed from a thread's table: a block that was lost and comes back is
// *invalidated*, one never met is *cold*. Time distances are counted in the thread's own accesses, and
// the use of a pair is the thread's own last access.
//
// Which write took a block that a thread comes back for is kept beside the thread's entry (sharing.h).
//
// The shared stack, when asked for as well, is the exact engine on the same blocks, on a thread of its
// own (shared_stack.h), with what a shared cache sees behind private ones (private_filters.h);
// attribution to sites has another.
//
// Source. Schuff, Kulkarni, Pai 2010 for the model; the directory is that of any coherence protocol.
#include "engines/private.h"

#include <fmt/format.h>

#include <algorithm>
#include <new>

#include "core/try.h"

namespace revisit {
namespace {

constexpr std::uint32_t kLost = 1;                    // a table's value: another thread's write took it
constexpr std::uint32_t kSole = 0x80000000u;          // beside a position: nobody else holds the block
constexpr std::size_t kAttributedPiece = 4096;        // accesses attributed together
constexpr std::size_t kAhead = 24;                    // accesses a table's line is asked for ahead
constexpr std::uint64_t kLeastWindow = 1 << 16;       // accesses between two renumberings
constexpr std::uint64_t kMostBlocks = 1'500'000'000;  // of a thread

}  // namespace

HolderDirectory::Found HolderDirectory::find(std::uint64_t block) {
    const std::size_t entry = table_.find(block);
    if (table_[entry].value != 0) return {entry, false};
    return {table_.insert(entry, block, kNobody), true};
}

std::uint32_t HolderDirectory::node(std::uint32_t thread, std::uint32_t next) {
    if (free_ == 0) {
        nodes_.push_back({thread, next});
        return static_cast<std::uint32_t>(nodes_.size() - 1);
    }
    const std::uint32_t node = free_;
    free_ = nodes_[node].next;
    nodes_[node] = {thread, next};
    return node;
}

void HolderDirectory::hold_alone(std::size_t entry, std::uint32_t thread) {
    std::uint32_t& value = table_[entry].value;
    if (value % 2 == 0) {
        std::uint32_t last = value >> 1;
        while (nodes_[last].next != 0) last = nodes_[last].next;
        nodes_[last].next = free_;
        free_ = value >> 1;
    }
    value = thread << 1 | 1;
}

void HolderDirectory::add(std::size_t entry, std::uint32_t thread) {
    std::uint32_t& value = table_[entry].value;
    const std::uint32_t rest = value % 2 == 0 ? value >> 1 : node(value >> 1, 0);
    value = node(thread, rest) << 1;
}

template <class Use>
void HolderDirectory::for_each(std::size_t entry, Use use) const {
    const std::uint32_t value = table_[entry].value;
    if (value % 2 != 0) return use(value >> 1);
    for (std::uint32_t at = value >> 1; at != 0; at = nodes_[at].next) use(nodes_[at].thread);
}

template <class Use>
void HolderDirectory::if_alone(std::size_t entry, Use use) const {
    if (table_[entry].value % 2 != 0) use(table_[entry].value >> 1);
}

struct PrivateEngine::Thread {
    Thread(std::uint16_t thread_id, std::uint32_t thread_index, const EngineOptions& options)
        : id(thread_id), index(thread_index), counter(options.bins) {
        if (options.time) blocks.keep_times();
        if (options.sharing) blocks.keep_touches();
    }

    // Its block on top is still there and, for writes, its own alone.
    bool repeats(std::uint64_t block, bool write) const {
        return block == top_block && (write ? top_is_sole : top_is_held);
    }
    void disturb_top(std::uint64_t block, bool held) {
        if (block != top_block) return;
        top_is_sole = false;
        top_is_held = top_is_held && held;
    }

    std::uint16_t id;
    std::uint32_t index;
    BlockTable blocks;  // value: kLost, or a position and kSole
    PrivateStack stack;
    ThreadCounter counter;
    std::uint64_t accesses = 0;
    std::uint64_t top_block = 0;
    bool top_is_held = false;
    bool top_is_sole = false;
};

PrivateEngine::PrivateEngine(const EngineOptions& options) : options_(options), times_(options.bins) {
    if (options.sites || options.pairs) sites_.emplace(options);
    if (options.sharing || options.shared) beside_.emplace(options);
}

REVISIT_INLINE PrivateEngine::Thread& PrivateEngine::thread(std::uint16_t id) {
    if (id < by_id_.size() && by_id_[id] != nullptr) [[likely]]
        return *by_id_[id];
    return new_thread(id);
}

PrivateEngine::Thread& PrivateEngine::new_thread(std::uint16_t id) {
    if (id >= by_id_.size()) by_id_.resize(std::size_t{id} + 1);
    threads_.push_back(
        std::make_unique<Thread>(id, static_cast<std::uint32_t>(threads_.size()), options_));
    return *(by_id_[id] = threads_.back().get());
}

Result<void> PrivateEngine::add(const BlockBatch& batch) {
    try {
        if (beside_) TRY(beside_->add(batch.blocks));
        for (std::size_t at = 0; at < batch.count(); at += kAttributedPiece)
            TRY(add_piece(batch.part(at, std::min(kAttributedPiece, batch.count() - at))));
        return {};
    } catch (const std::bad_alloc&) {
        return fail(fmt::format("not enough memory for the private stacks of {} threads over {} blocks",
                                threads_.size(), directory_.blocks()));
    }
}

Result<void> PrivateEngine::add_piece(const BlockBatch& piece) {
    if (!sites_ && !options_.time) return count<false>(piece);
    if (sites_) {
        distances_.resize(piece.count());
        use_sites_.resize(piece.count());
    }
    TRY(count<true>(piece));
    if (sites_) sites_->add(piece, distances_, use_sites_);
    return {};
}

template <bool kDetailed>
Result<void> PrivateEngine::count(const BlockBatch& piece) {
    const bool one_thread = piece.threads.empty();
    Thread* mine = one_thread ? &thread(0) : nullptr;
    for (std::size_t i = 0; i < piece.count(); i++) {
        if (i + kAhead < piece.count()) {
            const std::size_t ahead = i + kAhead;
            (one_thread ? *mine : thread(piece.threads[ahead])).blocks.prefetch(piece.blocks[ahead]);
        }
        if (!one_thread) mine = &thread(piece.threads[i]);
        const bool write = !piece.flags.empty() && (piece.flags[i] & kWrite) != 0;
        mine->accesses++;
        if (!kDetailed && mine->repeats(piece.blocks[i], write)) {
            mine->counter.add(0);
            continue;
        }
        if (mine->stack.full()) TRY(renumber(*mine));
        const BlockTable::Touch by{piece.sites.empty() ? 0 : piece.sites[i], mine->id,
                                   piece.parts.empty() ? std::uint16_t{0} : piece.parts[i]};
        const std::uint64_t blocks_before = directory_.blocks();
        const std::uint32_t distance = access<kDetailed>(
            *mine, piece.blocks[i], write, by, kDetailed && sites_ ? &use_sites_[i] : nullptr);
        if (distance != 0 && beside_ && beside_->follows(piece.blocks[i]))
            beside_->add_event({piece.blocks[i], mine->index,
                                directory_.blocks() > blocks_before ? PrivateFilters::Kind::first
                                : distance >= SiteAttribution::kInvalidated
                                    ? PrivateFilters::Kind::missed
                                    : PrivateFilters::Kind::reuse});
        if (distance == SiteAttribution::kCold)
            mine->counter.cold++;
        else if (distance == SiteAttribution::kInvalidated)
            mine->counter.invalidated++;
        else
            mine->counter.add(distance);
        if (kDetailed && sites_) distances_[i] = distance;
    }
    return {};
}

template <bool kDetailed>
std::uint32_t PrivateEngine::access(Thread& mine, std::uint64_t block, bool write,
                                    const BlockTable::Touch& by, std::uint32_t* use_site) {
    std::size_t at = mine.blocks.find(block);
    const std::uint32_t value = mine.blocks[at].value;
    std::uint32_t distance;
    bool sole;
    if (value > kLost) [[likely]] {
        const std::uint32_t position = value & ~kSole;
        distance = mine.stack.depth(position);
        sole = (value & kSole) != 0;
        if (write && !sole) {
            take_from_others(mine, block, directory_.find(block).entry, by);
            sole = true;
        }
        mine.blocks[at].value = mine.stack.raise(position) | (sole ? kSole : 0);
    } else {
        distance = value == kLost ? SiteAttribution::kInvalidated : SiteAttribution::kCold;
        if (value == kLost && options_.sharing)
            beside_->add_invalidated(block, mine.blocks.touch(at), by, write);
        sole = fetch(mine, block, write, by);
        const std::uint32_t now = mine.stack.fetch() | (sole ? kSole : 0);
        if (value == 0)
            at = mine.blocks.insert(at, block, now);
        else
            mine.blocks[at].value = now;
    }
    mine.top_block = block;
    mine.top_is_held = true;
    mine.top_is_sole = sole;
    if constexpr (kDetailed) {
        if (use_site != nullptr) *use_site = mine.blocks[at].site;
        mine.blocks[at].site = by.site;
        if (options_.time) {
            if (distance == SiteAttribution::kCold)
                times_.add_cold();
            else if (distance == SiteAttribution::kInvalidated)
                times_.add_invalidated();
            else
                times_.add(mine.accesses - mine.blocks.time(at));
            mine.blocks.time(at) = mine.accesses;
        }
    }
    return distance;
}

// Enters the thread as a holder. True when it is the only one.
bool PrivateEngine::fetch(Thread& mine, std::uint64_t block, bool write, const BlockTable::Touch& by) {
    const auto [entry, is_new] = directory_.find(block);
    if (is_new) {
        directory_.hold_alone(entry, mine.index);
        return true;
    }
    if (write) {
        take_from_others(mine, block, entry, by);
        return true;
    }
    directory_.if_alone(entry, [&](std::uint32_t holder) {
        Thread& other = *threads_[holder];
        other.disturb_top(block, true);
        other.blocks[other.blocks.find(block)].value &= ~kSole;
    });
    directory_.add(entry, mine.index);
    return false;
}

void PrivateEngine::take_from_others(Thread& mine, std::uint64_t block, std::size_t entry,
                                     const BlockTable::Touch& by) {
    const bool followed = beside_ && beside_->follows(block);
    directory_.for_each(entry, [&](std::uint32_t holder) {
        if (holder == mine.index) return;
        Thread& other = *threads_[holder];
        other.disturb_top(block, false);
        const std::size_t at = other.blocks.find(block);
        std::uint32_t& value = other.blocks[at].value;
        other.stack.make_hole(value & ~kSole);
        value = kLost;
        if (options_.sharing) other.blocks.touch(at) = by;
        if (followed) beside_->add_event({block, holder, PrivateFilters::Kind::remove});
    });
    directory_.hold_alone(entry, mine.index);
}

// The window has room for as many accesses as the table has entries, three times over, so that walking
// the table costs O(1) an access.
Result<void> PrivateEngine::renumber(Thread& mine) {
    if (mine.blocks.count() > kMostBlocks)
        return fail(fmt::format("the private model keeps at most {} blocks per thread", kMostBlocks));
    mine.stack.renumber(std::max(4 * mine.blocks.count(), kLeastWindow), [&](auto new_position) {
        mine.blocks.for_each([&](BlockTable::Entry& entry) {
            if (entry.value > kLost)
                entry.value = new_position(entry.value & ~kSole) | (entry.value & kSole);
        });
    });
    return {};
}

Result<Histogram> PrivateEngine::reuse_so_far() {
    ThreadCounter all(options_.bins);
    for (const auto& thread : threads_) all.merge(thread->counter);
    return all.histogram();
}

Result<void> PrivateEngine::sites_so_far(SiteOctaves& out) {
    if (sites_) sites_->add_so_far(out);
    return {};
}

Result<Profile> PrivateEngine::finish() {
    try {
        return profile_of_all();
    } catch (const std::bad_alloc&) {
        return fail("not enough memory for the private model's profile");
    }
}

Result<Profile> PrivateEngine::profile_of_all() {
    Profile profile;
    profile.method = "exact";
    profile.model = "private";
    profile.granularity = options_.granularity;
    profile.distinct = static_cast<double>(directory_.blocks());
    ThreadCounter all(options_.bins);
    std::sort(threads_.begin(), threads_.end(),
              [](const auto& a, const auto& b) { return a->id < b->id; });
    for (const auto& thread : threads_) {
        profile.accesses += static_cast<double>(thread->accesses);
        profile.threads.push_back(
            {thread->id, static_cast<double>(thread->accesses), thread->counter.histogram()});
        all.merge(thread->counter);
    }
    profile.reuse = all.histogram();
    if (options_.time) profile.time = times_.histogram();
    if (sites_) sites_->fill(profile);
    if (beside_) TRY(beside_->fill(profile));
    return profile;
}

Result<std::unique_ptr<Engine>> make_private(const EngineOptions& options) {
    try {
        return std::make_unique<PrivateEngine>(options);
    } catch (const std::bad_alloc&) {
        return fail("not enough memory for the private model");
    }
}

}  // namespace revisit
