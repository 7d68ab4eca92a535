// Exact reuse distances on a GPU.
//
// Problem. The same count as on a CPU, two orders of magnitude sooner.
// Idea. The partition formulation (engines/partition_count.cpp explains it) on a chunk of some hundred
// million accesses at a time, preceded by the LRU stack as virtual accesses; the stack never leaves the
// device. The next chunk is copied in while this one is counted.
// Cost. Bytes moved an access, at n accesses a chunk: range and keys 8 + 16; sort 16 a pass of 8 bits
// (24 where blocks span more than 2^32); links 12, 16 a pass to part them, 12 to place them; reuses 4 +
// 16; each pass of up to five bits 20; the last one 8. docs/benchmarks.md has the measured stages
// against these.
#include <algorithm>
#include <cstring>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_run_length_encode.cuh>
#include <cub/device/device_scan.cuh>
#include <future>
#include <map>
#include <utility>

#include "gpu/address_feed.cuh"
#include "gpu/exact_counter.h"
#include "gpu/link_kernels.cuh"
#include "gpu/piece_queue.h"

namespace revisit::gpu {
namespace {

constexpr u64 kMost = (u64{1} << 31) - 2 * kTile;  // accesses and virtual ones in a chunk
constexpr std::size_t kUsualChunk = std::size_t{1} << 27, kLeastChunk = std::size_t{1} << 24;
constexpr std::size_t kStagingChunk = std::size_t{1} << 22;

unsigned bits_of(u64 value) {
    unsigned bits = 0;
    while (bits < 64 && value >> bits != 0) ++bits;
    return bits;
}

class Counter final : public ExactCounter {
 public:
    explicit Counter(const Settings& settings)
        : settings_(settings), bins_(DeviceBins::of(std::max(1u, settings.per_octave))) {
        turn_to_device();
        check(cudaStreamCreate(&compute_), "make a stream");
        check(cudaStreamCreate(&copy_), "make a stream");
        for (cudaEvent_t& event : copied_)
            check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "make an event");
        range_.require(2);
        reuse_bins_.require(bins_.count());
        time_bins_.require(bins_.count());
        clear(reuse_bins_.data(), bins_.count());
        clear(time_bins_.data(), bins_.count());
        allow_shared(split<1>, sizeof(SplitShared<1>));
        allow_shared(split<2>, sizeof(SplitShared<2>));
        allow_shared(split<3>, sizeof(SplitShared<3>));
        allow_shared(split<4>, sizeof(SplitShared<4>));
        allow_shared(split<5>, sizeof(SplitShared<5>));
        allow_shared(finish_tile, sizeof(FinishShared));
        check(cudaDeviceGetAttribute(&processors_, cudaDevAttrMultiProcessorCount, settings_.device),
              "tell its size");
        check(cudaStreamSynchronize(compute_), "start");
        // A chunk takes some 60 bytes per access while it is counted: on a small or busy device, less.
        std::size_t free = 0, total = 0;
        check(cudaMemGetInfo(&free, &total), "tell its memory");
        most_chunk_ = std::clamp<std::size_t>(free / 2 / 64, std::size_t{1} << 20, kUsualChunk);
    }
    Counter(const Counter&) = delete;
    Counter& operator=(const Counter&) = delete;

    ~Counter() override {
        if (running_.valid()) running_.wait();
        cudaSetDevice(settings_.device);
        cudaStreamSynchronize(copy_);
        for (cudaEvent_t event : copied_) cudaEventDestroy(event);
        cudaStreamDestroy(compute_);
        cudaStreamDestroy(copy_);
    }

