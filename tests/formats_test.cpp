#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>

#include "formats/columns.h"
#include "formats/compress.h"
#include "formats/format.h"
#include "formats/revisit_chunk.h"
#include "revisit/revisit.h"
#include "temporary_folder.h"

namespace revisit {
namespace {

Result<std::vector<Access>> read_all(TraceReader& reader) {
    std::vector<Access> out;
    for (;;) {
        auto batch = reader.next();
        if (!batch) return unexpected(batch.error());
        if (batch->count() == 0) return out;
        for (std::size_t i = 0; i < batch->count(); ++i) out.push_back(batch->at(i));
    }
}

Result<std::vector<Access>> parse(std::string bytes, std::string_view format = {}) {
    auto stream = ByteStream::of_memory(std::move(bytes), "t");
    if (!stream) return unexpected(stream.error());
    auto reader = open_stream(std::move(*stream), format);
    if (!reader) return unexpected(reader.error());
    return read_all(**reader);
}

std::string complaint(std::string bytes, std::string_view format = {}) {
    auto parsed = parse(std::move(bytes), format);
    return parsed ? "no error" : parsed.error().sentence();
}

TEST(Formats, lackey_is_recognized_and_read) {
    auto accesses =
        parse("==1== lackey\nI  04000a00,4\n L 1ffeffe7e8,8\n S 1ffeffe7f0,16\n M 0421c7cc,4\n\n");
    ASSERT_TRUE(accesses) << accesses.error().sentence();
    EXPECT_EQ(*accesses, (std::vector<Access>{{0x1ffeffe7e8, 0, 8, 0, 0},
                                              {0x1ffeffe7f0, 0, 16, 0, 1},
                                              {0x0421c7cc, 0, 4, 0, 0},
                                              {0x0421c7cc, 0, 4, 0, 1}}));
    EXPECT_EQ(complaint(" L 10,4\n X 10,4\n", "lackey"),
              "t: line 2: expected I, L, S or M, an address and a size, found \" X 10,4\"");
    EXPECT_EQ(complaint(" L 10,\n", "lackey"), "t: line 1: expected a size in bytes, found \"\"");
    EXPECT_EQ(complaint(" L 11223344556677889,4\n", "lackey"),
              "t: line 1: expected a hexadecimal address and a comma, found \"11223344556677889,4\"");
}

TEST(Formats, din_is_recognized_and_read) {
    auto accesses = parse("0 1f00\n1 ffffffffffffffff\n2 400000\n0 0x10 trailing words\n");
    ASSERT_TRUE(accesses) << accesses.error().sentence();
    EXPECT_EQ(*accesses,
              (std::vector<Access>{
                  {0x1f00, 0, 0, 0, 0}, {~std::uint64_t{0}, 0, 0, 0, 1}, {0x10, 0, 0, 0, 0}}));
    EXPECT_EQ(complaint("0 10\n7 10\n", "din"), "t: line 2: expected a label 0, 1 or 2, found \"7\"");
}

TEST(Formats, csv_takes_columns_by_name) {
    auto accesses = parse("write,Address,ignored,thread\r\n1,0x40,\"a,b\",3\r\nload,64,x,0\r\n");
    ASSERT_TRUE(accesses) << accesses.error().sentence();
    EXPECT_EQ(*accesses, (std::vector<Access>{{0x40, 0, 0, 3, 1}, {64, 0, 0, 0, 0}}));
    EXPECT_EQ(complaint("address,size\n1,2\n3,many\n", "csv"),
              "t: line 3: expected a size below 2^32, found \"many\"");
    EXPECT_EQ(complaint("size\n1\n", "csv"),
              "t: line 1: expected a header that names an address column once");
    EXPECT_EQ(complaint("address,thread\n1,70000\n", "csv"),
              "t: line 2: expected a thread number below 65536, found \"70000\"");
}

std::string packed(std::initializer_list<std::pair<std::uint64_t, int>> fields) {
    std::string out;
    for (auto [value, bytes] : fields)
        out.append(reinterpret_cast<const char*>(&value), static_cast<std::size_t>(bytes));
    return out;
}

TEST(Formats, binary_layouts) {
    EXPECT_EQ(parse(packed({{5, 8}, {~std::uint64_t{0}, 8}}), "u64").value(),
              (std::vector<Access>{{5, 0, 0, 0, 0}, {~std::uint64_t{0}, 0, 0, 0, 0}}));
    EXPECT_EQ(parse(packed({{0x1000, 8}, {77, 4}, {3, 2}, {8, 1}, {1, 1}}), "records").value(),
              (std::vector<Access>{{0x1000, 77, 8, 3, 1}}));
    EXPECT_EQ(
        parse(packed({{9, 4}, {0xabcdef, 8}, {512, 4}, {~std::uint64_t{0}, 8}}), "oracle").value(),
        (std::vector<Access>{{0xabcdef, 0, 0, 0, 0}}));
    std::string instruction =
        packed({{0x400000, 8}, {0, 8}, {0x2000, 8}, {0, 8}, {0x1000, 8}, {0, 8}, {0x3000, 8}, {0, 8}});
    EXPECT_EQ(
        parse(instruction, "champsim").value(),
        (std::vector<Access>{
            {0x1000, 0x400000, 0, 0, 0}, {0x3000, 0x400000, 0, 0, 0}, {0x2000, 0x400000, 0, 0, 1}}));
    EXPECT_EQ(complaint("123456789", "u64"),
              "t: byte 8: expected an address of 8 bytes, found the end after 1");
    EXPECT_EQ(complaint("123456789", "records"),
              "t: byte 0: expected a record of 16 bytes, found the end after 9");
}

TEST(Formats, binary_layouts_are_distinguished) {
    std::string records, oracle, champsim, addresses;
    std::mt19937_64 random(1);
    for (std::uint64_t i = 0; i < 100; ++i) {
        records += packed({{0x7f0000000000 + random() % 4096, 8},
                           {random() % 10, 4},
                           {0, 2},
                           {8, 1},
                           {random() % 2, 1}});
        oracle += packed({{i / 10, 4}, {i % 7 * 0x123456789, 8}, {4096, 4}, {i < 93 ? i + 7 : -1, 8}});
        champsim += packed({{0x400000 + i, 8},
                            {i % 2, 8},
                            {0, 8},
                            {0, 8},
                            {0x1000 + i * 8, 8},
                            {0, 8},
                            {0, 8},
                            {0, 8}});
        addresses += packed({{random(), 8}});
    }
    EXPECT_EQ(parse(records)->size(), 100u);
    EXPECT_EQ(parse(oracle)->size(), 100u);
    EXPECT_EQ(parse(champsim)->size(), 100u);
    EXPECT_TRUE(complaint(addresses).starts_with(
        "t: cannot recognize the trace format by content (revisit, lackey, din, csv, perf, "));
}

// A file of bare addresses has no mark: whatever it holds, its format is asked for.
TEST(Formats, bare_addresses_are_never_taken_for_another_format) {
    std::mt19937_64 random(7);
    auto expect_unknown = [](const char* what, auto next) {
        for (std::size_t count : {8, 24, 100, 3000, 9000}) {
            std::string bytes;
            for (std::uint64_t i = 0; i < count; ++i) bytes += packed({{next(i), 8}});
            auto parsed = parse(bytes);
            ASSERT_FALSE(parsed) << what << " of " << count;
            EXPECT_EQ(parsed.error().code, ErrorCode::unknown_format) << what << " of " << count;
        }
    };
    expect_unknown("a scan", [](std::uint64_t i) { return i * 8; });
    expect_unknown("a scan of code", [](std::uint64_t i) { return 0x400000 + i; });
    expect_unknown("numbers", [](std::uint64_t i) { return i; });
    expect_unknown("a cycle", [](std::uint64_t i) { return i % 5000 * 64; });
    expect_unknown("a short cycle", [](std::uint64_t i) { return i % 8; });
    expect_unknown("cycles downwards", [](std::uint64_t i) { return (7 - i % 8) << 16; });
    expect_unknown("heap addresses", [&](std::uint64_t) { return 0x7f0000000000 + random() % 100000; });
    expect_unknown("small random numbers", [&](std::uint64_t) { return random() % 1000; });
    expect_unknown("tagged pointers",
                   [&](std::uint64_t) { return 0x0008000000000000 + random() % 1000; });
    expect_unknown("zeros", [](std::uint64_t) { return 0; });
    expect_unknown("ones", [](std::uint64_t) { return ~std::uint64_t{0}; });
}

TEST(Formats, the_format_that_was_read_is_said) {
    auto stream = ByteStream::of_memory("0 1f00\n1 2000\n", "t");
    EXPECT_EQ(open_stream(std::move(*stream), {}).value()->format(), "din");
}

TEST(Formats, csv_separators_come_from_the_header) {
    const std::vector<Access> expected = {{0x40, 0, 0, 3, 1}, {64, 0, 0, 0, 0}};
    EXPECT_EQ(parse("address;thread;write\n0x40;3;1\n64;0;0\n").value(), expected);
    EXPECT_EQ(parse("thread\taddress\twrite\n3\t0x40\tw\n0\t64\tr\n").value(), expected);
    EXPECT_EQ(complaint("address;thread\n1,2\n", "csv"),
              "t: line 2: expected an address, found \"1,2\"");
}

TEST(Formats, csv_rows_have_all_fields) {
    EXPECT_EQ(complaint("address,thread,write\n1,2,0\n3,1\n", "csv"),
              "t: line 3: expected 3 fields separated by commas, found 2");
    EXPECT_EQ(complaint("thread;address\n1\n", "csv"),
              "t: line 2: expected 2 fields separated by semicolons, found 1");
    EXPECT_EQ(complaint("address,write\n1,0,7,7\n", "csv"),
              "t: line 2: expected 2 fields separated by commas, found 4");
    EXPECT_EQ(parse("address,write,note\n1,0,\n2,1,\n")->size(), 2u);
}

TEST(Formats, perf_samples_have_address_thread_direction_and_instruction) {
    const std::string samples =
        "# captured\n"
        "my sort  4242/4243 [002]  71.250001:  1 cpu/mem-loads,ldlat=30/P:     7f12a0   5080144 |OP "
        "LOAD|LVL L1 hit|SNP None   401136 sort+0x16 (/bin/sort)\n"
        "sort 7 [000] 71.3:  1 cpu/mem-stores/P:  7f12c8  |OP STORE|LVL L1 miss|  401140 sort+0x20 "
        "(/bin/sort)\n"
        "\t          401000 main+0x3 (/bin/sort)\n\n"
        "sort 7 [000] 71.4:  1 cycles:  0  401150 sort+0x30 (/bin/sort)\n";
    auto accesses = parse(samples);
    ASSERT_TRUE(accesses) << accesses.error().sentence();
    EXPECT_EQ(*accesses, (std::vector<Access>{{0x7f12a0, 0x401136, 0, 4243, 0},
                                              {0x7f12c8, 0x401140, 0, 7, kWrite}}));
    auto bare = parse("  7f12a0   401136\n  7f12a8   40113a\n", "perf");
    ASSERT_TRUE(bare) << bare.error().sentence();
    EXPECT_EQ(*bare,
              (std::vector<Access>{{0x7f12a0, 0x401136, 0, 0, 0}, {0x7f12a8, 0x40113a, 0, 0, 0}}));
    EXPECT_EQ(complaint("sort 7 71.3: 1 cycles:  nowhere\n", "perf"),
              "t: line 1: expected a hexadecimal data address, found \"nowhere\"");
    EXPECT_EQ(complaint(samples + "what is this\n", "perf"),
              "t: line 7: expected a sample or a line of its call chain, found \"what is this\"");
}

TEST(Formats, nothing_is_an_empty_trace) {
    EXPECT_EQ(parse("")->size(), 0u);
    for (const FormatEntry& entry : formats())
        if (entry.name == "revisit" || entry.name == "gem5") {  // these begin with a magic number
            EXPECT_FALSE(parse("", entry.name)) << entry.name;
        } else {
            EXPECT_EQ(parse("", entry.name).value().size(), 0u) << entry.name;
        }
}

std::vector<Access> random_accesses(std::size_t count, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::vector<Access> out(count);
    for (Access& access : out)
        access = {1 + (random() >> (1 + random() % 63)), static_cast<std::uint32_t>(random() % 50),
                  1u << random() % 5, static_cast<std::uint16_t>(random() % 4),
                  static_cast<std::uint8_t>(random() % 2)};
    return out;
}

Result<void> write_all(const std::string& path, std::string_view format,
                       const std::vector<Access>& accesses, ColumnSet has, const TraceInfo& info = {}) {
    auto writer = create_trace(path, format);
    if (!writer) return unexpected(writer.error());
    Columns columns;
    columns.has = has;
    for (std::size_t i = 0; i < accesses.size(); ++i) {
        columns.push(accesses[i]);
        if (columns.count() == 777 || i + 1 == accesses.size()) {
            if (auto done = (*writer)->write(columns.batch()); !done) return done;
            columns.clear();
        }
    }
    return (*writer)->finish(info);
}

// A build without liblzma or zlib refuses such files by their names.
bool is_in_this_build(std::string_view packing) {
    test::TemporaryFolder folder;
    return create_sink(folder / (std::string("t") + std::string(packing))).has_value();
}

TEST(Formats, every_writable_format_gives_back_what_it_can_hold) {
    test::TemporaryFolder folder;
    std::vector<Access> accesses = random_accesses(20000, 3);
    for (const FormatEntry& entry : formats()) {
        if (entry.create == nullptr) continue;
        for (const char* packing : {"", ".zst", ".gz", ".xz"}) {
            if (!is_in_this_build(packing)) continue;
            std::string path = folder / (std::string("t") + std::string(entry.name) + packing);
            auto done = write_all(path, entry.name, accesses, {true, true, true, true});
            ASSERT_TRUE(done) << entry.name << packing << done.error().sentence();
            auto reader = open_trace(path, entry.name);
            ASSERT_TRUE(reader) << reader.error().sentence();
            auto back = read_all(**reader);
            ASSERT_TRUE(back) << entry.name << packing << back.error().sentence();
            ASSERT_EQ(back->size(), accesses.size()) << entry.name;
            bool whole = entry.name == "revisit" || entry.name == "csv" || entry.name == "records";
            for (std::size_t i = 0; i < accesses.size(); ++i) {
                ASSERT_EQ((*back)[i].address, accesses[i].address) << entry.name;
                if (whole) {
                    ASSERT_EQ((*back)[i], accesses[i]) << entry.name;
                }
            }
        }
    }
}

TEST(RevisitFormat, every_set_of_columns_and_the_info_survive) {
    test::TemporaryFolder folder;
    std::vector<Access> accesses = random_accesses(kChunkAccesses * 2 + 3, 4);
    TraceInfo info;
    info.modules = {{0x1000, 0x2000, 64, "/bin/a \"b\"", "abc"}};
    info.site_addresses = {0x1004, ~std::uint64_t{0}};
    info.command = {"a", "b c"};
    info.extra_json = "{\"x\":1}";
    for (int set : {0, 1, 3, 5, 10, 15}) {
        ColumnSet has{(set & 1) != 0, (set & 2) != 0, (set & 4) != 0, (set & 8) != 0};
        ASSERT_TRUE(write_all(folder / "t.rvt", {}, accesses, has, info));
        auto reader = open_trace(folder / "t.rvt").value();
        std::size_t i = 0;
        for (;;) {
            auto batch = reader->next();
            ASSERT_TRUE(batch) << batch.error().sentence();
            if (batch->count() == 0) break;
            ASSERT_EQ(columns_of(*batch), has);
            for (std::size_t j = 0; j < batch->count(); ++j, ++i) {
                Access expected = accesses[i];
                if (!has.sites) expected.site = 0;
                if (!has.sizes) expected.size = 0;
                if (!has.threads) expected.thread = 0;
                if (!has.flags) expected.flags = 0;
                ASSERT_EQ(batch->at(j), expected);
            }
        }
        EXPECT_EQ(i, accesses.size());
        EXPECT_EQ(reader->info().modules, info.modules);
        EXPECT_EQ(reader->info().site_addresses, info.site_addresses);
        EXPECT_EQ(reader->info().command, info.command);
        EXPECT_EQ(reader->info().extra_json, info.extra_json);
    }
}

TEST(RevisitFormat, matrix_multiply_takes_at_most_two_bytes_an_access) {
    test::TemporaryFolder folder;
    constexpr std::uint64_t n = 100, a = 0x7f0000000000, b = a + n * n * 8 + 4096,
                            c = b + n * n * 8 + 4096;
    std::vector<Access> accesses;
    for (std::uint64_t i = 0; i < n; ++i)
        for (std::uint64_t j = 0; j < n; ++j)
            for (std::uint64_t k = 0; k < n; ++k)
                for (std::uint64_t address :
                     {a + (i * n + k) * 8, b + (k * n + j) * 8, c + (i * n + j) * 8})
                    accesses.push_back(
                        {address, static_cast<std::uint32_t>(accesses.size() % 3), 8, 0, 0});
    for (ColumnSet has : {ColumnSet{}, ColumnSet{true, true, true, true}}) {
        ASSERT_TRUE(write_all(folder / "mm.rvt", {}, accesses, has));
        EXPECT_LT(std::filesystem::file_size(folder / "mm.rvt"), 2 * accesses.size());
        EXPECT_LT(std::filesystem::file_size(folder / "mm.rvt"), accesses.size() / 4);
    }
}

TEST(RevisitFormat, blocks_that_the_reader_cuts_are_those_of_the_cutter) {
    test::TemporaryFolder folder;
    const std::vector<Access> aligned = [] {
        std::vector<Access> out = random_accesses(10000, 9);
        for (Access& access : out) access = {access.address & ~std::uint64_t{7}, 1, 8, 0, 0};
        return out;
    }();
    std::vector<Access> crossing = aligned;
    for (std::size_t i = 5000; i < crossing.size(); i += 7) crossing[i].size = 100;
    for (std::size_t i = 0; i < crossing.size(); i += 5) crossing[i].size = 0;
    for (const char* name : {"t.rvt", "t.records", "t.u64"})
        for (const auto* of : {&aligned, &std::as_const(crossing)}) {
            const std::vector<Access>& accesses = *of;
            ASSERT_TRUE(write_all(folder / name, {}, accesses, {true, true, true, true}));
            const auto reader = open_trace(folder / name).value();
            for (unsigned shift : {1u, 4u, 6u, 12u}) {
                Columns whole, blocks;
                blocks.wanted = {false, true, false, false};
                blocks.cut_shift = shift;
                auto read = [&](Columns& into) {
                    return reader->ranges() != nullptr
                               ? reader->ranges()->read(3, accesses.size() - 3, into)
                               : reader->chunks()->decode(0, into);
                };
                const auto expected = read(whole).value(), cut = read(blocks).value();
                if (!blocks.is_cut) {  // only where an access crosses, and only the packed form
                    EXPECT_STREQ(name, "t.rvt");
                    EXPECT_TRUE(of == &crossing || shift < 3);
                    EXPECT_EQ(cut.sizes.size(), cut.count());
                    continue;
                }
                BlockColumns made;
                BlockCutter cutter(std::uint64_t{1} << shift);
                ASSERT_TRUE(cutter.cut(expected, [&](const BlockBatch& piece) -> Result<void> {
                    made.append({piece.blocks, {}, {}, {}});
                    return {};
                }));
                EXPECT_TRUE(std::ranges::equal(made.blocks, cut.addresses)) << name << shift;
            }
        }
}

// Written by version 1.0, whose chunks held varints.
TEST(RevisitFormat, chunks_of_version_1_predicted_by_site_and_by_place_are_read) {
    for (const bool sites : {true, false}) {
        auto reader = open_trace(std::string(REVISIT_TEST_DATA) +
                                 (sites ? "/version-1-sites.rvt" : "/version-1-bare.rvt"));
        ASSERT_TRUE(reader) << reader.error().sentence();
        const auto accesses = read_all(**reader);
        ASSERT_TRUE(accesses) << accesses.error().sentence();
        ASSERT_EQ(accesses->size(), 3000u);
        std::uint64_t walked[3] = {};
        for (std::uint64_t i = 0; i < accesses->size(); ++i) {
            Access expected{0x10000 + i * i % 4099 * 8, 0, 0, 0, 0};
            if (sites) {
                const auto site = static_cast<std::uint32_t>(i * i % 11 % 3);
                expected = {0x10000 + site * 0x100000 + walked[site]++ * 8, site, 8, 0,
                            static_cast<std::uint8_t>(site == 2)};
            }
            ASSERT_EQ((*accesses)[i], expected) << i;
        }
    }
}

TEST(RevisitFormat, every_truncation_is_refused) {
    test::TemporaryFolder folder;
    ASSERT_TRUE(write_all(folder / "t.rvt", {}, random_accesses(300, 5), {true, true, true, true}));
    std::ifstream file(folder / "t.rvt", std::ios::binary);
    std::string whole((std::istreambuf_iterator<char>(file)), {});
    ASSERT_TRUE(parse(whole));
    for (std::size_t size = 1; size < whole.size(); size += 1 + size / 50)
        EXPECT_FALSE(parse(whole.substr(0, size))) << size;
    EXPECT_FALSE(parse(whole + "x"));
}

TEST(RevisitFormat, no_flipped_bit_goes_unnoticed_in_the_accesses) {
    test::TemporaryFolder folder;
    std::vector<Access> accesses = random_accesses(2000, 6);
    ASSERT_TRUE(write_all(folder / "t.rvt", {}, accesses, {true, true, true, true}));
    std::ifstream file(folder / "t.rvt", std::ios::binary);
    std::string whole((std::istreambuf_iterator<char>(file)), {});
    std::mt19937_64 random(7);
    for (int i = 0; i < 300; ++i) {
        std::string broken = whole;
        broken[random() % broken.size()] ^= static_cast<char>(1 << random() % 8);
        auto read = parse(broken, "revisit");
        if (read) {  // only bits outside the accesses may pass
            EXPECT_EQ(*read, accesses);
        }
    }
}

TEST(Packing, cut_short_and_broken_streams_are_refused) {
    test::TemporaryFolder folder;
    for (const char* packing : {".zst", ".gz", ".xz"}) {
        if (!is_in_this_build(packing)) continue;
        std::string path = folder / (std::string("t.u64") + packing);
        ASSERT_TRUE(write_all(path, "u64", random_accesses(5000, 8), {}));
        std::ifstream file(path, std::ios::binary);
        std::string whole((std::istreambuf_iterator<char>(file)), {});
        EXPECT_EQ(parse(whole, "u64")->size(), 5000u);
        EXPECT_EQ(parse(whole + whole, "u64")->size(), 10000u) << "concatenated members";
        EXPECT_FALSE(parse(whole.substr(0, whole.size() / 2), "u64")) << packing;
        EXPECT_FALSE(parse(whole.substr(0, whole.size() - 1), "u64")) << packing;
        std::string broken = whole;
        broken[broken.size() / 2] ^= 0x55;
        EXPECT_FALSE(parse(broken, "u64")) << packing;
    }
}

TEST(Writing, nothing_half_written_is_left_behind) {
    test::TemporaryFolder folder;
    {
        auto writer = create_trace(folder / "t.rvt").value();
        Columns columns;
        columns.push({1, 0, 0, 0, 0});
        ASSERT_TRUE(writer->write(columns.batch()));
    }
    EXPECT_EQ(folder.files(), 0u);
    EXPECT_FALSE(create_trace(folder / "no/such/folder/t.rvt"));
    EXPECT_FALSE(create_trace(folder / "t.oracle"));
    for (const char* name : {"b.u64.bz2", "b.csv.lz4", "b.bz2", "b.u64.old"}) {
        EXPECT_FALSE(create_trace(folder / name)) << name;
        EXPECT_FALSE(create_trace(folder / name, "u64")) << name;
    }
    EXPECT_EQ(create_trace(folder / "b.u64.bz2").error().message,
              "cannot write .bz2: traces are packed as .zst, .gz or .xz");
    EXPECT_EQ(folder.files(), 0u);
    auto full = write_all("/dev/full", "u64", random_accesses(100000, 9), {});
    ASSERT_FALSE(full);
    EXPECT_EQ(full.error().sentence(), "/dev/full: cannot write: No space left on device");
}

TEST(Opening, packings_of_others_are_named) {
    EXPECT_EQ(complaint("BZh91AY&SY and so on"),
              "t: is packed by bzip2; expected zstd, gzip, xz or an unpacked trace");
}

TEST(Opening, what_is_not_a_readable_file_is_said) {
    EXPECT_EQ(open_trace("/tmp").error().sentence(), "/tmp: expected a trace, found a directory");
    EXPECT_EQ(open_trace("/no/such").error().sentence(),
              "/no/such: cannot open: No such file or directory");
}

TEST(Text, very_long_lines_are_refused_and_long_files_go_through_the_buffer) {
    EXPECT_EQ(complaint("0 " + std::string(70000, '1'), "din"),
              "t: line 1: expected a line of under 65536 bytes");
    std::string many;
    for (int i = 0; i < 900000; ++i) many += fmt::format("0 {:x}\n", i);
    auto accesses = parse(many);
    ASSERT_TRUE(accesses) << accesses.error().sentence();
    ASSERT_EQ(accesses->size(), 900000u);
    for (std::size_t i = 0; i < accesses->size(); ++i) ASSERT_EQ((*accesses)[i].address, i);
}

}  // namespace
}  // namespace revisit
