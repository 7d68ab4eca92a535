// Several devices against the definition: devices are played by the host, so this runs everywhere.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "gpu/devices.h"
#include "gpu/outcome.h"
#include "host_device.h"
#include "random_traces.h"
#include "revisit/revisit.h"

namespace revisit {
namespace {

TEST(GpuDevices, agree_with_naive_for_every_number_of_devices_and_chunk) {
    std::mt19937_64 random(1);
    for (const auto& trace : testing::small_traces(41)) {
        std::vector<std::uint32_t> sites(trace.blocks.size());
        std::vector<std::uint8_t> flags(trace.blocks.size());
        for (std::size_t i = 0; i < sites.size(); ++i) {
            sites[i] = static_cast<std::uint32_t>(random() % 7 * 400'000);
            flags[i] = static_cast<std::uint8_t>(random() % 2);
        }
        for (const char* spec : {"log2", "log2:3", "exact"}) {
            EngineOptions options;
            options.bins = Binning::parse(spec).value();
            options.time = true;
            options.sites = options.bins.kind() == Binning::Kind::log2;
            options.threads = 2;
            const BlockBatch whole{trace.blocks, sites, {}, flags};
            auto profile_of = [&](Engine& engine) {
                for (std::size_t at = 0; at < whole.count(); at += 700)
                    EXPECT_TRUE(
                        engine.add(whole.part(at, std::min<std::size_t>(700, whole.count() - at))));
                Profile profile = engine.finish().value();
                profile.method = "any";
                return to_json(profile);
            };
            const std::string expected = profile_of(*make_engine("naive", options).value());
            for (std::size_t count : {1, 2, 5})
                for (std::size_t chunk : {64, 900}) {
                    std::vector<std::unique_ptr<gpu::ExactCounter>> devices;
                    for (std::size_t i = 0; i < count; ++i)
                        devices.push_back(
                            std::make_unique<testing::HostDevice>(options.bins, options.sites));
                    EXPECT_EQ(profile_of(*make_devices_engine(options, std::move(devices), chunk)),
                              expected)
                        << trace.name << " " << spec << ", " << count << " devices, chunks of "
                        << chunk;
                }
        }
    }
}

}  // namespace
}  // namespace revisit
