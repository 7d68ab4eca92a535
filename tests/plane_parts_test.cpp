// What chunks of revisit's own format are made of: planes of numbers, and their parts in each form.
#include "formats/plane_parts.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <limits>
#include <random>

#include "formats/byte_planes.h"
#include "revisit/revisit.h"
#include "temporary_folder.h"

namespace revisit {
namespace {

using ByteVector = std::vector<std::uint8_t>;

ByteVector stored(const std::string& plain) {
    std::string out;
    put_part(plain, out);
    return {out.begin(), out.end()};
}

// The part back; nothing where it is refused.
std::optional<std::string> plain_of(const ByteVector& part, std::size_t size) {
    ByteVector room(size);
    std::span<std::uint8_t> left = room;
    PartReader reader(part, left);
    const auto plain = reader.next(size);
    if (!plain || !reader.ended()) return std::nullopt;
    return std::string(plain->bytes, plain->bytes + size);
}

template <class T>
void expect_back(const std::vector<T>& numbers) {
    const std::vector<std::string> parts = planes_of(std::span<const T>(numbers));
    std::size_t taken = 0;
    auto next = [&](std::size_t size) -> std::optional<PlainPart> {
        if (taken == parts.size() || parts[taken].size() != size) return std::nullopt;
        return PlainPart{reinterpret_cast<const std::uint8_t*>(parts[taken++].data()), false};
    };
    auto reader = PlaneReader<T>::of(numbers.size(), next);
    ASSERT_TRUE(reader);
    EXPECT_EQ(taken, parts.size());
    std::vector<T> back(numbers.size());
    reader->take(back.size(), back.data());
    EXPECT_EQ(back, numbers);
}

template <class T>
void expect_every_width_back() {
    std::mt19937_64 random(1);
    for (std::size_t count : {1, 63, 64, 65, 1000}) {
        std::vector<T> mixed;
        for (int bits = 0; bits <= std::numeric_limits<T>::digits; ++bits) {
            std::vector<T> numbers;
            for (std::size_t i = 0; i < count; ++i)
                numbers.push_back(static_cast<T>(bits == 0 ? 0 : random() >> (64 - bits)));
            expect_back(numbers);
            mixed.insert(mixed.end(), numbers.begin(), numbers.end());
        }
        expect_back(mixed);
    }
}

TEST(BytePlanes, numbers_of_every_width_and_type_come_back) {
    expect_every_width_back<std::uint8_t>();
    expect_every_width_back<std::uint16_t>();
    expect_every_width_back<std::uint32_t>();
    expect_every_width_back<std::uint64_t>();
}

TEST(BytePlanes, only_numbers_that_are_all_equal_are_alike) {
    for (const auto& [numbers, alike] : {std::pair{std::vector<std::uint32_t>(200, 8), true},
                                         {std::vector<std::uint32_t>(192, 0x1234), true},
                                         {std::vector<std::uint32_t>(192, 0), true},
                                         {[] {  // their half bytes make equal bytes
                                              std::vector<std::uint32_t> out(64, 1);
                                              std::fill(out.begin() + 32, out.end(), 2);
                                              return out;
                                          }(),
                                          false}}) {
        const auto parts = planes_of(std::span<const std::uint32_t>(numbers));
        std::size_t taken = 0;
        auto reader = PlaneReader<std::uint32_t>::of(
            numbers.size(), [&](std::size_t) -> std::optional<PlainPart> {
                const std::string& part = parts[taken++];
                return PlainPart{reinterpret_cast<const std::uint8_t*>(part.data()),
                                 part.find_first_not_of(part[0]) == part.npos};
            });
        ASSERT_TRUE(reader);
        EXPECT_EQ(reader->alike(), alike);
    }
}

TEST(PlaneParts, every_form_comes_back_and_takes_no_more_than_it_should) {
    std::mt19937_64 random(2);
    std::string noise, few, walk;
    for (int i = 0; i < 10'003; ++i) {
        noise += static_cast<char>(random());
        few += static_cast<char>(random() % 4 == 0 ? random() : 0);
        walk += static_cast<char>(i / 7);
    }
    for (const auto& [plain, most] : {std::pair{noise, noise.size()},
                                      {few, few.size() / 2},
                                      {walk, walk.size() / 6},
                                      {std::string(10'003, 'x'), std::size_t{1}},
                                      {std::string("x"), std::size_t{1}},
                                      {few.substr(0, 127), std::size_t{80}},
                                      {few.substr(0, 64), std::size_t{64}}}) {
        const ByteVector part = stored(plain);
        EXPECT_LE(part.size(), most + 4);
        EXPECT_EQ(plain_of(part, plain.size()), plain);
        if (most > 1) EXPECT_FALSE(plain_of(part, plain.size() + 64));
        for (std::size_t size = 0; size < part.size(); size += 1 + part.size() / 50)
            EXPECT_FALSE(plain_of({part.begin(), part.begin() + static_cast<std::ptrdiff_t>(size)},
                                  plain.size()));
    }
    // Masks that speak of more bytes than there are, and of fewer.
    for (const std::uint8_t mask : {0xff, 0x00}) {
        ByteVector broken = stored(few);
        std::fill_n(broken.begin() + 4, few.size() / 8, mask);
        EXPECT_FALSE(plain_of(broken, few.size()));
    }
}

TEST(PlaneParts, checksum_sees_changes_of_bits_places_and_lengths) {
    ByteVector bytes(1000);
    std::mt19937_64 random(3);
    for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
    const std::uint64_t sum = checksum(bytes, 5);
    EXPECT_EQ(checksum(bytes, 5), sum);
    EXPECT_NE(checksum(bytes, 6), sum);
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        ByteVector other = bytes;
        other[i] ^= static_cast<std::uint8_t>(1 << i % 8);
        EXPECT_NE(checksum(other, 5), sum);
    }
    for (std::size_t i = 64; i + 8 <= bytes.size(); i += 8) {
        ByteVector other = bytes;
        std::swap_ranges(other.begin(), other.begin() + 8,
                         other.begin() + static_cast<std::ptrdiff_t>(i));
        EXPECT_NE(checksum(other, 5), sum);
    }
    bytes.push_back(0);
    EXPECT_NE(checksum(bytes, 5), sum);
}

TEST(RevisitFormat, random_addresses_take_what_their_range_takes) {
    const test::TemporaryFolder folder;
    std::mt19937_64 random(4);
    std::vector<std::uint64_t> addresses;
    for (int i = 0; i < 300'000; ++i)
        addresses.push_back(0x7f0000000040 + (random() >> 44) * 64);  // 20 bits each
    const std::string path = folder / "t.rvt";
    auto writer = create_trace(path).value();
    ASSERT_TRUE(writer->write({addresses, {}, {}, {}, {}}));
    ASSERT_TRUE(writer->finish({}));
    EXPECT_LT(std::filesystem::file_size(path), addresses.size() * 51 / 20);
    const auto reader = open_trace(path).value();
    std::vector<std::uint64_t> back;
    for (std::size_t chunk = 0; chunk < reader->chunks()->count(); ++chunk) {
        AccessColumns columns;
        const auto batch = reader->chunks()->decode(chunk, columns).value();
        back.insert(back.end(), batch.addresses.begin(), batch.addresses.end());
    }
    EXPECT_EQ(back, addresses);
}

}  // namespace
}  // namespace revisit
