// HP-RDA as published, on threads: the approximate method that the exact engines are held against.
//
// The method. Immediate repeats drop out with distance 0. The rest is cut into thread-level traces of
// ST accesses, NB of which make a thread block. A thread finds the distances inside its own trace
// exactly, by counting the entries of its local array that are still some block's latest access, and
// notes for each of its blocks how many others came before the first access and after the last. Merging
// adds up: a reuse from thread i to thread j has
//     latest(i) + Σ count(k), i < k < j, + first(j)
// blocks in between, and the same sum over thread blocks covers reuses across those. Blocks that
// several traces share are counted again in each, so sums come out too large; one that exceeds the M
// blocks there are is multiplied by the effective factor ef = M / Σ count (--no-adjust leaves that
// out). What is not in the paper: it analyses fragments of 2^26 accesses apart, here thread blocks
// follow each other to the end of the trace; sums of whole threads that stand for a thread block's
// first and latest are adjusted like distances.
// Error. Sums overestimate whatever spans traces with common blocks, and the factor, one for all, may
// bring them down too far: docs/benchmarks.md has its error beside the paper's 0.37 %.
// Source. Cui, Yi, Xue, Wang, Yang, Feng: A Highly Parallel Reuse Distance Analysis Algorithm on GPUs,
// IPDPS 2012.
#include "engines/hprda.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "core/parallel.h"
#include "core/try.h"

namespace revisit {
namespace {

// How a block was accessed within a trace: blocks touched before its first and after its last access.
struct AccessInfo {
    std::uint64_t block = 0;
    std::uint32_t first = 0;
    std::uint32_t latest = 0;
};

struct Summary {
    std::vector<AccessInfo> blocks;
    std::vector<std::uint32_t> distances;
};

// One thread's trace, at most 2^16 accesses.
void analyze_thread(std::span<const std::uint64_t> trace, Summary& out) {
    std::vector<std::uint8_t> is_latest(trace.size());
    std::vector<std::uint32_t> first_of(trace.size());  // by index of a latest access
    std::unordered_map<std::uint64_t, std::uint32_t> last;
    last.reserve(trace.size());
    for (std::uint32_t i = 0; i < trace.size(); ++i) {
        auto [found, is_new] = last.try_emplace(trace[i], i);
        if (is_new) {
            first_of[i] = static_cast<std::uint32_t>(last.size()) - 1;
        } else {
            const std::uint32_t before = std::exchange(found->second, i);
            std::uint32_t distance = 0;
            for (std::uint32_t k = before + 1; k < i; ++k) distance += is_latest[k];
            out.distances.push_back(distance);
            is_latest[before] = 0;
            first_of[i] = first_of[before];
        }
        is_latest[i] = 1;
    }
    auto after = static_cast<std::uint32_t>(last.size());
    for (std::uint32_t i = 0; i < trace.size(); ++i)
        if (is_latest[i] != 0) out.blocks.push_back({trace[i], first_of[i], --after});
}

// A thread block's traces, and the merging of them.
Summary analyze_thread_block(std::span<const std::uint64_t> accesses, const EngineOptions& options) {
    struct Node {
        std::uint32_t first;      // of the whole thread block
        std::uint32_t latest;     // in the thread that had it last
        std::uint32_t sum_after;  // of counts up to and with that thread
    };
    Summary out;
    std::unordered_map<std::uint64_t, Node> nodes;
    std::vector<std::uint32_t> merged;
    std::uint32_t sum = 0;
    for (std::size_t at = 0; at < accesses.size(); at += options.hprda.thread_trace) {
        Summary thread;
        analyze_thread(accesses.subspan(
                           at, std::min<std::size_t>(options.hprda.thread_trace, accesses.size() - at)),
                       thread);
        out.distances.insert(out.distances.end(), thread.distances.begin(), thread.distances.end());
        const auto count = static_cast<std::uint32_t>(thread.blocks.size());
        for (const AccessInfo& info : thread.blocks) {
            auto [found, is_new] = nodes.try_emplace(info.block);
            Node& node = found->second;
            if (is_new)
                node.first = sum + info.first;
            else
                merged.push_back(node.latest + (sum - node.sum_after) + info.first);
            node.latest = info.latest;
            node.sum_after = sum + count;
        }
        sum += count;
    }
    const std::uint64_t distinct = nodes.size();
    auto brought_down = [&](std::uint32_t value) {
        return options.hprda.adjust ? static_cast<std::uint32_t>(adjusted(value, distinct, sum))
                                    : value;
    };
    for (std::uint32_t distance : merged) out.distances.push_back(brought_down(distance));
    for (const auto& [block, node] : nodes)
        out.blocks.push_back(
            {block, brought_down(node.first), brought_down(node.latest + (sum - node.sum_after))});
    return out;
}

class HprdaEngine : public Engine {
 public:
    explicit HprdaEngine(const EngineOptions& options)
        : options_(options),
          threads_(thread_count(options.threads)),
          block_accesses_(std::size_t{options.hprda.thread_trace} * options.hprda.block_threads),
          parts_(threads_),
          tally_(options) {}

