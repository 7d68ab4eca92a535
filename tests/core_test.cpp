#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <random>

#include "core/elf_file.h"
#include "core/files.h"
#include "record/process_status.h"
#include "revisit/blocks.h"
#include "revisit/revisit.h"
#include "temporary_folder.h"

namespace revisit {
namespace {

TEST(Units, bytes_in_any_spelling) {
    EXPECT_EQ(parse_bytes("64").value(), 64u);
    EXPECT_EQ(parse_bytes("32K").value(), 32768u);
    EXPECT_EQ(parse_bytes("32k").value(), 32768u);
    EXPECT_EQ(parse_bytes("1MiB").value(), 1048576u);
    EXPECT_EQ(parse_bytes("1 MB").value(), 1048576u);
    EXPECT_EQ(parse_bytes("1.5M").value(), 1572864u);
    EXPECT_EQ(parse_bytes("2Gi").value(), 2147483648u);
    EXPECT_EQ(parse_bytes("64B").value(), 64u);
    EXPECT_EQ(parse_bytes("18446744073709551615").value(), ~std::uint64_t{0});
    for (const char* bad :
         {"", "K", "-1", "1X", "1KiBs", "nan", "inf", "1e300", "0.3", "18446744073709551616", "17000P"})
        EXPECT_FALSE(parse_bytes(bad)) << bad;
}

TEST(Units, counts) {
    EXPECT_EQ(parse_count("1e9").value(), 1000000000u);
    EXPECT_EQ(parse_count("5M").value(), 5000000u);
    EXPECT_FALSE(parse_count("5MB"));
}

const Binning kBinnings[] = {Binning::log2(),    Binning::log2(2),      Binning::log2(3),
                             Binning::log2(8),   Binning::log2(10),     Binning::linear(1),
                             Binning::linear(7), Binning::linear(1000), Binning::exact(),
                             Binning::log2(100)};

TEST(Binning, edges_enclose_and_tile) {
    std::mt19937_64 random(1);
    for (const Binning& bins : kBinnings) {
        std::uint64_t previous_index = 0;
        for (std::uint64_t low = 0; low < 3000;) {
            std::uint64_t high = bins.high_edge(low);
            ASSERT_GT(high, low) << bins.spec();
            for (std::uint64_t d = low; d < std::min<std::uint64_t>(high, low + 50); ++d) {
                ASSERT_EQ(bins.low_edge(d), low) << bins.spec() << " " << d;
                ASSERT_EQ(bins.index(d), bins.index(low));
            }
            ASSERT_TRUE(low == 0 || bins.index(low) > previous_index);
            previous_index = bins.index(low);
            low = high;
        }
        for (int i = 0; i < 2000; ++i) {
            std::uint64_t d = random() >> (random() % 64);
            std::uint64_t low = bins.low_edge(d), high = bins.high_edge(low);
            ASSERT_LE(low, d);
            ASSERT_TRUE(d < high || high == ~std::uint64_t{0}) << bins.spec() << " " << d;
        }
    }
}

TEST(Binning, specs_round_trip_and_nonsense_is_refused) {
    for (const Binning& bins : kBinnings) EXPECT_EQ(Binning::parse(bins.spec()).value(), bins);
    for (const char* bad :
         {"", "log", "log2:", "log2:0", "linear", "linear:0", "exact:3", "log2:x", "log2:99999999"})
        EXPECT_FALSE(Binning::parse(bad)) << bad;
}

Histogram random_histogram(std::mt19937_64& random, const Binning& bins, int count, int most_bits) {
    DistanceCounter counter(bins);
    for (int i = 0; i < count; ++i) counter.add(random() >> (64 - random() % most_bits - 1));
    counter.add_cold(random() % 100);
    return counter.histogram();
}

TEST(Histogram, counter_agrees_with_counting_by_hand) {
    std::mt19937_64 random(2);
    for (const Binning& bins : kBinnings) {
        DistanceCounter counter(bins);
        std::map<std::uint64_t, double> by_hand;
        for (int i = 0; i < 3000; ++i) {
            std::uint64_t d = random() >> (random() % 64);
            counter.add(d, 3);
            by_hand[bins.low_edge(d)] += 3;
        }
        Histogram histogram = counter.histogram();
        ASSERT_EQ(histogram.bins.size(), by_hand.size()) << bins.spec();
        for (const Bin& bin : histogram.bins) {
            ASSERT_EQ(bin.count, by_hand[bin.low]);
            ASSERT_EQ(bin.high, bins.high_edge(bin.low));
        }
    }
}

TEST(Histogram, survives_10_to_the_12) {
    DistanceCounter counter(Binning::log2());
    counter.add(5, 1'000'000'000'000);
    counter.add(5);
    EXPECT_EQ(counter.histogram().bins.at(0).count, 1'000'000'000'001.0);
}

TEST(Histogram, fine_folds_into_coarse_without_loss) {
    std::mt19937_64 random(3);
    struct Fold {
        Binning fine, coarse;
    };
    for (Fold fold :
         {Fold{Binning::exact(), Binning::log2()}, Fold{Binning::exact(), Binning::linear(10)},
          Fold{Binning::log2(8), Binning::log2(4)}, Fold{Binning::log2(10), Binning::log2()},
          Fold{Binning::log2(6), Binning::log2(3)}, Fold{Binning::linear(5), Binning::linear(20)}}) {
        std::mt19937_64 same = random;
        Histogram fine = random_histogram(random, fold.fine, 2000, 18);
        Histogram coarse = random_histogram(same, fold.coarse, 2000, 18);
        EXPECT_EQ(fine.rebin(fold.coarse), coarse) << fold.fine.spec() << " → " << fold.coarse.spec();
    }
}

TEST(Histogram, rebinning_conserves_counts_even_when_bins_straddle) {
    std::mt19937_64 random(4);
    for (const Binning& from : kBinnings)
        for (const Binning& to : kBinnings) {
            Histogram histogram = random_histogram(random, from, 50, 30);
            EXPECT_NEAR(histogram.rebin(to).total(), histogram.total(), 1e-6)
                << from.spec() << " → " << to.spec();
        }
}

TEST(Histogram, what_moves_within_a_folded_bin_is_no_error_of_it) {
    Histogram fine;  // a peak that may be on either side of 1152, not of 1024
    fine.cold_error = 3;
    fine.bins = {{512, 1024, 10, 2, 5},
                 {1024, 1152, 40, 30, 4},
                 {1152, 1280, 50, 30, 30},
                 {2048, 4096, 5, 4, 4}};
    const Histogram coarse = fine.rebin(Binning::log2());
    ASSERT_EQ(coarse.bins.size(), 3u);
    EXPECT_DOUBLE_EQ(coarse.bins[1].error, std::hypot(4, 4));
    EXPECT_DOUBLE_EQ(coarse.bins[1].beyond_error, 4);
    EXPECT_DOUBLE_EQ(coarse.bins[0].error, 2);
    for (Bin& bin : fine.bins) bin.beyond_error = 0;
    EXPECT_DOUBLE_EQ(fine.rebin(Binning::log2()).bins[1].error, std::hypot(30, 30));
}

TEST(Histogram, merging_adds_equal_bins_and_loses_nothing) {
    std::mt19937_64 random(5);
    Histogram a = random_histogram(random, Binning::log2(), 500, 20);
    Histogram sum = a;
    sum.merge(a);
    ASSERT_EQ(sum.bins.size(), a.bins.size());
    for (std::size_t i = 0; i < a.bins.size(); ++i) EXPECT_EQ(sum.bins[i].count, 2 * a.bins[i].count);
    Histogram other = random_histogram(random, Binning::linear(33), 500, 20);
    double total = a.total() + other.total();
    a.merge(other);
    EXPECT_EQ(a.total(), total);
    for (std::size_t i = 1; i < a.bins.size(); ++i) EXPECT_LE(a.bins[i - 1].high, a.bins[i].low);
}

TEST(Histogram, percentiles) {
    DistanceCounter counter(Binning::exact());
    for (int d = 0; d < 100; ++d) counter.add(d);
    EXPECT_EQ(counter.histogram().percentile(0.5), 49);
    EXPECT_EQ(counter.histogram().percentile(0.99), 98);
    EXPECT_EQ(Histogram{}.percentile(0.5), 0);
}

TEST(Accuracy, definition) {
    Histogram truth{0, 0, 0, 0, {{0, 1, 50, 0}, {1, 2, 50, 0}}};
    Histogram estimate{0, 0, 0, 0, {{0, 1, 25, 0}, {1, 2, 75, 0}}};
    EXPECT_DOUBLE_EQ(accuracy(truth, truth), 1);
    EXPECT_DOUBLE_EQ(accuracy(truth, estimate), 0.75);
    EXPECT_DOUBLE_EQ(accuracy(truth, Histogram{}), 0);
    EXPECT_DOUBLE_EQ(accuracy(Histogram{}, Histogram{}), 1);
    Histogram cold{100, 0, 0, 0, {}};
    EXPECT_DOUBLE_EQ(accuracy(truth, cold), 0);
    Histogram coarse{0, 0, 0, 0, {{0, 2, 10, 0}}};
    EXPECT_DOUBLE_EQ(accuracy(truth, coarse), 1);  // detail that only one side has does not count
}

TEST(Accuracy, smoothing_forgives_neighbouring_bins) {
    Histogram truth{0, 0, 0, 0, {{4, 5, 100, 0}, {5, 6, 1, 0}, {9, 10, 1, 0}}};
    Histogram near{0, 0, 0, 0, {{4, 5, 1, 0}, {5, 6, 100, 0}, {9, 10, 1, 0}}};
    EXPECT_GT(smoothed_accuracy(truth, near), accuracy(truth, near) + 0.3);
    EXPECT_DOUBLE_EQ(smoothed_accuracy(truth, truth), 1);
}

TEST(Accuracy, sampling_error) {
    EXPECT_NEAR(share_error(0.5, 10000), 0.0098, 1e-6);
    EXPECT_NEAR(histogram_error(100, 10000), 0.196, 1e-6);
}

TEST(Blocks, accesses_count_once_in_every_block_they_touch) {
    std::vector<std::uint64_t> addresses = {60, 64, 0, ~std::uint64_t{0} - 1, 128};
    std::vector<std::uint32_t> sizes = {8, 64, 200, 100, 0};
    std::vector<std::uint32_t> sites = {1, 2, 3, 4, 5};
    std::vector<std::pair<std::uint64_t, std::uint32_t>> seen;
    BlockCutter cutter(64);
    auto done =
        cutter.cut({addresses, sites, sizes, {}, {}}, [&](const BlockBatch& piece) -> Result<void> {
            for (std::size_t i = 0; i < piece.count(); ++i)
                seen.emplace_back(piece.blocks[i], piece.sites[i]);
            return {};
        });
    ASSERT_TRUE(done);
    std::uint64_t top = ~std::uint64_t{0} >> 6;
    std::vector<std::pair<std::uint64_t, std::uint32_t>> expected = {
        {0, 1}, {1, 1}, {1, 2}, {0, 3}, {1, 3}, {2, 3}, {3, 3}, {top, 4}, {2, 5}};
    EXPECT_EQ(seen, expected);
}

TEST(Blocks, granularity_1_ignores_sizes_and_any_granularity_divides) {
    std::vector<std::uint64_t> addresses = {1000, 1001};
    std::vector<std::uint32_t> sizes = {16, 16};
    for (auto [granularity, count] : {std::pair{1, 2}, std::pair{10, 4}, std::pair{1 << 30, 2}}) {
        std::vector<std::uint64_t> seen;
        (void)BlockCutter(granularity)
            .cut({addresses, {}, sizes, {}, {}}, [&](const BlockBatch& piece) -> Result<void> {
                seen.insert(seen.end(), piece.blocks.begin(), piece.blocks.end());
                return {};
            });
        EXPECT_EQ(seen.size(), static_cast<std::size_t>(count)) << granularity;
        EXPECT_EQ(seen[0], 1000u / granularity);
    }
}

TEST(Blocks, one_huge_access_goes_through_in_pieces) {
    std::vector<std::uint64_t> addresses = {32};
    std::vector<std::uint32_t> sizes = {64u << 17};
    std::uint64_t next = 0;
    (void)BlockCutter(64).cut({addresses, {}, sizes, {}, {}},
                              [&](const BlockBatch& piece) -> Result<void> {
                                  for (std::uint64_t block : piece.blocks) EXPECT_EQ(block, next++);
                                  return {};
                              });
    EXPECT_EQ(next, (1u << 17) + 1);
}

Profile sample_profile() {
    Profile profile;
    profile.accesses = 123;
    profile.distinct = 45;
    profile.reuse = {45, 0, 0, 0, {{0, 1, 60, 0}, {1, 2, 18, 0}}};
    profile.time = Histogram{45, 0, 0, 0, {{1, 2, 78, 1.5}}};
    profile.sampled = Sampling{100, 12, 0.25, 74};
    profile.sites.push_back({3,
                             "a.out",
                             0x1234,
                             {"f", "a.c", 12},
                             {{"g", "b.c", 7}},
                             {"g", "b.c", 5},
                             "heap f (a.c:9)",
                             100,
                             40,
                             profile.reuse});
    profile.contexts = {{}, {0, "a.out", 16, {"main", "a.c", 3}}};
    profile.pairs.push_back({3, 3, 1, 1, 78, profile.reuse});
    profile.objects.push_back({"heap", "</script>\"\xff", 4096, 1, 5, {}});
    profile.threads.push_back({2, 123, profile.reuse});
    profile.phases.push_back({0, 100, 40, {}});
    profile.command = {"./a.out", "x y"};
    profile.processes = {{7, {"sh"}, 1, 0, 0.5, 4294967295}, {8, {"./a.out", "x y"}, 122, 12, 1.5, 7}};
    profile.notes = {"a note"};
    return profile;
}

TEST(ProfileJson, both_ways) {
    std::string text = to_json(sample_profile());
    auto read = profile_from_json(text);
    ASSERT_TRUE(read) << read.error().sentence();
    EXPECT_EQ(to_json(*read), text);
    EXPECT_EQ(read->sites.at(0).inlined.at(0).function, "g");
    EXPECT_EQ(read->sites.at(0).loop.line, 5u);
    EXPECT_EQ(read->time->bins.at(0).error, 1.5);
    EXPECT_EQ(read->processes.at(0).parent, 4294967295u);
    EXPECT_EQ(read->processes.at(1).parent, 7u);
    for (std::string_view key : {"\"pid\":7", "\"parent\":7"}) {  // never cut to 32 bits
        std::string wrong = text;
        ASSERT_NE(wrong.find(key), std::string::npos) << key;
        wrong.replace(wrong.find(key) + key.size() - 1, 1, "4294967303");
        EXPECT_FALSE(profile_from_json(wrong)) << key;
    }
}

TEST(ProfileJson, looks_as_documented) {
    Profile profile;
    profile.accesses = 123;
    profile.distinct = 45;
    profile.reuse = {45, 0, 0, 0, {{0, 1, 60, 0}, {1, 2, 18, 0}}};
    EXPECT_EQ(
        to_json(profile),
        "{\n  \"schema\": \"revisit/profile@1\",\n  \"method\": \"exact\",\n  \"model\": \"single\",\n"
        "  \"granularity\": 64,\n  \"accesses\": 123,\n  \"distinct\": 45,\n"
        "  \"reuse\": {\"cold\":45,\"invalidated\":0,\"bins\":[[0,1,60],[1,2,18]]}\n}\n");
}

TEST(ProfileJson, what_is_wrong_is_said_and_where) {
    auto wrong = [](const std::string& text) {
        return profile_from_json(text, "p.json").error().sentence();
    };
    EXPECT_EQ(wrong("{"), "p.json: byte 2: expected a revisit profile, found broken JSON");
    EXPECT_EQ(wrong("[]"), "p.json: expected a revisit profile (an object with a \"schema\" key)");
    EXPECT_EQ(wrong(R"({"schema": "revisit/profile@2"})"),
              "p.json: schema: expected \"revisit/profile@1\", found \"revisit/profile@2\"");
    auto with_bins = [&](const std::string& bins) {
        return wrong(R"({"schema": "revisit/profile@1", "reuse": {"bins": )" + bins + "}}");
    };
    EXPECT_EQ(with_bins("[[1,1,5]]"), "p.json: reuse.bins[0]: expected low below high");
    EXPECT_EQ(with_bins("[[1,2,-5]]"),
              "p.json: reuse.bins[0][2]: expected a number that is not negative");
    EXPECT_EQ(with_bins("[[1,3,5],[2,4,5]]"),
              "p.json: reuse.bins[1]: expected bins in rising order without overlap");
    EXPECT_FALSE(profile_from_json(
        R"({"schema": "revisit/profile@1", "reuse": {"bins": []}, "pairs": [{"use_context": 9}]})"));
    EXPECT_FALSE(profile_from_json(std::string(200000, '[')));
    // Keys may come in any order, unknown ones are passed over, however deep (within reason).
    EXPECT_TRUE(profile_from_json(
        R"({"new": [{"a": [1, -2.5e3, "\\u00e9", null, true, {}]}], "pairs": [{"use_context": 1}],)"
        R"( "contexts": [{}, {"parent": 0}], "reuse": {"bins": []}, "schema": "revisit/profile@1"})"));
    for (std::string bad :
         {R"("a": 01)", R"("a": 1.)", R"("a": .5)", R"("a": tru)", R"("a": "\x")", R"("a": "\ud800")",
          R"("a": [1,])", R"("a" 1)", R"(a: 1)", "\"a\": \"\xff\"", "\"a\": \"\n\"", R"("a": 1,)",
          R"("accesses": 1e999)", R"("accesses": "1")", R"("granularity": 1.5)", R"("a": 1} x)"})
        EXPECT_FALSE(
            profile_from_json(R"({"schema": "revisit/profile@1", "reuse": {"bins": []}, )" + bad + "}"))
            << bad;
}

TEST(ProfileMerge, sums_and_matches_by_place_not_by_number) {
    Profile a = sample_profile(), b = sample_profile();
    b.sites[0].id = 77;
    b.pairs[0].use = b.pairs[0].reuse = 77;
    ASSERT_TRUE(merge_profile(a, b));
    EXPECT_EQ(a.accesses, 246);
    EXPECT_EQ(a.reuse.total(), 246);
    ASSERT_EQ(a.sites.size(), 1u);
    EXPECT_EQ(a.sites[0].accesses, 200);
    ASSERT_EQ(a.pairs.size(), 1u);
    EXPECT_EQ(a.pairs[0].count, 156);
    EXPECT_EQ(a.contexts.size(), 2u);
    EXPECT_EQ(a.objects.size(), 1u);
    EXPECT_EQ(a.threads.size(), 2u);
    b.granularity = 8;
    EXPECT_FALSE(merge_profile(a, b));
}

TEST(ProfileMerge, takes_a_finer_binning_in_and_refuses_one_that_does_not_line_up) {
    DistanceCounter fine(Binning::log2(8)), coarse(Binning::log2()), linear(Binning::linear(1000));
    for (std::uint64_t distance = 1; distance < 100000; distance += 7)
        for (DistanceCounter* counter : {&fine, &coarse, &linear}) counter->add(distance);
    auto profile_of = [](const DistanceCounter& counter) {
        Profile out;
        out.reuse = counter.histogram();
        out.accesses = out.reuse.total();
        return out;
    };
    Profile sum = profile_of(fine);
    ASSERT_TRUE(merge_profile(sum, profile_of(coarse)));
    ASSERT_EQ(sum.reuse.bins.size(), coarse.histogram().bins.size());
    for (std::size_t i = 0; i < sum.reuse.bins.size(); i++)
        EXPECT_EQ(sum.reuse.bins[i].count, 2 * coarse.histogram().bins[i].count);
    Profile before = profile_of(fine);
    Result<void> refused = merge_profile(before, profile_of(linear));
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.error().message.find("do not line up"), std::string::npos);
    EXPECT_EQ(before.reuse, profile_of(fine).reuse);  // untouched
}

TEST(ProfileMerge, many_threads_are_summed_and_notes_counted_once) {
    Profile one;
    one.reuse.cold = one.accesses = 10;
    one.threads.resize(10);
    for (std::uint32_t i = 0; i < 10; i++) one.threads[i] = {i, 1, {}};
    one.notes = {"the same note"};
    ProfileMerger merger(one);
    for (int i = 1; i < 1000; i++) ASSERT_TRUE(merger.add(one));
    Profile sum = merger.take();
    EXPECT_LE(sum.threads.size(), 1024u);
    double accesses = 0;
    for (const ThreadProfile& thread : sum.threads) accesses += thread.accesses;
    EXPECT_EQ(accesses, 10000);
    EXPECT_EQ(sum.notes.size(), 2u);  // its own, and that threads were summed
}

TEST(Error, reads_as_a_sentence) {
    EXPECT_EQ((Error{"trace.din", "line 17", "expected a label 0, 1 or 2, found \"7\""}.sentence()),
              "trace.din: line 17: expected a label 0, 1 or 2, found \"7\"");
}

}  // namespace
// Sizes up to `largest`: none that cross, some that touch two blocks, some that touch many; and the end
// of the address space.
TEST(BlockCutter, pieces_are_what_each_access_touches) {
    std::mt19937_64 random(11);
    for (std::uint64_t granularity : {2, 16, 64, 4096})
        for (std::uint32_t largest : {1, 9, 64, 5000})
            for (bool at_end : {false, true}) {
                AccessColumns accesses;
                accesses.has = {true, true, true, true};
                for (std::size_t i = 0; i < 40000; ++i) {
                    std::uint64_t address = random() >> 20;
                    if (at_end && i % 1000 == 7) address = ~(random() % 100);
                    accesses.push({address, static_cast<std::uint32_t>(i),
                                   static_cast<std::uint32_t>(random() % (largest + 1)),
                                   static_cast<std::uint16_t>(i), static_cast<std::uint8_t>(i)});
                }
                const std::uint64_t part = std::max<std::uint64_t>(1, granularity / 64);
                std::size_t access = 0;
                std::uint64_t done = 0;
                BlockCutter cutter(granularity);
                cutter.keep_parts();
                auto check = [&](const BlockBatch& piece) -> Result<void> {
                    for (std::size_t i = 0; i < piece.count(); ++i) {
                        const Access of = accesses.batch().at(access);
                        const std::uint64_t reach = std::max(1u, of.size) - 1;
                        const std::uint64_t last =
                            of.address > ~reach ? ~std::uint64_t{0} : of.address + reach;
                        const std::uint64_t block = of.address / granularity + done;
                        const std::uint64_t low = std::max(of.address, block * granularity),
                                            high =
                                                std::min(last, block * granularity + granularity - 1);
                        const auto parts = static_cast<std::uint16_t>(low % granularity / part |
                                                                      high % granularity / part << 8);
                        if (piece.blocks[i] != block || piece.sites[i] != of.site ||
                            piece.threads[i] != of.thread || piece.flags[i] != of.flags ||
                            piece.parts[i] != parts)
                            return fail(fmt::format("access {}, block {}", access, done));
                        if (++done > last / granularity - of.address / granularity) {
                            done = 0;
                            ++access;
                        }
                    }
                    return {};
                };
                const auto cut = cutter.cut(accesses.batch(), check);
                ASSERT_TRUE(cut) << granularity << " " << largest << cut.error().sentence();
                EXPECT_EQ(access, accesses.count());
            }
}

