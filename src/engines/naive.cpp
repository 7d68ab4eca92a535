// The LRU stack as a list, walked from the top: the definition, written down.
//
// O(distance) an access. It exists so that every other engine can disagree with it.
#include <list>
#include <map>
#include <set>

#include "engines/tally.h"

namespace revisit {
namespace {

struct Entry {
    std::uint64_t block;
    std::uint64_t time;
    std::uint32_t site;
};

class NaiveEngine : public Engine {
 public:
    explicit NaiveEngine(const EngineOptions& options) : tally_(options) {}

    Result<void> add(const BlockBatch& batch) override {
        for (std::size_t i = 0; i < batch.count(); ++i, ++now_) {
            std::uint32_t site = batch.sites.empty() ? 0 : batch.sites[i];
            bool write = !batch.flags.empty() && (batch.flags[i] & kWrite) != 0;
            std::uint64_t depth = 0;
            auto found = stack_.begin();
            for (; found != stack_.end() && found->block != batch.blocks[i]; ++found) ++depth;
            if (found == stack_.end()) {
                tally_.add_cold(site, write);
            } else {
                tally_.add_reuse(depth, now_ - found->time, found->site, site, write);
                stack_.erase(found);
            }
            stack_.push_front({batch.blocks[i], now_, site});
        }
        return {};
    }
    Result<Profile> finish() override { return tally_.profile("naive", stack_.size()); }
    Result<Histogram> reuse_so_far() override { return tally_.reuse(); }

 private:
    Tally tally_;
    std::list<Entry> stack_;
    std::uint64_t now_ = 0;
};

// One stack a thread, whose slots hold a block or are holes. A reuse's distance is its slot's depth,
// holes counted; the slot becomes a hole, the block goes on top, the topmost hole is removed. (With no
// hole above, that is the slot it came from: the usual stack.) A block that is not there goes on top,
// and the topmost hole, if any, is removed. A write makes the block a hole in every other stack. A hole
// has no name: a block that was taken comes back as any other would.
class NaivePrivateEngine : public Engine {
 public:
    explicit NaivePrivateEngine(const EngineOptions& options) : tally_(options) {}

    Result<void> add(const BlockBatch& batch) override {
        for (std::size_t i = 0; i < batch.count(); ++i)
            access(batch.blocks[i], batch.threads.empty() ? std::uint16_t{0} : batch.threads[i],
                   !batch.flags.empty() && (batch.flags[i] & kWrite) != 0,
                   batch.sites.empty() ? 0 : batch.sites[i]);
        return {};
    }
    Result<Profile> finish() override { return tally_.profile("naive", blocks_.size()); }
    Result<Histogram> reuse_so_far() override { return tally_.reuse(); }

 private:
    struct Slot {
        bool hole;
        Entry entry;
    };
    struct Thread {
        std::list<Slot> stack;
        std::set<std::uint64_t> lost;  // taken by another thread's write and not fetched again
        std::uint64_t now = 0;         // its own accesses
    };

    static std::list<Slot>::iterator find(Thread& thread, std::uint64_t block) {
        auto slot = thread.stack.begin();
        while (slot != thread.stack.end() && (slot->hole || slot->entry.block != block)) ++slot;
        return slot;
    }

    void access(std::uint64_t block, std::uint16_t id, bool write, std::uint32_t site) {
        Thread& thread = threads_[id];
        auto slot = find(thread, block);
        if (slot != thread.stack.end()) {
            auto depth = static_cast<std::uint64_t>(std::distance(thread.stack.begin(), slot));
            tally_.add_reuse(depth, thread.now - slot->entry.time, slot->entry.site, site, write, id);
            slot->hole = true;
        } else if (thread.lost.erase(block) != 0) {
            tally_.add_invalidated(site, write, id);
        } else {
            tally_.add_cold(site, write, id);
        }
        thread.stack.push_front({false, {block, thread.now++, site}});
        auto hole = thread.stack.begin();
        while (hole != thread.stack.end() && !hole->hole) ++hole;
        if (hole != thread.stack.end()) thread.stack.erase(hole);
        blocks_.insert(block);
        if (!write) return;
        for (auto& [other_id, other] : threads_) {
            auto taken = other_id == id ? other.stack.end() : find(other, block);
            if (taken == other.stack.end()) continue;
            taken->hole = true;
            other.lost.insert(block);
        }
    }

    Tally tally_;
    std::map<std::uint16_t, Thread> threads_;
    std::set<std::uint64_t> blocks_;
};

}  // namespace

Result<std::unique_ptr<Engine>> make_naive(const EngineOptions& options) {
    if (options.shared) return fail("the naive method takes one model at a time");
    if (options.model == StackModel::private_) return std::make_unique<NaivePrivateEngine>(options);
    return std::make_unique<NaiveEngine>(options);
}

}  // namespace revisit
