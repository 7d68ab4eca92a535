// revisit predict: a kernel's source in, its profile at a given size out; nothing is run.
#include "predict/predict.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/command.h"
#include "core/files.h"
#include "core/try.h"
#include "predict/advise/advise.h"
#include "predict/certify/assumptions.h"
#include "predict/certify/verify.h"
#include "predict/explain.h"
#include "predict/run/conflicts.h"
#include "predict/slice/compile_commands.h"
#include "predict/sweep.h"

namespace revisit {
namespace {

Result<std::optional<std::pair<std::string, std::int64_t>>> size_from(const std::string& text,
                                                                      const char* option) {
    const auto equals = text.find('=');
    if (equals == 0 || text.empty())
        return fail(std::string(option) + " " + text + ": expected NAME=VALUE");
    if (equals == std::string::npos) return std::nullopt;
    std::int64_t value = 0;
    const auto digits = std::string_view(text).substr(equals + 1);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error == std::errc::result_out_of_range)
        return fail(std::string(option) + " " + text + ": more than 64 bits hold");
    if (error != std::errc{} || end != digits.data() + digits.size() || digits.empty())
        return std::nullopt;
    return std::pair{text.substr(0, equals), value};
}

std::vector<std::string> words(const std::string& text) {
    std::vector<std::string> out;
    for (std::size_t at = 0, end; at < text.size(); at = end + 1) {
        end = std::min(text.find(' ', at), text.size());
        if (end > at) out.push_back(text.substr(at, end - at));
    }
    return out;
}

class PredictCommand : public Command {
 public:
    void declare(CLI::App& app) override {
        app.add_option("SOURCE", sources_,
                       "C, C++, Fortran, or LLVM IR (.ll, .bc); the first has the function, others are "
                       "linked with it")
            ->required();
        app.add_option("--function", function_, "the function to predict (default: the only one)")
            ->type_name("NAME");
        app.add_option("-D", macros_, "define a macro; integers are problem sizes")
            ->type_name("NAME=VALUE")
            ->allow_extra_args(false);
        app.add_option("--param", parameters_, "value of an integer argument or global")
            ->type_name("NAME=VALUE")
            ->allow_extra_args(false);
        app.add_option("--data", data_,
                       "values of an array that decides addresses or branches\n"
                       "a file (text, raw integers or .npy), or uniform:LOW..HIGH")
            ->type_name("NAME=FILE")
            ->allow_extra_args(false);
        record_option_ =
            app.add_option(
                   "--record-data", record_data_,
                   "run the program (main is among the sources) with these arguments, and take\n"
                   "from it the sizes and the arrays that decide and are not given")
                ->type_name("WORDS");
        app.add_option("--argv", argv_, "predict main, called with these arguments")
            ->type_name("WORDS");
        app.add_option("--build-dir", build_dir_,
                       "take flags and optimization level from compile_commands.json in this folder")
            ->type_name("FOLDER");
        app.add_flag("--in-program", in_program_,
                     "compile the function with its callers in sight, as when the program is linked");
        app.add_option("-I", includes_, "folder for #include")
            ->type_name("FOLDER")
            ->allow_extra_args(false);
        app.add_option("--opt", optimise_,
                       "optimization level of clang\n"
                       "0: every load and store of the source; 1: scalars in registers, loops as "
                       "written; 2, 3, s: as clang optimizes, vectors included")
            ->check(CLI::IsMember({"0", "1", "2", "3", "s"}))
            ->capture_default_str();
        level_ = app.get_option("--opt");
        app.add_option("-m", machine_, "processor to compile for, as for clang: -march=native")
            ->type_name("arch=NAME")
            ->allow_extra_args(false);
        app.add_option("-s", standard_,
                       "language standard, as for clang: -std=c++23 (C++ default: gnu++20)")
            ->type_name("td=NAME");
        app.add_option("--method", method_,
                       "auto, fit, simulate, repeat or estimate\n"
                       "auto interprets short runs and fits formulas to long ones")
            ->type_name("METHOD")
            ->check(CLI::IsMember({"auto", "fit", "simulate", "repeat", "estimate"}))
            ->capture_default_str()
            ->group("Analysis");
        app.add_option("--simulate-up-to", simulate_up_to_,
                       "auto: interpret runs of up to N accesses (default: 50M)")
            ->group("Analysis");
        app.add_option("--budget", budget_,
                       "CPU seconds for finding formulas\n"
                       "without formulas, a run is interpreted (up to 400 M accesses) or estimated")
            ->type_name("SECONDS")
            ->check(CLI::Range(0.1, 1e6))
            ->capture_default_str()
            ->group("Analysis");
        app.add_option("--branch-probability", branch_probability_,
                       "probability of a data-dependent branch")
            ->type_name("SHARE")
            ->check(CLI::Range(0.0, 1.0))
            ->capture_default_str()
            ->group("Analysis");
        app.add_flag("--only-exact", only_exact_,
                     "if the result is not exact, give the reasons and exit status 1")
            ->group("Analysis");
        app.add_flag("--explain", explain_,
                     "show control-flow graph, execution counts, loop-annotated trace, formulas")
            ->group("Results");
        app.add_flag("--symbolic", symbolic_,
                     "print accesses, cold misses, distances and misses as formulas in the sizes")
            ->group("Results");
        app.add_option("--sweep", sweep_, "vary a size with one set of formulas; -o writes CSV")
            ->type_name("NAME=LOW:HIGH")
            ->group("Results");
        app.add_flag("--advise", advise_,
                     "rank legal loop orders and tiles by predicted misses\n"
                     "in --cache (default: this machine's); prints the best as source")
            ->group("Results");
        caches_.declare(app, "a cache that --advise ranks by; may be repeated, nearest first");
        app.get_option("--cache")->allow_extra_args(false);
        app.add_option("--simulate", simulate_,
                       "simulate this cache's sets and name the references that conflict")
            ->type_name("SPEC")
            ->allow_extra_args(false)
            ->group("Results");
        app.add_flag("--verify", verify_,
                     "record a real run and compare; exit status 1 if exact but different")
            ->group("Results");
        analysis_.declare(app);
        // What is predicted has one thread and no windows, and distances are what is found.
        for (const char* name : {"--model-of", "--phases", "--threads"})
            app.remove_option(app.get_option(name));
        app.add_option("--threads", threads_,
                       "threads of OpenMP's parallel loops, with a stack each (default: in sequence)")
            ->check(CLI::Range(1, 4096))
            ->group("Analysis");
        output_.declare(app, "write the profile to this file");
        app.footer(
            "Examples:\n"
            "  revisit predict gemm.c -D NI=4000 -D NJ=4000 -D NK=4000 -o gemm.json\n"
            "  revisit predict kernel.c --function f --param n=100000 --granularity 8\n"
            "  revisit predict gemm.c -D NI=500 -D NJ=500 -D NK=500 --sweep NK=100:10000");
    }

