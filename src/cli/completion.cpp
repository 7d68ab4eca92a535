#include "cli/completion.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "core/files.h"
#include "formats/format.h"
#include "report/exports.h"
#include "revisit/revisit.h"

namespace revisit {
namespace {

std::string first_line(const std::string& text) {
    return text.substr(0, text.find('\n'));
}

std::string candidate(std::string_view value, std::string_view meaning = {}) {
    return meaning.empty() ? fmt::format("{}\n", value) : fmt::format("{}\t{}\n", value, meaning);
}

// Macros that a C source asks for: #if, #ifdef, #ifndef NAME. Guards of headers are among them.
std::string macros_of(const std::vector<std::string>& words) {
    std::set<std::string> names;
    for (const std::string& word : words) {
        if (!word.ends_with(".c")) continue;
        auto text = read_file(word);
        if (!text) continue;
        for (std::string_view rest = *text; !rest.empty();) {
            std::string_view line = rest.substr(0, rest.find('\n'));
            rest.remove_prefix(std::min(rest.size(), line.size() + 1));
            const std::size_t directive = line.find("#if");
            if (directive == std::string_view::npos) continue;
            line.remove_prefix(std::min(line.size(), line.find(' ', directive)));
            const std::size_t begin = line.find_first_not_of(" \t!(");
            if (begin == std::string_view::npos) continue;
            line.remove_prefix(begin);
            const auto end = std::find_if_not(line.begin(), line.end(), [](unsigned char c) {
                return std::isalnum(c) != 0 || c == '_';
            });
            const std::string name(line.begin(), end);
            if (!name.empty() && name != "defined") names.insert(name);
        }
    }
    std::string out;
    for (const std::string& name : names) out += candidate(name + "=");
    return out;
}

std::string values_of(const CLI::App& command, const CLI::Option& option,
                      const std::vector<std::string>& words) {
    const std::string name = option.get_single_name();
    const std::string type = option.get_type_name();
    std::string out;
    if (name == "D") return macros_of(words);
    if (name == "I") return ":directories\n";
    if (name == "method" && command.get_name() != "predict") {
        if (command.get_name() == "profile") {
            out += candidate("auto", "what suits the program and this machine");
            out += candidate("watch", "samples of the program as it is");
        }
        for (const EngineEntry& entry : engines()) out += candidate(entry.name, entry.summary);
        return out;
    }
    if (name == "model-of") {
        for (const TimeModelEntry& entry : time_models())
            out += candidate(fmt::format("time={}", entry.name), entry.summary);
        return out;
    }
    if (name == "bins") return "log2\nlog2:8\nlinear:1000\nexact\n";
    if (name == "format" && command.get_name() == "export") {
        for (const ExportEntry& entry : exports()) out += candidate(entry.name, entry.summary);
        return out;
    }
    if (name == "to" || name == "format") {
        for (const FormatEntry& entry : formats())
            if (name == "format" || entry.create != nullptr)
                out += candidate(entry.name, entry.summary);
        return out;
    }
    // "{single,shared,private,both}": what a check lets pass.
    if (const std::size_t open = type.find('{'); open != std::string::npos) {
        std::string list = type.substr(open + 1, type.find('}', open) - open - 1);
        std::replace(list.begin(), list.end(), ',', '\n');
        return list + "\n";
    }
    for (const char* kind : {"FILE", "PROFILE", "TRACE", "FOLDER"})
        if (type == kind) return ":files\n";
    return {};
}

const CLI::Option* option_of(const CLI::App& command, const std::string& word) {
    if (word.size() < 2 || word[0] != '-') return nullptr;
    const CLI::Option* option = command.get_option_no_throw(word);
    return option != nullptr && option->get_type_size() > 0 ? option : nullptr;
}

std::string options_of(const CLI::App& command) {
    std::string out;
    for (const CLI::Option* option :
         command.get_options([](const CLI::Option* o) { return !o->get_group().empty(); })) {
        const std::string meaning = first_line(option->get_description());
        for (const std::string& name : option->get_lnames()) out += candidate("--" + name, meaning);
        for (const std::string& name : option->get_snames()) out += candidate("-" + name, meaning);
    }
    return out;
}

}  // namespace

std::string complete(const CLI::App& app, const std::vector<std::string>& words) {
    std::string out;
    if (words.size() < 2) {
        for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; }))
            out += candidate(sub->get_name(), sub->get_description());
        return out + "--help\n--version\n";
    }
    const CLI::App* command = nullptr;
    for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; }))
        if (sub->get_name() == words[0]) command = sub;
    if (command == nullptr) return {};
    // Behind -- is another program, with arguments of its own.
    if (std::find(words.begin(), words.end() - 1, "--") != words.end() - 1) return ":files\n";
    const std::string& current = words.back();
    // zsh and fish hand over --method=sa as it is, bash as three words.
    std::size_t before = words.size() - 2;
    if (words[before] == "=" && before > 1) --before;
    if (const CLI::Option* option = option_of(*command, words[before]))
        return values_of(*command, *option, words);
    if (const std::size_t equals = current.find('=');
        current.starts_with("--") && equals != std::string::npos) {
        const std::string name = current.substr(0, equals);
        const CLI::Option* option = option_of(*command, name);
        if (option == nullptr) return {};
        std::string values = values_of(*command, *option, words);
        for (std::string_view rest = values; !rest.empty() && rest[0] != ':';) {
            const std::string_view line = rest.substr(0, rest.find('\n'));
            rest.remove_prefix(std::min(rest.size(), line.size() + 1));
            out += fmt::format("{}={}\n", name, line);
        }
        return out;
    }
    if (current.starts_with("-")) return options_of(*command);
    return ":files\n";
}

