// Block → value of its last access, for ids that lie close together: a paged shadow table.
//
// Idea. Ids are cut into pages of 1024; a page that is touched gets a leaf, a plain array with a value
// for each of its ids; a small hash finds the leaf. A dense range costs 4 bytes a block (8 with 64-bit
// values) and neighbours share cache lines, so scans and loops stay in cache where a hash of blocks
// would not.
//
// Limit. A page of which little is used wastes its leaf. The table knows its size;
// LastAccess leaves it for the hash when it outgrows what that would take.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "engines/growing_array.h"
#include "engines/simd.h"

namespace revisit {

template <class Value>
class LastAccessPages {
 public:
    static constexpr unsigned kPageBits = 10;
    static constexpr std::size_t kPage = std::size_t{1} << kPageBits;
    using Slot = Value*;

    LastAccessPages() { directory_.assign(std::size_t{1} << directory_bits_, Entry{}); }

    // Finds the places of blocks that will soon be exchanged and asks for them to be brought near.
    REVISIT_INLINE void locate(const std::uint64_t* blocks, unsigned count, Slot* slots) {
        for (unsigned j = 0; j < count; j++) {
            const std::uint64_t page = blocks[j] >> kPageBits;
            const Entry& entry = directory_[home(page)];
            Value* leaf = entry.leaf;
            if (entry.page != page) [[unlikely]]
                leaf = find_or_add(page);
            slots[j] = leaf + (blocks[j] & (kPage - 1));
            __builtin_prefetch(slots[j], 1, 2);
        }
    }

    // previous[j] = what was stored for block j, 0 when nothing was; next(j) takes its place.
    template <class Next>
    REVISIT_INLINE void exchange(const std::uint64_t*, const Slot* slots, unsigned count,
                                 Value* previous, Next next) {
        for (unsigned j = 0; j < count; j++) {
            previous[j] = *slots[j];
            *slots[j] = next(j);
        }
    }

    template <class Next>
    REVISIT_INLINE void finish(const std::uint64_t*, Value*, Next) {}

    void insert(std::uint64_t block, Value value) {
        find_or_add(block >> kPageBits)[block & (kPage - 1)] = value;
    }

    // Replaces every stored value v by replace(v); prepare(v) is called for some hundred values before
    // the first of them is replaced, so that it can prefetch.
    template <class Prepare, class Replace>
    void transform(Prepare prepare, Replace replace) {
        Value* used[256];
        for (std::size_t at = 0; at < page_of_leaf_.size() * kPage; at += 256) {
            unsigned count = 0;
            for (unsigned i = 0; i < 256; i++) {
                used[count] = leaves_.data() + at + i;
                count += *used[count] != 0;
            }
            for (unsigned i = 0; i < count; i++) prepare(*used[i]);
            for (unsigned i = 0; i < count; i++) *used[i] = replace(*used[i]);
        }
    }

    // Hands every (block, value) to `take` and gives the memory back on the way.
    template <class Take>
    void drain(Take take) {
        constexpr std::size_t kLeavesAtOnce = (std::size_t{2} << 20) / (kPage * sizeof(Value));
        for (std::size_t leaf = 0; leaf < page_of_leaf_.size(); leaf++) {
            const Value* const values = leaves_.data() + leaf * kPage;
            for (std::size_t i = 0; i < kPage; i++)
                if (values[i] != 0) take(page_of_leaf_[leaf] << kPageBits | i, values[i]);
            if ((leaf + 1) % kLeavesAtOnce == 0)
                leaves_.release((leaf + 1 - kLeavesAtOnce) * kPage, (leaf + 1) * kPage);
        }
        *this = LastAccessPages();
    }

    // Page by page, for those who have a whole page to look up.
    std::size_t leaf_count() const { return page_of_leaf_.size(); }
    std::uint64_t page_of_leaf(std::size_t leaf) const { return page_of_leaf_[leaf]; }
    Value* leaf(std::size_t leaf) const { return leaves_.data() + leaf * kPage; }
    Value* leaf_of_page(std::uint64_t page) { return find_or_add(page); }

    void stop_growing() { leaves_.stop_growing(); }

    std::size_t bytes() const {
        return page_of_leaf_.size() * (kPage * sizeof(Value) + sizeof(std::uint64_t)) +
               directory_.size() * sizeof(Entry);
    }
    // What they would take if every page between the first and the last were there.
    std::size_t range_bytes() const {
        return page_of_leaf_.empty() ? 0 : (highest_ - lowest_ + 1) * (kPage * sizeof(Value));
    }
    void limit_bytes(std::size_t bytes) { bytes_limit_ = bytes; }
    bool crowded() const { return bytes() > bytes_limit_; }

 private:
    struct Entry {
        std::uint64_t page = ~std::uint64_t{0};  // page numbers have 54 bits: this is none
        Value* leaf = nullptr;
    };

    REVISIT_INLINE std::size_t home(std::uint64_t page) const {
        return page * 0x9e3779b97f4a7c15u >> (64 - directory_bits_);
    }
    std::size_t probe(std::uint64_t page) const {
        std::size_t i = home(page);
        while (directory_[i].leaf != nullptr && directory_[i].page != page)
            i = (i + 1) & (directory_.size() - 1);
        return i;
    }

    [[gnu::noinline]] Value* find_or_add(std::uint64_t page) {
        std::size_t i = probe(page);
        if (directory_[i].leaf != nullptr) return directory_[i].leaf;
        if ((page_of_leaf_.size() + 1) * 2 > directory_.size()) {
            std::vector<Entry> old(directory_.size() * 2);
            std::swap(old, directory_);
            directory_bits_++;
            for (const Entry& entry : old)
                if (entry.leaf != nullptr) directory_[probe(entry.page)] = entry;
            i = probe(page);
        }
        leaves_.require((page_of_leaf_.size() + 1) * kPage);
        directory_[i] = {page, leaves_.data() + page_of_leaf_.size() * kPage};
        // A page that is read before it is written to is faulted in twice.
        *static_cast<volatile Value*>(directory_[i].leaf) = 0;
        page_of_leaf_.push_back(page);
        lowest_ = std::min(lowest_, page);
        highest_ = std::max(highest_, page);
        return directory_[i].leaf;
    }

    std::size_t bytes_limit_ = ~std::size_t{0};
    std::uint64_t lowest_ = ~std::uint64_t{0}, highest_ = 0;
    unsigned directory_bits_ = 6;
    std::vector<Entry> directory_;
    std::vector<std::uint64_t> page_of_leaf_;
    GrowingArray<Value> leaves_{GrowingBytes::kHugePage};
};

}  // namespace revisit
