// Accesses gathered column by column: what readers fill and hand out as a batch.
#pragma once

#include <vector>

#include "revisit/access.h"

namespace revisit {

// Which columns a source has.
struct ColumnSet {
    bool sites = false;
    bool sizes = false;
    bool threads = false;
    bool flags = false;
    bool operator==(const ColumnSet&) const = default;
};

inline ColumnSet columns_of(const AccessBatch& batch) {
    return {!batch.sites.empty(), !batch.sizes.empty(), !batch.threads.empty(), !batch.flags.empty()};
}

struct Columns {
    ColumnSet has;
    std::vector<std::uint64_t> addresses;
    std::vector<std::uint32_t> sites;
    std::vector<std::uint32_t> sizes;
    std::vector<std::uint16_t> threads;
    std::vector<std::uint8_t> flags;

    void clear() {
        addresses.clear();
        sites.clear();
        sizes.clear();
        threads.clear();
        flags.clear();
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

inline constexpr std::size_t kReadBatch = std::size_t{1} << 16;

}  // namespace revisit
