// From rows to formulas.
//
// Problem. The reuse distance of a reference is a polynomial of sizes and iteration numbers only piece
// by piece: the first iteration of a loop, the last, the diagonal each behave in their own way. Idea.
// Cut a stream's rows finely, by how close each loop is to its first and last iteration and, only where
// that does not do, by differences of loop variables and residues; fit each piece; give the pieces that
// one polynomial explains the same label; then grow a decision tree over the labels, so that the cells
// are as large as can be and each fit rests on as many points as there are. For every leaf fit the
// number of iterations that share a distance and the ranges of the variables it depends on.
// A leaf that cannot be described is cut further, by the feature that saves most rows; a row that ends
// in no cell is lost, and a stream with lost rows is not certified.
// Cost. Dominated by passing over the rows a few times; 0.05–0.5 s a kernel.
#include "predict/cells.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <unordered_map>

namespace revisit::predict {
namespace {

struct Plan {
    int clip = 0;        // bounds: how many iterations from either end are told apart
    int pair_clip = 0;   // differences of loop variables, 0 = not used
    int modulus = 0;     // residues of iteration numbers
    bool phase = false;  // address within the block
    bool doubled = false;
    bool own = false;     // residues only of loops that move within blocks
    bool blocks = false;  // clip and pair_clip are in blocks, not in iterations
};

struct Feature {
    enum class Kind : std::uint8_t { first, last, pair, doubled, residue, phase } kind;
    std::uint8_t a = 0, b = 0;
    int clip = 0;
    int unit = 1;
};

using Key = std::vector<std::int8_t>;

struct Group {
    Key key;
    std::vector<std::uint32_t> rows;
    std::vector<std::int32_t> by_sample;  // rows in each
    int label = -1;
    bool anchored = false;  // occurs in the largest samples
};

int floor_of(int value, int unit) {
    return value >= 0 ? value / unit : -((unit - 1 - value) / unit);
}

// A sample and free variables in one number, so that sorting brings prefixes together.
using Packed = unsigned __int128;
constexpr std::size_t kMaxFree = 7;
constexpr int kBits = 16;

class Learner {
 public:
    Learner(const Stream& s, const RowTable& table, const CellOptions& options)
        : s_(s), table_(table), options_(options), sizes_(table.sizes()), loops_(s.loops) {
        for (std::size_t v = 0; v < sizes_ + loops_; ++v)
            order_.push_back(static_cast<std::uint8_t>(v));
        least_first_.assign(loops_, INT32_MAX);
        least_left_.assign(loops_, INT32_MAX);
        for (std::size_t i = 0; i < s.points.count(); ++i)
            for (std::size_t l = 0; l < loops_; ++l) {
                least_first_[l] = std::min(least_first_[l], s.points.at(i)[sizes_ + l]);
                least_left_[l] = std::min(least_left_[l], s.left[i * loops_ + l]);
            }
        find_caps();
    }

    StreamModel run() {
        StreamModel best;
        best.rows = s_.points.count();
        best.lost = best.rows + 1;
        std::size_t tried = 0;
        for (const Plan& plan : plans()) {
            if (++tried > 1 && loops_ == 0) break;
            polynomials_.clear();
            cells_.clear();
            lost_ = 0;
            give_up_ = best.lost;
            work_ += static_cast<std::int64_t>(best.rows * (1 + features_of(plan).size() / 2));
            auto groups = cut(plan);
            label(groups);
            std::vector<Group*> all;
            for (auto& g : groups)
                if (g.label != INT32_MIN) all.push_back(&g);
            if (!all.empty()) grow(all, {});
            if (lost_ < best.lost) {
                best.lost = lost_;
                best.cells = std::move(cells_);
            }
            if (best.lost == 0 || spent()) break;
        }
        best.work = work_;
        best.lost = std::min(best.lost, best.rows);
        for (auto& c : best.cells) {
            c.reference = s_.reference;
            c.source = s_.source;
        }
        return best;
    }

 private:
    bool spent() const { return work_ > options_.work || options_.deadline.passed(); }

