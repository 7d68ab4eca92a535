#include "cli/watching.h"

#include <fmt/format.h>

#include <bit>
#include <cmath>

#include "core/try.h"
#include "record/probe.h"
#include "revisit/cache.h"

namespace revisit {

void WatchingOptions::declare(CLI::App& app) {
    constexpr const char* kGroup = "Watching (--method watch)";
    app.add_option("-p,--pid", pid,
                   "attach to this running process until Ctrl-C or --duration, then detach")
        ->type_name("PID")
        ->check(CLI::Range(1, 1 << 22))
        ->group("Recording");
    app.add_flag(
           "--repeat{1000}", repeat,
           "run the program again until there are 400 samples; --repeat=N: at most N runs\n"
           "later runs print nothing, and read the same input where it is a file, otherwise none; the "
           "counts are those of one run")
        ->check(CLI::Range(1, 10000))
        ->group("Recording");
    app.add_option("--every", every, "CPU time between samples (1ms, 200us)")
        ->type_name("TIME")
        ->capture_default_str()
        ->group(kGroup);
    app.add_option("--overhead", overhead,
                   "maximum share of run time spent sampling, all threads together")
        ->type_name("SHARE")
        ->capture_default_str()
        ->group(kGroup);
    app.add_option("--look-ahead", window,
                   "accesses to interpret from each sample before setting a watchpoint")
        ->type_name("N")
        ->check(CLI::Range(1, 6000))
        ->capture_default_str()
        ->group(kGroup);
    app.add_option("--watchpoints", watchpoints, "maximum watched words per block (default: 4)")
        ->type_name("N")
        ->check(CLI::Range(1, 4))
        ->group(kGroup);
    app.add_option("--weights", weights,
                   "inverse (inverse probability), proportional (the RDX paper's rule) or none")
        ->check(CLI::IsMember({"inverse", "proportional", "none"}))
        ->capture_default_str()
        ->group(kGroup);
    app.add_option(
           "--clock", clock,
           "accesses per CPU time, measured in the run itself or counted in a second run (valgrind)")
        ->check(CLI::IsMember({"run", "count"}))
        ->capture_default_str()
        ->group(kGroup);
    app.add_option(
           "--check-predictions", check,
           "verify every N-th predicted reuse with a watchpoint; the profile reports how many held")
        ->type_name("N")
        ->group(kGroup);
}

Result<watch::WatchOptions> WatchingOptions::apply(const EngineOptions& engine,
                                                   bool granularity_given) const {
    watch::WatchOptions options;
    std::chrono::nanoseconds period = TRY(parse_time("--every", every));
    if (period.count() < 50000) return fail("--every: expected at least 50us");
    std::uint64_t granularity = granularity_given ? engine.granularity : 64;
    if (!watch::can_watch(granularity))
        return fail(
            fmt::format("--granularity: watchpoints are on words of 8 bytes, four of a block at most; "
                        "expected 8, 16, 32, 64 or 128, found {}",
                        granularity));
    watch::Settings& settings = options.settings;
    settings.period = static_cast<std::uint64_t>(period.count());
    Result<double> share = parse_share(overhead);
    if (!share) return fail("--overhead: " + share.error().message);
    if (*share <= 0) return fail("--overhead: expected more than 0");
    settings.share = static_cast<std::uint64_t>(std::max(1.0, std::round(*share * 1000)));
    // Weights by chance count all of a window's uses; the paper's rule knows one a sample.
    settings.window = window;
    settings.uses = weights == "inverse" ? std::max<std::uint64_t>(1, window / 2) : 1;
    settings.budget = std::max<std::uint64_t>(4000, 4 * window);
    // On words of one block; those that are free time accesses where replays go astray.
    settings.watchpoints = watchpoints > 0 ? watchpoints : 4;
    if (watchpoints == 4 && check > 0)
        return fail("--check-predictions takes one of the four watchpoints");
    settings.shift = static_cast<std::uint64_t>(std::countr_zero(granularity));
    settings.seed = engine.seed;
    for (CacheSpec& one : host_caches())
        if (one.line == granularity && one.sets() > 1) settings.caches.push_back(std::move(one));
    settings.check = check;
    if (record::pretends_no("watchpoints")) settings.refuse = watch::kRefuseWatchpoints;
    if (record::pretends_no("events")) settings.refuse = watch::kRefuseEvents;
    options.estimate.bins = engine.bins;
    options.estimate.granularity = granularity;
    options.estimate.sites = engine.sites;
    options.estimate.pairs = engine.pairs;
    options.estimate.weights = weights == "inverse"        ? watch::Weights::inverse
                               : weights == "proportional" ? watch::Weights::proportional
                                                           : watch::Weights::none;
    return options;
}

Result<watch::FunctionCounts> WatchingOptions::count(const record::RunOptions& watched,
                                                     std::uint64_t granularity) const {
    TRY(record::find_valgrind());
    return watch::count_accesses(watched, granularity);
}

}  // namespace revisit
