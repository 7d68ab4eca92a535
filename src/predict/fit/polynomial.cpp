// Exact polynomials through labelled points.
//
// Gauss elimination, one point at a time, in the field of field.h. A point either raises the rank, or
// agrees with what is known, or contradicts it, and then this degree is given up at once: most fits
// that fail do so after rank + 1 points. The danger is not the fit that fails but the one that is
// silently under-determined; so an answer needs clearly more distinct points than unknowns, is checked
// on every point, and keeps the space its points span, against which a target point is tested later.
#include "predict/fit/polynomial.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_set>

namespace revisit::predict {

int Monomial::degree() const {
    int sum = 0;
    for (const auto p : power) sum += p;
    return sum;
}

std::vector<Monomial> monomials(std::span<const std::uint8_t> variables, int degree,
                                std::span<const int> cap) {
    std::vector<Monomial> all{Monomial{}};
    std::size_t begin = 0;
    for (int d = 1; d <= degree; ++d) {
        const std::size_t end = all.size();
        for (std::size_t i = begin; i < end; ++i) {
            // Extend only by the last variable used or later ones: each monomial comes once.
            std::size_t last = 0;
            for (std::size_t k = 0; k < variables.size(); ++k)
                if (all[i].power[variables[k]]) last = k;
            for (std::size_t k = last; k < variables.size(); ++k) {
                auto m = all[i];
                ++m.power[variables[k]];
                if (!cap.empty() && m.power[variables[k]] > cap[variables[k]]) continue;
                all.push_back(m);
            }
        }
        begin = end;
    }
    return all;
}

Polynomial Polynomial::constant(std::int64_t value) {
    Polynomial p;
    p.terms.push_back({});
    p.coefficients.push_back(Element(value));
    p.echelon.push_back({Element(1)});
    p.pivots.push_back(0);
    return p;
}

long double Polynomial::approximate(const std::int64_t* x) const {
    long double sum = 0, size = 0;
    for (std::size_t i = 0; i < terms.size(); ++i) {
        if (coefficients[i] == Element()) continue;
        const auto ratio = coefficients[i].rational();
        if (!ratio) return std::numeric_limits<long double>::infinity();
        long double term =
            static_cast<long double>(ratio->first) / static_cast<long double>(ratio->second);
        for (std::size_t v = 0; v < kMaxVariables; ++v)
            for (auto p = terms[i].power[v]; p > 0; --p) term *= static_cast<long double>(x[v]);
        sum += term;
        size += std::abs(term);
    }
    return size < 0x1p58L ? static_cast<long double>(integer(x)) : sum;
}

bool Polynomial::uses(std::size_t variable) const {
    return degree_in(variable) > 0;
}

int Polynomial::degree() const {
    int most = 0;
    for (std::size_t i = 0; i < terms.size(); ++i)
        if (coefficients[i] != Element()) most = std::max(most, terms[i].degree());
    return most;
}

int Polynomial::degree_in(std::size_t variable) const {
    int most = 0;
    for (std::size_t i = 0; i < terms.size(); ++i)
        if (coefficients[i] != Element()) most = std::max<int>(most, terms[i].power[variable]);
    return most;
}

namespace {

template <class T>
Element value_of(const Monomial& m, const T* x) {
    Element e(1);
    for (std::size_t v = 0; v < kMaxVariables; ++v)
        for (auto p = m.power[v]; p > 0; --p) e *= Element(static_cast<std::int64_t>(x[v]));
    return e;
}

// Monomials over one point, each from a smaller one by a single product.
class Expander {
 public:
    explicit Expander(const std::vector<Monomial>& terms) {
        for (std::size_t i = 0; i < terms.size(); ++i) {
            Step s{-1, 0};
            for (std::size_t v = 0; v < kMaxVariables && s.from < 0; ++v) {
                if (!terms[i].power[v]) continue;
                auto smaller = terms[i];
                --smaller.power[v];
                for (std::size_t j = 0; j < i; ++j)
                    if (terms[j] == smaller) {
                        s = {static_cast<std::int32_t>(j), static_cast<std::uint8_t>(v)};
                        break;
                    }
            }
            steps_.push_back(s);
        }
        terms_ = &terms;
    }
    void operator()(const std::int32_t* x, Element* row) const {
        for (std::size_t i = 0; i < steps_.size(); ++i)
            row[i] = steps_[i].from < 0 ? value_of((*terms_)[i], x)
                                        : row[steps_[i].from] * Element(x[steps_[i].variable]);
    }