const char* const kBashCompletion =
    R"(# Completion of revisit in bash: the program itself lists what it takes.
_revisit() {
    local current=${COMP_WORDS[COMP_CWORD]} program=${COMP_WORDS[0]/#\~/$HOME} line
    local IFS=$'\n'
    COMPREPLY=()
    [[ $current == '=' ]] && current=
    for line in $("$program" --complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null); do
        case $line in
        :files) COMPREPLY+=($(compgen -f -- "$current")); compopt -o filenames 2>/dev/null ;;
        :directories) COMPREPLY+=($(compgen -d -- "$current")); compopt -o filenames 2>/dev/null ;;
        *)
            line=${line%%$'\t'*}
            [[ $line == "$current"* ]] && COMPREPLY+=("$line")
            [[ $line == *= ]] && compopt -o nospace 2>/dev/null
            ;;
        esac
    done
}
complete -F _revisit revisit
)";

const char* const kZshCompletion = R"(#compdef revisit
# Completion of revisit in zsh: the program itself lists what it takes.
local -a values meanings
local line
for line in "${(@f)$("${(Q)words[1]}" --complete "${(@Q)words[2,CURRENT]}" 2>/dev/null)}"; do
    case $line in
    :files) _files ;;
    :directories) _files -/ ;;
    ?*)
        values+=("${line%%$'\t'*}")
        meanings+=("${line/$'\t'/  }")
        ;;
    esac
done
(( $#values )) && compadd -l -d meanings -a values
)";

const char* const kFishCompletion =
    R"(# Completion of revisit in fish: the program itself lists what it takes.
function __revisit_complete
    set -l words (commandline -opc) (commandline -ct)
    for line in (command $words[1] --complete $words[2..] 2>/dev/null)
        switch $line
            case :files
                __fish_complete_path (commandline -ct)
            case :directories
                __fish_complete_directories (commandline -ct) ''
            case '*'
                echo $line
        end
    end
end
complete -c revisit -f -a '(__revisit_complete)'
)";

}  // namespace revisit