    void add(const u64* blocks, std::size_t count, Memory where, const u32* sites) override {
        turn_to_device();
        if (where == Memory::device) {
            drain();
            for (std::size_t done = 0; done < count;) {
                const std::size_t take = std::min(count - done, chunk_size(kMost));
                count_chunk(blocks + done, nullptr, take);
                done += take;
            }
        } else if (where == Memory::pinned) {
            drain();
            add_pinned(blocks, count, sites);
        } else {
            while (count > 0) {
                if (staged_ == 0) open_staging(sites != nullptr);
                const std::size_t take = std::min(count, staging_limit_ - staged_);
                block_copier_.append(input_[filling_].data() + staged_, blocks, take * sizeof(u64));
                if (sites != nullptr) {
                    site_copier_.append(input_sites_[filling_].data() + staged_, sites,
                                        take * sizeof(u32));
                    sites += take;
                }
                staged_ += take;
                blocks += take;
                count -= take;
                if (staged_ >= staging_limit_) hand_over(sites != nullptr);
            }
        }
    }

    // Chunk k + 1 is fetched, by threads of its own, while chunk k is counted. The first chunks are
    // small, so that counting begins soon; the last ones too, so that little is left to count when all
    // is there.
    void add_addresses(const AddressInput& input) override {
        turn_to_device();
        drain();
        AddressFeed feed(input, settings_.device);
        const std::size_t usual_room = std::min<u64>(input.count, most_chunk_);
        u64 started = 0;
        std::size_t lengths[2] = {}, current = 0, most = kLeastChunk;
        std::future<void> fetched[2];
        auto next_length = [&] {
            const u64 left = input.count - started;
            const std::size_t usual =
                std::min<u64>({most, most_chunk_, std::max<u64>(kLeastChunk, left / 2)});
            most = usual * 2;
            const u64 length = std::min<u64>(left, chunk_size(usual));
            return left - length < kLeastChunk && settings_.chunk == 0 ? left : length;
        };
        auto start = [&](std::size_t slot) {
            lengths[slot] = next_length();
            if (lengths[slot] == 0) return;
            input_[slot].require(std::max(usual_room, lengths[slot]));
            fetched[slot] = std::async(
                std::launch::async, [&feed, to = input_[slot].data(), started, count = lengths[slot]] {
                    feed.fetch(started, count, to);
                });
            started += lengths[slot];
        };
        start(0);
        if (settings_.chunk == 0) reserve(usual_room + usual_room / 4);
        for (u64 done = 0; lengths[current] != 0; current ^= 1) {
            fetched[current].get();
            start(current ^ 1);
            u64* const blocks = input_[current].data();
            if (input.granularity > 1)
                to_blocks<<<grid(lengths[current]), 256, 0, compute_>>>(blocks, lengths[current],
                                                                        input.granularity);
            count_chunk(blocks, nullptr, lengths[current]);
            done += lengths[current];
            if (input.progress) input.progress(done);
        }
    }

    // The same of blocks that workers make: they copy what they made, and the next chunk is filled
    // while this one is counted.
    void add_pieces(const BlockInput& input) override {
        turn_to_device();
        drain();
        PieceDevice device{*this, input, std::vector<PinnedCopier>(std::max(1u, input.workers))};
        PieceQueue<PieceDevice>(input, device).run();
    }

    void expect_sites(u32 sites) override {
        turn_to_device();
        if (sites <= sites_) return;
        if (running_.valid()) running_.get();
        const std::size_t width = bins_.count() + 1, old = sites_ * width, size = sites * width;
        DeviceArray<unsigned long long> table(size);
        clear(table.data(), size);
        if (old != 0)
            check(cudaMemcpyAsync(table.data(), site_bins_.data(), old * sizeof(u64),
                                  cudaMemcpyDeviceToDevice, compute_),
                  "copy");
        check(cudaStreamSynchronize(compute_), "make room for sites");
        site_bins_.swap(table);
        sites_ = sites;
    }

    Touches take_touches() override {
        turn_to_device();
        drain();
        touches_.last = fetch(stack_.data(), stacked_);
        touches_.last_times = fetch(stack_times_.data(), stacked_);
        for (u64& time : touches_.first_times) time -= begin_;
        for (u64& time : touches_.last_times) time -= begin_;
        begin_ = now_;
        stacked_ = 0;
        return std::exchange(touches_, {});
    }