 private:
    struct Step {
        std::int32_t from;
        std::uint8_t variable;
    };
    std::vector<Step> steps_;
    const std::vector<Monomial>* terms_ = nullptr;
};

// A scattered order over n things that visits each once.
std::size_t scatter_step(std::size_t n) {
    std::size_t step = static_cast<std::size_t>(static_cast<double>(n) * 0.6180339887) | 1;
    const auto gcd = [](std::size_t a, std::size_t b) {
        while (b) a = std::exchange(b, a % b);
        return a;
    };
    while (gcd(step, n) != 1) ++step;
    return step;
}

bool enough_distinct(const Points& points, std::span<const std::uint32_t> which,
                     const std::vector<std::uint8_t>& used, std::size_t wanted) {
    std::unordered_set<std::uint64_t> seen;
    for (const auto i : which) {
        std::uint64_t h = 0x9E3779B97F4A7C15ull;
        for (const auto v : used)
            h = (h ^ static_cast<std::uint32_t>(points.at(i)[v])) * 0xff51afd7ed558ccdull + (h >> 31);
        seen.insert(h);
        if (seen.size() >= wanted) return true;
    }
    return false;
}

}  // namespace

Polynomial Polynomial::product(std::vector<Polynomial> factors) {
    auto p = constant(1);
    for (const Polynomial& f : factors) {
        Polynomial next;
        for (std::size_t i = 0; i < p.terms.size(); ++i)
            for (std::size_t j = 0; j < f.terms.size(); ++j) {
                Monomial m = p.terms[i];
                for (std::size_t v = 0; v < kMaxVariables; ++v) m.power[v] += f.terms[j].power[v];
                const auto c = p.coefficients[i] * f.coefficients[j];
                const auto at = std::find(next.terms.begin(), next.terms.end(), m);
                if (at == next.terms.end()) {
                    next.terms.push_back(m);
                    next.coefficients.push_back(c);
                } else {
                    next.coefficients[static_cast<std::size_t>(at - next.terms.begin())] += c;
                }
            }
        p = std::move(next);
    }
    p.factors = std::move(factors);
    return p;
}

bool Polynomial::determined_at(const std::int64_t* x) const {
    if (!factors.empty())
        return std::all_of(factors.begin(), factors.end(),
                           [&](const Polynomial& f) { return f.determined_at(x); });
    std::vector<Element> row(terms.size());
    for (std::size_t i = 0; i < terms.size(); ++i) row[i] = value_of(terms[i], x);
    for (std::size_t r = 0; r < echelon.size(); ++r) {
        const Element factor = row[pivots[r]];
        if (factor == Element()) continue;
        for (std::size_t c = 0; c < row.size(); ++c) row[c] -= factor * echelon[r][c];
    }
    return std::all_of(row.begin(), row.end(), [](Element e) { return e == Element(); });
}

void Polynomial::trim() {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < terms.size(); ++i)
        if (coefficients[i] != Element()) {
            terms[kept] = terms[i];
            coefficients[kept++] = coefficients[i];
        }
    terms.resize(kept);
    coefficients.resize(kept);
    echelon.clear();
    pivots.clear();
}