TEST(OutputFile, a_killed_process_leaves_nothing_behind) {
    test::TemporaryFolder folder;
    if (int file = open((folder / ".").c_str(), O_TMPFILE | O_WRONLY, 0600); file < 0)
        GTEST_SKIP() << "a file system with files that have no name is needed";
    else
        close(file);
    const pid_t writer = fork();
    if (writer == 0) {
        Result<OutputFile> file = OutputFile::create(folder / "killed");
        if (!file || !file->write("half")) _exit(1);
        raise(SIGKILL);
    }
    int status = 0;
    ASSERT_EQ(waitpid(writer, &status, 0), writer);
    EXPECT_TRUE(WIFSIGNALED(status));
    EXPECT_EQ(folder.files(), 0u);
}

TEST(OutputFile, takes_the_place_of_what_was_there_and_long_names) {
    test::TemporaryFolder folder;
    for (const std::string& name : {std::string("kept"), std::string(250, 'n')}) {
        for (const char* text : {"first", "second"}) ASSERT_TRUE(write_file(folder / name, text));
        EXPECT_EQ(*read_file(folder / name), "second");
    }
    EXPECT_EQ(folder.files(), 2u);
    EXPECT_FALSE(write_file(folder / std::string(300, 'n'), "too long"));
    EXPECT_FALSE(write_file(folder / "none/here", "no folder"));
    EXPECT_EQ(folder.files(), 2u);
}

