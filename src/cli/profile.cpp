// revisit profile: runs a program and profiles it, the analysis beside it on another core.
//
// The program has standard input and output to itself, so the summary goes to standard error. Where the
// result is asked for on standard output (--json, -o -), the program's output goes to standard error
// too.
#include "watch/profile.h"

#include <fmt/format.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>

#include "cli/command.h"
#include "cli/recording.h"
#include "cli/watching.h"
#include "core/parallel.h"
#include "core/try.h"
#include "engines/private_filters.h"
#include "models/hierarchy_model.h"
#include "record/leading.h"
#include "record/sinks.h"
#include "record/stream.h"
#include "report/places.h"
#include "report/words.h"
#include "revisit/accuracy.h"
#include "watch/repeat.h"

namespace revisit {
namespace {

// Where --target-error begins in a program that samples itself; it falls from there as the run goes on.
constexpr double kFirstRate = 1.0 / 16;

// A bin's share is a share of the samples: with these, within 5 points.
constexpr double kEnoughSamples = 400;
constexpr std::size_t kThreadStack = std::size_t{512} << 10;

class ProfileCommand : public Command {
 public:
    void declare(CLI::App& app) override {
        app_ = &app;
        recording_.declare(app);
        std::string methods =
            "auto, watch (sampled), exact (every access), sample, …\n"
            "auto: sample if a rate, target error or pruning is given; exact for programs built with "
            "revisit-clang; otherwise watch if this machine and the other options allow it, otherwise "
            "exact under valgrind";
        for (const EngineEntry& entry : engines())
            methods += "\n" + std::string(entry.name) + ": " + std::string(entry.summary);
        methods += "\nwatch: samples of the unmodified program, reuses caught by watchpoints";
        app.add_option("--method", method_, methods)
            ->capture_default_str()
            ->type_name("NAME")
            ->group("Analysis");
        analysis_.declare(app);
        beside_.declare(app);
        model_.declare(app);
        app.add_option(
               "--device", device_,
               "count on the CPU or the GPU (exact and hprda; no pairs; fastest with --no-sites)")
            ->check(CLI::IsMember({"cpu", "gpu"}))
            ->capture_default_str()
            ->group("Analysis");
        app.add_flag("--time", time_, "also count time distances")->group("Analysis");
        app.add_flag("--no-sites", no_sites_, "no histograms per instruction")->group("Analysis");
        app.add_flag("--no-pairs", no_pairs_, "no use → reuse pairs")->group("Analysis");
        sampling_.declare(app);
        app.add_flag(
               "--sequential", sequential_,
               "--model shared, built with revisit-clang: threads take turns during a sample; slower, "
               "more accurate")
            ->group("Sampling");
        watching_.declare(app);
        app.add_flag("--follow", follow_,
                     "sum all processes, not only those of the program that did the work")
            ->group("Recording");
        app.add_option("--by", by_,
                       "also list misses by site, loop, function, file, pair, object, thread")
            ->check(
                CLI::IsMember(std::vector<std::string>(std::begin(kPlaceKinds), std::end(kPlaceKinds))))
            ->type_name("KIND")
            ->group("Output");
        caches_.declare(
            app,
            "exact: simulate this cache beside this machine's, e.g. 32K:8:64; several may be given");
        output_.declare(app, "write the profile to this file (default: revisit-PROGRAM-PID.json)");
        app.footer(
            "Examples:\n"
            "  revisit profile -o app.json -- ./app ARGS\n"
            "  revisit profile --method exact --function multiply -- ./matmul ijk 300\n"
            "  revisit profile --pid 4711 --duration 30s");
    }

