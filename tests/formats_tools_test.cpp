// Traces of other people's tools that come in files of their own kind: drmemtrace's (zip, gzip, one per
// thread), gem5's packets. The bytes are put together here by the tools' published descriptions.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>

#include "formats/format.h"

namespace revisit {
namespace {

using Accesses = std::vector<Access>;

Result<Accesses> all(TraceReader& reader) {
    Accesses out;
    for (;;) {
        auto batch = reader.next();
        if (!batch) return unexpected(batch.error());
        if (batch->count() == 0) return out;
        for (std::size_t i = 0; i < batch->count(); ++i) out.push_back(batch->at(i));
    }
}

Result<Accesses> parse(std::string bytes, std::string_view format = {}) {
    auto stream = ByteStream::of_memory(std::move(bytes), "t");
    if (!stream) return unexpected(stream.error());
    auto reader = open_stream(std::move(*stream), format);
    if (!reader) return unexpected(reader.error());
    return all(**reader);
}

std::string complaint(const std::string& bytes, std::string_view format = {}) {
    auto result = parse(bytes, format);
    return result ? "nothing wrong" : result.error().sentence();
}

template <class T>
void put(std::string& to, T value) {
    to.append(reinterpret_cast<const char*>(&value), sizeof value);
}

// Entries of drmemtrace.
std::string entry(std::uint16_t type, std::uint16_t size, std::uint64_t value) {
    std::string out;
    put(out, type);
    put(out, size);
    put(out, value);
    return out;
}
std::string header(std::uint64_t thread, std::uint64_t process = 7) {
    return entry(25, 0, 4) + entry(22, 4, thread) + entry(24, 4, process);
}
std::string at_time(std::uint64_t microseconds) {
    return entry(28, 2, microseconds) + entry(28, 3, 1);
}
std::string load_at(std::uint64_t pc, std::uint64_t address, std::uint16_t size = 8) {
    return entry(10, 4, pc) + entry(0, size, address);
}
std::string store_at(std::uint64_t pc, std::uint64_t address, std::uint16_t size = 8) {
    return entry(10, 4, pc) + entry(1, size, address);
}

std::string deflated(const std::string& bytes, int window) {
    z_stream stream{};
    EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, window, 8, Z_DEFAULT_STRATEGY), Z_OK);
    std::string out(deflateBound(&stream, bytes.size()) + 64, '\0');
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    stream.avail_in = static_cast<uInt>(bytes.size());
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = static_cast<uInt>(out.size());
    EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
    const std::size_t length = out.size() - stream.avail_out;
    deflateEnd(&stream);
    return out.substr(0, length);
}

enum class Member { stored, deflated, with_trailer, with_long_trailer };

std::string zip_member(const std::string& name, const std::string& bytes, Member kind) {
    const bool trailer = kind == Member::with_trailer || kind == Member::with_long_trailer;
    const std::string data = kind == Member::stored ? bytes : deflated(bytes, -15);
    const auto crc = static_cast<std::uint32_t>(
        crc32(0, reinterpret_cast<const Bytef*>(bytes.data()), static_cast<uInt>(bytes.size())));
    std::string out = "PK\3\4";
    put<std::uint16_t>(out, 20);
    put<std::uint16_t>(out, trailer ? 8 : 0);
    put<std::uint16_t>(out, kind == Member::stored ? 0 : 8);
    put<std::uint32_t>(out, 0);
    put<std::uint32_t>(out, trailer ? 0 : crc);
    put<std::uint32_t>(out, trailer ? 0 : static_cast<std::uint32_t>(data.size()));
    put<std::uint32_t>(out, trailer ? 0 : static_cast<std::uint32_t>(bytes.size()));
    put<std::uint16_t>(out, static_cast<std::uint16_t>(name.size()));
    put<std::uint16_t>(out, 5);
    out += name + "extra" + data;
    if (!trailer) return out;
    out += "PK\7\10";
    put(out, crc);
    for (std::size_t size : {data.size(), bytes.size()}) {
        if (kind == Member::with_long_trailer) put<std::uint64_t>(out, size);
        if (kind == Member::with_trailer) put<std::uint32_t>(out, static_cast<std::uint32_t>(size));
    }
    return out;
}
const std::string kZipEnd = "PK\1\2" + std::string(42, 'd') + "PK\5\6" + std::string(18, 'e');

