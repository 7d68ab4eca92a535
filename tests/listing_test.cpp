// Disassembly of modules, on this very program.
#include "symbols/listing.h"

#include <elf.h>
#include <gtest/gtest.h>

#include <fstream>

namespace revisit {
namespace {

TEST(Listing, begins_at_the_first_site_and_shows_what_follows_the_last) {
    const std::string self = "/proc/self/exe";
    Elf64_Ehdr header{};
    std::ifstream(self, std::ios::binary).read(reinterpret_cast<char*>(&header), sizeof header);
    auto listing = listing_of(self, {header.e_entry});
#if REVISIT_HAVE_CAPSTONE
    ASSERT_TRUE(listing) << listing.error().message;
    ASSERT_GE(listing->size(), 2u);
    EXPECT_EQ(listing->front().address, header.e_entry);
    for (std::size_t i = 1; i < listing->size(); ++i)
        EXPECT_GT((*listing)[i].address, (*listing)[i - 1].address);
    for (const Instruction& one : *listing) EXPECT_FALSE(one.text.empty());
    EXPECT_TRUE(listing_of(self, {~std::uint64_t{0} - 64})->empty());  // no code there
#else
    EXPECT_FALSE(listing);
#endif
}

TEST(Listing, of_what_is_no_program_is_an_error) {
    EXPECT_FALSE(listing_of("/etc/passwd", {16}));
    EXPECT_FALSE(listing_of("/nowhere", {16}));
    EXPECT_FALSE(listing_of("/dev/null", {16}));
}

}  // namespace
}  // namespace revisit
