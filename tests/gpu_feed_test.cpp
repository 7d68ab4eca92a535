// How a device is fed, and what becomes of its failures; devices are played by the host.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <random>
#include <stdexcept>

#include "gpu/single_device.h"
#include "host_device.h"
#include "random_traces.h"
#include "temporary_folder.h"

namespace revisit {
namespace {

using testing::HostDevice;

std::future<std::unique_ptr<gpu::ExactCounter>> started(std::unique_ptr<gpu::ExactCounter> counter) {
    std::promise<std::unique_ptr<gpu::ExactCounter>> promise;
    promise.set_value(std::move(counter));
    return promise.get_future();
}

std::string json_of(Result<Profile> profile) {
    if (!profile) return profile.error().sentence();
    profile->method = "any";
    return to_json(*profile);
}

// Keeps what it is given in two small buffers.
struct Listing {
    std::size_t room;
    std::vector<std::uint64_t> buffer[2], all;
    std::size_t fails_at = ~std::size_t{0}, calls = 0;  // of open and count
    std::atomic<std::size_t> copies = 0;
    std::size_t copy_fails_at = ~std::size_t{0};

    void may_fail() {
        if (calls++ == fails_at) throw std::runtime_error("the device is gone");
    }
    std::size_t open(std::size_t slot) {
        may_fail();
        buffer[slot].assign(room, 0);
        return room;
    }
    void copy(unsigned, std::size_t slot, std::size_t at, const gpu::BlockPiece& piece) {
        if (copies++ == copy_fails_at) throw std::runtime_error("the copy failed");
        std::copy_n(piece.blocks, piece.count, buffer[slot].data() + at);
    }
    void count(std::size_t slot, std::size_t length) {
        may_fail();
        all.insert(all.end(), buffer[slot].begin(),
                   buffer[slot].begin() + static_cast<std::ptrdiff_t>(length));
    }
};

// Pieces of 0 to 40 numbers, handed over in one or several parts.
gpu::BlockInput numbers_in_pieces(std::size_t pieces, unsigned workers,
                                  std::vector<std::uint64_t>& expected, std::uint64_t seed) {
    auto all = std::make_shared<std::vector<std::vector<std::uint64_t>>>(pieces);
    std::mt19937_64 random(seed);
    expected.clear();
    for (auto& piece : *all) {
        piece.resize(random() % 41);
        for (std::uint64_t& number : piece) expected.push_back(number = random());
    }
    gpu::BlockInput input;
    input.pieces = pieces;
    input.workers = workers;
    input.make = [all](std::size_t piece, unsigned, const gpu::BlockInput::HandOver& hand_over) {
        const auto& numbers = (*all)[piece];
        const std::size_t half = piece % 3 == 0 ? numbers.size() / 2 : 0;
        if (half != 0) hand_over({numbers.data(), nullptr, half}, false);
        hand_over({numbers.data() + half, nullptr, numbers.size() - half}, true);
    };
    return input;
}

TEST(PieceQueue, chunks_hold_all_pieces_in_order) {
    std::vector<std::uint64_t> expected;
    for (std::size_t pieces : {0, 1, 7, 300})
        for (unsigned workers : {1, 2, 5})
            for (std::size_t room : {1, 13, 40, 100'000}) {
                const auto input = numbers_in_pieces(pieces, workers, expected, pieces + room);
                Listing device{room, {}, {}};
                gpu::PieceQueue<Listing>(input, device).run();
                EXPECT_EQ(device.all, expected)
                    << pieces << " pieces, " << workers << " workers, room for " << room;
            }
}

TEST(PieceQueue, a_failure_anywhere_ends_it_and_is_told) {
    std::vector<std::uint64_t> expected;
    auto message_of = [](const gpu::BlockInput& input, Listing& device) -> std::string {
        try {
            gpu::PieceQueue<Listing>(input, device).run();
        } catch (const std::runtime_error& failure) {
            return failure.what();
        }
        return "";
    };
    for (unsigned workers : {1, 4})
        for (std::size_t at : {0, 1, 2, 9}) {
            auto input = numbers_in_pieces(100, workers, expected, at);
            Listing gone{13, {}, {}};
            gone.fails_at = at;
            EXPECT_EQ(message_of(input, gone), "the device is gone");
            Listing uncopied{13, {}, {}};
            uncopied.copy_fails_at = at;
            EXPECT_EQ(message_of(input, uncopied), "the copy failed");
            input.make = [make = input.make, at](std::size_t piece, unsigned worker,
                                                 const gpu::BlockInput::HandOver& hand_over) {
                if (piece == 10 * at) throw std::runtime_error("the trace is broken");
                make(piece, worker, hand_over);
            };
            Listing fine{13, {}, {}};
            EXPECT_EQ(message_of(input, fine), "the trace is broken");
        }
}

TEST(SingleDevice, agrees_with_the_definition_whatever_the_source) {
    const test::TemporaryFolder folder;
    std::mt19937_64 random(3);
    std::vector<std::uint64_t> addresses;
    std::vector<std::uint32_t> sites, sizes;
    std::vector<std::uint8_t> flags;
    for (int i = 0; i < 6000; ++i) {
        addresses.push_back(random() % 3 == 0 ? random() % 4096 : 0x10000 + random() % 40'000);
        sites.push_back(static_cast<std::uint32_t>(random() % 5 * 700'000));
        sizes.push_back(random() % 40 == 0 ? 300 : 8);
        flags.push_back(static_cast<std::uint8_t>(random() % 2));
    }
    const AccessBatch all{addresses, sites, sizes, {}, flags};
    for (const char* suffix : {"u64", "records", "rvt", "csv", "lackey", "rvt.zst", "csv.gz"}) {
        const std::string path = folder / "trace." + suffix;
        auto writer = create_trace(path).value();
        ASSERT_TRUE(writer->write(all));
        ASSERT_TRUE(writer->finish({}));
        for (std::uint64_t granularity : {1, 64})
            for (bool with_sites : {false, true})
                for (unsigned threads : {1u, 3u}) {
                    EngineOptions options;
                    options.granularity = granularity;
                    options.bins = Binning::log2(2);
                    options.sites = with_sites;
                    options.time = true;
                    AnalyzeOptions how;
                    how.method = "naive";
                    how.engine = options;
                    const std::string expected = json_of(analyze(*open_trace(path).value(), how));
                    options.threads = threads;
                    auto engine = make_single_device_engine(
                        options, started(std::make_unique<HostDevice>(options.bins, true)));
                    const auto trace = open_trace(path).value();
                    if (trace->ranges() != nullptr && engine->takes_ranges())
                        ASSERT_TRUE(engine->add_ranges(*trace->ranges(), {}));
                    else if (trace->chunks() != nullptr)
                        ASSERT_TRUE(engine->add_chunks(*trace->chunks(), {}));
                    else {
                        BlockCutter cutter(granularity);
                        for (;;) {
                            const AccessBatch batch = trace->next().value();
                            if (batch.count() == 0) break;
                            ASSERT_TRUE(cutter.cut(
                                batch, [&](const BlockBatch& piece) { return engine->add(piece); }));
                        }
                    }
                    EXPECT_EQ(json_of(engine->finish()), expected)
                        << suffix << ", blocks of " << granularity << ", sites " << with_sites;
                }
    }
}

// Works up to a call, then fails as CUDA does: out of memory, or a device that is no longer there.
class FailingDevice final : public HostDevice {
 public:
    FailingDevice(int works, bool memory)
        : HostDevice(Binning::log2(8), true), left_(works), memory_(memory) {}
    void add(const std::uint64_t* blocks, std::size_t count, gpu::Memory where,
             const std::uint32_t* sites) override {
        if (left_-- == 0) {
            if (memory_) throw gpu::OutOfMemory("the GPU could not give memory: out of memory");
            throw std::runtime_error("the GPU could not count reuses: unspecified launch failure");
        }
        HostDevice::add(blocks, count, where, sites);
    }

 private:
    int left_;
    bool memory_;
};

TEST(SingleDevice, failures_of_the_device_are_errors_that_stay) {
    const test::TemporaryFolder folder;
    const std::string path = folder / "trace.rvt";
    std::vector<std::uint64_t> addresses(5000);
    for (std::size_t i = 0; i < addresses.size(); ++i) addresses[i] = i % 700 * 64;
    auto writer = create_trace(path).value();
    ASSERT_TRUE(writer->write({addresses, {}, {}, {}, {}}));
    ASSERT_TRUE(writer->finish({}));
    const auto trace = open_trace(path).value();
    for (bool memory : {true, false})
        for (int works : {0, 1, 2}) {
            EngineOptions options;
            options.threads = 3;
            const ErrorCode code = memory ? ErrorCode::device_memory : ErrorCode::device;
            auto chunked = make_single_device_engine(
                options, started(std::make_unique<FailingDevice>(works, memory)));
            const auto added = chunked->add_chunks(*trace->chunks(), {});
            ASSERT_FALSE(added);
            EXPECT_EQ(added.error().code, code);
            const auto finished = chunked->finish();
            ASSERT_FALSE(finished);
            EXPECT_EQ(finished.error().message, added.error().message);

            auto fed = make_single_device_engine(
                options, started(std::make_unique<FailingDevice>(works, memory)));
            Result<void> last;
            for (int i = 0; i <= works; ++i) {
                ASSERT_TRUE(last);
                last = fed->add({addresses, {}, {}, {}});
            }
            ASSERT_FALSE(last);
            EXPECT_EQ(last.error().code, code);
        }
}

TEST(SingleDevice, a_device_that_does_not_start_is_an_error) {
    std::promise<std::unique_ptr<gpu::ExactCounter>> promise;
    promise.set_exception(std::make_exception_ptr(std::runtime_error("the GPU is lost")));
    const auto engine = make_single_device_engine({}, promise.get_future());
    const std::uint64_t block = 1;
    const auto added = engine->add({{&block, 1}, {}, {}, {}});
    ASSERT_FALSE(added);
    EXPECT_EQ(added.error().code, ErrorCode::device);
    EXPECT_EQ(added.error().message, "the GPU is lost");
}

TEST(SingleDevice, a_trace_that_breaks_off_is_told_as_such) {
    const test::TemporaryFolder folder;
    const std::string path = folder / "trace.rvt";
    std::vector<std::uint64_t> addresses(400'000, 64);
    auto writer = create_trace(path).value();
    ASSERT_TRUE(writer->write({addresses, {}, {}, {}, {}}));
    ASSERT_TRUE(writer->finish({}));
    const auto trace = open_trace(path).value();
    std::filesystem::resize_file(path, std::filesystem::file_size(path) / 2);
    EngineOptions options;
    options.threads = 2;
    const auto engine =
        make_single_device_engine(options, started(std::make_unique<HostDevice>(options.bins, true)));
    const auto added = engine->add_chunks(*trace->chunks(), {});
    ASSERT_FALSE(added);
    EXPECT_NE(added.error().sentence().find(path), std::string::npos) << added.error().sentence();
}

}  // namespace
}  // namespace revisit
