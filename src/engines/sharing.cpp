#include "engines/sharing.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace revisit {
namespace {

// More than anybody reads; they make a profile slow to load.
constexpr std::size_t kMostListed = 4096;

}  // namespace

std::size_t SharingTally::Hash::operator()(const Key& key) const {
    std::uint64_t hash = key.block * 0x9e3779b97f4a7c15u;
    for (const std::uint64_t word : {std::uint64_t{key.writer_site} << 32 | key.victim_site,
                                     std::uint64_t{key.writer_thread} << 32 |
                                         std::uint64_t{key.victim_thread} << 1 | key.is_false})
        hash = (hash ^ hash >> 29 ^ word) * 0xbf58476d1ce4e5b9u;
    return hash ^ hash >> 32;
}

void SharingTally::add(std::uint64_t block, const Touch& writer, const Touch& victim,
                       bool victim_writes) {
    const std::uint64_t written = part_mask(writer.parts), missed = part_mask(victim.parts);
    const Key key{block,         writer.site,   victim.site,
                  writer.thread, victim.thread, (written & missed) == 0};
    invalidated_++;
    false_ += key.is_false;
    auto found = sums_.find(key);
    if (found == sums_.end()) {
        if (!keys_.admit(Hash()(key), 1, invalidated_)) {
            unlisted_++;
            return;
        }
        found = sums_.try_emplace(key).first;
    }
    found->second.count++;
    found->second.writer_parts |= written;
    found->second.victim_parts |= missed;
    found->second.victim_writes |= victim_writes;
}

void SharingTally::fill(Profile& profile, double scale) const {
    std::vector<std::pair<Key, Sum>> listed(sums_.begin(), sums_.end());
    std::ranges::sort(listed, [](const auto& a, const auto& b) {
        return a.second.count != b.second.count ? a.second.count > b.second.count : a.first < b.first;
    });
    std::uint64_t unlisted = unlisted_;
    for (std::size_t i = 0; i < listed.size(); i++) {
        const auto& [key, sum] = listed[i];
        if (i >= kMostListed) {
            unlisted += sum.count;
            continue;
        }
        Sharing one;
        one.line = key.block * profile.granularity;
        one.writer.site = key.writer_site;
        one.writer.thread = key.writer_thread;
        one.writer.bytes = sum.writer_parts;
        one.victim.site = key.victim_site;
        one.victim.thread = key.victim_thread;
        one.victim.bytes = sum.victim_parts;
        one.victim.write = sum.victim_writes;
        one.count = static_cast<double>(sum.count) * scale;
        one.false_sharing = key.is_false;
        profile.sharing.push_back(std::move(one));
    }
    auto scaled = [&](std::uint64_t count) { return static_cast<double>(count) * scale; };
    profile.sharing_totals = SharingTotals{scaled(invalidated_), scaled(false_), scaled(unlisted)};
}

}  // namespace revisit
