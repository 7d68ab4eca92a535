#include "revisit/blocks.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "core/try.h"

namespace revisit {
namespace {

constexpr std::size_t kPiece = std::size_t{1} << 15;
constexpr std::size_t kRun = 64;

std::uint64_t reach_of(std::uint32_t size) {
    return size - (size != 0 ? 1u : 0u);
}

// How many blocks a run of accesses reaches at most beyond those they begin in; as a bound, 0 and 1 are
// exact.
std::uint64_t blocks_beyond(const std::uint64_t* addresses, const std::uint32_t* sizes, int shift) {
    const std::uint64_t mask = (std::uint64_t{1} << shift) - 1;
    std::uint64_t beyond = 0;
    for (std::size_t i = 0; i < kRun; ++i) beyond |= (addresses[i] & mask) + reach_of(sizes[i]);
    return beyond >> shift;
}

// A run of accesses that touch one block or two each: every access takes two places, and the next one
// begins with the second where that is not needed. Gives the number of blocks; 0 at the end of the
// address space, where an access ends with the last block.
struct TwoBlocks {
    const std::uint64_t* addresses;
    const std::uint32_t* sizes;
    int shift;

    template <class Put>
    std::size_t cut(std::uint64_t* blocks, Put put) const {
        const std::uint64_t mask = (std::uint64_t{1} << shift) - 1,
                            last_block = ~std::uint64_t{0} >> shift;
        std::size_t filled = 0;
        bool at_end = false;
        for (std::size_t i = 0; i < kRun; ++i) {
            const std::uint64_t block = addresses[i] >> shift;
            const std::uint64_t first = addresses[i] & mask, last = first + reach_of(sizes[i]);
            at_end |= block == last_block;
            blocks[filled] = block;
            blocks[filled + 1] = block + 1;
            put(i, filled, first, last);
            filled += 1 + (last >> shift);
        }
        return at_end ? 0 : filled;
    }
};

// Parts of a run of accesses of which none crosses: a 64th of a block each, a byte of small ones.
// Blocks are below 4 GiB.
void parts_of_run(const std::uint64_t* addresses, const std::uint32_t* sizes, int shift,
                  std::uint16_t* out) {
    const std::uint32_t mask = (std::uint32_t{1} << shift) - 1;
    const int part = shift > 6 ? shift - 6 : 0;
    for (std::size_t i = 0; i < kRun; ++i) {
        const std::uint32_t first = static_cast<std::uint32_t>(addresses[i]) & mask;
        const std::uint32_t last = first + static_cast<std::uint32_t>(reach_of(sizes[i]));
        out[i] = static_cast<std::uint16_t>(first >> part | last >> part << 8);
    }
}

Result<void> check_column(std::string_view name, std::size_t length, std::size_t wanted) {
    if (length == 0 || length == wanted) return {};
    return fail(
        fmt::format("expected as many {} as accesses ({}) or none, found {}", name, wanted, length));
}

}  // namespace

Result<void> check(const AccessBatch& batch) {
    TRY(check_column("sites", batch.sites.size(), batch.count()));
    TRY(check_column("sizes", batch.sizes.size(), batch.count()));
    TRY(check_column("threads", batch.threads.size(), batch.count()));
    return check_column("flags", batch.flags.size(), batch.count());
}

Result<void> check(const BlockBatch& batch) {
    TRY(check_column("sites", batch.sites.size(), batch.count()));
    TRY(check_column("threads", batch.threads.size(), batch.count()));
    TRY(check_column("flags", batch.flags.size(), batch.count()));
    return check_column("parts", batch.parts.size(), batch.count());
}

void BlockColumns::clear() {
    blocks.clear();
    sites.clear();
    threads.clear();
    flags.clear();
}

void BlockColumns::append(const BlockBatch& batch) {
    auto extend = [](auto& to, auto from) { to.insert(to.end(), from.begin(), from.end()); };
    extend(blocks, batch.blocks);
    extend(sites, batch.sites);
    extend(threads, batch.threads);
    extend(flags, batch.flags);
}

BlockCutter::BlockCutter(std::uint64_t granularity)
    : granularity_(std::max<std::uint64_t>(1, granularity)) {
    if (std::has_single_bit(granularity_)) shift_ = std::countr_zero(granularity_);
    if (granularity_ != 1) blocks_.resize(kPiece);
}

void BlockCutter::keep_parts() {
    part_bytes_ = std::max<std::uint64_t>(1, (granularity_ + 63) / 64);
    parts_.resize(kPiece);
}

std::uint16_t BlockCutter::parts_of(std::uint64_t block, std::uint64_t first_byte,
                                    std::uint64_t last_byte) const {
    const std::uint64_t start = block * granularity_;
    const std::uint64_t first = first_byte > start ? first_byte - start : 0;
    const std::uint64_t last = std::min(last_byte - start, granularity_ - 1);
    return static_cast<std::uint16_t>(first / part_bytes_ | last / part_bytes_ << 8);
}

// Of the run that begins with `access`, into the columns from `filled` on.
std::size_t BlockCutter::cut_two_blocks(const AccessBatch& batch, std::size_t access,
                                        std::size_t filled) {
    const TwoBlocks run{batch.addresses.data() + access, batch.sizes.data() + access, shift_};
    const bool with_sites = !batch.sites.empty(), with_threads = !batch.threads.empty(),
               with_flags = !batch.flags.empty();
    const std::uint64_t mask = (std::uint64_t{1} << shift_) - 1;
    const int part = shift_ > 6 ? shift_ - 6 : 0;
    return run.cut(
        &blocks_[filled], [&](std::size_t i, std::size_t at, std::uint64_t first, std::uint64_t last) {
            at += filled;
            if (with_sites) sites_[at] = sites_[at + 1] = batch.sites[access + i];
            if (with_threads) threads_[at] = threads_[at + 1] = batch.threads[access + i];
            if (with_flags) flags_[at] = flags_[at + 1] = batch.flags[access + i];
            if (part_bytes_ == 0) return;
            parts_[at] = static_cast<std::uint16_t>(first >> part | std::min(last, mask) >> part << 8);
            parts_[at + 1] = static_cast<std::uint16_t>((last & mask) >> part << 8);
        });
}

BlockBatch BlockCutter::next_piece(const AccessBatch& batch, Position& at) {
    if (batch.sizes.empty()) {  // one block an access: columns pass through, only the ids are made
        std::size_t count = std::min(kPiece, batch.count() - at.access);
        const std::uint64_t* address = batch.addresses.data() + at.access;
        if (shift_ >= 0)
            for (std::size_t i = 0; i < count; ++i) blocks_[i] = address[i] >> shift_;
        else
            for (std::size_t i = 0; i < count; ++i) blocks_[i] = address[i] / granularity_;
        auto column = [&](auto span) { return span.empty() ? span : span.subspan(at.access, count); };
        BlockBatch piece{
            {blocks_.data(), count}, column(batch.sites), column(batch.threads), column(batch.flags)};
        if (part_bytes_ != 0) {
            for (std::size_t i = 0; i < count; ++i)
                parts_[i] = parts_of(blocks_[i], address[i], address[i]);
            piece.parts = {parts_.data(), count};
        }
        at.access += count;
        return piece;
    }

    std::size_t filled = 0;
    bool with_sites = !batch.sites.empty(), with_threads = !batch.threads.empty(),
         with_flags = !batch.flags.empty();
    if (with_sites) sites_.resize(kPiece);
    if (with_threads) threads_.resize(kPiece);
    if (with_flags) flags_.resize(kPiece);
    std::size_t one_by_one = 0;  // accesses up to here are taken singly
    for (; at.access < batch.count() && filled < kPiece; ++at.access, at.blocks_done = 0) {
        // Accesses that cross into another block are rare: look for them a run at a time.
        while (shift_ >= 0 && shift_ < 32 && at.blocks_done == 0 && at.access >= one_by_one &&
               batch.count() - at.access >= kRun && kPiece - filled >= kRun) {
            const std::uint64_t* address = batch.addresses.data() + at.access;
            const std::uint32_t* size = batch.sizes.data() + at.access;
            if (const std::uint64_t beyond = blocks_beyond(address, size, shift_); beyond != 0) {
                const std::size_t cut = beyond == 1 && kPiece - filled >= 2 * kRun
                                            ? cut_two_blocks(batch, at.access, filled)
                                            : 0;
                if (cut == 0) {
                    one_by_one = at.access + kRun;
                    break;
                }
                filled += cut;
                at.access += kRun;
                continue;
            }
            for (std::size_t i = 0; i < kRun; ++i) blocks_[filled + i] = address[i] >> shift_;
            if (with_sites) std::copy_n(batch.sites.data() + at.access, kRun, sites_.data() + filled);
            if (with_threads)
                std::copy_n(batch.threads.data() + at.access, kRun, threads_.data() + filled);
            if (with_flags) std::copy_n(batch.flags.data() + at.access, kRun, flags_.data() + filled);
            if (part_bytes_ != 0)
                parts_of_run(address, batch.sizes.data() + at.access, shift_, parts_.data() + filled);
            filled += kRun;
            at.access += kRun;
        }
        if (at.access == batch.count() || filled == kPiece) break;
        std::uint64_t address = batch.addresses[at.access];
        std::uint64_t reach = std::max<std::uint64_t>(1, batch.sizes[at.access]) - 1;
        std::uint64_t last_byte = address > ~reach ? ~std::uint64_t{0} : address + reach;
        std::uint64_t first = block_of(address) + at.blocks_done;
        std::uint64_t left = block_of(last_byte) - first + 1;
        std::uint64_t take = std::min<std::uint64_t>(left, kPiece - filled);
        for (std::uint64_t i = 0; i < take; ++i, ++filled) {
            blocks_[filled] = first + i;
            if (with_sites) sites_[filled] = batch.sites[at.access];
            if (with_threads) threads_[filled] = batch.threads[at.access];
            if (with_flags) flags_[filled] = batch.flags[at.access];
            if (part_bytes_ != 0) parts_[filled] = parts_of(blocks_[filled], address, last_byte);
        }
        if (take < left) {
            at.blocks_done += take;
            break;
        }
    }
    BlockBatch piece{{blocks_.data(), filled}, {}, {}, {}};
    if (with_sites) piece.sites = {sites_.data(), filled};
    if (with_threads) piece.threads = {threads_.data(), filled};
    if (with_flags) piece.flags = {flags_.data(), filled};
    if (part_bytes_ != 0) piece.parts = {parts_.data(), filled};
    return piece;
}

}  // namespace revisit
