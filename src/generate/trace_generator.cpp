// Traces with a given reuse-distance histogram.
//
// Idea. Keep the blocks on an LRU stack; draw a distance from the histogram; access the block at that
// depth. By definition the access has that reuse distance, so the trace has the histogram. The first
// touches come first, every block once.
// Threads and writes are painted on: a block belongs to one thread or is shared by all, so the
// distances of the whole trace stay as asked for while what each thread sees depends on the sharing.
// Cost. O(log N) an access, O(N) memory; `make bench` has the rate.
// Source. Shen and Shaw's algorithm 3; drawing in rounds (distance_sampler.h) is ours.
#include <fmt/format.h>

#include <algorithm>

#include "core/random.h"
#include "generate/distance_sampler.h"
#include "generate/lru_stack.h"
#include "revisit/generate.h"

namespace revisit {

struct TraceGenerator::State {
    static constexpr std::size_t kRound = DistanceSampler::kRound;

    State(const Histogram& reuse, const GenerateOptions& wanted)
        : options(wanted),
          random(Random::scramble(wanted.seed)),
          sampler(reuse, wanted.distinct),
          stack(wanted.distinct) {
        addresses.resize(kRound);
        if (options.threads > 1) threads.resize(kRound);
        if (options.writes > 0) flags.resize(kRound);
    }

    // Of a fixed, arbitrary order of the blocks: its owner, and whether it has one.
    std::uint16_t thread_of(std::uint64_t block) {
        std::uint64_t hash = Random::scramble(block ^ Random::scramble(options.seed + 1));
        bool shared = static_cast<double>(hash >> 11) * 0x1p-53 < options.sharing;
        std::uint64_t number = shared ? random.next() : hash * 0x9e3779b97f4a7c15u;
        return static_cast<std::uint16_t>((number >> 32) * options.threads >> 32);
    }

    void paint(std::size_t count) {
        for (std::size_t i = 0; i < threads.size() && i < count; ++i)
            threads[i] = thread_of(addresses[i]);
        for (std::size_t i = 0; i < flags.size() && i < count; ++i)
            flags[i] = random.unit() < options.writes ? kWrite : 0;
        for (std::size_t i = 0; i < count; ++i) addresses[i] *= options.granularity;
    }

    GenerateOptions options;
    Random random;
    DistanceSampler sampler;
    LruStack stack;
    std::uint64_t done = 0;
    std::vector<std::uint64_t> addresses;
    std::vector<std::uint16_t> threads;
    std::vector<std::uint8_t> flags;
};

Result<TraceGenerator> TraceGenerator::create(const Histogram& reuse, const GenerateOptions& options) {
    const std::uint64_t distinct = options.distinct;
    if (distinct == 0) return fail("a trace needs at least one block");
    if (distinct > LruStack::kMostBlocks)
        return fail(fmt::format("{} blocks are more than the {} a trace can be generated over",
                                distinct, LruStack::kMostBlocks));
    if (options.length < distinct)
        return fail(fmt::format("{} accesses cannot touch {} blocks", options.length, distinct));
    if (options.granularity == 0 || ~std::uint64_t{0} / options.granularity < distinct)
        return fail(fmt::format("{} blocks of {} bytes do not fit in 64-bit addresses", distinct,
                                options.granularity));
    if (options.threads == 0 || options.threads > 65536)
        return fail(fmt::format("expected 1 to 65536 threads, found {}", options.threads));
    for (auto [share, name] : {std::pair{options.sharing, "sharing"}, {options.writes, "writes"}})
        if (!(share >= 0 && share <= 1))
            return fail(fmt::format("expected a share of {} from 0 to 1, found {:.6g}", name, share));
    double total = 0;
    for (const Bin& bin : reuse.bins) {
        if (!(bin.count >= 0)) return fail("the histogram has a negative count");
        if (bin.count > 0 && bin.low >= distinct)
            return fail(
                fmt::format("a reuse distance of {0} needs more than the {1} blocks there are; "
                            "ask for at least {2}",
                            bin.low, distinct, bin.low + 1));
        total += bin.count;
    }
    if (!(total > 0) && options.length > distinct)
        return fail("the histogram has no finite reuse distance to generate");
    // Every block once and nothing more: any histogram will do.
    const Histogram any{0, 0, 0, 0, {{0, 1, 1, 0}}};
    return TraceGenerator(std::make_unique<State>(total > 0 ? reuse : any, options));
}

TraceGenerator::TraceGenerator(std::unique_ptr<State> state) : state_(std::move(state)) {}
TraceGenerator::TraceGenerator(TraceGenerator&&) noexcept = default;
TraceGenerator::~TraceGenerator() = default;

AccessBatch TraceGenerator::next() {
    State& state = *state_;
    std::uint64_t count = std::min<std::uint64_t>(State::kRound, state.options.length - state.done);
    if (state.done < state.options.distinct) {
        count = std::min(count, state.options.distinct - state.done);
        for (std::uint64_t i = 0; i < count; ++i) state.addresses[i] = state.done + i;
    } else if (count > 0) {
        state.sampler.draw(state.random, std::span<std::uint64_t, State::kRound>(state.addresses));
        for (std::uint64_t i = 0; i < count; i += LruStack::kBatch)
            state.stack.access(std::span(state.addresses)
                                   .subspan(i, std::min<std::uint64_t>(LruStack::kBatch, count - i)));
    }
    state.done += count;
    state.paint(count);
    auto first = [&](auto& column) { return std::span(column).first(column.empty() ? 0 : count); };
    return {first(state.addresses), {}, {}, first(state.threads), first(state.flags)};
}

}  // namespace revisit