    Outcome finish() override {
        turn_to_device();
        drain();
        Outcome out;
        out.accesses = now_;
        out.distinct = stacked_;
        if (settings_.per_octave != 0) {
            out.reuse.by_bin = fetch(reuse_bins_.data(), bins_.count());
            if (settings_.time) out.time.by_bin = fetch(time_bins_.data(), bins_.count());
        } else {
            out.reuse.by_distance.assign(reuse_map_.begin(), reuse_map_.end());
            out.time.by_distance.assign(time_map_.begin(), time_map_.end());
        }
        if (sites_ != 0) {
            out.bins_a_site = bins_.count() + 1;
            out.sites = fetch(site_bins_.data(), sites_ * out.bins_a_site);
        }
        out.stages = stages_;
        return out;
    }

 private:
    struct PieceDevice {
        Counter& counter;
        const BlockInput& input;
        std::vector<PinnedCopier> copiers;

        std::size_t open(std::size_t slot) {
            const std::size_t room = counter.chunk_size(counter.most_chunk_);
            counter.input_[slot].require(room);
            if (input.sites) counter.input_sites_[slot].require(room);
            return room;
        }
        void copy(unsigned worker, std::size_t slot, std::size_t at, const BlockPiece& piece) {
            PinnedCopier& mine = copiers[worker];
            mine.prepare(counter.settings_.device);
            mine.send(counter.input_[slot].data() + at, piece.blocks, piece.count * sizeof(u64));
            if (piece.sites != nullptr)
                mine.send(counter.input_sites_[slot].data() + at, piece.sites,
                          piece.count * sizeof(u32));
            mine.finish();
        }
        void count(std::size_t slot, std::size_t blocks) {
            if (input.sites) counter.expect_sites(input.sites());
            counter.count_chunk(counter.input_[slot].data(),
                                input.sites ? counter.input_sites_[slot].data() : nullptr, blocks);
        }
    };

    // Of this thread: any may call.
    void turn_to_device() const { check(cudaSetDevice(settings_.device), "be used"); }
    bool keeps_times() const { return settings_.time || settings_.touches; }

    void clear(unsigned long long* counts, std::size_t count) {
        check(cudaMemsetAsync(counts, 0, count * sizeof(*counts), compute_), "clear memory");
    }
    // At least four times the stack, so that virtual accesses stay a fifth of the work.
    std::size_t chunk_size(std::size_t usual) const {
        if (settings_.chunk != 0) return std::min<std::size_t>(settings_.chunk, kMost - stacked_);
        if (stacked_ > kMost / 2)
            throw std::runtime_error("the GPU engine holds at most 2^30 distinct blocks");
        usual = std::min(usual, kDeviceChunk);
        return std::min<std::size_t>(std::max<std::size_t>(usual, stacked_ * 4), kMost - stacked_);
    }
    static constexpr std::size_t kDeviceChunk = std::size_t{1} << 28;

    // Chunk k + 1 is on its way while chunk k is counted.
    void add_pinned(const u64* blocks, std::size_t count, const u32* sites) {
        std::size_t started = 0, lengths[2] = {}, current = 0;
        auto start_copy = [&](std::size_t slot) {
            lengths[slot] = std::min(count - started, chunk_size(kUsualChunk));
            if (lengths[slot] == 0) return;
            input_[slot].require(lengths[slot]);
            check(cudaMemcpyAsync(input_[slot].data(), blocks + started, lengths[slot] * sizeof(u64),
                                  cudaMemcpyHostToDevice, copy_),
                  "copy in");
            if (sites != nullptr) {
                input_sites_[slot].require(lengths[slot]);
                check(cudaMemcpyAsync(input_sites_[slot].data(), sites + started,
                                      lengths[slot] * sizeof(u32), cudaMemcpyHostToDevice, copy_),
                      "copy in");
            }
            check(cudaEventRecord(copied_[slot], copy_), "record an event");
            started += lengths[slot];
        };
        start_copy(0);
        while (lengths[current] != 0) {
            start_copy(current ^ 1);
            check(cudaStreamWaitEvent(compute_, copied_[current], 0), "wait");
            count_chunk(input_[current].data(),
                        sites == nullptr ? nullptr : input_sites_[current].data(), lengths[current]);
            current ^= 1;
        }
    }