    Result<int> run() override {
        auto request = TRY(make_request());
        if (!sweep_.empty()) return run_sweep(std::move(request));
        if (advise_) return run_advise(request);
        if ((explain_ || symbolic_) && method_ == "auto") request.method = predict::Method::fit;
        const auto start = std::chrono::steady_clock::now();
        auto prediction = predict::predict(request);
        // Where there is nothing to vary there are no formulas; the rest can still be shown.
        if (!prediction && request.method == predict::Method::fit && method_ == "auto") {
            request.method = predict::Method::automatic;
            prediction = predict::predict(request);
        }
        if (!prediction) return unexpected(prediction.error());
        if (only_exact_ && prediction->certainty() != Certainty::exact) {
            std::string why;
            for (const auto& u : prediction->unproven)
                if (prediction->failures.empty()) why += "not proven: " + u.sentence() + "\n";
            for (const auto& f : prediction->failures) why += "not exact: " + f.sentence() + "\n";
            TRY(print(why));
            return 1;
        }
        const double seconds =
            std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        std::string more;
        int status = 0;
        if (explain_) {
            more += "\n" + TRY(predict::explain(request, *prediction));
        }
        if (symbolic_) more += "\n" + predict::symbolic(*prediction, host_caches());
        std::vector<predict::Conflicts> mapped;
        for (const auto& spec : simulate_) {
            auto cache = CacheSpec::parse(spec);
            if (!cache) return fail("--simulate: " + cache.error().message);
            predict::Parameters sizes = request.macros;
            sizes.insert(request.parameters.begin(), request.parameters.end());
            auto sets =
                TRY(predict::map_sets(*prediction->target, sizes, *cache, predict::Deadline(budget_)));
            more += "\n" + predict::text_of(sets);
            mapped.push_back(std::move(sets));
        }
        if (verify_) {
            auto checked = TRY(predict::verify(request, *prediction));
            const auto note =
                fmt::format("verified: a recorded run of {:.0f} accesses {}", checked.measured.accesses,
                            checked.equal ? "is equal in every bin"
                                          : fmt::format("differs, accuracy {:.4f}", checked.accuracy));
            prediction->profile.notes.push_back(note);
            // Where the stack happens to lie decides the lines of local arrays: no prediction knows it.
            const bool anywhere =
                request.granularity > 1 && predict::has_local_arrays(*prediction->target);
            if (!checked.equal && anywhere)
                prediction->profile.notes.push_back(
                    "the position of local arrays on the stack is unknown: their lines may differ");
            else if (!checked.equal && prediction->profile.exact().value_or(false))
                status = 1;
        }
        TRY(show(*prediction, seconds, more, mapped));
        return status;
    }

