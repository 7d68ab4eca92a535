#include "cli/manuals.h"

#include <fmt/format.h>

#include <filesystem>

#include "cli/help.h"
#include "core/files.h"

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
    return out;
}

std::vector<std::string> long_options(const CLI::App& app) {
    std::vector<std::string> out;
    for (const CLI::Option* option :
         app.get_options([](const CLI::Option* o) { return !o->get_group().empty(); }))
        for (const std::string& name : option->get_lnames()) out.push_back("--" + name);
    return out;
}

std::string joined(const std::vector<std::string>& words) {
    std::string out;
    for (const std::string& word : words) out += (out.empty() ? "" : " ") + word;
    return out;
}

std::string bash_completion(const CLI::App& app) {
    std::vector<std::string> names;
    std::string cases;
    for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
        names.push_back(sub->get_name());
        cases +=
            fmt::format("        {}) words=\"{}\" ;;\n", sub->get_name(), joined(long_options(*sub)));
    }
    return fmt::format(
        "_revisit() {{\n    local current=${{COMP_WORDS[COMP_CWORD]}} words\n    case "
        "${{COMP_WORDS[1]}} in\n{}"
        "        *) words=\"{} --help --version\" ;;\n    esac\n"
        "    if [[ $COMP_CWORD -gt 1 && $current != -* ]]; then COMPREPLY=($(compgen -f -- "
        "\"$current\"))\n"
        "    else COMPREPLY=($(compgen -W \"$words\" -- \"$current\")); fi\n}}\ncomplete -o filenames "
        "-F _revisit revisit\n",
        cases, joined(names));
}

std::string zsh_completion(const CLI::App& app) {
    std::string commands, cases;
    for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
        commands += fmt::format(" '{}:{}'", sub->get_name(), sub->get_description());
        cases += fmt::format("    {}) compadd -- {}; _files ;;\n", sub->get_name(),
                             joined(long_options(*sub)));
    }
    return fmt::format(
        "#compdef revisit\nlocal -a commands=({} )\nif (( CURRENT == 2 )); then _describe command "
        "commands\nelse\n"
        "  case $words[2] in\n{}  esac\nfi\n",
        commands, cases);
}

std::string fish_completion(const CLI::App& app) {
    std::string out;
    for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
        out += fmt::format("complete -c revisit -n __fish_use_subcommand -a {} -d '{}'\n",
                           sub->get_name(), sub->get_description());
        for (const std::string& option : long_options(*sub))
            out += fmt::format("complete -c revisit -n '__fish_seen_subcommand_from {}' -l {}\n",
                               sub->get_name(), option.substr(2));
    }
    return out;
}

}  // namespace

Result<void> write_manuals(const CLI::App& app, const std::string& folder) {
    std::vector<std::pair<std::string, std::string>> files = {
        {"man/man1/revisit.1", man_page(app, "revisit")},
        {"bash-completion/completions/revisit", bash_completion(app)},
        {"zsh/site-functions/_revisit", zsh_completion(app)},
        {"fish/vendor_completions.d/revisit.fish", fish_completion(app)},
    };
    for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; }))
        files.emplace_back("man/man1/revisit-" + sub->get_name() + ".1",
                           man_page(*sub, "revisit " + sub->get_name()));
    for (const auto& [name, content] : files) {
        std::filesystem::path path = std::filesystem::path(folder) / name;
        std::error_code code;
        std::filesystem::create_directories(path.parent_path(), code);
        if (code) return fail(path.parent_path().string(), {}, "cannot create: " + code.message());
        if (auto written = write_file(path.string(), content); !written) return written;
    }
    return {};
}

}  // namespace revisit
