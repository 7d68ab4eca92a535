// The join of sources and engines: whatever way a trace takes, the profile is the same.
#include "revisit/analyze.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <tuple>

#include "engines/exact_threads.h"
#include "random_traces.h"
#include "revisit/revisit.h"
#include "temporary_folder.h"

namespace revisit {
namespace {

// Accesses with all columns, some of which cross blocks.
struct Trace {
    std::vector<std::uint64_t> addresses;
    std::vector<std::uint32_t> sites, sizes;
    std::vector<std::uint16_t> threads;
    std::vector<std::uint8_t> flags;

    AccessBatch batch(bool columns) const {
        if (!columns) return {addresses, {}, {}, {}, {}};
        return {addresses, sites, sizes, threads, flags};
    }
    AccessBatch part(std::size_t from, std::size_t count, bool columns) const {
        auto of = [&](auto column) { return column.empty() ? column : column.subspan(from, count); };
        const AccessBatch all = batch(columns);
        return {of(all.addresses), of(all.sites), of(all.sizes), of(all.threads), of(all.flags)};
    }
};

Trace make_trace(std::size_t count, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    Trace trace;
    for (std::size_t i = 0; i < count; ++i) {
        const bool scan = i / 500 % 3 == 0;
        trace.addresses.push_back(scan ? 0x10000 + 16 * i : 0x400000 + random() % 20000);
        trace.sites.push_back(static_cast<std::uint32_t>(random() % 7));
        trace.sizes.push_back(random() % 50 == 0 ? 200 : 8);
        trace.threads.push_back(static_cast<std::uint16_t>(random() % 3));
        trace.flags.push_back(random() % 3 == 0 ? kWrite : 0);
    }
    return trace;
}

void store(const AccessBatch& batch, const std::string& path, std::string_view format) {
    auto writer = create_trace(path, format);
    ASSERT_TRUE(writer) << writer.error().sentence();
    ASSERT_TRUE((*writer)->write(batch));
    ASSERT_TRUE((*writer)->finish({}));
}

std::string json_of(Result<Profile> profile) {
    if (!profile) return profile.error().sentence();
    profile->method = "any";
    return to_json(*profile);
}

// Only what next() gives.
class StreamOnly : public TraceReader {
 public:
    explicit StreamOnly(std::unique_ptr<TraceReader> inner) : inner_(std::move(inner)) {}
    Result<AccessBatch> next() override { return inner_->next(); }