 private:
    Result<predict::Request> make_request() {
        predict::Request request;
        const EngineOptions options = TRY(analysis_.engine_options());
        if (analysis_.several_granularities())
            return fail("--granularity: predict takes one block size at a time");
        request.granularity = options.granularity;
        request.bins = options.bins;
        request.seed = options.seed;
        request.source.path = sources_.front();
        request.source.function = function_;
        request.source.optimise = optimise_ == "s" ? 's' : optimise_[0] - '0';
        request.source.in_program = in_program_;
        if (in_program_ && optimise_ == "0")
            return fail("--in-program: at --opt 0 a function is the same wherever it is called from");
        if (!argv_.empty()) {
            request.argv = words(argv_);
            if (function_.empty()) request.source.function = "main";
        }
        if (record_option_->count() > 0) request.record = words(record_data_);
        if (verify_ && request.record)
            return fail("--verify: give sizes and arrays by --param and --data, not by --record-data");
        if (!build_dir_.empty()) TRY(take_commands(request.source));
        for (const auto& flag : machine_) request.source.flags.push_back("-m" + flag);
        TRY(take_standard(request.source));
        for (const auto& text : macros_) {
            auto size = TRY(size_from(text, "-D"));
            if (size && !request.macros.insert(*size).second)
                return fail("-D " + text + ": " + size->first + " is given twice");
            if (!size) request.source.flags.push_back("-D" + text);
        }
        for (const auto& text : parameters_) {
            auto size = TRY(size_from(text, "--param"));
            if (!size) return fail("--param " + text + ": expected NAME=VALUE with a whole number");
            if (!request.parameters.insert(*size).second)
                return fail("--param " + text + ": " + size->first + " is given twice");
        }
        for (const auto& text : data_) {
            const auto equals = text.find('=');
            if (equals == 0 || equals == std::string::npos || equals + 1 == text.size())
                return fail("--data " + text + ": expected NAME=FILE or NAME=uniform:LOW..HIGH");
            request.data.push_back({text.substr(0, equals), text.substr(equals + 1)});
        }
        for (const auto& folder : includes_) request.source.flags.push_back("-I" + folder);
        for (std::size_t k = 1; k < sources_.size(); ++k) {
            predict::Unit unit{sources_[k], {}};
            if (build_dir_.empty()) {
                unit.flags = request.source.flags;
                if (predict::is_cpp(unit.path) != predict::is_cpp(sources_.front()))
                    std::erase_if(unit.flags, [](const auto& f) { return f.starts_with("-std="); });
            } else
                unit.flags = TRY(predict::compile_command(build_dir_, unit.path)).flags;
            request.source.others.push_back(std::move(unit));
        }
        TRY(check_macros(request));
        request.method = method_ == "fit"        ? predict::Method::fit
                         : method_ == "simulate" ? predict::Method::simulate
                         : method_ == "repeat"   ? predict::Method::repeat
                         : method_ == "estimate" ? predict::Method::estimate
                                                 : predict::Method::automatic;
        if (simulate_up_to_) request.simulate_up_to = simulate_up_to_;
        // Ranges let through what is no number.
        if (std::isnan(budget_)) return fail("--budget: expected a number of seconds");
        if (std::isnan(branch_probability_)) return fail("--branch-probability: expected a number");
        request.threads = threads_;
        if (threads_ > 1 && optimise_ != "0" && request.source.optimise != 1)
            return fail("--threads: loops are as they are written at --opt 0 and 1 only");
        if (threads_ > 1 && (method_ == "fit" || method_ == "repeat" || method_ == "estimate" ||
                             verify_ || advise_ || !sweep_.empty()))
            return fail("--threads: such runs are interpreted; no formulas, advice or --verify");
        request.budget = budget_;
        request.branch_probability = branch_probability_;
        request.estimate = !only_exact_;
        return request;
    }

