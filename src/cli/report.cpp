// revisit report: a profile as a person reads it, in the terminal or as one HTML page.
#include <fmt/format.h>
#include <spawn.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "cli/command.h"
#include "core/files.h"
#include "core/try.h"
#include "report/findings.h"
#include "report/page.h"
#include "report/places.h"

namespace revisit {
namespace {

class ReportCommand : public Command {
 public:
    void declare(CLI::App& app) override {
        app.add_option("PROFILE", profiles_,
                       "a profile, - for standard input; with -o several, compared on one page");
        caches_.declare(app, "show the hit rate of this cache; repeatable (default: this machine's)");
        app.add_option("-o,--output", output_, "write a self-contained HTML page instead of text")
            ->type_name("FILE.html")
            ->group("Output");
        app.add_option("--miss-coverage", coverages_,
                       "list the fewest sites behind these shares of the misses\n"
                       "in the first --cache, or at the size where a tenth of the reuses miss")
            ->type_name("SHARE,…")
            ->delimiter(',')
            ->allow_extra_args(false)
            ->group("Sites");
        app.add_option("--by", by_,
                       "most misses by site, loop, function, file, pair, object, thread or line\n"
                       "line: cache lines by invalidated reuses")
            ->check(
                CLI::IsMember(std::vector<std::string>(std::begin(kPlaceKinds), std::end(kPlaceKinds))))
            ->type_name("KIND")
            ->group("Sites");
        app.add_flag("--reuses-only", reuses_only_, "--miss-coverage: ignore cold misses")
            ->group("Sites");
        app.add_flag("--sources", sources_, "embed the source files in the page")->group("Output");
        app.add_flag("--open", open_, "open the page in a browser (without -o: a temporary file)")
            ->group("Output");
        app.add_flag("--disassembly", disassembly_,
                     "embed the machine code of the functions with the most misses in the page")
            ->group("Output");
        app.add_flag("--json", json_, "print the report as JSON (schema revisit/report@1)")
            ->group("Output");
        app.add_flag("--quiet", quiet_, "no hints")->group("Output");
        app.footer(
            "Examples:\n"
            "  revisit report profile.json\n"
            "  revisit report profile.json --by object --cache 32K:8:64\n"
            "  revisit report before.json after.json --sources -o compare.html");
    }

    Result<int> run() override {
        if (profiles_.empty()) {
            std::string given;
            TRY(caches_.give_back(given, "PROFILE"));
            profiles_.push_back(given);
        }
        const bool page = !output_.empty() || open_;
        if (!page && sources_) return fail("--sources needs -o FILE.html");
        if (!page && disassembly_) return fail("--disassembly needs -o FILE.html");
        if (!page && profiles_.size() > 1)
            return fail("several profiles need -o FILE.html (or compare two with revisit diff)");
        if (page && json_) return fail("--json writes to standard output; leave -o and --open out");
        std::vector<CacheSpec> caches = TRY(caches_.caches());
        std::vector<PageProfile> loaded;
        for (const std::string& path : profiles_)
            loaded.push_back({TRY(load_profile(path)), label_of(path)});
        const Profile& first = loaded[0].profile;
        if (!coverages_.empty()) {
            if (page) return fail("--miss-coverage is for the terminal; leave -o out");
            TRY(list_sites(first, caches));
        } else if (!by_.empty()) {
            if (page) return fail("--by is for the terminal; leave -o out");
            TRY(print(TRY(places_of(first, by_, caches))));
        } else if (json_) {
            TRY(print(findings_json(findings_of(first, caches), first) + "\n"));
        } else if (page) {
            TRY(write_page(loaded, std::move(caches)));
        } else {
            TRY(print(terminal_report(first, caches, stdout_style())));
            if (!quiet_ && isatty(STDOUT_FILENO))
                TRY(print(fmt::format("\nIn a browser: revisit report {} --open\n", profiles_[0])));
        }
        return 0;
    }

 private:
    Result<void> list_sites(const Profile& profile, const std::vector<CacheSpec>& caches) {
        auto options = TRY(low_locality_options(coverages_, caches_, caches, reuses_only_));
        return print(low_locality_text(TRY(low_locality(profile, options)), profile.granularity));
    }

    static std::string label_of(const std::string& path) {
        return path == "-" ? "standard input" : std::filesystem::path(path).stem().string();
    }

    Result<void> write_page(const std::vector<PageProfile>& loaded, std::vector<CacheSpec> caches) {
        PageOptions options;
        options.caches_are_hosts = caches_.specs.empty();
        options.caches = std::move(caches);
        options.sources = sources_;
        options.disassembly = disassembly_;
        std::string page = TRY(html_page(loaded, options));
        if (output_.empty())
            output_ = (std::filesystem::temp_directory_path() /
                       fmt::format("revisit-{}-{}.html", loaded[0].label, getpid()))
                          .string();
        TRY(write_file(output_, page));
        if (!quiet_ && output_ != "-") TRY(print(fmt::format("Report written to {}\n", output_)));
        return open_ ? open_in_browser(output_) : Result<void>{};
    }

    // xdg-open, or what $BROWSER names; it goes on after we are done.
    static Result<void> open_in_browser(const std::string& file) {
        const char* wanted = std::getenv("BROWSER");
        std::string program = wanted && *wanted ? wanted : "xdg-open";
        std::string path = std::filesystem::absolute(file).string();
        char* words[] = {program.data(), path.data(), nullptr};
        pid_t child = 0;
        if (posix_spawnp(&child, program.c_str(), nullptr, nullptr, words, environ) != 0)
            return fail(fmt::format("cannot start {} (set BROWSER); open {} by hand", program, path));
        return {};
    }

    std::vector<std::string> profiles_;
    CacheOptions caches_;
    std::string output_;
    std::vector<std::string> coverages_;
    bool reuses_only_ = false;
    bool sources_ = false, open_ = false, json_ = false;
    bool disassembly_ = false;
    std::string by_;
    bool quiet_ = false;
};

}  // namespace

std::unique_ptr<Command> make_report_command() {
    return std::make_unique<ReportCommand>();
}

}  // namespace revisit
