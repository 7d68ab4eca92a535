// One recorded process: its records in, its accesses with labels out.
//
// The decoder keeps what the stream defines (blocks, sites, modules), follows each thread's calls, and
// gives every access its label (symbols/origins.h). A block of accesses is copied column by column
// from its definition; the labels of a block in a context are made once and looked up by one compare.
// Columns that nobody asked for are not made, and where the granularity is known accesses are cut here,
// from what the definition says about sizes: that is what makes the difference between 60 and 150 M
// accesses a second.
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/frequent.h"
#include "core/key_table.h"
#include "record/interleave.h"
#include "record/objects.h"
#include "record/slots.h"
#include "revisit/access.h"
#include "revisit/error.h"
#include "symbols/origins.h"

namespace revisit::record {

// Words after the first that a record takes, from its first word; nothing for an unknown tag.
std::optional<std::size_t> record_length(std::uint64_t word);

// Text of a record that has parts: each ends with a zero.
std::vector<std::string> split_text(std::string_view text);

// Keys of the decoder's tables are pairs of numbers.
inline std::uint64_t both_in_one(std::uint32_t high, std::uint32_t low) {
    return std::uint64_t{high} << 32 | low;
}

// A few values by whole vectors: a call to memcpy takes longer than that. Both sides have room for
// them.
constexpr std::size_t kVector = 16;  // bytes
template <class T>
void copy_vectors(const T* from, std::size_t count, T* to) {
    constexpr std::size_t kStep = kVector / sizeof(T);
    for (std::size_t i = 0; i < count; i += kStep) std::memcpy(to + i, from + i, kVector);
}

struct DecodeOptions {
    bool labels = true;     // sites of accesses are wanted
    bool threads = true;    // so are their threads
    bool flags = true;      // and whether they write
    std::uint64_t cut = 0;  // into blocks of so many bytes, a power of two; 0: sizes are passed on
    bool contexts = false;  // labels distinguish call paths
    bool objects = false;   // labels distinguish data objects
    bool extents = false;   // and where they lay, in programs with threads
    bool stack = true;      // accesses to thread stacks count
    std::uint64_t sampled_block = 0;   // bytes of a block, where the program samples itself
    unsigned readers = 1;              // threads that read slots (slot_readers.h)
    bool only_regions = false;         // accesses count only inside of the regions named below
    std::vector<std::string> regions;  // "()" is what was chosen by --function; empty: any
    std::uint64_t most_accesses = ~std::uint64_t{0};
    Interleaving interleaving = Interleaving::as_it_came;  // of different threads' accesses
};

// What a recorder that samples sends instead of accesses. Sites are labels.
struct SampleRecord {
    enum Kind : std::uint8_t { begin, end, counts } kind;
    std::uint64_t id = 0;
    std::uint32_t site = 0;
    std::uint16_t thread = 0;
    std::uint32_t outcome = 0;  // end: REVISIT_REUSED and so on
    bool write = false;
    std::uint64_t distance = 0, time = 0;
    // end, invalidated: the block's address, its parts that were touched, and the write that took it
    std::uint64_t line = 0;
    std::uint16_t parts = 0;
    struct Writer {
        std::uint32_t site = 0;
        std::uint16_t thread = 0, parts = 0;
    } writer;
    std::uint64_t accesses = 0, analyzed = 0, chosen = 0;  // counts
    std::uint32_t level = 0;                               // counts: samples it leaves out are dropped
};

class Decoder {
 public:
    using SampleSink = std::function<void(const SampleRecord&)>;
    using Sink = std::function<Result<void>(const AccessBatch&)>;

    Decoder(const DecodeOptions& options, Sink sink);

    // A forked child starts with all its parent had defined.
    Decoder(const Decoder& parent, Sink sink);

    void on_samples(SampleSink sink) { sample_sink_ = std::move(sink); }

    Result<void> feed(const SlotView& slot);

    Result<void> flush();   // hands on what is gathered
    Result<void> finish();  // and that it was all