    // Accesses of a caller who does not wait go to the device a piece at a time, and are counted when
    // they are a chunk, while the next one is filled. The first chunks are small: short traces need
    // little memory.
    void open_staging(bool with_sites) {
        input_[filling_].require(staging_limit_);
        block_copier_.prepare(settings_.device);
        if (!with_sites) return;
        input_sites_[filling_].require(staging_limit_);
        site_copier_.prepare(settings_.device);
    }
    void hand_over(bool with_sites) {
        block_copier_.finish();
        if (with_sites) site_copier_.finish();
        if (running_.valid()) running_.get();
        const std::size_t slot = filling_, count = staged_;
        const std::size_t next_limit = std::max(staging_limit_, chunk_size(staging_limit_ * 2));
        running_ = std::async(std::launch::async, [this, slot, count, with_sites] {
            turn_to_device();
            count_chunk(input_[slot].data(), with_sites ? input_sites_[slot].data() : nullptr, count);
        });
        filling_ ^= 1;
        staged_ = 0;
        staging_limit_ = std::min(next_limit, most_chunk_);
    }
    void drain() {
        if (staged_ > 0) hand_over(sites_ != 0);
        if (running_.valid()) running_.get();
    }

    // Runs `work`; with stage_times, alone and against the clock.
    template <class Work>
    void stage(const char* name, Work work) {
        if (!settings_.stage_times) {
            work();
            return;
        }
        cudaEvent_t begin, end;
        check(cudaEventCreate(&begin), "make an event");
        check(cudaEventCreate(&end), "make an event");
        cudaEventRecord(begin, compute_);
        work();
        cudaEventRecord(end, compute_);
        check(cudaEventSynchronize(end), name);
        float milliseconds = 0;
        cudaEventElapsedTime(&milliseconds, begin, end);
        cudaEventDestroy(begin);
        cudaEventDestroy(end);
        auto known = std::find_if(stages_.begin(), stages_.end(),
                                  [&](const Stage& s) { return s.name == name; });
        if (known == stages_.end()) known = stages_.insert(stages_.end(), Stage{name, 0});
        known->milliseconds += milliseconds;
    }
    unsigned grid(u64 count) const {
        return static_cast<unsigned>(std::clamp<u64>((count + 255) / 256, 1, u64(processors_) * 16));
    }

    // Room for as many accesses, with the stack before them. The device stands still while memory is
    // given back, so it is better asked for early than often.
    void reserve(std::size_t count) {
        capacity_ = std::max(capacity_, std::min<std::size_t>(kMost, count));
        for (auto& keys : keys_) keys.require(capacity_);
        for (auto& indices : indices_) indices.require(capacity_);
        links_.require(capacity_);
        words_.require(capacity_ / 32 + 1);
        for (auto& sums : tile_sums_) sums.require(capacity_ / kTile + 2);
    }

