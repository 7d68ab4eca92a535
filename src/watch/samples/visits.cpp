#include "watch/samples/visits.h"

namespace revisit::watch {

void VisitStatistics::add(const AccessLog& log, unsigned shift) {
    struct Visit {
        std::size_t first = 0, last = 0;
        std::uint64_t pc = 0;
        std::uint32_t words = 0;
    };
    struct Stride {
        std::uint64_t block = 0, steps[2] = {};
        unsigned known = 0;  // blocks before
    };
    std::unordered_map<std::uint64_t, Visit> visits;
    std::unordered_map<std::uint64_t, Stride> strides;
    const auto& accesses = log.accesses();
    for (std::size_t i = 0; i < accesses.size(); i++) {
        const LoggedAccess& access = accesses[i];
        for_blocks(access, shift, [&](std::uint64_t block) {
            auto [visit, is_new] = visits.try_emplace(block);
            if (is_new) {
                visit->second.first = i;
                Stride& stride = strides[access.pc];
                std::uint64_t step = block - stride.block;
                if (stride.known >= 2) {
                    SiteVisits& site = sites_[access.pc];
                    site.fresh++;
                    site.regular += step == stride.steps[0] || step == stride.steps[1];
                }
                stride = {block, {step, stride.steps[0]}, stride.known + 1};
            }
            visit->second.last = i;
            visit->second.pc = access.pc;
            visit->second.words |= words_of(block, shift, access.address, access.bytes);
        });
    }
    std::size_t edge = accesses.size() / 16;
    for (const auto& [block, visit] : visits) {
        if (visit.first < edge || visit.last + edge >= accesses.size()) continue;
        SiteVisits& site = sites_[visit.pc];
        site.sets[visit.words]++;
        site.visits++;
        all_[visit.words]++;
    }
}

std::uint64_t VisitStatistics::known(std::uint64_t pc) const {
    auto found = sites_.find(pc);
    return found == sites_.end() ? 0 : found->second.visits;
}

double VisitStatistics::share_seen(std::uint64_t pc, std::uint32_t words, std::uint64_t least) const {
    auto share = [&](const std::map<std::uint32_t, std::uint64_t>& sets, std::uint64_t enough) {
        std::uint64_t all = 0, seen = 0;
        for (auto [set, count] : sets) {
            all += count;
            seen += set & words ? count : 0;
        }
        return all < enough || all == 0 ? -1.0 : static_cast<double>(seen) / static_cast<double>(all);
    };
    double own = -1;
    if (auto found = sites_.find(pc); found != sites_.end()) own = share(found->second.sets, least);
    if (own < 0) own = share(all_, 1);
    return own < 0 ? 1 : own;
}

}  // namespace revisit::watch
