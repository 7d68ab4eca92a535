#include "watch/estimate/site_facts.h"

#include <fmt/format.h>

#include <string>
#include <tuple>

#include "core/profile_sums.h"
#include "models/hit_table.h"
#include "revisit/cache.h"
#include "revisit/units.h"
#include "symbols/symbolize.h"

namespace revisit::watch {
namespace {

using Instruction = std::pair<std::string, std::uint64_t>;         // module, address in it
using Line = std::tuple<std::string, std::uint32_t, std::string>;  // file, line, function

struct Found {
    Instruction instruction;
    Line line;
};

class Finder {
 public:
    explicit Finder(const Origins& origins) : origins_(origins) {}

    const Found& at(std::uint32_t place) {
        auto [found, is_new] = known_.try_emplace(place);
        if (!is_new || place >= origins_.places.size()) return found->second;
        const CodePlace& from = origins_.places[place];
        Found& to = found->second;
        if (from.module == kNowhere) {
            to.instruction.second = from.offset;
            return to;
        }
        const std::string& path = origins_.modules[from.module].path;
        CodeSymbol symbol = origins_.symbols->file(path).code_at(from.offset);
        to.instruction = {path, symbol.address};
        to.line = {symbol.frame.file, symbol.frame.line, symbol.frame.function};
        return to;
    }

 private:
    const Origins& origins_;
    std::unordered_map<std::uint32_t, Found> known_;
};

// Bytes of each line that the sites which miss use of it.
void add_line_use(Profile& profile, const std::map<Instruction, WindowLineUse::Sums>& seen) {
    constexpr double kEnough = 8;  // lines of a site
    const std::vector<CacheSpec> caches = host_caches();
    if (caches.empty()) return;
    const CacheSpec& cache = caches[caches.size() > 1 ? 1 : 0];
    if (cache.line != profile.granularity) return;
    HitTable table(cache);
    LineUseTotals totals{
        fmt::format("{} ({})", cache.name, format_bytes(static_cast<double>(cache.bytes))),
        cache.line,
        {}};
    for (Site& site : profile.sites) {
        auto found = seen.find({site.module, site.offset});
        const double misses = table.misses(site.reuse);
        if (found == seen.end() || found->second.lines < kEnough || misses <= 0) continue;
        site.line_use = {misses, misses * found->second.used(), found->second.parts,
                         found->second.error()};
        sum_up(totals.use, site.line_use);
    }
    if (totals.use.fetches <= 0) return;
    for (Object& object : profile.objects)
        for (const Site& site : profile.sites)
            if (site.data == object.kind + " " + object.name) sum_up(object.line_use, site.line_use);
    profile.line_use = totals;
    profile.notes.push_back(
        "line use: bytes of a line that are used within a window after its first touch; what is used "
        "later is not counted");
}

}  // namespace

void add_site_facts(Profile& profile, const Samples& samples, const Origins& origins) {
    constexpr std::uint64_t kEnough = 8;  // blocks of a site that were compared
    Finder finder(origins);
    std::map<Line, double> lines;
    std::map<Instruction, double> instructions;
    std::map<Instruction, SiteVisits> visits;
    double all = 0;
    for (const auto& [number, thread] : samples.threads)
        thread.for_places([&](std::size_t sample, std::uint32_t place, double share) {
            if (place == kNowhere) return;
            const Found& at = finder.at(place);
            double time = share * static_cast<double>(thread.samples[sample].period);
            lines[at.line] += time;
            instructions[at.instruction] += time;
            all += time;
        });
    for (const auto& [pc, place] : samples.places_by_pc)
        if (auto seen = samples.visits.sites().find(pc); seen != samples.visits.sites().end()) {
            SiteVisits& site = visits[finder.at(place).instruction];
            site.fresh += seen->second.fresh;
            site.regular += seen->second.regular;
        }
    std::map<Instruction, WindowLineUse::Sums> line_use;
    for (const auto& [pc, sums] : samples.line_use.sites())
        if (auto place = samples.places_by_pc.find(pc); place != samples.places_by_pc.end())
            line_use[finder.at(place->second).instruction].merge(sums);
    add_line_use(profile, line_use);
    for (Site& site : profile.sites) {
        Instruction instruction{site.module, site.offset};
        auto share = [&](const auto& times, const auto& key) {
            auto found = times.find(key);
            return found == times.end() ? 0 : found->second / all;
        };
        if (all > 0)
            site.time_share =
                site.frame.line > 0
                    ? share(lines, Line{site.frame.file, site.frame.line, site.frame.function})
                    : share(instructions, instruction);
        if (auto found = visits.find(instruction);
            found != visits.end() && found->second.fresh >= kEnough)
            site.regular =
                static_cast<double>(found->second.regular) / static_cast<double>(found->second.fresh);
    }
}

}  // namespace revisit::watch