TEST(Drmemtrace, gives_data_with_thread_site_and_size) {
    auto accesses = parse(header(4711) + at_time(1) + load_at(0x401000, 0x7000) + entry(47, 3, 0x1234) +
                          store_at(0x401004, 0x7008, 4) + entry(3, 1, 0x9999) + entry(13, 2, 0x401008) +
                          entry(26, 0, 0));
    ASSERT_TRUE(accesses) << accesses.error().sentence();
    EXPECT_EQ(*accesses, (Accesses{{0x7000, 0x401000, 8, 0, 0}, {0x7008, 0x401004, 4, 0, kWrite}}));
}

TEST(Drmemtrace, data_after_a_bundle_belongs_to_its_last_instruction) {
    auto accesses =
        parse(header(1) + entry(10, 4, 0x1000) + entry(17, 3, 0x030502) + entry(0, 8, 0x40));
    ASSERT_TRUE(accesses);
    EXPECT_EQ(accesses->at(0).site, 0x1000u + 4 + 2 + 5);
}

TEST(Drmemtrace, leaves_out_what_the_kernel_does) {
    auto accesses =
        parse(header(1) + load_at(1, 0x10) + entry(28, 27, 0) + load_at(2, 0x20) + entry(28, 34, 0) +
              load_at(3, 0x30) + entry(28, 35, 0) + entry(28, 28, 0) + load_at(4, 0x40));
    ASSERT_TRUE(accesses);
    ASSERT_EQ(accesses->size(), 2u);
    EXPECT_EQ(accesses->at(1).address, 0x40u);
}

TEST(Drmemtrace, processes_do_not_share_addresses) {
    auto accesses = parse(header(1, 7) + load_at(1, 0x10) + entry(24, 4, 8) + load_at(1, 0x10));
    ASSERT_TRUE(accesses);
    EXPECT_EQ(accesses->at(0).address, 0x10u);
    EXPECT_NE(accesses->at(1).address, 0x10u);
}

TEST(Drmemtrace, says_where_it_is_broken) {
    EXPECT_EQ(complaint(header(1) + entry(700, 0, 0)),
              "t: byte 36: expected an entry of drmemtrace, found type 700");
    EXPECT_EQ(complaint(header(1) + "half"),
              "t: byte 36: expected an entry of 12 bytes, found the end after 4");
}

TEST(Drmemtrace, threads_of_a_directory_come_in_the_order_of_their_time_stamps) {
    namespace fs = std::filesystem;
    const fs::path folder = fs::path(testing::TempDir()) / "drmemtrace_directory";
    fs::remove_all(folder);
    fs::create_directories(folder / "trace");
    std::mt19937_64 random(3);
    std::string files[3];
    struct Stretch {
        std::uint64_t time;
        Accesses accesses;
    };
    std::vector<Stretch> expected;
    for (std::uint64_t thread = 0; thread < 3; ++thread) files[thread] = header(100 + thread);
    std::uint64_t time = 1000;
    for (int i = 0; i < 200; ++i, time += 1 + random() % 5) {
        const auto thread = random() % 3;
        files[thread] += at_time(time);
        expected.push_back({time, {}});
        for (std::uint64_t j = random() % 20; j-- > 0;) {
            const std::uint64_t address = random() % 10000 * 8;
            files[thread] += load_at(0x400000 + j, address);
            expected.back().accesses.push_back({address, static_cast<std::uint32_t>(0x400000 + j), 8,
                                                static_cast<std::uint16_t>(thread), 0});
        }
    }
    const char* names[3] = {"app.100.1.trace.zip", "app.101.1.trace.gz", "app.102.1.trace"};
    const std::string packed[3] = {
        zip_member("chunk.0000", files[0].substr(0, 1200), Member::deflated) +
            zip_member("chunk.0001", files[0].substr(1200), Member::with_trailer) + kZipEnd,
        deflated(files[1], 15 + 16), files[2]};
    for (int i = 0; i < 3; ++i)
        std::ofstream(folder / "trace" / names[i], std::ios::binary) << packed[i];
    std::ofstream(folder / "trace" / "cpu_schedule.bin.zip") << "not a trace";
    auto reader = open_trace(folder.string());
    ASSERT_TRUE(reader) << reader.error().sentence();
    auto accesses = all(**reader);
    ASSERT_TRUE(accesses) << accesses.error().sentence();
    Accesses in_order;
    for (const Stretch& stretch : expected)
        in_order.insert(in_order.end(), stretch.accesses.begin(), stretch.accesses.end());
    EXPECT_EQ(*accesses, in_order);
    fs::remove_all(folder);
}

