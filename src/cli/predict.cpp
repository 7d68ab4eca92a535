// revisit predict: a kernel's source in, its profile at a given size out; nothing is run.
#include "predict/predict.h"

#include <charconv>
#include <chrono>

#include "cli/command.h"

namespace revisit {
namespace {

Result<std::optional<std::pair<std::string, std::int64_t>>> size_from(const std::string& text,
                                                                      const char* option) {
    const auto equals = text.find('=');
    if (equals == 0) return fail(std::string(option) + " " + text + ": expected NAME=VALUE");
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

class PredictCommand : public Command {
 public:
    void declare(CLI::App& app) override {
        app.add_option("SOURCE", source_, "C, or LLVM IR as .ll or .bc")->required();
        app.add_option("--function", function_,
                       "the function to predict; not needed when there is only one")
            ->type_name("NAME");
        app.add_option("-D", macros_, "a macro; whole numbers are sizes of the target")
            ->type_name("NAME=VALUE")
            ->allow_extra_args(false);
        app.add_option("--param", parameters_, "the value of an integer argument or global")
            ->type_name("NAME=VALUE")
            ->allow_extra_args(false);
        app.add_option("-I", includes_, "a folder for #include")
            ->type_name("FOLDER")
            ->allow_extra_args(false);
        app.add_option(
               "--opt", optimise_,
               "0: every load and store of the source; 1: scalars in registers, as optimised code does")
            ->check(CLI::IsMember({0, 1}))
            ->capture_default_str();
        app.add_option("--method", method_,
                       "auto: small runs are interpreted whole, large ones fitted; fit; simulate")
            ->check(CLI::IsMember({"auto", "fit", "simulate"}))
            ->capture_default_str()
            ->group("Analysis");
        app.add_option("--simulate-up-to", simulate_up_to_,
                       "accesses that auto interprets whole before it looks for formulas")
            ->capture_default_str()
            ->group("Analysis");
        app.add_option("--budget", budget_,
                       "seconds of processor time for finding formulas; what has none then is interpreted "
                       "(up to 400 million accesses) or estimated")
            ->check(CLI::Range(0.1, 1e6))
            ->capture_default_str()
            ->group("Analysis");
        app.add_option("--branch-probability", branch_probability_,
                       "of a branch that only the data decides")
            ->check(CLI::Range(0.0, 1.0))
            ->capture_default_str()
            ->group("Analysis");
        analysis_.declare(app);
        output_.declare(app, "write the profile here");
        app.footer(
            "Examples:\n"
            "  revisit predict gemm.c --function kernel_gemm -D NI=4000 -D NJ=4000 -D NK=4000\n"
            "  revisit predict kernel.c --function f --param n=100000 --granularity 8 --bins log2:4 -o "
            "f.json\n"
            "  revisit predict paper.c --function kernel_fig4 -D K=102 --opt 0 --granularity 1 --bins "
            "exact --json");
    }

    Result<int> run() override {
        auto request = make_request();
        if (!request) return std::unexpected(request.error());
        const auto start = std::chrono::steady_clock::now();
        auto prediction = predict::predict(*request);
        if (!prediction) return std::unexpected(prediction.error());
        const double seconds =
            std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        if (auto shown = show(*prediction, seconds); !shown) return std::unexpected(shown.error());
        return 0;
    }

 private:
    Result<predict::Request> make_request() {
        predict::Request request;
        auto options = analysis_.engine_options();
        if (!options) return std::unexpected(options.error());
        request.granularity = options->granularity;
        request.bins = options->bins;
        request.seed = options->seed;
        request.source = {source_, function_, optimise_, {}};
        for (const auto& text : macros_) {
            auto size = size_from(text, "-D");
            if (!size) return std::unexpected(size.error());
            if (*size)
                request.macros.insert(**size);
            else
                request.source.flags.push_back("-D" + text);
        }
        for (const auto& text : parameters_) {
            auto size = size_from(text, "--param");
            if (!size) return std::unexpected(size.error());
            if (!*size) return fail("--param " + text + ": expected NAME=VALUE with a whole number");
            request.parameters.insert(**size);
        }
        for (const auto& folder : includes_) request.source.flags.push_back("-I" + folder);
        request.method = method_ == "fit"        ? predict::Method::fit
                         : method_ == "simulate" ? predict::Method::simulate
                                                 : predict::Method::automatic;
        request.simulate_up_to = simulate_up_to_;
        request.budget = budget_;
        request.branch_probability = branch_probability_;
        return request;
    }

    Result<void> show(const predict::Prediction& prediction, double seconds) {
        const Profile& profile = prediction.profile;
        if (!output_.output.empty())
            if (auto saved = save_profile(profile, output_.output); !saved) return saved;
        if (output_.json) return print(to_json(profile));
        std::string text = terminal_report(profile, host_caches(), stdout_style());
        if (!output_.quiet) {
            text += fmt::format("\nPredicted in {:.2f} s: {}\n", seconds,
                                prediction.failures.empty() ? "exact" : "an estimate, see the notes");
            if (output_.output.empty())
                text += fmt::format(
                    "\nNext: revisit predict … -o profile.json, then revisit cache profile.json\n");
            else
                text += fmt::format("\nProfile written to {}. Next: revisit cache {}\n", output_.output,
                                    output_.output);
        }
        return print(text);
    }

    std::string source_, function_;
    std::vector<std::string> macros_, parameters_, includes_;
    int optimise_ = 1;
    std::string method_ = "auto";
    std::uint64_t simulate_up_to_ = 10'000'000;
    double budget_ = 15;
    double branch_probability_ = 0.5;
    AnalysisOptions analysis_;
    OutputOptions output_;
};

}  // namespace

std::unique_ptr<Command> make_predict_command() {
    return std::make_unique<PredictCommand>();
}

}  // namespace revisit