std::string Polynomial::text(std::span<const std::string> names) const {
    std::string out;
    // Highest degree first, as people write them.
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < terms.size(); ++i)
        if (coefficients[i] != Element()) order.push_back(i);
    std::stable_sort(order.begin(), order.end(),
                     [&](auto a, auto b) { return terms[a].degree() > terms[b].degree(); });
    for (const auto i : order) {
        const auto ratio = coefficients[i].rational();
        const auto [numerator, denominator] =
            ratio.value_or(std::pair<std::int64_t, std::int64_t>{coefficients[i].integer(), 1});
        const bool negative = numerator < 0;
        out += out.empty() ? (negative ? "-" : "") : (negative ? " - " : " + ");
        std::string factors;
        for (std::size_t v = 0; v < kMaxVariables; ++v)
            if (const auto p = terms[i].power[v]; p > 0) {
                if (!factors.empty()) factors += "*";
                factors += v < names.size() ? names[v] : "x" + std::to_string(v);
                if (p > 1) factors += "^" + std::to_string(p);
            }
        const auto size = negative ? -numerator : numerator;
        if (factors.empty())
            out += std::to_string(size);
        else
            out += (size == 1 ? "" : std::to_string(size) + "*") + factors;
        if (denominator != 1) out += "/" + std::to_string(denominator);
    }
    return out.empty() ? "0" : out;
}

Fit fit(const Points& points, std::span<const std::uint32_t> which, const std::vector<Monomial>& terms,
        Polynomial& out) {
    const std::size_t columns = terms.size();
    std::vector<std::vector<Element>> rows;  // each of columns + 1, pivot scaled to 1
    std::vector<std::size_t> pivots;
    std::vector<Element> row(columns + 1);
    const Expander expand(terms);
    const std::size_t step = scatter_step(which.size());
    const std::size_t patience = 2 * columns + 20;  // points in a row that add nothing
    std::size_t idle = 0;
    for (std::size_t n = 0, at = 0; n < which.size() && idle < patience;
         ++n, at = (at + step) % which.size()) {
        expand(points.at(which[at]), row.data());
        row[columns] = Element(points.y[which[at]]);
        for (std::size_t r = 0; r < rows.size(); ++r) {
            const Element factor = row[pivots[r]];
            if (factor == Element()) continue;
            for (std::size_t c = pivots[r]; c <= columns; ++c) row[c] -= factor * rows[r][c];
        }
        std::size_t pivot = 0;
        while (pivot < columns && row[pivot] == Element()) ++pivot;
        if (pivot == columns) {
            if (row[columns] != Element()) return Fit::inconsistent;
            ++idle;
            continue;
        }
        idle = 0;
        const Element scale = row[pivot].inverse();
        for (std::size_t c = pivot; c <= columns; ++c) row[c] *= scale;
        // Kept in rising order of pivots, so that one sweep reduces a new row fully.
        const auto place = std::upper_bound(pivots.begin(), pivots.end(), pivot) - pivots.begin();
        rows.insert(rows.begin() + place, row);
        pivots.insert(pivots.begin() + place, pivot);
    }
    // Clear above the pivots, last row first: then each row reads off one coefficient, free ones being
    // 0.
    for (std::size_t r = rows.size(); r-- > 0;)
        for (std::size_t above = 0; above < r; ++above) {
            const Element factor = rows[above][pivots[r]];
            if (factor == Element()) continue;
            for (std::size_t c = pivots[r]; c <= columns; ++c) rows[above][c] -= factor * rows[r][c];
        }
    out.terms = terms;
    out.coefficients.assign(columns, Element());
    for (std::size_t r = 0; r < rows.size(); ++r) out.coefficients[pivots[r]] = rows[r][columns];
    out.pivots = pivots;
    std::vector<std::uint8_t> used;
    for (std::size_t v = 0; v < kMaxVariables; ++v)
        for (const auto& t : terms)
            if (t.power[v]) {
                used.push_back(static_cast<std::uint8_t>(v));
                break;
            }
    const bool plenty =
        enough_distinct(points, which, used, rows.size() + 3 + rows.size() / 4) || columns == 1;
    for (auto& r : rows) r.resize(columns);
    out.echelon = std::move(rows);
    if (!agrees(out, points, which)) return Fit::inconsistent;
    return plenty ? Fit::exact : Fit::undetermined;
}

namespace {

// A polynomial made ready for many points: of each term that counts, its factors in sequence.
class Evaluator {
 public:
    explicit Evaluator(const Polynomial& p) {
        for (std::size_t i = 0; i < p.terms.size(); ++i) {
            if (p.coefficients[i] == Element()) continue;
            for (std::size_t v = 0; v < kMaxVariables; ++v)
                factors_.insert(factors_.end(), p.terms[i].power[v], static_cast<std::uint8_t>(v));
            terms_.push_back({p.coefficients[i], factors_.size()});
        }
    }
    Element operator()(const std::int32_t* x) const {
        Element sum;
        std::size_t at = 0;
        for (const auto& [coefficient, end] : terms_) {
            Element term = coefficient;
            for (; at < end; ++at) term *= Element(x[factors_[at]]);
            sum += term;
        }
        return sum;
    }