    std::uint32_t pid() const { return pid_; }
    std::uint64_t accesses() const { return accesses_; }
    bool reached_most() const { return accesses_ >= options_.most_accesses; }
    bool ended() const { return ended_; }
    const Origins& origins() const { return origins_; }
    // Files that another has read are not read again.
    void name_by(std::shared_ptr<Symbolizer> symbols) { origins_.symbols = std::move(symbols); }
    const std::vector<std::string>& regions_seen() const { return regions_seen_; }
    std::size_t threads() const { return threads_.size(); }
    Interleaving interleaving() const { return options_.interleaving; }
    bool leaves_paths_out() const { return paths_.is_selective(); }  // rare ones are merged

 private:
    friend class SlotReader;  // reads what is known already on other threads
    friend class SlotReaders;

    // Pages around the one that an access of a block met last, all of one object, and its label there.
    struct NearLabel {
        std::uint64_t low = 0, size = 0;
        std::uint32_t label = 0;
    };
    struct Block {
        std::vector<std::uint32_t> places, sizes;
        std::uint32_t words = 0;          // of the recorder; less than accesses where some are derived
        std::vector<std::uint32_t> from;  // then: the word that tells the address
        std::vector<std::int64_t> offsets;  // and how far from it

        bool is_derived() const { return words != sizes.size(); }
        // How many accesses so many words tell: all, or up to the first one without its word.
        std::uint32_t accesses_of(std::uint32_t count) const;
        // Their addresses; how many.
        std::uint32_t expand(const std::uint64_t* told, std::uint32_t count, std::uint64_t* to) const;

        std::vector<std::uint32_t> reaches;  // sizes less one
        std::vector<std::uint8_t> flags;
        std::vector<std::uint8_t> writes;  // filled up to whole vectors
        bool guarded = false;
        std::uint32_t number = 0;
        std::uint32_t context = kNowhere;  // whose labels are these
        const std::uint32_t* labels = nullptr;
        std::uint32_t root = kNowhere;  // the same for paths that are merged
        const std::uint32_t* root_labels = nullptr;
        std::vector<NearLabel> near;
        const std::uint32_t* near_labels = nullptr;  // the labels that these add objects to
        std::uint64_t near_changes = 0;              // and the objects' changes until then
    };
    struct CallFrame {
        std::uint64_t stack_pointer = 0;
        std::uint32_t context = 0;  // of the caller
        std::uint32_t place = 0;    // of the call
    };
    // What a thread is in the middle of.
    struct Calls {
        std::uint32_t context = 0;
        std::vector<CallFrame> frames;

        // A call from the same depth means that the call before it has come back, however it did.
        void enter(std::uint32_t place, std::uint64_t stack_pointer);
        void leave(std::uint64_t stack_pointer);
        // The place whose frame a stack address is in: of the call below it, or else `place`.
        std::uint32_t place_of_frame(std::uint64_t address, std::uint32_t place) const;
    };
    struct Thread : Calls {
        std::uint16_t number = 0;
        std::uint32_t root = 0;  // the context that its calls begin in
        std::uint32_t open_regions = 0;
        std::uint64_t stack_low = 0, stack_high = 0;
    };

    Result<std::size_t> record(std::span<const std::uint64_t> words, bool salvaged);
    bool copy_addresses(const Block& block, const std::uint64_t* addresses, std::uint32_t count);
    void put(std::uint64_t address, std::uint32_t label, std::uint32_t size, std::uint8_t flags);
    void block(Block& block, const std::uint64_t* addresses, std::uint32_t count);
    void access(std::uint64_t address, std::uint32_t label, std::uint32_t size, std::uint8_t flags);
    Result<void> define_block(std::span<const std::uint64_t> words);
    void define_site(std::uint64_t site, std::string_view text);
    void module(std::uint64_t low, std::uint64_t high, std::uint64_t offset, std::string_view text);
    void unload(std::uint64_t low, std::uint64_t high);
    void bulk(const std::uint64_t* words);
    void enter(std::uint32_t place, std::uint64_t stack_pointer);
    void region(std::string_view name, bool begins);
    void sample(const std::uint64_t* words);
    std::uint32_t child_context(std::uint32_t context, std::uint32_t place);
    std::uint32_t sampled_context(const Thread& of, std::uint64_t path);

