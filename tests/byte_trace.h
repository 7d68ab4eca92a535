// A trace in memory, column by column.
#pragma once

#include <cstdint>
#include <vector>

#include "revisit/access.h"

namespace revisit::testing {

struct ByteTrace {
    std::vector<std::uint64_t> addresses;
    std::vector<std::uint32_t> sites, sizes;
    std::vector<std::uint16_t> threads;
    std::vector<std::uint8_t> flags;

    void add(std::uint16_t thread, bool write, std::uint64_t address, std::uint32_t size,
             std::uint32_t site) {
        addresses.push_back(address);
        sites.push_back(site);
        sizes.push_back(size);
        threads.push_back(thread);
        flags.push_back(write ? kWrite : 0);
    }
    AccessBatch batch() const { return {addresses, sites, sizes, threads, flags}; }
};

}  // namespace revisit::testing
