// Reuse distances of randomly chosen accesses, in private or shared stacks.
//
// Problem. Full analysis pays for every access. Idea. Choose accesses with geometric gaps, so that each
// is as likely as any other, and follow each chosen one until its block is used again: the set of
// blocks met in between is its distance. Between samples nothing is looked at.
//
// Sets without sets. Every active sample has its own distance set, but the sets of a thread are nested:
// sample i's holds the blocks last used after its start. So one table block → time of last use stands
// for all of them, and a sample is three numbers: start, depth, holes. A use of a block whose last use
// was L enters the sets of the samples started after L, which are the newest ones; the one started at L
// itself is the block's own, and ends (sample_sets.h, which counts for many samples at a time). Entries
// from before the oldest active sample are in no set, so nothing is cleared when sampling pauses.
//
// Private stacks. A write elsewhere takes the block out of the sets it is in and leaves them a hole
// each; the next block to enter fills one, which leaves the depth as it is. That is exact: with every
// access chosen, the result is the full analysis (tests hold it to that). A write to a sampled block
// ends its measurement; whether it was a reuse lost (invalidated) or the last touch (cold) is known
// when the thread comes back for the block, or never does.
//
// Pruning. A sample that stays open keeps analysis on. When one is chosen, the oldest open one is given
// up and counted as cold if it is already deeper than 99 % of those before it. Near ones end first, so
// that "those before it" are too near for a long while: limits taken from them alone gave up 10 to 17 %
// of the samples of examples/multicore. Hence no more than 1 % of all samples are ever given up, which
// is what "the deepest 1 %" means. Samples open at the end are last touches: cold.
//
// Target error. The length of a stream is not known in advance. Start with every access; whenever there
// are twice as many samples as the error needs, drop each with probability 1/2 and halve the rate. What
// is left is a sample of the whole stream at the final rate.
//
// Source. Schuff, Kulkarni, Pai 2010, section 3 and appendix A; nested sets and halving are ours.
// docs/sampling.md has the formulas.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <new>
#include <random>
#include <unordered_map>

#include "engines/sample_sets.h"
#include "engines/sample_tally.h"
#include "revisit/accuracy.h"

namespace revisit {
namespace {

// Block → time of last use, where entries before a given time may be forgotten.
class LastUses {
 public:
    // The time of the block's last use, 0 when there is none to know of.
    std::uint64_t find(std::uint64_t block) const { return time_of(entries_[slot(block)]); }

    std::uint64_t exchange(std::uint64_t block, std::uint64_t now, std::uint64_t oldest) {
        Entry* entry = &entries_[slot(block)];
        if (entry->stamp == 0) {
            if ((used_ + 1) * 2 > entries_.size()) {
                rebuild(oldest);
                entry = &entries_[slot(block)];
            }
            used_++;
        }
        const std::uint64_t before = time_of(*entry);
        *entry = {block, now + 1};
        return before;
    }
    void forget(std::uint64_t block) {
        if (Entry& entry = entries_[slot(block)]; entry.stamp != 0) entry.stamp = 1;
    }

 private:
    struct Entry {
        std::uint64_t block = 0;
        std::uint64_t stamp = 0;  // 0: empty; 1: forgotten; else time + 1
    };
    static std::uint64_t time_of(const Entry& entry) { return entry.stamp < 2 ? 0 : entry.stamp - 1; }

    std::size_t slot(std::uint64_t block) const {
        const std::uint64_t hash = (block ^ block >> 32) * 0x9e3779b97f4a7c15u;
        std::size_t i = hash >> shift_;
        while (entries_[i].stamp != 0 && entries_[i].block != block)
            i = (i + 1) & (entries_.size() - 1);
        return i;
    }
    void rebuild(std::uint64_t oldest) {
        std::erase_if(entries_, [&](const Entry& e) { return time_of(e) < oldest || e.stamp < 2; });
        std::vector<Entry> kept = std::exchange(entries_, {});
        const std::size_t size = std::max<std::size_t>(16, std::bit_ceil(4 * kept.size() + 1));
        entries_.resize(size);
        shift_ = 64 - static_cast<unsigned>(std::countr_zero(size));
        used_ = kept.size();
        for (const Entry& entry : kept) entries_[slot(entry.block)] = entry;
    }

    std::vector<Entry> entries_ = std::vector<Entry>(16);
    unsigned shift_ = 60;
    std::size_t used_ = 0;
};

// One stack with the samples that are followed in it: a thread's, or the shared one.
struct Stack {
    Stack() = default;
    Stack(const Stack&) = delete;
    Stack& operator=(const Stack&) = delete;
    ~Stack() { sets_free(&open); }

    struct Lost {
        open_sample sample;
        BlockTable::Touch writer;
    };

    sample_sets open{};
    std::unordered_multimap<std::uint64_t, Lost> lost;  // by block: taken, not used again yet
    LastUses last_uses;
    std::uint64_t now = 0;
    std::uint16_t thread = 0;
    bool is_listed = false;  // among those with open samples

