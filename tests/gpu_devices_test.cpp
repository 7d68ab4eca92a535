// Several devices against the definition: devices are played by the host, so this runs everywhere.
#include <algorithm>
#include <map>
#include <random>

#include "gpu/devices.h"
#include "gpu/outcome.h"
#include "random_traces.h"
#include "revisit/revisit.h"

namespace revisit {
namespace {

// What a device promises, done by the definition: a list of blocks, the last one touched at its end.
class HostDevice final : public gpu::ExactCounter {
 public:
    explicit HostDevice(const Binning& bins, bool by_bin) : bins_(bins), by_bin_(by_bin) {}

    void add(const std::uint64_t* blocks, std::size_t count, gpu::Memory,
             const std::uint32_t* sites) override {
        for (std::size_t i = 0; i < count; ++i, ++now_) {
            const auto found = std::ranges::find(stack_, blocks[i], &Entry::block);
            std::uint64_t bin = width() - 1;  // cold
            if (found == stack_.end()) {
                touches_.first.push_back(blocks[i]);
                touches_.first_times.push_back(now_);
            } else {
                const auto distance = static_cast<std::uint64_t>(stack_.end() - found) - 1;
                bin = bins_.index(distance);
                ++reuse_[distance];
                ++time_[now_ - found->time];
                stack_.erase(found);
            }
            stack_.push_back({blocks[i], now_});
            if (sites != nullptr) ++sites_.at(sites[i] * width() + bin);
        }
    }
    void add_addresses(const gpu::AddressInput&) override {}
    void expect_sites(std::uint32_t sites) override { sites_.resize(sites * width()); }
    gpu::Touches take_touches() override {
        for (const Entry& entry : stack_) {
            touches_.last.push_back(entry.block);
            touches_.last_times.push_back(entry.time);
        }
        stack_.clear();
        now_ = 0;
        return std::exchange(touches_, {});
    }
    gpu::Outcome finish() override {
        gpu::Outcome out;
        out.reuse = counts(reuse_);
        out.time = counts(time_);
        out.sites = sites_;
        out.bins_a_site = width();
        return out;
    }

 private:
    struct Entry {
        std::uint64_t block, time;
    };
    std::size_t width() const { return by_bin_ ? bins_.index(~std::uint64_t{0}) + 2 : 0; }
    gpu::Counts counts(const std::map<std::uint64_t, std::uint64_t>& by_distance) const {
        gpu::Counts out;
        if (!by_bin_) {
            out.by_distance.assign(by_distance.begin(), by_distance.end());
            return out;
        }
        out.by_bin.resize(width());
        for (auto [distance, count] : by_distance) out.by_bin[bins_.index(distance)] += count;
        return out;
    }

    Binning bins_;
    bool by_bin_;
    std::vector<Entry> stack_;
    gpu::Touches touches_;
    std::uint64_t now_ = 0;  // since touches were taken
    std::map<std::uint64_t, std::uint64_t> reuse_, time_;
    std::vector<std::uint64_t> sites_;
};

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
                        devices.push_back(std::make_unique<HostDevice>(options.bins, options.sites));
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
