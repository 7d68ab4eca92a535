#include "report/page_listings.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "models/hit_table.h"
#include "symbols/listing.h"

namespace revisit {
namespace {

// As all of this folder: its library is compiled for one kind of tree alone.
using Json = nlohmann::ordered_json;

constexpr std::size_t kFunctions = 40;
constexpr std::size_t kLongestText = 200;

struct Function {
    std::string module;
    std::vector<std::uint64_t> sites;
    double misses = 0;
};

std::vector<Function> worst_functions(const Profile& profile, const std::vector<CacheSpec>& caches) {
    std::map<std::pair<std::string, std::string>, Function> functions;
    HitTable table(caches.empty() ? CacheSpec{32768, 8, profile.granularity, ""}
                                  : caches[caches.size() > 1 ? 1 : 0]);
    for (const Site& site : profile.sites) {
        if (!site.module.starts_with('/') || site.offset == 0) continue;
        // What was inlined stands in the function around it.
        const Frame& frame = site.inlined.empty() ? site.frame : site.inlined.back();
        Function& function = functions[{site.module, frame.function}];
        function.module = site.module;
        function.sites.push_back(site.offset);
        function.misses += table.misses(site.reuse);
    }
    std::vector<Function> out;
    for (auto& [key, function] : functions) out.push_back(std::move(function));
    std::ranges::stable_sort(out, std::greater(), &Function::misses);
    if (out.size() > kFunctions) out.resize(kFunctions);
    return out;
}

}  // namespace

std::string listings_list(const std::vector<PageProfile>& profiles,
                          const std::vector<CacheSpec>& caches, std::size_t most) {
    std::string out;
    for (const PageProfile& entry : profiles)
        for (const Function& function : worst_functions(entry.profile, caches)) {
            auto listing = listing_of(function.module, function.sites);
            if (!listing || listing->empty()) continue;
            Json rows = Json::array();
            for (const Instruction& one : *listing)
                rows.push_back({one.address, one.text.substr(0, kLongestText)});
            std::string row = Json::array({function.module, std::move(rows)})
                                  .dump(-1, ' ', true, Json::error_handler_t::replace);
            if (out.size() + row.size() > most) return out;
            out += (out.empty() ? "" : ",") + row;
        }
    return out;
}

}  // namespace revisit
