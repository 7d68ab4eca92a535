#include "cli/help.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

namespace revisit {
namespace {

constexpr std::size_t kLeft = 26;  // columns of the option's name
constexpr std::size_t kWidth = 100;
constexpr int kExamples = 3;

// What --help lists of the commands that have more options than a screen holds; all other commands
// list every option.
struct Common {
    std::string_view command;
    std::vector<std::string_view> options;
};
const std::vector<Common>& common_options() {
    static const std::vector<Common> kCommon = {
        {"profile",
         {"--method", "--pid", "--duration", "--repeat", "--follow", "--function", "--region", "--granularity",
          "--model", "--phases", "--line-use", "--rate", "--by", "--output", "--json", "--quiet"}},
        {"analyze",
         {"--format", "--method", "--model", "--granularity", "--bins", "--threads", "--device",
          "--sites", "--phases", "--rate", "--line-use", "--simulate", "--output", "--json",
          "--quiet"}},
        {"predict",
         {"--function", "-D", "--param", "--data", "-I", "--opt", "--granularity", "--method",
          "--budget", "--only-exact", "--advise", "--symbolic", "--sweep", "--simulate", "--verify",
          "--output", "--json", "--quiet"}},
        {"top", {"--pid", "--interval", "--duration", "--cache", "--overhead", "--output"}},
        {"diff",
         {"--fail-if", "--cache", "--old", "--new", "--weight-match", "--markdown", "--output",
          "--json", "--quiet"}},
    };
    return kCommon;
}

bool is_help(const CLI::Option& option) {
    return option.check_name("--help") || option.check_name("--help-all");
}

// Where --help lists the option; npos: only --help-all does.
std::size_t place(const CLI::App& app, const CLI::Option& option) {
    const auto& all = common_options();
    const auto found = std::ranges::find(all, std::string_view(app.get_name()), &Common::command);
    if (found == all.end()) return 0;
    const auto name = std::ranges::find_if(
        found->options, [&](std::string_view each) { return option.check_name(std::string(each)); });
    return name == found->options.end() ? std::string::npos
                                        : static_cast<std::size_t>(name - found->options.begin());
}

// Columns that UTF-8 text takes.
std::size_t columns(std::string_view text) {
    return static_cast<std::size_t>(
        std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; }));
}

// One entry; text that does not fit its column goes on below.
std::string entry(const std::string& left, const std::string& text) {
    std::string out = "  " + left, margin(kLeft, ' ');
    out += columns(left) + 4 > kLeft ? "\n" + margin : std::string(kLeft - columns(left) - 2, ' ');
    std::size_t column = kLeft;
    bool first = true;
    for (std::size_t at = 0; at < text.size();) {
        if (text[at] == '\n') {
            out += "\n" + margin + "  ";
            column = kLeft + 2, first = true, ++at;
            continue;
        }
        const std::size_t end = std::min(text.find_first_of(" \n", at), text.size());
        const std::string word = text.substr(at, end - at);
        at = end < text.size() && text[end] == ' ' ? end + 1 : end;
        const std::size_t shown = columns(word);
        if (!first && column + 1 + shown > kWidth) {
            out += "\n" + margin + "  ";
            column = kLeft + 2, first = true;
        }
        if (!first) out += ' ', ++column;
        out += word, column += shown, first = false;
    }
    return out + "\n";
}

std::string usage(const CLI::App& app) {
    if (app.get_parent() == nullptr) return "Usage: revisit COMMAND [options]\n";
    std::string out = "Usage: revisit " + app.get_name() + " [options]";
    for (const CLI::Option* option :
         app.get_options([](const CLI::Option* o) { return o->get_positional(); })) {
        const bool many = option->get_items_expected_max() > 1;
        if (option->get_name(true) == "PROGRAM")
            out += " -- PROGRAM ARGS…";
        else
            out += " " + option->get_name(true) + (many ? "…" : "");
    }
    return out + "\n";
}

// The first three examples of the footer. A line that goes on is part of the one before.
std::string examples(const std::string& footer) {
    std::string out;
    bool counting = false, goes_on = false;
    int seen = 0;
    for (std::size_t at = 0; at < footer.size();) {
        const std::size_t end = std::min(footer.find('\n', at), footer.size());
        const std::string line = footer.substr(at, end - at);
        at = end + 1;
        if (counting && !goes_on && ++seen > kExamples) break;
        out += line + "\n";
        if (line == "Examples:") counting = true;
        goes_on = line.ends_with('\\');
    }
    return out;
}

