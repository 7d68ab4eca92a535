#include "engines/shared_stack.h"

#include <new>

#include "core/try.h"

namespace revisit {
namespace {

constexpr std::size_t kJob = std::size_t{1} << 15;  // accesses
constexpr std::size_t kMostWaiting = 4;

}  // namespace

SharedStack::SharedStack(const EngineOptions& options)
    : apart_(options.threads != 1), relay_(kMostWaiting, [this](Job& job) { count(job); }) {
    if (options.sharing) sharing_.emplace();
    if (!options.shared) return;
    EngineOptions plain = options;
    plain.model = StackModel::single;
    plain.time = plain.sites = plain.pairs = false;
    engine_ = std::make_unique<ExactEngine>(plain);
    filters_.emplace(options.filters, options.granularity, options.seed);
}

Result<void> SharedStack::add(std::span<const std::uint64_t> blocks) {
    if (engine_ && !apart_) TRY(engine_->add({blocks, {}, {}, {}}));
    if (engine_ && apart_) filling_.blocks.insert(filling_.blocks.end(), blocks.begin(), blocks.end());
    if (filling_.blocks.size() + filling_.invalidated.size() + filling_.events.size() >= kJob)
        hand_over();
    return {};
}

void SharedStack::hand_over() {
    if (!apart_) return count(filling_);
    relay_.hand_over(std::move(filling_));
    filling_ = relay_.take();
}

void SharedStack::count(Job& job) {
    try {
        if (engine_ && !trouble_ && !job.blocks.empty())
            if (auto added = engine_->add({job.blocks, {}, {}, {}}); !added) trouble_ = added.error();
        for (const Invalidated& one : job.invalidated)
            sharing_->add(one.block, one.writer, one.victim, one.victim_writes);
        for (const PrivateFilters::Event& one : job.events) filters_->add(one);
    } catch (const std::bad_alloc&) {
        trouble_ = Error{{}, {}, "not enough memory for the stack that all threads share"};
    }
    job.blocks.clear();
    job.invalidated.clear();
    job.events.clear();
}

Result<void> SharedStack::fill(Profile& profile) {
    hand_over();
    relay_.finish();
    if (trouble_) return unexpected(*trouble_);
    if (sharing_) sharing_->fill(profile);
    if (filters_) filters_->fill(profile);
    if (engine_) profile.shared = TRY(engine_->finish()).reuse;
    return {};
}

}  // namespace revisit
