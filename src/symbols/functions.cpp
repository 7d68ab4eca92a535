#include "symbols/functions.h"

#include <cxxabi.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "symbols/rust_names.h"

namespace revisit {

// Only what is mangled: __cxa_demangle takes bare types too, and a C global called "a" is no "signed
// char".
std::string demangled(const char* name) {
    if (!name) return {};
    if (std::string rust = rust_name(name); !rust.empty()) return rust;
    if (!std::string_view(name).starts_with("_Z")) return name;
    int status = 0;
    char* plain = abi::__cxa_demangle(name, nullptr, nullptr, &status);
    std::string result = status == 0 && plain ? plain : name;
    std::free(plain);
    return plain_rust_name(name, std::move(result));
}

FunctionIndex::FunctionIndex(std::vector<FunctionSymbol> symbols) : symbols_(std::move(symbols)) {
    // Of those that begin together the last one counts: the shortest, then the best.
    std::ranges::stable_sort(
        symbols_, {}, [](const FunctionSymbol& s) { return std::tuple(s.start, ~s.bytes, s.rank); });
    cut_sized();
    fill_gaps();
}

// A sweep from low to high with a stack of the functions that are open.
void FunctionIndex::cut_sized() {
    std::vector<std::uint32_t> open;
    std::uint64_t from = 0;
    auto end_of = [&](std::uint32_t i) {
        const FunctionSymbol& s = symbols_[i];
        return s.bytes > ~s.start ? ~std::uint64_t{0} : s.start + s.bytes;
    };
    auto give = [&](std::uint64_t until, std::uint32_t symbol) {
        if (from < until) ranges_.push_back({from, until, symbol});
        from = std::max(from, until);
    };
    auto close_before = [&](std::uint64_t address) {
        for (; !open.empty() && end_of(open.back()) <= address; open.pop_back())
            give(end_of(open.back()), open.back());
    };
    for (std::uint32_t i = 0; i < symbols_.size(); i++) {
        if (symbols_[i].bytes == 0) continue;
        close_before(symbols_[i].start);
        if (!open.empty()) give(symbols_[i].start, open.back());
        from = symbols_[i].start;
        open.push_back(i);
    }
    close_before(~std::uint64_t{0});
}

void FunctionIndex::fill_gaps() {
    std::vector<Range> labels;
    std::size_t next = 0;  // range that ends behind the label
    for (std::uint32_t i = 0; i < symbols_.size(); i++) {
        const FunctionSymbol& s = symbols_[i];
        if (s.bytes != 0) continue;
        while (next < ranges_.size() && ranges_[next].high <= s.start) next++;
        std::uint64_t until = s.end_of_section;
        if (next < ranges_.size()) until = std::min(until, ranges_[next].low);
        if (!labels.empty()) labels.back().high = std::min(labels.back().high, s.start);
        if (s.start < until) labels.push_back({s.start, until, i});
    }
    std::erase_if(labels, [](const Range& r) { return r.low >= r.high; });
    std::size_t sized = ranges_.size();
    ranges_.insert(ranges_.end(), labels.begin(), labels.end());
    std::ranges::inplace_merge(ranges_, ranges_.begin() + static_cast<std::ptrdiff_t>(sized), {},
                               &Range::low);
}

const FunctionSymbol* FunctionIndex::at(std::uint64_t address) const {
    auto after = std::ranges::upper_bound(ranges_, address, {}, &Range::low);
    if (after == ranges_.begin() || address >= std::prev(after)->high) return nullptr;
    return &symbols_[std::prev(after)->symbol];
}

}  // namespace revisit
