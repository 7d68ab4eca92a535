// Rows with equal features, as groups.
//
// Problem. A stream of a million rows is cut anew for each of a dozen plans, by up to twenty features.
// Idea. A column per feature, then one number per row that stands for all of them, digit by digit in
// mixed radix: with columns 0 1 1 and 2 2 0 of three values each the rows are 2, 5 and 3. Where the
// next digit would not fit, the numbers there are first replaced by 0, 1, 2 … in order of appearance.
// Cost. One pass per feature and one lookup per row, half of what a string per row as the key took.
#pragma once

#include <cstdint>
#include <vector>

namespace revisit::predict {

class Partition {
 public:
    explicit Partition(std::size_t rows) : key_(rows, 0) {}

    // Rows that differ in `column` belong to different groups from now on.
    void refine(const std::vector<std::int8_t>& column);

    // The number of groups; then group_of() has each row's, counted in order of appearance.
    std::size_t finish();
    const std::vector<std::uint64_t>& group_of() const { return key_; }

 private:
    std::vector<std::uint64_t> key_;
    std::uint64_t span_ = 1;  // keys are below
};

}  // namespace revisit::predict
