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
#include "predict/fit/cells.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "predict/fit/describe.h"
#include "predict/fit/features.h"
#include "predict/fit/partition.h"

namespace revisit::predict {
namespace {

using Key = std::vector<std::int8_t>;

struct Group {
    Key key;
    std::vector<std::uint32_t> rows;
    std::vector<std::int32_t> by_sample;  // rows in each
    int label = -1;
    bool anchored = false;  // occurs in the largest samples
};

class Learner {
 public:
    Learner(const Stream& s, const RowTable& table, const CellOptions& options)
        : s_(s),
          table_(table),
          options_(options),
          sizes_(table.sizes()),
          loops_(s.loops),
          bounds_(bounds_of(s, table.sizes())),
          view_(s, table, bounds_, options),
          work_{0, options.work, options.deadline},
          describer_(s, table, bounds_, work_, options.boxes) {
        for (std::size_t v = 0; v < sizes_ + loops_; ++v)
            order_.push_back(static_cast<std::uint8_t>(v));
    }

    StreamModel run() {
        StreamModel best;
        best.rows = s_.points.count();
        best.lost = best.rows + 1;
        std::size_t tried = 0, in_vain = 0;
        for (const Plan& plan : plans_for(loops_, options_.period, options_.modulus, options_.shift)) {
            if (++tried > 1 && loops_ == 0) break;
            polynomials_.clear();
            cells_.clear();
            lost_ = 0;
            give_up_ = best.lost;
            work_.done += static_cast<std::int64_t>(best.rows * (1 + view_.of(plan).size() / 2));
            auto groups = cut(plan);
            label(groups);
            std::vector<Group*> all;
            for (auto& g : groups)
                if (g.label != INT32_MIN) all.push_back(&g);
            if (!all.empty()) grow(all, {});
            in_vain = lost_ < best.lost ? 0 : in_vain + 1;
            if (lost_ < best.lost) {
                best.lost = lost_;
                best.cells = std::move(cells_);
            }
            if (best.lost == 0 || work_.spent() || (options_.hurry && in_vain == 2)) break;
        }
        best.work = work_.done;
        best.lost = std::min(best.lost, best.rows);
        for (auto& c : best.cells) {
            c.reference = s_.reference;
            c.source = s_.source;
        }
        return best;
    }

 private:
    // Rows by the values of all features, the pieces that the largest samples show first.
    std::vector<Group> cut(const Plan& plan) {
        features_ = view_.of(plan);
        Partition partition(s_.points.count());
        for (const Feature& f : features_) partition.refine(view_.column(f));
        std::vector<Group> groups(partition.finish());
        const auto& group_of = partition.group_of();
        for (std::size_t row = 0; row < group_of.size(); ++row) {
            auto& g = groups[group_of[row]];
            if (g.rows.empty())
                for (const Feature& f : features_) g.key.push_back(view_.value(f, row));
            g.rows.push_back(static_cast<std::uint32_t>(row));
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
            work_.done += static_cast<std::int64_t>(g.rows.size()) + 3000;
            if (auto p = work_.spent() ? std::nullopt
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
        if (work_.spent()) {
            lost_ = give_up_;
            return;
        }
        const int label = node.front()->label;
        const bool pure =
            std::all_of(node.begin(), node.end(), [&](const Group* g) { return g->label == label; });
        if (pure && label >= 0 && countable(node)) {
            auto rows = rows_of(node);
            Cell cell;
            if (describer_.describe(rows, polynomials_[label], cell)) {
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
            out += (out.empty() ? "" : ", ") + view_.name(features_[f], value);
        return out;
    }

    std::vector<std::uint32_t> rows_of(const std::vector<Group*>& node) const {
        std::vector<std::uint32_t> rows;
        for (const auto* g : node) rows.insert(rows.end(), g->rows.begin(), g->rows.end());
        return rows;
    }

    // The feature that says most about the label.
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
        if (options_.boxes) return true;  // boxes need no such polynomial
        work_.done += 1000;
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

    // Whether the rows of every sample are a box: all values of each loop with all of the others.
    bool box(const std::vector<Group*>& node) {
        const auto samples = table_.samples().size();
        std::vector<std::int64_t> rows(samples, 0), volume(samples, 1);
        for (const auto* g : node) {
            work_.done += static_cast<std::int64_t>(g->rows.size());
            for (std::size_t i = 0; i < samples; ++i) rows[i] += g->by_sample[i];
        }
        for (std::size_t l = 0; l < loops_; ++l) {
            std::vector<Extremes> side(samples);
            for (const auto* g : node)
                for (const auto r : g->rows) side[s_.sample[r]].add(s_.points.at(r)[sizes_ + l]);
            for (std::size_t i = 0; i < samples; ++i)
                if (rows[i]) volume[i] *= side[i].high - side[i].low + 1;
        }
        for (std::size_t i = 0; i < samples; ++i)
            if (rows[i] && rows[i] != volume[i]) return false;
        return true;
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
                if (options_.boxes ? box(child) : countable(child))
                    for (const auto* g : child) saved += static_cast<double>(g->rows.size());
            saved /= 1 + 0.01 * static_cast<double>(children.size());
            if (saved > best_saved) {
                best_saved = saved;
                best = static_cast<int>(f);
            }
        }
        return best >= 0 ? best : any_feature(node);
    }

    const Stream& s_;
    const RowTable& table_;
    const CellOptions& options_;
    std::size_t sizes_, loops_;
    std::vector<std::uint8_t> order_;
    LoopBounds bounds_;
    Features view_;
    Work work_;
    Describer describer_;
    std::vector<Feature> features_;
    std::vector<Polynomial> polynomials_;
    std::vector<Cell> cells_;
    std::size_t lost_ = 0, give_up_ = 0;
};

}  // namespace

StreamModel learn(const Stream& stream, const RowTable& table, const CellOptions& options) {
    return Learner(stream, table, options).run();
}

}  // namespace revisit::predict
