// revisit analyze: a stored trace in, a profile out.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/progress.h"
#include "cluster/cluster.h"
#include "core/profile_json.h"
#include "core/try.h"
#include "engines/hierarchy.h"
#include "engines/set_associative.h"
#include "models/hierarchy_model.h"
#include "revisit/blocks.h"
#include "symbols/origins.h"

namespace revisit {
namespace {

// Simulated caches beside the prediction, fed with blocks of their own line size.
struct Simulations {
    struct One {
        CacheSimulator cache;
        BlockCutter cutter;
    };
    struct Hierarchy {
        std::string text;
        HierarchySimulator levels;
        BlockCutter cutter;
    };
    std::vector<One> caches;
    std::vector<Hierarchy> hierarchies;

    bool empty() const { return caches.empty() && hierarchies.empty(); }
    Result<void> access(const AccessBatch& batch) {
        for (One& one : caches)
            TRY(one.cutter.cut(batch, [&](const BlockBatch& piece) -> Result<void> {
                one.cache.access(piece.blocks);
                return {};
            }));
        for (Hierarchy& one : hierarchies)
            TRY(one.cutter.cut(batch, [&](const BlockBatch& piece) -> Result<void> {
                one.levels.access(piece);
                return {};
            }));
        return {};
    }
};

class AnalyzeCommand : public Command {
 public:
    void declare(CLI::App& app) override {
        app_ = &app;
        app.add_option("TRACE", traces_, "the trace, or its parts in order; - is standard input")
            ->required();
        app.add_option("--format", format_,
                       "trace format (default: recognized by content, then by name)")
            ->type_name("NAME");
        std::string methods;
        for (const EngineEntry& entry : engines())
            methods += "\n" + std::string(entry.name) + ": " + std::string(entry.summary);
        app.add_option("--method", method_, "exact, sample, shards, time, … (see --help-all)" + methods)
            ->capture_default_str()
            ->type_name("NAME")
            ->group("Analysis");
        model_.declare(app);
        app.add_option("--device", device_, "count on the CPU or the GPU (methods exact and hprda)")
            ->capture_default_str()
            ->check(CLI::IsMember({"cpu", "gpu"}))
            ->group("Analysis");
        analysis_.declare(app);
        beside_.declare(app);
        app.add_flag("--time", time_, "also count time distances")->group("Analysis");
        app.add_flag("--sites", sites_, "one histogram per site (instruction)")->group("Analysis");
        app.add_flag("--pairs", pairs_, "one histogram per use → reuse pair of sites")
            ->group("Analysis");
        app.add_flag("--no-sites", no_sites_, "no histograms per site, even if the trace has sites")
            ->group("Analysis");
        sampling_.declare(app);
        app.add_option("--sample-blocks", sample_blocks_,
                       "shards: track at most N blocks, lowering the rate as needed")
            ->type_name("N")
            ->group("Analysis");
        app.add_option("--thread-trace", thread_trace_, "hprda: accesses per thread")
            ->type_name("N")
            ->capture_default_str()
            ->group("Analysis");
        app.add_option("--block-threads", block_threads_, "hprda: threads per block")
            ->type_name("N")
            ->capture_default_str()
            ->group("Analysis");
        app.add_flag("--no-adjust", no_adjust_, "hprda: without the effective factor")
            ->group("Analysis");
        app.add_flag("--cluster", cluster_,
                     "count on all ranks of an MPI job (mpirun -n N revisit analyze --cluster …)")
            ->group("Analysis");
        app.add_option("--simulate", simulate_,
                       "also simulate this set-associative LRU cache\n"
                       "with --model both a hierarchy: levels joined by +, the last one shared")
            ->type_name("SIZE:WAYS:LINE[+…]")
            ->allow_extra_args(false)
            ->group("Caches");
        output_.declare(app, "write the profile to this file");
        app.footer(
            "Examples:\n"
            "  revisit analyze trace.din\n"
            "  revisit analyze --format u64 --granularity 1 --bins exact addresses.bin\n"
            "  xzcat trace.xz | revisit analyze --format champsim -o profile.json -\n"
            "  revisit analyze --simulate 32K:8:64 trace.csv.zst\n"
            "  revisit analyze --granularity 64,4K,2M trace.revisit\n"
            "  revisit analyze --model both --cores 0,1,0,1 --simulate 32K:8:64+1M:8:64+8M:16:64 "
            "trace.csv");
    }

