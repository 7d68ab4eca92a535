#include "watch/estimate/notes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <functional>
#include <ranges>

#include "watch/clock/clock.h"

namespace revisit::watch {
namespace {

constexpr std::string_view kInstead = "use --method exact, which runs any program under valgrind";

void note_limits(const std::map<Hindrance, Note>& notes, std::vector<std::string>& to) {
    for (auto [what, note] : notes) {
        std::string reason = std::strerror(note.error);
        if (what == Hindrance::looks_only)
            to.push_back(
                fmt::format("watch: no watchpoint could be set ({}): reuses were found up to 12 000 "
                            "accesses ahead, later ones count as cold; {}",
                            reason, kInstead));
        else if (what == Hindrance::by_timer)
            to.push_back(
                fmt::format("watch: perf events cannot be opened ({}): samples come from a 4 ms timer; "
                            "--clock count counts accesses in a second run",
                            reason));
        else if (what == Hindrance::no_watchpoint)
            to.push_back(
                fmt::format("watch: {} threads lacked a watchpoint ({}): a debugger may hold them; "
                            "long reuses are estimated from fewer",
                            note.threads, reason));
    }
}

// What look-aheads ended at, by function and first bytes (there is no disassembler here): those that
// gave no address, and the others where they are many.
void note_ends(const Samples& samples, const Origins& origins, std::vector<std::string>& to) {
    constexpr std::size_t kMost = 6;
    FunctionNames names(origins);
    double all = 0, early = 0;
    for (const auto& [number, thread] : samples.threads)
        all += static_cast<double>(thread.samples.size());
    for (const auto& [where, end] : samples.ended) early += end.after;
    auto list = [&](unsigned Ended::*count) {
        std::map<std::string, unsigned> places;
        for (const auto& [where, end] : samples.ended) {
            if (end.*count == 0) continue;
            auto bytes = std::bit_cast<std::array<std::uint8_t, 8>>(where.second);
            bool is_call =
                (bytes[0] == 0x0f && bytes[1] == 0x05) || (where.second & 0xffffffff) == 0xd4000001;
            places[fmt::format(
                "{} in {}",
                is_call ? "system call"
                        : fmt::format("{:02x}", fmt::join(bytes.begin(), bytes.begin() + 4, " ")),
                names.of(where.first))] += end.*count;
        }
        std::vector<std::pair<unsigned, std::string>> sorted;
        for (const auto& [name, times] : places) sorted.emplace_back(times, name);
        std::ranges::sort(sorted, std::greater{});
        std::vector<std::string> texts;
        for (const auto& [times, name] : sorted | std::views::take(kMost))
            texts.push_back(fmt::format("{} {}", name, times));
        if (sorted.size() > kMost) texts.push_back("…");
        return fmt::format("{}", fmt::join(texts, ", "));
    };
    if (std::string before = list(&Ended::before); !before.empty())
        to.push_back("watch: look-aheads ended before any access at: " + before);
    if (early > 0.1 * all)
        to.push_back(fmt::format("watch: {:.0f} % of look-aheads were cut short, at: {}",
                                 100 * early / all, list(&Ended::after)));
}

}  // namespace

void add_notes(const Samples& samples, const Origins& origins, std::vector<std::string>& to) {
    note_limits(samples.notes, to);
    note_ends(samples, origins, to);
}

}  // namespace revisit::watch