    std::vector<Plan> plans() const {
        std::vector<Plan> all{{}};
        if (options_.period <= 1) {
            for (const int c : {1, 2, 3}) all.push_back({c, 0, 0, false, false});
            if (loops_ > 1)
                for (const int c : {1, 2, 3}) all.push_back({c, c, 0, false, false});
            if (loops_ > 1) {
                all.push_back({2, 2, 0, false, true});
                all.push_back({3, 3, 0, false, true});
            }
            if (options_.modulus > 1) {
                const int m = static_cast<int>(std::min<std::int64_t>(options_.modulus, 64));
                all.push_back({2, 0, m, false, false});
                if (loops_ > 1) {
                    all.push_back({2, 0, m, false, true});
                    all.push_back({2, 2, m, false, false});
                    all.push_back({3, 3, m, false, true});
                }
            }
            return all;
        }
        const int p = static_cast<int>(std::min<std::int64_t>(options_.period, 16));
        all.push_back({1, 0, 0, true, false});
        all.push_back({2, 0, 0, true, false});
        all.push_back({p + 1, 0, 0, true, false});
        all.push_back({2, 0, p, true, false, true});
        // In each residue class distances are polynomials of whole blocks: so are the edges.
        for (const int c : {1, 2}) {
            all.push_back({c, 0, p, true, false, true, true});
            if (loops_ > 1) all.push_back({c, c, p, true, false, true, true});
        }
        all.push_back({2, 0, p, true, false});
        all.push_back({p + 1, 0, p, true, false});
        if (loops_ > 1) {
            all.push_back({2, 2, p, true, false});
            all.push_back({p + 1, p + 1, p, true, false});
        }
        all.push_back({2 * p + 1, 0, p, true, false});
        return all;
    }

    std::vector<Feature> features_of(const Plan& plan) const {
        std::vector<Feature> all;
        using K = Feature::Kind;
        if (plan.phase) all.push_back({K::phase, 0, 0, 0});
        for (std::size_t l = 0; l < loops_ && plan.clip; ++l) {
            const int unit = plan.blocks ? period_of(l) : 1;
            all.push_back({K::first, static_cast<std::uint8_t>(l), 0, plan.clip, unit});
            all.push_back({K::last, static_cast<std::uint8_t>(l), 0, plan.clip, unit});
        }
        if (plan.modulus)
            for (std::size_t l = 0; l < loops_; ++l)
                if (const int m = plan.own ? period_of(l) : plan.modulus; m > 1)
                    all.push_back({K::residue, static_cast<std::uint8_t>(l), 0, m});
        for (std::size_t i = 0; i < loops_; ++i)
            for (std::size_t j = i + 1; j < loops_; ++j) {
                if (!related(i, j)) continue;
                if (plan.pair_clip)
                    all.push_back({K::pair, static_cast<std::uint8_t>(i), static_cast<std::uint8_t>(j),
                                   plan.pair_clip,
                                   plan.blocks ? std::max(period_of(i), period_of(j)) : 1});
                if (plan.doubled)
                    all.push_back({K::doubled, static_cast<std::uint8_t>(i),
                                   static_cast<std::uint8_t>(j), plan.clip + 1});
            }
        return all;
    }

    // Iterations of a loop after which all that it moves is again at the same place within a block.
    int period_of(std::size_t loop) const {
        const auto p = loop < options_.periods.size() && options_.periods[loop] > 0
                           ? options_.periods[loop]
                           : options_.period;
        return static_cast<int>(std::min<std::int64_t>(p, 16));
    }

    // Loops whose variables can meaningfully be compared: they share a size, or one bounds the other.
    bool related(std::size_t i, std::size_t j) const {
        if (bounded_by_[j].contains(i)) return true;
        return std::any_of(depends_[i].begin(), depends_[i].end(),
                           [&](auto v) { return depends_[j].contains(v); });
    }

