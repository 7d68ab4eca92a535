// Counts and ranges of a set of rows that have one distance polynomial.
#pragma once

#include <optional>
#include <vector>

#include "predict/fit/cells.h"
#include "predict/fit/loop_bounds.h"

namespace revisit::predict {

// A sample and free variables in one number, so that sorting brings prefixes together.
using Packed = unsigned __int128;

class Describer {
 public:
    Describer(const Stream& stream, const RowTable& table, const LoopBounds& bounds, Work& work,
              bool boxes)
        : s_(stream),
          table_(table),
          bounds_(bounds),
          work_(work),
          boxes_(boxes),
          sizes_(table.sizes()),
          loops_(stream.loops) {}

    // False where the set has no such description.
    bool describe(const std::vector<std::uint32_t>& rows, const Polynomial& distance, Cell& cell);

 private:
    bool describe_over(const std::vector<std::uint32_t>& rows, const std::vector<std::uint8_t>& free,
                       Cell& cell);
    std::optional<Polynomial> boxed(const std::vector<std::uint32_t>& rows,
                                    const std::vector<std::uint8_t>& free,
                                    const std::vector<std::pair<Packed, std::int64_t>>& shared) const;
    Packed packed(std::uint32_t row, const std::vector<std::uint8_t>& free) const;
    void unpack(Packed key, const std::vector<std::uint8_t>& free, std::size_t known, Points& to) const;
    bool range_of(const std::vector<std::pair<Packed, std::int64_t>>& shared,
                  const std::vector<std::uint8_t>& free, std::size_t k, Range& out) const;
    bool present_where_it_should(const std::vector<std::uint32_t>& rows, const Cell& cell) const;

    const Stream& s_;
    const RowTable& table_;
    const LoopBounds& bounds_;
    Work& work_;
    bool boxes_;  // many sizes: variables that are not free are looked for in boxes
    std::size_t sizes_, loops_;
    std::vector<Packed> packed_;
};

}  // namespace revisit::predict
