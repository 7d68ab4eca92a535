// Disjoint sets of numbers (union and find).
#pragma once

#include <cstddef>
#include <vector>

namespace revisit::predict {

class Sets {
 public:
    std::size_t size() const { return parent_.size(); }
    std::size_t fresh() {
        parent_.push_back(parent_.size());
        return parent_.size() - 1;
    }
    std::size_t find(std::size_t a) const {
        while (parent_[a] != a) a = parent_[a] = parent_[parent_[a]];
        return a;
    }
    void join(std::size_t a, std::size_t b) { parent_[find(a)] = find(b); }

 private:
    mutable std::vector<std::size_t> parent_;  // shortened while looking
};

}  // namespace revisit::predict
