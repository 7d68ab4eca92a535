// The private model's engine; private.cpp explains how it works.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engines/block_table.h"
#include "engines/private_stack.h"
#include "engines/shared_stack.h"
#include "engines/site_attribution_thread.h"
#include "engines/thread_counter.h"
#include "revisit/engine.h"

namespace revisit {

// Which threads hold a block validly. Most blocks have one holder, which is kept in the entry itself;
// more are a list in a common pool.
class HolderDirectory {
 public:
    // The block's entry, made when it is met for the first time; that one has no holder.
    struct Found {
        std::size_t entry;
        bool is_new;
    };
    Found find(std::uint64_t block);
    void hold_alone(std::size_t entry, std::uint32_t thread);
    void add(std::size_t entry, std::uint32_t thread);
    // Calls use(thread) for every holder, or only when there is exactly one.
    template <class Use>
    void for_each(std::size_t entry, Use use) const;
    template <class Use>
    void if_alone(std::size_t entry, Use use) const;
    std::uint64_t blocks() const { return table_.count(); }

 private:
    static constexpr std::uint32_t kNobody = ~std::uint32_t{0};
    struct Node {
        std::uint32_t thread;
        std::uint32_t next;  // 0 ends a list
    };
    std::uint32_t node(std::uint32_t thread, std::uint32_t next);

    BlockTable table_;  // value: thread << 1 | 1, or node << 1
    std::vector<Node> nodes_ = {{0, 0}};
    std::uint32_t free_ = 0;
};

class PrivateEngine : public Engine, public SiteSnapshots {
 public:
    explicit PrivateEngine(const EngineOptions& options);

    Result<void> add(const BlockBatch& batch) override;
    Result<Profile> finish() override;
    Result<Histogram> reuse_so_far() override;
    Result<void> sites_so_far(SiteOctaves& out) override;

 private:
    struct Thread;

    Result<Profile> profile_of_all();
    Thread& thread(std::uint16_t id);
    [[gnu::noinline]] Thread& new_thread(std::uint16_t id);
    Result<void> add_piece(const BlockBatch& piece);
    template <bool kDetailed>
    Result<void> count(const BlockBatch& piece);
    template <bool kDetailed>
    std::uint32_t access(Thread& mine, std::uint64_t block, bool write, const BlockTable::Touch& by,
                         std::uint32_t* use_site);
    bool fetch(Thread& mine, std::uint64_t block, bool write, const BlockTable::Touch& by);
    void take_from_others(Thread& mine, std::uint64_t block, std::size_t directory_entry,
                          const BlockTable::Touch& by);
    Result<void> renumber(Thread& mine);

    EngineOptions options_;
    std::vector<std::unique_ptr<Thread>> threads_;
    std::vector<Thread*> by_id_;  // null: not met yet
    HolderDirectory directory_;
    DistanceCounter times_;
    std::optional<SiteAttributionThread> sites_;
    std::optional<SharedStack> beside_;
    std::vector<std::uint32_t> distances_;  // of a piece, when attributed
    std::vector<std::uint32_t> use_sites_;
};

}  // namespace revisit