    Result<int> run() override {
        for (const EngineEntry& entry : engines())
            if (entry.name == method_) TRY(check_options(*app_, method_));
        AnalyzeOptions analysis;
        analysis.method = method_;
        analysis.engine = TRY(engine_options());
        TRY(beside_.apply(analysis_, analysis));
        EngineOptions& options = analysis.engine;
        if (!analysis.cores.empty() && options.model != StackModel::private_)
            return fail("--cores needs --model private or both");
        if (cluster_) return run_on_cluster(analysis);
        TRY(check_inputs(traces_));
        const auto trace = TRY(open_traces(traces_, format_, options.threads));
        std::uint64_t natural = trace->info().natural_granularity;
        if (!analysis_.granularity_given() && natural != 0) options.granularity = natural;
        if (!no_sites_ && TRY(trace->tells_places())) {
            EngineOptions told = options;
            told.sites = true;
            told.pairs = options.device == Device::cpu;  // the GPU counts sites only
            if (make_engine(method_, told)) options = told;
        }
        Simulations simulations = TRY(make_simulations());
        if (!simulations.hierarchies.empty() && !options.shared)
            return fail("--simulate of a hierarchy needs --model both");
        for (const Simulations::Hierarchy& one : simulations.hierarchies)
            options.filters.insert(options.filters.end(), one.levels.levels().begin(),
                                   one.levels.levels().end() - 1);
        if (!simulations.empty())
            analysis.also = [&](const AccessBatch& batch) { return simulations.access(batch); };
        Progress progress("analyzing", output_.quiet);
        analysis.progress = [&](std::uint64_t done, std::uint64_t total) {
            progress.update(done, total, done);
        };
        Profile profile = TRY(analyze(*trace, analysis));
        profile.model = model_.name();
        if (TraceInfo info = trace->info(); !info.extra_json.empty()) {
            auto origins = origins_from(info);
            if (!origins) return fail(traces_.front(), "", origins.error().message);
            explain(profile, *origins);
        } else {  // unresolved site ids appear only with --sites
            if (!sites_) profile.sites.clear();
            if (!pairs_) profile.pairs.clear();
        }
        format_read_ = trace->format();
        progress.clear();
        TRY(show(profile, simulations));
        return 0;
    }

 private:
    Result<EngineOptions> engine_options() const {
        EngineOptions options = TRY(analysis_.engine_options());
        options.time = time_;
        options.sites = sites_;
        options.pairs = pairs_;
        TRY(sampling_.apply(options));
        model_.apply(options);
        options.shards.most_blocks = sample_blocks_;
        options.hprda = {thread_trace_, block_threads_, !no_adjust_};
        options.device = device_ == "gpu" ? Device::gpu : Device::cpu;
        return options;
    }

    Result<int> run_on_cluster(const AnalyzeOptions& analysis) {
        EngineOptions options = analysis.engine;
        if (method_ != "exact" || !simulate_.empty())
            return fail("--cluster requires --method exact and excludes --simulate");
        if (!analysis.more_granularities.empty() || analysis.line_use)
            return fail("--cluster counts blocks of one size and no line use");
        if (traces_.size() > 1) return fail("--cluster reads one trace");
        if (analysis_.phases != 0) return fail("--cluster does not cut a run into phases");
        if (!analysis_.granularity_given()) options.granularity = 0;
        auto profile = TRY(analyze_on_cluster(traces_.front(), format_, options));
        if (!profile) return 0;  // rank 0 speaks
        profile->model = model_.name();
        TRY(show(*profile, {}));
        return 0;
    }

    Result<Simulations> make_simulations() const {
        Simulations simulations;
        for (const std::string& text : simulate_) {
            auto named = [](const Error& error) { return fail("--simulate: " + error.message); };
            auto levels = HierarchySimulator::parse(text);
            if (!levels) return named(levels.error());
            if (levels->size() == 1) {
                const CacheSpec& spec = levels->front();
                simulations.caches.push_back(
                    {TRY(CacheSimulator::create(spec)), BlockCutter(spec.line)});
                continue;
            }
            const std::uint64_t line = levels->front().line;
            auto hierarchy = HierarchySimulator::create(std::move(*levels));
            if (!hierarchy) return named(hierarchy.error());
            simulations.hierarchies.push_back({text, std::move(*hierarchy), BlockCutter(line)});
        }
        return simulations;
    }