class Formatter : public CLI::FormatterBase {
 public:
    std::string make_help(const CLI::App* app, std::string, CLI::AppFormatMode mode) const override {
        const bool all = mode == CLI::AppFormatMode::All;
        std::string out = app->get_description() + "\n\n" + usage(*app);
        std::string positionals;
        for (const CLI::Option* option :
             app->get_options([](const CLI::Option* o) { return o->get_positional(); }))
            positionals += entry(option->get_name(true), option_text(*option));
        if (!positionals.empty()) out += "\n" + positionals;

        const auto commands = app->get_subcommands([](const CLI::App*) { return true; });
        if (!commands.empty()) out += "\nCommands:\n";
        for (const CLI::App* command : commands)
            out += entry(command->get_name(), command->get_description());

        out += all || app->get_parent() == nullptr ? by_group(*app) : short_list(*app);
        if (!app->get_footer().empty())
            out += "\n" + (all ? app->get_footer() + "\n" : examples(app->get_footer()));
        return out;
    }

 private:
    // Options in the order of the table, or as declared.
    static std::string short_list(const CLI::App& app) {
        std::string out;
        std::size_t left_out = 0;
        std::vector<std::pair<std::size_t, const CLI::Option*>> shown;
        for (const CLI::Option* option : listed(app)) {
            if (is_help(*option)) continue;
            const std::size_t at = place(app, *option);
            if (at == std::string::npos)
                ++left_out;
            else
                shown.emplace_back(at, option);
        }
        std::ranges::stable_sort(shown, {}, &std::pair<std::size_t, const CLI::Option*>::first);
        for (const auto& [at, option] : shown) {
            std::string text = option_text(*option);
            text.resize(std::min(text.find('\n'), text.size()));
            out += entry(option_name(*option), text);
        }
        if (!out.empty()) out = "\nOptions:\n" + out;
        if (left_out > 0) out += entry("--help-all", fmt::format("{} more options", left_out));
        return out;
    }

    static std::string by_group(const CLI::App& app) {
        std::string out;
        for (const std::string& group : app.get_groups()) {
            std::string entries;
            for (const CLI::Option* option : listed(app))
                if (option->get_group() == group)
                    entries += entry(option_name(*option), option_text(*option));
            if (!entries.empty()) out += "\n" + group + ":\n" + entries;
        }
        return out;
    }

    static std::vector<const CLI::Option*> listed(const CLI::App& app) {
        return app.get_options(
            [](const CLI::Option* o) { return !o->get_positional() && !o->get_group().empty(); });
    }
};

}  // namespace

std::shared_ptr<CLI::FormatterBase> help_formatter() {
    return std::make_shared<Formatter>();
}

std::string option_name(const CLI::Option& option) {
    if (option.get_positional()) return option.get_name(true);
    std::string out = option.get_name(false, true);
    if (option.get_type_size() == 0) return out;
    // CLI11 gives "TEXT:{a,b}" for a choice and "INT:INT in [1 - 4]" for a range.
    std::string type = option.get_type_name();
    const bool checked =
        type.find(":{") != std::string::npos || type.find(" in [") != std::string::npos;
    const std::size_t colon = checked ? type.find(':') : std::string::npos;
    const std::string kind = type.substr(0, colon);
    if (kind == "TEXT" && type.find(":{") != std::string::npos) {
        type = type.substr(colon + 2, type.size() - colon - 3);
        std::ranges::replace(type, ',', '|');
    } else {
        type = kind == "UINT" || kind == "INT" || kind == "FLOAT" ? "N" : kind;
    }
    return type.empty() ? out : out + " " + type;
}

std::string option_text(const CLI::Option& option) {
    std::string text = option.get_description();
    const std::string value = option.get_default_str();
    if (value.empty() || text.find("(default") != std::string::npos) return text;
    text.insert(std::min(text.find('\n'), text.size()), " (default: " + value + ")");
    return text;
}

}  // namespace revisit
