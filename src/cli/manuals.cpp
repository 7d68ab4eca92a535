#include "cli/manuals.h"

#include <fmt/format.h>

#include <filesystem>

#include "cli/completion.h"
#include "cli/help.h"
#include "core/files.h"
#include "core/try.h"

namespace revisit {
namespace {

// Text as roff takes it: backslashes and leading dots escaped, hyphens kept as minus signs.
std::string roff(std::string_view text) {
    std::string out;
    bool line_start = true;
    for (char c : text) {
        if (line_start && (c == '.' || c == '\'')) out += "\\&";
        if (c == '\\')
            out += "\\\\";
        else if (c == '-')
            out += "\\-";
        else
            out += c;
        line_start = c == '\n';
    }
    return out;
}

// The program's page names all others and the tools it works with; another one the whole family.
std::vector<std::string> see_also(const CLI::App& app) {
    const CLI::App* program = app.get_parent() != nullptr ? app.get_parent() : &app;
    std::vector<std::string> pages;
    if (program != &app) pages.push_back("revisit");
    for (const CLI::App* sub : program->get_subcommands([](const CLI::App*) { return true; }))
        if (sub != &app) pages.push_back("revisit-" + sub->get_name());
    if (program == &app) pages.insert(pages.end(), {"valgrind", "perf", "mpirun"});
    return pages;
}

std::string man_page(const CLI::App& app, const std::string& full_name) {
    std::string dashed = full_name;
    for (char& c : dashed)
        if (c == ' ') c = '-';
    std::string out = fmt::format(".TH {} 1 \"\" revisit\n.SH NAME\n{} \\- {}\n.SH SYNOPSIS\n.B {}\n",
                                  dashed, roff(dashed), roff(app.get_description()), roff(full_name));
    out += "[options]";
    for (const CLI::Option* option :
         app.get_options([](const CLI::Option* o) { return o->get_positional(); }))
        out += " " + roff(option->get_name(true));
    out += "\n.SH OPTIONS\n";
    for (const CLI::Option* option :
         app.get_options([](const CLI::Option* o) { return !o->get_group().empty(); }))
        out += fmt::format(".TP\n.B {}\n{}\n", roff(option_name(*option)), roff(option_text(*option)));
    auto subs = app.get_subcommands([](const CLI::App*) { return true; });
    if (!subs.empty()) out += ".SH COMMANDS\n";
    for (const CLI::App* sub : subs)
        out += fmt::format(".TP\n.BR revisit\\-{} (1)\n{}\n", sub->get_name(),
                           roff(sub->get_description()));
    if (!app.get_footer().empty()) out += ".SH NOTES\n.nf\n" + roff(app.get_footer()) + "\n.fi\n";
    out +=
        ".SH EXIT STATUS\n0 done; 1 a comparison failed its \\-\\-fail\\-if; 2 bad usage or bad "
        "input.\n";
    out += ".SH SEE ALSO\n";
    std::string separator;
    for (const std::string& page : see_also(app)) {
        out += separator + fmt::format(".BR {} (1)", roff(page));
        separator = ",\n";
    }
    return out + "\n";
}

}  // namespace

Result<void> write_manuals(const CLI::App& app, const std::string& folder) {
    std::vector<std::pair<std::string, std::string>> files = {
        {"man/man1/revisit.1", man_page(app, "revisit")},
        {"bash-completion/completions/revisit", kBashCompletion},
        {"zsh/site-functions/_revisit", kZshCompletion},
        {"fish/vendor_completions.d/revisit.fish", kFishCompletion},
    };
    for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; }))
        files.emplace_back("man/man1/revisit-" + sub->get_name() + ".1",
                           man_page(*sub, "revisit " + sub->get_name()));
    for (const auto& [name, content] : files) {
        std::filesystem::path path = std::filesystem::path(folder) / name;
        std::error_code code;
        std::filesystem::create_directories(path.parent_path(), code);
        if (code) return fail(path.parent_path().string(), {}, "cannot create: " + code.message());
        TRY(write_file(path.string(), content));
    }
    return {};
}

}  // namespace revisit
