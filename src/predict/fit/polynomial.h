// Exact polynomials through labelled points.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "predict/fit/field.h"

namespace revisit::predict {

inline constexpr std::size_t kMaxVariables = 16;

// Points in the order they were seen: `variables` integers each, and the value wanted there.
struct Points {
    std::size_t variables = 0;
    std::vector<std::int32_t> x;
    std::vector<std::int64_t> y;

    std::size_t count() const { return y.size(); }
    const std::int32_t* at(std::size_t i) const { return x.data() + i * variables; }
};

struct Monomial {
    std::array<std::uint8_t, kMaxVariables> power{};
    int degree() const;
    bool operator==(const Monomial&) const = default;
};

// All monomials in `variables` of the total degree, and of at most cap[v] in each variable.
std::vector<Monomial> monomials(std::span<const std::uint8_t> variables, int degree,
                                std::span<const int> cap = {});

struct Polynomial {
    std::vector<Monomial> terms;
    std::vector<Element> coefficients;
    // What the points span: rows in echelon form over `terms`. A point whose row lies outside is one
    // the fit says nothing about.
    std::vector<std::vector<Element>> echelon;
    std::vector<std::size_t> pivots;
    std::vector<Polynomial> factors;  // of a product: it is determined where they are

    // The product of polynomials, each with its own points behind it.
    static Polynomial product(std::vector<Polynomial> factors);

    static Polynomial constant(std::int64_t value);

    template <class T>
    Element operator()(const T* x) const {
        Element sum;
        for (std::size_t i = 0; i < terms.size(); ++i) {
            Element term = coefficients[i];
            for (std::size_t v = 0; v < kMaxVariables; ++v)
                for (auto p = terms[i].power[v]; p > 0; --p)
                    term *= Element(static_cast<std::int64_t>(x[v]));
            sum += term;
        }
        return sum;
    }
    template <class T>
    std::int64_t integer(const T* x) const {
        return (*this)(x).integer();
    }

    // The value where it may be too large for integer(); infinite when a coefficient is no fraction.
    long double approximate(const std::int64_t* x) const;

    bool uses(std::size_t variable) const;
    int degree() const;
    int degree_in(std::size_t variable) const;
    bool determined_at(const std::int64_t* x) const;
    void
    trim();  // drops terms with coefficient 0; the echelon stays over the old ones and is dropped too
    std::string text(std::span<const std::string> names) const;
};

enum class Fit : std::uint8_t { exact, inconsistent, undetermined };

// The polynomial over `terms` through the chosen points: exact when all of them agree with it and
// there are clearly more distinct ones than unknowns.
Fit fit(const Points& points, std::span<const std::uint32_t> which, const std::vector<Monomial>& terms,
        Polynomial& out);

// The simplest polynomial through the points: lowest degree first, then as few variables as do.
// `order` lists the variables that may be used, the preferred ones first.
std::optional<Polynomial> fit_simplest(const Points& points, std::span<const std::uint32_t> which,
                                       std::span<const std::uint8_t> order, int max_degree,
                                       std::span<const int> cap = {});

bool agrees(const Polynomial& p, const Points& points, std::span<const std::uint32_t> which);

}  // namespace revisit::predict