    void count_chunk(const u64* blocks, const u32* sites, std::size_t length) {
        if (length == 0) return;
        const u32 count = static_cast<u32>(stacked_ + length), tiles = (count + kTile - 1) / kTile;
        // A fifth more than now, so that a growing stack seldom means new memory.
        if (count > capacity_) reserve(count + stacked_ / 4);
        next_stack_.require(capacity_);
        if (keeps_times()) next_times_.require(capacity_);
        if (settings_.touches) first_.require(length), first_times_.require(length);
        Sequence all{stack_.data(), stack_times_.data(), static_cast<u32>(stacked_), blocks, count,
                     now_};

        const TileCounts sums{tile_sums_[0].data(), tile_sums_[1].data()};
        sort_and_link(all, sums);
        stage("rank", [&] {
            check(cudaMemsetAsync(sums.reuses + tiles, 0, sizeof(u32), compute_), "clear memory");
            check(cudaMemsetAsync(sums.followed + tiles, 0, sizeof(u32), compute_), "clear memory");
            for (u32* list : {sums.reuses, sums.followed})
                temporary_.run("sum", [&](void* memory, std::size_t& bytes) {
                    return cub::DeviceScan::ExclusiveSum(memory, bytes, list, list, tiles + 1,
                                                         compute_);
                });
        });
        Elements from = elements(0), to = elements(1);
        const bool every = settings_.per_octave == 0;
        if (every) wide_[0].require(capacity_), wide_[1].require(capacity_);
        stage("emit", [&] {
            EmitTargets out{from,
                            next_stack_.data(),
                            keeps_times() ? next_times_.data() : nullptr,
                            settings_.touches ? first_.data() : nullptr,
                            settings_.touches ? first_times_.data() : nullptr,
                            settings_.time && every ? wide_[0].data() : nullptr,
                            sites == nullptr ? nullptr : links_.data(),
                            bins_,
                            settings_.time && !every ? time_bins_.data() : nullptr};
            emit_reuses<<<tiles, kThreads, 0, compute_>>>(all, links_.data(), words_.data(), sums, out);
            check(cudaGetLastError(), "write out reuses");
        });
        u32 reuses = 0;
        check(cudaMemcpyAsync(&reuses, sums.reuses + tiles, sizeof reuses, cudaMemcpyDeviceToHost,
                              compute_),
              "copy back");
        check(cudaStreamSynchronize(compute_), "link accesses");
        if (settings_.time && every) report(reuses, time_map_);
        count_reuses(from, to, reuses, sites, length);
        if (settings_.touches) {
            auto append = [&](std::vector<u64>& list, const u64* from) {
                const auto more = fetch(from, count - reuses - stacked_);
                list.insert(list.end(), more.begin(), more.end());
            };
            append(touches_.first, first_.data());
            append(touches_.first_times, first_times_.data());
        }

        stack_.swap(next_stack_);
        stack_times_.swap(next_times_);
        stacked_ = count - reuses;
        now_ += length;
    }

    Elements elements(unsigned which) {
        u32* memory = reinterpret_cast<u32*>(keys_[which].data());
        return {memory, memory + capacity_};
    }

    void sort_and_link(const Sequence& all, const TileCounts& sums) {
        unsigned long long range[2];
        stage("range", [&] {
            check(cudaMemsetAsync(range_.data(), 0xff, sizeof range, compute_), "clear memory");
            find_range<<<grid(all.count), 256, 0, compute_>>>(all, range_.data());
            check(cudaMemcpyAsync(range, range_.data(), sizeof range, cudaMemcpyDeviceToHost, compute_),
                  "copy back");
            check(cudaStreamSynchronize(compute_), "find the blocks' range");
        });
        const unsigned bits = std::max(1u, bits_of(~range[1] - range[0]));
        if (bits <= 32)
            sort_and_link_by<u32>(all, sums, range[0], static_cast<int>(bits));
        else
            sort_and_link_by<u64>(all, sums, range[0], static_cast<int>(bits));
    }