    std::uint64_t oldest() const { return sets_oldest(&open, now); }
};

// Deeper than a share of the samples before: the limit for giving up.
class DepthLimit {
 public:
    DepthLimit(double share, std::uint64_t after) : share_(share), after_(after) {}
    void add(std::uint64_t depth) {
        seen_[Binning::log2(64).low_edge(depth)]++;
        count_++;
    }
    void give_up(std::uint64_t depth) {
        add(depth);
        given_up_++;
    }
    bool exceeded_by(std::uint64_t depth) {
        if (share_ >= 1 || count_ < std::max<std::uint64_t>(1, after_)) return false;
        if (static_cast<double>(given_up_ + 1) > (1 - share_) * static_cast<double>(count_))
            return false;
        if (static_cast<double>(count_) > 1.02 * static_cast<double>(counted_)) settle();
        return depth > limit_;
    }

 private:
    void settle() {
        counted_ = count_;
        double below = 0;
        for (auto [low, count] : seen_) {
            below += static_cast<double>(count);
            limit_ = Binning::log2(64).high_edge(low) - 1;
            if (below >= share_ * static_cast<double>(count_)) return;
        }
    }
    double share_;
    std::uint64_t after_;
    std::map<std::uint64_t, std::uint64_t> seen_;
    std::uint64_t count_ = 0, counted_ = 0, given_up_ = 0, limit_ = 0;
};

class SampleEngine : public Engine {
 public:
    explicit SampleEngine(const EngineOptions& options)
        : options_(options),
          is_private_(options.model == StackModel::private_),
          rate_(options.sample.target_error > 0 ? 1 : options.sample.rate),
          wanted_(options.sample.target_error > 0
                      ? static_cast<std::uint64_t>(samples_for_error(options.sample.target_error))
                      : 0),
          limit_(options.sample.prune_share, options.sample.prune_after),
          random_(options.seed),
          tally_(options) {
        to_next_ = gap();
    }

    Result<void> add(const BlockBatch& batch) override {
        try {
            for (std::size_t i = 0; i < batch.count();) {
                if (active_.empty() && lost_ == 0) {  // fast mode: on to the next sample
                    const std::uint64_t skip = std::min<std::uint64_t>(to_next_ - 1, batch.count() - i);
                    accesses_ += skip;
                    to_next_ -= skip;
                    i += skip;
                    if (i == batch.count()) break;
                }
                access(batch.blocks[i], !batch.flags.empty() && (batch.flags[i] & kWrite) != 0,
                       {batch.sites.empty() ? 0 : batch.sites[i],
                        batch.threads.empty() ? std::uint16_t{0} : batch.threads[i],
                        batch.parts.empty() ? std::uint16_t{0} : batch.parts[i]});
                ++i;
            }
            return {};
        } catch (const std::bad_alloc&) {
            return fail(ErrorCode::no_memory,
                        "not enough memory for the samples' distance sets; the rate is too high");
        }
    }

    Result<Profile> finish() override {
        for (auto& [id, stack] : stacks_) {
            for (sets_place at{}; at.part < stack.open.parts; at = sets_next(&stack.open, at))
                end_without_reuse(stack, *sets_sample(&stack.open, at));
            for (const auto& [block, lost] : stack.lost) end_without_reuse(stack, lost.sample);
        }
        count_finished();
        return tally_.profile({accesses_, analyzed_, samples_, pruned_});
    }

 private:
    std::uint64_t gap() {
        if (rate_ >= 1) return 1;
        const double u = 1 - std::generate_canonical<double, 53>(random_);  // in (0, 1]
        const double skipped = std::floor(std::log(u) / std::log1p(-rate_));
        return skipped > 1e18 ? std::uint64_t{1} << 62 : 1 + static_cast<std::uint64_t>(skipped);
    }

    Stack& stack_of(std::uint16_t thread) {
        Stack& stack = stacks_[is_private_ ? thread : 0];
        stack.thread = is_private_ ? thread : 0;
        return stack;
    }

    void access(std::uint64_t block, bool write, const BlockTable::Touch& by) {
        Stack& mine = stack_of(by.thread);
        ++accesses_, ++analyzed_, ++mine.now;
        if (mine.open.count != 0) use(mine, block, write, by.site);
        if (!mine.lost.empty()) come_back(mine, block, write, by);
        if (write && is_private_) take_from_others(mine, block, by);
        if (--to_next_ == 0) {
            choose(mine, block, by.site);
            to_next_ = gap();
        }
    }

    void use(Stack& mine, std::uint64_t block, bool write, std::uint32_t site) {
        const std::uint64_t last = mine.last_uses.exchange(block, mine.now, mine.oldest());
        sets_place ended;
        if (sets_enter(&mine.open, last, &ended) == 0) return;
        const std::uint64_t depth = sets_depth(&mine.open, ended);
        limit_.add(depth);
        end(mine, *sets_sample(&mine.open, ended), SampleOutcome::reused, depth, site, write);
        close(mine, ended);
    }

