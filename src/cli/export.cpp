// revisit export: a profile for pprof, KCachegrind, flame graphs, spreadsheets, Prometheus, code
// review.
#include "cli/command.h"
#include "core/try.h"
#include "formats/compress.h"
#include "report/exports.h"

namespace revisit {
namespace {

class ExportCommand : public Command {
 public:
    void declare(CLI::App& app) override {
        app.add_option("PROFILE", profile_, "a profile; - is standard input")->required();
        std::string formats;
        for (const ExportEntry& entry : exports())
            formats += "\n" + std::string(entry.name) + ": " + std::string(entry.summary);
        app.add_option("--format", format_, "export format (default: by file name)" + formats)
            ->type_name("NAME");
        app.add_option("--value", value_, "folded: count accesses or CACHE.misses")
            ->type_name("METRIC");
        caches_.declare(app,
                        "report the misses in this cache; repeatable (default: this machine's caches)");
        app.get_option("--cache")->allow_extra_args(false);
        app.add_option("-o,--output", output_, "write to this file; .gz, .zst and .xz compress it")
            ->type_name("FILE")
            ->group("Output");
        app.footer(
            "Examples:\n"
            "  revisit export profile.json -o profile.pb.gz && go tool pprof -http=: profile.pb.gz\n"
            "  revisit export profile.json -o profile.callgrind && kcachegrind profile.callgrind\n"
            "  revisit export profile.json -o misses.folded --value l2.misses");
    }

    Result<int> run() override {
        const ExportEntry* entry = TRY(find_export(format_, output_));
        std::vector<CacheSpec> caches = TRY(caches_.caches());
        Profile profile = TRY(load_profile(profile_));
        TRY(write(TRY(entry->write(profile, {std::move(caches), value_}))));
        return 0;
    }

 private:
    Result<void> write(const std::string& text) {
        if (output_.empty() || output_ == "-") return print(text);
        auto sink = TRY(create_sink(output_));
        TRY(sink->write(text));
        return sink->finish();
    }

    std::string profile_;
    std::string format_;
    std::string value_;
    std::string output_;
    CacheOptions caches_;
};

}  // namespace

std::unique_ptr<Command> make_export_command() {
    return std::make_unique<ExportCommand>();
}

}  // namespace revisit
