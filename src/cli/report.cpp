// revisit report: a profile as a person reads it.
#include "cli/command.h"

namespace revisit {
namespace {

class ReportCommand : public Command {
 public:
    void declare(CLI::App& app) override {
        app.add_option("PROFILE", profile_, "a profile; - is standard input");
        caches_.declare(app, "caches to show hit rates of (default: this machine's)");
        app.footer(
            "Examples:\n"
            "  revisit report profile.json\n"
            "  revisit report profile.json --cache 32K:8:64 --cache 1M:16:64\n"
            "  revisit analyze --json trace.din | revisit report -");
    }

    Result<int> run() override {
        if (auto given = caches_.give_back(profile_, "PROFILE"); !given) return std::unexpected(given.error());
        auto profile = load_profile(profile_);
        if (!profile) return std::unexpected(profile.error());
        auto caches = caches_.caches();
        if (!caches) return std::unexpected(caches.error());
        if (auto shown = print(terminal_report(*profile, *caches, stdout_style())); !shown)
            return std::unexpected(shown.error());
        return 0;
    }

 private:
    std::string profile_;
    CacheOptions caches_;
};

}  // namespace

std::unique_ptr<Command> make_report_command() {
    return std::make_unique<ReportCommand>();
}

}  // namespace revisit
