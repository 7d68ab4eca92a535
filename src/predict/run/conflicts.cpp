// A cache's sets, mapped for real.
//
// SDCM spreads blocks evenly over sets; a column of a matrix whose rows are a power of two long falls
// into one. The slice knows the addresses, so the run is interpreted into a true set-associative cache
// and, beside it, a fully associative one of the same size: what only the first misses is a conflict,
// and the reference with its commonest stride is named.
#include "predict/run/conflicts.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "core/try.h"
#include "engines/set_associative.h"
#include "revisit/blocks.h"

namespace revisit::predict {

Result<Conflicts> map_sets(const Program& program, const Parameters& parameters, const CacheSpec& cache,
                           const Deadline& deadline) {
    auto sets = TRY(CacheSimulator::create(cache));
    CacheSpec whole = cache;
    whole.ways = 0;
    auto full = TRY(CacheSimulator::create(whole));
    struct Tally {
        double misses = 0, conflicts = 0;
        std::uint64_t last = 0;
        std::int64_t stride = 0;  // majority vote
        std::int64_t votes = 0;
    };
    std::vector<Tally> tallies;
    BlockCutter cutter(cache.line);
    RunOptions options;
    options.keep = false;
    options.max_accesses = 400'000'000;
    options.deadline = deadline;
    options.sink = [&](std::span<const std::uint64_t> addresses,
                       std::span<const std::uint32_t> references,
                       std::span<const std::uint32_t> sizes) {
        for (std::size_t i = 0; i < addresses.size(); ++i) {
            if (tallies.size() <= references[i]) tallies.resize(references[i] + 1);
            Tally& t = tallies[references[i]];
            const auto stride = static_cast<std::int64_t>(addresses[i] - t.last);
            if (t.last != 0) {
                if (stride == t.stride)
                    ++t.votes;
                else if (--t.votes < 0)
                    t.stride = stride, t.votes = 1;
            }
            t.last = addresses[i];
        }
        // Sites are carried through the cut so that each line knows its reference.
        auto cut = cutter.cut({addresses, references, sizes, {}, {}},
                              [&](const BlockBatch& batch) -> Result<void> {
                                  for (std::size_t i = 0; i < batch.count(); ++i) {
                                      const auto before = sets.misses(), full_before = full.misses();
                                      sets.access(batch.blocks.subspan(i, 1));
                                      full.access(batch.blocks.subspan(i, 1));
                                      if (sets.misses() == before) continue;
                                      Tally& t = tallies[batch.sites[i]];
                                      t.misses += 1;
                                      t.conflicts += full.misses() == full_before;
                                  }
                                  return {};
                              });
        return cut.has_value();
    };
    const auto trace = TRY(interpret(program, parameters, options));
    Conflicts out;
    out.cache = cache;
    out.accesses = static_cast<double>(sets.accesses());
    out.misses = static_cast<double>(sets.misses());
    out.complete = trace.complete;
    for (const Tally& t : tallies) out.conflicts += t.conflicts;
    const auto number = cache.blocks() / std::max<std::uint64_t>(1, cache.associativity());
    for (std::size_t r = 0; r < tallies.size(); ++r) {
        const Tally& t = tallies[r];
        if (t.conflicts < 0.1 * out.conflicts || t.conflicts == 0) continue;
        const auto& place = trace.references[r];
        const auto& text = program.functions[place.function].references[place.reference];
        Conflicts::Culprit c{text.expression, text.line, t.misses, t.conflicts, t.stride, 0};
        const auto bytes = static_cast<std::uint64_t>(std::abs(t.stride));
        if (bytes >= cache.line && bytes % cache.line == 0)
            c.sets_used = number / std::gcd(number, bytes / cache.line);
        if (c.sets_used == number) c.sets_used = 0;
        out.culprits.push_back(std::move(c));
    }
    std::sort(out.culprits.begin(), out.culprits.end(),
              [](const auto& a, const auto& b) { return a.conflicts > b.conflicts; });
    return out;
}

std::string text_of(const Conflicts& c) {
    char text[256];
    std::snprintf(text, sizeof text,
                  "%s, sets mapped: %.2f %% hits, %.1f %% of the misses are conflicts%s\n",
                  c.cache.name.c_str(), c.accesses > 0 ? 100 * (1 - c.misses / c.accesses) : 0.0,
                  c.misses > 0 ? 100 * c.conflicts / c.misses : 0.0,
                  c.complete ? "" : " (of the part that the time allowed)");
    std::string out = text;
    for (const auto& culprit : c.culprits) {
        std::snprintf(text, sizeof text, "  %s at line %u: %.0f conflict misses",
                      culprit.expression.c_str(), culprit.line, culprit.conflicts);
        out += text;
        if (culprit.sets_used > 0)
            out +=
                ", its stride of " + std::to_string(culprit.stride) + " bytes uses " +
                std::to_string(culprit.sets_used) + (culprit.sets_used == 1 ? " set" : " sets") +
                " of " +
                std::to_string(c.cache.blocks() / std::max<std::uint64_t>(1, c.cache.associativity())) +
                ": pad the rows";
        out += "\n";
    }
    return out;
}

}  // namespace revisit::predict