    Result<void> add(const BlockBatch& batch) override {
        accesses_ += batch.count();
        for (std::uint64_t block : batch.blocks) {
            if (has_last_ && block == last_) {
                tally_.add(0);
                continue;
            }
            has_last_ = true;
            last_ = block;
            kept_.push_back(block);
            if (kept_.size() == block_accesses_ * threads_ * 2) count_kept();
        }
        return {};
    }

    Result<Profile> finish() override {
        count_kept();
        std::uint64_t distinct = 0;
        for (const Part& part : parts_) distinct += part.nodes.size();
        return tally_.profile(accesses_, distinct, sum_);
    }

 private:
    // What is known of a block: its last thread block's `latest`, and the sum of counts up to that one.
    struct Node {
        std::uint64_t latest;
        std::uint64_t sum_after;
    };
    // Blocks are dealt to the threads by hash when thread blocks are merged.
    struct Part {
        std::unordered_map<std::uint64_t, Node> nodes;
        std::vector<std::uint64_t> distances;
    };

    void count_kept() {
        const std::size_t pieces = (kept_.size() + block_accesses_ - 1) / block_accesses_;
        std::vector<Summary> summaries(pieces);
        const std::span<const std::uint64_t> all = kept_;
        parallel_for(threads_, pieces, [&](std::size_t i) {
            const std::size_t low = i * block_accesses_;
            summaries[i] = analyze_thread_block(
                all.subspan(low, std::min(block_accesses_, all.size() - low)), options_);
        });
        parallel_for(threads_, parts_.size(), [&](std::size_t p) {
            Part& part = parts_[p];
            std::uint64_t sum = sum_;
            for (const Summary& summary : summaries) {
                const std::uint64_t count = summary.blocks.size();
                for (const AccessInfo& info : summary.blocks) {
                    if ((info.block ^ info.block >> 32) * 0x9e3779b97f4a7c15u % parts_.size() != p)
                        continue;
                    auto [found, is_new] = part.nodes.try_emplace(info.block);
                    if (!is_new)
                        part.distances.push_back(found->second.latest +
                                                 (sum - found->second.sum_after) + info.first);
                    found->second = {info.latest, sum + count};
                }
                sum += count;
            }
        });
        for (const Summary& summary : summaries) {
            sum_ += summary.blocks.size();
            for (std::uint32_t distance : summary.distances) tally_.add(distance);
        }
        for (Part& part : parts_) {
            for (std::uint64_t distance : part.distances) tally_.add_raw(distance);
            part.distances.clear();
        }
        kept_.clear();
    }

    EngineOptions options_;
    unsigned threads_;
    std::size_t block_accesses_;
    std::vector<Part> parts_;
    HprdaTally tally_;
    std::vector<std::uint64_t> kept_;
    std::uint64_t last_ = 0;
    bool has_last_ = false;
    std::uint64_t accesses_ = 0;
    std::uint64_t sum_ = 0;  // blocks of all thread blocks so far, added up
};

}  // namespace

Profile HprdaTally::profile(std::uint64_t accesses, std::uint64_t distinct, std::uint64_t sum) const {
    DistanceCounter all = counted_;
    for (const Bin& bin : raw_.histogram().bins) {
        const std::uint64_t middle = bin.low + (bin.high - bin.low) / 2;
        all.add(options_.hprda.adjust ? adjusted(middle, distinct, sum) : middle,
                static_cast<std::uint64_t>(bin.count));
    }
    all.add_cold(distinct);
    Profile profile;
    profile.method = "hprda";
    profile.granularity = options_.granularity;
    profile.accesses = static_cast<double>(accesses);
    profile.distinct = static_cast<double>(distinct);
    profile.reuse = all.histogram();
    profile.notes.push_back(fmt::format(
        "an approximation: distances across traces of {} accesses are sums that count shared blocks "
        "again{}",
        options_.hprda.thread_trace,
        options_.hprda.adjust
            ? fmt::format(", brought down by an effective factor of {:.3g}",
                          sum == 0 ? 1.0 : static_cast<double>(distinct) / static_cast<double>(sum))
            : ""));
    return profile;
}

Result<void> check_hprda(const EngineOptions& options) {
    TRY(require_single_model("hprda", options));
    if (options.time || options.sites || options.pairs)
        return fail("the hprda method has no time distances, sites or pairs; use exact");
    if (options.hprda.thread_trace < 1 || options.hprda.thread_trace > 65535 ||
        options.hprda.block_threads < 1 || options.hprda.block_threads > 1024)
        return fail("hprda takes 1 to 65535 accesses per thread and 1 to 1024 threads per block");
    return {};
}

Result<std::unique_ptr<Engine>> make_hprda(const EngineOptions& options) {
    TRY(check_hprda(options));
    return std::make_unique<HprdaEngine>(options);
}

}  // namespace revisit