    std::int8_t value_of(const Feature& f, std::size_t row) const {
        using K = Feature::Kind;
        const auto* t = s_.points.at(row) + sizes_;
        const auto* left = s_.left.data() + row * loops_;
        const auto* v = s_.value.data() + row * loops_;
        switch (f.kind) {
            case K::first:
                return static_cast<std::int8_t>(
                    std::min((t[f.a] - least_first_[f.a]) / f.unit, f.clip));
            case K::last:
                return static_cast<std::int8_t>(
                    std::min((left[f.a] - least_left_[f.a]) / f.unit, f.clip));
            case K::pair:
                return static_cast<std::int8_t>(
                    std::clamp(floor_of(v[f.a], f.unit) - floor_of(v[f.b], f.unit), -f.clip, f.clip));
            case K::doubled:
                return static_cast<std::int8_t>(std::clamp(2 * v[f.b] - v[f.a], -f.clip, f.clip));
            case K::residue:
                return static_cast<std::int8_t>(t[f.a] % f.clip);
            case K::phase:
                return static_cast<std::int8_t>(s_.phase[row] * 16 /
                                                std::max<std::uint64_t>(16, table_.granularity()));
        }
        return 0;
    }

    std::string name_of(const Feature& f, std::int8_t value) const {
        using K = Feature::Kind;
        const auto& names = table_.references()[s_.reference].loops;
        const auto name = [&](std::size_t l) {
            return names[l].empty() ? "t" + std::to_string(l) : names[l];
        };
        const auto per = f.unit > 1 ? "/" + std::to_string(f.unit) : "";
        switch (f.kind) {
            case K::first:
                return name(f.a) + per + (value < f.clip ? " = first" : " >= first") +
                       (value ? "+" + std::to_string(value) : "");
            case K::last:
                return name(f.a) + per + (value < f.clip ? " = last" : " <= last") +
                       (value ? "-" + std::to_string(value) : "");
            case K::pair:
                return name(f.a) + per + "-" + name(f.b) + per +
                       (value == f.clip    ? " >= "
                        : value == -f.clip ? " <= "
                                           : " = ") +
                       std::to_string(value);
            case K::doubled:
                return "2*" + name(f.b) + "-" + name(f.a) +
                       (value == f.clip    ? " >= "
                        : value == -f.clip ? " <= "
                                           : " = ") +
                       std::to_string(value);
            case K::residue:
                return name(f.a) + " mod " + std::to_string(f.clip) + " = " + std::to_string(value);
            case K::phase:
                return "phase = " + std::to_string(value);
        }
        return {};
    }

    // Rows by the values of all features, the pieces that the largest samples show first.
    std::vector<Group> cut(const Plan& plan) {
        features_ = features_of(plan);
        std::unordered_map<std::string, std::uint32_t> index;
        std::vector<Group> groups;
        std::string key(features_.size(), '\0');
        for (std::size_t row = 0; row < s_.points.count(); ++row) {
            for (std::size_t f = 0; f < features_.size(); ++f)
                key[f] = static_cast<char>(value_of(features_[f], row));
            const auto [at, fresh] = index.try_emplace(key, static_cast<std::uint32_t>(groups.size()));
            if (fresh) groups.emplace_back().key.assign(key.begin(), key.end());
            groups[at->second].rows.push_back(static_cast<std::uint32_t>(row));
        }
        for (auto& g : groups) {
            g.by_sample.assign(table_.samples().size(), 0);
            for (const auto r : g.rows) ++g.by_sample[s_.sample[r]];
            // A sample that time did not allow is not there, and nothing is certain then anyway.
            for (const auto a : options_.anchors)
                g.anchored |= static_cast<std::size_t>(a) < g.by_sample.size() && g.by_sample[a] > 0;
        }
        std::stable_sort(groups.begin(), groups.end(), [](const Group& a, const Group& b) {
            return std::tuple(a.anchored, a.rows.size()) > std::tuple(b.anchored, b.rows.size());
        });
        return groups;
    }

