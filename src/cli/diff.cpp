// revisit diff: an old and a new profile, what changed, and whether a build should fail over it.
#include "report/diff.h"

#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "core/files.h"
#include "core/try.h"

namespace revisit {
namespace {

class DiffCommand : public Command {
 public:
    void declare(CLI::App& app) override {
        app.add_option("OLD", old_, "the profile before the change; - is standard input")->required();
        app.add_option("NEW", new_, "the profile after the change")->required();
        app.add_option("--old", more_old_,
                       "another run before the change; the spread of the runs is noise")
            ->type_name("PROFILE")
            ->allow_extra_args(false)
            ->group("Runs");
        app.add_option("--new", more_new_, "another run after the change")
            ->type_name("PROFILE")
            ->allow_extra_args(false)
            ->group("Runs");
        app.add_option(
               "--fail-if", fail_if_,
               "exit status 1 if this holds beyond noise, e.g. 'llc.miss_rate > +2%'\n"
               "METRIC < <= > >= == != BOUND, joined by and, or. Metrics: S, S_hat, accesses,\n"
               "distinct, cold_share, invalidated_share, false_sharing_share, p50 … p99 (bytes), and\n"
               "hit_rate, miss_rate, misses of l1, l2, l3, llc or a cache such as 32K:8:64.\n"
               "A bound is a value (0.95, 5%, 256K) or, with a sign, a change (+2%, -100):\n"
               "percentage points on a rate, percent of the old value on a count or distance;\n"
               "+10% of old is relative on any")
            ->type_name("EXPR")
            ->allow_extra_args(false)
            ->group("Gate");
        app.add_flag("--coarse", coarse_,
                     "S and S_hat of reuses alone over 20 bins: below 4 KiB, then doubling")
            ->group("Gate");
        app.add_flag("--across-models", across_models_,
                     "allow comparing a single stack with private ones")
            ->group("Gate");
        app.add_flag("--weight-match", weight_match_,
                     "only score NEW's choice of the sites that miss most by OLD's misses")
            ->group("Sites");
        app.add_option("--miss-coverage", coverages_, "--weight-match: at these shares of the misses")
            ->type_name("SHARE,…")
            ->delimiter(',')
            ->allow_extra_args(false)
            ->group("Sites");
        app.add_flag("--reuses-only", reuses_only_, "--weight-match: ignore cold misses")
            ->group("Sites");
        caches_.declare(app, "compare hit rates of this cache; repeatable (default: this machine's)");
        app.get_option("--cache")->allow_extra_args(false);
        output_.declare(app, "write the result to this file");
        app.add_flag("--markdown", markdown_, "print the result as Markdown, for a pull request")
            ->group("Output");
        app.footer(
            "Examples:\n"
            "  revisit diff base.json new.json\n"
            "  revisit diff base.json new.json --cache 1M:16:64 --fail-if 'llc.miss_rate > +2%'\n"
            "  revisit diff a1.json b1.json --old a2.json --new b2.json --fail-if 'S < 0.95'");
    }

    Result<int> run() override {
        if (output_.json && markdown_) return fail("--json and --markdown exclude each other");
        DiffOptions options;
        options.coarse = coarse_;
        options.across_models = across_models_;
        for (const std::string& text : fail_if_) {
            auto condition = parse_condition(text);
            if (!condition) return fail("--fail-if: " + condition.error().message);
            options.fail_if.push_back(*condition);
        }
        options.caches = TRY(caches_.caches());
        std::vector<std::string> all{old_, new_};
        for (const auto& more : {more_old_, more_new_}) all.insert(all.end(), more.begin(), more.end());
        TRY(check_inputs(all));
        std::vector<Profile> before = TRY(load_all(old_, more_old_));
        std::vector<Profile> after = TRY(load_all(new_, more_new_));
        if (weight_match_) return match_weights(before.front(), after.front(), options.caches);
        auto diff = compare(before, after, options);
        if (!diff) {
            if (before.front().model != after.front().model && !across_models_)
                diff.error().message += " (--across-models compares them all the same)";
            return unexpected(diff.error());
        }
        std::string text = output_.json ? diff_json(*diff)
                           : markdown_  ? diff_markdown(*diff)
                                        : diff_text(*diff, stdout_style());
        TRY(output_.output.empty() ? print(text) : write_file(output_.output, text));
        return diff->failed() ? 1 : 0;
    }

 private:
    Result<int> match_weights(const Profile& reference, const Profile& estimate,
                              const std::vector<CacheSpec>& caches) {
        auto options = TRY(low_locality_options(coverages_, caches_, caches, reuses_only_));
        auto matches = TRY(weight_match(reference, estimate, options));
        std::string text;
        if (output_.json) {
            nlohmann::ordered_json list = nlohmann::ordered_json::array();
            for (const WeightMatch& match : matches)
                list.push_back(
                    {{"coverage", match.coverage}, {"sites", match.sites}, {"match", match.match}});
            text = nlohmann::ordered_json{{"weight_match", list}}.dump(2) + "\n";
        } else {
            text = weight_match_text(matches);
        }
        TRY(output_.output.empty() ? print(text) : write_file(output_.output, text));
        return 0;
    }

    static Result<std::vector<Profile>> load_all(const std::string& first,
                                                 const std::vector<std::string>& more) {
        std::vector<std::string> paths = {first};
        paths.insert(paths.end(), more.begin(), more.end());
        std::vector<Profile> out;
        for (const std::string& path : paths) out.push_back(TRY(load_profile(path)));
        return out;
    }

    std::string old_;
    std::string new_;
    std::vector<std::string> more_old_;
    std::vector<std::string> more_new_;
    std::vector<std::string> fail_if_;
    CacheOptions caches_;
    OutputOptions output_;
    std::vector<std::string> coverages_;
    bool weight_match_ = false, coarse_ = false, across_models_ = false;
    bool reuses_only_ = false;
    bool markdown_ = false;
};

}  // namespace

std::unique_ptr<Command> make_diff_command() {
    return std::make_unique<DiffCommand>();
}

}  // namespace revisit
