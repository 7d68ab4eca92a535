// Accesses that are held back come back as they were, and their memory is used again.
#include "engines/held_blocks.h"

#include <gtest/gtest.h>

#include <random>

namespace revisit {
namespace {

struct Trace {
    std::vector<std::uint64_t> blocks;
    std::vector<std::uint32_t> sites;
    std::vector<std::uint8_t> flags;
    BlockBatch batch() const { return {blocks, sites, {}, flags}; }
};

// Blocks and sites of so many bits here and there, and of fewer elsewhere.
Trace trace(std::size_t count, unsigned block_bits, unsigned site_bits) {
    std::mt19937_64 random(7);
    Trace out;
    for (std::size_t i = 0; i < count; ++i) {
        const bool many = random() % 20000 == 0;
        out.blocks.push_back(random() >> (64 - (many ? block_bits : 40)));
        out.sites.push_back(static_cast<std::uint32_t>(random() >> (64 - (many ? site_bits : 10))));
        out.flags.push_back(static_cast<std::uint8_t>(random() & kWrite));
    }
    return out;
}

Trace read(const HeldBlocks& held, std::size_t first, std::size_t count, bool last) {
    Trace out;
    auto append = [](auto& to, auto from) { to.insert(to.end(), from.begin(), from.end()); };
    EXPECT_TRUE(held.each(first, count, last, [&](const BlockBatch& batch) -> Result<void> {
        append(out.blocks, batch.blocks);
        append(out.sites, batch.sites);
        append(out.flags, batch.flags);
        return {};
    }));
    return out;
}

TEST(HeldBlocks, come_back_as_they_were) {
    for (const auto& [block_bits, site_bits] :
         {std::pair(47u, 16u), {48u, 16u}, {64u, 10u}, {40u, 32u}})
        for (const bool columns : {true, false}) {
            const auto memory = std::make_shared<HeldSegments>(columns);
            HeldBlocks held(memory);
            const Trace all = trace(150000, block_bits, site_bits);
            for (std::size_t at = 0; at < 150000; at += 777)
                held.append(all.batch().part(at, std::min<std::size_t>(777, 150000 - at)));
            ASSERT_EQ(held.size(), 150000u);
            for (const bool last : {false, true}) {
                Trace got;
                for (const auto& [first, count] : {std::pair(0u, 1u), {1u, 70000u}, {70001u, 79999u}}) {
                    const Trace part = read(held, first, count, last);
                    got.blocks.insert(got.blocks.end(), part.blocks.begin(), part.blocks.end());
                    got.sites.insert(got.sites.end(), part.sites.begin(), part.sites.end());
                    got.flags.insert(got.flags.end(), part.flags.begin(), part.flags.end());
                }
                EXPECT_EQ(got.blocks, all.blocks);
                EXPECT_EQ(got.sites, columns ? all.sites : std::vector<std::uint32_t>());
                EXPECT_EQ(got.flags, columns ? all.flags : std::vector<std::uint8_t>());
            }
        }
}

TEST(HeldBlocks, columns_that_are_missing_are_zeros) {
    const Trace all = trace(100000, 64, 10);
    HeldBlocks held(std::make_shared<HeldSegments>(true));
    held.append({all.blocks, {}, {}, {}});
    const Trace got = read(held, 0, held.size(), false);
    EXPECT_EQ(got.blocks, all.blocks);
    EXPECT_EQ(got.sites, std::vector<std::uint32_t>(100000));
    EXPECT_EQ(got.flags, std::vector<std::uint8_t>(100000));
}

// In segments that were used before, whose zeros are gone.
TEST(HeldBlocks, memory_that_was_used_is_given_back) {
    const auto memory = std::make_shared<HeldSegments>(true);
    const std::atomic<bool> somebody_counts = true;
    for (const unsigned bits : {40u, 64u, 40u, 64u}) {
        const Trace all = trace(100000, bits, 16);
        HeldBlocks held(memory);
        held.append(all.batch());
        read(held, 0, 60000, true);
        EXPECT_EQ(read(held, 60000, 40000, true).blocks,
                  std::vector<std::uint64_t>(all.blocks.begin() + 60000, all.blocks.end()));
        memory->wait_below(1, somebody_counts);  // all of it, or this would not return
        held.clear();
        held.append(all.batch());
        held.clear();  // what was not read is given back as well
        memory->wait_below(1, somebody_counts);
    }
}

}  // namespace
}  // namespace revisit
