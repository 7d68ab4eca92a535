// Which small sizes to run, for a target.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "predict/run/interpret.h"

namespace revisit::predict {

// A size as so many tiles and a rest: each of the three varies, and formulas are in them.
struct Parted {
    std::string name, tile;
    std::string count() const { return name + "/" + tile; }
    std::string rest() const { return name + "%" + tile; }
};

// One thing that varies: a parameter, or several that keep their differences.
struct Axis {
    // A size made of others; one by itself; how many tiles there are; how large they are, and rests.
    enum class Kind : std::uint8_t { made, size, count, within };
    std::vector<std::pair<std::string, std::int64_t>> names;  // with offset
    std::int64_t target = 0;
    std::int64_t modulus = 1;
    std::int64_t smallest = 9;
    Kind kind = Kind::size;
};

// What is not varied, though it is large: tiles, which loops step by. Sizes that say how many there are
// keep the target's residues.
struct Pinned {
    std::set<std::int64_t> tiles;
    std::set<std::string> names;  // sizes that are tiles
    std::int64_t others = 1;      // residues that all sizes keep for other reasons

    // Tiles, and what is nearly one: 33 where a loop of tiles starts at 1.
    bool keeps(std::int64_t number) const {
        return std::any_of(tiles.begin(), tiles.end(),
                           [&](auto t) { return number >= t - kNearly && number <= t + kNearly; });
    }
    std::int64_t largest() const { return tiles.empty() ? 0 : *tiles.rbegin() + kNearly; }

 private:
    static constexpr std::int64_t kNearly = 4;
};

struct DesignOptions {
    // Sizes keep the target's residue: one modulus for all, or by name where one needs less.
    std::int64_t modulus = 1;
    std::map<std::string, std::int64_t> moduli;
    std::int64_t smallest = 9;     // where the modulus is small
    std::int64_t rounds = 3;       // smallest size over a large modulus
    bool tie = true;               // parameters equal (or nearly) at the target move together
    std::set<std::string> untied;  // except these
    std::set<std::string> fixed;   // not varied, large as they may be
    std::vector<Parted> parted;
    std::int64_t fixed_below = 13;  // smaller targets are not varied
    std::int64_t spread = 0;        // values an axis takes; 0 = as many as its fits need
    bool close = false;             // axes are as near to each other as their moduli let them
    bool proportional = false;      // sizes stand in the target's ratios, up to 3, not just its order
    std::uint64_t seed = 1;
};

struct Design {
    std::vector<Axis> axes;  // by kind, in the target's order
    Parameters fixed;
    std::vector<Parted> parted;
    std::vector<std::vector<std::int64_t>> samples;
    std::vector<std::int32_t> anchors;  // numbers of the largest samples
    std::vector<std::int64_t> target;

    Parameters at(const std::vector<std::int64_t>& size) const;
    // With the sizes that are made of others as those have them.
    std::vector<std::int64_t> whole(std::vector<std::int64_t> size) const;
    // Whether an axis is to be larger than the one before it, and by more than how much.
    bool after(std::size_t axis) const { return axis > 0 && axes[axis].kind == axes[axis - 1].kind; }
    std::int64_t apart(std::size_t axis) const {
        return axes[axis].kind == Axis::Kind::size ? 4 : axes[axis].kind == Axis::Kind::within ? 1 : 0;
    }
    // Sizes about `factor` times the samples', in the target's order and residue classes: for checking.
    std::vector<std::int64_t> held_out(double factor) const;
    // The same in the target's proportions, `scale` of it, but no axis within the samples.
    std::vector<std::int64_t> proportional(double scale) const;
    // The target with all sizes shrunk alike, residues kept.
    std::vector<std::int64_t> reduced(double factor) const;
};

Design plan_samples(const Parameters& target, const DesignOptions& options);

}  // namespace revisit::predict