    void label(std::vector<Group>& groups) {
        if (s_.source == kCold) {
            polynomials_.push_back(Polynomial::constant(0));
            for (auto& g : groups) g.label = 0;
            return;
        }
        int unfit = 0;
        for (auto& g : groups) {  // the anchored ones come first
            for (std::size_t p = 0; p < polynomials_.size() && g.label < 0; ++p)
                if (agrees_quickly(polynomials_[p], g.rows)) g.label = static_cast<int>(p);
            if (g.label >= 0) continue;
            // A piece that only small sizes have, and that behaves in its own way, is gone at scale.
            if (!g.anchored) {
                g.label = INT32_MIN;
                continue;
            }
            work_ += static_cast<std::int64_t>(g.rows.size()) + 3000;
            if (auto p = spent() ? std::nullopt
                                 : fit_simplest(s_.points, g.rows, order_, options_.max_degree)) {
                g.label = static_cast<int>(polynomials_.size());
                polynomials_.push_back(std::move(*p));
            } else {
                g.label = -1 - unfit++;
            }
        }
    }

    bool agrees_quickly(const Polynomial& p, const std::vector<std::uint32_t>& rows) const {
        const std::uint32_t probe[] = {rows.front(), rows.back(), rows[rows.size() / 2]};
        return agrees(p, s_.points, probe) && agrees(p, s_.points, rows);
    }

    // A decision tree over the groups; its pure leaves become cells.
    void grow(const std::vector<Group*>& node, const std::vector<std::pair<int, std::int8_t>>& path) {
        if (lost_ >= give_up_) return;
        if (std::none_of(node.begin(), node.end(), [](const Group* g) { return g->anchored; })) return;
        if (spent()) {
            lost_ = give_up_;
            return;
        }
        const int label = node.front()->label;
        const bool pure =
            std::all_of(node.begin(), node.end(), [&](const Group* g) { return g->label == label; });
        if (pure && label >= 0 && countable(node)) {
            auto rows = rows_of(node);
            Cell cell;
            if (describe(rows, polynomials_[label], cell)) {
                cell.where = text_of(path);
                if (cell.rows) cells_.push_back(std::move(cell));
                return;
            }
        }
        const int f = pure ? saving_feature(node) : telling_feature(node);
        if (f < 0) {
            for (const auto* g : node) lost_ += g->rows.size();
            return;
        }
        std::map<std::int8_t, std::vector<Group*>> children;
        for (auto* g : node) children[g->key[f]].push_back(g);
        for (auto& [value, child] : children) {
            auto deeper = path;
            deeper.emplace_back(f, value);
            grow(child, deeper);
        }
    }

    std::string text_of(const std::vector<std::pair<int, std::int8_t>>& path) const {
        std::string out;
        for (const auto& [f, value] : path)
            out += (out.empty() ? "" : ", ") + name_of(features_[f], value);
        return out;
    }

    std::vector<std::uint32_t> rows_of(const std::vector<Group*>& node) const {
        std::vector<std::uint32_t> rows;
        for (const auto* g : node) rows.insert(rows.end(), g->rows.begin(), g->rows.end());
        return rows;
    }

    // The feature that tells most about the label.
    int telling_feature(const std::vector<Group*>& node) const {
        int best = -1;
        double best_gain = 1e-9;
        const auto entropy = [](const std::map<int, double>& weights) {
            double total = 0, sum = 0;
            for (const auto& [l, w] : weights) total += w;
            for (const auto& [l, w] : weights) sum -= w * std::log2(w / total);
            return sum;
        };
        std::map<int, double> whole;
        for (const auto* g : node) whole[g->label] += weight(*g);
        const double before = entropy(whole);
        for (std::size_t f = 0; f < features_.size(); ++f) {
            std::map<std::int8_t, std::map<int, double>> by_value;
            for (const auto* g : node) by_value[g->key[f]][g->label] += weight(*g);
            if (by_value.size() < 2) continue;
            double after = 0;
            for (const auto& [value, weights] : by_value) after += entropy(weights);
            const double gain = (before - after) / std::sqrt(static_cast<double>(by_value.size()));
            if (gain > best_gain) {
                best_gain = gain;
                best = static_cast<int>(f);
            }
        }
        return best >= 0 ? best : any_feature(node);
    }
    static double weight(const Group& g) { return std::sqrt(static_cast<double>(g.rows.size())); }

