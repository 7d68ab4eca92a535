// Packed traces that are unpacked and parsed on several threads: the same accesses, the same errors.
#include "formats/unpack_ahead.h"

#include <gtest/gtest.h>
#include <unistd.h>
#include <zstd.h>

#include <array>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <random>

#include "formats/format.h"
#include "revisit/revisit.h"
#include "temporary_folder.h"

namespace revisit {
namespace {

void put(const std::string& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
}
std::string get(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
}

bool is_in_this_build(const std::string& packing) {
    const test::TemporaryFolder folder;
    return create_sink(folder / ("t" + packing)).has_value();
}

std::vector<std::uint64_t> random_addresses(std::size_t count) {
    std::mt19937_64 random(count);
    std::vector<std::uint64_t> addresses(count);
    for (std::uint64_t& address : addresses) address = 0x10000 + random() % 100'000'000;
    return addresses;
}

Result<std::vector<std::uint64_t>> read_addresses(const std::string& path, unsigned threads = 3) {
    std::vector<std::uint64_t> all;
    auto trace = open_trace(path, {}, threads);
    if (!trace) return unexpected(trace.error());
    for (;;) {
        const auto batch = (*trace)->next();
        if (!batch) return unexpected(batch.error());
        if (batch->count() == 0) return all;
        all.insert(all.end(), batch->addresses.begin(), batch->addresses.end());
    }
}

std::string store(const test::TemporaryFolder& folder, const std::string& name,
                  std::span<const std::uint64_t> addresses) {
    const std::string path = folder / name;
    auto writer = create_trace(path).value();
    EXPECT_TRUE(writer->write({addresses, {}, {}, {}, {}}));
    EXPECT_TRUE(writer->finish({}));
    return path;
}

std::uint32_t crc_of(std::string_view bytes) {
    std::uint32_t crc = ~0u;
    for (char byte : bytes) {
        crc ^= static_cast<std::uint8_t>(byte);
        for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (0xedb88320u & (0 - (crc & 1)));
    }
    return ~crc;
}

// As bgzip writes it, but stored.
std::string bgzip_block(std::string_view bytes) {
    auto number = [](std::uint32_t value, int length) {
        std::string out;
        for (int i = 0; i < length; ++i) out += static_cast<char>(value >> 8 * i);
        return out;
    };
    const auto size = static_cast<std::uint32_t>(bytes.size());
    const std::string data = "\x01" + number(size, 2) + number(~size, 2) + std::string(bytes);
    const std::uint32_t whole = 18 + static_cast<std::uint32_t>(data.size()) + 8;
    return std::string("\x1f\x8b\x08\x04\0\0\0\0\0\xff\x06\0BC\x02\0", 16) + number(whole - 1, 2) +
           data + number(crc_of(bytes), 4) + number(size, 4);
}

std::string bgzip(std::string_view bytes) {
    std::string out;
    for (; !bytes.empty(); bytes.remove_prefix(std::min<std::size_t>(60'000, bytes.size())))
        out += bgzip_block(bytes.substr(0, 60'000));
    return out + bgzip_block("");  // the end marker
}

// Of zstd and bgzip 7 MB of text: two frames, a hundred blocks. What is one frame is unpacked ahead
// after the first MiB.
TEST(UnpackAhead, all_packings_give_what_the_plain_file_gives) {
    const test::TemporaryFolder folder;
    const auto addresses = random_addresses(600'000), fewer = random_addresses(150'000);
    for (const char* format : {"din", "csv", "u64"}) {
        const std::string plain = get(store(folder, std::string("t.") + format, addresses));
        for (const char* packing : {".zst", ".gz", ".xz"}) {
            if (!is_in_this_build(packing)) continue;
            const auto& stored = std::string_view(packing) == ".zst" ? addresses : fewer;
            const auto back =
                read_addresses(store(folder, std::string("t.") + format + packing, stored));
            ASSERT_TRUE(back) << back.error().sentence();
            EXPECT_TRUE(*back == stored) << format << packing;
        }
        if (!is_in_this_build(".gz")) continue;
        put(folder / "b." + format + ".gz", bgzip(plain));
        const auto back = read_addresses(folder / "b." + format + ".gz");
        ASSERT_TRUE(back) << back.error().sentence();
        EXPECT_TRUE(*back == addresses) << format << ", bgzip";
    }
}

double seconds(clockid_t clock) {
    timespec now;
    clock_gettime(clock, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

// By time of this thread and of all: no other takes part.
TEST(UnpackAhead, one_thread_reads_alone) {
    const test::TemporaryFolder folder;
    const auto addresses = random_addresses(400'000);
    for (const char* name : {"t.din.zst", "t.din.gz", "t.rvt"}) {
        if (std::string_view(name).ends_with(".gz") && !is_in_this_build(".gz")) continue;
        const std::string path = store(folder, name, addresses);
        const double all = seconds(CLOCK_PROCESS_CPUTIME_ID), own = seconds(CLOCK_THREAD_CPUTIME_ID);
        const auto back = read_addresses(path, 1);
        const double of_own = seconds(CLOCK_THREAD_CPUTIME_ID) - own;
        const double of_others = seconds(CLOCK_PROCESS_CPUTIME_ID) - all - of_own;
        ASSERT_TRUE(back) << back.error().sentence();
        EXPECT_TRUE(*back == addresses) << name;
        EXPECT_LT(of_others, 0.1 * of_own) << name;
    }
}

TEST(UnpackAhead, zstd_is_written_in_frames_that_are_found_again) {
    const test::TemporaryFolder folder;
    const std::string packed = get(store(folder, "t.u64.zst", random_addresses(3'000'000)));
    const std::span<const std::uint8_t> bytes(reinterpret_cast<const std::uint8_t*>(packed.data()),
                                              packed.size());
    int found = 0;
    for (std::size_t at = 0; at < bytes.size(); ++found) {
        const auto length = find_zstd_frames(bytes.subspan(at));
        ASSERT_TRUE(length && *length > 0);
        at += *length;
    }
    EXPECT_EQ(found, 6) << "24 MB in frames of 4 MiB";
    EXPECT_EQ(find_zstd_frames(bytes.first(1000)), 0u) << "goes on";
    const std::uint8_t other[] = {'n', 'o', ' ', 'f', 'r', 'a', 'm', 'e', ' ', 'h', 'e', 'r', 'e'};
    EXPECT_FALSE(find_zstd_frames(other));
    EXPECT_FALSE(find_bgzip_blocks(std::array<std::uint8_t, 18>{0x1f, 0x8b, 8, 0}));
}

TEST(UnpackAhead, a_long_frame_among_short_ones_is_read_as_it_comes) {
    const test::TemporaryFolder folder;
    const std::vector<std::uint64_t> sevens(3'000'000, 7);  // 24 MB that pack to some KB
    std::string one_frame(ZSTD_compressBound(sevens.size() * 8), '\0');
    one_frame.resize(
        ZSTD_compress(one_frame.data(), one_frame.size(), sevens.data(), sevens.size() * 8, 1));
    const auto before = random_addresses(10), after = random_addresses(1000);
    put(folder / "joined.u64.zst",
        get(store(folder, "a.u64.zst", before)) + one_frame + get(store(folder, "b.u64.zst", after)));
    std::vector<std::uint64_t> expected = before;
    expected.insert(expected.end(), sevens.begin(), sevens.end());
    expected.insert(expected.end(), after.begin(), after.end());
    const auto back = read_addresses(folder / "joined.u64.zst");
    ASSERT_TRUE(back) << back.error().sentence();
    EXPECT_TRUE(*back == expected);
}

TEST(UnpackAhead, broken_and_cut_files_are_refused_at_their_place) {
    const test::TemporaryFolder folder;
    for (const char* packing : {".zst", ".gz", ".xz", ".bgzip"}) {
        const bool by_hand = std::string_view(packing) == ".bgzip";
        const auto addresses =
            random_addresses(std::string_view(packing) == ".zst" ? 1'200'000 : 250'000);
        if (!is_in_this_build(by_hand ? ".gz" : packing)) continue;
        const std::string whole = by_hand
                                      ? bgzip(get(store(folder, "t.u64", addresses)))
                                      : get(store(folder, std::string("t.u64") + packing, addresses));
        const std::string path = folder / std::string("broken.u64") + (by_hand ? ".gz" : packing);
        put(path, whole.substr(0, whole.size() * 2 / 3));
        EXPECT_FALSE(read_addresses(path)) << packing << ", cut";
        std::string broken = whole;
        for (std::size_t i = 0; i < 64; ++i) broken[broken.size() / 2 + i] ^= 0x55;
        put(path, broken);
        const auto read = read_addresses(path);
        ASSERT_FALSE(read) << packing << ", broken";
        EXPECT_NE(read.error().sentence().find("byte "), std::string::npos) << read.error().sentence();
    }
}

TEST(UnpackAhead, a_wrong_line_keeps_its_number) {
    const test::TemporaryFolder folder;
    std::string text;
    for (int i = 0; i < 300'000; ++i) text += i == 250'000 ? "9 12\n" : "0 1234abcd\n";
    if (!is_in_this_build(".gz")) GTEST_SKIP() << "no zlib in this build";
    put(folder / "t.din.gz", bgzip(text));
    const auto read = read_addresses(folder / "t.din.gz");
    ASSERT_FALSE(read);
    EXPECT_NE(read.error().sentence().find("line 250001: expected a label"), std::string::npos)
        << read.error().sentence();
}

TEST(UnpackAhead, a_line_without_end_is_refused) {
    const test::TemporaryFolder folder;
    if (!is_in_this_build(".gz")) GTEST_SKIP() << "no zlib in this build";
    put(folder / "t.din.gz", bgzip("0 12\n0 34\n" + std::string(3'000'000, '5')));
    const auto read = read_addresses(folder / "t.din.gz");
    ASSERT_FALSE(read);
    EXPECT_NE(read.error().sentence().find("line 3: expected a line of under"), std::string::npos)
        << read.error().sentence();
}

}  // namespace
}  // namespace revisit
