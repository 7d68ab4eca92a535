// A device of the GPU engines, played by the host.
#pragma once

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "gpu/exact_counter.h"
#include "gpu/piece_queue.h"
#include "revisit/revisit.h"

namespace revisit::testing {

// What a device promises, done by the definition: a list of blocks, the last one touched at its end.
class HostDevice : public gpu::ExactCounter {
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
        accesses_ += count;
    }
    void add_addresses(const gpu::AddressInput& input) override {
        std::vector<std::uint64_t> blocks(input.count);
        input.read(0, blocks.size(), blocks.data());
        for (std::uint64_t& block : blocks) block /= input.granularity;
        add(blocks.data(), blocks.size(), gpu::Memory::pageable, nullptr);
        if (input.progress) input.progress(input.count);
    }
    void add_pieces(const gpu::BlockInput& input) override {
        PieceBuffers buffers{*this, input, {}, {}};
        gpu::PieceQueue<PieceBuffers>(input, buffers).run();
    }
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
        out.accesses = accesses_;
        out.distinct = stack_.size();
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

    struct PieceBuffers {
        static constexpr std::size_t kRoom = 1000;  // many chunks, and some pieces longer than one
        HostDevice& device;
        const gpu::BlockInput& input;
        std::vector<std::uint64_t> blocks[2];
        std::vector<std::uint32_t> sites[2];

        std::size_t open(std::size_t slot) {
            blocks[slot].assign(kRoom, ~std::uint64_t{0});
            sites[slot].assign(kRoom, ~0u);
            return kRoom;
        }
        void copy(unsigned, std::size_t slot, std::size_t at, const gpu::BlockPiece& piece) {
            std::copy_n(piece.blocks, piece.count, blocks[slot].data() + at);
            if (piece.sites != nullptr) std::copy_n(piece.sites, piece.count, sites[slot].data() + at);
        }
        void count(std::size_t slot, std::size_t length) {
            if (input.sites) device.expect_sites(input.sites());
            device.add(blocks[slot].data(), length, gpu::Memory::pageable,
                       input.sites ? sites[slot].data() : nullptr);
        }
    };

    Binning bins_;
    bool by_bin_;
    std::uint64_t accesses_ = 0;
    std::vector<Entry> stack_;
    gpu::Touches touches_;
    std::uint64_t now_ = 0;  // since touches were taken
    std::map<std::uint64_t, std::uint64_t> reuse_, time_;
    std::vector<std::uint64_t> sites_;
};

}  // namespace revisit::testing