    Result<int> run() override {
        EngineOptions engine = TRY(analysis_.engine_options());
        // The program, the readers of its stream and the simulated caches want the other cores.
        if (engine.threads == 0)
            engine.threads = thread_count(0) >= 12 ? 8 : thread_count(0) >= 6 ? 4 : 2;
        engine.time = time_;
        engine.sites = !no_sites_;
        engine.device = device_ == "gpu" ? Device::gpu : Device::cpu;
        engine.pairs = !no_pairs_ && engine.device == Device::cpu;
        TRY(sampling_.apply(engine));
        model_.apply(engine);
        if (watching_.pid != 0 && !recording_.command.empty())
            return fail("--pid attaches to a process that runs: name no program as well");
        if (watching_.pid != 0 && watching_.runs() > 1)
            return fail("--repeat starts the program again: not with --pid");
        if (watching_.pid != 0 && method_ != "auto" && method_ != "watch")
            return fail("--pid takes samples: --method watch or none");
        std::string method = watching_.pid != 0  ? "watch"
                             : method_ == "auto" ? automatic_method(engine)
                                                 : method_;
        TRY(check_options(*app_, method, method_ == "auto"));
        recording_.output_to_error = output_.json || output_.output == "-";
        if (!output_.output.empty() || !output_.json)
            TRY(check_output(output_.output,
                             recording_.command.empty() ? "program" : recording_.command[0]));
        if (method == "watch" && analysis_.phases != 0)
            return fail("--phases is an option of --method exact; the watch method does not use it");
        AnalyzeOptions analysis;
        analysis.method = method;
        if (beside_.line_use.empty() && counts_line_use(method, engine)) beside_.line_use = "auto";
        TRY(beside_.apply(analysis_, analysis));
        if (!analysis.cores.empty() && engine.model != StackModel::private_)
            return fail("--cores needs --model private or both");
        const bool beside = !analysis.more_granularities.empty() || analysis.line_use;
        if (method == "watch") {
            if (beside)
                return fail("several granularities and --line-use need every access: --method exact");
            return run_watched(engine);
        }
        // Where the distances come from is reported by every method that knows it.
        if (!make_engine(method, engine)) engine.sites = engine.pairs = false;
        if (!engine.sites) recording_.no_contexts = recording_.no_objects = true;
        (void)TRY(make_engine(method, engine));

        record::RunOptions run = TRY(recording_.run_options());
        run.decode.readers = std::clamp(thread_count(0) / 2, 1u, 6u);
        if (model_.model != "single") run.want |= REVISIT_WANT_ORDER;
        const bool inside = method == "sample" && !beside && can_sample_inside(run, engine);
        if (inside) sample_inside(run, engine);
        if (method == "sample" && !inside && run.launch.recorder == record::Recorder::clang)
            why_whole_ = fmt::format("the program was recorded as a whole and sampled afterwards: {}",
                                     !run.decode.stack ? "--no-stack takes every access"
                                     : beside ? "several granularities and line use take every access"
                                              : "the granularity is no power of two");
        if (sequential_ && (!inside || engine.model != StackModel::single))
            return fail(
                "--sequential is for --method sample --model shared on a program built with "
                "revisit-clang");
        if (!inside) {
            run.decode.labels = engine.sites || engine.pairs;
            run.decode.threads = engine.model == StackModel::private_ || method == "sample";
            run.decode.flags = run.decode.labels || run.decode.threads;
            run.decode.extents = engine.sharing;
            if (std::has_single_bit(engine.granularity) && !engine.sharing && !beside)
                run.decode.cut = engine.granularity;
        }
        analysis.engine = engine;
        spare_memory_of_threads();
        if (engine.shared) analysis.engine.filters = TRY(private_caches());
        // One stack is one cache. Private stacks invalidate each other, which these do not.
        if (method == "exact" && engine.model == StackModel::single)
            analysis.caches = TRY(simulated_caches());
        Result<record::RunOutcome> outcome = record::run(
            run,
            [&](const record::StartedProcess& process) -> Result<std::unique_ptr<record::ProcessSink>> {
                if (process.is_first) first_ = process.pid;
                auto take_it = [this, process, number = started_++](std::uint32_t, Profile p) {
                    return take(process, std::move(p), number);
                };
                if (inside) return record::make_sampled_sink(engine, take_it);
                return record::make_profile_sink(analysis, take_it);
            });
        return finish(run, outcome);
    }

 private:
    // A tenth of the time, for what tells a struct to split from a loop to interchange. Whoever leaves
    // sites out wants the histogram, and quickly.
    static bool counts_line_use(const std::string& method, const EngineOptions& engine) {
        const std::vector<CacheSpec> caches = host_caches();
        return method == "exact" && engine.sites && engine.device == Device::cpu &&
               engine.model == StackModel::single &&
               std::ranges::all_of(
                   caches, [&](const CacheSpec& one) { return one.line == engine.granularity; });
    }