    template <class Key>
    void sort_and_link_by(const Sequence& all, const TileCounts& sums, u64 low, int bits) {
        const u32 count = all.count;
        cub::DoubleBuffer<Key> keys(reinterpret_cast<Key*>(keys_[0].data()),
                                    reinterpret_cast<Key*>(keys_[1].data()));
        cub::DoubleBuffer<u32> indices(indices_[0].data(), indices_[1].data());
        stage("keys", [&] {
            make_keys<Key>
                <<<grid(count), 256, 0, compute_>>>(all, low, keys.Current(), indices.Current());
        });
        stage("sort", [&] {
            temporary_.run("sort", [&](void* memory, std::size_t& bytes) {
                return cub::DeviceRadixSort::SortPairs(memory, bytes, keys, indices, count, 0, bits,
                                                       compute_);
            });
        });
        u32* spare = reinterpret_cast<u32*>(keys.Alternate());
        stage("link", [&] {
            make_links<Key>
                <<<grid(count), 256, 0, compute_>>>(keys.Current(), indices.Current(), count, spare);
        });
        const u32 *index = indices.Current(), *link = spare;
        const int index_bits = static_cast<int>(bits_of(count - 1));
        if (index_bits > static_cast<int>(kTail))
            stage("part", [&] {
                cub::DoubleBuffer<u32> links(spare, spare + capacity_);
                temporary_.run("part links", [&](void* memory, std::size_t& bytes) {
                    return cub::DeviceRadixSort::SortPairs(memory, bytes, indices, links, count,
                                                           static_cast<int>(kTail), index_bits,
                                                           compute_);
                });
                index = indices.Current();
                link = links.Current();
            });
        stage("place", [&] {
            const u32 tiles = (count + kTile - 1) / kTile;
            place_links<<<tiles, kThreads, 0, compute_>>>(index, link, count, links_.data(),
                                                          words_.data(), sums);
            check(cudaGetLastError(), "link accesses");
        });
    }

    void count_reuses(Elements from, Elements to, u32 reuses, const u32* sites, std::size_t length) {
        const u32 tiles = (reuses + kTile - 1) / kTile;
        const PartitionPlan plan = plan_partition(reuses, kTail, kWidest);
        for (unsigned p = 0; p < plan.count; ++p) {
            const PartitionPass pass = plan.passes[p];
            const std::size_t size = pass.count_size(reuses);
            counts_.require(size);
            stage("count", [&] {
                // Tiles that the last bucket does not have count nothing.
                check(cudaMemsetAsync(counts_.data(), 0, size * sizeof(u32), compute_), "clear memory");
                count_digits<<<tiles, 256, 0, compute_>>>(from.key, reuses, pass, counts_.data());
                temporary_.run("sum", [&](void* memory, std::size_t& bytes) {
                    return cub::DeviceScan::ExclusiveSum(memory, bytes, counts_.data(), counts_.data(),
                                                         size, compute_);
                });
            });
            stage("split", [&] { launch_split(pass, from, to, reuses, tiles); });
            std::swap(from, to);
        }
        const bool every = settings_.per_octave == 0;
        u32* by_key = every || sites != nullptr ? to.key : nullptr;
        if (tiles != 0)
            stage("finish", [&] {
                finish_tile<<<tiles, kThreads, sizeof(FinishShared), compute_>>>(
                    from, reuses, by_key, bins_, every ? nullptr : reuse_bins_.data());
                check(cudaGetLastError(), "count reuses");
            });
        if (sites != nullptr)
            stage("sites", [&] {
                count_sites<<<grid(length), 256, 0, compute_>>>(links_.data() + stacked_, by_key, sites,
                                                                static_cast<u32>(length), bins_,
                                                                site_bins_.data());
            });
        if (every && reuses != 0) {
            widen<<<grid(reuses), 256, 0, compute_>>>(by_key, reuses, wide_[0].data());
            report(reuses, reuse_map_);
        }
        check(cudaStreamSynchronize(compute_), "count reuses");
        check(cudaGetLastError(), "count reuses");
    }

    void launch_split(const PartitionPass& pass, Elements from, Elements to, u32 count, u32 tiles) {
        auto launch = [&](auto kernel, std::size_t bytes) {
            kernel<<<tiles, kThreads, bytes, compute_>>>(from, to, count, pass, counts_.data());
        };
        if (pass.bits == 1) launch(split<1>, sizeof(SplitShared<1>));
        if (pass.bits == 2) launch(split<2>, sizeof(SplitShared<2>));
        if (pass.bits == 3) launch(split<3>, sizeof(SplitShared<3>));
        if (pass.bits == 4) launch(split<4>, sizeof(SplitShared<4>));
        if (pass.bits == 5) launch(split<5>, sizeof(SplitShared<5>));
        check(cudaGetLastError(), "split by digit");
    }