 private:
    std::unique_ptr<TraceReader> inner_;
};

// Long enough for two chunks of every format.
TEST(Analyze, every_source_and_engine_agree) {
    const test::TemporaryFolder folder;
    const Trace trace = make_trace(140'000, 1);
    for (const auto& [format, packing] : {std::pair{"u64", ""},
                                          {"records", ""},
                                          {"revisit", ""},
                                          {"csv", ""},
                                          {"lackey", ""},
                                          {"din", ""},
                                          {"champsim", ""},
                                          {"u64", ".zst"},
                                          {"lackey", ".zst"},
                                          {"records", ".zst"},
                                          {"revisit", ".zst"}}) {
        const std::string path = folder / (std::string("trace.") + format + packing);
        store(trace.batch(true), path, format);
        for (std::uint64_t granularity : {1, 64, 100}) {
            AnalyzeOptions options;
            options.engine.granularity = granularity;
            options.engine.bins = Binning::exact();
            options.method = "olken";
            auto reader = StreamOnly(open_trace(path, format).value());
            const std::string expected = json_of(analyze(reader, options));
            for (const auto& [method, threads] :
                 {std::pair{"exact", 1u}, {"exact", 2u}, {"exact", 5u}, {"partition", 3u}}) {
                options.method = method;
                options.engine.threads = threads;
                auto whole = open_trace(path, format).value();
                EXPECT_EQ(json_of(analyze(*whole, options)), expected)
                    << format << packing << " " << method << ", blocks of " << granularity << ", "
                    << threads << " threads";
            }
        }
    }
}

TEST(Analyze, sites_pairs_times_and_phases_do_not_depend_on_the_way) {
    const test::TemporaryFolder folder;
    const Trace trace = make_trace(20'000, 2);
    for (const char* format : {"records", "revisit", "csv"}) {
        const std::string path = folder / (std::string("trace.") + format);
        store(trace.batch(true), path, format);
        for (unsigned phases : {0, 3}) {
            AnalyzeOptions options;
            options.engine.sites = options.engine.pairs = options.engine.time = true;
            options.engine.phases = phases;
            auto stream = StreamOnly(open_trace(path, format).value());
            const std::string expected = json_of(analyze(stream, options));
            EXPECT_NE(expected.find("\"sites\""), std::string::npos);
            for (unsigned threads : {1, 3}) {
                options.engine.threads = threads;
                auto whole = open_trace(path, format).value();
                EXPECT_EQ(json_of(analyze(*whole, options)), expected) << format << " " << threads;
            }
            options.engine.threads = 1;
            EXPECT_EQ(json_of(analyze(trace.batch(true), options)), expected) << "in memory";
        }
    }
}

// The engine on threads, made to cut everywhere, reads ranges that are cut where it counts.
TEST(Analyze, threads_read_ranges_as_they_read_blocks) {
    const test::TemporaryFolder folder;
    const Trace trace = make_trace(8'000, 3);
    for (bool columns : {false, true}) {
        const char* const format = columns ? "records" : "u64";
        const std::string path = folder / format;
        store(trace.batch(columns), path, format);
        EngineOptions options;
        options.bins = Binning::exact();
        const std::string expected =
            json_of(analyze(trace.batch(columns), AnalyzeOptions{"naive", options, {}, {}}));
        for (unsigned threads : {2u, 5u})
            for (std::size_t chunk : {65, 300, 3000})
                for (bool weigh : {false, true}) {
                    options.threads = threads;
                    const ThreadTuning tuning{1, chunk, chunk * 4, chunk * 3, weigh, 3, 16, 100};
                    const auto engine = make_exact_threads(options, tuning);
                    const auto reader = open_trace(path, format).value();
                    ASSERT_NE(reader->ranges(), nullptr);
                    ASSERT_TRUE(engine->takes_ranges());
                    ASSERT_TRUE(engine->add_ranges(*reader->ranges(), {}));
                    EXPECT_EQ(json_of(engine->finish()), expected)
                        << format << ", " << threads << " threads, chunks of " << chunk;
                }
    }
}

TEST(Analyze, several_files_are_one_trace) {
    const test::TemporaryFolder folder;
    const Trace trace = make_trace(9'000, 4);
    AnalyzeOptions options;
    options.engine.bins = Binning::exact();
    const std::string expected = json_of(analyze(trace.batch(true), options));
    for (const auto& [first, second, third] : {std::tuple{"records", "records", "records"},
                                               {"records", "rvt", "csv"},
                                               {"rvt", "rvt", "records"}}) {
        std::vector<std::string> paths;
        std::size_t at = 0;
        for (const auto& [suffix, count] : {std::pair{first, 4000}, {second, 1}, {third, 4999}}) {
            paths.push_back(folder / std::to_string(at) + "." + suffix);
            store(trace.part(at, static_cast<std::size_t>(count), true), paths.back(), {});
            at += static_cast<std::size_t>(count);
        }
        for (unsigned threads : {1, 2}) {
            options.engine.threads = threads;
            auto joined = open_traces(paths);
            ASSERT_TRUE(joined) << joined.error().sentence();
            EXPECT_EQ(json_of(analyze(**joined, options)), expected) << first << " " << second;
        }
    }
    const std::string twice[] = {"-", "-"};
    EXPECT_FALSE(open_traces(twice));
}

TEST(Analyze, a_file_that_becomes_shorter_is_an_error) {
    const test::TemporaryFolder folder;
    const Trace trace = make_trace(100'000, 5);
    for (const char* format : {"u64", "records", "revisit", "lackey"}) {
        const std::string path = folder / (std::string("trace.") + format);
        store(trace.batch(true), path, format);
        for (unsigned threads : {1, 2}) {
            const auto reader = open_trace(path, format).value();
            std::filesystem::resize_file(path, std::filesystem::file_size(path) / 2);
            AnalyzeOptions options;
            options.engine.threads = threads;
            const auto profile = analyze(*reader, options);
            ASSERT_FALSE(profile) << format;
            EXPECT_NE(profile.error().sentence().find(path), std::string::npos);
            std::filesystem::remove(path);
            store(trace.batch(true), path, format);
        }
    }
}

TEST(Analyze, a_file_that_grows_ends_where_it_ended_when_it_was_opened) {
    const test::TemporaryFolder folder;
    const Trace trace = make_trace(70'000, 7);
    for (const char* format : {"u64", "records", "din"}) {
        const std::string path = folder / (std::string("trace.") + format);
        store(trace.batch(true), path, format);
        for (unsigned threads : {1, 2}) {
            AnalyzeOptions options;
            options.engine.threads = threads;
            const std::string expected = json_of(analyze(*open_trace(path, format).value(), options));
            const auto size = std::filesystem::file_size(path);
            const auto reader = open_trace(path, format).value();
            std::ofstream(path, std::ios::app) << "0 12345678\n0 1";
            EXPECT_EQ(json_of(analyze(*reader, options)), expected) << format;
            std::filesystem::resize_file(path, size);
        }
    }
}

TEST(Analyze, sources_and_batches_of_one_analysis_follow_each_other) {
    const test::TemporaryFolder folder;
    const Trace trace = make_trace(20'000, 4);
    for (const char* format : {"records", "revisit", "csv"}) {
        const std::string path = folder / (std::string("first.") + format);
        const std::string second = folder / (std::string("second.") + format);
        store(trace.part(0, 8'000, true), path, format);
        store(trace.part(13'000, 7'000, true), second, format);
        for (unsigned threads : {1, 3}) {
            AnalyzeOptions options;
            options.engine.threads = threads;
            options.engine.sites = true;
            const std::string expected = json_of(analyze(trace.batch(true), options));
            auto analysis = Analysis::begin(options).value();
            ASSERT_TRUE(analysis.add(*open_trace(path, format).value()));
            ASSERT_TRUE(analysis.add(trace.part(8'000, 5'000, true)));
            ASSERT_TRUE(analysis.add(*open_trace(second, format).value()));
            EXPECT_EQ(json_of(analysis.finish()), expected) << format << ", " << threads << " threads";
            EXPECT_FALSE(analysis.add(*open_trace(path, format).value()));
        }
    }
}

TEST(Analyze, a_sparse_file_is_zeros) {
    const test::TemporaryFolder folder;
    const std::string path = folder / "sparse.u64";
    std::ofstream(path).flush();
    std::filesystem::resize_file(path, std::size_t{64} << 20);
    for (unsigned threads : {1, 2}) {
        AnalyzeOptions options;
        options.engine.threads = threads;
        const auto profile = analyze(*open_trace(path).value(), options);
        ASSERT_TRUE(profile);
        EXPECT_EQ(profile->accesses, 8 << 20);
        EXPECT_EQ(profile->distinct, 1);
    }
}

// Windows on chunks of a source: cut at chunks, decoded where they are counted or ahead of that.
TEST(Analyze, threads_decode_chunks_as_they_read_blocks) {
    const test::TemporaryFolder folder;
    const Trace trace = make_trace(700'000, 8);
    EngineOptions options;
    options.bins = Binning::exact();
    for (const char* format : {"revisit", "din"}) {
        const std::string path = folder / (std::string("trace.") + format);
        store(trace.batch(true), path, format);
        auto stream = StreamOnly(open_trace(path, format).value());
        options.threads = 1;
        const std::string expected = json_of(analyze(stream, AnalyzeOptions{"exact", options, {}, {}}));
        for (unsigned threads : {2u, 5u})
            for (std::size_t chunk : {1000, 100'000, 300'000})
                for (bool weigh : {false, true}) {
                    options.threads = threads;
                    const ThreadTuning tuning{1, chunk, chunk * 4, chunk * 3, weigh, 3, 16, 100};
                    const auto engine = make_exact_threads(options, tuning);
                    const auto reader = open_trace(path, format).value();
                    ASSERT_NE(reader->chunks(), nullptr);
                    ASSERT_TRUE(engine->takes_chunks());
                    ASSERT_TRUE(engine->add_chunks(*reader->chunks(), {}));
                    EXPECT_EQ(json_of(engine->finish()), expected)
                        << format << ", " << threads << " threads, chunks of " << chunk;
                }
    }
}

TEST(Analyze, a_wrong_line_is_found_in_any_chunk) {
    const test::TemporaryFolder folder;
    const std::string path = folder / "long.din";
    {
        std::ofstream out(path);
        for (int i = 0; i < 400'000; ++i) out << (i == 300'000 ? "9 12\n" : "0 1234abcd\n");
    }
    for (unsigned threads : {1, 3}) {
        AnalyzeOptions options;
        options.engine.threads = threads;
        const auto profile = analyze(*open_trace(path, "din").value(), options);
        ASSERT_FALSE(profile);
        EXPECT_EQ(profile.error().sentence(),
                  path + ": line 300001: expected a label 0, 1 or 2, found \"9\"");
    }
}

TEST(Analyze, an_access_of_gigabytes_costs_no_memory_on_the_way) {
    const test::TemporaryFolder folder;
    const std::string path = folder / "huge.csv";
    std::ofstream(path) << "address,size\n0,1073741824\n64,4\n";
    AnalyzeOptions options;
    options.engine.threads = 2;
    options.engine.granularity = 4096;
    const auto profile = analyze(*open_trace(path, "csv").value(), options);
    ASSERT_TRUE(profile);
    EXPECT_EQ(profile->accesses, 262'145);
}

TEST(Analyze, also_sees_every_access_in_order) {
    const test::TemporaryFolder folder;
    const Trace trace = make_trace(150'000, 6);
    store(trace.batch(true), folder / "t.rvt", "revisit");
    for (unsigned threads : {1, 3}) {
        std::vector<std::uint64_t> seen;
        AnalyzeOptions options;
        options.engine.threads = threads;
        options.also = [&](const AccessBatch& batch) -> Result<void> {
            seen.insert(seen.end(), batch.addresses.begin(), batch.addresses.end());
            return {};
        };
        ASSERT_TRUE(analyze(*open_trace(folder / "t.rvt").value(), options));
        EXPECT_EQ(seen, trace.addresses);
    }
}

}  // namespace
}  // namespace revisit
