// How a project compiles a file: compile_commands.json.
//
// CMake, Meson, Bazel and Bear write down every compiler call, with the folder it was made in. Of such
// a call what decides the program is kept (-D, -U, -I and its kin, -std, -f…, -m…, the level of
// optimisation); where it writes, what it warns of and what it depends on is dropped. Folders become
// absolute, since the slicer runs elsewhere.
#include "predict/slice/compile_commands.h"

#include <array>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

namespace revisit::predict {
namespace {

namespace fs = std::filesystem;

// Words as a shell splits them: blanks, quotes and backslashes, nothing else.
std::vector<std::string> shell_words(const std::string& line) {
    std::vector<std::string> words;
    std::string word;
    bool inside = false;
    char quote = 0;
    for (std::size_t k = 0; k < line.size(); ++k) {
        const char c = line[k];
        if (c == '\\' && quote != '\'' && k + 1 < line.size()) {
            word += line[++k];
            inside = true;
        } else if (quote != 0) {
            if (c == quote)
                quote = 0;
            else
                word += c;
        } else if (c == '"' || c == '\'') {
            quote = c;
            inside = true;
        } else if (c == ' ' || c == '\t' || c == '\n') {
            if (inside) words.push_back(std::move(word));
            word.clear();
            inside = false;
        } else {
            word += c;
            inside = true;
        }
    }
    if (inside) words.push_back(std::move(word));
    return words;
}

int level_of(const std::string& flag) {
    if (flag == "-O" || flag == "-O1" || flag == "-Og") return 1;
    if (flag == "-Os" || flag == "-Oz") return 's';
    if (flag == "-O2") return 2;
    return flag == "-O0" ? 0 : 3;  // -O3, -Ofast
}

CompileCommand kept(const std::vector<std::string>& words, const fs::path& folder) {
    CompileCommand command;
    constexpr std::array paths{"-I", "-isystem", "-iquote", "-idirafter", "-include", "-imacros"};
    for (std::size_t k = 1; k < words.size(); ++k) {
        const std::string& w = words[k];
        bool done = false;
        for (const std::string path : paths) {
            if (!w.starts_with(path)) continue;
            const bool next = w == path;
            if (next && k + 1 >= words.size()) continue;
            const auto where = next ? words[++k] : w.substr(path.size());
            command.flags.push_back(path == "-I" ? "-I" + (folder / where).string() : path);
            if (path != "-I") command.flags.push_back((folder / where).string());
            done = true;
            break;
        }
        if (done) continue;
        if ((w == "-D" || w == "-U") && k + 1 < words.size())
            command.flags.push_back(w + words[++k]);
        else if (w.starts_with("-D") || w.starts_with("-U") || w.starts_with("-std=") ||
                 (w.starts_with("-f") && !w.starts_with("-fplugin") &&
                  !w.starts_with("-fdiagnostics") && !w.starts_with("-fsanitize") &&
                  !w.starts_with("-flto") && !w.starts_with("-fprofile") &&
                  !w.starts_with("-fmodule")) ||
                 w.starts_with("-m") || w == "-pthread" || w == "-nostdinc" || w == "-ansi")
            command.flags.push_back(w);
        else if (w.starts_with("-O"))
            command.optimise = level_of(w);
    }
    return command;
}

}  // namespace

Result<CompileCommand> compile_command(const std::string& folder, const std::string& source) {
    const auto path = fs::path(folder) / "compile_commands.json";
    std::ifstream in(path);
    if (!in) return fail(path.string(), "", "cannot be read");
    const auto all = nlohmann::json::parse(in, nullptr, false);
    if (!all.is_array()) return fail(path.string(), "", "is no compilation database");
    std::error_code ignored;
    const auto wanted = fs::weakly_canonical(source, ignored);
    const auto text = [](const nlohmann::json& entry, const char* name) {
        const auto at = entry.is_object() ? entry.find(name) : entry.end();
        return at != entry.end() && at->is_string() ? at->get<std::string>() : std::string();
    };
    for (const auto& entry : all) {
        const auto file = text(entry, "file");
        if (file.empty()) continue;
        const fs::path directory = fs::absolute(fs::path(folder) / text(entry, "directory"), ignored);
        if (fs::weakly_canonical(directory / file, ignored) != wanted) continue;
        std::vector<std::string> words;
        if (const auto at = entry.find("arguments"); at != entry.end() && at->is_array()) {
            for (const auto& word : *at)
                if (word.is_string()) words.push_back(word.get<std::string>());
        } else {
            words = shell_words(text(entry, "command"));
        }
        if (words.empty()) return fail(path.string(), "", "has no command for " + source);
        return kept(words, directory);
    }
    return fail(path.string(), "", "has no entry for " + source);
}

}  // namespace revisit::predict