    // As the project compiles it; what is given here comes after, and counts.
    Result<void> take_commands(predict::Source& source) {
        auto command = TRY(predict::compile_command(build_dir_, source.path));
        source.flags = std::move(command.flags);
        if (level_->count() == 0) source.optimise = command.optimise;
        return {};
    }

    // C++20, where nothing else is said: its headers are what people include.
    Result<void> take_standard(predict::Source& source) const {
        if (!standard_.empty() && !standard_.starts_with("td="))
            return fail("-s" + standard_ + ": unknown option; -std=NAME gives the language standard");
        if (!standard_.empty())
            source.flags.push_back("-s" + standard_);
        else if (predict::is_cpp(source.path) &&
                 std::none_of(source.flags.begin(), source.flags.end(),
                              [](const auto& f) { return f.starts_with("-std="); }))
            source.flags.push_back("-std=gnu++20");
        return {};
    }

    // A -D that nothing uses is a mistake; those of the project are its own.
    Result<void> check_macros(const predict::Request& request) const {
        if (macros_.empty()) return {};
        std::set<std::string> unused;
        for (std::size_t k = 0; k < sources_.size(); ++k) {
            predict::Source one = request.source;
            if (k > 0) one.path = sources_[k], one.flags = request.source.others[k - 1].flags;
            const auto names = TRY(predict::unused_macros(one, request.macros));
            std::set<std::string> here(names.begin(), names.end());
            if (k > 0) std::erase_if(here, [&](const auto& name) { return !unused.contains(name); });
            unused = std::move(here);
        }
        for (const auto& text : macros_)
            if (const auto name = text.substr(0, text.find('=')); unused.contains(name))
                return fail(sources_.front(), "", "-D " + name + ": the source does not use it");
        return {};
    }

    Result<int> run_advise(const predict::Request& request) {
        const auto advice = TRY(predict::advise(request, TRY(caches_.caches())));
        if (output_.json) {
            auto out = nlohmann::ordered_json::array();
            for (const auto& a : advice) {
                nlohmann::ordered_json nest = {{"line", a.line}, {"illegal", a.illegal}};
                for (const auto& v : a.variants) {
                    nlohmann::ordered_json one = {{"order", v.name},
                                                  {"certainty", name_of(v.certainty)},
                                                  {"accesses", v.accesses},
                                                  {"cost", v.cost}};
                    for (std::size_t k = 0; k < v.misses.size(); ++k)
                        one["misses"][a.caches[k].name] = v.misses[k];
                    one["as_written"] = &v == &a.variants[a.original];
                    nest["variants"].push_back(std::move(one));
                }
                nest["source"] = a.source;
                out.push_back(std::move(nest));
            }
            TRY(print(out.dump(1) + "\n"));
            return 0;
        }
        std::string text;
        for (const auto& a : advice) text += (text.empty() ? "" : "\n") + predict::text_of(a);
        TRY(print(text));
        return 0;
    }

    Result<void> show(const predict::Prediction& prediction, double seconds, const std::string& more,
                      const std::vector<predict::Conflicts>& mapped) {
        const Profile& profile = prediction.profile;
        if (!output_.output.empty()) TRY(write_file(output_.output, json_of(prediction, {})));
        if (output_.json) return print(json_of(prediction, mapped));
        std::string text = terminal_report(profile, host_caches(), stdout_style()) + more;
        if (!output_.quiet) {
            text += fmt::format("\nPredicted in {:.2f} s: {}\n", seconds,
                                prediction.certainty() == Certainty::exact ? "exact"
                                : prediction.certainty() == Certainty::fitted
                                    ? "fitted, and not proven: see the notes"
                                    : "an estimate, see the notes");
            if (output_.output.empty())
                text += fmt::format(
                    "\nNext: revisit predict … -o profile.json, then revisit cache profile.json\n");
            else
                text += fmt::format("\nProfile written to {}. Next: revisit cache {}\n", output_.output,
                                    shell_word(output_.output));
        }
        return print(text);
    }