    void come_back(Stack& mine, std::uint64_t block, bool write, const BlockTable::Touch& by) {
        auto [first, last] = mine.lost.equal_range(block);
        for (auto at = first; at != last; ++at, --lost_) {
            FinishedSample& one =
                end(mine, at->second.sample, SampleOutcome::invalidated, 0, by.site, write);
            one.writer_is_known = true;
            one.writer = at->second.writer;
            one.parts = by.parts;
            one.block = block;
        }
        mine.lost.erase(first, last);
    }

    void take_from_others(const Stack& mine, std::uint64_t block, const BlockTable::Touch& by) {
        for (std::size_t k = 0; k < active_.size();) {
            Stack& other = *active_[k];
            const std::uint64_t last = &other == &mine ? 0 : other.last_uses.find(block);
            if (last == 0 || last < other.oldest()) {
                ++k;
                continue;
            }
            other.last_uses.forget(block);
            if (sets_place taken; sets_find(&other.open, last, &taken)) {
                other.lost.emplace(block, Stack::Lost{*sets_sample(&other.open, taken), by});
                ++lost_;
                close(other, taken);
            }
            sets_take(&other.open, last);
            if (other.is_listed) ++k;  // else another one took its place on the list
        }
    }

    void choose(Stack& mine, std::uint64_t block, std::uint32_t site) {
        mine.last_uses.exchange(block, mine.now, mine.oldest());
        const open_sample chosen{mine.now, block, 0, 0, site};
        if (sets_add(&mine.open, &chosen) == 0) throw std::bad_alloc();
        ++samples_;
        if (!mine.is_listed) {
            mine.is_listed = true;
            active_.push_back(&mine);
        }
        prune();
        if (wanted_ != 0 && samples_ > 2 * wanted_) halve();
    }

    void prune() {
        // The oldest of each thread; starts of different threads do not compare.
        for (std::size_t k = 0; k < active_.size(); ++k) {
            Stack& stack = *active_[k];
            const std::uint64_t depth = sets_depth(&stack.open, {});
            if (!limit_.exceeded_by(depth)) continue;
            limit_.give_up(depth);
            ++pruned_;
            end_without_reuse(stack, *sets_sample(&stack.open, {}));
            close(stack, {});
            return;
        }
    }

    void halve() {
        auto dropped = [&](const auto&) {
            const bool drop = random_() % 2 == 0;
            samples_ -= drop;
            return drop;
        };
        std::erase_if(finished_, dropped);
        for (auto& [id, stack] : stacks_) {
            auto is_kept = [](const open_sample* sample, void* drops) -> int {
                return !(*static_cast<decltype(dropped)*>(drops))(*sample);
            };
            sets_keep(&stack.open, is_kept, &dropped);
            lost_ -= std::erase_if(stack.lost, dropped);
        }
        std::erase_if(active_,
                      [](Stack* stack) { return !(stack->is_listed = stack->open.count != 0); });
        pruned_ /= 2;
        rate_ /= 2;
    }

    void close(Stack& stack, sets_place at) {
        sets_remove(&stack.open, at);
        if (stack.open.count != 0) return;
        stack.is_listed = false;
        auto listed = std::find(active_.begin(), active_.end(), &stack);
        *listed = active_.back();
        active_.pop_back();
    }

    void end_without_reuse(const Stack& stack, const open_sample& sample) {
        end(stack, sample, SampleOutcome::cold, 0, static_cast<std::uint32_t>(sample.site));
    }
    // The sample as it ended, until the next one ends.
    FinishedSample& end(const Stack& stack, const open_sample& sample, SampleOutcome outcome,
                        std::uint64_t depth, std::uint32_t site, bool write = false) {
        if (wanted_ == 0 && finished_.size() >= 4096) count_finished();
        FinishedSample one;
        one.time = stack.now - sample.start;
        one.distance = static_cast<std::uint32_t>(depth);
        one.use_site = static_cast<std::uint32_t>(sample.site);
        one.site = site;
        one.thread = stack.thread;
        one.outcome = outcome;
        one.write = write;
        return finished_.emplace_back(one);
    }

    void count_finished() {
        for (const FinishedSample& one : finished_) tally_.add(one);
        finished_.clear();
    }

    EngineOptions options_;
    bool is_private_;
    double rate_;
    std::uint64_t wanted_;  // samples, 0 = whatever the rate gives
    DepthLimit limit_;
    std::mt19937_64 random_;

    std::unordered_map<std::uint16_t, Stack> stacks_;
    std::vector<Stack*> active_;  // with open samples
    std::uint64_t lost_ = 0;      // samples taken and not used again
    std::uint64_t to_next_ = 1;   // accesses up to and with the next sample
    std::uint64_t accesses_ = 0, analyzed_ = 0, samples_ = 0, pruned_ = 0;

    std::vector<FinishedSample> finished_;
    SampleTally tally_;
};

}  // namespace

Result<std::unique_ptr<Engine>> make_sample(const EngineOptions& options) {
    if (!(options.sample.rate > 0 && options.sample.rate <= 1))
        return fail(fmt::format("expected a rate above 0 and up to 1, found {}", options.sample.rate));
    if (options.shared) return fail("the sample method takes one model at a time");
    return std::make_unique<SampleEngine>(options);
}

}  // namespace revisit
