#include "cli/watching.h"

#include <bit>
#include <cmath>

#include "record/probe.h"
#include "watch/pmu.h"

namespace revisit {

void WatchingOptions::declare(CLI::App& app) {
    constexpr const char* kGroup = "Watching (--method watch)";
    app.add_option("--every", every, "processor time between samples (1ms, 200us)")
        ->type_name("TIME")
        ->capture_default_str()
        ->group(kGroup);
    app.add_option("--overhead", overhead,
                   "take samples no faster than that this share of the time goes there")
        ->type_name("SHARE")
        ->capture_default_str()
        ->group(kGroup);
    app.add_option("--look-ahead", window,
                   "accesses to look ahead for a reuse before it is watched for")
        ->type_name("N")
        ->check(CLI::Range(1, 6000))
        ->capture_default_str()
        ->group(kGroup);
    app.add_option("--watchpoints", watchpoints, "use so many a thread for reuses (default: 3)")
        ->type_name("N")
        ->check(CLI::Range(1, 4))
        ->group(kGroup);
    app.add_option("-p,--pid", "a process that runs already: not offered")
        ->type_name("PID")
        ->check([](const std::string&) {
            return std::string(
                "a process that runs already cannot be profiled: its threads would have to be stopped "
                "where loading a library is safe, which cannot be known; start the program with "
                "revisit profile -- PROGRAM");
        })
        ->group("");
    app.add_option(
           "--weights", weights,
           "inverse: a reuse counts one over its chance of being seen; proportional: as many as "
           "samples of its context; none")
        ->check(CLI::IsMember({"inverse", "proportional", "none"}))
        ->capture_default_str()
        ->group(kGroup);
    app.add_option(
           "--clock", clock,
           "what turns processor time into accesses. run: stretches of the run itself, timed and "
           "counted; count: counted in a second run, under valgrind")
        ->check(CLI::IsMember({"run", "count"}))
        ->capture_default_str()
        ->group(kGroup);
    app.add_option(
           "--source", source,
           "what takes samples. look-ahead: a timer, addresses by interpreting ahead; pmu: precise "
           "events of the processor; auto: those where a trial works (doctor tells)")
        ->check(CLI::IsMember({"auto", "look-ahead", "pmu"}))
        ->capture_default_str()
        ->group(kGroup);
    app.add_option(
           "--check-predictions", check,
           "let a watchpoint check every N-th reuse that was foreseen; the profile tells how many "
           "came true")
        ->type_name("N")
        ->group(kGroup);
}

Result<watch::WatchOptions> WatchingOptions::apply(const EngineOptions& engine, bool granularity_given,
                                                   record::RunOptions& run) const {
    watch::WatchOptions options;
    Result<std::chrono::nanoseconds> period = parse_time("--every", every);
    if (!period) return std::unexpected(period.error());
    if (period->count() < 50000) return fail("--every: expected at least 50us");
    Result<std::string> sampler = watch::find_sampler();
    if (!sampler) return std::unexpected(sampler.error());
    if (Result<void> fits = watch::check_program(run.program); !fits)
        return std::unexpected(fits.error());
    std::uint64_t granularity = granularity_given ? engine.granularity : 8;
    if (granularity < 8 || !std::has_single_bit(granularity))
        return fail(
            fmt::format("--granularity: watchpoints are on words of 8 bytes; expected a power of "
                        "two from 8 up, found {}",
                        granularity));
    watch::Settings& settings = options.settings;
    settings.period = static_cast<std::uint64_t>(period->count());
    Result<double> share = parse_share(overhead);
    if (!share) return fail("--overhead: " + share.error().message);
    settings.share = static_cast<std::uint64_t>(std::max(1.0, std::round(*share * 1000)));
    // Weights by chance count all of a window's uses; the paper's rule knows one a sample.
    settings.window = window;
    settings.uses = weights == "inverse" ? std::max<std::uint64_t>(1, window / 2) : 1;
    settings.budget = std::max<std::uint64_t>(4000, 4 * window);
    // One register times accesses where replays go astray; the rest wait for reuses.
    settings.watchpoints = watchpoints > 0 ? watchpoints : 3;
    if (watchpoints == 4 && check > 0)
        return fail("--check-predictions takes one of the four watchpoints");
    settings.shift = static_cast<std::uint64_t>(std::countr_zero(granularity));
    settings.seed = engine.seed;
    settings.check = check;
    settings.filters = watch::own_filters();
    if (record::pretends_no("watchpoints")) settings.refuse = watch::kRefuseWatchpoints;
    if (record::pretends_no("events")) settings.refuse = watch::kRefuseEvents;
    if (Result<void> chosen = choose_source(settings); !chosen) return std::unexpected(chosen.error());
    options.estimate.bins = engine.bins;
    options.estimate.granularity = granularity;
    options.estimate.sites = engine.sites;
    options.estimate.pairs = engine.pairs;
    options.estimate.weights = weights == "inverse"        ? watch::Weights::inverse
                               : weights == "proportional" ? watch::Weights::proportional
                                                           : watch::Weights::none;
    run.launch.recorder = record::Recorder::watch;
    run.launch.sampler = *sampler;
    run.launch.sampler_settings = watch::settings_text(settings);
    return options;
}

Result<void> WatchingOptions::choose_source(watch::Settings& settings) const {
    if (source == "look-ahead" || settings.refuse == watch::kRefuseEvents) return {};
    if (record::pretends_no("pmu-but-faults")) {  // every machine has these, and they tell an address
        settings.pmu.events = settings.pmu.tells_address = settings.pmu.first = settings.uses = 1;
        settings.pmu.event[0] = {PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, 0, 0};
        return {};
    }
    std::string why;
    auto system = watch::this_system();
    for (const watch::SourceReport& report : watch::find_sources(*system)) {
        if (report.works) {
            settings.pmu = report.settings;
            if (report.settings.tells_address) settings.uses = 1;
            if (report.settings.clock()) settings.rates = 0;
            return {};
        }
        why += fmt::format("{}{}: {}", why.empty() ? "" : "; ", report.name, report.detail);
    }
    if (source == "auto") return {};
    return fail(
        fmt::format("--source pmu: no precise events work here ({}); use --source look-ahead", why));
}

Result<watch::FunctionCounts> WatchingOptions::count(const record::RunOptions& watched,
                                                     std::uint64_t granularity) const {
    if (Result<record::ValgrindParts> parts = record::find_valgrind(); !parts)
        return std::unexpected(parts.error());
    return watch::count_accesses(watched, granularity);
}

}  // namespace revisit