    // The profile's JSON, and the caches whose sets were mapped as analyze --simulate writes them.
    static std::string json_of(const predict::Prediction& prediction,
                               const std::vector<predict::Conflicts>& mapped) {
        auto json = to_json(prediction.profile);
        if (mapped.empty()) return json;
        auto out = nlohmann::ordered_json::parse(json);
        out["simulated"] = nlohmann::ordered_json::array();
        for (const auto& m : mapped) {
            nlohmann::ordered_json entry = {
                {"cache", m.cache.name},
                {"accesses", m.accesses},
                {"misses", m.misses},
                {"hit_rate", m.accesses > 0 ? 1 - m.misses / m.accesses : 0},
                {"conflicts", m.conflicts},
                {"complete", m.complete}};
            for (const auto& c : m.culprits)
                entry["culprits"].push_back({{"reference", c.expression},
                                             {"line", c.line},
                                             {"conflicts", c.conflicts},
                                             {"stride", c.stride},
                                             {"sets", c.sets_used}});
            out["simulated"].push_back(std::move(entry));
        }
        return out.dump(1) + "\n";
    }

    Result<int> run_sweep(predict::Request request) {
        const auto equals = sweep_.find('='), colon = sweep_.find(':');
        std::int64_t low = 0, high = 0;
        const auto number = [&](std::size_t from, std::size_t to, std::int64_t& value) {
            const auto* begin = sweep_.data() + from;
            const auto* end = sweep_.data() + to;
            const auto [at, error] = std::from_chars(begin, end, value);
            return error == std::errc{} && at == end && begin != end;
        };
        if (equals == std::string::npos || colon == std::string::npos || equals == 0 ||
            colon < equals || !number(equals + 1, colon, low) ||
            !number(colon + 1, sweep_.size(), high) || low < 1 || high <= low)
            return fail("--sweep " + sweep_ + ": expected NAME=LOW:HIGH with 1 <= LOW < HIGH");
        auto points = TRY(predict::sweep(std::move(request), sweep_.substr(0, equals), low, high, 25));
        const auto caches = host_caches();
        const auto name = sweep_.substr(0, equals);
        std::string csv = name + ",accesses,cold,exact";
        for (const auto& cache : caches) csv += "," + cache.name;
        csv += "\n";
        std::string text = fmt::format("{:>10} {:>16} {:>14}", name, "accesses", "first touches");
        for (const auto& cache : caches) text += fmt::format(" {:>8}", cache.name);
        text += fmt::format("   hit rate{}\n", caches.empty() ? "" : " of " + caches.front().name);
        for (const auto& point : points) {
            csv += fmt::format("{},{:.0f},{:.0f},{}", point.value, point.profile.accesses,
                               point.profile.reuse.cold, point.exact);
            text += fmt::format("{:>10} {:>16.0f} {:>14.0f}", point.value, point.profile.accesses,
                                point.profile.reuse.cold);
            double first = -1;
            for (const auto& cache : caches) {
                const auto rate = predict_cache(point.profile, cache).hit_rate;
                if (first < 0) first = rate;
                csv += fmt::format(",{:.6f}", rate);
                text += fmt::format(" {:>7.2f}%", 100 * rate);
            }
            std::string bar;
            for (int k = 0; k < static_cast<int>(std::max(0.0, first) * 40 + 0.5); ++k) bar += "█";
            text += "   " + bar + (point.exact ? "" : " estimate") + "\n";
            csv += "\n";
        }
        if (!output_.output.empty()) TRY(write_file(output_.output, csv));
        TRY(print(text));
        return 0;
    }

    std::vector<std::string> sources_;
    std::string function_, argv_, record_data_, build_dir_;
    bool in_program_ = false;
    const CLI::Option *level_ = nullptr, *record_option_ = nullptr;
    std::vector<std::string> macros_, parameters_, includes_, machine_, data_;
    std::string optimise_ = "1", standard_;
    std::string method_ = "auto";
    std::uint64_t simulate_up_to_ = 0;
    unsigned threads_ = 1;
    double budget_ = 15;
    bool only_exact_ = false;
    bool explain_ = false, symbolic_ = false, verify_ = false, advise_ = false;
    CacheOptions caches_;
    std::string sweep_;
    std::vector<std::string> simulate_;
    double branch_probability_ = 0.5;
    AnalysisOptions analysis_;
    OutputOptions output_;
};

}  // namespace

std::unique_ptr<Command> make_predict_command() {
    return std::make_unique<PredictCommand>();
}

}  // namespace revisit