    bool follows_calls() const { return options_.contexts || options_.objects; }
    // Accesses gathered so far: what is frequent depends on nothing but the stream.
    std::uint64_t now() const { return accesses_ + filled_; }
    std::uint32_t object_context() const { return options_.contexts ? running_->context : 0; }
    Block* find_block(std::uint64_t id) const {
        if (id < blocks_.size()) return blocks_[id].get();
        auto found = far_blocks_.find(id);
        return found == far_blocks_.end() ? nullptr : found->second.get();
    }
    std::uint32_t place_of_address(std::uint64_t address);
    std::uint32_t place_of_site(std::uint64_t site);
    std::uint32_t label(std::uint32_t place, std::uint32_t context);
    const std::uint32_t* labels(Block& block, std::uint32_t count);
    const std::uint32_t* make_labels(const Block& block, std::uint32_t context);
    void labels_with_objects(Block& block, const std::uint32_t* labels, const std::uint64_t* addresses,
                             std::uint32_t count);
    std::uint32_t label_with_object(std::uint32_t label, std::uint64_t address,
                                    NearLabel* near = nullptr);
    void widen(NearLabel& near, std::uint64_t address, std::uint32_t label) const;
    std::uint32_t find_or_make_object_label(std::uint32_t label, std::uint32_t object,
                                            std::uint64_t address);
    std::uint32_t object_at(std::uint64_t address, std::uint32_t place);
    void find_shared_object(std::uint64_t address);
    Thread& thread(std::uint32_t number);
    std::uint32_t thread_root(std::uint32_t number);

    DecodeOptions options_;
    bool one_by_one_ = false;         // accesses have to be looked at each
    std::uint64_t within_block_ = 0;  // mask of an address; 0: not cut here
    std::optional<Error> trouble_;    // of the sink, while in the middle of a record
    Sink sink_;
    SampleSink sample_sink_;
    std::uint32_t pid_ = 0;
    bool ended_ = false;
    std::uint64_t accesses_ = 0;
    Origins origins_;
    std::vector<std::string> regions_seen_;

    std::vector<std::unique_ptr<Block>> blocks_;                            // small ids
    std::unordered_map<std::uint64_t, std::unique_ptr<Block>> far_blocks_;  // others
    std::map<std::uint64_t, std::uint32_t> mapped_;  // low → module, while mapped
    std::vector<std::uint32_t> unread_modules_;      // their symbols: sampled_block
    std::map<std::uint64_t, std::uint32_t> address_places_;
    std::unordered_map<std::uint64_t, std::uint32_t> site_places_;
    std::unordered_map<std::uint64_t, std::uint32_t> label_ids_;  // place and context
    // Block number and context → labels of its accesses. Only paths and objects that occur often are
    // told apart in a program that has very many.
    KeyTable label_list_of_;
    std::vector<std::unique_ptr<std::uint32_t[]>> label_lists_;
    std::uint32_t block_count_ = 0;
    FrequentKeys paths_{{std::size_t{1} << 15, std::size_t{1} << 17, 14}};
    FrequentKeys objects_on_paths_{{std::size_t{1} << 16, std::size_t{1} << 18, 14}};
    FrequentKeys objects_of_sites_{{std::size_t{1} << 15, std::size_t{1} << 18, 18}};
    KeyTable context_children_;  // context and place
    std::unordered_map<std::uint64_t, std::uint64_t>
        sampled_paths_;       // REVISIT_PATH, number → where from
    KeyTable object_labels_;  // label and object
    struct LastObject {
        std::uint32_t object = kNowhere, label = 0;
    };
    std::vector<LastObject>
        last_object_;  // by label: most accesses of an instruction are to one object
    std::unique_ptr<ObjectMap> objects_;
    std::map<std::uint32_t, Thread> threads_;
    Thread* running_ = nullptr;

    std::size_t filled_ = 0;
    std::vector<std::uint64_t> addresses_;
    std::vector<std::uint32_t> label_column_, sizes_;
    std::vector<std::uint16_t> thread_column_;
    std::vector<std::uint8_t> flags_;
};

}  // namespace revisit::record
