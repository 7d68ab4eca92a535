// revisit cache: what given caches, or this machine's, make of a profile.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "core/files.h"
#include "core/try.h"
#include "models/hierarchy_model.h"
#include "report/findings.h"

namespace revisit {
namespace {

class CacheCommand : public Command {
 public:
    void declare(CLI::App& app) override {
        app.add_option("PROFILE", profile_, "a profile; - is standard input");
        caches_.declare(app, "32K:8:64, 1MiB:full:64, …; repeatable (default: this machine's caches)");
        output_.declare(app, "write the result to this file");
        app.footer(
            "Examples:\n"
            "  revisit cache profile.json\n"
            "  revisit cache profile.json --cache 64K:32:32 --cache 1M:full:64\n"
            "  revisit cache profile.json --json | jq '.caches[].hit_rate'");
    }

    Result<int> run() override {
        TRY(caches_.give_back(profile_, "PROFILE"));
        Profile profile = TRY(load_profile(profile_));
        std::vector<CacheSpec> caches = TRY(caches_.caches());
        if (caches.empty() && !output_.quiet)
            say("the caches of this machine are not known; give --cache SIZE:WAYS:LINE\n");
        // A cache that was asked for is answered as well as can be; this machine's only by lines.
        std::string left_out;
        if (caches_.specs.empty()) {
            std::vector<CacheSpec> comparable = comparable_caches(profile, caches);
            if (comparable.size() < caches.size())
                left_out = fmt::format(
                    "  (no hit rates of this machine's caches: the profile counts blocks of {} B, "
                    "their "
                    "lines have {} B)\n",
                    profile.granularity, caches[0].line);
            caches = std::move(comparable);
        }
        std::vector<CachePrediction> predictions;
        for (const CacheSpec& cache : caches)
            predictions.push_back(predict_level(profile, cache, caches));
        std::string text = output_.json ? as_json(profile, predictions)
                                        : left_out + as_text(profile, caches, predictions);
        TRY(output_.output.empty() ? print(text) : write_file(output_.output, text));
        return 0;
    }

 private:
    static std::string as_json(const Profile& profile,
                               const std::vector<CachePrediction>& predictions) {
        nlohmann::ordered_json out = {{"schema", "revisit/cache@1"},
                                      {"granularity", profile.granularity}};
        out["caches"] = nlohmann::ordered_json::array();
        for (const CachePrediction& prediction : predictions) {
            nlohmann::ordered_json entry = {{"name", prediction.cache.name},
                                            {"bytes", prediction.cache.bytes},
                                            {"ways", prediction.cache.associativity()},
                                            {"line", prediction.cache.line},
                                            {"blocks", prediction.cache.blocks()},
                                            {"hit_rate", prediction.hit_rate},
                                            {"miss_rate", prediction.miss_rate}};
            if (prediction.error > 0) entry["error"] = prediction.error;
            if (prediction.simulated) {
                entry["simulated"] = true;
                entry["model_miss_rate"] = prediction.model_miss_rate;
            }
            out["caches"].push_back(std::move(entry));
        }
        out["curve"] = nlohmann::ordered_json::array();
        for (const CurvePoint& point : miss_ratio_curve(profile.reuse))
            out["curve"].push_back({point.blocks, point.miss_rate});
        return out.dump(1) + "\n";
    }

    static std::string as_text(const Profile& profile, const std::vector<CacheSpec>& caches,
                               const std::vector<CachePrediction>& predictions) {
        TerminalStyle style = stdout_style();
        std::string text = cache_table(predictions, profile);
        for (const CacheSpec& cache : caches)
            if (cache.line != profile.granularity) {
                text += fmt::format(
                    "  (the profile counts blocks of {} B; each block is assumed to fill one line of "
                    "the cache)\n",
                    profile.granularity);
                break;
            }
        return text + "\nMiss ratio by size of a fully associative cache\n" +
               curve_chart(profile, caches, style);
    }

    std::string profile_;
    CacheOptions caches_;
    OutputOptions output_;
};

}  // namespace

std::unique_ptr<Command> make_cache_command() {
    return std::make_unique<CacheCommand>();
}

}  // namespace revisit