    int any_feature(const std::vector<Group*>& node) const {
        for (std::size_t f = 0; f < features_.size(); ++f)
            for (const auto* g : node)
                if (g->key[f] != node.front()->key[f]) return static_cast<int>(f);
        return -1;
    }

    // Whether the number of rows can be a polynomial of the sizes at all: what a set must satisfy to be
    // described, tested on as many numbers as there are samples.
    bool countable(const std::vector<Group*>& node) {
        work_ += 1000;
        Points p;
        p.variables = sizes_;
        std::vector<std::uint32_t> which;
        for (std::size_t i = 0; i < table_.samples().size(); ++i) {
            std::int64_t n = 0;
            for (const auto* g : node) n += g->by_sample[i];
            if (n == 0) continue;
            for (const auto v : table_.samples()[i]) p.x.push_back(static_cast<std::int32_t>(v));
            p.y.push_back(n);
            which.push_back(static_cast<std::uint32_t>(which.size()));
        }
        Polynomial ignored;
        return fit(p, which, monomials(std::span(order_).first(sizes_), static_cast<int>(loops_)),
                   ignored) != Fit::inconsistent;
    }

    // One polynomial, but no description of the set: the feature whose cut makes most rows countable.
    int saving_feature(const std::vector<Group*>& node) {
        int best = -1;
        double best_saved = 0;
        for (std::size_t f = 0; f < features_.size(); ++f) {
            std::map<std::int8_t, std::vector<Group*>> children;
            for (auto* g : node) children[g->key[f]].push_back(g);
            if (children.size() < 2) continue;
            double saved = 0;
            for (auto& [value, child] : children)
                if (countable(child))
                    for (const auto* g : child) saved += static_cast<double>(g->rows.size());
            saved /= 1 + 0.01 * static_cast<double>(children.size());
            if (saved > best_saved) {
                best_saved = saved;
                best = static_cast<int>(f);
            }
        }
        return best >= 0 ? best : any_feature(node);
    }

    // How often the iteration count of the reference can multiply by each size: loops that depend on
    // it.
    void find_caps() {
        caps_.assign(kMaxVariables, 0);
        auto& depends = depends_;
        depends.assign(loops_, {});
        bounded_by_.assign(loops_, {});
        for (std::size_t l = 0; l < loops_; ++l) {
            std::map<std::vector<std::int32_t>, std::int64_t> trips;
            for (std::size_t row = 0; row < s_.points.count(); ++row) {
                const auto* x = s_.points.at(row);
                trips[std::vector<std::int32_t>(x, x + sizes_ + l)] =
                    x[sizes_ + l] + s_.left[row * loops_ + l];
                if (trips.size() > 4000) break;
            }
            Points p;
            p.variables = sizes_ + loops_;
            std::vector<std::uint32_t> which;
            for (const auto& [key, trip] : trips) {
                p.x.insert(p.x.end(), key.begin(), key.end());
                p.x.insert(p.x.end(), loops_ - l, 0);
                p.y.push_back(trip);
                which.push_back(static_cast<std::uint32_t>(which.size()));
            }
            const auto affine = fit_simplest(p, which, std::span(order_).first(sizes_ + l), 1);
            for (std::size_t v = 0; v < sizes_ + l; ++v) {
                if (affine && !affine->uses(v)) continue;
                if (v < sizes_) {
                    depends[l].insert(v);
                } else {
                    depends[l].insert(depends[v - sizes_].begin(), depends[v - sizes_].end());
                    bounded_by_[l].insert(v - sizes_);
                }
            }
        }
        for (std::size_t v = 0; v < sizes_; ++v)
            for (std::size_t l = 0; l < loops_; ++l) caps_[v] += depends[l].contains(v);
        for (std::size_t l = 0; l < loops_; ++l) caps_[sizes_ + l] = static_cast<int>(loops_);
    }

