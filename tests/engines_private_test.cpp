#include <gtest/gtest.h>

#include <random>
#include <set>

#include "engines/private_stack.h"
#include "random_traces.h"
#include "revisit/revisit.h"

namespace revisit {
namespace {

struct ThreadedTrace {
    std::string name;
    std::vector<std::uint64_t> blocks;
    std::vector<std::uint32_t> sites;
    std::vector<std::uint16_t> threads;
    std::vector<std::uint8_t> flags;

    void add(std::uint64_t block, std::uint16_t thread, bool write, std::uint32_t site = 0) {
        blocks.push_back(block);
        sites.push_back(site);
        threads.push_back(thread);
        flags.push_back(write ? kWrite : 0);
    }
};

// "1ra 2wa" : thread 1 reads a, thread 2 writes a.
ThreadedTrace written(const std::string& text) {
    ThreadedTrace trace;
    for (std::size_t i = 0; i + 2 < text.size(); i += 4)
        trace.add(static_cast<std::uint64_t>(text[i + 2]), static_cast<std::uint16_t>(text[i] - '0'),
                  text[i + 1] == 'w');
    return trace;
}

EngineOptions private_options() {
    EngineOptions options;
    options.model = StackModel::private_;
    options.granularity = 1;
    options.bins = Binning::exact();
    return options;
}

Profile run(std::string_view method, const ThreadedTrace& trace, const EngineOptions& options,
            std::size_t cut = 1'000'000'000) {
    auto engine = make_engine(method, options).value();
    std::size_t count = trace.blocks.size();
    for (std::size_t at = 0; at < count; at += cut) {
        std::size_t n = std::min(cut, count - at);
        EXPECT_TRUE(engine->add({{trace.blocks.data() + at, n},
                                 {trace.sites.data() + at, n},
                                 {trace.threads.data() + at, n},
                                 {trace.flags.data() + at, n}}));
    }
    Profile profile = engine->finish().value();
    profile.method = "same";
    return profile;
}

std::vector<ThreadedTrace> threaded_traces(std::uint64_t seed, unsigned threads) {
    std::mt19937_64 random(seed);
    std::vector<ThreadedTrace> out;
    auto make = [&](std::string name, std::size_t count, auto block, double writes) {
        ThreadedTrace trace;
        trace.name = std::move(name);
        for (std::size_t i = 0; i < count; ++i) {
            auto thread = static_cast<std::uint16_t>(random() % threads);
            bool write = static_cast<double>(random() % 1000) < writes * 1000;
            trace.add(block(i, thread), thread, write, static_cast<std::uint32_t>(random() % 7));
        }
        out.push_back(std::move(trace));
    };
    auto shared = [&](std::uint64_t blocks) {
        return [&random, blocks](std::size_t, unsigned) { return random() % blocks; };
    };
    for (double writes : {0.0, 0.02, 0.3, 1.0}) {
        make("high sharing, writes " + std::to_string(writes), 2500, shared(60), writes);
        make("few blocks, writes " + std::to_string(writes), 1500, shared(3), writes);
    }
    make("wide sharing", 4000, shared(700), 0.1);
    // Neighbouring words of one line, each written by its own thread, among private data.
    make(
        "false sharing", 3000,
        [&](std::size_t i, unsigned thread) {
            return i % 3 == 0 ? 0 : 1000 * (thread + 1) + random() % 50;
        },
        0.6);
    make(
        "nothing shared", 3000,
        [&](std::size_t, unsigned thread) { return 1000 * thread + random() % 200; }, 0.5);
    // One thread's scans leave holes by the hundred in the others.
    make(
        "scans", 4000,
        [&](std::size_t i, unsigned) { return i % 900 < 450 ? i % 150 : random() % 150; }, 0.15);
    return out;
}

TEST(PrivateModel, write_elsewhere_makes_reuse_infinite) {
    // A B C B by thread 1, a write of A by thread 2, A by thread 1.
    ThreadedTrace trace = written("1ra 1rb 1rc 1rb 2wa 1ra ");
    for (const char* method : {"naive", "exact"}) {
        Profile profile = run(method, trace, private_options());
        EXPECT_EQ(profile.reuse, (Histogram{4, 1, 0, 0, {{1, 2, 1, 0}}})) << method;
        ASSERT_EQ(profile.threads.size(), 2u);
        EXPECT_EQ(profile.threads[0].reuse, (Histogram{3, 1, 0, 0, {{1, 2, 1, 0}}}));
        EXPECT_EQ(profile.threads[1].reuse, (Histogram{1, 0, 0, 0, {}}));
        EngineOptions shared = private_options();
        shared.model = StackModel::single;
        EXPECT_EQ(run(method, trace, shared).reuse,
                  (Histogram{3, 0, 0, 0, {{0, 1, 1, 0}, {1, 2, 1, 0}, {2, 3, 1, 0}}}));
    }
}

TEST(PrivateModel, holes_count_until_they_are_filled) {
    struct Case {
        std::string trace;
        Histogram reuse;
    } cases[] = {
        // b's slot stays as a hole above a.
        {"1ra 1rb 2wb 1ra ", {3, 0, 0, 0, {{1, 2, 1, 0}}}},
        // c fills it, so a is no deeper than before.
        {"1ra 1rb 2wb 1rc 1ra ", {4, 0, 0, 0, {{1, 2, 1, 0}}}},
        // a is raised through the hole b left; its own slot is the hole then, above x only.
        {"1rx 1ra 1rb 2wb 1ra 1rx ", {4, 0, 0, 0, {{1, 2, 1, 0}, {2, 3, 1, 0}}}},
        // Taken twice with no fetch between: one hole, one invalidated reuse.
        {"1ra 1rb 2wb 3wb 1ra 1rb ", {4, 1, 0, 0, {{1, 2, 1, 0}}}},
        // Fetched and taken again.
        {"1ra 2wa 1ra 2wa 1ra ", {2, 2, 0, 0, {{0, 1, 1, 0}}}},
        // One's own write takes nothing from oneself.
        {"1wa 1wa 1ra ", {1, 0, 0, 0, {{0, 1, 2, 0}}}},
    };
    for (const Case& c : cases)
        for (const char* method : {"naive", "exact"})
            EXPECT_EQ(run(method, written(c.trace), private_options()).reuse, c.reuse)
                << method << " " << c.trace;
}

TEST(PrivateModel, exact_agrees_with_the_list_in_everything) {
    for (unsigned threads = 1; threads <= 8; ++threads)
        for (const ThreadedTrace& trace : threaded_traces(threads, threads)) {
            EngineOptions options = private_options();
            options.time = threads % 2 == 0;
            options.sites = options.pairs = threads % 3 == 0;
            std::string naive = to_json(run("naive", trace, options));
            EXPECT_EQ(to_json(run("exact", trace, options, 1 + threads * 37)), naive)
                << trace.name << ", " << threads << " threads";
        }
}

TEST(PrivateModel, binnings_agree_with_the_list) {
    for (const char* bins : {"log2", "log2:8", "log2:10", "log2:64", "linear:7"})
        for (const ThreadedTrace& trace : threaded_traces(99, 3)) {
            EngineOptions options = private_options();
            options.bins = Binning::parse(bins).value();
            EXPECT_EQ(to_json(run("exact", trace, options)), to_json(run("naive", trace, options)))
                << trace.name << " " << bins;
        }
}

TEST(PrivateModel, one_thread_is_the_single_model) {
    for (const auto& blocks : testing::small_traces(11)) {
        EngineOptions options = private_options();
        options.time = true;
        auto engine = make_engine("exact", options).value();
        ASSERT_TRUE(engine->add({blocks.blocks, {}, {}, {}}));
        Profile alone = engine->finish().value();
        options.model = StackModel::single;
        Profile single = analyze(blocks.blocks, "exact", options).value();
        EXPECT_EQ(alone.reuse, single.reuse) << blocks.name;
        EXPECT_EQ(alone.time, single.time) << blocks.name;
        EXPECT_EQ(alone.distinct, single.distinct) << blocks.name;
    }
}

TEST(PrivateModel, the_shared_histogram_comes_along_when_asked_for) {
    for (const ThreadedTrace& trace : threaded_traces(5, 4)) {
        EngineOptions options = private_options();
        options.shared = true;
        Profile both = run("exact", trace, options, 1000);
        EngineOptions single = private_options();
        single.model = StackModel::single;
        ASSERT_TRUE(both.shared);
        EXPECT_EQ(*both.shared, run("naive", trace, single).reuse) << trace.name;
        EXPECT_EQ(profile_from_json(to_json(both)).value().shared, both.shared);
    }
}

// All 65536 thread numbers, a block all of them read and one of them writes.
TEST(PrivateModel, every_thread_number_works) {
    ThreadedTrace trace;
    for (int round = 0; round < 2; ++round) {
        for (unsigned thread = 0; thread < 65536; ++thread)
            trace.add(1, static_cast<std::uint16_t>(thread), false);
        trace.add(1, 77, true);
    }
    Profile profile = run("exact", trace, private_options());
    EXPECT_EQ(profile.threads.size(), 65536u);
    EXPECT_EQ(profile.reuse, (Histogram{65536, 65535, 0, 0, {{0, 1, 3, 0}}}));
    EXPECT_EQ(profile.distinct, 1);
}

// Far beyond the first window, with holes that live through renumbering; windows of several groups.
TEST(PrivateModel, long_runs_renumber_and_keep_their_holes) {
    std::mt19937_64 random(3);
    ThreadedTrace trace;
    for (int i = 0; i < 60000; ++i)
        trace.add(i < 20000 ? static_cast<std::uint64_t>(i) % 3000 : random() % 3000,
                  static_cast<std::uint16_t>(random() % 16 == 0), random() % 8 == 0);
    EngineOptions options = private_options();
    EXPECT_EQ(to_json(run("exact", trace, options)), to_json(run("naive", trace, options)));
}

TEST(HoleSet, gives_the_topmost_back) {
    HoleSet holes;
    holes.restart(1 << 20);
    std::set<std::uint32_t> truth;
    std::mt19937_64 random(4);
    for (int i = 0; i < 20000; ++i) {
        ASSERT_EQ(holes.any(), !truth.empty());
        if (!truth.empty()) {
            ASSERT_EQ(holes.top(), *truth.rbegin());
        }
        if (random() % 5 < 3 || truth.empty()) {
            auto position = static_cast<std::uint32_t>(random() % (i % 1000 < 500 ? 1 << 20 : 4096));
            if (truth.insert(position).second) holes.add(position);
        } else {
            holes.remove_top();
            truth.erase(std::prev(truth.end()));
        }
    }
}

}  // namespace
}  // namespace revisit
