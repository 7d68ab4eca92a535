// Orders and tiles of a nest, ranked.
//
// Each legal order of the loops (dependence.cpp) is written as source (nest.cpp), predicted as any
// source is, and ranked by the cycles its misses cost. The best orders are then tried in tiles. What a
// miss costs is the latency of the level behind it, in round numbers: the ranking is by misses, the
// levels only have to be weighed against each other.
#include "predict/advise/advise.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <set>
#include <sstream>

#include "core/errors.h"
#include "core/try.h"
#include "predict/advise/dependence.h"
#include "predict/predict.h"

namespace revisit::predict {
namespace {

constexpr std::size_t kMostLoops = 4;  // permuted
constexpr std::size_t kTiledOrders = 2;
constexpr std::int64_t kTiles[] = {16, 32, 64};
// Cycles behind each level, the last one's for memory.
constexpr double kCycles[] = {10, 30, 150};

// The source with one nest rewritten, removed again.
class Candidate {
 public:
    Candidate(const Request& request, const std::string& text) {
        std::error_code ignored;
        const auto folder =
            std::filesystem::temp_directory_path(ignored).string() + "/revisit-advise.XXXXXX";
        std::string name = folder;
        if (!mkdtemp(name.data())) return;
        folder_ = name;
        const std::filesystem::path original(request.source.path);
        path_ = folder_ + "/" + original.filename().string();
        std::ofstream(path_) << text;
        include_ = "-I" + std::filesystem::absolute(original, ignored).parent_path().string();
    }
    ~Candidate() {
        std::error_code ignored;
        if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
    }
    Candidate(const Candidate&) = delete;
    Candidate& operator=(const Candidate&) = delete;

    Request request(Request from) const {
        from.source.path = path_;
        from.source.flags.push_back(include_);
        return from;
    }

 private:
    std::string folder_, path_, include_;
};

std::string name_of(const Nest& nest, const Order& order) {
    std::string name;
    for (const auto k : order.loops) name += (name.empty() ? "" : " ") + nest.loops[k].variable;
    if (order.tile == 0) return name;
    std::string tiled;
    for (const auto k : order.loops)
        if (order.tiled[k]) tiled += (tiled.empty() ? "" : " ") + nest.loops[k].variable;
    return name + ", " + tiled + " in tiles of " + std::to_string(order.tile);
}

class Adviser {
 public:
    Adviser(const Request& request, std::string source, const std::vector<CacheSpec>& caches)
        : request_(request), source_(std::move(source)), caches_(caches) {
        request_.bins = Binning::log2(8);
        request_.granularity = 64;
        request_.method = Method::automatic;
        request_.simulate_up_to = 10'000'000;
        request_.simulate_at_most = 60'000'000;
        request_.budget = std::max(1.0, request.budget / 5);
    }

    Result<Advice> advice(const Nest& nest) {
        Advice out;
        out.line = nest.loops.front().line;
        out.caches = caches_;
        const auto depends = TRY(dependences(request_, nest));
        std::vector<Order> orders;
        Order order;
        order.loops.resize(nest.loops.size());
        order.tiled.assign(nest.loops.size(), false);
        std::iota(order.loops.begin(), order.loops.end(), 0);
        const Order original = order;
        do {
            if (is_legal(depends, nest, order))
                orders.push_back(order);
            else
                ++out.illegal;
        } while (std::next_permutation(order.loops.begin(), order.loops.end()));
        if (orders.empty() || orders.front() != original)
            return fail("the order of the source itself does not look legal");
        for (const Order& o : orders) add(nest, o, out);
        rank(out);
        for (std::size_t best = 0; best < std::min(kTiledOrders, orders.size()); ++best)
            for (const auto tile : kTiles) {
                Order tiled = out.variants[best].order;
                tiled.tile = tile;
                tiled.tiled.assign(nest.loops.size(), true);
                tiled_.push_back(tiled);
                // All but the outermost: its elements need not come back.
                if (nest.loops.size() > 2) {
                    tiled.tiled[tiled.loops.front()] = false;
                    tiled_.push_back(tiled);
                }
            }
        for (const Order& o : tiled_)
            if (is_legal(depends, nest, o)) add(nest, o, out);
        rank(out);
        const auto at = std::find_if(out.variants.begin(), out.variants.end(),
                                     [&](const Variant& v) { return v.order == original; });
        if (at == out.variants.end()) return fail("the nest as it is cannot be predicted");
        out.original = static_cast<std::size_t>(at - out.variants.begin());
        out.source = nest.indent + rewritten(nest, out.variants.front().order);
        return out;
    }