    // Each thread keeps what it frees to itself otherwise: 20 to 30 MiB more on 16 cores. Its stack, of
    // 8 MiB by default, takes 2 MiB where the system gives huge pages to whoever has room for one, and
    // there are 23 threads on 16 cores. They were seen to use 28 KiB of it.
    static void spare_memory_of_threads() {
#ifdef M_ARENA_MAX
        mallopt(M_ARENA_MAX, 1);
#endif
#ifdef __GLIBC__
        pthread_attr_t attributes;
        if (pthread_getattr_default_np(&attributes) != 0) return;
        if (pthread_attr_setstacksize(&attributes, kThreadStack) == 0)
            pthread_setattr_default_np(&attributes);
        pthread_attr_destroy(&attributes);
#endif
    }

    // This machine's, and those asked for.
    Result<std::vector<CacheSpec>> simulated_caches() const {
        std::vector<CacheSpec> caches = host_caches();
        if (caches_.specs.empty()) return caches;
        for (CacheSpec& given : TRY(caches_.caches()))
            if (std::ranges::none_of(caches,
                                     [&](const CacheSpec& one) { return one.same_geometry(given); }))
                caches.push_back(std::move(given));
        return caches;
    }

    // The largest one that no other core uses: a shared cache lies behind it.
    Result<std::vector<CacheSpec>> private_caches() const {
        std::vector<CacheSpec> out;
        for (CacheSpec& one : TRY(simulated_caches()))
            if (!has_shared_name(one) && (out.empty() || one.bytes > out[0].bytes))
                out.assign(1, std::move(one));
        if (!out.empty() && PrivateFilters::is_common(out[0])) out.clear();
        return out;
    }

    Result<int> run_watched(EngineOptions& engine) {
        watch::WatchOptions options = TRY(watching_.apply(engine, analysis_.granularity_given()));
        record::RunOptions run;
        watch::outside::RunOptions outside;
        if (watching_.pid != 0) {
            TRY(recording_.apply(run));
            outside.attach = watching_.pid;
        } else {
            recording_.sampled = true;
            run = TRY(recording_.run_options());
            TRY(watch::check_program(run.program));
            outside.program = run.program;
            outside.launch.output_to_error = run.launch.output_to_error;
            if (run.decode.objects) outside.preloaded = watch::heap_library();
            outside.environment = watch::heap_environment(outside.preloaded);
        }
        std::optional<watch::FunctionCounts> counts;
        if (watching_.clock == "count" && watching_.pid == 0)
            counts = TRY(watching_.count(run, options.estimate.granularity));
        outside.settings = options.settings;
        outside.objects = run.decode.objects;
        outside.duration = run.duration;
        outside.children = !recording_.no_children;
        watch::outside::Outcome sampled =
            TRY(watch::outside::run_repeatedly(outside, {watching_.runs(), kEnoughSamples}));
        watch::outside::ProfileOptions how;
        how.estimate = options.estimate;
        how.counts = counts ? &*counts : nullptr;
        how.contexts = run.decode.contexts;
        how.objects = run.decode.objects;
        how.whole = follow_;
        Profile profile = TRY(watch::outside::profile_of(sampled, how));
        if (!sampled.processes.empty()) first_ = static_cast<std::uint32_t>(sampled.processes[0]->pid);
        if (recording_.command.empty() && !profile.processes.empty())
            recording_.command = profile.processes[0].command;
        TRY(take({first_, 0, true}, std::move(profile)));
        TRY(deliver(watch::outside::summary_of(sampled)));
        return sampled.exit_status;
    }

    Result<int> finish(const record::RunOptions& run, const Result<record::RunOutcome>& outcome) {
        if (!outcome) return unexpected(outcome.error());
        if (!have_profile_)
            return fail(
                run.program.path, "",
                fmt::format("ended with status {} before it could be recorded", outcome->exit_status));
        TRY(deliver(*outcome));
        return outcome->exit_status;
    }

