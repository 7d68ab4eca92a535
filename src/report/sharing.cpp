#include "report/sharing.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "report/advice_rules.h"
#include "report/places.h"
#include "report/words.h"
#include "revisit/units.h"

namespace revisit {
namespace {

// Of all accesses. A line that comes from another core takes some 200 times as long as one in the first
// cache: 4 % of the time, then.
constexpr double kWorthMending = 2e-4;
constexpr double kLeastWorthMending = 100;  // invalidated reuses

struct ByteUse {
    std::set<std::uint32_t> writers, readers;
    std::string object;
    std::uint64_t offset = 0;
    bool same_users(const ByteUse& other) const {
        return writers == other.writers && readers == other.readers && object == other.object;
    }
    bool is_used() const { return !writers.empty() || !readers.empty(); }
};

void note_bytes(std::vector<ByteUse>& bytes, const SharingSide& side) {
    unsigned first = 64;
    for (unsigned at = 0; at < 64; ++at) {
        if ((side.bytes >> at & 1) == 0) continue;
        first = std::min(first, at);
        (side.write ? bytes[at].writers : bytes[at].readers).insert(side.thread);
        if (side.object.empty()) continue;
        bytes[at].object = side.object;
        bytes[at].offset = side.offset + (at - first);
    }
}

std::vector<SharedBytes> ranges_of(const std::vector<ByteUse>& bytes) {
    std::vector<SharedBytes> out;
    for (unsigned at = 0; at < 64; ++at) {
        const ByteUse& use = bytes[at];
        if (!use.is_used()) continue;
        if (at > 0 && !out.empty() && out.back().end == at && use.same_users(bytes[at - 1])) {
            out.back().end = at + 1;
            continue;
        }
        out.push_back({at,
                       at + 1,
                       {use.writers.begin(), use.writers.end()},
                       {use.readers.begin(), use.readers.end()},
                       use.object,
                       use.offset});
    }
    return out;
}

std::string threads_text(const std::vector<std::uint32_t>& threads) {
    constexpr std::size_t kNamed = 8;
    std::vector<std::uint32_t> named(
        threads.begin(),
        threads.begin() + static_cast<std::ptrdiff_t>(std::min(kNamed, threads.size())));
    std::string text = fmt::format("{}", fmt::join(named, ", "));
    if (threads.size() > kNamed) text += fmt::format(" and {} more", threads.size() - kNamed);
    return text;
}

std::string place_text(const SharingSide& side) {
    if (side.frame.line != 0)
        return fmt::format("{} ({}:{})", side.frame.function, last_part(side.frame.file),
                           side.frame.line);
    return side.frame.function.empty() ? fmt::format("site {}", side.site) : side.frame.function;
}

std::string object_text(const std::string& object, std::uint64_t offset) {
    return object.empty() ? "" : fmt::format("{} + {}", object, offset);
}

std::string error_text(double error) {
    return error > 0 ? " ± " + format_count(error) : "";
}

// "global stats + 8, stats.hits": with the member where it is known.
std::string field_text(const SharingSide& side, const Profile& profile) {
    std::string text = object_text(side.object, side.offset);
    if (text.empty()) return "bytes " + ranges_text(side.bytes);
    auto site = std::ranges::find(profile.sites, side.site, &Site::id);
    return site == profile.sites.end() || site->member.empty() ? text
                                                               : text + " (" + site->member + ")";
}

}  // namespace

std::vector<SharedLine> shared_lines(const Profile& profile) {
    std::map<std::uint64_t, SharedLine> lines;
    std::map<std::uint64_t, std::vector<ByteUse>> uses;
    std::map<std::uint64_t, std::set<std::uint32_t>> threads;
    for (std::size_t i = 0; i < profile.sharing.size(); ++i) {
        const Sharing& one = profile.sharing[i];
        SharedLine& line = lines[one.line];
        line.line = one.line;
        line.invalidated += one.count;
        if (one.false_sharing) line.false_sharing += one.count;
        line.error = std::hypot(line.error, one.error);
        line.records.push_back(i);
        auto& bytes = uses[one.line];
        bytes.resize(64);
        for (const SharingSide* side : {&one.writer, &one.victim}) {
            note_bytes(bytes, *side);
            threads[one.line].insert(side->thread);
        }
    }
    std::vector<SharedLine> out;
    for (auto& [address, line] : lines) {
        line.bytes = ranges_of(uses[address]);
        line.threads.assign(threads[address].begin(), threads[address].end());
        for (const SharedBytes& range : line.bytes) {
            if (range.object.empty()) continue;
            line.object = range.object;
            line.offset = range.offset;
            break;
        }
        std::ranges::stable_sort(line.records, [&](std::size_t a, std::size_t b) {
            return profile.sharing[a].count > profile.sharing[b].count;
        });
        out.push_back(std::move(line));
    }
    std::ranges::stable_sort(out, std::greater(), &SharedLine::invalidated);
    return out;
}

bool is_worth_mending(const SharedLine& line, const Profile& profile) {
    const double least = line.false_sharing - line.error;
    return least >= kLeastWorthMending && least >= kWorthMending * profile.accesses;
}

std::string sharing_advice(const SharedLine& line, const Profile& profile) {
    if (!is_worth_mending(line, profile)) return "";
    for (const std::size_t index : line.records) {
        const Sharing& one = profile.sharing[index];
        if (!one.false_sharing) continue;
        return fmt::format(
            "give {} a cache line of its own, apart from {}: {} writes it and invalidates the line of "
            "{}",
            field_text(one.writer, profile), field_text(one.victim, profile), place_text(one.writer),
            place_text(one.victim));
    }
    return "";
}

SharingVerdict sharing_verdict(const SharedLine& line, const Profile& profile) {
    if (!is_worth_mending(line, profile))
        return {line.mostly_false()
                    ? "Threads use different bytes of this line, but too rarely to matter."
                    : "Threads use the same bytes of this line."};
    if (!line.mostly_false())
        return {
            "Most invalidations are of bytes that threads do share: let each accumulate privately, or "
            "write less often."};
    return {fmt::format("Threads use different bytes of this line: align what each writes to {} B, and "
                        "these misses go.",
                        profile.granularity),
            true};
}

Result<std::string> shared_line_table(const Profile& profile, std::size_t rows) {
    if (!profile.sharing_totals)
        return fail(ErrorCode::no_sharing, "the profile has no data on lines that threads invalidate");
    const SharingTotals& totals = *profile.sharing_totals;
    const double all = std::max(profile.accesses, 1e-300);
    std::string text = fmt::format(
        "Shared lines: {}{} reuses were invalidated by other threads' writes ({} of all accesses), {} "
        "of "
        "them by false sharing\n",
        format_count(totals.invalidated), error_text(totals.error), percent(totals.invalidated / all),
        percent(totals.invalidated > 0 ? totals.false_sharing / totals.invalidated : 0));
    const std::vector<SharedLine> lines = shared_lines(profile);
    for (std::size_t i = 0; i < std::min(rows, lines.size()); ++i) {
        const SharedLine& line = lines[i];
        text += fmt::format("\n{:#x}{}\n", line.line,
                            line.object.empty() ? "" : "  " + object_text(line.object, line.offset));
        text += fmt::format("  {}{} invalidated ({} of all accesses), {} false; threads {}\n",
                            format_count(line.invalidated), error_text(line.error),
                            percent(line.invalidated / all),
                            percent(line.false_sharing / line.invalidated), threads_text(line.threads));
        constexpr std::size_t kRanges = 16, kRecords = 4;
        for (std::size_t r = 0; r < std::min(kRanges, line.bytes.size()); ++r) {
            const SharedBytes& range = line.bytes[r];
            std::string users;
            if (!range.writers.empty()) users += "written by " + threads_text(range.writers);
            if (!range.readers.empty())
                users += (users.empty() ? "" : ", ") + ("read by " + threads_text(range.readers));
            text += fmt::format("    bytes {:>2}–{:<2}  {:<24} {}\n", range.begin, range.end - 1,
                                object_text(range.object, range.offset), users);
        }
        if (line.bytes.size() > kRanges)
            text += fmt::format("    and {} more ranges\n", line.bytes.size() - kRanges);
        // Who called is told where it is all that tells two of them apart.
        std::map<std::string, int> alike;
        auto sides_text = [&](const Sharing& one, bool paths) {
            auto side_text = [&](const SharingSide& side) {
                const std::string path =
                    paths ? path_of(profile, side.context, side.frame.function) : "";
                return fmt::format("thread {} {}{}", side.thread, place_text(side),
                                   path.empty() ? "" : fmt::format(" (from {})", path));
            };
            return fmt::format("{}  {} → {}{}", one.false_sharing ? "false" : "true ",
                               side_text(one.writer), side_text(one.victim),
                               one.victim.write ? "" : " (read)");
        };
        for (std::size_t record : line.records) ++alike[sides_text(profile.sharing[record], false)];
        for (std::size_t r = 0; r < std::min(kRecords, line.records.size()); ++r) {
            const Sharing& one = profile.sharing[line.records[r]];
            text += fmt::format("    {:>8}{}  {}\n", format_count(one.count), error_text(one.error),
                                sides_text(one, alike[sides_text(one, false)] > 1));
        }
        if (line.records.size() > kRecords)
            text += fmt::format("    and {} more pairs\n", line.records.size() - kRecords);
        if (const std::string advice = sharing_advice(line, profile); !advice.empty())
            text += "  → " + advice + "\n";
    }
    if (lines.size() > rows) text += fmt::format("\nand {} more lines\n", lines.size() - rows);
    return text;
}

}  // namespace revisit
