// revisit report: a profile as a person reads it, in the terminal or as one HTML page.
#include <filesystem>

#include "cli/command.h"
#include "core/files.h"
#include "report/page.h"
#include "report/places.h"

namespace revisit {
namespace {

class ReportCommand : public Command {
 public:
    void declare(CLI::App& app) override {
        app.add_option("PROFILE", profiles_,
                       "a profile; - is standard input. With -o several, to compare in one page");
        caches_.declare(app, "caches to show hit rates of (default: this machine's)");
        app.add_option("-o,--output", output_,
                       "write one self-contained HTML page here instead of text on the terminal")
            ->type_name("FILE.html")
            ->group("Output");
        app.add_option(
               "--miss-coverage", coverages_,
               "list the few sites that cause these shares of the misses (in the first --cache, "
               "or at the size a tenth of the reuses miss)")
            ->type_name("SHARE,…")
            ->delimiter(',')
            ->allow_extra_args(false)
            ->group("Sites");
        app.add_option("--by", by_,
                       "list the places with the most misses, by site, loop, function, file, pair, "
                       "object or thread; line: those that threads take from each other")
            ->check(
                CLI::IsMember(std::vector<std::string>(std::begin(kPlaceKinds), std::end(kPlaceKinds))))
            ->type_name("KIND")
            ->group("Sites");
        app.add_flag("--reuses-only", reuses_only_, "cold misses do not count in --miss-coverage")
            ->group("Sites");
        app.add_flag("--sources", sources_, "take the source files of the sites along in the page")
            ->group("Output");
        app.add_flag("--quiet", quiet_, "no hints")->group("Output");
        app.footer(
            "Examples:\n"
            "  revisit report profile.json\n"
            "  revisit report profile.json --cache 32K:8:64 --cache 1M:16:64\n"
            "  revisit report profile.json --miss-coverage 75%,80%,90%,95%\n"
            "  revisit report profile.json --by object\n"
            "  revisit report profile.json --sources -o report.html\n"
            "  revisit report before.json after.json -o compare.html\n"
            "  revisit analyze --json trace.din | revisit report -");
    }

    Result<int> run() override {
        if (profiles_.empty()) {
            std::string given;
            if (auto back = caches_.give_back(given, "PROFILE"); !back)
                return std::unexpected(back.error());
            profiles_.push_back(given);
        }
        if (output_.empty() && sources_) return fail("--sources needs -o FILE.html");
        if (output_.empty() && profiles_.size() > 1)
            return fail("several profiles need -o FILE.html (or compare two with revisit diff)");
        auto caches = caches_.caches();
        if (!caches) return std::unexpected(caches.error());
        std::vector<PageProfile> loaded;
        for (const std::string& path : profiles_) {
            auto profile = load_profile(path);
            if (!profile) return std::unexpected(profile.error());
            loaded.push_back({std::move(*profile), label_of(path)});
        }
        if (!coverages_.empty()) return list_sites(loaded[0].profile, *caches);
        if (!by_.empty()) {
            if (!output_.empty()) return fail("--by is for the terminal; leave -o out");
            auto table = places_of(loaded[0].profile, by_, *caches);
            if (!table) return std::unexpected(table.error());
            if (auto printed = print(*table); !printed) return std::unexpected(printed.error());
            return 0;
        }
        auto written = output_.empty()
                           ? print(terminal_report(loaded[0].profile, *caches, stdout_style()))
                           : write_page(loaded, *caches);
        if (!written) return std::unexpected(written.error());
        return 0;
    }

 private:
    Result<int> list_sites(const Profile& profile, const std::vector<CacheSpec>& caches) {
        if (!output_.empty()) return fail("--miss-coverage is for the terminal; leave -o out");
        auto options = low_locality_options(coverages_, caches_, caches, reuses_only_);
        if (!options) return std::unexpected(options.error());
        auto found = low_locality(profile, *options);
        if (!found) return std::unexpected(found.error());
        if (auto printed = print(low_locality_text(*found, profile.granularity)); !printed)
            return std::unexpected(printed.error());
        return 0;
    }

    static std::string label_of(const std::string& path) {
        return path == "-" ? "standard input" : std::filesystem::path(path).stem().string();
    }

    Result<void> write_page(const std::vector<PageProfile>& loaded, std::vector<CacheSpec> caches) {
        PageOptions options;
        options.caches_are_hosts = caches_.specs.empty();
        options.caches = std::move(caches);
        options.sources = sources_;
        auto page = html_page(loaded, options);
        if (!page) return std::unexpected(page.error());
        if (auto written = write_file(output_, *page); !written) return written;
        if (!quiet_ && output_ != "-") return print(fmt::format("Report written to {}\n", output_));
        return {};
    }

    std::vector<std::string> profiles_;
    CacheOptions caches_;
    std::string output_;
    std::vector<std::string> coverages_;
    bool reuses_only_ = false;
    bool sources_ = false;
    std::string by_;
    bool quiet_ = false;
};

}  // namespace

std::unique_ptr<Command> make_report_command() {
    return std::make_unique<ReportCommand>();
}

}  // namespace revisit
