// revisit top: the report of a running process, refreshed while it is sampled.
//
// Every interval the sampler attaches, samples, and lets the process go; what it saw is added to what
// it saw before. So each screen rests on more samples than the last, and the process runs free while a
// screen is made. Reuses that take longer than an interval are not seen; --interval sets it.
#include <unistd.h>

#include "cli/command.h"
#include "cli/watching.h"
#include "core/try.h"
#include "watch/outside/attach.h"
#include "watch/outside/profile.h"

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
        std::chrono::nanoseconds left = std::chrono::nanoseconds::max();
        if (!duration_.empty()) left = TRY(parse_time("--duration", duration_));
        const std::vector<CacheSpec> caches = TRY(caches_.caches());

        std::optional<Profile> sum;
        bool goes_on = true;
        for (; goes_on && left.count() > 0; left -= interval) {
            watch::outside::RunOptions sampling;
            sampling.attach = watching_.pid;
            sampling.settings = options.settings;
            sampling.duration = std::min(interval, std::chrono::ceil<std::chrono::milliseconds>(left));
            auto sampled = watch::outside::run(sampling);
            if (!sampled && sum) break;  // it has ended since
            if (!sampled) return unexpected(sampled.error());
            goes_on = sampled->detached && !watch::outside::interrupts_taken();
            watch::outside::ProfileOptions how;
            how.estimate = options.estimate;
            Profile one = TRY(watch::outside::profile_of(*sampled, how));
            one.notes.clear();
            if (!sum)
                sum = std::move(one);
            else
                TRY(merge_profile(*sum, one));
            TRY(show(*sum, caches));
            goes_on = goes_on && !watch::outside::interrupts_taken();
        }
        if (!sum) return 0;
        if (!output_.empty()) {
            TRY(save_profile(*sum, output_));
            TRY(print(fmt::format("\nProfile written to {}. Next: revisit report {} --open\n", output_,
                                  output_)));
        }
        return 0;
    }

 private:
    Result<void> show(const Profile& profile, const std::vector<CacheSpec>& caches) const {
        TerminalStyle style = stdout_style();
        style.brief = true;
        std::string text = terminal_report(profile, caches, style);
        // Home, the screen, and what follows it cleared: no flicker, and the scroll-back stays.
        if (isatty(STDOUT_FILENO))
            text = "\033[H\033[J" + text + "\nCtrl-C ends; the process goes on.\n";
        else
            text += "\n";
        return print(text);
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