 private:
    std::vector<std::uint8_t> factors_;
    std::vector<std::pair<Element, std::size_t>> terms_;  // coefficient, end of its factors
};

}  // namespace

bool agrees(const Polynomial& p, const Points& points, std::span<const std::uint32_t> which) {
    const Evaluator value(p);
    return std::all_of(which.begin(), which.end(),
                       [&](auto i) { return value(points.at(i)) == Element(points.y[i]); });
}

namespace {

// Of `order`, the variables that are not affine in the earlier ones (and a constant) over the points.
std::vector<std::uint8_t> independent(const Points& points, std::span<const std::uint32_t> which,
                                      std::span<const std::uint8_t> order) {
    std::vector<std::uint8_t> kept;
    Points some;  // scattered, to fit each variable by the kept ones
    some.variables = points.variables;
    std::vector<std::uint32_t> chosen;
    const std::size_t step = scatter_step(which.size());
    for (std::size_t at = 0; chosen.size() < std::min<std::size_t>(which.size(), 400);
         at = (at + step) % which.size()) {
        const auto* x = points.at(which[at]);
        some.x.insert(some.x.end(), x, x + points.variables);
        chosen.push_back(static_cast<std::uint32_t>(chosen.size()));
    }
    some.y.resize(chosen.size());
    const auto dependent = [&](std::uint8_t v) {
        for (const auto n : chosen) some.y[n] = some.at(n)[v];
        Polynomial p;
        if (fit(some, chosen, monomials(kept, 1), p) == Fit::inconsistent) return false;
        const Evaluator value(p);
        return std::all_of(which.begin(), which.end(),
                           [&](auto i) { return value(points.at(i)) == Element(points.at(i)[v]); });
    };
    for (const auto v : order)
        if (!dependent(v)) kept.push_back(v);
    return kept;
}

}  // namespace

std::optional<Polynomial> fit_simplest(const Points& points, std::span<const std::uint32_t> which,
                                       std::span<const std::uint8_t> order, int max_degree,
                                       std::span<const int> cap) {
    if (which.empty()) return std::nullopt;
    if (std::all_of(which.begin(), which.end(),
                    [&](auto i) { return points.y[i] == points.y[which[0]]; }))
        return Polynomial::constant(points.y[which[0]]);
    const auto variables = independent(points, which, order);
    for (int degree = 1; degree <= max_degree; ++degree) {
        Polynomial p;
        const auto terms = monomials(variables, degree, cap);
        if (terms.size() > 300) return std::nullopt;
        const auto result = fit(points, which, terms, p);
        if (result == Fit::inconsistent) continue;
        // The support of the solution, on its own if that does: fewer unknowns, a stronger statement.
        std::vector<std::uint8_t> support;
        for (const auto v : variables)
            if (p.uses(v)) support.push_back(v);
        if (support.size() < variables.size() || result == Fit::undetermined) {
            Polynomial q;
            if (fit(points, which, monomials(support, degree, cap), q) == Fit::exact) return q;
        }
        if (result == Fit::exact) return p;
        // Too few points for all variables at once: look for few variables that do.
        const auto n = variables.size();
        for (std::size_t size = 1; size <= 3 && size < n; ++size)
            for (std::uint32_t mask = 0; mask < (1u << n); ++mask) {
                if (static_cast<std::size_t>(__builtin_popcount(mask)) != size) continue;
                std::vector<std::uint8_t> subset;
                for (std::size_t k = 0; k < n; ++k)
                    if (mask >> k & 1) subset.push_back(variables[k]);
                if (fit(points, which, monomials(subset, degree, cap), p) == Fit::exact) return p;
            }
        return std::nullopt;
    }
    return std::nullopt;
}

}  // namespace revisit::predict