    // Counts and ranges of a set of rows with one distance polynomial.
    bool describe(const std::vector<std::uint32_t>& rows, const Polynomial& distance, Cell& cell) {
        std::vector<std::uint8_t> base, rest;
        for (std::size_t l = 0; l < loops_; ++l) {
            const auto v = static_cast<std::uint8_t>(sizes_ + l);
            (distance.uses(v) ? base : rest).push_back(v);
        }
        for (std::size_t extra = 0; extra <= rest.size(); ++extra)
            for (std::uint32_t mask = 0; mask < (1u << rest.size()); ++mask) {
                if (static_cast<std::size_t>(__builtin_popcount(mask)) != extra) continue;
                auto free = base;
                for (std::size_t k = 0; k < rest.size(); ++k)
                    if (mask >> k & 1) free.push_back(rest[k]);
                std::sort(free.begin(), free.end());
                if (describe_over(rows, free, cell)) {
                    cell.distance = distance;
                    cell.rows = rows.size();
                    return true;
                }
            }
        return false;
    }

    bool describe_over(const std::vector<std::uint32_t>& rows, const std::vector<std::uint8_t>& free,
                       Cell& cell) {
        if (free.size() > kMaxFree || spent()) return false;
        work_ += static_cast<std::int64_t>(rows.size()) + 3000;
        // Distinct (sample, free variables) and how many rows share each.
        packed_.clear();
        for (const auto row : rows) {
            Packed key = static_cast<std::uint32_t>(s_.sample[row]);
            for (const auto v : free)
                key = key << kBits | static_cast<std::uint16_t>(s_.points.at(row)[v]);
            packed_.push_back(key);
        }
        std::sort(packed_.begin(), packed_.end());
        std::vector<std::pair<Packed, std::int64_t>> shared;
        for (const auto key : packed_) {
            if (shared.empty() || shared.back().first != key)
                shared.emplace_back(key, 1);
            else
                ++shared.back().second;
        }
        std::vector<Range> ranges;
        for (std::size_t k = 0; k < free.size(); ++k) {
            Range r;
            if (!range_of(shared, free, k, r)) return false;
            ranges.push_back(std::move(r));
        }
        Points p;
        p.variables = sizes_ + loops_;
        std::vector<std::uint32_t> which;
        for (const auto& [key, n] : shared) {
            unpack(key, free, free.size(), p);
            p.y.push_back(n);
            which.push_back(static_cast<std::uint32_t>(which.size()));
        }
        std::vector<std::uint8_t> variables;
        for (std::size_t v = 0; v < sizes_; ++v)
            if (caps_[v]) variables.push_back(static_cast<std::uint8_t>(v));
        variables.insert(variables.end(), free.begin(), free.end());
        const int degree = static_cast<int>(loops_ - free.size());
        auto count = fit_simplest(p, which, variables, degree, caps_);
        if (!count) {
            // Other loops' bounds can cut the set as well: all sizes then.
            variables.assign(order_.begin(), order_.begin() + static_cast<std::ptrdiff_t>(sizes_));
            variables.insert(variables.end(), free.begin(), free.end());
            count = fit_simplest(p, which, variables, degree);
        }
        if (!count) return false;
        cell.count = std::move(*count);
        cell.free = free;
        cell.ranges = std::move(ranges);
        return present_where_it_should(rows, cell);
    }

    // Appends the point a key stands for; its last `free.size() - known` variables are left 0.
    void unpack(Packed key, const std::vector<std::uint8_t>& free, std::size_t known,
                Points& to) const {
        const auto base = to.x.size();
        to.x.resize(base + sizes_ + loops_, 0);
        for (std::size_t k = known; k-- > 0; key >>= kBits)
            to.x[base + free[k]] = static_cast<std::int32_t>(static_cast<std::uint16_t>(key));
        const auto& size = table_.samples()[static_cast<std::size_t>(key)];
        for (std::size_t v = 0; v < sizes_; ++v) to.x[base + v] = static_cast<std::int32_t>(size[v]);
    }

