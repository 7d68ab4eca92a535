#include "engines/block_workers.h"

#include <algorithm>
#include <new>

#include "core/try.h"

namespace revisit {

template <class T>
void Column<T>::assign(std::span<const T> from) {
    std::ranges::copy(from, make_room(from.size()));
}

void BlockRoom::assign(const BlockBatch& batch) {
    count = batch.count();
    blocks.assign(batch.blocks);
    sites.assign(batch.sites);
    threads.assign(batch.threads);
    flags.assign(batch.flags);
    parts.assign(batch.parts);
    has_sites = !batch.sites.empty();
    has_threads = !batch.threads.empty();
    has_flags = !batch.flags.empty();
    has_parts = !batch.parts.empty();
}

BlockWorkers::BlockWorkers(std::vector<Work> workers, bool side_by_side, const BlocksWanted& wanted)
    : keeps_parts_(wanted.parts || (wanted.lines && wanted.lines->keeps_parts())) {
    if (wanted.lines) dealer_.emplace(*wanted.lines);
    if (!side_by_side) {
        alone_ = std::move(workers);
        return;
    }
    std::vector<Broadcast<BlockRoom>::Work> each;
    for (Work& one : workers)
        each.emplace_back([this, one = std::move(one)](const BlockRoom& room) { work(one, room); });
    rooms_.emplace(kMostRooms, std::move(each), kMostWaiting,
                   [](const BlockRoom& room) { return room.count; });
}

BlockRoom BlockWorkers::take() {
    if (rooms_) return rooms_->take();
    if (spare_.empty()) return {};
    BlockRoom room = std::move(spare_.back());
    spare_.pop_back();
    return room;
}

void BlockWorkers::work(const Work& worker, const BlockRoom& room) {
    if (failed_) return;
    Result<void> done;
    try {
        done = worker(room);
    } catch (const std::bad_alloc&) {
        done = fail("not enough memory for what is counted beside the program");
    }
    if (done) return;
    std::lock_guard lock(guard_);
    if (failed_) return;
    failure_ = done.error();
    failed_ = true;
}

Result<void> BlockWorkers::state() const {
    if (failed_) return unexpected(*failure_);
    return {};
}

Result<void> BlockWorkers::hand_over(std::span<BlockRoom> filled) {
    if (rooms_)
        rooms_->hand_over(filled);
    else
        for (BlockRoom& room : filled) {
            for (const Work& worker : alone_) work(worker, room);
            spare_.push_back(std::move(room));
        }
    return state();
}

Result<void> BlockWorkers::add(const BlockBatch& batch) {
    TRY(state());
    BlockRoom room = take();
    BlockBatch kept = batch;
    if (!keeps_parts_) kept.parts = {};
    room.assign(kept);
    if (dealer_) {
        // What is dealt may refer to the room, not to the batch.
        kept = room.batch();
        if (!keeps_parts_) kept.parts = batch.parts;
        dealer_->deal(kept, room.lines);
    }
    return hand_over({&room, 1});
}

Result<void> BlockWorkers::finish() {
    if (rooms_) rooms_->finish();
    return state();
}

}  // namespace revisit