    // A program built with the plug-in samples itself, at a fraction of the cost of telling every
    // access, unless something is asked for that takes them all.
    static bool can_sample_inside(const record::RunOptions& run, const EngineOptions& engine) {
        return run.launch.recorder == record::Recorder::clang &&
               std::has_single_bit(engine.granularity) && run.decode.stack;
    }
    void sample_inside(record::RunOptions& run, EngineOptions& engine) const {
        // Samples a thousandth as often as those of a trace pay: a run has accesses enough.
        if (sampling_.rate_option->count() == 0) engine.sample.rate = 1e-4;
        // Objects and call paths are told only where threads share lines.
        run.decode.contexts &= engine.sharing;
        run.decode.objects &= engine.sharing;
        run.decode.extents = engine.sharing;
        run.decode.sampled_block = engine.granularity;
        if (!run.decode.contexts) run.want &= ~std::uint32_t{REVISIT_WANT_CALLS};
        if (!run.decode.objects) run.want &= ~std::uint32_t{REVISIT_WANT_OBJECTS};
        run.want |= REVISIT_WANT_SAMPLES;
        if (engine.model == StackModel::single) run.want |= REVISIT_WANT_SHARED;
        if (sequential_) run.want |= REVISIT_WANT_IN_TURN;
        run.plan.rate = engine.sample.rate;
        if (engine.sample.target_error > 0) {
            run.plan.rate = kFirstRate;
            run.plan.wanted = static_cast<std::uint64_t>(samples_for_error(engine.sample.target_error));
        }
        run.plan.prune_share = engine.sample.prune_share;
        run.plan.prune_after = engine.sample.prune_after;
        run.plan.seed = engine.seed;
        run.plan.block_shift = static_cast<std::uint64_t>(std::countr_zero(engine.granularity));
    }

    static std::string program_of(const std::vector<std::string>& command) {
        return command.empty() ? std::string() : std::string(last_part(command[0]));
    }

    // Processes of one program are summed as they end.
    Result<void> take(const record::StartedProcess& process, Profile profile, std::size_t number = 0) {
        profile.model = model_.name();
        utsname name{};
        uname(&name);
        profile.machine = fmt::format("{} {} {}", name.sysname, name.release, name.machine);
        if (output_.output.empty() && !output_.json)
            output_.output = default_output(recording_.command[0], first_, ".json");
        if (process.is_first && profile.command.empty()) profile.command = recording_.command;
        have_profile_ |= process.is_first;
        processes_.insert({number,
                           {process.pid, profile.command, profile.accesses,
                            profile.sampled ? profile.sampled->samples : 0, 0, process.parent}});
        const std::string program = program_of(profile.command);
        auto group = std::ranges::find(groups_, program, &Group::program);
        if (group == groups_.end()) {
            groups_.push_back(
                {program, profile.command, 1, std::make_unique<ProfileMerger>(std::move(profile))});
            return {};
        }
        group->processes++;
        return group->sum->add(profile);
    }

    // The profile of the program that made most accesses, or of all.
    Result<void> choose_profile() {
        if (groups_.empty()) return {};
        std::vector<record::RanAs<std::string>> ran;
        for (const auto& [number, one] : processes_)
            ran.push_back(
                {static_cast<pid_t>(one.pid), program_of(one.command), one.command, one.accesses});
        auto claims = record::claims_to_lead(ran);
        auto leading = std::ranges::max_element(groups_, {},
                                                [&](const Group& one) { return claims[one.program]; });
        if (follow_)
            for (Group& one : groups_)
                if (&one != &*leading) TRY(leading->sum->add(one.sum->take()));
        profile_ = leading->sum->take();
        if (processes_.size() < 2) return {};
        if (groups_.size() == 1 || !follow_) profile_.command = leading->command;
        if (!follow_)
            profile_.notes.push_back(
                record::leading_note(leading->program, leading->processes, processes_.size()));
        for (auto& [number, one] : processes_) profile_.processes.push_back(std::move(one));
        return {};
    }

