// Files that are mapped: the same accesses as when they are read, and errors instead of signals.
#include "formats/mapped_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <numeric>

#include "revisit/revisit.h"
#include "temporary_folder.h"

namespace revisit {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

std::unique_ptr<MappedFile> map(const std::string& path) {
    return MappedFile::of(ByteStream::open(path, 1).value().file());
}

// Some cross blocks. Several windows that are given back, and some of the last one.
void store_accesses(const std::string& path) {
    std::vector<std::uint64_t> addresses(500'000);
    std::vector<std::uint32_t> sites(addresses.size()), sizes(addresses.size());
    for (std::size_t i = 0; i < addresses.size(); ++i) {
        addresses[i] = i * 0x9e3779b97f4a7c15u >> 44;
        sites[i] = static_cast<std::uint32_t>(i % 13);
        sizes[i] = i % 100 == 0 ? 100 : 4;
    }
    auto writer = create_trace(path).value();
    ASSERT_TRUE(writer->write({addresses, sites, sizes, {}, {}}));
    ASSERT_TRUE(writer->finish({}));
}

TEST(MappedFile, accesses_are_those_of_the_file_that_is_read) {
    const test::TemporaryFolder folder;
    allow_mapped_files();
    for (const char* name : {"trace.u64", "trace.records", "trace.rvt"}) {
        const std::string path = folder / name;
        store_accesses(path);
        for (const auto& [granularity, sites] :
             {std::pair{1u, false}, {32u, false}, {64u, false}, {100u, false}, {64u, true}}) {
            AnalyzeOptions options;
            options.engine.granularity = granularity;
            options.engine.sites = sites;
            options.engine.threads = 1;
            // Opened for several threads, it is read.
            auto mapped = open_trace(path, {}, 1).value(), read = open_trace(path, {}, 2).value();
            EXPECT_EQ(to_json(analyze(*mapped, options).value()),
                      to_json(analyze(*read, options).value()))
                << name << ", blocks of " << granularity;
        }
    }
}

TEST(MappedFile, end_that_is_missing_is_an_error) {
    const test::TemporaryFolder folder;
    allow_mapped_files();
    const std::string path = folder / "bytes";
    std::vector<char> bytes(5 * kMiB, 7);
    std::ofstream(path).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    // On a page's border and inside a page, of pages that were used before and others.
    for (const std::size_t size : {4 * kMiB, 4 * kMiB - 1, std::size_t{3}})
        for (const bool before : {false, true}) {
            std::filesystem::resize_file(path, bytes.size());
            const auto mapped = map(path);
            ASSERT_NE(mapped, nullptr);
            auto sum = [&](std::size_t from, std::size_t count) {
                const std::uint8_t* const at = mapped->get(from, count);
                return std::accumulate(at, at + count, std::size_t{0});
            };
            if (before) {
                sum(0, bytes.size());
                ASSERT_TRUE(mapped->used(0, 1));
            }
            std::filesystem::resize_file(path, size);
            EXPECT_LE(sum(size - 2, 8), 14u);
            EXPECT_FALSE(mapped->used(size - 2, 8));
            EXPECT_EQ(sum(bytes.size() - 8, 8), 0u);
            const auto used = mapped->used(bytes.size() - 8, 8);
            ASSERT_FALSE(used);
            EXPECT_NE(used.error().sentence().find("shorter"), std::string::npos);
        }
}

TEST(MappedFile, bytes_begin_where_the_range_does) {
    const test::TemporaryFolder folder;
    allow_mapped_files();
    const std::string path = folder / "bytes";
    std::vector<std::uint8_t> bytes(3 * kMiB);
    for (std::size_t i = 0; i < bytes.size(); ++i)
        bytes[i] = static_cast<std::uint8_t>(i / 3 + i / 251);
    std::ofstream(path).write(reinterpret_cast<const char*>(bytes.data()),
                              static_cast<std::streamsize>(bytes.size()));
    const auto stream = ByteStream::open_range(path, 5001, bytes.size() - 1);
    const auto mapped = MappedFile::of(stream.value().file());
    ASSERT_NE(mapped, nullptr);
    const std::size_t size = bytes.size() - 5002;
    for (std::size_t at = 0; at < size; at += 100'000) {
        const std::size_t count = std::min<std::size_t>(100'000, size - at);
        EXPECT_TRUE(std::equal(bytes.begin() + 5001 + static_cast<std::ptrdiff_t>(at),
                               bytes.begin() + 5001 + static_cast<std::ptrdiff_t>(at + count),
                               mapped->get(at, count)));
        EXPECT_TRUE(mapped->used(at, count));
    }
}

TEST(MappedFileDeathTest, other_bus_errors_end_the_program) {
    allow_mapped_files();
    EXPECT_EXIT(std::raise(SIGBUS), ::testing::KilledBySignal(SIGBUS), "");
}

}  // namespace
}  // namespace revisit
