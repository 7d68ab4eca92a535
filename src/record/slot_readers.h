// Slots read on several threads, straight to the blocks that workers count.
//
// Problem. One thread that decodes every slot is what a profile with sites waits for (11 ns per access,
// where the engine's four threads take 4 each). What an access means depends on all records before it:
// on the calls its thread is in, on what was defined and allocated.
// Idea. Nearly all slots hold nothing but blocks of accesses and calls, and all of their answers are in
// the decoder's tables already. These are read without changing anything, several at once:
//
//     1. a reader lists the calls in its slot and returns in it (any order)
//     2. it follows them from where the slot before of that thread ended (slots in their order; short)
//     3. it reads the slot's accesses from where step 2 began (any order)
//
// The first slot with something new, a definition, an allocation, a call path or label that is not
// known, ends this. It goes to the decoder, which is then the only one at work, and the slots after it
// are read again. So labels, call paths and objects are made in the order of the stream and by one
// thread, whatever the number of readers: the profile is the same.
//
// Blocks of code have an access or two in the middle of a loop. So all that is known of a block in its
// call path lies side by side, and one loop over its accesses writes all columns: a loop per column
// ended with a branch of its own that was often predicted wrong.
//
// Cost. 5 to 8 ns per access (Neoverse-V1: matmul, stencil, quicksort), cutting to blocks included,
// shared by all readers. Steps 1 and 2 take up to 3 more; one reader alone does without them.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "core/parallel.h"
#include "engines/block_workers.h"
#include "record/decode.h"
#include "record/slots.h"

namespace revisit::record {

// One reader: what it last found, so that it need not look again.
class SlotReader {
 public:
    explicit SlotReader(const Decoder& decoder);

    // Steps 1 to 3. False: there is something else in it.
    bool list_calls(const SlotView& slot);
    bool follow(const SlotView& slot, Decoder::Calls& calls) const;
    // Leaves `calls` as they are at the end. Gives the number of accesses.
    std::optional<std::size_t> read(const SlotView& slot, const BlocksWanted& wanted,
                                    Decoder::Calls& calls, BlockRoom& room);

 private:
    // An access of a block of code, as far as it is known before its address.
    struct KnownAccess {
        Decoder::NearLabel near;  // all addresses, where objects are not told apart
        std::uint32_t reach = 0;  // its size less one
        std::uint8_t write = 0;
        bool guarded = false;
        std::uint32_t from = 0;   // the word that tells its address
        std::int32_t offset = 0;  // and how far from it
    };
    // A block of code that was met lately, in the call path that its thread was in.
    struct Met {
        std::uint64_t id = kNoBlock;
        std::uint64_t changes = 0;  // of objects until then
        std::uint32_t context = kNowhere;
        bool guarded = false;
        const Decoder::Block* block = nullptr;
        const std::uint32_t* labels = nullptr;
        std::vector<KnownAccess> accesses;
    };
    struct Output {
        std::uint64_t* blocks;
        std::uint32_t* sites;
        std::uint8_t* flags;
        std::uint16_t* parts;  // null: not wanted, as the others
        std::size_t filled = 0, room = 0, accesses = 0;
    };

    bool call(std::span<const std::uint64_t> record, Decoder::Calls& calls) const;
    template <bool kLabels, bool kParts>
    bool read_words(const SlotView& slot, Decoder::Calls& calls, Output& out);
    template <bool kParts, bool kDerived>
    bool plain_block(const Met& met, const std::uint64_t* told, std::uint32_t count, const Output& to,
                     std::size_t at) const;
    template <bool kDerived>
    bool plain_block(const Decoder::Block& block, const std::uint64_t* told, std::uint32_t count,
                     const Output& to, std::size_t at) const;
    std::size_t record(const SlotView& slot, std::size_t at, Decoder::Calls& calls, Output& out) const;
    bool one_by_one(Met& met, const std::uint64_t* addresses, std::uint32_t count, Output& out) const;
    bool put(std::uint64_t address, std::uint32_t label, std::uint32_t size, std::uint8_t flags,
             Output& out) const;
    bool bulk(const std::uint64_t* record, Output& out) const;
    Met& met_at(std::uint64_t id);
    bool is_met(std::uint64_t id, const Met& met) const;
    bool meet(std::uint64_t id, Met& met) const;
    bool label_at(Met& met, std::uint32_t i, std::uint64_t address, std::uint32_t& label) const;
    std::optional<std::uint32_t> with_object(std::uint32_t label, std::uint64_t address,
                                             Decoder::NearLabel* near) const;

    static constexpr std::size_t kMet = 1024;
    static constexpr std::uint64_t kNoBlock = ~std::uint64_t{0};
    const Decoder& decoder_;
    std::vector<Met> met_;
    std::uint32_t defined_ = 0;           // blocks of code when these were met
    std::vector<std::uint32_t> call_at_;  // in the slot
    std::optional<LineDealer> dealer_;
    Column<std::uint16_t> parts_;  // for it alone
    // While a slot is read.
    unsigned shift_ = 0;
    std::uint64_t stack_low_ = 0, stack_bytes_ = 0;  // where objects are told apart
    std::uint64_t changes_ = 0;                      // of objects
    const Decoder::Thread* thread_ = nullptr;
    const Decoder::Calls* calls_ = nullptr;
};

class SlotReaders {
 public:
    SlotReaders(Decoder& decoder, Crew& crew) : decoder_(decoder), crew_(crew) {}

    // Whether what is asked about accesses can be told without looking at each.
    static bool can_read(const DecodeOptions& options) {
        return !options.only_regions && options.stack && options.most_accesses == ~std::uint64_t{0};
    }

    // Reads slots from the first on, as many as hold nothing new, each into its room, and gives their
    // number. Calls done(slot), on any thread, when a slot's words are no longer needed. What the
    // decoder has gathered must have been handed on.
    std::size_t read(std::span<const SlotView> slots, const BlocksWanted& wanted,
                     std::span<BlockRoom> rooms, const std::function<void(const SlotView&)>& done);

 private:
    std::unique_ptr<SlotReader> take_reader();
    Decoder::Calls* calls_of(std::uint32_t thread);

    Decoder& decoder_;
    Crew& crew_;
    std::mutex guard_;
    std::vector<std::unique_ptr<SlotReader>> idle_;
    struct Following {
        std::uint32_t thread;
        Decoder::Calls calls;
    };
    std::vector<Following> following_;    // threads of the slots at hand
    std::vector<Decoder::Calls> ending_;  // calls at the end of each slot
};

}  // namespace revisit::record