    // The k-th free variable given the sizes and those before it: an affine interval without holes.
    bool range_of(const std::vector<std::pair<Packed, std::int64_t>>& shared,
                  const std::vector<std::uint8_t>& free, std::size_t k, Range& out) const {
        struct Interval {
            Packed prefix;
            std::int64_t low, high, values, last;
        };
        std::vector<Interval> intervals;
        const int below = kBits * static_cast<int>(free.size() - 1 - k);
        std::int64_t stride = 0;
        for (const auto& [key, n] : shared) {
            const auto upto = key >> below;
            const auto value = static_cast<std::int64_t>(static_cast<std::uint16_t>(upto));
            const auto prefix = upto >> kBits;
            if (intervals.empty() || intervals.back().prefix != prefix) {
                intervals.push_back({prefix, value, value, 1, value});
            } else if (auto& i = intervals.back(); i.last != value) {
                stride = std::gcd(stride, value - i.last);
                i.high = i.last = value;
                ++i.values;
            }
        }
        if (stride == 0) stride = 1;
        Points low;
        low.variables = sizes_ + loops_;
        std::vector<std::uint32_t> which;
        for (const auto& i : intervals) {
            if (i.values != (i.high - i.low) / stride + 1) return false;
            unpack(i.prefix, free, k, low);
            low.y.push_back(i.low);
            which.push_back(static_cast<std::uint32_t>(which.size()));
        }
        std::vector<std::uint8_t> variables;
        for (std::size_t v = 0; v < sizes_; ++v) variables.push_back(static_cast<std::uint8_t>(v));
        variables.insert(variables.end(), free.begin(), free.begin() + static_cast<std::ptrdiff_t>(k));
        auto l = fit_simplest(low, which, variables, 1);
        if (!l) return false;
        for (std::size_t i = 0; i < intervals.size(); ++i) low.y[i] = intervals[i].high;
        auto h = fit_simplest(low, which, variables, 1);
        if (!h) return false;
        out = {std::move(*l), std::move(*h), stride};
        return true;
    }

    // A sample the cell does not occur in must be one where its formulas say it is empty, or one
    // smaller than all where it does occur.
    bool present_where_it_should(const std::vector<std::uint32_t>& rows, const Cell& cell) const {
        const auto samples = table_.samples().size();
        std::vector<bool> present(samples, false);
        for (const auto row : rows) present[s_.sample[row]] = true;
        std::vector<std::int64_t> least(sizes_, INT64_MAX);
        for (std::size_t i = 0; i < samples; ++i)
            for (std::size_t v = 0; v < sizes_ && present[i]; ++v)
                least[v] = std::min(least[v], table_.samples()[i][v]);
        for (std::size_t i = 0; i < samples; ++i) {
            if (present[i]) continue;
            std::vector<std::int64_t> x(kMaxVariables, 0);
            std::copy(table_.samples()[i].begin(), table_.samples()[i].end(), x.begin());
            if (cell.free.empty()
                    ? cell.count.integer(x.data()) == 0
                    : cell.ranges[0].high.integer(x.data()) < cell.ranges[0].low.integer(x.data()))
                continue;
            bool smaller = false;
            for (std::size_t v = 0; v < sizes_; ++v) smaller |= table_.samples()[i][v] < least[v];
            if (!smaller) return false;
        }
        return true;
    }

    const Stream& s_;
    const RowTable& table_;
    const CellOptions& options_;
    std::size_t sizes_, loops_;
    std::vector<std::uint8_t> order_;
    std::vector<std::int32_t> least_first_, least_left_;
    std::vector<int> caps_;
    std::vector<std::set<std::size_t>> depends_;     // by loop: sizes its trip count depends on
    std::vector<std::set<std::size_t>> bounded_by_;  // by loop: outer loops it depends on
    std::vector<Feature> features_;
    std::vector<Polynomial> polynomials_;
    std::vector<Cell> cells_;
    std::vector<Packed> packed_;
    std::size_t lost_ = 0, give_up_ = 0;
    std::int64_t work_ = 0;
};

}  // namespace

StreamModel learn(const Stream& stream, const RowTable& table, const CellOptions& options) {
    return Learner(stream, table, options).run();
}

}  // namespace revisit::predict