 private:
    void add(const Nest& nest, const Order& order, Advice& out) {
        const Candidate candidate(request_, source_.substr(0, nest.begin) + rewritten(nest, order) +
                                                source_.substr(nest.end));
        const auto p = predict(candidate.request(request_));
        Variant v;
        v.order = order;
        v.name = name_of(nest, order);
        if (!p) {
            out.notes.push_back(v.name + ": " + p.error().message);
            return;
        }
        v.accesses = v.cost = p->profile.accesses;  // a cycle each, as hits
        v.certainty = p->certainty();
        for (std::size_t k = 0; k < caches_.size(); ++k) {
            const auto cache = predict_cache(p->profile, caches_[k]);
            v.misses.push_back(cache.miss_rate * p->profile.accesses);
            const bool last = k + 1 == caches_.size();
            v.cost += v.misses.back() * (last ? kCycles[2] : kCycles[std::min<std::size_t>(k, 1)]);
        }
        out.variants.push_back(std::move(v));
    }

    static void rank(Advice& out) {
        std::stable_sort(out.variants.begin(), out.variants.end(),
                         [](const Variant& a, const Variant& b) { return a.cost < b.cost; });
    }

    Request request_;
    std::string source_;
    std::vector<CacheSpec> caches_;
    std::vector<Order> tiled_;
};

}  // namespace

Result<std::vector<Advice>> advise(const Request& request, const std::vector<CacheSpec>& caches) {
    if (caches.empty())
        return fail(ErrorCode::no_cache, "", "advice", "the caches of this machine are not known");
    std::ifstream in(request.source.path);
    std::ostringstream text;
    text << in.rdbuf();
    // The nests of the function: those with a loop on a line where the compiled function has one.
    const auto programs = TRY(compile(request.source, {request.macros}));
    std::set<std::pair<std::uint32_t, std::string>> loops;
    for (const Function& f : programs.front().functions)
        for (const Loop& l : f.loops) loops.emplace(l.line, l.variable);
    std::vector<Advice> out;
    Error why{{}, {}, "no nest of two to four affine loops, one all that the other does"};
    for (const Nest& nest : find_nests(text.str())) {
        const bool ours = std::any_of(nest.loops.begin(), nest.loops.end(), [&](const LoopText& l) {
            return loops.contains({l.line, l.variable});
        });
        if (!ours || nest.loops.size() > kMostLoops) continue;
        auto advice = Adviser(request, text.str(), caches).advice(nest);
        if (advice)
            out.push_back(std::move(*advice));
        else {
            why = advice.error();
            why.place = "line " + std::to_string(nest.loops.front().line);
        }
    }
    if (out.empty()) return in_file(request.source.path, why);
    return out;
}

std::string text_of(const Advice& advice) {
    const auto count = [](double n) {
        char text[32];
        std::snprintf(text, sizeof text, "%.3g", n);
        return std::string(text);
    };
    const auto padded = [](std::string text, std::size_t width) {
        if (text.size() < width) text.insert(0, width - text.size(), ' ');
        return text;
    };
    std::string out =
        "Nest at line " + std::to_string(advice.line) + ": misses by order of its loops\n";
    std::size_t wide = 8;
    for (const Variant& v : advice.variants) wide = std::max(wide, v.name.size());
    out += "  " + std::string(wide, ' ');
    for (const CacheSpec& c : advice.caches) out += padded(c.name, 12);
    out += "   cost  certainty\n";
    const double own = advice.variants[advice.original].cost;
    for (const Variant& v : advice.variants) {
        out += "  " + v.name + std::string(wide - v.name.size(), ' ');
        for (const double m : v.misses) out += padded(count(m), 12);
        char relative[32];
        std::snprintf(relative, sizeof relative, "%.2f", own > 0 ? v.cost / own : 1.0);
        out += padded(relative, 7) + "  " + std::string(revisit::name_of(v.certainty)) +
               (&v == &advice.variants[advice.original] ? "  (as written)" : "") + "\n";
    }
    if (advice.illegal > 0)
        out += "  " + std::to_string(advice.illegal) + " orders would change results\n";
    for (const auto& n : advice.notes) out += "  " + n + "\n";
    if (advice.original == 0) return out + "\nThe nest as it is written misses least.\n";
    return out + "\n" + advice.source + "\n";
}

}  // namespace revisit::predict
