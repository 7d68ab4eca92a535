// revisit top: the report of a running process, refreshed while it is sampled.
//
// The sampler attaches once and stays. Every interval a thread of its own makes a screen of what was
// sampled so far, so each rests on more samples than the last, and reuses may take longer than an
// interval.
#include <fmt/format.h>
#include <unistd.h>

#include "cli/command.h"
#include "cli/watching.h"
#include "core/try.h"
#include "watch/profile.h"

namespace revisit {
namespace {

class TopCommand : public Command {
 public:
    void declare(CLI::App& app) override {
        watching_.declare(app);
        app.add_option("--interval", interval_, "time between two screens (1s, 500ms)")
            ->type_name("TIME")
            ->capture_default_str()
            ->group("Output");
        app.add_option("--duration", duration_, "end after this time, 10s or 2m (default: at Ctrl-C)")
            ->type_name("TIME")
            ->group("Recording");
        caches_.declare(app, "show the hit rate of this cache; repeatable (default: this machine's)");
        app.add_option("-o,--output", output_, "write the profile to this file at the end")
            ->type_name("FILE")
            ->group("Output");
        app.footer(
            "Examples:\n"
            "  revisit top --pid 4711\n"
            "  revisit top --pid $(pidof postgres | cut -d' ' -f1) --interval 2s -o db.json");
    }

    Result<int> run() override {
        if (watching_.pid == 0) return fail("--pid is required: the process to look at");
        if (!watch::works_here())
            return fail("sampling does not work on this machine; revisit doctor says why");
        EngineOptions engine;
        engine.sites = engine.pairs = true;
        const watch::WatchOptions options = TRY(watching_.apply(engine, false));
        const auto interval =
            std::chrono::ceil<std::chrono::milliseconds>(TRY(parse_time("--interval", interval_)));
        const std::vector<CacheSpec> caches = TRY(caches_.caches());

        watch::outside::RunOptions sampling;
        sampling.attach = watching_.pid;
        sampling.settings = options.settings;
        if (!duration_.empty())
            sampling.duration =
                std::chrono::ceil<std::chrono::milliseconds>(TRY(parse_time("--duration", duration_)));
        sampling.look_every = interval;
        Result<void> shown;
        sampling.look = [&](watch::outside::Outcome so_far) {
            if (auto screen = show(so_far, options, caches); !screen && shown)
                shown = unexpected(screen.error());
        };
        watch::outside::Outcome sampled = TRY(watch::outside::run(sampling));
        TRY(shown);
        const Profile profile = TRY(show(sampled, options, caches));
        if (output_.empty()) return 0;
        TRY(save_profile(profile, output_));
        TRY(print(fmt::format("\nProfile written to {}. Next: revisit report {} --open\n", output_,
                              shell_word(output_))));
        return 0;
    }

 private:
    static Result<Profile> show(watch::outside::Outcome& sampled, const watch::WatchOptions& options,
                                const std::vector<CacheSpec>& caches) {
        watch::outside::ProfileOptions how;
        how.estimate = options.estimate;
        Profile profile = TRY(watch::outside::profile_of(sampled, how));
        TerminalStyle style = stdout_style();
        style.brief = true;
        std::string text = terminal_report(profile, caches, style);
        // Home, the screen, and what follows it cleared: no flicker, and the scroll-back stays.
        if (isatty(STDOUT_FILENO))
            text = "\033[H\033[J" + text + "\nCtrl-C ends; the process goes on.\n";
        else
            text += "\n";
        TRY(print(text));
        return profile;
    }

    WatchingOptions watching_;
    CacheOptions caches_;
    std::string interval_ = "1s", duration_, output_;
};

}  // namespace

std::unique_ptr<Command> make_top_command() {
    return std::make_unique<TopCommand>();
}

}  // namespace revisit
