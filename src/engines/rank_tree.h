// Times in order, and how many lie below one: what the textbook's stack is made of. libstdc++'s
// order-statistic tree where there is one; libc++ has none, and gets the same by a Fenwick tree.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#if __has_include(<ext/pb_ds/assoc_container.hpp>)
#include <ext/pb_ds/assoc_container.hpp>
#include <ext/pb_ds/tree_policy.hpp>
#endif

namespace revisit {

// Keys are inserted in increasing order, and each has a place in a Fenwick tree of counts. When the
// places are used up, those of erased keys are left out.
class FenwickRankTree {
 public:
    void insert(std::uint64_t key) {
        if (keys_.size() == sums_.size()) make_room();
        keys_.push_back(key);
        is_in_.push_back(true);
        change(keys_.size() - 1, 1);
        ++size_;
    }
    void erase(std::uint64_t key) {
        const std::size_t at = place(key);
        if (at == keys_.size() || keys_[at] != key || !is_in_[at]) return;
        is_in_[at] = false;
        change(at, -1);
        --size_;
    }
    std::size_t order_of_key(std::uint64_t key) const {
        std::size_t below = 0;
        for (std::size_t i = place(key); i > 0; i &= i - 1) below += sums_[i - 1];
        return below;
    }
    std::size_t size() const { return size_; }

 private:
    std::size_t place(std::uint64_t key) const {
        return static_cast<std::size_t>(std::ranges::lower_bound(keys_, key) - keys_.begin());
    }
    void change(std::size_t at, int by) {
        for (std::size_t i = at + 1; i <= sums_.size(); i += i & -i)
            sums_[i - 1] += static_cast<std::size_t>(by);
    }
    void make_room() {
        std::size_t kept = 0;
        for (std::size_t i = 0; i < keys_.size(); ++i)
            if (is_in_[i]) keys_[kept++] = keys_[i];
        keys_.resize(kept);
        is_in_.assign(kept, true);
        sums_.assign(std::bit_ceil(2 * kept + 64), 0);
        for (std::size_t i = 0; i < kept; ++i) change(i, 1);
    }

    std::vector<std::uint64_t> keys_;
    std::vector<bool> is_in_;
    std::vector<std::size_t> sums_;
    std::size_t size_ = 0;
};

#if __has_include(<ext/pb_ds/assoc_container.hpp>)
using RankTree =
    __gnu_pbds::tree<std::uint64_t, __gnu_pbds::null_type, std::less<std::uint64_t>,
                     __gnu_pbds::rb_tree_tag, __gnu_pbds::tree_order_statistics_node_update>;
#else
using RankTree = FenwickRankTree;
#endif

}  // namespace revisit