    // Adds the `count` distances in wide_[0] to `map`.
    void report(u32 count, std::map<u64, u64>& map) {
        if (count == 0) return;
        report_values_.require(capacity_);
        report_runs_.require(1);
        cub::DoubleBuffer<u64> keys(wide_[0].data(), wide_[1].data());
        cub::DoubleBuffer<u32> values(indices_[0].data(), indices_[1].data());
        temporary_.run("sort distances", [&](void* memory, std::size_t& bytes) {
            return cub::DeviceRadixSort::SortPairs(memory, bytes, keys, values, count, 0,
                                                   static_cast<int>(bits_of(now_ + kMost)), compute_);
        });
        temporary_.run("count distances", [&](void* memory, std::size_t& bytes) {
            return cub::DeviceRunLengthEncode::Encode(memory, bytes, keys.Current(), keys.Alternate(),
                                                      report_values_.data(), report_runs_.data(),
                                                      static_cast<int>(count), compute_);
        });
        u32 runs = 0;
        check(
            cudaMemcpyAsync(&runs, report_runs_.data(), sizeof runs, cudaMemcpyDeviceToHost, compute_),
            "copy back");
        check(cudaStreamSynchronize(compute_), "count distances");
        std::vector<u64> distances(runs);
        std::vector<u32> counts(runs);
        check(
            cudaMemcpy(distances.data(), keys.Alternate(), runs * sizeof(u64), cudaMemcpyDeviceToHost),
            "copy back");
        check(cudaMemcpy(counts.data(), report_values_.data(), runs * sizeof(u32),
                         cudaMemcpyDeviceToHost),
              "copy back");
        for (u32 i = 0; i < runs; ++i) map[distances[i]] += counts[i];
    }

    Settings settings_;
    DeviceBins bins_;
    std::size_t most_chunk_ = kUsualChunk;
    int processors_ = 1;
    cudaStream_t compute_ = nullptr, copy_ = nullptr;
    cudaEvent_t copied_[2] = {};

    DeviceArray<unsigned long long> range_, reuse_bins_, time_bins_, site_bins_;
    DeviceArray<u64> input_[2], keys_[2], wide_[2], stack_, next_stack_, stack_times_, next_times_,
        first_, first_times_;
    DeviceArray<u32> input_sites_[2], indices_[2], links_, counts_, tile_sums_[2], report_values_,
        report_runs_;
    DeviceArray<FollowedWord> words_;
    TemporaryMemory temporary_;
    std::size_t capacity_ = 0;

    std::map<u64, u64> reuse_map_, time_map_;
    std::vector<Stage> stages_;
    std::size_t sites_ = 0;
    u64 stacked_ = 0;  // blocks on the stack
    u64 now_ = 0;
    u64 begin_ = 0;    // of the stretch that touches_ is about
    Touches touches_;  // its first ones so far

    PinnedCopier block_copier_, site_copier_;  // into input_[filling_], up to staged_
    std::size_t filling_ = 0, staged_ = 0, staging_limit_ = kStagingChunk;
    std::future<void> running_;
};

}  // namespace

std::unique_ptr<ExactCounter> make_exact_counter(const Settings& settings) {
    if (settings.per_octave > kMostPerOctave)
        throw std::runtime_error("the GPU counts at most 32 bins a power of two");
    const Devices devices = find_devices();
    if (devices.list.empty()) throw std::runtime_error(devices.why);
    if (static_cast<std::size_t>(settings.device) >= devices.list.size())
        throw std::runtime_error("there is no GPU " + std::to_string(settings.device));
    return std::make_unique<Counter>(settings);
}

}  // namespace revisit::gpu