TEST(ElfFile, tells_programs_from_other_files_and_short_ones) {
    ElfFile own("/proc/self/exe");
    EXPECT_TRUE(own.is_elf());
    EXPECT_EQ(own.header().e_ident[EI_CLASS], ELFCLASS64);
    const auto segments = own.segments();
    EXPECT_EQ(segments.size(), own.header().e_phnum);
    EXPECT_EQ(own.sections().size(), own.header().e_shnum);
    const auto loader = std::find_if(segments.begin(), segments.end(),
                                     [](const Elf64_Phdr& one) { return one.p_type == PT_INTERP; });
    if (loader != segments.end())
        EXPECT_NE(own.text(loader->p_offset, loader->p_filesz).find("ld"), std::string::npos);
    EXPECT_EQ(own.text(std::uint64_t{1} << 40, 16), "");
    EXPECT_EQ(own.text(0, 4), ELFMAG);  // after an end of the file, too
    for (const char* other : {"/proc/self/status", "/dev/null", "/no such file"}) {
        ElfFile file(other);
        EXPECT_FALSE(file.is_elf()) << other;
        EXPECT_TRUE(file.segments().empty() && file.sections().empty()) << other;
    }
}

TEST(StatFields, go_by_their_numbers_whatever_the_program_is_called) {
    char name[16];
    prctl(PR_GET_NAME, name);
    for (const char* odd : {"a b", ") (", "S 1 1)"}) {
        prctl(PR_SET_NAME, odd);
        const record::StatFields fields(getpid());
        EXPECT_EQ(fields.text(3), "R") << odd;
        EXPECT_EQ(fields.number(4), static_cast<std::uint64_t>(getppid())) << odd;
        EXPECT_LT(fields.number(50), fields.number(51)) << odd;  // the environment
        EXPECT_EQ(fields.text(99), "") << odd;
    }
    prctl(PR_SET_NAME, name);
    EXPECT_EQ(record::StatFields(-1).text(3), "");
}

}  // namespace revisit