    Result<void> deliver(const record::RunOutcome& outcome) {
        TRY(choose_profile());
        for (const std::string& note : notes_of(outcome, recording_)) profile_.notes.push_back(note);
        if (!why_whole_.empty()) profile_.notes.push_back(why_whole_);
        tell_if_samples_are_few();
        if (!output_.output.empty() && !(output_.output == "-" && output_.json))
            TRY(save_profile(profile_, output_.output));
        if (output_.json) return print(to_json(profile_));
        if (output_.quiet) return {};
        std::string text = "\n" + terminal_report(profile_, host_caches(), stderr_style());
        if (!by_.empty()) {
            auto table = TRY(places_of(profile_, by_, host_caches()));
            text += "\n" + table;
        }
        if (output_.output != "-")
            text += fmt::format("\nProfile written to {}. Next: revisit report {}\n", output_.output,
                                shell_word(output_.output));
        say(text);
        return {};
    }

    // Watching knows nothing of these.
    bool wants_every_access(const EngineOptions& engine) const {
        return recording_.via != "auto" || !recording_.functions.empty() ||
               !recording_.regions.empty() || !recording_.most_accesses_text.empty() ||
               recording_.no_stack || analysis_.several_granularities() || !beside_.line_use.empty() ||
               (analysis_.granularity_given() && !watch::can_watch(engine.granularity)) ||
               model_.model != "single" || engine.device != Device::cpu || analysis_.phases != 0;
    }
    bool wants_sampling() const {
        return sequential_ || !sampling_.target_error.empty() || sampling_.rate_option->count() > 0 ||
               app_->get_option("--prune")->count() > 0 ||
               app_->get_option("--prune-after")->count() > 0;
    }

    std::string automatic_method(const EngineOptions& engine) const {
        std::string exact = "olken";
        for (const EngineEntry& entry : engines())
            if (entry.name == "exact") exact = "exact";
        if (wants_sampling()) return "sample";
        if (wants_every_access(engine)) return exact;
        Result<record::Program> program = record::find_program(recording_.command);
        if (!program || program->instrumented || program->wraps_instrumented) return exact;
        return watch::works_here() && watch::check_program(*program) ? "watch" : exact;
    }

    void tell_if_samples_are_few() {
        if (method_ != "auto" || profile_.method != "watch" || !profile_.sampled) return;
        double samples = profile_.sampled->samples;
        if (samples >= kEnoughSamples) return;
        constexpr std::size_t kMostText = 1000;  // a longer one hides the rest of the summary
        const std::string words = shell_words(recording_.command);
        std::string exact = "revisit profile --method exact";
        if (words.size() <= kMostText) exact += " -- " + words;
        if (watching_.pid == 0 && watching_.runs() == 1)
            exact += "; --repeat runs it again until there are enough samples";
        profile_.notes.push_back(
            samples < 1
                ? fmt::format("the program ended before a sample was taken; every access: {}", exact)
                : fmt::format("{:.0f} samples hold the share of a bin within {:.0f} points at "
                              "best; every access: {}",
                              samples, 196 * std::sqrt(0.25 / samples), exact));
        if (output_.json && !output_.quiet)
            say(fmt::format("revisit profile: {}\n", profile_.notes.back()));
    }

    static TerminalStyle stderr_style() {
        TerminalStyle style = stdout_style();
        if (!isatty(STDERR_FILENO)) style.color = false;
        return style;
    }

    const CLI::App* app_ = nullptr;
    RecordingOptions recording_;
    AnalysisOptions analysis_;
    CacheOptions caches_;
    BesideOptions beside_;
    OutputOptions output_;
    std::string method_ = "auto";
    std::string device_ = "cpu";
    ModelOption model_;
    bool time_ = false, no_sites_ = false, no_pairs_ = false, follow_ = false, sequential_ = false;
    std::string by_, why_whole_;
    SamplingOptions sampling_;
    WatchingOptions watching_;

    std::uint32_t first_ = 0;
    bool have_profile_ = false;
    Profile profile_;
    struct Group {  // processes of one program, summed
        std::string program;
        std::vector<std::string> command;  // of the first
        std::size_t processes = 1;
        std::unique_ptr<ProfileMerger> sum;
    };
    std::vector<Group> groups_;
    std::size_t started_ = 0;
    std::map<std::size_t, ProcessSummary> processes_;  // by when they started
};

}  // namespace

std::unique_ptr<Command> make_profile_command() {
    return std::make_unique<ProfileCommand>();
}

}  // namespace revisit