TEST(Zip, members_of_every_kind_are_read_one_after_the_other) {
    std::string bytes;
    for (int i = 0; i < 20000; ++i) bytes += load_at(0x1000 + i % 7, i * 24u % 9000);
    const std::string whole = header(1) + bytes + bytes + bytes + bytes;
    const std::string zip =
        zip_member("a", header(1) + bytes, Member::stored) + zip_member("b", bytes, Member::deflated) +
        zip_member("empty", "", Member::stored) + zip_member("c", bytes, Member::with_trailer) +
        zip_member("d", bytes, Member::with_long_trailer) + kZipEnd;
    auto accesses = parse(zip);
    ASSERT_TRUE(accesses) << accesses.error().sentence();
    EXPECT_EQ(*accesses, *parse(whole));
}

TEST(Zip, broken_archives_are_refused) {
    const std::string bytes = header(1) + load_at(1, 2) + load_at(3, 4);
    for (Member kind : {Member::stored, Member::deflated, Member::with_trailer}) {
        const std::string member = zip_member("a", bytes, kind);
        for (std::size_t length = 5; length < member.size(); ++length)
            EXPECT_FALSE(parse(member.substr(0, length), "drmemtrace")) << length;
        std::string broken = member + kZipEnd;
        broken[member.size() - 20] ^= 1;
        EXPECT_FALSE(parse(broken, "drmemtrace"));
    }
    std::string secret = zip_member("a", bytes, Member::stored);
    secret[6] = 1;
    EXPECT_EQ(complaint(secret), "t: byte 0: expected a zip file without a password");
}

// gem5's messages.
std::string integer(std::uint64_t value) {
    std::string out;
    for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
    return out + static_cast<char>(value);
}
std::string field(int number, std::uint64_t value) {
    return integer(static_cast<std::uint64_t>(number) << 3) + integer(value);
}
std::string message(const std::string& body) {
    return integer(body.size()) + body;
}
std::string packet(std::uint64_t command, std::uint64_t address, std::uint64_t size,
                   std::uint64_t flags = 0, std::uint64_t pc = 0) {
    return message(field(1, 1000) + field(2, command) + field(3, address) + field(4, size) +
                   (flags != 0 ? field(5, flags) : "") + field(6, 3) + (pc != 0 ? field(7, pc) : ""));
}
std::string gem5_header() {
    return "gem5" + message(integer(1 << 3 | 2) + message("system.monitor") + field(2, 0) +
                            field(3, 1000000000000) + integer(4 << 3 | 2) + message(field(1, 5)));
}

TEST(Gem5, gives_requests_for_data) {
    auto accesses = parse(deflated(gem5_header() + packet(1, 0x80001000, 64, 0, 0x401000) +
                                       packet(4, 0x80001040, 4) + packet(2, 0x80001000, 64) +
                                       packet(5, 0x80001040, 4) + packet(1, 0x400000, 4, 0x100) +
                                       packet(23, ~std::uint64_t{0} - 63, 64),
                                   15 + 16));
    ASSERT_TRUE(accesses) << accesses.error().sentence();
    EXPECT_EQ(*accesses, (Accesses{{0x80001000, 0x401000, 64, 0, 0},
                                   {0x80001040, 0, 4, 0, kWrite},
                                   {~std::uint64_t{0} - 63, 0, 64, 0, 0}}));
}

TEST(Gem5, says_where_it_is_broken) {
    const std::string good = gem5_header() + packet(1, 64, 8);
    for (std::size_t length = gem5_header().size() + 1; length < good.size(); ++length)
        EXPECT_FALSE(parse(good.substr(0, length))) << length;
    EXPECT_TRUE(complaint(gem5_header() + message(field(1, 5)))
                    .ends_with("expected a packet with command, address and size"));
    EXPECT_TRUE(
        complaint("gem5" + integer(std::uint64_t{1} << 40)).ends_with("the length of a message"));
    EXPECT_TRUE(complaint(gem5_header() + message("\x0b")).ends_with("expected a message of protobuf"));
}

}  // namespace
}  // namespace revisit
