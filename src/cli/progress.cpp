#include "cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include "cli/command.h"
#include "revisit/units.h"

namespace revisit {

Progress::Progress(std::string what, bool quiet)
    : what_(std::move(what)), shown_(!quiet && isatty(STDERR_FILENO) != 0) {}

void Progress::clear() {
    if (drawn_) say("\r\033[K");
    drawn_ = false;
}

void Progress::update(std::uint64_t done, std::uint64_t total, std::uint64_t accesses) {
    if (!shown_ || Clock::now() < next_) return;
    next_ = Clock::now() + std::chrono::milliseconds(200);
    double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
    std::string line =
        fmt::format("{} {} accesses, {}/s", what_, format_count(static_cast<double>(accesses)),
                    format_count(static_cast<double>(accesses) / seconds));
    if (total > 0 && done > 0) {
        double share = static_cast<double>(done) / static_cast<double>(total);
        line += fmt::format(", {:.0f} %, {:.0f} s left", 100 * share, seconds * (1 - share) / share);
    }
    say(fmt::format("\r\033[K{}", line));
    std::fflush(stderr);
    drawn_ = true;
}

}  // namespace revisit
