// Exact reuse distances on several devices: a chunk of time each, first touches looked up on the host.
//
// Idea. As on threads (engines/exact_threads.cpp): a window of the trace is cut into a chunk a device,
// which counts it from an empty stack and hands back its blocks in the order of first touch and of last
// touch. The host's threads find out the distances of the first touches (engines/chunk_resolver.h), and
// with them their sites and times. The next window is collected while this one is counted.
// Cost. A first touch takes 16 bytes back from the device, as many for the last one, and some 80 ns of
// the host's CPU time: little where a chunk of 2^25 accesses has a million blocks.
//
// Nothing here sees CUDA: a device is what implements gpu::ExactCounter, and tests run this on the
// host.
#include "gpu/devices.h"

#include <future>

#include "engines/chunk_resolver.h"
#include "gpu/outcome.h"
#include "gpu/single_device.h"

namespace revisit {
namespace {

constexpr unsigned kParts = 64;

class DevicesEngine : public Engine {
 public:
    DevicesEngine(const EngineOptions& options, std::vector<std::unique_ptr<gpu::ExactCounter>> devices,
                  std::size_t chunk)
        : options_(options),
          devices_(std::move(devices)),
          window_(devices_.size() * chunk),
          resolver_(options, thread_count(options.threads), kParts) {}
    ~DevicesEngine() override {
        if (running_.valid()) running_.wait();
    }

    Result<void> add(const BlockBatch& whole) override {
        try {
            for (std::size_t at = 0; at < whole.count();) {
                const std::size_t take =
                    std::min(whole.count() - at, window_ - collecting_.blocks.size());
                const BlockBatch batch = whole.part(at, take);
                at += take;
                collecting_.blocks.insert(collecting_.blocks.end(), batch.blocks.begin(),
                                          batch.blocks.end());
                if (options_.sites) {
                    numbers_.number(batch, numbered_);
                    collecting_.sites.insert(collecting_.sites.end(), numbered_.begin(),
                                             numbered_.end());
                }
                if (collecting_.blocks.size() == window_) hand_over();
            }
            return {};
        } catch (const std::exception& failure) {
            return device_error(failure);
        }
    }

    Result<Profile> finish() override {
        try {
            hand_over();
            if (running_.valid()) running_.get();
            Profile profile;
            profile.method = "exact";
            profile.granularity = options_.granularity;
            profile.accesses = static_cast<double>(now_);
            profile.distinct = static_cast<double>(resolver_.live());
            profile.reuse = resolver_.reuse();
            Histogram time = resolver_.time();
            Attribution sites;
            for (const auto& device : devices_) {
                const gpu::Outcome outcome = device->finish();
                profile.reuse.merge(histogram_of(outcome.reuse, options_.bins, 0));
                if (options_.time) time.merge(histogram_of(outcome.time, options_.bins, 0));
                if (options_.sites) numbers_.add_counts(outcome, options_.bins, sites);
            }
            profile.reuse.cold = time.cold = profile.distinct;
            if (options_.time) profile.time = std::move(time);
            if (options_.sites) fill_sites(std::move(sites), profile);
            return profile;
        } catch (const std::exception& failure) {
            return device_error(failure);
        }
    }

 private:
    struct Columns {
        BigVector<std::uint64_t> blocks;
        BigVector<std::uint32_t> sites;
    };

    void hand_over() {
        if (running_.valid()) running_.get();
        if (collecting_.blocks.empty()) return;
        if (options_.sites)
            for (const auto& device : devices_) device->expect_sites(numbers_.expected());
        std::swap(counting_, collecting_);
        collecting_.blocks.clear();
        collecting_.sites.clear();
        running_ = std::async(std::launch::async, [this] { count_window(); });
    }

    void count_window() {
        const std::size_t count = counting_.blocks.size(), pieces = devices_.size();
        std::vector<CountedChunk> chunks;
        for (std::size_t k = 0; k < pieces; ++k) chunks.emplace_back(options_.bins);
        parallel_for(static_cast<unsigned>(pieces), pieces, [&](std::size_t k) {
            const std::size_t low = count * k / pieces, high = count * (k + 1) / pieces;
            devices_[k]->add(counting_.blocks.data() + low, high - low, gpu::Memory::pageable,
                             options_.sites ? counting_.sites.data() + low : nullptr);
            take_touches(*devices_[k], chunks[k], now_ + low);
        });
        const BlockBatch window{counting_.blocks, counting_.sites, {}, {}};
        if (auto done = resolver_.resolve({}, chunks, window, now_); !done)
            throw std::runtime_error(done.error().message);
        now_ += count;
    }

    void take_touches(gpu::ExactCounter& device, CountedChunk& chunk, std::uint64_t begin) const {
        const gpu::Touches touches = device.take_touches();
        chunk.begin = begin;
        chunk.first_at.assign(touches.first_times.begin(), touches.first_times.end());
        const PartOf& part_of = resolver_.part_of();
        chunk.touches = {BigVector<std::uint64_t>(touches.first.begin(), touches.first.end()), part_of};
        for (std::uint32_t rank = 0; rank < touches.last.size(); ++rank)
            chunk.touches.add_last(touches.last[rank], rank, part_of);
        BigVector<std::uint64_t> times;
        if (options_.time)
            for (std::uint64_t time : touches.last_times) times.push_back(begin + time);
        chunk.touches.set_last({}, std::move(times));
    }

    // Devices know the accesses of every site, and take first touches for cold; the resolver, which
    // goes by the devices' numbers, knows what they were.
    void fill_sites(Attribution sites, Profile& profile) const {
        for (auto& [id, tally] : sites.sites) tally.reuse.cold = 0;
        Profile found;
        resolver_.fill_sites(found);
        sites.fill(profile, options_.bins, true, false);
        std::unordered_map<std::uint32_t, Site*> by_id;
        for (Site& site : profile.sites) by_id[site.id] = &site;
        for (const Site& site : found.sites) by_id.at(numbers_.id(site.id))->reuse.merge(site.reuse);
    }

    EngineOptions options_;
    std::vector<std::unique_ptr<gpu::ExactCounter>> devices_;
    std::size_t window_;  // accesses
    SiteNumbers numbers_;
    std::vector<std::uint32_t> numbered_;
    Columns collecting_, counting_;
    std::future<void> running_;  // counts counting_
    ChunkResolver resolver_;
    std::uint64_t now_ = 0;
};

}  // namespace

std::unique_ptr<Engine> make_devices_engine(const EngineOptions& options,
                                            std::vector<std::unique_ptr<gpu::ExactCounter>> devices,
                                            std::size_t chunk) {
    return std::make_unique<DevicesEngine>(options, std::move(devices), chunk);
}

}  // namespace revisit
