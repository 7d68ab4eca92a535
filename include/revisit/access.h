// What flows from a trace or a recorder into an engine.
//
// A batch is a struct of arrays, so that a trace of bare addresses is analysed where it lies (a mapped
// file) and an engine reads only the columns it needs. A column the source does not have is empty.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "revisit/error.h"

namespace revisit {

inline constexpr std::uint8_t kWrite = 1;  // flag bit 0

// One load or store. Sites are ids: the trace's module map turns them into code.
struct Access {
    std::uint64_t address = 0;
    std::uint32_t site = 0;
    std::uint32_t size = 0;  // bytes; 0 = unknown, counts as one
    std::uint16_t thread = 0;
    std::uint8_t flags = 0;

    bool operator==(const Access&) const = default;
};

// Accesses in trace order. Every column is either empty or as long as `addresses`.
struct AccessBatch {
    std::span<const std::uint64_t> addresses;
    std::span<const std::uint32_t> sites;
    std::span<const std::uint32_t> sizes;
    std::span<const std::uint16_t> threads;
    std::span<const std::uint8_t> flags;

    std::size_t count() const { return addresses.size(); }
    Access at(std::size_t i) const {
        return {addresses[i], sites.empty() ? 0u : sites[i], sizes.empty() ? 0u : sizes[i],
                threads.empty() ? std::uint16_t{0} : threads[i],
                flags.empty() ? std::uint8_t{0} : flags[i]};
    }
};

// An Error where a column is neither empty nor as long as the batch: nothing is read beyond its end.
REVISIT_API Result<void> check(const AccessBatch& batch);

// Which columns a source has.
struct ColumnSet {
    bool sites = false;
    bool sizes = false;
    bool threads = false;
    bool flags = false;
    bool operator==(const ColumnSet&) const = default;
    ColumnSet operator&(const ColumnSet& other) const {
        return {sites && other.sites, sizes && other.sizes, threads && other.threads,
                flags && other.flags};
    }
};

inline ColumnSet columns_of(const AccessBatch& batch) {
    return {!batch.sites.empty(), !batch.sizes.empty(), !batch.threads.empty(), !batch.flags.empty()};
}

// Memory for accesses, column by column: what readers fill and hand out as a batch.
struct AccessColumns {
    ColumnSet has;
    // What the caller makes use of: sources that have more may leave the rest out.
    ColumnSet wanted{true, true, true, true};
    // Set by a caller that wants nothing but the blocks of 2^shift bytes that accesses touch, shift 1
    // to 31: a source with a shorter way to them than addresses and sizes fills `addresses` with
    // blocks, leaves the other columns out and sets is_cut, which the caller cleared.
    std::optional<unsigned> cut_shift = {};
    bool is_cut = false;
    std::vector<std::uint64_t> addresses;
    std::vector<std::uint32_t> sites;
    std::vector<std::uint32_t> sizes;
    std::vector<std::uint16_t> threads;
    std::vector<std::uint8_t> flags;
    std::vector<std::uint8_t> raw;  // bytes of the source that were not decoded yet

    void clear() { resize(0); }
    void resize(std::size_t count) {
        addresses.resize(count);
        sites.resize(has.sites ? count : 0);
        sizes.resize(has.sizes ? count : 0);
        threads.resize(has.threads ? count : 0);
        flags.resize(has.flags ? count : 0);
    }
    void push(const Access& access) {
        addresses.push_back(access.address);
        if (has.sites) sites.push_back(access.site);
        if (has.sizes) sizes.push_back(access.size);
        if (has.threads) threads.push_back(access.thread);
        if (has.flags) flags.push_back(access.flags);
    }
    std::size_t count() const { return addresses.size(); }
    AccessBatch batch() const { return {addresses, sites, sizes, threads, flags}; }
};

// The same after cutting to a granularity: every access counts once in each block it touches.
struct BlockBatch {
    std::span<const std::uint64_t> blocks;
    std::span<const std::uint32_t> sites;
    std::span<const std::uint16_t> threads;
    std::span<const std::uint8_t> flags;
    // Which of a block's 64 parts an access touches: the first, and the last << 8. A part of a cache
    // line is a byte.
    std::span<const std::uint16_t> parts = {};

    std::size_t count() const { return blocks.size(); }
    BlockBatch part(std::size_t from, std::size_t count) const {
        auto of = [&](auto column) { return column.empty() ? column : column.subspan(from, count); };
        return {of(blocks), of(sites), of(threads), of(flags), of(parts)};
    }
};

REVISIT_API Result<void> check(const BlockBatch& batch);

}  // namespace revisit