    Result<void> show(const Profile& profile, const Simulations& simulations) {
        const bool to_standard_output = output_.output == "-";  // which then has the profile alone
        if (!output_.output.empty() && !(to_standard_output && output_.json))
            TRY(save_profile(profile, output_.output));
        if (output_.json)
            return print(profile_json(profile, TRY(simulated_json(profile, simulations))));
        if (to_standard_output) return {};
        std::string text = terminal_report(profile, host_caches(), stdout_style());
        if (!simulations.empty()) text += "\nSimulated beside predicted\n";
        for (const Simulations::One& simulation : simulations.caches) {
            CachePrediction predicted = predict_cache(profile, simulation.cache.spec());
            text += fmt::format("  {:<16} simulated hit {:.4f} %   predicted hit {:.4f} %\n",
                                simulation.cache.spec().name, 100 * hit_rate(simulation.cache),
                                100 * predicted.hit_rate);
        }
        for (const Simulations::Hierarchy& one : simulations.hierarchies) {
            const std::vector<double> predicted = TRY(predict_hierarchy(profile, one.levels.levels()));
            for (std::size_t i = 0; i < predicted.size(); ++i)
                text += fmt::format(
                    "  {:<16} {:<7} simulated miss {:.4f} %   predicted miss {:.4f} % of accesses\n",
                    one.levels.levels()[i].name, i + 1 < predicted.size() ? "private" : "shared",
                    100 * miss_share(one.levels, i), 100 * predicted[i]);
        }
        if (!output_.quiet) {
            if (!format_read_.empty())
                text += fmt::format("\nRead as {}{}.\n", format_read_,
                                    format_.empty() ? " (--format reads it as another)" : "");
            if (output_.output.empty() && std::ranges::find(traces_, "-") != traces_.end())
                text += "\nNext: the same with -o profile.json, then revisit cache profile.json\n";
            else if (output_.output.empty())
                text += fmt::format(
                    "\nNext: revisit analyze {}-o profile.json {} && revisit cache profile.json\n",
                    format_.empty() ? "" : "--format " + format_ + " ", shell_words(traces_));
            else
                text += fmt::format("\nProfile written to {}. Next: revisit cache {}\n", output_.output,
                                    shell_word(output_.output));
        }
        return print(text);
    }

    static double hit_rate(const CacheSimulator& cache) {
        return cache.accesses() == 0
                   ? 0
                   : 1 - static_cast<double>(cache.misses()) / static_cast<double>(cache.accesses());
    }

    static double miss_share(const HierarchySimulator& levels, std::size_t level) {
        return levels.accesses() == 0
                   ? 0
                   : static_cast<double>(levels.misses(level)) / static_cast<double>(levels.accesses());
    }

    // What --json has beside the profile.
    static Result<nlohmann::ordered_json> simulated_json(const Profile& profile,
                                                         const Simulations& simulations) {
        nlohmann::ordered_json more = nlohmann::ordered_json::object();
        if (simulations.empty()) return more;
        nlohmann::ordered_json& list = more["simulated"];
        for (const Simulations::Hierarchy& one : simulations.hierarchies) {
            const std::vector<double> predicted = TRY(predict_hierarchy(profile, one.levels.levels()));
            nlohmann::ordered_json entry = {{"hierarchy", one.text},
                                            {"accesses", one.levels.accesses()}};
            for (std::size_t i = 0; i < predicted.size(); ++i)
                entry["levels"].push_back({{"cache", one.levels.levels()[i].name},
                                           {"shared", i + 1 == predicted.size()},
                                           {"misses", one.levels.misses(i)},
                                           {"miss_rate", miss_share(one.levels, i)},
                                           {"predicted_miss_rate", predicted[i]}});
            list.push_back(std::move(entry));
        }
        for (const Simulations::One& simulation : simulations.caches)
            list.push_back({{"cache", simulation.cache.spec().name},
                            {"accesses", simulation.cache.accesses()},
                            {"misses", simulation.cache.misses()},
                            {"hit_rate", hit_rate(simulation.cache)}});
        return more;
    }

    const CLI::App* app_ = nullptr;
    std::vector<std::string> traces_;
    std::string format_, format_read_;
    std::string method_ = "exact";
    ModelOption model_;
    std::string device_ = "cpu";
    bool cluster_ = false;
    AnalysisOptions analysis_;
    BesideOptions beside_;
    OutputOptions output_;
    bool time_ = false;
    bool sites_ = false;
    bool pairs_ = false;
    bool no_sites_ = false;
    SamplingOptions sampling_;
    std::uint64_t sample_blocks_ = 0;
    unsigned thread_trace_ = 2048;
    unsigned block_threads_ = 64;
    bool no_adjust_ = false;
    std::vector<std::string> simulate_;
};

}  // namespace

std::unique_ptr<Command> make_analyze_command() {
    return std::make_unique<AnalyzeCommand>();
}

}  // namespace revisit
