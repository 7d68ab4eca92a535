// The GPU's counter against the definition. Skips, with the reason, where there is no device.
#include "gpu/gpu.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <random>

#include "gpu/exact_counter.h"
#include "random_traces.h"
#include "revisit/revisit.h"

namespace revisit {
namespace {

class Gpu : public ::testing::Test {
 protected:
    void SetUp() override {
        if (GpuReport gpu = describe_gpu(); !gpu.works) GTEST_SKIP() << gpu.detail;
    }
};

Profile profile_of(const std::string& method, Device device, EngineOptions options,
                   const BlockBatch& batch) {
    options.device = device;
    auto engine = make_engine(method, options);
    EXPECT_TRUE(engine) << (engine ? "" : engine.error().sentence());
    if (!engine) return {};
    EXPECT_TRUE((*engine)->add(batch));
    Profile profile = (*engine)->finish().value();
    profile.method = "any";
    return profile;
}

TEST_F(Gpu, agrees_with_naive_in_every_binning_with_time_and_sites) {
    std::mt19937_64 random(1);
    for (const auto& trace : testing::small_traces(21)) {
        std::vector<std::uint32_t> sites(trace.blocks.size());
        std::vector<std::uint8_t> flags(trace.blocks.size());
        for (std::size_t i = 0; i < sites.size(); ++i)
            sites[i] = random() % 7 * 1000, flags[i] = random() % 2;
        for (const char* spec : {"log2", "log2:3", "log2:32", "log2:100", "linear:7", "exact"}) {
            EngineOptions options;
            options.bins = Binning::parse(spec).value();
            options.time = true;
            options.sites = std::string(spec) == "log2" || std::string(spec) == "log2:3";
            BlockBatch batch{trace.blocks, sites, {}, flags};
            EXPECT_EQ(to_json(profile_of("exact", Device::gpu, options, batch)),
                      to_json(profile_of("naive", Device::cpu, options, batch)))
                << trace.name << " " << spec;
        }
    }
}

#ifdef REVISIT_HAVE_CUDA
gpu::Outcome counted(const std::vector<std::uint64_t>& blocks, std::size_t chunk, gpu::Memory where) {
    gpu::Settings settings;
    settings.per_octave = 0;
    settings.time = true;
    settings.chunk = chunk;
    auto counter = gpu::make_exact_counter(settings);
    if (where == gpu::Memory::device) {
        std::uint64_t* memory = gpu::upload(blocks.data(), blocks.size());
        counter->add(memory, blocks.size(), where);
        gpu::free_device(memory);
    } else {
        counter->add(blocks.data(), blocks.size(), where);
    }
    return counter->finish();
}

void expect_equal(const std::vector<std::uint64_t>& blocks, std::size_t chunk, gpu::Memory where,
                  const std::string& what) {
    EngineOptions options;
    options.bins = Binning::exact();
    options.time = true;
    Profile truth = profile_of("olken", Device::cpu, options, {blocks, {}, {}, {}});
    gpu::Outcome outcome = counted(blocks, chunk, where);
    auto pairs = [](const Histogram& histogram) {
        std::vector<std::pair<std::uint64_t, std::uint64_t>> out;
        for (const Bin& bin : histogram.bins)
            out.emplace_back(bin.low, static_cast<std::uint64_t>(bin.count));
        return out;
    };
    EXPECT_EQ(outcome.distinct, truth.distinct) << what;
    EXPECT_EQ(outcome.reuse.by_distance, pairs(truth.reuse)) << what;
    EXPECT_EQ(outcome.time.by_distance, pairs(*truth.time)) << what;
}

TEST_F(Gpu, chunk_boundaries) {
    for (const auto& trace : testing::small_traces(22))
        for (std::size_t chunk : {63, 700, 1499, 1500, 1501})
            expect_equal(trace.blocks, chunk, gpu::Memory::pageable,
                         trace.name + " in chunks of " + std::to_string(chunk));
}

// 8192 is the tile; more passes begin at 2^18 and 2^23 reuses; links are parted from 2^23 accesses on.
TEST_F(Gpu, tile_boundaries_and_every_number_of_passes) {
    std::mt19937_64 random(2);
    for (std::size_t count :
         {8191u, 8192u, 8193u, 16383u, 16385u, 100000u, 262143u, 262145u, 300000u, 1100000u}) {
        std::vector<std::uint64_t> blocks(count);
        for (auto& block : blocks) block = random() % (count / 5);
        expect_equal(blocks, 0, gpu::Memory::device, "uniform " + std::to_string(count));
        for (std::size_t i = 0; i < count; ++i) blocks[i] = i % (count / 3);
        expect_equal(blocks, 0, gpu::Memory::device, "scan " + std::to_string(count));
        for (auto& block : blocks) block = (random() % (count / 9 + 1)) * 0x9e3779b97f4a7c15u;
        expect_equal(blocks, count / 3 + 1, gpu::Memory::pageable,
                     "scrambled " + std::to_string(count));
        // Exactly so many reuses: all different, then all again, backwards.
        for (std::size_t i = 0; i < count; ++i) blocks[i] = i < count / 2 ? i : count - 1 - i;
        expect_equal(blocks, 0, gpu::Memory::device, "sawtooth " + std::to_string(count));
    }
}

// One device that is two or three: the whole of several devices but for the second board.
TEST_F(Gpu, several_devices_agree_with_one) {
    std::mt19937_64 random(6);
    std::vector<testing::NamedTrace> traces = testing::small_traces(24);
    std::vector<std::uint64_t> large(3'000'000);
    for (std::size_t i = 0; i < large.size(); ++i)
        large[i] = random() % 3 == 0 ? i % 70'000 : random() % 90'000 * 0x9e3779b97f4a7c15u;
    traces.push_back({"large", large});
    for (const auto& trace : traces) {
        std::vector<std::uint32_t> sites(trace.blocks.size());
        for (auto& site : sites) site = random() % 9;
        EngineOptions options;
        options.time = options.sites = true;
        options.bins = Binning::log2(4);
        const BlockBatch batch{trace.blocks, sites, {}, {}};
        unsetenv("REVISIT_GPU_DEVICES");
        const std::string one = to_json(profile_of("exact", Device::gpu, options, batch));
        EXPECT_EQ(one, to_json(profile_of("olken", Device::cpu, options, batch))) << trace.name;
        for (const char* devices : {"0", "0,0", "0,0,0"}) {
            setenv("REVISIT_GPU_DEVICES", devices, 1);
            EXPECT_EQ(to_json(profile_of("exact", Device::gpu, options, batch)), one)
                << trace.name << " on " << devices;
        }
        unsetenv("REVISIT_GPU_DEVICES");
    }
    setenv("REVISIT_GPU_DEVICES", "0,99", 1);
    EngineOptions options;
    options.device = Device::gpu;
    EXPECT_FALSE(make_engine("exact", options));
    unsetenv("REVISIT_GPU_DEVICES");
}

// What a stretch hands on, in several chunks and after an earlier stretch.
TEST_F(Gpu, touches_are_in_the_order_of_first_and_last_touch) {
    std::mt19937_64 random(7);
    for (std::size_t chunk : {0, 500, 8192, 20'000}) {
        gpu::Settings settings;
        settings.touches = true;
        settings.chunk = chunk;
        auto counter = gpu::make_exact_counter(settings);
        for (int stretch = 0; stretch < 3; ++stretch) {
            std::vector<std::uint64_t> blocks(stretch == 1 ? 0 : 30'000), first, first_times, last;
            for (auto& block : blocks) block = random() % 2'000 * 0x9e3779b97f4a7c15u;
            std::map<std::uint64_t, std::uint64_t> when;
            for (std::size_t i = 0; i < blocks.size(); ++i) {
                if (when.emplace(blocks[i], 0).second) {
                    first.push_back(blocks[i]);
                    first_times.push_back(i);
                }
                when[blocks[i]] = i;
            }
            std::map<std::uint64_t, std::uint64_t> by_time;
            for (auto [block, time] : when) by_time[time] = block;
            std::vector<std::uint64_t> last_times;
            for (auto [time, block] : by_time) last.push_back(block), last_times.push_back(time);
            counter->add(blocks.data(), blocks.size(), gpu::Memory::pageable);
            const gpu::Touches touches = counter->take_touches();
            EXPECT_EQ(touches.first, first) << chunk;
            EXPECT_EQ(touches.first_times, first_times) << chunk;
            EXPECT_EQ(touches.last, last) << chunk;
            EXPECT_EQ(touches.last_times, last_times) << chunk;
        }
    }
}

// Small enough for compute-sanitizer: two chunks, two tiles, one pass, time distances.
TEST_F(Gpu, small_case_for_sanitizers) {
    std::mt19937_64 random(4);
    std::vector<std::uint64_t> blocks(20000);
    for (auto& block : blocks) block = random() % 900;
    expect_equal(blocks, 15000, gpu::Memory::pageable, "sanitizers");
    EngineOptions options;
    options.sites = true;
    BlockBatch batch{blocks, {}, {}, {}};
    EXPECT_EQ(to_json(profile_of("exact", Device::gpu, options, batch)),
              to_json(profile_of("olken", Device::cpu, options, batch)));
}
TEST_F(Gpu, small_case_of_two_devices_for_sanitizers) {
    std::mt19937_64 random(4);
    std::vector<std::uint64_t> blocks(9000);
    for (auto& block : blocks) block = random() % 700;
    EngineOptions options;
    options.sites = true;
    BlockBatch batch{blocks, {}, {}, {}};
    setenv("REVISIT_GPU_DEVICES", "0,0", 1);
    EXPECT_EQ(to_json(profile_of("exact", Device::gpu, options, batch)),
              to_json(profile_of("olken", Device::cpu, options, batch)));
    unsetenv("REVISIT_GPU_DEVICES");
}

TEST_F(Gpu, large_enough_for_parted_links) {
    std::mt19937_64 random(3);
    std::vector<std::uint64_t> blocks((std::size_t{1} << 23) + 12345);
    for (auto& block : blocks) block = random() % 50000 < 40000 ? random() % 5000 : random() % 900000;
    expect_equal(blocks, 0, gpu::Memory::device, "two scales");
}
#endif

TEST_F(Gpu, hprda_agrees_with_its_threads_form) {
    std::mt19937_64 random(5);
    std::vector<testing::NamedTrace> traces = testing::small_traces(23);
    std::vector<std::uint64_t> large(300000);
    for (auto& block : large) block = random() % 2 == 0 ? random() % 300 : random() % 20000;
    traces.push_back({"large", large});
    for (const auto& trace : traces)
        for (bool adjust : {true, false}) {
            EngineOptions options;
            options.hprda.adjust = adjust;
            options.hprda.thread_trace = trace.name == "large" ? 2048 : 37;
            options.hprda.block_threads = trace.name == "large" ? 64 : 3;
            BlockBatch batch{trace.blocks, {}, {}, {}};
            EXPECT_EQ(to_json(profile_of("hprda", Device::gpu, options, batch)),
                      to_json(profile_of("hprda", Device::cpu, options, batch)))
                << trace.name;
        }
}

TEST(GpuRefusals, what_it_cannot_do_is_said) {
    EngineOptions options;
    options.device = Device::gpu;
    EXPECT_FALSE(make_engine("olken", options));
    options.pairs = true;
    EXPECT_FALSE(make_engine("exact", options));
}

}  // namespace
}  // namespace revisit
