// Advice that does not come from a pair: false sharing, huge pages, prefetching, hot and cold fields,
// conflicts in sets, smaller types. advice.cpp has the rules on pairs, and ranks all of them.
#pragma once

#include <functional>
#include <vector>

#include "models/hit_table.h"
#include "report/advice.h"
#include "report/paths.h"
#include "revisit/profile.h"

namespace revisit {

inline constexpr double kLittleUsed = 0.5;  // of a line

struct RuleInput {
    const Profile& profile;
    const std::vector<CacheSpec>& caches;  // all that the report is about
    HitTable& table;                       // of the cache to advise on
    double misses = 0;                     // all, in it
    std::function<bool(double)> matters;   // misses: above noise, and worth a sentence
};

void advise_padding(const RuleInput& in, std::vector<Advice>& out);
void advise_huge_pages(const RuleInput& in, std::vector<Advice>& out);
void advise_prefetching(const RuleInput& in, std::vector<Advice>& out);
void advise_splitting(const RuleInput& in, std::vector<Advice>& out);
void advise_against_conflicts(const RuleInput& in, std::vector<Advice>& out);
void advise_smaller_types(const RuleInput& in, std::vector<Advice>& out);

// Bits of a mask as "0–7, 24–31".
std::string ranges_text(std::uint64_t mask);

// Of a place's fetches: "16 of 64 bytes"; empty where it was not counted.
std::string line_use_text(const LineUse& use, const Profile& profile);

}  // namespace revisit
